package precision

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Trace is a list of calls on one key, with what the native port says of each. It is
// made from a seed and an index alone.
type Trace struct {
	Script Script
	Calls  []Call
	Native []Outcome
}

// traceCalls is how many calls a trace has.
const traceCalls = 2000

// NewTrace returns the trace of a script with this seed and index. Styles take turns
// with the index, so that any run of a few dozen indexes has them all.
func NewTrace(script Script, seed uint64, index int) *Trace {
	t := &Trace{}
	t.remake(script, seed, index)
	return t
}

// remake makes t the trace with this seed and index, in the room that it has.
func (t *Trace) remake(script Script, seed uint64, index int) {
	t.Script, t.Calls = script, t.Calls[:0]
	rng := rand.New(rand.NewPCG(seed, uint64(index)))
	if script.IsWindow() {
		t.window(rng, index)
	} else {
		t.gcra(rng, index)
	}
	t.playNative()
}

// NewTraceOf returns the trace of these calls on one key.
func NewTraceOf(script Script, calls []Call) *Trace {
	t := &Trace{Script: script, Calls: calls}
	t.playNative()
	return t
}

// NewTrial is NewTrace, or NewLimitsTrace, by the script.
func NewTrial(script Script, seed uint64, index int) Trial {
	if script == LimitsV1 {
		return NewLimitsTrace(seed, index)
	}
	return NewTrace(script, seed, index)
}

// playNative makes the calls on the native port.
func (t *Trace) playNative() {
	k := nativeKey{}
	t.Native = slices.Grow(t.Native[:0], len(t.Calls))[:len(t.Calls)]
	for i := range t.Calls {
		k.play(t.Script, &t.Calls[i], &t.Native[i])
	}
}

// A trace chooses its next call by the oracle, with its TAT rounded up to the script's grid:
// what is under test has no say in what it is asked.
func newPace(script Script) *Fed { return NewFed(script, script.Grid()) }

// pass admits a call if it can be, and tells whether it does and which wait it names
// else; of one that the script does not take both are 0.
func (f *Fed) pass(c *Call) (status, retryNs int64) {
	f.Meet(c)
	if !f.Takes(c) || f.Foreign(c) {
		return 0, 0
	}
	if f.script.IsWindow() {
		w := c.Window()
		s, leftNs, gapNs := f.at(c)
		if status, retryNs = w.decide(s, leftNs, gapNs, c.Cost); status == 1 {
			f.count(c, s, leftNs, gapNs)
		}
		return status, retryNs
	}
	var tat int64
	status, retryNs, tat = f.GCRA(c).decide(f.tat, c.Cost, c.NowNs)
	f.tat = upTo(f.grid, tat)
	return status, retryNs
}

// add appends a call.
func (t *Trace) add(f *Fed, c *Call) (status, retryNs int64) {
	t.Calls = append(t.Calls, *c)
	return f.pass(c)
}

// saturatedResidues are the values of interval mod 256 that a saturated stream is made
// for: all of them, those first that are near a multiple or the half, and two between.
var saturatedResidues = func() []int64 {
	residues := []int64{1, 76, 127, 128, 182, 255}
	for r := range int64(grid) {
		if !slices.Contains(residues[:6], r) {
			residues = append(residues, r)
		}
	}
	return residues
}()

// saturatedAdmissions is how many admissions a saturated stream has.
const saturatedAdmissions = 100000

// NewSaturated returns a stream of a gcra script that is asked again as soon as it can
// admit: each call comes at the first instant of the script's own, and before every
// 16th stands one a nanosecond earlier, which must be refused. This is where errors
// that lean to one side add up.
func NewSaturated(script Script, residue int64) *Trace {
	t := &Trace{}
	t.saturate(script, residue)
	return t
}

// saturate makes t the saturated stream, in the room that it has.
func (t *Trace) saturate(script Script, residue int64) {
	t.Script, t.Calls = script, t.Calls[:0]
	// bursts from 1 on, intervals from below one grid point to some thousand
	interval := residue%13*grid + residue
	if interval == 0 {
		interval = grid
	}
	c := Call{Amount: 1, PeriodNs: interval, Burst: 1 + residue%7, Cost: 1, NowNs: 1_780_000_000_123_456_789 + residue}
	k := newPace(script)
	limit := NewGCRA(c.Amount, c.PeriodNs, c.Burst, script.Grid())
	for admitted := 0; admitted < saturatedAdmissions; admitted++ {
		first := limit.FirstNs(k.tat, c.Cost)
		if admitted%16 == 15 {
			c.NowNs = max(c.NowNs, first-1)
			t.add(k, &c)
		}
		c.NowNs = max(c.NowNs, first)
		t.add(k, &c)
	}
	t.playNative()
}

// NewFading returns a stream of a window script that is asked again as soon as one
// more unit of the window before has faded: its counts are one below amount, a call
// comes 1 ns before each such instant and one at it, fades times. The longer the
// period and the larger amount, the further are the products past 2^53.
func NewFading(script Script, amount, periodNs int64, fades int) *Trace {
	t := &Trace{Script: script}
	c := Call{Amount: amount, PeriodNs: periodNs, Sliding: true, Cost: amount - 1}
	c.NowNs = 1_780_000_000_000_000_000 / periodNs * periodNs
	k := newPace(script)
	t.add(k, &c)
	w := c.Window()
	c.NowNs += periodNs
	for range fades {
		counts, left, _ := w.At(k.counts, c.NowNs)
		c.Cost = w.Remaining(counts, left) + 1
		c.NowNs += w.turn(counts, left, c.Cost) - 1
		t.add(k, &c)
		c.NowNs++
		t.add(k, &c)
	}
	t.playNative()
	return t
}

// starts are instants near which doubles change: where they become 2 apart, 256 and
// 512; and the end of gcra_v2's clock.
var starts = []int64{0, 1 << 53, 1 << 60, 1 << 61, math.MaxInt64}

// start picks an instant at which a trace begins: today's clocks, any clock below
// limit, the neighbourhood of the starts, the edges of seconds.
func start(rng *rand.Rand, limit int64) int64 {
	now := int64(0)
	switch rng.IntN(4) {
	case 0:
		now = 1_780_000_000_000_000_000 + rng.Int64N(1e18/4)
	case 1:
		now = rng.Int64N(limit)
	case 2:
		now = starts[rng.IntN(len(starts))]
		now += min(rng.Int64N(4097)-2048, math.MaxInt64-now)
	default:
		now = rng.Int64N(limit/1e9)*1e9 + rng.Int64N(5) - 2
	}
	return min(max(now, 0), limit-1)
}

// magnitude picks a whole number from 1 to limit, every power of two alike.
func magnitude(rng *rand.Rand, limit int64) int64 {
	top := int64(1) << rng.IntN(63)
	if top > limit {
		top = limit
	}
	return 1 + rng.Int64N(top)
}

// gcraLimit sets amount, period and burst, anywhere in their ranges.
func gcraLimit(rng *rand.Rand, c *Call) {
	interval := magnitude(rng, 1<<52)
	if rng.IntN(2) == 0 {
		interval = 1 + rng.Int64N(2048) // a few grid points: where rounding weighs most
	}
	c.Amount = magnitude(rng, (1<<52)/interval)
	if rng.IntN(2) == 0 {
		c.Amount = min(c.Amount, 1+rng.Int64N(1000))
	}
	// ceil(period / amount) is interval for each of these periods
	c.PeriodNs = max(interval*c.Amount-rng.Int64N(c.Amount), c.Amount)
	c.Burst = magnitude(rng, (1<<52)/interval)
	switch rng.IntN(4) {
	case 0, 1:
		c.Burst = min(c.Burst, 1+rng.Int64N(100))
	case 2:
		c.Burst = min(c.Burst, 1+rng.Int64N(3))
	}
}

// The styles of a gcra trace. In the last two gcra_v2 finds credit in its key now and then.
const (
	asked     = iota // at the wait that the last refusal named, and 1 ns before it
	edges            // around the exact oracle's first instant
	uniform          // gaps around the interval
	bursts           // several calls at one instant, then a pause
	changing         // the limit changes while the key is in use
	backwards        // the clock jumps back
	served           // the server's clock, over the seconds in which the key lives and dies
	mixed            // the same, and callers whose clocks are up to a minute ahead of it
	credited         // gaps around the interval
	servedCredited
)

// gcraStyles are the styles that a gcra script is played in, those by callers' clocks first.
var gcraStyles = map[Script][]int{
	GCRAV1: {asked, edges, uniform, bursts, changing, backwards, served, mixed},
	GCRAV2: {asked, edges, uniform, bursts, changing, backwards, credited, served, mixed, servedCredited},
}

// The styles of a window trace; in the first two nothing but cost and clock changes.
const (
	windowChanging = iota + 2 // the limit changes, and calls of another period come in between
	windowBackwards
	windowServed
	windowMixed
	windowStyles
)

// callersIndex is the index of the nth trace that a server's own clock may be played to:
// one by callers' clocks alone.
func callersIndex(script Script, n int) int {
	styles, callers := windowStyles, windowServed
	if script == LimitsV1 {
		styles, callers = limitsStyles, limitsServed
	}
	if list := gcraStyles[script]; list != nil {
		styles, callers = len(list), slices.Index(list, served)
	}
	return n/callers*styles + n%callers
}

func (t *Trace) gcra(rng *rand.Rand, index int) {
	styles := gcraStyles[t.Script]
	style := styles[index%len(styles)]
	var c Call
	gcraLimit(rng, &c)
	end := int64(1 << 61)
	if t.Script == GCRAV2 {
		end = math.MaxInt64
	}
	c.NowNs = start(rng, end)
	k := newPace(t.Script)
	if style == served || style == mixed || style == servedCredited {
		t.served(rng, k, c, style)
		return
	}
	status, retryNs := int64(1), int64(0)
	for range traceCalls {
		if style == changing && rng.IntN(50) == 0 {
			gcraLimit(rng, &c)
		}
		c.Cost = 1
		switch rng.IntN(8) {
		case 0:
			c.Cost = []int64{0, c.Burst, c.Burst + 1, 1 << 52}[rng.IntN(4)]
		case 1:
			c.Cost = rng.Int64N(c.Burst + 2)
		}
		limit := k.GCRA(&c)
		step := int64(0)
		switch style {
		case asked, changing:
			if status == 0 {
				c.Cost = t.Calls[len(t.Calls)-1].Cost
				step = retryNs
				if step > 1 {
					step -= rng.Int64N(2)
				}
			}
		case edges:
			first := limit.FirstNs(k.tat, min(c.Cost, c.Burst))
			step = first - c.NowNs + rng.Int64N(515) - 257
			if rng.IntN(2) == 0 {
				step = first - c.NowNs + rng.Int64N(3) - 1
			}
		case uniform, credited:
			step = rng.Int64N(2*limit.Interval + 1)
		case bursts:
			if rng.IntN(int(min(c.Burst, 64))+2) == 0 {
				step = rng.Int64N(limit.Tau() + 1)
			}
		case backwards:
			step = rng.Int64N(2*limit.Interval + 1)
			if rng.IntN(20) == 0 {
				step = -magnitude(rng, max(c.NowNs, 1))
			}
		}
		if style != backwards {
			step = max(step, 0)
		}
		if step > end-c.NowNs || c.NowNs+step < 0 {
			step = 0
		}
		c.NowNs += step
		c.Given = ""
		if style == credited && rng.IntN(20) == 0 {
			c.Given = k.credited(rng, &c)
		}
		status, retryNs = t.add(k, &c)
	}
}

// credited is a state that giving back may leave, at a call: spending left its last TAT in
// the past or just now, and its TAT is that, or one before it.
func (f *Fed) credited(rng *rand.Rand, c *Call) string {
	lastNs := max(f.tat, f.lastNs, c.NowNs, 1)
	moreNs := []int64{0, rng.Int64N(1000), rng.Int64N(1e9), rng.Int64N(100e9)}[rng.IntN(4)]
	if moreNs <= math.MaxInt64-lastNs {
		lastNs += moreNs
	}
	backNs := []int64{0, rng.Int64N(1e9), rng.Int64N(f.GCRA(c).Tau() + 1), rng.Int64N(lastNs)}[rng.IntN(4)]
	credit := make([]byte, 1+rng.IntN(24))
	for i := range credit {
		credit[i] = byte('0' + rng.IntN(10))
	}
	credit[0] = byte('1' + rng.IntN(9))
	return State{Exists: true, Value: uint64(max(lastNs-backNs, 0)), Credit: string(credit), Last: uint64(lastNs)}.Text(f.script)
}

// servedNs limits what is served to limits that some seconds or minutes settle.
const servedNs = 30e9

// served makes a trace by the server's clock, which moves from call to call in whole us.
// Keys live through seconds and die, and calls come where that is decided: at the ends of
// seconds, around the last millisecond of a key, when a wait is over.
func (t *Trace) served(rng *rand.Rand, f *Fed, c Call, style int) {
	const us, ms, second = 1000, int64(1e6), int64(1e9)
	const last = 1<<61 - 3600*second // every script takes it with these limits
	limit := func() {
		if c.Burst == 0 {
			windowLimit(rng, &c)
			c.PeriodNs = min(c.PeriodNs, 1+rng.Int64N(servedNs))
			if style == mixed { // below, the index comes half round while a key lives: 62 s / 2^31
				c.PeriodNs = max(c.PeriodNs, 30)
			}
			return
		}
		interval := min(magnitude(rng, 1<<35), 1+rng.Int64N(servedNs))
		c.Burst = min(magnitude(rng, servedNs/interval+1), 1+rng.Int64N(100))
		c.Amount = 1 + rng.Int64N(min(interval, 1000))
		c.PeriodNs = c.Amount * interval
	}
	limit()
	server := max(min(c.NowNs, last-2000*servedNs)/us*us, us)
	status, retryNs, most := int64(1), int64(0), int64(0)
	for range traceCalls {
		if rng.IntN(100) == 0 { // a window's key refuses it until it is gone
			limit()
		}
		most = c.Burst
		if t.Script.IsWindow() {
			most = c.Amount
		}
		c.Cost = 1 + rng.Int64N(most)/(1+rng.Int64N(20))
		step := int64(0)
		switch rng.IntN(10) {
		case 0:
			c.Cost = []int64{0, most, most + 1, 1 << 52}[rng.IntN(4)]
		case 1, 2:
			step = rng.Int64N(c.PeriodNs/c.Amount + us)
		case 3:
			step = rng.Int64N(2 * second)
		case 4: // the end of a second
			step = second - server%second + (rng.Int64N(3)-1)*us
		case 5: // when the key is gone, or was about to be
			step = max(f.restedNs(), f.lastNs)/second*second + rng.Int64N(4)*second - server + (rng.Int64N(3)-1)*ms
		case 6, 7:
			if status == 0 {
				step = retryNs + rng.Int64N(2*us) - us
			}
		}
		if step = (step + us - 1) / us * us; step > 0 && step < 200*servedNs {
			server = min(server+step, last)
		}
		c.ServerNs, c.NowNs, c.ByServer = server, server, true
		if style == mixed && rng.IntN(2) == 0 {
			c.ByServer = false
			c.NowNs += []int64{0, 60 * second, rng.Int64N(60 * second), rng.Int64N(second)}[rng.IntN(4)]
		}
		c.Given = ""
		if style == servedCredited && rng.IntN(20) == 0 {
			c.Given = f.credited(rng, &c)
		}
		status, retryNs = t.add(f, &c)
	}
}

// restedNs is the instant from which on the key is as good as new.
func (f *Fed) restedNs() int64 {
	if f.script.IsWindow() {
		return f.endNs
	}
	return f.tat
}

// windowLimit sets amount and period, anywhere in their ranges.
func windowLimit(rng *rand.Rand, c *Call) {
	c.Amount = min(magnitude(rng, 65535), 1+rng.Int64N(65535))
	c.PeriodNs = magnitude(rng, 1<<52)
	switch rng.IntN(4) {
	case 0:
		c.PeriodNs = 1000 + rng.Int64N(1<<52-999)
	case 1:
		c.PeriodNs = []int64{1, 2, 999, 1000, 1e6, 1e9, 8e9, 60e9, 3600e9, 1 << 26, 1<<26 + 1, 1<<52 - 1, 1 << 52}[rng.IntN(13)]
	}
	c.Sliding = rng.IntN(3) > 0
}

// window makes a trace of the window script: gaps from a small part of the window to
// several, boundaries to the nanosecond, the very instant at which the oracle's
// verdict turns, and in turns a limit that changes or a clock that runs backwards.
func (t *Trace) window(rng *rand.Rand, index int) {
	style := index % windowStyles
	var c Call
	windowLimit(rng, &c)
	c.NowNs = start(rng, 1<<62)
	if rng.IntN(4) == 0 && c.PeriodNs < 1<<30 {
		// where the index passes a multiple of 2^32
		c.NowNs = c.PeriodNs<<32 - 1 - rng.Int64N(c.PeriodNs)
	}
	k := newPace(t.Script)
	if style >= windowServed {
		t.served(rng, k, c, served+style-windowServed)
		return
	}
	for range traceCalls {
		if style == windowChanging && rng.IntN(50) == 0 {
			other := c
			windowLimit(rng, &other)
			c.Amount, c.Sliding = other.Amount, other.Sliding
			other.Cost = 1
			t.add(k, &other) // the key refuses another period
		}
		w := c.Window()
		counts, left, _ := w.At(k.counts, c.NowNs)
		c.Cost = 1 + rng.Int64N(c.Amount)/(1+rng.Int64N(20))
		switch rng.IntN(10) {
		case 0:
			c.Cost = []int64{0, c.Amount, c.Amount + 1, 1 << 52}[rng.IntN(4)]
		case 1:
			c.Cost = max(c.Amount-int64(counts.Current), 0) // fills the window, if nothing is carried
		}
		step := rng.Int64N(c.PeriodNs)/8 + rng.Int64N(2)
		switch rng.IntN(8) {
		case 0:
			step = left + rng.Int64N(3) - 1
		case 1:
			step = left + c.PeriodNs + rng.Int64N(3) - 1
		case 2, 3:
			step = w.turn(counts, left, min(c.Cost, c.Amount)) + rng.Int64N(3) - 1
		case 4:
			step = 0
		case 5:
			step = rng.Int64N(3 * c.PeriodNs)
		}
		if style == windowBackwards && rng.IntN(20) == 0 {
			// within a few windows as often as anywhere
			step = -rng.Int64N(min(3*c.PeriodNs, c.NowNs) + 1)
			if rng.IntN(2) == 0 {
				step = -magnitude(rng, max(c.NowNs, 1))
			}
		} else {
			step = max(step, 0)
		}
		if step > 1<<62-c.NowNs || c.NowNs+step < 0 {
			step = 0
		}
		c.NowNs += step
		t.add(k, &c)
	}
}

// turn is the time until cost units fit within this window; the whole of the window
// where they never do.
func (w Window) turn(s Counts, leftNs, cost int64) int64 {
	switch free := w.Amount - int64(s.Current) - cost; {
	case free < 0:
		return leftNs
	case !w.Sliding || int64(s.Previous) <= free:
		return 0
	default:
		return max(leftNs-w.faded(s.Previous, free), 0)
	}
}
