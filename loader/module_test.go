package loader_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
)

// mostSums is how many lines of go.sum the loader may cost a program.
const mostSums = 45

// TestModule builds a program that uses nothing but the loader, in a module of its own.
// go mod tidy also lists what the tests of an imported package need, so the loader's
// tests count as well.
func TestModule(t *testing.T) {
	root, err := filepath.Abs("..")
	must(t, err)
	dir := t.TempDir()
	write := func(name, text string) { must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	write("go.mod", "module program\n\ngo 1.26.0\n\nrequire github.com/tatami-rate/tatami v0.0.0\n\n"+
		"replace github.com/tatami-rate/tatami => "+root+"\n")
	write("main.go", "package main\n\nimport \"github.com/tatami-rate/tatami/loader\"\n\n"+
		"func main() { println(loader.GCRA) }\n")
	if output, err := goCommand(dir, "mod", "tidy"); err != nil {
		if servers.Required() {
			t.Fatalf("go mod tidy: %v\n%s", err, output)
		}
		t.Skipf("skipped: go or the modules cannot be had: %v\n%s", err, output)
	}
	if output, err := goCommand(dir, "build", "-o", os.DevNull, "."); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	must(t, err)
	lines := bytes.Count(sums, []byte("\n"))
	t.Logf("go.sum has %d lines", lines)
	if lines == 0 || lines > mostSums {
		t.Errorf("go.sum has %d lines, want 1 to %d:\n%s", lines, mostSums, sums)
	}
}

// TestDependencies keeps what the suite needs out of the loader, and container helpers
// out of its tests.
func TestDependencies(t *testing.T) {
	for _, test := range []struct {
		name   string
		args   []string
		absent []string
	}{
		{"loader", []string{"list", "-deps", "."},
			[]string{"testcontainers", "moby", "gopher-lua", "redcon", "gonum", "tatami/precision"}},
		{"tests", []string{"list", "-deps", "-test", ".", "../lua"},
			[]string{"testcontainers", "moby", "gonum"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			output, err := goCommand(".", test.args...)
			if err != nil {
				if servers.Required() {
					t.Fatalf("go list: %v\n%s", err, output)
				}
				t.Skipf("skipped: go or the modules cannot be had: %v\n%s", err, output)
			}
			packages := strings.Fields(string(output))
			if !strings.Contains(string(output), "github.com/redis/go-redis/v9\n") {
				t.Fatalf("go list does not name go-redis among %d packages", len(packages))
			}
			for _, name := range packages {
				for _, absent := range test.absent {
					if strings.Contains(name, absent) {
						t.Errorf("it depends on %s", name)
					}
				}
			}
		})
	}
}

// goCommand runs go in a folder, outside of any workspace.
func goCommand(dir string, args ...string) ([]byte, error) {
	command := exec.Command("go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	return command.CombinedOutput()
}
