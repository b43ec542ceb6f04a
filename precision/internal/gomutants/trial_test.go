package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Mutants of every form of a function, and outside of them, each with what becomes of it.
func TestTryAll(t *testing.T) {
	theirs, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("GOFLAGS", "-mod=mod")
	source := `// Package a is woven.
package a

const most = 1 << 3

type box[T any] struct{ v T }

var ready int

func init() { ready = 1 + 1 }

func sum(first int, _ string, rest ...int) int {
	for _, n := range rest {
		first += n
	}
	return first
}

func (box[T]) six(int) (n int) { return 2 * 3 }

func (b *box[T]) is(_, _ int) bool { return b == nil }

func pick[T any](a, b T, left bool) T {
	if left && true { // a mutant that passes
		return a
	}
	return b
}

func none[T any](n *int) { *n = *n - 1 }

func text() string { return "a" + "b" }
`
	test := `package a

import "testing"

func TestA(t *testing.T) {
	n := 3
	none[string](&n)
	if most != 8 || ready != 2 || sum(1, "", 2, 3) != 6 || new(box[int]).six(0) != 6 || new(box[int]).is(0, 0) || n != 2 || text() != "ab" {
		t.Fail()
	}
}

func TestB(t *testing.T) {
	if pick(1, 2, true) != 1 {
		t.Fail()
	}
}

func TestNo(t *testing.T) { t.Fail() }
`
	for name, text := range map[string]string{"go.mod": "module " + strings.TrimSuffix(module, "/") + "\n\ngo 1.26\n", "a/a.go": source, "a/a_test.go": test} {
		if err := os.MkdirAll("a", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"const most = 1 {{<< => >>}} 3":                                    killed,
		"func init() { ready = 1 {{+ => -}} 1 }":                           killed,
		"first {{+= => -=}} n":                                             killed,
		"func (box[T]) six(int) (n int) { return 2 {{* => /}} 3 }":         killed,
		"func (b *box[T]) is(_, _ int) bool { return b {{== => !=}} nil }": killed,
		"if left {{&& => ||}} true { // a mutant that passes":              lived,
		"func none[T any](n *int) { *n = *n {{- => +}} 1 }":                killed,
		"func text() string { return \"a\" {{+ => -}} \"b\" }":             unviable,
	}
	var mutants []*mutant
	for i, name := range slices.Sorted(maps.Keys(want)) {
		before, rest, _ := strings.Cut(name, "{{")
		change, after, _ := strings.Cut(rest, "}}")
		was, is, _ := strings.Cut(change, " => ")
		at := strings.Index(source, before+was+after)
		if at < 0 {
			t.Fatalf("the source has no %s", name)
		}
		mutants = append(mutants, &mutant{file: "a/a.go", offset: at + len(before), was: was, is: is, text: name, id: i + 1})
	}
	folder, err := filepath.Abs("a")
	if err != nil {
		t.Fatal(err)
	}
	a := &trials{pkg: pkg{path: "a", skip: "TestNo", slow: "TestB"}, theirs: theirs, temp: t.TempDir(),
		workers: 2, folder: folder, source: map[string]string{"a/a.go": source}}
	if err := a.tryAll(mutants); err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if m.status != want[m.text] {
			t.Errorf("%s: %s, want %s", m, m.status, want[m.text])
		}
		m.status = ""
	}
	// Only where the tests pass without a change their failure says anything.
	a.skip = ""
	if err := a.tryAll(mutants); err == nil || !strings.Contains(err.Error(), "without a change: "+killed) {
		t.Errorf("tests that fail on what is right: %v", err)
	}
}

// What each end of a test binary says.
func TestEnding(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"echo PASS", lived},
		{"echo '--- FAIL: TestA (0.00s)'; echo FAIL; exit 1", killed},
		{"echo 'panic: boom'; exit 2", killed},
		{"echo 'fatal error: all goroutines are asleep - deadlock!'; exit 2", killed},
		{"echo 'runtime: goroutine stack exceeds 1000000000-byte limit'; exit 2", killed},
		{"echo 'panic: test timed out after 3m0s'; exit 2", waited},
		{"ulimit -t 1; while :; do :; done", looped},
		{"kill -9 $$", looped},
		{"kill -15 $$", ""},
		{"echo 2026/12/01 12:56:11 an example that ends; exit 1", killed},
		{"ulimit -t 1 2 3", ""},
		{"/no/such/test", ""},
		{"exit 2", ""},
		{"echo FAIL; exit 3", ""},
	} {
		out, err := exec.Command("/bin/sh", "-c", c.script).CombinedOutput()
		got, err := ending(string(out), err)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", c.script, got, err, c.want)
		}
	}
	if got, err := ending("", exec.Command("/no/such/program").Run()); err == nil {
		t.Errorf("a program that is not there: %q, want an error", got)
	}
}
