// Command mutants changes the assets one token at a time and plays each mutant
// through the suite: the table of arguments and states, the edges of numbers, and
// the traces of package precision. A mutant that passes all of it is a survivor.
// survivors.txt must name the rule by which it computes the same, and it is played beside its
// script on Lua 5.1, LuaJIT and Lua 5.4, where it must do as the rule says. Every other mutant
// must fail the vectors alone.
//
// It ends with exit code 1 when one does not, when a survivor is not explained, when an
// explanation is not borne out, or when of an asset's mutants fewer than 95 % fall. An interpreter that is not on PATH
// is named at the end; with REQUIRE_SERVERS=1 nothing is tried without it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"github.com/tatami-rate/tatami/emulator/interpreters"
	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/servers"
)

const (
	// leastKilled is the share of an asset's mutants that must fall.
	leastKilled = 0.95
	// witnesses are about how many calls a survivor makes on each interpreter.
	witnesses = 40_000
)

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
	all, err := allMutants()
	if err != nil {
		return err
	}
	rules, err := parseRules(survivorsText)
	if err != nil {
		return err
	}
	of, open := explanations(rules, slices.Concat(slices.Collect(maps.Values(all))...))
	found, missing := installed()
	if len(missing) > 0 && servers.Required() {
		return fmt.Errorf("survivors cannot be played on %s, which is not on PATH", strings.Join(missing, ", "))
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "asset\tmutants\tby arguments\tby edges\tby traces\tkilled\tby vectors alone\tsurvive\texplained\t")
	total, killed := 0, 0
	for _, s := range precision.Scripts {
		script := s.Script
		name := string(script)
		if only != "" && only != name {
			continue
		}
		mutants := all[name]
		r, err := newSuite(script).try(mutants, of, found)
		if err != nil {
			return err
		}
		open = append(open, r.wrong...)
		dead := len(mutants) - r.by[""]
		if float64(dead) < leastKilled*float64(len(mutants)) {
			open = append(open, fmt.Sprintf("of %s fewer than %.0f %% fall", name, 100*leastKilled))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%.1f %%\t%d\t%d\t%d\t\n", name, len(mutants),
			r.by["arguments"], r.by["edges"], r.by["traces"], 100*float64(dead)/float64(len(mutants)),
			r.byVectors, r.by[""], r.explained)
		total, killed = total+len(mutants), killed+dead
	}
	if total == 0 {
		return fmt.Errorf("there is no asset %q", only)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range open {
		fmt.Println(line)
	}
	fmt.Printf("%d of %d killed, %.2f %%; each survivor played some %d times on %s\n", killed, total,
		100*float64(killed)/float64(total), witnesses, strings.Join(found, ", "))
	if len(missing) > 0 {
		fmt.Printf("left out: the survivors on %s, which is not on PATH\n", strings.Join(missing, ", "))
	}
	if len(open) > 0 {
		return fmt.Errorf("%d things to look at", len(open))
	}
	return nil
}

// result is what came of a script's mutants.
type result struct {
	by                   map[string]int // how many fall by which part of the suite, "" for none
	byVectors, explained int            // how many fail the vectors, how many survivors have a rule
	wrong                []string       // what passes the vectors, or is wrong with the rules
}

// try plays the mutants of the suite's script, on the vectors too, and those that survive and
// are explained beside it on the interpreters.
func (s *suite) try(mutants []mutant, of map[string]*rule, found []string) (r result, err error) {
	text := lua.Assets[string(s.script)]
	if _, how, err := s.fall(text); err != nil || how != "" {
		return r, errors.Join(err, fmt.Errorf("%s itself falls: %s", s.script, how))
	}
	parts, err := tryAll(s.fall, mutants)
	if err != nil {
		return r, err
	}
	alone, err := newVectorSuite(s.script)
	if err != nil {
		return r, err
	}
	if r.wrong, r.byVectors, err = alone.unseen(mutants, parts); err != nil {
		return r, err
	}
	r.by = map[string]int{}
	var survivors []mutant
	for i, m := range mutants {
		r.by[parts[i]]++
		switch isExplained := of[m.String()] != nil; {
		case parts[i] == "" && isExplained:
			survivors = append(survivors, m)
		case parts[i] == "":
			r.wrong = append(r.wrong, "survives, not explained: "+m.String())
		case isExplained:
			r.wrong = append(r.wrong, "explained, but no survivor: "+m.String())
		}
	}
	calls := s.generated(witnesses)
	for _, interpreter := range found {
		against, err := s.evidence(context.Background(), interpreter, text, survivors, of, calls)
		if err != nil {
			return r, err
		}
		r.wrong = append(r.wrong, against...)
	}
	r.explained = len(survivors)
	return r, nil
}

// allMutants are those of each asset.
func allMutants() (map[string][]mutant, error) {
	all := map[string][]mutant{}
	for _, s := range precision.Scripts {
		script := s.Script
		name := string(script)
		mutants, err := mutate(name, lua.Assets[name])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[name] = mutants
	}
	return all, nil
}

// installed parts the interpreters into those on PATH and those that are not.
func installed() (found, missing []string) {
	for _, name := range interpreters.Names {
		if _, err := exec.LookPath(name); err != nil {
			missing = append(missing, name)
		} else {
			found = append(found, name)
		}
	}
	return found, missing
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
