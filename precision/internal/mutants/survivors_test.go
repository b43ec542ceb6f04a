package main

import (
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/emulator/interpreters"
	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/servers"
)

// fewWitnesses are how many calls each survivor makes in the test; the command makes more.
const fewWitnesses = 3000

func needInterpreter(t *testing.T, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		if servers.Required() {
			t.Fatal(err)
		}
		t.Skipf("skipped: %v", err)
	}
}

// Every survivor does on every interpreter as its rule says.
func TestSurvivors(t *testing.T) {
	all, of := allExplained(t)
	for _, s := range precision.Scripts {
		script := s.Script
		s := newSuite(script)
		calls := s.generated(fewWitnesses)
		explained := slices.DeleteFunc(slices.Clone(all[string(script)]), func(m mutant) bool { return of[m.String()] == nil })
		if len(explained) == 0 {
			t.Errorf("%s has no survivors", script)
		}
		for _, name := range interpreters.Names {
			t.Run(string(script)+", "+name, func(t *testing.T) {
				needInterpreter(t, name)
				against, err := s.evidence(t.Context(), name, lua.Assets[string(script)], explained, of, calls)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range against {
					t.Error(line)
				}
			})
		}
	}
}

// A mutant that differs is named on every interpreter when a rule says that it is equal.
func TestFalseEvidence(t *testing.T) {
	all, of := allExplained(t)
	for _, s := range precision.Scripts {
		script := s.Script
		name := string(script)
		mutants := slices.DeleteFunc(all[name], func(m mutant) bool { return of[m.String()] != nil })
		rng := rand.New(rand.NewPCG(2, 2))
		rng.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
		mutants = mutants[:sampled]
		put := map[string]*rule{}
		for _, m := range mutants {
			put[m.String()] = &rule{name: "invented"}
		}
		s := newSuite(script)
		calls := s.generated(fewWitnesses)
		for _, interpreter := range interpreters.Names {
			t.Run(name+", "+interpreter, func(t *testing.T) {
				needInterpreter(t, interpreter)
				against, err := s.evidence(t.Context(), interpreter, lua.Assets[name], mutants, put, calls)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range mutants {
					want := "invented says equal on " + interpreter + ": " + m.String() + "\n"
					if !slices.ContainsFunc(against, func(line string) bool { return strings.HasPrefix(line, want) }) {
						t.Errorf("nothing speaks against %s", m)
					}
				}
			})
		}
	}
}

// So is one that never differs, when a rule says that it does; and a script that is not as the
// native port.
func TestEvidenceOfNothing(t *testing.T) {
	needInterpreter(t, "lua5.4")
	s := newSuite(precision.WindowV1)
	same := mutant{asset: "window_v1", line: "same", script: lua.WindowV1}
	of := map[string]*rule{same.String(): {name: "invented", differs: []string{"lua5.4"}}}
	against, err := s.evidence(t.Context(), "lua5.4", lua.WindowV1, []mutant{same}, of, s.generated(100))
	if err != nil || len(against) != 1 || !strings.HasPrefix(against[0], "invented says that it differs on lua5.4") {
		t.Errorf("%q, %v", against, err)
	}
	script := strings.Replace(lua.WindowV1, "current = current + cost", "current = current + 1", 1)
	against, err = s.evidence(t.Context(), "lua5.4", script, nil, nil, s.generated(100))
	if err != nil || len(against) != 1 || !strings.HasPrefix(against[0], "window_v1 itself on lua5.4: ") {
		t.Errorf("%q, %v", against, err)
	}
}

// A run that has to have every interpreter says at once which is missing.
func TestMissingInterpreters(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("REQUIRE_SERVERS", "1")
	const want = "survivors cannot be played on lua5.1, luajit, lua5.4, which is not on PATH"
	if err := run(""); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Rules that do not fit their mutants are named, and so are lines that say nothing.
func TestParseRules(t *testing.T) {
	const head = "rule a\nwhy\nform {{1 => 2}}\ndiffers lua5.4\n\n"
	mutants := []mutant{{asset: "x", line: "y {{1 => 2}}", nth: 1}, {asset: "x", line: "z {{1 => 3}}", nth: 1}}
	for _, test := range []struct{ text, wrong string }{
		{head + "# a remark\nx: y {{1 => 2}}\n", ""},
		{head, "has the form of a, not listed there: x: y {{1 => 2}}"},
		{head + "x: y {{1 => 2}}\nx: z {{1 => 3}}\n", "under a, not of its form: x: z {{1 => 3}}"},
		{head + "x: y {{1 => 2}}\nx: gone\n", "under a, no mutant: x: gone"},
		{head + "x: y {{1 => 2}}\n\nrule b\nwhy\nform 2\n\nx: y {{1 => 2}}\n", "under a and under b: x: y {{1 => 2}}"},
		{"x: y {{1 => 2}}\n", "survivors.txt:1: there is no rule yet: x: y {{1 => 2}}"},
		{"rule a\nform 1\n\nx: y\n", "survivors.txt:3: the rule before has no text or no form: "},
		{"rule a\nwhy\n\nx: y\n", "survivors.txt:3: the rule before has no text or no form: "},
		{"rule a\nwhy\nform (\n", "survivors.txt:3: error parsing regexp: missing closing ): `(`: form ("},
		{"rule a\nwhy\nform 1\ndiffers lua5.2\n", "survivors.txt:4: not an interpreter: differs lua5.2"},
		{head + "\nrule a\nwhy\n", "survivors.txt:7: a rule of this name stands above: rule a"},
	} {
		rules, err := parseRules(test.text)
		if err != nil {
			if err.Error() != test.wrong {
				t.Errorf("%q: %v, want %q", test.text, err, test.wrong)
			}
			continue
		}
		_, wrong := explanations(rules, mutants)
		if test.wrong == "" && len(wrong) > 0 || test.wrong != "" && !slices.Contains(wrong, test.wrong) {
			t.Errorf("%q: %q, want %q", test.text, wrong, test.wrong)
		}
		if r := rules[0]; r.text != "why" || !slices.Equal(r.differs, []string{"lua5.4"}) {
			t.Errorf("%q: the rule's text is %q, it differs on %q", test.text, r.text, r.differs)
		}
	}
}
