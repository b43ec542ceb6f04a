package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

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
		return fmt.Sprintf(`{"type":%q,"status":"RUNNABLE","line":%d,"column":%d}`, kind, line, column)
	}
	report := func(mutations ...string) []byte {
		return fmt.Appendf(nil, `{"files":[{"file_name":"b.go","mutations":[%s]}]}`, strings.Join(mutations, ","))
	}
	got, files, err := pkg{path: "a"}.read(report(
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
		if want := "a/b.go: " + want[i]; m.String() != want || m.status != "" || m.id != i+1 {
			t.Errorf("got %d, %q of %s, want %d, none of %s", m.id, m.status, m, i+1, want)
		}
		if !strings.HasPrefix(source[m.offset:], m.was) || strings.Count(source[:m.offset], "\n") != m.line-1 {
			t.Errorf("%s: its operator stands elsewhere than at %d", m, m.offset)
		}
	}
	if len(got) != len(want) || len(files) != 1 || files["a/b.go"] != source {
		t.Errorf("%d mutants, want %d, of %q", len(got), len(want), files)
	}
	for _, bad := range []string{mutation("CONDITIONALS_BOUNDARY", 4, 9), mutation("NO_KIND", 4, 6)} {
		if got, _, err := (pkg{path: "a"}).read(report(bad)); err == nil {
			t.Errorf("%s: read as %v, want an error", bad, got)
		}
	}
}

// For gremlins all of the package is covered, and go does all else.
func TestGoCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("a", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("a/b.go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOMUTANTS_PACKAGE", "a")
	t.Setenv("GOMUTANTS_GO", "/bin/false")
	if code := goCommand([]string{"test", "-cover", "-coverprofile", "profile", "a"}); code != 0 {
		t.Errorf("a profile ends with %d", code)
	}
	text, err := os.ReadFile("profile")
	if want := "mode: set\n" + module + "a/b.go:1.1,1000000.1 1 1\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
	if code := goCommand([]string{"mod", "download"}); code == 0 {
		t.Error("a command that fails ends with 0")
	}
	t.Setenv("GOMUTANTS_GO", "/bin/true")
	if code := goCommand([]string{"mod", "download"}); code != 0 {
		t.Errorf("a command that does not fail ends with %d", code)
	}
}
