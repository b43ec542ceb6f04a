package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	workers = "2" // mutants tried at a time
	// The tests of a mutant may take so much of a processor, many times of what they need,
	// however busy the machine is. What loops ends so, and is killed.
	processorS = "30"
	// What waits for ever ends after this. On a busy machine a run may only be slow, so that
	// alone is no kill.
	patience = "3m"
	// gremlins' own limit, so many times the first run, is never met.
	coefficient = "1000"
)

// ended is how many mutants the limits have ended.
type ended struct{ looped, waited int }

// unleash has gremlins try the package's mutants. gremlins calls go, and finds this program
// in its place: see goCommand and compileCommand. INVERT_NEGATIVES is off, as ARITHMETIC_BASE makes the same
// mutants. ended is how many of
// them each limit has ended.
func (p pkg) unleash(gremlins string) (mutants []mutant, ended ended, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, ended, err
	}
	theirs, err := exec.LookPath("go")
	if err != nil {
		return nil, ended, err
	}
	temp, err := os.MkdirTemp("", "gomutants-")
	if err != nil {
		return nil, ended, err
	}
	defer os.RemoveAll(temp)
	for _, name := range []string{"go", "compile"} {
		if err := os.Symlink(self, filepath.Join(temp, name)); err != nil {
			return nil, ended, err
		}
	}
	output := filepath.Join(temp, "output.json")
	args := []string{"unleash", "./" + p.path, "--output", output, "--workers", workers, "--timeout-coefficient", coefficient,
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
		return nil, ended, err
	}
	report, err := os.ReadFile(output)
	if err != nil {
		return nil, ended, fmt.Errorf("gremlins found no mutant: %w", err)
	}
	for name, n := range map[string]*int{"looped": &ended.looped, "waited": &ended.waited} {
		if text, err := os.ReadFile(filepath.Join(temp, name)); err == nil {
			*n = len(text)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, ended, err
		}
	}
	mutants, err = p.read(report)
	return mutants, ended, err
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
	// What `go test` prints when tests fail, when they do not compile, and when a limit ends
	// them.
	failed   = regexp.MustCompile(`(?m)^FAIL\t\S+\t[0-9.]+s$`)
	unviable = regexp.MustCompile(`(?m)^FAIL\t\S+ \[build failed\]$`)
	looped   = regexp.MustCompile(`(?m)^signal: (killed|CPU time limit exceeded)`)
	waited   = regexp.MustCompile(`(?m)^panic: test timed out after`)
)

// goCommand is go for gremlins, and returns its exit code: 0 for a survivor, 1 for a kill, 2
// for no mutant, and anything else for what gremlins lists as a survivor. It runs the
// package's fast tests alone, on no server, and builds them without what slows that down.
// `go test` ends with 1 also when a mutant does not compile, which gremlins would take for a
// kill.
func goCommand(args []string) int {
	theirs, temp := os.Getenv("GOMUTANTS_GO"), os.Getenv("GOMUTANTS_TEMP")
	if args[0] != "test" {
		cmd := exec.Command(theirs, args...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return exitCode(cmd.Run())
	}
	p := packages[slices.IndexFunc(packages, func(p pkg) bool { return p.path == os.Getenv("GOMUTANTS_PACKAGE") })]
	cmd := exec.Command(theirs, "test", "-count=1", "-short", "-failfast", "-vet=off", "-timeout", patience,
		"-skip", "^("+p.skip+")$", "-ldflags=-s -w", "-gcflags="+module+"...=-N -l -dwarf=false",
		"-toolexec="+filepath.Join(temp, "compile"), `-exec=/bin/sh -c 'ulimit -t `+processorS+` && exec "$0" "$@"'`, module+p.path)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(theirs), "CGO_ENABLED=0", "REQUIRE_SERVERS=", "IMAGES=none",
		"SERVERS_32="+filepath.Join(temp, "none"))
	out, err := cmd.CombinedOutput()
	code := exitCode(err)
	switch {
	case code == 0:
	case unviable.Match(out):
		code = 2
	case waited.Match(out):
		code = max(3, note(filepath.Join(temp, "waited")))
	case looped.Match(out):
		code = max(1, note(filepath.Join(temp, "looped")))
	case failed.Match(out):
		code = 1
	default:
		code = 3
	}
	profile := slices.Index(args, "-coverprofile") + 1 // of gremlins' first run, without a change
	if code == 3 || code != 0 && profile > 0 {
		os.Stderr.Write(out)
	}
	if code == 0 && profile > 0 {
		return exitCode(p.cover(args[profile]))
	}
	return code
}

// cover writes a coverage profile in which all of the package is covered. In a true one the
// conditions of a switch's cases belong to no block, and gremlins would leave them out.
func (p pkg) cover(profile string) error {
	files, err := filepath.Glob(filepath.Join(p.path, "*.go"))
	if err != nil {
		return err
	}
	text := "mode: set\n"
	for _, file := range files {
		text += module + filepath.ToSlash(file) + ":1.1,1000000.1 1 1\n"
	}
	return os.WriteFile(profile, []byte(text), 0o600)
}

// note counts one more in a file, and returns an exit code.
func note(path string) int {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return exitCode(err)
	}
	_, err = file.WriteString("x")
	return exitCode(errors.Join(err, file.Close()))
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
