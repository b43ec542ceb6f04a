package main

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// sampled is how many mutants of each asset the test tries; the command tries all.
const sampled = 25

// allExplained are the mutants of each asset, and the rules that survivors.txt has for them.
func allExplained(t *testing.T) (all map[string][]mutant, of map[string]*rule) {
	t.Helper()
	all, err := allMutants()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := parseRules(survivorsText)
	if err != nil {
		t.Fatal(err)
	}
	of, wrong := explanations(rules, slices.Concat(slices.Collect(maps.Values(all))...))
	for _, line := range wrong {
		t.Errorf("survivors.txt: %s", line)
	}
	return all, of
}

// Mutants that no explanation excuses fall. The sample is the same at every run.
func TestSampleOfMutantsIsKilled(t *testing.T) {
	all, of := allExplained(t)
	for _, s := range precision.Scripts {
		script := s.Script
		name := string(script)
		t.Run(name, func(t *testing.T) {
			mutants := slices.DeleteFunc(all[name], func(m mutant) bool { return of[m.String()] != nil })
			rng := rand.New(rand.NewPCG(1, 1))
			rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
			mutants = mutants[:sampled]
			s := newSuite(script)
			if part, how, err := s.fall(lua.Assets[name]); err != nil || part != "" {
				t.Fatalf("the script itself falls: %s, %v", how, err)
			}
			parts, err := tryAll(s.fall, mutants)
			if err != nil {
				t.Fatal(err)
			}
			for i, part := range parts {
				if part == "" {
					t.Errorf("survives: %s", mutants[i])
				}
			}
		})
	}
}

// No two mutants share a name, and each changes its script.
func TestMutantsAreTold(t *testing.T) {
	all, err := allMutants()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for name, mutants := range all {
		for _, m := range mutants {
			if names[m.String()] || m.script == lua.Assets[name] {
				t.Errorf("twice, or no change: %s", m)
			}
			names[m.String()] = true
		}
	}
}

// The whole list for a script of a few lines, which holds each kind of change.
func TestMutate(t *testing.T) {
	mutants, err := mutate("x", "local a = -b % 2 -- comment\nif not c and a - d * 3 < e then\n  a = math.floor(f) == true\nend\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mutants {
		got = append(got, m.line)
	}
	want := []string{
		"local a = {{- => }}b % 2", "local a = -b {{% => +}} 2", "local a = -b {{% => -}} 2", "local a = -b {{% => *}} 2",
		"local a = -b {{% => /}} 2", "local a = -b % {{2 => (2 + 1)}}", "local a = -b % {{2 => (2 - 1)}}",
		"if {{not c and a - d * 3 < e => not (not c and a - d * 3 < e)}} then",
		"if {{not => }} c and a - d * 3 < e then", "if not c {{and => or}} a - d * 3 < e then",
		"if not c and a {{- => +}} d * 3 < e then", "if not c and a {{- => *}} d * 3 < e then",
		"if not c and a {{- => /}} d * 3 < e then", "if not c and a {{- => %}} d * 3 < e then",
		"if not c and a{{ - d * 3 => }} < e then",
		"if not c and a - d {{* => +}} 3 < e then", "if not c and a - d {{* => -}} 3 < e then",
		"if not c and a - d {{* => /}} 3 < e then", "if not c and a - d {{* => %}} 3 < e then",
		"if not c and a - d * {{3 => (3 + 1)}} < e then", "if not c and a - d * {{3 => (3 - 1)}} < e then",
		"if not c and a - d * 3 {{< => <=}} e then", "if not c and a - d * 3 {{< => >}} e then",
		"a = math.{{floor => ceil}}(f) == true", "a = {{math.floor => }}(f) == true",
		"a = math.floor(f) {{== => ~=}} true", "a = math.floor(f) == {{true => false}}",
		"{{a = math.floor(f) == true => do end}}",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if _, err := mutate("x", "a = ?"); err == nil {
		t.Error("a script that is not Lua is split into tokens")
	}
}
