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
	mutants := func(statuses ...string) (list []mutant) {
		for i, status := range statuses {
			list = append(list, mutant{file: "a/b.go", text: fmt.Sprint("x", i), status: status})
		}
		return list
	}
	kills := slices.Repeat([]string{"KILLED"}, 9)
	for _, c := range []struct {
		what     string
		statuses []string
		reasons  map[string]string
		killed   int
		want     []string
	}{
		{"all fall", kills, nil, 9, nil},
		{"what does not compile counts for nothing", append(kills, "NOT VIABLE"), nil, 9, nil},
		{"a survivor", append(kills, "LIVED"), nil, 9, []string{"survives, not explained: a/b.go: x9"}},
		{"a survivor that is explained", append(kills, "LIVED"), map[string]string{"a/b.go: x9": "equal"}, 9, nil},
		{"a mutant that falls, explained", kills, map[string]string{"a/b.go: x8": "equal"}, 9,
			[]string{"explained, but no survivor: a/b.go: x8"}},
		{"no mutant, explained", kills, map[string]string{"a/b.go: y": "equal"}, 9, []string{"explained, but no mutant: a/b.go: y"}},
		{"what does not compile, explained", append(kills, "NOT VIABLE"), map[string]string{"a/b.go: x9": "equal"}, 9,
			[]string{"explained, but no mutant: a/b.go: x9"}},
		{"another package's, and a file that is left out", kills, map[string]string{"b/b.go: y": "equal", "a/c.go: y": "equal"}, 9, nil},
		{"one that waits", append(kills, "LIVED"), map[string]string{"a/b.go: x9": waits + "."}, 10, nil},
		{"one that was seen to fall, and should wait", kills, map[string]string{"a/b.go: x8": waits + "."}, 9,
			[]string{"explained, but no survivor: a/b.go: x8"}},
		{"one that was not tried", append(kills, "NOT COVERED"), nil, 9, []string{"NOT COVERED: a/b.go: x9"}},
		{"too few fall", append(kills[:8:8], "LIVED"), map[string]string{"a/b.go: x8": "equal"}, 8, []string{"a: fewer than 90 % fall"}},
		{"no mutant", nil, nil, 0, []string{"a: fewer than 90 % fall"}},
	} {
		said := 0
		for _, reason := range c.reasons {
			if strings.HasPrefix(reason, waits) && !slices.Equal(c.statuses, kills) {
				said++
			}
		}
		got := judge(p, mutants(c.statuses...), ended{waited: said}, c.reasons)
		if !slices.Equal(got.open, c.want) || got.killed != c.killed {
			t.Errorf("%s: %d killed, to look at %q; want %d and %q", c.what, got.killed, got.open, c.killed, c.want)
		}
	}
}

// More or fewer runs that wait than mutants that are said to.
func TestJudgeCountsWaits(t *testing.T) {
	mutants := []mutant{{file: "a/b.go", text: "x", status: "LIVED"}}
	for _, waited := range []int{0, 1, 2} {
		c := judge(pkg{path: "a"}, mutants, ended{waited: waited}, map[string]string{"a/b.go: x": waits + "."})
		if got, want := len(c.open) > 0, waited != 1; got != want {
			t.Errorf("%d runs waited, one is said to: something to look at %v, want %v; %q", waited, got, want, c.open)
		}
	}
}

// gremlins' report, and the names of its mutants.
func TestRead(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("a", 0o755); err != nil {
		t.Fatal(err)
	}
	source := "package a\n\nfunc f(i, n int) int {\n\tif i<n && i >= -n {\n\t\ti += n\n\t}\n\tfor {\n\t\tbreak\n\t}\n\ti++\n\treturn i * n % 2 << 3 * n\n\ti++\n}\n"
	if err := os.WriteFile("a/b.go", []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	mutation := func(kind string, line, column int) string {
		return fmt.Sprintf(`{"type":%q,"status":"LIVED","line":%d,"column":%d}`, kind, line, column)
	}
	report := func(mutations ...string) []byte {
		return fmt.Appendf(nil, `{"files":[{"file_name":"b.go","mutations":[%s]}]}`, strings.Join(mutations, ","))
	}
	got, err := pkg{path: "a"}.read(report(
		mutation("INCREMENT_DECREMENT", 12, 3), mutation("CONDITIONALS_BOUNDARY", 4, 6), mutation("CONDITIONALS_NEGATION", 4, 6),
		mutation("INVERT_LOGICAL", 4, 9), mutation("CONDITIONALS_BOUNDARY", 4, 14), mutation("ARITHMETIC_BASE", 4, 17),
		mutation("INVERT_ASSIGNMENTS", 5, 5), mutation("REMOVE_SELF_ASSIGNMENTS", 5, 5), mutation("INVERT_LOOPCTRL", 8, 3),
		mutation("INCREMENT_DECREMENT", 10, 3), mutation("ARITHMETIC_BASE", 11, 11), mutation("ARITHMETIC_BASE", 11, 15),
		mutation("INVERT_BITWISE", 11, 19)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"if i{{< => <=}}n && i >= -n {", "if i{{< => >=}}n && i >= -n {", "if i<n {{&& => ||}} i >= -n {",
		"if i<n && i {{>= => >}} -n {", "if i<n && i >= {{- => +}}n {", "i {{+= => -=}} n", "i {{+= => =}} n",
		"{{break => continue}}", "i{{++ => --}}", "return i {{* => /}} n % 2 << 3 * n", "return i * n {{% => *}} 2 << 3 * n",
		"return i * n % 2 {{<< => >>}} 3 * n", "i{{++ => --}}  (2)",
	}
	for i, m := range got {
		if want := "a/b.go: " + want[i]; m.String() != want || m.status != "LIVED" {
			t.Errorf("got %s of %s, want LIVED of %s", m.status, m, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d mutants, want %d", len(got), len(want))
	}
	for _, bad := range []string{mutation("CONDITIONALS_BOUNDARY", 4, 9), mutation("NO_KIND", 4, 6)} {
		if got, err := (pkg{path: "a"}).read(report(bad)); err == nil {
			t.Errorf("%s: read as %v, want an error", bad, got)
		}
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
