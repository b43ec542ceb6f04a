package precision

import (
	"errors"
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
}{{GCRAV1, grid - 1}, {GCRAV2, 0}, {WindowV1, 0}}

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

// Total is how many decisions Run makes on a driver.
func (o Options) Total(d Driver) int {
	total := 0
	for _, s := range Scripts {
		load := o.load(d, s.Script)
		for i := range load.traces() {
			total += traceLength(i, load.Streams)
		}
	}
	return total
}

// load is the load of a driver with no more streams than there are.
func (o Options) load(d Driver, script Script) Load {
	load := o.Load(d, script)
	load.Streams = min(load.Streams, len(saturatedResidues))
	if script.IsWindow() {
		load.Streams = 0
	}
	return load
}

// traces is how many traces that makes, the streams first.
func (l Load) traces() int {
	return l.Streams + (l.Decisions+traceCalls-1)/traceCalls
}

func traceLength(index, streams int) int {
	if index < streams {
		return saturatedAdmissions + saturatedAdmissions/16
	}
	return traceCalls
}

// liver is a driver of a server that has a clock of its own.
type liver interface {
	Live(script Script, seed uint64, lasting time.Duration, callers bool) (Tally, error)
}

// trace makes the trace with this index: the saturated streams first. A server whose clock
// cannot be set gets traces of callers' clocks alone.
func (o Options) trace(d Driver, script Script, index, streams int) *Trace {
	if index < streams {
		return NewSaturated(script, saturatedResidues[index])
	}
	index -= streams
	if _, live := d.(liver); live {
		index = callersIndex(script, index)
	}
	return NewTrace(script, o.Seed, index)
}

// Row is what came of one script on one driver.
type Row struct {
	Script  Script
	Driver  string
	BoundNs int64
	Tally
	// Smallest is the smallest trace that shows what is broken, nil when nothing is.
	Smallest *Trace
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
	load := o.load(driver, script)
	for index := range load.traces() {
		t := o.trace(driver, script, index, load.Streams)
		outcomes := make([]Outcome, len(t.Calls))
		key := fmt.Sprintf("%s:%d", script, index)
		began := time.Now()
		err := driver.Play(script, key, t.Calls, outcomes)
		row.Playing += time.Since(began)
		if err = errors.Join(err, driver.Forget(key)); err != nil {
			return row, fmt.Errorf("trace %d: %w", index, err)
		}
		tally := Judge(t, outcomes)
		if !tally.Sound() && row.Smallest == nil {
			var broken string
			if row.Smallest, broken = Shrink(driver, t); broken != "" {
				tally.Broken = broken // else it did not break again
			}
			tally.Broken = fmt.Sprintf("trace %d, %s", index, tally.Broken)
		}
		row.Tally.add(&tally)
		o.Made(len(t.Calls))
	}
	if live, ok := driver.(liver); ok {
		for _, callers := range []bool{false, true} {
			tally, err := live.Live(script, o.Seed, o.Live, callers)
			if err != nil {
				return row, fmt.Errorf("by the server's clock: %w", err)
			}
			if tally.Broken != "" {
				tally.Broken = fmt.Sprintf("by the server's clock, callers %v, %s", callers, tally.Broken)
			}
			row.Tally.add(&tally)
		}
	}
	return row, nil
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
		if r.Smallest != nil {
			fmt.Fprintf(out, "the smallest trace that shows it: make replay TRACE='%s'\n", r.Smallest)
		}
	}
	return nil
}
