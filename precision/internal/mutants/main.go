// Command mutants changes the assets one token at a time and plays each mutant
// through the suite: the table of arguments and states, the edges of numbers, and
// the traces of package precision. A mutant that passes all of it is a survivor, and
// survivors.txt must say why it computes the same. Every other one must fail the vectors
// alone. It ends with exit code 1 when one does not, when a survivor is not explained, when
// an explanation fits no survivor, or when fewer than 95 % of all fall.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// leastKilled is the share of all mutants that must fall.
const leastKilled = 0.95

func main() {
	only := flag.String("asset", "", "try the mutants of this asset alone, such as gcra_v2")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "mutants: there are no other arguments")
		os.Exit(2)
	}
	if err := run(*only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only string) error {
	reasons, err := explanations()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "asset\tmutants\tby arguments\tby edges\tby traces\tkilled\tby vectors alone\tsurvive\texplained\t")
	var open []string
	total, killed := 0, 0
	for _, a := range precision.Scripts {
		name := string(a.Script)
		text := lua.Assets[name]
		if only != "" && only != name {
			continue
		}
		mutants, err := mutate(name, text)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s := newSuite(a.Script)
		if _, how, err := s.fall(text); err != nil || how != "" {
			return errors.Join(err, fmt.Errorf("%s itself falls: %s", name, how))
		}
		parts, err := tryAll(s.fall, mutants)
		if err != nil {
			return err
		}
		alone, err := newVectorSuite(a.Script)
		if err != nil {
			return err
		}
		unseen, byVectors, err := alone.unseen(mutants, parts)
		if err != nil {
			return err
		}
		open = append(open, unseen...)
		by := map[string]int{}
		explained := 0
		var survive []string
		for i, part := range parts {
			by[part]++
			if part == "" {
				survive = append(survive, mutants[i].String())
			}
		}
		for _, m := range survive {
			if reasons[m] == "" {
				open = append(open, "survives, not explained: "+m)
			} else {
				explained++
			}
		}
		for m := range reasons {
			if assetOf(m) == name && !slices.Contains(survive, m) {
				open = append(open, "explained, but no survivor: "+m)
			}
		}
		dead := len(mutants) - len(survive)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.1f %%\t%d\t%d\t%d\t\n", name, len(mutants), by["arguments"],
			by["edges"], by["traces"], 100*float64(dead)/float64(len(mutants)), byVectors, len(survive), explained)
		total, killed = total+len(mutants), killed+dead
	}
	if total == 0 {
		return fmt.Errorf("there is no asset %q", only)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	slices.Sort(open)
	for _, line := range open {
		fmt.Println(line)
	}
	fmt.Printf("%d of %d killed, %.2f %%\n", killed, total, 100*float64(killed)/float64(total))
	if len(open) > 0 {
		return fmt.Errorf("%d mutants to look at", len(open))
	}
	if only == "" && float64(killed) < leastKilled*float64(total) {
		return fmt.Errorf("fewer than %.0f %% fall", 100*leastKilled)
	}
	return nil
}

// tryAll returns for each mutant the part of a suite in which it falls, "" for none.
func tryAll(fall func(text string) (part, how string, err error), mutants []mutant) ([]string, error) {
	parts := make([]string, len(mutants))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, m := range mutants {
		group.Go(func() (err error) {
			if parts[i], _, err = fall(m.script); err != nil {
				err = fmt.Errorf("%s: %w", m, err)
			}
			return err
		})
	}
	return parts, group.Wait()
}
