package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// module is the start of the paths of all packages.
const module = "github.com/tatami-rate/tatami/"

// unleash has gremlins name the package's mutants, and tries them. gremlins calls go for
// the coverage of the tests, and finds this program in its place: see goCommand.
// INVERT_NEGATIVES is off, as ARITHMETIC_BASE makes the same mutants.
func (p pkg) unleash(gremlins string, sample uint32, workers int) ([]*mutant, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirs, err := exec.LookPath("go")
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "gomutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	if err := os.Symlink(self, filepath.Join(temp, "go")); err != nil {
		return nil, err
	}
	output := filepath.Join(temp, "output.json")
	args := []string{"unleash", "./" + p.path, "--dry-run", "--output", output,
		"--invert-assignments", "--invert-bitwise", "--invert-logical", "--invert-loopctrl", "--remove-self-assignments",
		"--invert-negatives=false", "--exclude-files", "/"}
	for _, file := range p.without {
		args = append(args, "--exclude-files", "^"+file+"[.]go$")
	}
	cmd := exec.Command(gremlins, args...)
	cmd.Env = append(os.Environ(), "PATH="+temp+string(os.PathListSeparator)+os.Getenv("PATH"),
		"GOMUTANTS_GO="+theirs, "GOMUTANTS_PACKAGE="+p.path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	report, err := os.ReadFile(output)
	if err != nil {
		return nil, fmt.Errorf("gremlins found no mutant: %w", err)
	}
	mutants, source, err := p.read(report)
	if err != nil {
		return nil, err
	}
	if p.large {
		choose(mutants, sample)
	}
	folder, err := filepath.Abs(p.path)
	if err != nil {
		return nil, err
	}
	t := &trials{pkg: p, theirs: theirs, temp: temp, workers: workers, folder: folder, source: source}
	return mutants, t.tryAll(mutants)
}

// read is the mutants of gremlins' report, and the sources of their files.
func (p pkg) read(text []byte) (mutants []*mutant, source map[string]string, err error) {
	var report struct {
		Files []struct {
			FileName  string `json:"file_name"`
			Mutations []struct {
				Type         string
				Line, Column int
			}
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, nil, err
	}
	source = map[string]string{}
	for _, file := range report.Files {
		path := filepath.Join(p.path, file.FileName)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		source[path] = string(text)
		lines := strings.SplitAfter(string(text), "\n")
		for _, found := range file.Mutations {
			before := len(strings.Join(lines[:found.Line-1], ""))
			m := &mutant{file: path, line: found.Line, offset: before + found.Column - 1}
			if err := m.change(strings.TrimSuffix(lines[found.Line-1], "\n"), found.Column-1, found.Type); err != nil {
				return nil, nil, fmt.Errorf("%s:%d:%d: %w", path, found.Line, found.Column, err)
			}
			mutants = append(mutants, m)
		}
	}
	number(mutants)
	return mutants, source, nil
}

// goCommand is go for gremlins, and returns its exit code. It runs no test for a coverage
// profile, and writes one in which all of the package is covered: in a true one the
// conditions of a switch's cases belong to no block, and gremlins would leave them out.
func goCommand(args []string) int {
	var err error
	if profile := slices.Index(args, "-coverprofile") + 1; profile > 0 {
		err = cover(os.Getenv("GOMUTANTS_PACKAGE"), args[profile])
	} else {
		cmd := exec.Command(os.Getenv("GOMUTANTS_GO"), args...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err = cmd.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gomutants:", err)
		return 1
	}
	return 0
}

func cover(path, profile string) error {
	files, err := filepath.Glob(filepath.Join(path, "*.go"))
	if err != nil {
		return err
	}
	text := "mode: set\n"
	for _, file := range files {
		text += module + filepath.ToSlash(file) + ":1.1,1000000.1 1 1\n"
	}
	return os.WriteFile(profile, []byte(text), 0o600)
}
