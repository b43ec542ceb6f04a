package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// What gremlins is told of each end of `go test`.
func TestGoCommand(t *testing.T) {
	temp := t.TempDir()
	fake := filepath.Join(temp, "fake")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nprintf '%s' \"$FAKE_OUTPUT\"\nexit $FAKE_CODE\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOMUTANTS_GO", fake)
	t.Setenv("GOMUTANTS_TEMP", temp)
	t.Setenv("GOMUTANTS_PACKAGE", packages[0].path)
	// What it hands on of a failed test looks like a failure of this one.
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	var err error
	if os.Stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what, output   string
		code, want     int
		looped, waited int
	}{
		{"all pass", "ok  \ta\t0.1s\n", 0, 0, 0, 0},
		{"one fails", "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\ta\t0.105s\nFAIL\n", 1, 1, 0, 0},
		{"a panic", "panic: boom\n\ngoroutine 1\nFAIL\ta\t0.105s\nFAIL\n", 1, 1, 0, 0},
		{"it does not compile", "# a\n./a.go:1:1: invalid operation\nFAIL\ta [build failed]\nFAIL\n", 1, 2, 0, 0},
		{"it has no tests that can be built", "FAIL\ta [setup failed]\nFAIL\n", 1, 3, 0, 0},
		{"go itself fails", "go: no module\n", 1, 3, 0, 0},
		{"no module", "go: no module\n", 2, 3, 0, 0},
		{"it loops", "signal: killed\nFAIL\ta\t31.2s\nFAIL\n", 1, 1, 1, 0},
		{"it waits", "panic: test timed out after 3m0s\n\ngoroutine 1\nFAIL\ta\t180.2s\nFAIL\n", 1, 3, 1, 1},
	} {
		t.Setenv("FAKE_OUTPUT", c.output)
		t.Setenv("FAKE_CODE", strconv.Itoa(c.code))
		if got := goCommand([]string{"test", "-timeout", "9s", "-failfast", "a"}); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
		for name, want := range map[string]int{"looped": c.looped, "waited": c.waited} {
			if text, _ := os.ReadFile(filepath.Join(temp, name)); len(text) != want {
				t.Errorf("%s: %d have %s so far, want %d", c.what, len(text), name, want)
			}
		}
	}
}

// gremlins' first run has to pass, and then all of the package is covered.
func TestCover(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("a", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("a/b.go", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := (pkg{path: "a"}).cover("profile"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("profile")
	if want := "mode: set\n" + module + "a/b.go:1.1,1000000.1 1 1\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v, want %q", text, err, want)
	}
	t.Setenv("GOMUTANTS_GO", "/bin/false")
	t.Setenv("GOMUTANTS_TEMP", t.TempDir())
	t.Setenv("GOMUTANTS_PACKAGE", packages[0].path)
	if code := goCommand([]string{"test", "-cover", "-coverprofile", "none", "a"}); code == 0 {
		t.Error("a first run that fails ends with 0")
	}
	if _, err := os.Stat("none"); err == nil {
		t.Error("a first run that fails has a profile")
	}
}
