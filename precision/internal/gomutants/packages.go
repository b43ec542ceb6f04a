package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package whose mutants are tried, those of its files that decide nothing and are
// left out, and those of its tests that are left out: they run other programs, wait, count
// allocations, or take longer than what they add.
type pkg struct {
	path    string
	without []string
	skip    string
	runs    []string // patterns of tests, tried in this order until one fails
}

var packages = []pkg{
	{path: "emulator/native", skip: "TestNoThirdParty|TestNoAllocation", runs: []string{""}},
}

// has tells whether a file, by its path in the module, is one whose mutants are tried.
func (p pkg) has(file string) bool {
	return filepath.Dir(file) == p.path && !slices.Contains(p.without, strings.TrimSuffix(filepath.Base(file), ".go"))
}
