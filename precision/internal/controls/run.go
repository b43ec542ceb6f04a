package controls

import (
	"errors"
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
	// Wrong is in which ways it is found wrong on its own trace, Expected in which it is.
	Wrong, Expected []string
	// Generated is what the suite's own traces find broken, "" when they pass it.
	Generated string
}

// Rejected tells whether the suite's own traces find the control broken, and its own trace
// finds it wrong in just the ways in which it is: one that is found wrong in another way
// fails for a reason that is not its fault.
func (r *Result) Rejected() bool {
	return r.Generated != "" && len(r.Wrong) > 0 && slices.Equal(r.Wrong, r.Expected)
}

// Check returns an error that names every control which is not rejected, or which tries
// nothing.
func Check(results []Result) error {
	var errs []error
	for _, r := range results {
		if !r.Rejected() {
			errs = append(errs, fmt.Errorf("the control %q is not rejected: it is found wrong in %q, and is wrong in %q; generated traces find %q",
				r.Fault, r.Wrong, r.Expected, r.Generated))
		}
		if r.Calls <= 0 || r.Right <= 0 {
			errs = append(errs, fmt.Errorf("the control %q tries nothing: %d calls, of which exact integers admit %d units",
				r.Fault, r.Calls, r.Right))
		}
	}
	if len(results) == 0 {
		errs = append(errs, errors.New("no control was played"))
	}
	return errors.Join(errs...)
}

// generated is how many of the suite's own traces a control is played on, besides
// the one that is made for it: one of each style.
const generated = 12

// Run plays every control in the emulator.
func Run() ([]Result, error) { return play(list()) }

func play(controls []control) ([]Result, error) {
	results := make([]Result, len(controls))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range controls {
		group.Go(func() error {
			text, err := c.source()
			if err != nil {
				return err
			}
			if results[i], err = c.run(text, generated); err != nil {
				return fmt.Errorf("%s: %w", c.fault, err)
			}
			return nil
		})
	}
	return results, group.Wait()
}

// run plays a text in the control's place: its own trace with a server's clock that moves
// with the caller's, so that a key is gone when its ttl has passed, and so many generated ones.
func (c *control) run(text string, generated int) (Result, error) {
	r := Result{Fault: c.fault, Script: c.script, Expected: c.expected}
	asset, err := precision.NewAsset()
	if err != nil {
		return r, err
	}
	if err := asset.Replace(c.script, text); err != nil {
		return r, err
	}
	tally, err := r.own(asset, c)
	if err != nil {
		return r, err
	}
	for _, way := range []struct {
		name string
		seen bool
	}{
		{early, tally.Early > 0}, {late, tally.LatestNs >= c.script.Grid()}, {reply, tally.WrongReplies > 0},
		{state, tally.WrongStates > 0}, {ttl, tally.WrongTTLs > 0}, {difference, tally.Differences > 0},
	} {
		if way.seen {
			r.Wrong = append(r.Wrong, way.name)
		}
	}
	for i := range generated {
		answers, err := precision.NewTrial(c.script, 1, i).Play(asset, "control")
		if err != nil {
			return r, err
		}
		tally := answers.Judge()
		if r.Generated = tally.Broken; r.Generated != "" {
			break
		}
	}
	return r, nil
}

// own plays the control's own trace and measures it.
func (r *Result) own(d precision.Driver, c *control) (precision.Tally, error) {
	if c.script == precision.LimitsV1 {
		trace, err := precision.NewLimitsTraceOf(withServer(c.limits, false))
		if err != nil {
			return precision.Tally{}, err
		}
		outcomes, err := precision.PlayLimits(d, "control", trace.Calls)
		if err != nil {
			return precision.Tally{}, err
		}
		return precision.JudgeLimits(trace, outcomes), r.measureLimits(trace.Calls, outcomes)
	}
	own := slices.Clone(c.calls)
	for i := range own {
		if own[i].ServerNs == 0 {
			own[i].ServerNs = own[i].NowNs
		}
	}
	outcomes, err := precision.Play(d, c.script, "control", own)
	if err != nil {
		return precision.Tally{}, err
	}
	return precision.Judge(precision.NewTraceOf(c.script, own), outcomes), r.measure(own, outcomes)
}

// measure follows the control's own trace with exact limiters: one that decides for
// itself, and one that is fed with the control's admissions.
func (r *Result) measure(calls []precision.Call, outcomes []precision.Outcome) error {
	own, fed := precision.NewFed(r.Script, 1), precision.NewFed(r.Script, 1)
	for i := range calls {
		c, o := &calls[i], &outcomes[i]
		own.Meet(c)
		fed.Meet(c)
		if o.Err != "" && !fed.Foreign(c) {
			return fmt.Errorf("call %d, %+v: %s", i, *c, o.Err)
		}
		r.Calls++
		if !own.Foreign(c) && own.Ask(c).Status == 1 {
			own.Admit(c)
			r.Right += c.Cost
		}
		exact := fed.Ask(c)
		if o.Status == 1 {
			fed.Admit(c)
			r.Admitted += c.Cost
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

// WriteTable writes the results as a table.
func WriteTable(out io.Writer, results []Result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "control\tplays as\tcalls\tadmitted\tright\ttoo many\tlost\tearly ns\tlate ns\tretry short ns\tttl short ms\trejected by")
	for _, r := range results {
		more := max(r.Admitted-r.Right, 0)
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%.1f %%\t%d\t%d\t%d\t%d\t%d\t%s\n",
			r.Fault, r.Script, r.Calls, r.Admitted, r.Right, 100*float64(more)/float64(r.Right), max(r.Right-r.Admitted, 0),
			r.EarlyNs, r.LateNs, r.RetryShortNs, r.TTLShortMs, strings.Join(r.Wrong, " "))
	}
	return table.Flush()
}
