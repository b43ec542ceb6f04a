package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the module's folder, from that of this package.
const root = "../../.."

// What becomes of each status, with and without an explanation.
func TestJudge(t *testing.T) {
	p := pkg{path: "a", without: []string{"c"}}
	mutants := func(statuses ...string) (list []*mutant) {
		for i, status := range statuses {
			list = append(list, &mutant{file: "a/b.go", text: fmt.Sprint("x", i), status: status})
		}
		return list
	}
	kills := slices.Repeat([]string{killed}, 9)
	for _, c := range []struct {
		what     string
		statuses []string
		reasons  map[string]string
		killed   int
		want     []string
	}{
		{"all fall", kills, nil, 9, nil},
		{"one that loops falls", append(kills, looped), nil, 10, nil},
		{"what does not compile counts for nothing", append(kills, unviable), nil, 9, nil},
		{"a survivor", append(kills, lived), nil, 9, []string{"survives, not explained: a/b.go: x9"}},
		{"a survivor that is explained", append(kills, lived), map[string]string{"a/b.go: x9": "equal"}, 9, nil},
		{"a mutant that falls, explained", kills, map[string]string{"a/b.go: x8": "equal"}, 9,
			[]string{"explained, but no survivor: a/b.go: x8"}},
		{"one that loops, explained", append(kills, looped), map[string]string{"a/b.go: x9": "equal"}, 10,
			[]string{"explained, but no survivor: a/b.go: x9"}},
		{"no mutant, explained", kills, map[string]string{"a/b.go: y": "equal"}, 9, []string{"explained, but no mutant: a/b.go: y"}},
		{"what does not compile, explained", append(kills, unviable), map[string]string{"a/b.go: x9": "equal"}, 9,
			[]string{"explained, but no mutant: a/b.go: x9"}},
		{"another package's, and a file that is left out", kills, map[string]string{"b/b.go: y": "equal", "a/c.go: y": "equal"}, 9, nil},
		{"one that waits", append(kills, waited), map[string]string{"a/b.go: x9": waits + "."}, 10, nil},
		{"one that waits, and is not said to", append(kills, waited), nil, 9,
			[]string{"waits for ever, and is not said to: a/b.go: x9"}},
		{"one that waits, and is said to be equal", append(kills, waited), map[string]string{"a/b.go: x9": "equal"}, 9,
			[]string{"waits for ever, and is not said to: a/b.go: x9"}},
		{"one that was seen to fall, and should wait", kills, map[string]string{"a/b.go: x8": waits + "."}, 9,
			[]string{"explained, but no survivor: a/b.go: x8"}},
		{"one that passes, and should wait", append(kills, lived), map[string]string{"a/b.go: x9": waits + "."}, 9,
			[]string{"survives, and is said to wait: a/b.go: x9"}},
		{"one that is left out", append(kills, leftOut), nil, 9, nil},
		{"one that is left out, explained", append(kills, leftOut), map[string]string{"a/b.go: x9": "equal"}, 9, nil},
		{"too few fall of those that are not left out", append(kills[:8:8], lived, leftOut), map[string]string{"a/b.go: x8": "equal"}, 8,
			[]string{"a: fewer than 90 % fall"}},
		{"one that was not tried", append(kills, ""), nil, 9, []string{"not tried: a/b.go: x9"}},
		{"too few fall", append(kills[:8:8], lived), map[string]string{"a/b.go: x8": "equal"}, 8, []string{"a: fewer than 90 % fall"}},
		{"no mutant", nil, nil, 0, []string{"a: fewer than 90 % fall"}},
	} {
		got := judge(p, mutants(c.statuses...), c.reasons)
		if !slices.Equal(got.open, c.want) || got.killed != c.killed {
			t.Errorf("%s: %d killed, to look at %q; want %d and %q", c.what, got.killed, got.open, c.killed, c.want)
		}
	}
}

// A sample is about one in so many, the same by name whatever else there is.
func TestChoose(t *testing.T) {
	const n = 6000
	chosen := func(from, to int, of uint32) (names []string) {
		var mutants []*mutant
		for i := from; i < to; i++ {
			mutants = append(mutants, &mutant{file: "a/b.go", text: fmt.Sprint("x", i)})
		}
		choose(mutants, of)
		for _, m := range mutants {
			if m.status == "" {
				names = append(names, m.String())
			} else if m.status != leftOut {
				t.Errorf("%s is %s", m, m.status)
			}
		}
		return names
	}
	if got := chosen(0, n, 1); len(got) != n {
		t.Errorf("of 1 in 1 there are %d of %d", len(got), n)
	}
	all := chosen(0, n, 6)
	if len(all) < n/6*8/10 || len(all) > n/6*12/10 {
		t.Errorf("of 1 in 6 there are %d of %d", len(all), n)
	}
	if parts := slices.Concat(chosen(0, n/2, 6), chosen(n/2, n, 6)); !slices.Equal(parts, all) {
		t.Errorf("in two halves others are chosen: %d, not %d", len(parts), len(all))
	}
}

func TestExplanations(t *testing.T) {
	got, err := explanations("# one\n# reason\na: x\na: y\n\n# another\nb: x\n")
	if err != nil || len(got) != 3 || got["a: x"] != "one reason" || got["a: y"] != "one reason" || got["b: x"] != "another" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"a: x\n", "# one\na: x\na: x\n"} {
		if got, err := explanations(bad); err == nil {
			t.Errorf("%q: read as %q, want an error", bad, got)
		}
	}
}

// Every explanation is of a line that is there, in a package that is tried, and names the
// test by which it was checked, which is there too.
func TestExplanationsAreOfLines(t *testing.T) {
	reasons, err := explanations(survivorsText)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, p := range packages {
		files, err := filepath.Glob(filepath.Join(root, p.path, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range parsed.Decls {
				if f, ok := d.(*ast.FuncDecl); ok {
					tests[f.Name.Name] = true
				}
			}
		}
	}
	for name, reason := range reasons {
		file := fileOf(name)
		if !slices.ContainsFunc(packages, func(p pkg) bool { return p.has(file) }) {
			t.Errorf("no package is tried that has %s", name)
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if line := lineOf(name); !strings.Contains(string(source), line+"\n") {
			t.Errorf("%s has no line %q", file, line)
		}
		if _, test, ok := strings.Cut(reason, "Checked by "); !ok || !tests[strings.TrimSuffix(test, ".")] {
			t.Errorf("%s: the reason names no test that is there: %s", name, reason)
		}
	}
}
