package main

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// vectorSampled is how many mutants of each asset the test tries; the command tries all.
const vectorSampled = 60

// Mutants that fall in the suite fail the vectors too. The sample is the same at every run.
func TestVectorsAloneKillASample(t *testing.T) {
	for _, s := range precision.Scripts {
		script := s.Script
		name := string(script)
		t.Run(name, func(t *testing.T) {
			mutants, err := mutate(name, lua.Assets[name])
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(2, 2))
			rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
			mutants = mutants[:vectorSampled]
			s, err := newVectorSuite(script)
			if err != nil {
				t.Fatal(err)
			}
			if _, how, err := s.fall(lua.Assets[name]); err != nil || how != "" {
				t.Fatalf("the script itself falls: %s, %v", how, err)
			}
			var passing []mutant // few, which the suite then tries
			byVectors, err := tryAll(s.fall, mutants)
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range mutants {
				if byVectors[i] == "" {
					passing = append(passing, m)
				}
			}
			parts, err := tryAll(newSuite(script).fall, passing)
			if err != nil {
				t.Fatal(err)
			}
			names, _, err := s.unseen(passing, parts)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				t.Error(name)
			}
		})
	}
}

// A mutant that no vector fails is named: here there are no tests in a setting of their own.
func TestUnseenMutantsAreNamed(t *testing.T) {
	s, err := newVectorSuite(precision.GCRAV2)
	if err != nil {
		t.Fatal(err)
	}
	s.plays = s.plays[:20]
	mutants, err := mutate("gcra_v2", lua.GCRAV2)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if m.line == "{{return done => do end}}" {
			names, seen, err := s.unseen([]mutant{m, m}, []string{"arguments", ""})
			if err != nil || seen != 0 || len(names) != 1 || !strings.Contains(names[0], m.line) {
				t.Errorf("%d fall, unseen are %q, %v; want the mutant that falls in the suite", seen, names, err)
			}
			return
		}
	}
	t.Fatal("gcra_v2 has no line `return done`")
}
