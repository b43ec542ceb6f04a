package loader_test

import (
	"os"
	"strings"
	"testing"
)

// The Go code of the README is an example's, which is compiled.
func TestReadmeCode(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```go\n")
	code, _, closed := strings.Cut(rest, "```\n")
	if !found || !closed {
		t.Fatal("README.md has no Go code")
	}
	var indented strings.Builder
	for line := range strings.Lines(code) {
		indented.WriteString("\t" + line)
	}
	if !strings.Contains(string(examples), indented.String()) {
		t.Errorf("example_test.go does not have this of README.md:\n%s", code)
	}
}
