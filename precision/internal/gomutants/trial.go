package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// The tests of a mutant may take so much of a processor, many times of what they need,
	// however busy the machine is. What loops ends so, and is killed.
	processorS = 30
	memoryKiB  = "8000000" // likewise of addresses, for what loops and keeps
	// What waits for ever ends after this. On a busy machine a run may only be slow, so that
	// alone is no kill, and it is tried again when the others are done.
	patience = "3m"
)

// What became of a mutant.
const (
	killed   = "killed"
	looped   = "looped" // killed by a limit
	lived    = "lived"
	waited   = "waited"
	unviable = "not viable" // it does not compile
	leftOut  = "left out"   // of the sample
)

// trials is the place where a package's mutants are built and run.
type trials struct {
	pkg
	theirs  string // the path of go
	temp    string
	workers int               // mutants tried at a time
	folder  string            // the package's, absolute
	source  map[string]string // of its files, by their path in the module
}

// tryAll builds and tries the mutants, and notes what became of each. Those that do not
// fall it names at once.
func (t *trials) tryAll(mutants []*mutant) error {
	outside, err := t.buildWoven(mutants)
	if err != nil {
		return err
	}
	first, err := t.try(t.binary("woven"), 0)
	if err != nil || first != lived {
		return errors.Join(err, fmt.Errorf("without a change: %s", first))
	}
	one := func(m *mutant) (err error) {
		binary := t.binary("woven")
		if slices.Contains(outside, m) {
			binary = t.binary(strconv.Itoa(m.id))
			defer os.Remove(binary)
			out, err := t.build(binary, map[string]string{m.file: edited(t.source[m.file], m.edit())})
			switch {
			case err != nil && compileError.MatchString(out):
				m.status = unviable
				return nil
			case err != nil:
				return fmt.Errorf("%s: %w\n%s", m, err, out)
			}
		}
		if m.status, err = t.try(binary, m.id); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		if m.status != killed {
			fmt.Fprintf(os.Stderr, "%s: %s\n", m.status, m)
		}
		return nil
	}
	var group errgroup.Group
	group.SetLimit(t.workers)
	for _, m := range mutants {
		if m.status == "" {
			group.Go(func() error { return one(m) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, m := range mutants {
		if m.status == waited { // it may only have been slow beside the others
			if err := one(m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *trials) binary(name string) string { return filepath.Join(t.temp, name+".test") }

var (
	compileError = regexp.MustCompile(`(?m)^\S+:\d+:\d+: `)
	inMutant     = regexp.MustCompile(`(?m)mutant(\d+):\d+:\d+: `)
)

// buildWoven builds one binary of all the mutants that compile, and returns those that it
// cannot hold.
func (t *trials) buildWoven(mutants []*mutant) (outside []*mutant, err error) {
	one := mutants[0].file
	clause, err := parser.ParseFile(token.NewFileSet(), one, t.source[one], parser.PackageClauseOnly)
	if err != nil {
		return nil, err
	}
	byID := map[string]*mutant{}
	for _, m := range mutants {
		byID[strconv.Itoa(m.id)] = m
	}
	for {
		files := map[string][]*mutant{}
		for _, m := range mutants {
			if m.status == "" {
				files[m.file] = append(files[m.file], m)
			}
		}
		outside = nil
		texts := map[string]string{}
		for file, mutants := range files {
			text, others, err := weave(t.source[file], mutants)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			texts[file] = text
			outside = append(outside, others...)
		}
		texts[t.path+"/chosen_mutant.go"] = fmt.Sprintf(declared, clause.Name.Name)
		out, err := t.build(t.binary("woven"), texts)
		if err == nil {
			return outside, nil
		}
		found := inMutant.FindAllStringSubmatch(out, -1)
		if len(found) == 0 {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		for _, match := range found {
			byID[match[1]].status = unviable
		}
	}
}

// build builds the package's tests with these texts in the place of its files, and returns
// what go prints.
func (t *trials) build(binary string, texts map[string]string) (out string, err error) {
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for file, text := range texts {
		path := binary + "." + filepath.Base(file)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		defer os.Remove(path)
		overlay.Replace[filepath.Join(t.folder, filepath.Base(file))] = path
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(binary+".json", text, 0o600); err != nil {
		return "", err
	}
	defer os.Remove(binary + ".json")
	cmd := exec.Command(t.theirs, "test", "-c", "-o", binary, "-overlay", binary+".json", "-vet=off", "-gcflags=-e",
		"-ldflags=-s -w", module+t.path)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err = cmd.CombinedOutput()
	return string(text), err
}

// try runs the package's tests on a mutant, the slow ones after the others.
func (t *trials) try(binary string, id int) (status string, err error) {
	status, err = t.run(binary, id, "-test.skip=^("+t.skip+"|"+t.slow+")$")
	if status == lived && err == nil && t.slow != "" {
		status, err = t.run(binary, id, "-test.run=^("+t.slow+")$")
	}
	return status, err
}

// run runs tests on no server and with no other program at hand.
func (t *trials) run(binary string, id int, tests string) (status string, err error) {
	cmd := exec.Command("/bin/sh", "-c", "ulimit -t "+strconv.Itoa(processorS)+" && ulimit -v "+memoryKiB+` && exec "$0" "$@"`,
		binary, "-test.short", "-test.failfast", "-test.timeout="+patience, tests)
	cmd.Dir = t.folder
	none := filepath.Join(t.temp, "none")
	cmd.Env = append(os.Environ(), "PATH="+none, "REQUIRE_SERVERS=", "REDIS_URL=", "IMAGES=none", "SERVERS_32="+none,
		fmt.Sprintf("%s=%d", chooses, id))
	out, err := cmd.CombinedOutput()
	status, err = ending(string(out), err)
	if used := cmd.ProcessState; status == waited && used.UserTime()+used.SystemTime() > processorS*time.Second/2 {
		status = looped // though on a busy machine it did not come to its limit
	}
	if err != nil || id == 0 && status != lived {
		os.Stderr.Write(out)
	}
	return status, err
}

var (
	panicked = regexp.MustCompile(`(?m)^(panic|fatal error|runtime): `)
	timedOut = regexp.MustCompile(`(?m)^panic: test timed out after`)
)

// ending is what the end of a test binary says of a mutant: what it printed, and how it
// ended.
func ending(out string, end error) (status string, err error) {
	var exit *exec.ExitError
	switch {
	case end == nil:
		return lived, nil
	case !errors.As(end, &exit):
		return "", end
	}
	code := exit.ExitCode()
	wait, _ := exit.Sys().(syscall.WaitStatus)
	switch {
	case timedOut.MatchString(out):
		return waited, nil
	case code == 1, // a test failed, or an example ended by log.Fatal
		code == 2 && panicked.MatchString(out):
		return killed, nil
	case wait.Signaled() && (wait.Signal() == syscall.SIGKILL || wait.Signal() == syscall.SIGXCPU):
		return looped, nil
	}
	return "", end
}
