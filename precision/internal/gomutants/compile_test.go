package main

import (
	"fmt"
	"os"
	"testing"
)

// A package of tests is compiled anew when its sources, its flags or the declarations that
// it imports are others, and not when only code is.
func TestCompiled(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive := func(build, declared, code string) string {
		first := "go object linux amd64\nbuild id \"" + build + "\"\n\n$$B\n" + declared
		return fmt.Sprintf("!<arch>\n%-16s%-32s%-10d`\n%s%s", "__.PKGDEF", "0", len(first), first, code)
	}
	write("a_test.go", "package a_test")
	write("a.a", archive("1", "func A()", "return 1"))
	imports := "# import config\npackagefile fmt=/cache/fmt.a\npackagefile " + module + "a=a.a\n"
	write("imports", imports)
	args := []string{"-o", "1/_pkg_.a", "-trimpath", "1=>", "-p", module + "a_test", "-buildid", "1", "-importcfg", "imports", "./a_test.go"}
	key, output, err := compiled(args)
	if err != nil || key == "" || output != "1/_pkg_.a" {
		t.Fatalf("named %q, at %q: %v", key, output, err)
	}
	for _, c := range []struct {
		what   string
		change func(args []string)
		same   bool
	}{
		{"nothing", func([]string) {}, true},
		{"the folder of the build", func(args []string) { args[1], args[3], args[7] = "2/_pkg_.a", "2=>", "2" }, true},
		{"code", func([]string) { write("a.a", archive("2", "func A()", "return 2")) }, true},
		{"a declaration", func([]string) { write("a.a", archive("1", "func B()", "return 1")) }, false},
		{"a package of another module", func([]string) { write("imports", "packagefile fmt=/cache/fmt2.a\n"+imports) }, false},
		{"a source", func([]string) { write("a_test.go", "package a_test // 2") }, false},
		{"the name", func(args []string) { args[5] = module + "b_test" }, false},
	} {
		write("a_test.go", "package a_test")
		write("a.a", archive("1", "func A()", "return 1"))
		write("imports", imports)
		changed := append([]string(nil), args...)
		c.change(changed)
		if got, _, err := compiled(changed); err != nil || (got == key) != c.same {
			t.Errorf("%s: named %q after %q, %v; want the same: %v", c.what, got, key, err, c.same)
		}
	}
	write("a.a", "no archive")
	if got, _, err := compiled(args); err == nil {
		t.Errorf("an import that is no package: named %q, want an error", got)
	}
	args[5] = module + "a"
	if got, _, err := compiled(args); err != nil || got != "" {
		t.Errorf("a package that is no tests': named %q, %v", got, err)
	}
}
