package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module is the start of the paths of all packages that a mutant may change.
const module = "github.com/tatami-rate/tatami/"

// compileCommand runs a tool of go's, as go's flag -toolexec asks, and returns its exit code.
// A package of tests is compiled once as long as what it imports has the same declarations:
// go would do it anew for each mutant, which takes longer than all the rest. The linker
// refuses a package that was compiled for other declarations than it finds.
func compileCommand(tool string, args []string) int {
	run := func() int {
		cmd := exec.Command(tool, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		return exitCode(cmd.Run())
	}
	key, output, err := compiled(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gomutants:", err)
		return 3
	}
	if filepath.Base(tool) != "compile" || key == "" {
		return run()
	}
	kept := filepath.Join(filepath.Dir(os.Args[0]), key)
	if text, err := os.ReadFile(kept); err == nil {
		return exitCode(os.WriteFile(output, text, 0o600))
	}
	if code := run(); code != 0 {
		return code
	}
	text, err := os.ReadFile(output)
	if err == nil {
		part := kept + strconv.Itoa(os.Getpid()) // another worker may read it
		err = os.WriteFile(part, text, 0o600)
		if err == nil {
			err = os.Rename(part, kept)
		}
	}
	return exitCode(err)
}

// compiled names what the compiler makes of these arguments, and where it puts it. The name
// is empty for all but packages of tests.
func compiled(args []string) (key, output string, err error) {
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 && i+1 < len(args) {
			return args[i+1]
		}
		return ""
	}
	if !strings.HasSuffix(value("-p"), "_test") {
		return "", "", nil
	}
	sum := sha256.New()
	for i, arg := range args {
		switch {
		case strings.HasSuffix(arg, ".go"):
			source, err := os.ReadFile(arg)
			if err != nil {
				return "", "", err
			}
			fmt.Fprintf(sum, "%s %x\n", filepath.Base(arg), sha256.Sum256(source))
		case i > 0 && slices.Contains([]string{"-o", "-importcfg", "-trimpath", "-buildid"}, args[i-1]):
		default:
			fmt.Fprintln(sum, arg)
		}
	}
	imports, err := os.ReadFile(value("-importcfg"))
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(imports)) {
		name, file, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "packagefile ")), "=")
		if ok && strings.HasPrefix(name, module) {
			declared, err := declarations(file)
			if err != nil {
				return "", "", err
			}
			line = fmt.Sprintf("%s %x\n", name, sha256.Sum256(declared))
		}
		io.WriteString(sum, line)
	}
	return hex.EncodeToString(sum.Sum(nil)), value("-o"), nil
}

// declarations is what a compiled package tells those who import it: the first file of the
// archive, after a text that ends with $$B.
func declarations(archive string) ([]byte, error) {
	text, err := os.ReadFile(archive)
	if err != nil {
		return nil, err
	}
	const begin, header = "!<arch>\n", 60
	if len(text) < len(begin)+header || !bytes.HasPrefix(text, []byte(begin+"__.PKGDEF")) {
		return nil, fmt.Errorf("%s is no package", archive)
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(text[len(begin)+48 : len(begin)+58])))
	if err != nil {
		return nil, err
	}
	text = text[len(begin)+header:]
	_, declared, ok := bytes.Cut(text[:min(size, len(text))], []byte("\n$$B\n"))
	if !ok {
		return nil, fmt.Errorf("%s has no declarations", archive)
	}
	return declared, nil
}
