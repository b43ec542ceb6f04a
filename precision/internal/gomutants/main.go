// Command gomutants changes the Go code that decides one operator at a time, as gremlins
// names them, and runs the package's fast tests on each mutant. A mutant that passes them is
// a survivor, and survivors.txt must say why it does the same. It ends with exit code 1 when
// one is not explained, when an explanation fits no survivor, when one waits for ever that is
// not said to, or when fewer than 90 % of a package's fall.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// leastKilled is the share of a package's mutants that must fall.
const leastKilled = 0.9

func main() {
	switch filepath.Base(os.Args[0]) {
	case "go":
		os.Exit(goCommand(os.Args[1:]))
	}
	gremlins := flag.String("gremlins", "gremlins", "the path of gremlins")
	only := flag.String("package", "", "try this package alone, such as ./loader")
	sample := flag.Int("sample", 1, "of large packages, try about one mutant in so many, always the same")
	workers := flag.Int("workers", runtime.NumCPU(), "how many mutants are tried at a time")
	flag.Parse()
	if flag.NArg() > 0 || *sample < 1 || *workers < 1 {
		fmt.Fprintln(os.Stderr, "gomutants: there are no other arguments, and numbers are 1 or more")
		os.Exit(2)
	}
	if err := run(*gremlins, *only, uint32(*sample), *workers); err != nil {
		fmt.Fprintln(os.Stderr, "gomutants:", err)
		os.Exit(1)
	}
}

func run(gremlins, only string, sample uint32, workers int) error {
	reasons, err := explanations(survivorsText)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "package\tmutants\tkilled\tof them loop\twait\tkilled %\tsurvive\texplained\tleft out\t")
	var open []string
	tried, left := 0, 0
	for _, p := range packages {
		if only != "" && filepath.Clean(only) != p.path {
			continue
		}
		tried++
		mutants, err := p.unleash(gremlins, sample, workers)
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		c := judge(p, mutants, reasons)
		open = append(open, c.open...)
		left += c.left
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.1f %%\t%d\t%d\t%d\t\n",
			p.path, c.mutants, c.killed, c.looped, c.waited, 100*c.share(), c.survive, c.explained, c.left)
	}
	if tried == 0 {
		return fmt.Errorf("there is no package %q", only)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if left > 0 {
		fmt.Printf("%d mutants were left out: of large packages about one in %d is tried. Without -sample all are.\n", left, sample)
	}
	slices.Sort(open)
	for _, line := range open {
		fmt.Println(line)
	}
	if len(open) > 0 {
		return fmt.Errorf("%d things to look at", len(open))
	}
	return nil
}

// count is what became of a package's mutants. open names what has to be looked at.
type count struct {
	mutants, killed, looped, waited, survive, explained, left int
	open                                                      []string
}

func (c count) share() float64 { return float64(c.killed) / float64(c.mutants) }

// judge holds what became of a package's mutants against the explanations.
func judge(p pkg, mutants []*mutant, reasons map[string]string) (c count) {
	named := map[string]bool{}
	for _, m := range mutants {
		name := m.String()
		reason, ok := reasons[name]
		switch m.status {
		case leftOut:
			c.left++
			named[name] = true
			continue
		case unviable:
			continue
		case killed, looped:
			c.killed++
			if m.status == looped {
				c.looped++
			}
			if ok {
				c.open = append(c.open, "explained, but no survivor: "+name)
			}
		case waited:
			c.waited++
			if strings.HasPrefix(reason, waits) {
				c.killed++
			} else {
				c.open = append(c.open, "waits for ever, and is not said to: "+name)
			}
		case lived:
			c.survive++
			switch {
			case strings.HasPrefix(reason, waits):
				c.open = append(c.open, "survives, and is said to wait: "+name)
			case !ok:
				c.open = append(c.open, "survives, not explained: "+name)
			default:
				c.explained++
			}
		default:
			c.open = append(c.open, "not tried: "+name)
		}
		c.mutants++
		named[name] = true
	}
	for name := range reasons {
		if p.has(fileOf(name)) && !named[name] {
			c.open = append(c.open, "explained, but no mutant: "+name)
		}
	}
	if !(c.share() >= leastKilled) { // nor is it without mutants
		c.open = append(c.open, fmt.Sprintf("%s: fewer than %.0f %% fall", p.path, 100*leastKilled))
	}
	return c
}
