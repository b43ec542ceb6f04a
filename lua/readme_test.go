package lua_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision/servers"
)

// example is a command of a console block and the output shown below it.
type example struct {
	command, output string
}

// consoleExamples returns the examples of all ```console blocks of a text: a line
// "$ command" each, followed by the lines of its output.
func consoleExamples(text string) []example {
	var examples []example
	inside := false
	for line := range strings.Lines(text) {
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console\n"
		case inside && isCommand:
			examples = append(examples, example{command: command})
		case inside:
			examples[len(examples)-1].output += line
		}
	}
	return examples
}

// The README of the repository names each script with its SHA1.
func TestReadmeNamesTheScripts(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(lua.Sum) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] == "#" {
			continue
		}
		row := slices.IndexFunc(strings.Split(string(text), "\n"), func(row string) bool {
			return strings.HasPrefix(row, "| `"+fields[0]+"` |") && strings.Contains(row, "| `"+fields[1]+"` |")
		})
		if row < 0 {
			t.Errorf("README.md has no row of %s with the SHA1 %s", fields[0], fields[1])
		}
	}
}

func TestReadme(t *testing.T) {
	for _, name := range []string{"README.md", "../README.md"} {
		t.Run(name, func(t *testing.T) { runExamples(t, name) })
	}
}

// runExamples runs every example of a file, in one shell and on one server, so that
// later ones build on earlier ones.
func runExamples(t *testing.T, name string) {
	server := servers.ForTest(t)
	if _, err := exec.LookPath("redis-cli"); err != nil {
		if servers.Required() {
			t.Fatal(err)
		}
		t.Skipf("skipped: %v", err)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	examples := consoleExamples(string(text))

	const end = "-- end of output --\n"
	script := ""
	for _, example := range examples {
		// What the shell keeps in a variable is raw; what a reader sees is not.
		command := example.command
		if args, ok := strings.CutPrefix(command, "redis-cli "); ok {
			command = "redis-cli --no-raw " + args
		}
		script += strings.ReplaceAll(command, "redis-cli ", "redis-cli -u "+server.URL+" ")
		script += "echo '" + strings.TrimSpace(end) + "'\n"
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", script)
	shell.Dir = ".." // the examples name the assets from the top
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	outputs := strings.SplitAfter(string(out), end)
	if len(examples) == 0 || len(outputs) != len(examples)+1 {
		t.Fatalf("%d examples give %d outputs", len(examples), len(outputs)-1)
	}
	for i, example := range examples {
		if got := strings.TrimSuffix(outputs[i], end); got != example.output {
			t.Errorf("$ %sgot\n%s%s has\n%s", example.command, got, name, example.output)
		}
	}
}

func TestConsoleExamples(t *testing.T) {
	text := "```\n$ no\n```\n```console\n$ a b\n1\n2\n$ c\n```\n$ no\n```console\n$ d\n3\n```\n"
	want := []example{{"a b\n", "1\n2\n"}, {"c\n", ""}, {"d\n", "3\n"}}
	if got := consoleExamples(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
