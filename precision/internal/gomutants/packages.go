package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package whose mutants are tried, those of its files that decide nothing and are
// left out, and which of its tests the mutants are held against.
type pkg struct {
	path      string
	without   []string
	run, skip string
}

var packages = []pkg{
	{path: "emulator/native", run: "^TestVectors$", skip: "^$"},
	// What is skipped builds other modules, or waits.
	{path: "loader", run: ".", skip: "^(TestModule|TestDependencies|TestHungServer|TestAllocations)$"},
}

// has tells whether a file, by its path in the module, is one whose mutants are tried.
func (p pkg) has(file string) bool {
	return filepath.Dir(file) == p.path && !slices.Contains(p.without, strings.TrimSuffix(filepath.Base(file), ".go"))
}
