package controls

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"github.com/tatami-rate/tatami/precision"
)

// Result is how wrong a control is.
type Result struct {
	Fault  string
	Script precision.Script // what it claims to be
	// Calls, Admitted and Right are of the control's own trace, played with a server's
	// clock that moves with the caller's: the calls, those that the control admits, and
	// those that the exact limiter does.
	Calls, Admitted, Right int64
	// Beside an exact limiter that is fed with the control's admissions: EarlyNs is the
	// longest wait of a call that the control admits at once, LateNs the longest wait
	// that it names for a call that fits, RetryShortNs the most that it leaves out of a
	// wait.
	EarlyNs, LateNs, RetryShortNs int64
	// TTLShortMs is the most that a ttl falls short of the control's own reset_after.
	TTLShortMs int64
	// Wrong is in which ways the suite finds it wrong, Missing in which it should too.
	Wrong, Missing []string
}

// Rejected tells whether the suite finds the control wrong, in all ways expected.
func (r *Result) Rejected() bool { return len(r.Wrong) > 0 && len(r.Missing) == 0 }

// generated is how many of the suite's own traces a control is played on, besides
// the one that is made for it: one of each style.
const generated = 10

// Run plays every control in the emulator.
func Run() ([]Result, error) {
	controls := list()
	results := make([]Result, len(controls))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range controls {
		group.Go(func() error {
			text, err := c.source()
			if err != nil {
				return err
			}
			if results[i], err = c.run(text); err != nil {
				return fmt.Errorf("%s: %w", c.fault, err)
			}
			return nil
		})
	}
	return results, group.Wait()
}

// run plays a text in the control's place.
func (c *control) run(text string) (Result, error) {
	r := Result{Fault: c.fault, Script: c.script}
	asset, err := precision.NewAsset()
	if err != nil {
		return r, err
	}
	if err := asset.Replace(c.script, text); err != nil {
		return r, err
	}
	var replies, states, ttls, differences int64
	judge := func(key string, t *precision.Trace) error {
		outcomes := make([]precision.Outcome, len(t.Calls))
		if err := asset.Play(c.script, key, t.Calls, outcomes); err != nil {
			return err
		}
		tally := precision.Judge(t, outcomes)
		replies, states = replies+tally.WrongReplies, states+tally.WrongStates
		ttls, differences = ttls+tally.WrongTTLs, differences+tally.Differences
		return nil
	}
	if err := judge("own", precision.NewTraceOf(c.script, c.calls)); err != nil {
		return r, err
	}
	for i := range generated {
		if err := judge(fmt.Sprint(i), precision.NewTrace(c.script, 1, i)); err != nil {
			return r, err
		}
	}
	if err := r.measure(asset, c); err != nil {
		return r, err
	}
	for _, way := range []struct {
		name string
		seen bool
	}{
		{early, r.EarlyNs > 0}, {late, r.LateNs > 0},
		{reply, replies > 0}, {state, states > 0}, {ttl, ttls > 0},
		{difference, differences > 0},
	} {
		if way.seen {
			r.Wrong = append(r.Wrong, way.name)
		} else if slices.Contains(c.expected, way.name) {
			r.Missing = append(r.Missing, way.name)
		}
	}
	return r, nil
}

// measure plays the control's own trace while the server's clock moves with it, so
// that a key is gone when its ttl has passed, and follows it with exact limiters: one
// that decides for itself, and one that is fed with the control's admissions.
func (r *Result) measure(asset *precision.Asset, c *control) error {
	own, fed := precision.NewFed(c.script, 1), precision.NewFed(c.script, 1)
	outcome := make([]precision.Outcome, 1)
	for i, call := range c.calls {
		if call.ServerNs == 0 {
			asset.SetTimeNs(call.NowNs)
		}
		if err := asset.Play(c.script, "measured", c.calls[i:i+1], outcome); err != nil {
			return err
		}
		o := &outcome[0]
		if o.Err != "" && !fed.Foreign(&call) {
			return fmt.Errorf("call %d, %+v: %s", i, call, o.Err)
		}
		r.Calls++
		if state, ok := precision.ParseState(c.script, call.Given); ok {
			own.Hold(state)
			fed.Hold(state)
		}
		if !own.Foreign(&call) && own.Ask(&call).Status == 1 {
			own.Admit(&call)
			r.Right += call.Cost
		}
		var exact precision.Verdict // refused for good where the key is not the call's
		if !fed.Foreign(&call) {
			exact = fed.Ask(&call)
		}
		if o.Status == 1 {
			fed.Admit(&call)
			r.Admitted += call.Cost
			r.TTLShortMs = max(r.TTLShortMs, (o.ResetAfterNs+1e6-1)/1e6-o.TTLMs)
		}
		switch {
		case o.Status == 1 && exact.Status == 0:
			r.EarlyNs = max(r.EarlyNs, exact.RetryAfterNs)
		case o.Status == 0 && exact.Status == 1:
			r.LateNs = max(r.LateNs, o.RetryAfterNs)
		case o.Status == 0:
			r.RetryShortNs = max(r.RetryShortNs, exact.RetryAfterNs-o.RetryAfterNs)
		}
	}
	return nil
}

// WriteTable writes the results as a table, and under it what is missing.
func WriteTable(out io.Writer, results []Result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "control\tplays as\tcalls\tadmitted\tright\ttoo many\tlost\tearly ns\tlate ns\tretry short ns\tttl short ms\trejected by")
	for _, r := range results {
		more := max(r.Admitted-r.Right, 0)
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%.1f %%\t%d\t%d\t%d\t%d\t%d\t%s\n",
			r.Fault, r.Script, r.Calls, r.Admitted, r.Right, 100*float64(more)/float64(r.Right), max(r.Right-r.Admitted, 0),
			r.EarlyNs, r.LateNs, r.RetryShortNs, r.TTLShortMs, strings.Join(r.Wrong, " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if !r.Rejected() {
			fmt.Fprintf(out, "\nNOT REJECTED: %s should be found wrong in %s too\n", r.Fault, strings.Join(r.Missing, " "))
		}
	}
	return nil
}
