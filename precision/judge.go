package precision

import (
	"fmt"
	"strings"

	"github.com/tatami-rate/tatami/emulator"
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
	// Broken describes the first call that falls short, "" when none does.
	Broken string
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
		t.Broken = u.Broken
	}
}

// Judge holds the outcomes that a driver gave of a trace against the oracle, and
// against the native port's.
func Judge(t *Trace, outcomes []Outcome) Tally {
	j := judge{trace: t}
	for i := range t.Calls {
		j.at = i
		c, o := &t.Calls[i], &outcomes[i]
		j.tally.Decisions++
		if o.Status == 1 {
			j.tally.Admitted++
		}
		if t.Script == WindowV1 {
			j.window(c, o)
		} else {
			j.gcra(c, o)
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

const grid = emulator.Grid

func (j *judge) gcra(c *Call, o *Outcome) {
	g := NewGCRA(c.Amount, c.PeriodNs, c.Burst, grid)
	exact := NewGCRA(c.Amount, c.PeriodNs, c.Burst, 1)
	if j.at > 0 {
		p := &j.trace.Calls[j.at-1]
		if c.NowNs < p.NowNs || c.Amount != p.Amount || c.PeriodNs != p.PeriodNs || c.Burst != p.Burst {
			j.lost = true
		}
	}
	now := c.NowNs
	nowUp := ceilDiv(now, grid) * grid
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
		if !o.State.Exists || o.State.Value%grid != 0 || late < 0 || late >= grid {
			j.fail(&j.tally.WrongStates, "state %+v, exact tat %d", o.State, tat)
		}
		if ttl := TTLMs(o.ResetAfterNs, 60000); !o.ttlIs(ttl) {
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
		if late < 0 || late >= grid {
			j.fail(&j.tally.WrongReplies, "refused until %d, %d ns late", first, late)
		}
		if retry := wide(first, now); o.RetryAfterNs != retry || retry < 1 {
			j.fail(&j.tally.WrongReplies, "retry_after %d, want %d", o.RetryAfterNs, retry)
		}
	default:
		j.untouched(o)
		if o.RetryAfterNs != -1 {
			j.fail(&j.tally.WrongReplies, "retry_after %d of an unfittable call", o.RetryAfterNs)
		}
	}

	tatAfter := int64(o.State.Value)
	low, high := g.Remaining(tat, now), g.Remaining(tat, now+grid-1)
	if r := o.Remaining; r < low || r > high || r != g.Remaining(tatAfter, nowUp) {
		j.fail(&j.tally.WrongReplies, "remaining %d, exact %d now and %d in 255 ns", r, low, high)
	}
	if reset := max(wide(tatAfter, now), 0); o.ResetAfterNs != reset {
		j.fail(&j.tally.WrongReplies, "reset_after %d, want %d", o.ResetAfterNs, reset)
	}
	if reset := max(tat-now, 0); o.ResetAfterNs < reset {
		j.fail(&j.tally.WrongReplies, "reset_after %d, exact %d", o.ResetAfterNs, reset)
	}
	j.tatGrid = tat
}

// wide is the time from now to an instant on the grid as gcra_v1 gives it: to the
// nanosecond below 2^53, and above it to the grid point before now, which is later.
func wide(instant, now int64) int64 {
	if d := instant - now/grid*grid; d >= 1<<53 {
		return d
	}
	return instant - now
}

func (j *judge) window(c *Call, o *Outcome) {
	if c.NowNs >= 1<<62 {
		j.refused(o, "BADARG window_v1: now_ns")
		return
	}
	w := Window{c.Amount, c.PeriodNs, c.Sliding}
	want, counts := w.Call(j.state.counts(), c.Cost, c.NowNs)
	if o.Err != "" {
		j.fail(&j.tally.WrongReplies, "error %q", o.Err)
		return
	}
	if o.Verdict != want {
		if o.Status == 1 && want.Status != 1 {
			j.tally.Early++
		}
		j.fail(&j.tally.WrongReplies, "reply %+v, want %+v", o.Verdict, want)
	}
	if want.Status != 1 || c.Cost == 0 {
		j.untouched(o)
	} else {
		value := uint64(counts.Index)<<32 | uint64(counts.Previous)<<16 | uint64(counts.Current)
		if o.State != (State{true, value}) {
			j.fail(&j.tally.WrongStates, "state %+v, want %+v", o.State, counts)
		}
		_, left := w.At(counts, c.NowNs)
		if ttl := TTLMs(left+c.PeriodNs, 60000); !o.ttlIs(ttl) {
			j.fail(&j.tally.WrongTTLs, "ttl %d..%d ms, want %d", o.TTLMs, o.TTLMs+o.TTLSlackMs, ttl)
		}
	}
	if want.Status == 0 {
		j.promise(w, c, want.RetryAfterNs)
	}
}

// promise checks the wait that a refusal names: the call fits after it, and when
// fixed not a nanosecond earlier.
func (j *judge) promise(w Window, c *Call, retryAfterNs int64) {
	for _, before := range []int64{0, 1} {
		counts, left := w.At(j.state.counts(), c.NowNs+retryAfterNs-before)
		fits := w.Fits(counts, left, c.Cost)
		if before == 0 && !fits || before == 1 && fits && !w.Sliding {
			j.fail(&j.tally.WrongReplies, "retry_after %d: fits %v %d ns before it", retryAfterNs, fits, before)
		}
	}
}
