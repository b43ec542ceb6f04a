package precision

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

// Scripts are the scripts that the suite holds against the oracle, with the bound
// that each claims in ns: the latest admission.
var Scripts = []struct {
	Script  Script
	BoundNs int64
}{{GCRAV1, grid - 1}, {WindowV1, 0}}

// Options say how much the suite does.
type Options struct {
	Seed uint64
	// Cases is how many decisions of each script a driver makes on generated traces;
	// the saturated streams of gcra_v1 come on top.
	Cases func(Driver) int
	// Made is told of decisions as they are made, from several goroutines.
	Made func(n int)
}

// Total is how many decisions Run makes on a driver.
func (o Options) Total(d Driver) int {
	total := 0
	for _, s := range Scripts {
		for i := range o.traces(d, s.Script) {
			total += traceLength(s.Script, i)
		}
	}
	return total
}

// traces is how many traces of a script a driver plays.
func (o Options) traces(d Driver, script Script) int {
	return streams(script) + (o.Cases(d)+traceCalls-1)/traceCalls
}

// streams is how many saturated streams come first.
func streams(script Script) int {
	if script == GCRAV1 {
		return len(saturatedResidues)
	}
	return 0
}

func traceLength(script Script, index int) int {
	if index < streams(script) {
		return saturatedAdmissions + saturatedAdmissions/16
	}
	return traceCalls
}

// trace makes the trace with this index: the saturated streams first.
func (o Options) trace(script Script, index int) *Trace {
	if index < streams(script) {
		return NewSaturated(saturatedResidues[index])
	}
	return NewTrace(script, o.Seed, index-streams(script))
}

// Row is what came of one script on one driver.
type Row struct {
	Script  Script
	Driver  string
	BoundNs int64
	Tally
	// Playing is the time that the driver took for the decisions, reading back what
	// each left in the key included.
	Playing time.Duration
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
	row := Row{Script: script, Driver: driver.Name()}
	for index := range o.traces(driver, script) {
		t := o.trace(script, index)
		outcomes := make([]Outcome, len(t.Calls))
		key := fmt.Sprintf("%s:%d", script, index)
		began := time.Now()
		err := driver.Play(script, key, t.Calls, outcomes)
		row.Playing += time.Since(began)
		if err = firstError(err, driver.Forget(key)); err != nil {
			return row, fmt.Errorf("trace %d: %w", index, err)
		}
		tally := Judge(t, outcomes)
		if !tally.Sound() {
			tally.Broken = fmt.Sprintf("trace %d, %s", index, tally.Broken)
		}
		row.Tally.add(&tally)
		o.Made(len(t.Calls))
	}
	return row, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// WriteTable writes the rows as a table, and under it what broke.
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
		if !r.Sound() {
			fmt.Fprintf(out, "\nBROKEN: %s on %s: %s\n", r.Script, r.Driver, r.Broken)
		}
	}
	return nil
}
