package loader_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/loader"
)

// The README's table of scripts has the pins: the SHA1 of each and how late it may be.
func TestReadmeScripts(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := loader.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		late := "0 ns"
		if script.Bound > 0 {
			late = fmt.Sprintf("less than %d ns", script.Bound.Nanoseconds())
		}
		_, row, _ := strings.Cut(string(readme), "\n| `"+script.Name+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if want := " | `" + script.SHA1 + "` | " + late + " |"; !strings.HasSuffix(row, want) {
			t.Errorf("README.md has of %s %q, want %q at its end", script.Name, row, want)
		}
	}
}

// The Go code of the README is that of examples, which are compiled: the program is all of
// example_readme_test.go, and the rest stands in example_test.go.
func TestReadmeCode(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		must(t, err)
		return string(text)
	}
	blocks := regexp.MustCompile("(?s)\n```go\n(.*?)```\n").FindAllStringSubmatch(read("../README.md"), -1)
	if len(blocks) != 2 {
		t.Fatalf("README.md has %d blocks of Go, want a program and the lines of a test", len(blocks))
	}
	program := strings.NewReplacer("package main\n", "package loader_test\n", "func main() {", "func Example() {").Replace(blocks[0][1])
	if want := read("example_readme_test.go"); program != want {
		t.Errorf("README.md has the program\n%s\nexample_readme_test.go has\n%s", program, want)
	}
	var lines strings.Builder
	for line := range strings.Lines(blocks[1][1]) {
		lines.WriteString("\t" + line)
	}
	if !strings.Contains(read("example_test.go"), lines.String()) {
		t.Errorf("example_test.go does not have this of README.md:\n%s", blocks[1][1])
	}
}
