package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	workers = "2" // mutants tried at a time
	// A mutant may take so many times as long as the first run, by the clock on the wall,
	// building included. What waits for ever ends so.
	patience = "30"
	// The tests of a mutant may take so much of a processor, many times of what they need,
	// however busy the machine is. What loops ends so, and is killed.
	processorS = "30"
)

// unleash has gremlins try the package's mutants. gremlins calls go, and finds this program
// in its place: see goCommand and compileCommand. INVERT_NEGATIVES is off, as ARITHMETIC_BASE makes the same
// mutants. looped is how many of them the limit of processor time has ended.
func (p pkg) unleash(gremlins string) (mutants []mutant, looped int, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	theirs, err := exec.LookPath("go")
	if err != nil {
		return nil, 0, err
	}
	temp, err := os.MkdirTemp("", "gomutants-")
	if err != nil {
		return nil, 0, err
	}
	defer os.RemoveAll(temp)
	for _, name := range []string{"go", "compile"} {
		if err := os.Symlink(self, filepath.Join(temp, name)); err != nil {
			return nil, 0, err
		}
	}
	output := filepath.Join(temp, "output.json")
	args := []string{"unleash", "./" + p.path, "--output", output, "--workers", workers, "--timeout-coefficient", patience,
		"--invert-assignments", "--invert-bitwise", "--invert-logical", "--invert-loopctrl", "--remove-self-assignments",
		"--invert-negatives=false", "--exclude-files", "/"}
	for _, file := range p.without {
		args = append(args, "--exclude-files", "^"+file+"[.]go$")
	}
	cmd := exec.Command(gremlins, args...)
	cmd.Env = append(os.Environ(), "PATH="+temp+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOMUTANTS_GO="+theirs, "GOMUTANTS_PACKAGE="+p.path, "GOMUTANTS_TEMP="+temp)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, 0, err
	}
	report, err := os.ReadFile(output)
	if err != nil {
		return nil, 0, fmt.Errorf("gremlins found no mutant: %w", err)
	}
	if text, err := os.ReadFile(filepath.Join(temp, "loops")); err == nil {
		looped = len(text)
	}
	mutants, err = p.read(report)
	return mutants, looped, err
}

// read is the mutants of gremlins' report.
func (p pkg) read(text []byte) ([]mutant, error) {
	var report struct {
		Files []struct {
			FileName  string `json:"file_name"`
			Mutations []struct {
				Type, Status string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	var mutants []mutant
	for _, file := range report.Files {
		path := filepath.Join(p.path, file.FileName)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range file.Mutations {
			text, err := change(lines[m.Line-1], m.Column-1, m.Type)
			if err != nil {
				return nil, fmt.Errorf("%s:%d:%d: %w", path, m.Line, m.Column, err)
			}
			mutants = append(mutants, mutant{file: path, line: m.Line, text: text, status: m.Status})
		}
	}
	return number(mutants), nil
}

var (
	// What `go test` prints when tests fail, when they do not compile, and when the limit of
	// processor time ends them.
	failed   = regexp.MustCompile(`(?m)^FAIL\t\S+\t[0-9.]+s$`)
	unviable = regexp.MustCompile(`(?m)^FAIL\t\S+ \[build failed\]$`)
	looped   = regexp.MustCompile(`(?m)^signal: (killed|CPU time limit exceeded)`)
)

// goCommand is go for gremlins, and returns its exit code: 0 for a survivor, 1 for a kill, 2
// for no mutant. It runs the package's fast tests alone, on no server, and builds them
// without what slows that down. `go test` ends with 1 also when a mutant does not compile,
// which gremlins would take for a kill; here that is 2. Anything else is no kill either.
func goCommand(args []string) int {
	theirs, temp := os.Getenv("GOMUTANTS_GO"), os.Getenv("GOMUTANTS_TEMP")
	if args[0] != "test" {
		cmd := exec.Command(theirs, args...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return exitCode(cmd.Run())
	}
	at := slices.IndexFunc(packages, func(p pkg) bool { return p.path == os.Getenv("GOMUTANTS_PACKAGE") })
	p := packages[at]
	flags := []string{"test", "-count=1", "-short", "-vet=off", "-skip", "^(" + p.skip + ")$", "-ldflags=-s -w",
		"-gcflags=" + module + "...=-N -l -dwarf=false", "-toolexec=" + filepath.Join(temp, "compile"),
		`-exec=/bin/sh -c 'ulimit -t ` + processorS + ` && exec "$0" "$@"'`}
	cmd := exec.Command(theirs, slices.Concat(flags, args[1:])...)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(theirs), "CGO_ENABLED=0", "IMAGES=none", "REQUIRE_SERVERS=")
	out, err := cmd.CombinedOutput()
	code := exitCode(err)
	switch {
	case code == 0:
	case unviable.Match(out):
		code = 2
	case failed.Match(out):
		code = 1
		if looped.Match(out) {
			file, err := os.OpenFile(filepath.Join(temp, "loops"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = file.WriteString("x")
			}
			if err != nil {
				code = 3
			}
		}
	default:
		code = 3
	}
	if code == 3 || slices.Contains(args, "-coverprofile") {
		os.Stderr.Write(out)
	}
	return code
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "gomutants:", err)
		return 3
	}
}
