package main

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// sampled is how many mutants of each asset the test tries; the command tries all.
const sampled = 25

// Mutants that no explanation excuses fall. The sample is the same at every run.
func TestSampleOfMutantsIsKilled(t *testing.T) {
	reasons, err := explanations()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range precision.Scripts {
		name := string(a.Script)
		t.Run(name, func(t *testing.T) {
			mutants, err := mutate(name, lua.Assets[name])
			if err != nil {
				t.Fatal(err)
			}
			mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return reasons[m.String()] != "" })
			rng := rand.New(rand.NewPCG(1, 1))
			rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
			mutants = mutants[:sampled]
			s := newSuite(a.Script)
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

// Every explanation is of a mutant that there is, and no two mutants share a name.
func TestExplanationsAreOfMutants(t *testing.T) {
	reasons, err := explanations()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, a := range precision.Scripts {
		text := lua.Assets[string(a.Script)]
		mutants, err := mutate(string(a.Script), text)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range mutants {
			if names[m.String()] || m.script == text {
				t.Errorf("twice, or no change: %s", m)
			}
			names[m.String()] = true
		}
	}
	for name := range reasons {
		if !names[name] {
			t.Errorf("survivors.txt explains what is no mutant: %s", name)
		}
	}
}

// The whole list for a script of a few lines, which holds each kind of change.
func TestMutate(t *testing.T) {
	mutants, err := mutate("x", "local a = -b % 2 -- comment\nif not c and a - d * 3 < e then\n  a = math.ceil(f) == true\nend\n")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range mutants {
		got = append(got, m.is)
	}
	want := []string{
		"local a = b % 2", "local a = -b + 2", "local a = -b - 2", "local a = -b * 2", "local a = -b / 2",
		"local a = -b % (2 + 1)", "local a = -b % (2 - 1)",
		"if not (not c and a - d * 3 < e) then", "if  c and a - d * 3 < e then", "if not c or a - d * 3 < e then",
		"if not c and a + d * 3 < e then", "if not c and a * d * 3 < e then", "if not c and a / d * 3 < e then",
		"if not c and a % d * 3 < e then", "if not c and a < e then",
		"if not c and a - d + 3 < e then", "if not c and a - d - 3 < e then", "if not c and a - d / 3 < e then",
		"if not c and a - d % 3 < e then", "if not c and a - d * (3 + 1) < e then", "if not c and a - d * (3 - 1) < e then",
		"if not c and a - d * 3 <= e then", "if not c and a - d * 3 > e then",
		"a = math.floor(f) == true", "a = (f) == true", "a = math.ceil(f) ~= true", "a = math.ceil(f) == false",
		"do end",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	if _, err := mutate("x", "a = ?"); err == nil {
		t.Error("a script that is not Lua is split into tokens")
	}
}
