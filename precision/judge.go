package precision

import (
	"fmt"
	"math"
	"strings"
)

// Tally counts what the judge saw of one script on one driver.
type Tally struct {
	Decisions, Admitted int64
	// Early counts calls that the script admits and the exact oracle, fed with the
	// same admissions, does not.
	Early int64
	// LatestNs is the largest distance from the instant at which the exact oracle
	// would admit a refused call to the one at which the script would.
	LatestNs int64
	// WrongReplies, WrongStates and WrongTTLs count what differs from the integers.
	WrongReplies, WrongStates, WrongTTLs int64
	// Differences counts calls whose outcome is not the native port's.
	Differences int64
	// Broken describes the first call that falls short, "" when none does; BrokenAt is
	// that call's index in its trace.
	Broken   string
	BrokenAt int
}

// Sound tells whether every claim held.
func (t *Tally) Sound() bool { return t.Broken == "" }

// add takes over the counts of another tally.
func (t *Tally) add(u *Tally) {
	t.Decisions += u.Decisions
	t.Admitted += u.Admitted
	t.Early += u.Early
	t.LatestNs = max(t.LatestNs, u.LatestNs)
	t.WrongReplies += u.WrongReplies
	t.WrongStates += u.WrongStates
	t.WrongTTLs += u.WrongTTLs
	t.Differences += u.Differences
	if t.Broken == "" {
		t.Broken, t.BrokenAt = u.Broken, u.BrokenAt
	}
}

// Judge holds the outcomes that a driver gave of a trace against the oracle, and
// against the native port's.
func Judge(t *Trace, outcomes []Outcome) Tally {
	j := judge{trace: t, grid: t.Script.Grid()}
	for i := range t.Calls {
		j.at = i
		c, o := &t.Calls[i], &outcomes[i]
		j.tally.Decisions++
		if o.Status == 1 {
			j.tally.Admitted++
		}
		switch t.Script {
		case GCRAV1:
			j.gcraV1(c, o)
		case GCRAV2:
			j.gcraV2(c, o)
		default:
			j.window(c, o)
		}
		j.state, j.ttlMs = o.State, t.Native[i].TTLMs
		if n := &t.Native[i]; o.Err != n.Err || o.Verdict != n.Verdict || o.State != n.State || !o.ttlIs(n.TTLMs) {
			j.fail(&j.tally.Differences, "outcome %+v, native %+v", *o, *n)
		}
	}
	return j.tally
}

// ttlIs tells whether the key's ttl, as it was set, is or may be ms.
func (o *Outcome) ttlIs(ms int64) bool {
	return o.TTLMs <= ms && ms <= o.TTLMs+o.TTLSlackMs
}

type judge struct {
	trace *Trace
	grid  int64
	at    int
	tally Tally
	state State // after the call before this one
	ttlMs int64

	// The exact limiters' TATs, fed with the script's admissions: on the script's
	// own interval, and on the exact one. The second is followed while the limit
	// stays the same and the clock does not run backwards: only then is a limiter
	// with a longer interval never earlier.
	tatGrid, tatExact int64
	lost              bool
}

func (j *judge) fail(count *int64, format string, args ...any) {
	*count++
	if j.tally.Broken == "" {
		j.tally.BrokenAt = j.at
		j.tally.Broken = fmt.Sprintf("call %d, %+v: ", j.at, j.trace.Calls[j.at]) + fmt.Sprintf(format, args...)
	}
}

// refused checks that an error reply is the one expected and left the key alone.
func (j *judge) refused(o *Outcome, prefix string) {
	if !strings.HasPrefix(o.Err, prefix) {
		j.fail(&j.tally.WrongReplies, "reply %+v %q, want %s", o.Verdict, o.Err, prefix)
	}
	j.untouched(o)
}

// untouched checks that the key is as it was.
func (j *judge) untouched(o *Outcome) {
	if o.State != j.state {
		j.fail(&j.tally.WrongStates, "state %+v was %+v: a call that is not admitted wrote", o.State, j.state)
	}
	if !o.ttlIs(j.ttlMs) {
		j.fail(&j.tally.WrongTTLs, "ttl %d..%d ms was %d: a call that is not admitted moved it",
			o.TTLMs, o.TTLMs+o.TTLSlackMs, j.ttlMs)
	}
}

func (j *judge) gcraV1(c *Call, o *Outcome) {
	g := NewGCRA(c.Amount, c.PeriodNs, c.Burst, j.grid)
	exact := NewGCRA(c.Amount, c.PeriodNs, c.Burst, 1)
	if j.at > 0 {
		p := &j.trace.Calls[j.at-1]
		if c.NowNs < p.NowNs || c.Amount != p.Amount || c.PeriodNs != p.PeriodNs || c.Burst != p.Burst {
			j.lost = true
		}
	}
	now := c.NowNs
	nowUp := ceilDiv(now, j.grid) * j.grid
	if nowUp+g.Tau() > 1<<61 {
		j.refused(o, "BADARG gcra_v1: now_ns")
		return
	}
	if o.Err != "" {
		j.fail(&j.tally.WrongReplies, "error %q", o.Err)
		return
	}
	want, _ := g.Call(j.tatGrid, c.Cost, now)
	tat := j.tatGrid // moved by the script's admissions, not by the exact limiter's own
	tatBefore := int64(j.state.Value)
	if (o.Status == -1) != (c.Cost > c.Burst) {
		j.fail(&j.tally.WrongReplies, "status %d with cost %d of burst %d", o.Status, c.Cost, c.Burst)
	}

	switch {
	case o.Status == 1 && c.Cost > 0:
		tat = max(j.tatGrid, now) + c.Cost*g.Interval
		if want.Status != 1 {
			j.fail(&j.tally.Early, "admitted %d ns early", want.RetryAfterNs)
		}
		if !j.lost {
			if v, _ := exact.Call(j.tatExact, c.Cost, now); v.Status != 1 {
				j.fail(&j.tally.Early, "admitted %d ns early by the exact interval", v.RetryAfterNs)
			}
			j.tatExact = max(j.tatExact, now) + c.Cost*exact.Interval
		}
		late := int64(o.State.Value) - tat
		if !o.State.Exists || o.State.Value%uint64(j.grid) != 0 || late < 0 || late >= j.grid {
			j.fail(&j.tally.WrongStates, "state %+v, exact tat %d", o.State, tat)
		}
		// a quotient from 2^59 on may round down to a whole ms, which the margin has
		if ttl := TTLMs(o.ResetAfterNs, 60000); !o.ttlIs(ttl) && (o.ResetAfterNs < 1<<59 || !o.ttlIs(ttl-1)) {
			j.fail(&j.tally.WrongTTLs, "ttl %d..%d ms, want %d", o.TTLMs, o.TTLMs+o.TTLSlackMs, ttl)
		}
		if o.RetryAfterNs != 0 {
			j.fail(&j.tally.WrongReplies, "retry_after %d on an admission", o.RetryAfterNs)
		}
	case o.Status == 1:
		if want.Status != 1 {
			j.fail(&j.tally.Early, "cost 0 admitted %d ns early", want.RetryAfterNs)
		}
		j.untouched(o)
	case o.Status == 0:
		j.untouched(o)
		first := g.FirstNs(tatBefore, c.Cost) // the script's own, from the state it has
		late := first - g.FirstNs(j.tatGrid, c.Cost)
		j.tally.LatestNs = max(j.tally.LatestNs, late)
		if late < 0 || late >= j.grid {
			j.fail(&j.tally.WrongReplies, "refused until %d, %d ns late", first, late)
		}
		if retry := j.wide(first, now); o.RetryAfterNs != retry || retry < 1 {
			j.fail(&j.tally.WrongReplies, "retry_after %d, want %d", o.RetryAfterNs, retry)
		}
	default:
		j.untouched(o)
		if o.RetryAfterNs != -1 {
			j.fail(&j.tally.WrongReplies, "retry_after %d of an unfittable call", o.RetryAfterNs)
		}
	}

	tatAfter := int64(o.State.Value)
	low, high := g.Remaining(tat, now), g.Remaining(tat, now+j.grid-1)
	if r := o.Remaining; r < low || r > high || r != g.Remaining(tatAfter, nowUp) {
		j.fail(&j.tally.WrongReplies, "remaining %d, exact %d now and %d before the next grid point", r, low, high)
	}
	if reset := max(j.wide(tatAfter, now), 0); o.ResetAfterNs != reset {
		j.fail(&j.tally.WrongReplies, "reset_after %d, want %d", o.ResetAfterNs, reset)
	}
	if reset := max(tat-now, 0); o.ResetAfterNs < reset {
		j.fail(&j.tally.WrongReplies, "reset_after %d, exact %d", o.ResetAfterNs, reset)
	}
	j.tatGrid = tat
}

// wide is the time from now to an instant on the grid as gcra_v1 gives it: to the
// nanosecond below 2^53, and above it to the grid point before now, which is later.
func (j *judge) wide(instant, now int64) int64 {
	if d := instant - now/j.grid*j.grid; d >= 1<<53 {
		return d
	}
	return instant - now
}

// FarNs is where the scripts stop to be exact about waits: 104 days until the key is as
// good as new. The sum of two doubles is not exact from there on, and they add enough
// to stay later, gcra_v2 and window_v2 at most farMoreNs.
const FarNs = 1 << 53

func (s Script) farMoreNs() int64 {
	switch s {
	case GCRAV2:
		return 4096
	case WindowV2:
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

// verdict holds a reply against the exact one.
func (j *judge) verdict(o *Outcome, want Verdict) {
	if !j.trace.Script.MayAnswer(o.Verdict, want) {
		if o.Status == 1 && want.Status != 1 {
			j.tally.Early++
		}
		if o.Status == 0 {
			j.tally.LatestNs = max(j.tally.LatestNs, o.RetryAfterNs-want.RetryAfterNs)
		}
		j.fail(&j.tally.WrongReplies, "reply %+v %q, want %+v", o.Verdict, o.Err, want)
	}
}

// written holds the state and ttl of an admitted call against the exact ones.
func (j *judge) written(o *Outcome, state State, resetNs int64) {
	if o.State != state {
		j.fail(&j.tally.WrongStates, "state %+v, want %+v", o.State, state)
	}
	ttl := TTLMs(resetNs, 60000)
	if !o.ttlIs(ttl) && (resetNs < FarNs || !o.ttlIs(TTLMs(resetNs+j.trace.Script.farMoreNs(), 60000))) {
		j.fail(&j.tally.WrongTTLs, "ttl %d..%d ms, want %d", o.TTLMs, o.TTLMs+o.TTLSlackMs, ttl)
	}
}

func (j *judge) gcraV2(c *Call, o *Outcome) {
	g := NewGCRA(c.Amount, c.PeriodNs, c.Burst, 1)
	if c.NowNs > math.MaxInt64-g.Tau() {
		j.refused(o, "BADARG gcra_v2: now_ns")
		return
	}
	want, tat := g.Call(j.tatExact, c.Cost, c.NowNs)
	j.verdict(o, want)
	if want.Status == 1 && c.Cost > 0 {
		j.written(o, State{true, uint64(tat)}, want.ResetAfterNs)
	} else {
		j.untouched(o)
	}
	j.tatExact = tat
}

func (j *judge) window(c *Call, o *Outcome) {
	if c.NowNs >= 1<<62 {
		j.refused(o, "BADARG "+string(j.trace.Script)+": now_ns")
		return
	}
	w := Window{c.Amount, c.PeriodNs, c.Sliding, j.trace.Script == WindowV2}
	want, counts := w.Call(j.state.counts(), c.Cost, c.NowNs)
	j.verdict(o, want)
	if want.Status == 1 && c.Cost > 0 {
		_, left, gap := w.At(counts, c.NowNs)
		j.written(o, newCounts(counts), gap+left+c.PeriodNs)
	} else {
		j.untouched(o)
	}
	if want.Status == 0 {
		j.promise(w, c, want.RetryAfterNs)
	}
}

// promise checks the wait that a refusal names: the call fits after it, and not a
// nanosecond earlier unless the wait is window_v1's bound.
func (j *judge) promise(w Window, c *Call, retryAfterNs int64) {
	if retryAfterNs > math.MaxInt64-c.NowNs {
		return // past every clock
	}
	for _, before := range []int64{0, 1} {
		counts, left, _ := w.At(j.state.counts(), c.NowNs+retryAfterNs-before)
		fits := w.Fits(counts, left, c.Cost)
		if before == 0 && !fits || before == 1 && fits && (w.Monotone || !w.Sliding) {
			j.fail(&j.tally.WrongReplies, "retry_after %d: fits %v %d ns before it", retryAfterNs, fits, before)
		}
	}
}
