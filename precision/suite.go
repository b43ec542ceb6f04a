package precision

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// Scripts are the scripts that the suite holds against the oracle, with the bound
// that each claims in ns: the latest admission.
var Scripts = []struct {
	Script  Script
	BoundNs int64
}{{GCRAV1, grid - 1}, {GCRAV2, 0}, {WindowV1, 0}, {LimitsV1, 0}}

// Options say how much the suite does.
type Options struct {
	Seed uint64
	// Load is how much a driver does of a script.
	Load func(Driver, Script) Load
	// Live is for how long a real server is called by its own clock, for each script, and
	// as long again with callers beside it.
	Live time.Duration
	// Made is told of decisions as they are made, from several goroutines.
	Made func(n int)
}

// Load is how much of one script a driver plays.
type Load struct {
	// Decisions on generated traces, rounded up to whole ones.
	Decisions int
	// Streams is how many saturated streams of a gcra script come on top, each with a
	// residue of its own.
	Streams int
}

// Total is how many decisions Run makes on a driver, at least.
func (o Options) Total(d Driver) int {
	total := 0
	for _, s := range Scripts {
		total += o.load(d, s.Script).decisions()
	}
	return total
}

// load is the load of a driver with no more streams than there are.
func (o Options) load(d Driver, script Script) Load {
	load := o.Load(d, script)
	load.Streams = min(load.Streams, len(saturatedResidues))
	if script.IsWindow() || script == LimitsV1 {
		load.Streams = 0
	}
	return load
}

// traces is how many traces that makes, the streams first.
func (l Load) traces() int {
	return l.Streams + (l.Decisions+traceCalls-1)/traceCalls
}

// decisions is how many decisions that makes at least: some traces have a few more.
func (l Load) decisions() int {
	return l.Streams*(saturatedAdmissions+saturatedAdmissions/16) + (l.traces()-l.Streams)*traceCalls
}

// liver is a driver of a server that has a clock of its own.
type liver interface {
	Live(script Script, seed uint64, lasting time.Duration, callers bool) (Tally, error)
}

// trace makes the trace with this index: the saturated streams first. A server whose clock
// cannot be set gets traces of callers' clocks alone.
func (o Options) trace(d Driver, script Script, index, streams int) Trial {
	if index < streams {
		return NewSaturated(script, saturatedResidues[index])
	}
	index -= streams
	if _, live := d.(liver); live {
		index = callersIndex(script, index)
	}
	return NewTrial(script, o.Seed, index)
}

// Row is what came of one script on one driver.
type Row struct {
	Script  Script
	Driver  string
	BoundNs int64
	// Asked is how many decisions on traces were asked for.
	Asked int64
	Tally
	// Smallest is the smallest trace that shows what is broken, nil when nothing is.
	Smallest Trial
	// Playing is the time that the driver took for the decisions, reading back what
	// each left in the key included.
	Playing time.Duration
}

// Faults says why the row proves nothing: what broke, and what was asked for and not done.
func (r *Row) Faults() []string {
	var faults []string
	add := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	add(r.Broken != "", "%s", r.Broken)
	add(r.Broken == "" && !r.Sound(), "columns are not 0, and no call is named")
	add(r.LatestNs > r.BoundNs, "%d ns late, the bound is %d", r.LatestNs, r.BoundNs)
	add(r.Asked <= 0, "no decision was asked for")
	add(r.Decisions < r.Asked, "%d decisions of %d that were asked for", r.Decisions, r.Asked)
	add(r.Admitted <= 0, "nothing was admitted")
	add(r.Playing <= 0, "it took no time")
	return faults
}

// Check returns an error that names every row which proves nothing, and every script that
// a driver has no row of.
func Check(rows []Row) error {
	var errs []error
	drivers := map[string]bool{}
	for i := range rows {
		drivers[rows[i].Driver] = true
		for _, fault := range rows[i].Faults() {
			errs = append(errs, fmt.Errorf("%s on %s: %s", rows[i].Script, rows[i].Driver, fault))
		}
	}
	for _, s := range Scripts {
		has := func(r Row) bool { return r.Script == s.Script }
		if !slices.ContainsFunc(rows, has) {
			errs = append(errs, fmt.Errorf("%s was not played", s.Script))
		}
		for driver := range drivers {
			if !slices.ContainsFunc(rows, func(r Row) bool { return has(r) && r.Driver == driver }) {
				errs = append(errs, fmt.Errorf("%s was not played on %s", s.Script, driver))
			}
		}
	}
	return errors.Join(errs...)
}

// noAnswer stands in an outcome until the driver fills it.
const noAnswer = "the driver gave no answer"

// Play makes the calls on a key of a driver, which is deleted after, and returns an outcome
// for each.
func Play(d Driver, script Script, key string, calls []Call) ([]Outcome, error) {
	outcomes := make([]Outcome, len(calls))
	for i := range outcomes {
		outcomes[i].Err = noAnswer
	}
	if err := errors.Join(d.Play(script, key, calls, outcomes), d.Forget(key)); err != nil {
		return nil, err
	}
	for i := range outcomes {
		if outcomes[i].Err == noAnswer {
			return nil, fmt.Errorf("call %d of %d, %+v: %s", i, len(calls), calls[i], noAnswer)
		}
	}
	return outcomes, nil
}

// Run plays every script on every driver, the drivers side by side, and returns a row
// for each pair. An error is a driver that could not go on; a claim that does not
// hold stands in its row.
func Run(o Options, drivers []Driver) ([]Row, error) {
	rows := make([]Row, len(Scripts)*len(drivers))
	var group errgroup.Group
	for at, driver := range drivers {
		group.Go(func() error {
			for i, s := range Scripts {
				row, err := o.run(s.Script, driver)
				if err != nil {
					return fmt.Errorf("%s on %s: %w", s.Script, driver.Name(), err)
				}
				row.BoundNs = s.BoundNs
				rows[i*len(drivers)+at] = row
			}
			return nil
		})
	}
	return rows, group.Wait()
}

func (o Options) run(script Script, driver Driver) (Row, error) {
	load := o.load(driver, script)
	row := Row{Script: script, Driver: driver.Name()}
	for index := range load.traces() {
		t := o.trace(driver, script, index, load.Streams)
		began := time.Now()
		answers, err := t.Play(driver, fmt.Sprintf("%s:%d", script, index))
		row.Playing += time.Since(began)
		if err != nil {
			return row, fmt.Errorf("trace %d: %w", index, err)
		}
		tally := answers.Judge()
		if !tally.Sound() && row.Smallest == nil {
			var broken string
			if row.Smallest, broken = t.Shrink(driver); broken != "" {
				tally.Broken = broken // else it did not break again
			}
			tally.Broken = fmt.Sprintf("trace %d, %s", index, tally.Broken)
		}
		row.Tally.Add(&tally)
		row.Asked += int64(t.Len())
		o.Made(t.Len())
	}
	row.Asked = max(row.Asked, int64(load.decisions()))
	if live, ok := driver.(liver); ok && o.Live > 0 {
		for _, callers := range []bool{false, true} {
			tally, err := live.Live(script, o.Seed, o.Live, callers)
			if err != nil {
				return row, fmt.Errorf("by the server's clock: %w", err)
			}
			if tally.Decisions == 0 {
				return row, fmt.Errorf("by the server's clock, callers %v: no decision in %v", callers, o.Live)
			}
			if tally.Broken != "" {
				tally.Broken = fmt.Sprintf("by the server's clock, callers %v, %s", callers, tally.Broken)
			}
			row.Tally.Add(&tally)
		}
	}
	return row, nil
}

// WriteTable writes the rows as a table, and under it what broke or was not done.
func WriteTable(out io.Writer, rows []Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "script\tdriver\tdecisions\tadmitted\tearly\tlatest ns\tbound ns\treply\tstate\tttl\t≠ native\tper second\t")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%.0f\t\n",
			r.Script, r.Driver, r.Decisions, r.Admitted, r.Early, r.LatestNs, r.BoundNs,
			r.WrongReplies, r.WrongStates, r.WrongTTLs, r.Differences,
			float64(r.Decisions)/r.Playing.Seconds())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		for _, fault := range r.Faults() {
			fmt.Fprintf(out, "\nBROKEN: %s on %s: %s\n", r.Script, r.Driver, fault)
		}
		if r.Smallest != nil {
			fmt.Fprintf(out, "the smallest trace that shows it: make replay TRACE='%s'\n", r.Smallest)
		}
	}
	return nil
}
