package precision

import (
	"math"
	"math/rand/v2"
)

// The styles of a trace of limits_v1. In all of them there are settlements, early and late, in
// parts and of more than was charged, and calls of gcra_v2 and window_v1 between. Those by
// callers' clocks come first.
const (
	limitsAsked     = iota // at the wait that the last refusal named, and 1 ns before it
	limitsEdges            // around the first instant of one of the keys
	limitsBursts           // several calls at one instant, then a pause
	limitsChanging         // limits, periods and kinds change while the keys are in use
	limitsBackwards        // the clock jumps back
	limitsMany             // up to 32 keys
	limitsDebt             // far more is used than was charged
	limitsWeeks            // weeks are charged and given back: credit beyond 2^53
	limitsLost             // states are lost, and their receipts come after
	limitsIdle             // pauses until a key is as good as new
	limitsServed           // the server's clock, over the seconds in which keys live and die
	limitsMixed            // the same, and callers whose clocks are up to a minute ahead of it
	limitsStyles
)

// NewLimitsTrace returns the trace of limits_v1 with this seed and index. Styles take turns
// with the index.
func NewLimitsTrace(seed uint64, index int) *LimitsTrace {
	t := &LimitsTrace{}
	t.remake(seed, index)
	return t
}

// remake makes t the trace with this seed and index, in the room that it has.
func (t *LimitsTrace) remake(seed uint64, index int) {
	m := limitsMaker{trace: t, rng: rand.New(rand.NewPCG(seed, uint64(index))), pace: NewLimitsClaims(), style: index % limitsStyles}
	t.Calls, t.asks = t.Calls[:0], t.asks[:0]
	m.begin()
	for range traceCalls {
		m.next()
	}
	t.playNative()
}

// limitsMaker makes a trace. It chooses by exact integers.
type limitsMaker struct {
	trace *LimitsTrace
	rng   *rand.Rand
	pace  *LimitsClaims
	style int
	// scaleNs is about how long a unit takes of every limit; 0: they have nothing in common.
	scaleNs int64
	limits  []Ask // of each key
	clock   Call
	endNs   int64
	// what the last call came to
	status, retryNs int64
}

func (m *limitsMaker) byServer() bool { return m.style >= limitsServed }

// begin picks the keys, their limits and the first instant.
func (m *limitsMaker) begin() {
	keys := 1 + m.rng.IntN(4)
	if m.style == limitsMany {
		keys = limitsKeys
	}
	if m.rng.IntN(2) == 0 || m.style == limitsMany {
		m.scaleNs = magnitude(m.rng, 1<<40)
	}
	m.endNs = math.MaxInt64
	for range keys {
		a := Ask{Key: len(m.limits), Kind: GCRAV2}
		if m.rng.IntN(3) == 0 {
			a.Kind = WindowV1
			if m.rng.IntN(8) > 0 {
				m.endNs = 1<<62 - 1
			}
		}
		m.limit(&a)
		m.limits = append(m.limits, a)
	}
	m.clock.NowNs = start(m.rng, m.endNs)
	if m.byServer() {
		const us, last = 1000, int64(1<<61 - 3600e9)
		m.endNs = last
		m.clock.NowNs = max(min(m.clock.NowNs, last-2000*servedNs)/us*us, us)
		m.clock.ServerNs = m.clock.NowNs
	}
}

// limit sets the limit of a key.
func (m *limitsMaker) limit(a *Ask) {
	c, rng := &a.Call, m.rng
	*c = Call{}
	switch {
	case a.Kind.IsWindow():
		windowLimit(rng, c)
		switch {
		case m.byServer(): // below 30 ns the index comes half round while a key lives
			c.PeriodNs = max(min(c.PeriodNs, 1+rng.Int64N(servedNs)), 30)
		case m.scaleNs > 0:
			c.PeriodNs = 1 + rng.Int64N(16*m.scaleNs)
			c.Amount = min(c.Amount, 1+rng.Int64N(100))
		}
	case m.style == limitsWeeks:
		interval := 1 + rng.Int64N(magnitude(rng, 1<<46))
		c.Amount, c.PeriodNs, c.Burst = 1, interval, (1<<52)/interval
	case m.byServer() || m.scaleNs > 0:
		interval := 1 + rng.Int64N(max(m.scaleNs, 1))
		c.Burst = 1 + rng.Int64N(100)
		if m.byServer() {
			interval = min(magnitude(rng, 1<<35), 1+rng.Int64N(servedNs))
			c.Burst = min(magnitude(rng, servedNs/interval+1), c.Burst)
		}
		c.Amount = 1 + rng.Int64N(min(interval, 1000))
		c.PeriodNs = max(c.Amount*interval-rng.Int64N(c.Amount), c.Amount)
	default:
		gcraLimit(rng, c)
	}
}

// next makes a call.
func (m *limitsMaker) next() {
	rng, t := m.rng, m.trace
	from := len(t.asks)
	last := LimitsCall{}
	if len(t.Calls) > 0 {
		last = t.Calls[len(t.Calls)-1]
	}
	if m.status == 0 && m.retryNs > 0 && (m.style == limitsAsked || rng.IntN(4) == 0) {
		for _, a := range last.Asks {
			if a.Of == 0 {
				a.Lost = false
				t.asks = append(t.asks, a)
			}
		}
		stepNs := m.retryNs
		if stepNs > 1 {
			stepNs -= rng.Int64N(2)
		}
		if m.byServer() {
			stepNs += rng.Int64N(2000)
		}
		m.step(stepNs)
	} else {
		m.asks()
		first := &t.asks[from]
		if m.byServer() {
			m.step(m.serverStepNs(first))
		} else {
			m.step(m.stepNs(first))
		}
	}
	c := LimitsCall{Asks: t.asks[from:len(t.asks):len(t.asks)]}
	for i := range c.Asks {
		a := &c.Asks[i]
		a.NowNs, a.ServerNs, a.ByServer = m.clock.NowNs, m.clock.ServerNs, m.clock.ByServer
	}
	c.Alone = len(c.Asks) == 1 && c.Asks[0].Of == 0 && rng.IntN(8) == 0
	t.Calls = append(t.Calls, c)
	m.status, m.retryNs = m.pace.Pass(&t.Calls[len(t.Calls)-1])
}

// asks picks what is asked of which keys.
func (m *limitsMaker) asks() {
	rng, t := m.rng, m.trace
	n := 1
	if len(m.limits) > 1 && rng.IntN(2) == 0 {
		n = 1 + rng.IntN(min(len(m.limits), 4))
		if m.style == limitsMany && rng.IntN(16) == 0 {
			n = 1 + rng.IntN(limitsKeys)
		}
	}
	taken := [limitsKeys]bool{}
	for range n {
		key := rng.IntN(len(m.limits))
		for taken[key] {
			key = (key + 1) % len(m.limits)
		}
		taken[key] = true
		a := m.limits[key]
		if rng.IntN(3) > 0 || !m.settles(&a) {
			m.ask(&a)
		}
		a.Lost = m.style == limitsLost && rng.IntN(40) == 0
		t.asks = append(t.asks, a)
	}
}

// ask sets what is asked of a key, and changes its limit in a style that does.
func (m *limitsMaker) ask(a *Ask) {
	rng := m.rng
	if m.style == limitsChanging && rng.IntN(30) == 0 || m.byServer() && rng.IntN(100) == 0 {
		m.change(a)
	}
	most := a.Amount
	if !a.Kind.IsWindow() {
		most = a.Burst
	}
	a.Cost = 1
	switch rng.IntN(8) {
	case 0:
		a.Cost = []int64{0, most, min(most+1, 1<<52), 1 << 52}[rng.IntN(4)]
	case 1:
		a.Cost = min(rng.Int64N(most+2), 1<<52)
	case 2, 3:
		a.Cost = 1 + rng.Int64N(most)/(1+rng.Int64N(20))
	}
	if m.style == limitsWeeks && rng.IntN(2) == 0 {
		a.Cost = 1 + rng.Int64N(most)
	}
}

// change gives the key another limit, or for this ask alone another kind.
func (m *limitsMaker) change(a *Ask) {
	const digits19 = 1e18 // fewer digits might be read as counts
	if k := m.pace.keys; len(k) > a.Key && k[a.Key] != nil && m.rng.IntN(4) == 0 &&
		(a.Kind.IsWindow() || k[a.Key].state.Value >= digits19) {
		if a.Kind.IsWindow() {
			a.Kind = GCRAV2
		} else {
			a.Kind = WindowV1
		}
		m.limit(a)
		return
	}
	periodNs := a.PeriodNs
	m.limit(a)
	if a.Kind.IsWindow() && m.rng.IntN(4) > 0 {
		a.PeriodNs = periodNs // or the key refuses it while it holds counts
	}
	if !a.Kind.IsWindow() || a.PeriodNs == periodNs || m.byServer() {
		m.limits[a.Key] = *a
	}
}

// settles has it settle something that the key was charged, if there is anything.
func (m *limitsMaker) settles(a *Ask) bool {
	rng := m.rng
	if a.Key >= len(m.pace.keys) || m.pace.keys[a.Key] == nil {
		return false
	}
	paid := m.pace.keys[a.Key].paid
	if len(paid) == 0 {
		return false
	}
	ago := rng.IntN(min(len(paid), []int{1, 4, 4, 30, len(paid)}[rng.IntN(5)]))
	p := &paid[len(paid)-1-ago]
	asks := m.trace.Calls[p.of-1].Asks
	for i := range asks {
		if asks[i].Key == a.Key {
			*a = asks[i]
		}
	}
	most := a.Amount
	if !a.Kind.IsWindow() {
		most = a.Burst
	}
	a.Of, a.Lost, a.receipt = p.of, false, p.receipt
	units := int64(0)
	switch rng.IntN(10) {
	case 0, 1, 2:
		units = -p.left
	case 3, 4, 5:
		units = -rng.Int64N(p.left + 1)
	case 6:
		units = -min(p.left, 1)
	case 7:
		units = 1 + rng.Int64N(3)
	case 8:
		units = 1 + rng.Int64N(most)/(1+rng.Int64N(20))
	}
	if m.style == limitsDebt && units > 0 && rng.IntN(2) == 0 {
		units = magnitude(rng, 1<<52)
	}
	a.Cost = units
	return true
}

// stepNs is how far a caller's clock moves before a call whose first key this is.
func (m *limitsMaker) stepNs(a *Ask) int64 {
	rng := m.rng
	k := (*limitsKey)(nil)
	if a.Key < len(m.pace.keys) {
		k = m.pace.keys[a.Key]
	}
	if m.style == limitsBackwards && rng.IntN(20) == 0 {
		if rng.IntN(2) == 0 {
			return -magnitude(rng, max(m.clock.NowNs, 1))
		}
		return -rng.Int64N(min(3*a.PeriodNs, m.clock.NowNs) + 1)
	}
	if k == nil || k.script != a.Kind {
		return 0
	}
	unitNs := max(a.PeriodNs/a.Amount, 1)
	kind := rng.IntN(10)
	switch {
	case m.style == limitsEdges && kind < 6:
		kind = 0
	case m.style == limitsBursts || m.style == limitsWeeks:
		if kind < 6 {
			kind = 9
		}
	case m.style == limitsIdle && kind < 2:
		kind = 1
	}
	switch kind {
	case 0: // the first instant
		nowNs := m.clock.NowNs
		if k.script.IsWindow() {
			at := *a
			at.NowNs = nowNs
			counts, leftNs, gapNs := k.fed.at(&at.Call)
			return gapNs + at.Window().turn(counts, leftNs, min(max(a.Cost, 0), a.Amount)) + rng.Int64N(3) - 1
		}
		if k.exact.Value > math.MaxInt64 {
			return 0
		}
		return k.fed.GCRA(&a.Call).FirstNs(int64(k.exact.Value), min(max(a.Cost, 0), a.Burst)) - nowNs + rng.Int64N(3) - 1
	case 1: // until it is as good as new
		if m.style != limitsIdle && rng.IntN(8) > 0 {
			return 0
		}
		if k.script.IsWindow() {
			return k.fed.endNs - m.clock.NowNs + rng.Int64N(3) - 1
		}
		return int64(min(k.exact.Value, math.MaxInt64)) - m.clock.NowNs + rng.Int64N(3) - 1
	case 2:
		return 1
	case 3:
		return rng.Int64N(a.PeriodNs)/8 + rng.Int64N(2)
	case 4, 5, 6:
		return rng.Int64N(2*unitNs + 1)
	case 7:
		if rng.IntN(4) == 0 {
			return rng.Int64N(unitNs*min(a.Amount, 64) + 1)
		}
	}
	return 0
}

// serverStepNs is how far the server's clock moves before a call whose first key this is.
func (m *limitsMaker) serverStepNs(a *Ask) int64 {
	const us, ms, second = 1000, int64(1e6), int64(1e9)
	rng := m.rng
	switch rng.IntN(10) {
	case 0, 1:
		return rng.Int64N(a.PeriodNs/a.Amount + us)
	case 2:
		return rng.Int64N(2 * second)
	case 3: // the end of a second
		return second - m.clock.ServerNs%second + (rng.Int64N(3)-1)*us
	case 4: // when the key is gone, or was about to be
		if a.Key >= len(m.pace.keys) || m.pace.keys[a.Key] == nil {
			return 0
		}
		k := m.pace.keys[a.Key]
		overNs := int64(min(k.exact.lastNs(), math.MaxInt64/2))
		if k.script.IsWindow() {
			overNs = k.fed.endNs
		}
		return overNs/second*second + rng.Int64N(4)*second - m.clock.ServerNs + (rng.Int64N(3)-1)*ms
	}
	return 0
}

// step moves the clock, where it can be.
func (m *limitsMaker) step(stepNs int64) {
	c, rng := &m.clock, m.rng
	if !m.byServer() {
		if stepNs < 0 && m.style != limitsBackwards {
			stepNs = 0
		}
		if stepNs <= m.endNs-c.NowNs && c.NowNs+stepNs >= 0 {
			c.NowNs += stepNs
		}
		return
	}
	const us, second = 1000, int64(1e9)
	if stepNs = (stepNs + us - 1) / us * us; stepNs > 0 && stepNs < 200*servedNs {
		c.ServerNs = min(c.ServerNs+stepNs, m.endNs)
	}
	c.NowNs, c.ByServer = c.ServerNs, true
	if m.style == limitsMixed && rng.IntN(2) == 0 {
		c.ByServer = false
		c.NowNs += []int64{0, 60 * second, rng.Int64N(60 * second), rng.Int64N(second)}[rng.IntN(4)]
	}
}
