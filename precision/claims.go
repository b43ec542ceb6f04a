package precision

import (
	"fmt"
	"math"
	"strings"
)

// Fed is the exact limiter of one key, fed with a script's admissions: it answers each
// call as exact integers do, and takes over what the script admitted, whatever it would
// have done itself. It forgets nothing, so a script whose key is gone early admits what it
// refuses.
type Fed struct {
	script   Script
	grid     int64 // of the interval of gcra, in ns
	limit    GCRA  // of the last call, whose limit is that of limitOf
	limitOf  struct{ amount, periodNs, burst int64 }
	tat      int64
	lastNs   int64 // of a state with credit that it was given: its last TAT
	counts   Counts
	kept     bool   // whether there are counts, which may be 0
	periodNs uint32 // of the counts, mod 2^32
	endNs    int64  // of a window: from when on no count weighs
}

// NewFed returns the limiter of a key that holds nothing; of gcra it is that with the
// interval rounded up to a multiple of gridNs.
func NewFed(script Script, gridNs int64) *Fed { return &Fed{script: script, grid: gridNs} }

// Hold has the key hold a state that the script takes.
func (f *Fed) Hold(s State) {
	f.tat, f.lastNs = int64(s.Value), int64(s.Last)
	f.counts, f.kept, f.periodNs, f.endNs = s.counts(), s.Exists, s.PeriodNs, math.MaxInt64
}

// Meet has the key hold what stands in it before a call, where the call says so.
func (f *Fed) Meet(c *Call) {
	if c.Given != "" {
		state, _ := c.given()
		f.Hold(state)
	}
}

// GCRA is the limiter of a call.
func (f *Fed) GCRA(c *Call) GCRA {
	if of := &f.limitOf; of.amount != c.Amount || of.periodNs != c.PeriodNs || of.burst != c.Burst {
		f.learn(c)
	}
	return f.limit
}

// learn keeps the limiter of a call, for those of the same limit.
func (f *Fed) learn(c *Call) {
	f.limit = NewGCRA(c.Amount, c.PeriodNs, c.Burst, f.grid)
	f.limitOf.amount, f.limitOf.periodNs, f.limitOf.burst = c.Amount, c.PeriodNs, c.Burst
}

// Window is the limiter of a call.
func (c *Call) Window() Window { return Window{c.Amount, c.PeriodNs, c.Sliding} }

// Takes tells whether the script takes the call's clock, which may be too late.
func (f *Fed) Takes(c *Call) bool {
	switch f.script {
	case GCRAV1: // tau is on the grid: a clock up to 2^61 - tau goes up to that at most
		return c.NowNs <= 1<<61-f.GCRA(c).Tau()
	case GCRAV2:
		return c.NowNs <= math.MaxInt64-f.GCRA(c).Tau()
	default:
		return c.NowNs < 1<<62
	}
}

// Foreign tells whether what it holds is not the call's to read, as Reads says it of a
// state: counts of another period, while they weigh, or a number of too few digits.
func (f *Fed) Foreign(c *Call) bool {
	if f.script.IsWindow() {
		return f.kept && f.periodNs != uint32(c.PeriodNs) && c.NowNs < f.endNs
	}
	return !f.script.Reads(State{Exists: f.tat > 0, Value: uint64(f.tat)}, c)
}

// at is where a call finds the counts, as Window.At gives it: those of another period are
// over, or the script refuses the call.
func (f *Fed) at(c *Call) (at Counts, leftNs, gapNs int64) {
	w := c.Window()
	if !f.kept || f.periodNs != uint32(c.PeriodNs) {
		return w.from(c.NowNs)
	}
	return w.at(f.counts, c.NowNs)
}

// Ask returns the verdict on a call, which it does not admit.
func (f *Fed) Ask(c *Call) Verdict {
	if f.script.IsWindow() {
		at, leftNs, gapNs := f.at(c)
		v, _ := c.Window().call(at, leftNs, gapNs, c.Cost)
		return v
	}
	v, _ := f.GCRA(c).Call(f.tat, c.Cost, c.NowNs)
	return v
}

// Admit takes over a call that the script admitted.
func (f *Fed) Admit(c *Call) {
	switch {
	case f.script.IsWindow():
		at, leftNs, gapNs := f.at(c)
		f.count(c, at, leftNs, gapNs)
	case c.Cost > 0:
		f.tat = max(f.tat, c.NowNs) + c.Cost*f.GCRA(c).Interval
	}
}

// count takes over a call of a window on the counts as At gives them.
func (f *Fed) count(c *Call, at Counts, leftNs, gapNs int64) {
	if c.Cost > 0 {
		at.Current += uint16(c.Cost)
		f.keep(c, at, leftNs, gapNs)
	}
}

// keep has it hold the counts that a call leaves.
func (f *Fed) keep(c *Call, at Counts, leftNs, gapNs int64) {
	f.counts, f.kept, f.periodNs, f.endNs = at, true, uint32(c.PeriodNs), c.NowNs+gapNs+leftNs+c.PeriodNs
}

// Gone tells it that the key expired, as seen at a clock. Counts that weigh no more are
// dropped with it: the index of a window comes round after 2^32 of them. Others stay.
func (f *Fed) Gone(nowNs int64) {
	if nowNs >= f.endNs {
		f.counts, f.kept = Counts{}, false
	}
}

// FarNs is where the scripts stop to be exact about waits: 104 days until the key is as
// good as new. The sum of two doubles is not exact from there on, and they add enough
// to stay later, gcra_v2 and window_v1 at most farMoreNs.
const FarNs = 1 << 53

func (s Script) farMoreNs() int64 {
	switch s {
	case GCRAV2:
		return 4096
	case WindowV1:
		return 3
	}
	return 0
}

// MayAnswer tells whether a script that is exact, any but gcra_v1, may answer got where
// exact integers answer want: the same, and more by farMoreNs at most where waits are
// FarNs or more.
func (s Script) MayAnswer(got, want Verdict) bool {
	moreNs := int64(0)
	if max(want.ResetAfterNs, want.RetryAfterNs) >= FarNs {
		moreNs = s.farMoreNs()
	}
	waits := func(gotNs, wantNs int64) bool { return wantNs <= gotNs && gotNs-wantNs <= moreNs }
	return got.Status == want.Status && got.Remaining == want.Remaining &&
		(want.Status == 0 || got.RetryAfterNs == want.RetryAfterNs) &&
		waits(got.RetryAfterNs, want.RetryAfterNs) && waits(got.ResetAfterNs, want.ResetAfterNs)
}

// Claims follows one key and holds each outcome of a script against the oracle. The zero
// Claims is of no use: NewClaims makes one.
type Claims struct {
	Tally
	script Script
	call   *Call // the one at hand, and the one before it
	before *Call
	// of is the call of limits_v1 that is at hand, and number that of its ask, from 1 on.
	of     *LimitsCall
	number int

	// The key before the call: what it holds, and by the oracle's account when it
	// expires, on a server's clock of which only the steps are known.
	state     State
	nowMs     int64
	expires   bool
	expiresMs int64

	// fed is the exact limiter with the script's own interval; of gcra_v1, exact is that
	// with the exact one. It counts while the limit stays the same and the clock does not
	// run backwards: only then is a limiter with a longer interval never earlier.
	fed, exact *Fed
	lost       bool
}

// NewClaims returns the claims of a script on a key that is not there.
func NewClaims(script Script) *Claims {
	return &Claims{script: script, fed: NewFed(script, script.Grid()), exact: NewFed(script, 1)}
}

// Hold has the key hold a state, with this time to live in ms, -1 for ever.
func (j *Claims) Hold(s State, ttlMs int64) {
	j.state, j.expires, j.expiresMs = s, ttlMs >= 0, j.nowMs+ttlMs
	j.fed.Hold(s)
	j.exact.Hold(s)
	j.lost = true
}

// Set moves the server's clock, which a call with a ServerNs moves too.
func (j *Claims) Set(serverNs int64) { j.nowMs = serverNs / 1e6 }

// Expire gives the key this time to live in ms by hand, -1 for ever.
func (j *Claims) Expire(ttlMs int64) { j.expires, j.expiresMs = ttlMs >= 0, j.nowMs+ttlMs }

// Exact is what exact arithmetic answers to the call that comes next, fed with the script's
// admissions: the zero verdict where the script has to answer an error.
func (j *Claims) Exact(c *Call) Verdict {
	j.arrive(c)
	switch {
	case !j.fed.Takes(c) || !j.script.Reads(j.state, c):
		return Verdict{}
	case j.script == GCRAV1:
		return j.exact.Ask(c)
	}
	return j.fed.Ask(c)
}

// arrive brings the server's clock to a call, lets the key expire, and has it hold what is
// given.
func (j *Claims) arrive(c *Call) {
	if c.ServerNs > 0 {
		j.nowMs = c.ServerNs / 1e6
	}
	if j.expires && j.nowMs > j.expiresMs {
		j.state, j.expires = State{}, false
		j.fed.Gone(c.NowNs)
	}
	if c.Given != "" {
		j.Hold(c.given())
	}
}

// Call holds one outcome against the oracle.
func (j *Claims) Call(c *Call, o *Outcome) {
	if j.Decisions++; o.Status == 1 {
		j.Admitted++
	}
	j.before, j.call = j.call, c
	j.arrive(c)
	switch j.script {
	case GCRAV1:
		j.gcraV1(c, o)
	case GCRAV2:
		j.gcraV2(c, o)
	default:
		j.window(c, o)
	}
	j.state = o.State
}

// TTLMs is the time to live that the key has by the oracle's account.
func (j *Claims) TTLMs() int64 {
	switch {
	case j.expires:
		return j.expiresMs - j.nowMs
	case j.state.Exists:
		return -1
	}
	return 0
}

func (j *Claims) fail(count *int64, format string, args ...any) {
	*count++
	if j.Broken == "" {
		j.BrokenAt = int(j.Decisions) - 1
		j.Broken = fmt.Sprintf("call %d, %s: ", j.BrokenAt, j.at()) + fmt.Sprintf(format, args...)
	}
}

// at says which call it is.
func (j *Claims) at() string {
	if j.of != nil {
		return fmt.Sprintf("%s: key %d", j.of, j.number)
	}
	return fmt.Sprintf("%+v", *j.call)
}

// refused checks that an error reply is the one expected and left the key alone.
func (j *Claims) refused(o *Outcome, prefix string) {
	if !strings.HasPrefix(o.Err, prefix) || o.Verdict != (Verdict{}) {
		j.fail(&j.WrongReplies, "reply %+v %q, want %s", o.Verdict, o.Err, prefix)
	}
	j.untouched(o)
}

// untouched checks that the key is as it was.
func (j *Claims) untouched(o *Outcome) {
	if o.State != j.state {
		j.fail(&j.WrongStates, "state %+v was %+v: a call that is not admitted wrote", o.State, j.state)
	}
	if ttlMs := j.TTLMs(); !o.ttlIs(ttlMs) {
		j.fail(&j.WrongTTLs, "ttl %d..%d ms was %d: a call that is not admitted moved it",
			o.TTLMs, o.TTLMs+o.TTLSlackMs, ttlMs)
	}
}

// stays tells whether a call that writes this state leaves the key's expiry: by the server's
// clock, while the second of the TAT or of last, or the window's index, stays the same.
func (j *Claims) stays(c *Call, written State) bool {
	switch {
	case !c.ByServer || !j.state.Exists:
		return false
	case j.script.IsWindow():
		return written.counts().Index == j.state.counts().Index
	}
	return written.lastNs()/1e9 == j.state.lastNs()/1e9
}

// expiry checks the expiry of a write: it stays as it was, or is ttlS from now, give or
// take orS.
func (j *Claims) expiry(o *Outcome, stays bool, ttlS, orS int64) {
	for or := -orS; or <= orS; or++ {
		if o.ttlIs((ttlS + or) * 1000) {
			ttlS, orS = ttlS+or, 0
		}
	}
	j.renew(stays, ttlS)
	want := int64(-1)
	if j.expires {
		want = j.expiresMs - j.nowMs
	}
	if !o.ttlIs(want) {
		j.fail(&j.WrongTTLs, "ttl %d..%d ms, want %d", o.TTLMs, o.TTLMs+o.TTLSlackMs, want)
	}
}

// renew has the key expire as a write has it: as before, or ttlS from now.
func (j *Claims) renew(stays bool, ttlS int64) {
	if !stays {
		j.expires, j.expiresMs = true, j.nowMs+ttlS*1000
	}
}

// Reads tells whether the script takes a state for one of its own: else it answers
// BADSTATE. With the server's clock, unless that is before 2001, a TAT has 19 digits.
func (s Script) Reads(state State, c *Call) bool {
	const least19 = 1e18
	switch {
	case !state.Exists:
		return true
	case s.IsWindow():
		return state.PeriodNs == uint32(c.PeriodNs)
	case s == GCRAV1 && (state.Credit != "" || state.Value > 1<<61):
		return false
	}
	return !c.ByServer || c.NowNs < least19 || state.Value >= least19 && (state.Credit == "" || state.Last >= least19)
}

// taken tells whether the script has to answer a call; else it holds the error against the
// one that is due.
func (j *Claims) taken(c *Call, o *Outcome) bool {
	switch {
	case !j.fed.Takes(c):
		j.refused(o, "BADARG "+string(j.script)+": now_ns")
	case j.script.Reads(j.state, c):
		return true
	case j.script.IsWindow():
		j.refused(o, "BADSTATE window_v1: the key holds counts of another period")
	default:
		j.refused(o, "BADSTATE "+string(j.script)+": ")
	}
	return false
}

// verdict holds a reply against the one that the script has to give, and tells whether it
// is that.
func (j *Claims) verdict(o *Outcome, want Verdict) bool {
	right := o.Err == "" && j.script.MayAnswer(o.Verdict, want)
	if !right {
		j.fail(&j.WrongReplies, "reply %+v %q, want %+v", o.Verdict, o.Err, want)
	}
	return right
}

// early holds an admission against the verdict of an exact limiter.
func (j *Claims) early(o *Outcome, status, retryNs int64, limiter string) {
	if o.Status == 1 && status != 1 {
		j.fail(&j.Early, "admitted %d ns early by the %s", retryNs, limiter)
	}
}

// late takes over by how much a refusal comes after the exact instant.
func (j *Claims) late(o *Outcome, lateNs int64) {
	if o.Status == 0 && o.Err == "" {
		j.LatestNs = max(j.LatestNs, lateNs)
	}
}

func (j *Claims) gcraV1(c *Call, o *Outcome) {
	if p := j.before; p != nil && (c.NowNs < p.NowNs || c.Amount != p.Amount || c.PeriodNs != p.PeriodNs) {
		j.lost = true
	}
	if !j.taken(c, o) {
		return
	}
	g, grid := j.fed.GCRA(c), j.fed.grid
	status, retryNs, _ := g.decide(j.fed.tat, c.Cost, c.NowNs)
	j.early(o, status, retryNs, "interval on the grid")
	if !j.lost {
		status, retryNs, _ := j.exact.GCRA(c).decide(j.exact.tat, c.Cost, c.NowNs)
		j.early(o, status, retryNs, "exact interval")
	}
	lateNs := upTo(grid, j.fed.tat) - j.fed.tat
	if want := j.fed.onGrid(c); !j.verdict(o, want) {
		lateNs += o.RetryAfterNs - max(want.RetryAfterNs, 0)
	}
	j.late(o, lateNs)
	if o.Status != 1 || c.Cost == 0 {
		j.untouched(o)
		return
	}
	j.exact.Admit(c) // also when lost, for Exact
	j.fed.Admit(c)
	state := State{Exists: true, Value: uint64(upTo(grid, j.fed.tat))}
	if o.State != state {
		j.fail(&j.WrongStates, "state %+v, want %+v, exact tat %d", o.State, state, j.fed.tat)
	}
	j.expiry(o, j.stays(c, state), gcraTTLS(state.Value, c.NowNs, c.ByServer), 0)
}

// onGrid is the verdict of gcra_v1: its TAT is the exact one up to the grid, units are
// counted from the first grid point at or after now, and waits are wide.
func (f *Fed) onGrid(c *Call) Verdict {
	g := f.GCRA(c)
	status, retryNs, tat := g.decide(upTo(f.grid, f.tat), c.Cost, c.NowNs)
	if tat = upTo(f.grid, tat); status == 0 {
		retryNs = wide(f.grid, c.NowNs+retryNs, c.NowNs)
	}
	return Verdict{status, g.Remaining(tat, upTo(f.grid, c.NowNs)), retryNs, max(wide(f.grid, tat, c.NowNs), 0)}
}

// wide is the time from now to an instant on the grid as gcra_v1 gives it: to the
// nanosecond below FarNs, and above it to the grid point before now, which is later.
func wide(grid, instant, now int64) int64 {
	if d := instant - now&^(grid-1); d >= FarNs {
		return d
	}
	return instant - now
}

func (j *Claims) gcraV2(c *Call, o *Outcome) {
	if !j.taken(c, o) {
		return
	}
	j.answer(c, o, j.fed.Ask(c))
	if o.Status != 1 || c.Cost == 0 {
		j.untouched(o)
		return
	}
	j.fed.Admit(c)
	state := State{Exists: true, Value: uint64(j.fed.tat)}
	if j.state.Credit != "" {
		state.Credit, state.Last = j.state.Credit, max(j.state.Last, state.Value)
	}
	if o.State != state {
		j.fail(&j.WrongStates, "state %+v, want %+v", o.State, state)
	}
	j.expiry(o, j.stays(c, state), gcraTTLS(state.lastNs(), c.NowNs, c.ByServer), 0)
}

// answer holds a reply of a script that is exact against the exact verdict.
func (j *Claims) answer(c *Call, o *Outcome, want Verdict) {
	j.early(o, want.Status, want.RetryAfterNs, "exact limiter")
	if !j.verdict(o, want) {
		j.late(o, o.RetryAfterNs-max(want.RetryAfterNs, 0))
	}
	j.promise(c, o)
}

func (j *Claims) window(c *Call, o *Outcome) {
	if !j.taken(c, o) {
		return
	}
	at, leftNs, gapNs := j.fed.at(c)
	want, _ := c.Window().call(at, leftNs, gapNs, c.Cost)
	j.answer(c, o, want)
	if o.Status != 1 || c.Cost == 0 {
		j.untouched(o)
		return
	}
	j.fed.count(c, at, leftNs, gapNs)
	state := newCounts(j.fed.counts, c.PeriodNs)
	if o.State != state {
		j.fail(&j.WrongStates, "state %+v, want %+v", o.State, state)
	}
	endNs, orS := j.fed.endNs-c.NowNs, int64(0)
	if endNs >= FarNs { // a sum and a quotient that round
		orS = 1
	}
	j.expiry(o, j.stays(c, state), windowTTLS(endNs, c.NowNs, c.ByServer), orS)
}

// promise checks the wait that a refusal names by asking the exact limiter again: the call
// fits after it, and not a nanosecond earlier, but where waits are FarNs or more.
func (j *Claims) promise(c *Call, o *Outcome) {
	if o.Status != 0 || o.RetryAfterNs < 1 || o.RetryAfterNs > math.MaxInt64-c.NowNs {
		return // past every clock, or no wait at all
	}
	later := *c
	later.NowNs += o.RetryAfterNs
	if v := j.fed.Ask(&later); v.Status != 1 {
		j.fail(&j.WrongReplies, "retry_after %d: the call does not fit then, but %d later", o.RetryAfterNs, v.RetryAfterNs)
	}
	later.NowNs--
	if max(o.RetryAfterNs, o.ResetAfterNs) < FarNs && j.fed.Ask(&later).Status == 1 {
		j.fail(&j.WrongReplies, "retry_after %d: the call fits a nanosecond earlier", o.RetryAfterNs)
	}
}
