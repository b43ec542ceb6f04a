package lua_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

// mode is a form in which redis-cli prints.
type mode struct {
	name    string
	options string // of redis-cli
	env     string
	shows   func(value string) string // one value, of how a terminal shows it; nil: as that
}

// modes are those that a reader may have. redis-cli prints as to a terminal when it writes
// to one, and raw when it does not.
var modes = []mode{
	{name: "terminal", env: "FAKETTY=1"}, // redis-cli's own
	{name: "RESP3", options: "-3 --no-raw"},
	{name: "raw", shows: raw},
	{name: "json", options: "--json", shows: asJSON}, // from redis-cli 7.0 on
}

func raw(value string) string {
	if text, ok := strings.CutPrefix(value, "(error) "); ok {
		return text + "\n"
	}
	if text, err := strconv.Unquote(value); err == nil {
		return text
	}
	return strings.TrimPrefix(value, "(integer) ")
}

func asJSON(value string) string {
	if text, ok := strings.CutPrefix(value, "(error) "); ok {
		return "error:" + strconv.Quote(text)
	}
	if digits, ok := strings.CutPrefix(value, "(integer) "); ok {
		return digits
	}
	return strconv.Quote(strings.Trim(value, `"`))
}

// shown is a line of a terminal's output: the array that it is in, an indent of three a
// level; the numbers of elements, of which each but the first opens an array; a value.
var shown = regexp.MustCompile(`^((?:   )*)((?:\d+\) )*)(.*)$`)

// in is the output of an example as a mode prints it.
func (m mode) in(output string) string {
	if m.shows == nil || output == "" {
		return output
	}
	json := strings.Contains(m.options, "json")
	made, open := "", 0
	for line := range strings.Lines(output) {
		parts := shown.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		level, numbers := len(parts[1])/3, strings.Count(parts[2], ") ")
		if json && made != "" {
			made += strings.Repeat("]", open-level-1) + ","
			numbers--
			level++
		}
		if json {
			made += strings.Repeat("[", numbers)
			open = level + numbers
		}
		if made += m.shows(parts[3]); !json {
			made += "\n"
		}
	}
	if json {
		return made + strings.Repeat("]", open) + "\n"
	}
	return made
}

func TestReadme(t *testing.T) {
	for _, name := range []string{"README.md", "../README.md"} {
		for _, m := range modes {
			t.Run(name+" "+m.name, func(t *testing.T) {
				t.Parallel()
				runExamples(t, name, m)
			})
		}
	}
}

// The redis-cli of the examples is the one on PATH, on a server of the test's own. What the
// shell keeps in a variable is no reader's, so it has no mode.
const redisCLI = `#!/bin/sh
exec "$REAL_CLI" -u "$SERVER" $SHOWN "$@"
`

// runExamples runs every example of a file as it is written, in one shell and on one
// server, so that later ones build on earlier ones.
func runExamples(t *testing.T, name string, m mode) {
	server := servers.ForTest(t)
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		if servers.Required() {
			t.Fatal(err)
		}
		t.Skipf("skipped: %v", err)
	}
	if help, _ := exec.Command(cli, "--help").CombinedOutput(); strings.Contains(m.options, "json") && !strings.Contains(string(help), "--json") {
		t.Skip("skipped: redis-cli has no --json")
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	examples := consoleExamples(string(text))

	const end = "-- end of output --\n"
	script := ""
	for _, example := range examples {
		if strings.HasPrefix(example.command, "redis-cli ") {
			script += m.env + " SHOWN='" + m.options + "' "
		}
		script += example.command + "echo '" + strings.TrimSpace(end) + "'\n"
	}
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "redis-cli"), []byte(redisCLI), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "sh", "-c", script)
	shell.Dir = ".." // the examples name the assets from the top
	shell.Env = append(os.Environ(), "REAL_CLI="+cli, "SERVER="+server.URL, "PATH="+path+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	outputs := strings.SplitAfter(string(out), end)
	if len(examples) == 0 || len(outputs) != len(examples)+1 {
		t.Fatalf("%d examples give %d outputs", len(examples), len(outputs)-1)
	}
	for i, example := range examples {
		if got, want := strings.TrimSuffix(outputs[i], end), m.in(example.output); got != want {
			t.Errorf("$ %sgot\n%swant\n%s", example.command, got, want)
		}
	}
}

// A line that names redis-cli stands where a test runs it, or shows how to.
func TestEveryRedisCLILine(t *testing.T) {
	for name, elsewhere := range map[string][]string{
		"README.md": nil, "../README.md": nil, "../vectors/README.md": nil,
		"../vectors/clients/README.md": {`redis="redis-cli -u $REDIS_URL"`}, // vectors.TestExamples
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		run := 0
		for _, example := range consoleExamples(string(text)) {
			run += strings.Count(example.command, "redis-cli ")
		}
		for _, line := range elsewhere {
			if !strings.Contains(string(text), line) {
				t.Errorf("%s has no %q", name, line)
			}
			run += strings.Count(line, "redis-cli ")
		}
		inBlocks := 0
		for i, block := range strings.Split(string(text), "\n```") {
			if i%2 == 1 { // what is inside
				inBlocks += strings.Count(block, "redis-cli ")
			}
		}
		if inBlocks != run {
			t.Errorf("%s has redis-cli %d times in its blocks, and %d of them are run", name, inBlocks, run)
		}
	}
}

// An output with an array in it, as redis-cli prints it in each form.
func TestModes(t *testing.T) {
	const output = "1) (integer) 1\n2) 1) (integer) 7\n   2) \"\"\n3) 1) 1) (integer) 8\n      2) \"a b\"\n   2) (integer) 9\n4) (integer) 0\n"
	for _, test := range []struct{ mode, output, want string }{
		{"terminal", output, output},
		{"raw", output, "1\n7\n\n8\na b\n9\n0\n"},
		{"json", output, `[1,[7,""],[[8,"a b"],9],0]` + "\n"},
		{"json", "1) 1) (integer) 1\n", "[[1]]\n"},
		{"json", "\"57\"\n", "\"57\"\n"},
		{"json", "(error) BADARG a: b\n", "error:\"BADARG a: b\"\n"},
		{"raw", "(error) BADARG a: b\n", "BADARG a: b\n\n"},
		{"json", "", ""},
	} {
		m := modes[slices.IndexFunc(modes, func(m mode) bool { return m.name == test.mode })]
		if got := m.in(test.output); got != test.want {
			t.Errorf("%s of %q: got %q, want %q", test.mode, test.output, got, test.want)
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
