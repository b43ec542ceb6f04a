package main

import (
	"path/filepath"
	"slices"
	"strings"
)

// pkg is a package whose mutants are tried, those of its files that decide nothing and are
// left out, those of its tests that are left out, since they run other programs, wait, count
// allocations, or take longer than what they add, and those that are slow, and are only run
// on what passes the others. Of a large one a sample may do.
type pkg struct {
	path       string
	without    []string
	skip, slow string
	large      bool
}

// The files that are of limits_v1 alone are not tried yet.
var packages = []pkg{
	{path: "emulator/native", without: []string{"limits"}, skip: "TestNoThirdParty|TestNoAllocation"},
	{path: "loader", without: []string{"reserve", "slot", "wait"}, skip: "TestAllocations|TestModule|TestDependencies",
		slow: "TestHungServer|TestRecovery|TestSentAgain|TestDialedAgain|TestSwallowedDials|TestBatchWithoutDeadline|TestFlush.*", large: true},
	// live.go, real.go and restored.go are of real servers, long.go has a hash that takes
	// seconds, and the lemmas are of arithmetic alone.
	{path: "precision", without: []string{"live", "long", "real", "restored",
		"limits", "limits_claims", "limits_drivers", "limits_live", "limits_trace", "settle", "trial"}, skip: "TestLive.*|TestServers.*|TestLemma.*|TestProof.*",
		slow: "TestRun.*|TestOnGrid.*|TestTraceAsText|TestLoad|TestSmallWorld.*", large: true},
	// What is left out of these two are tables of what is asked.
	{path: "precision/internal/controls", without: []string{"calls", "list", "limits"},
		slow: "TestControlsAreRejected|TestFigures|TestScriptsPass.*|TestVectors.*"},
	{path: "vectors/generate", without: []string{"gcra", "window", "serverclock", "unusual", "limits", "limits_claim"}, skip: "TestChangesAreNamed",
		slow: "TestFilesAreUpToDate|TestServerClockAtAnyTime|TestSchema", large: true},
}

// has tells whether a file, by its path in the module, is one whose mutants are tried.
func (p pkg) has(file string) bool {
	return filepath.Dir(file) == p.path && !slices.Contains(p.without, strings.TrimSuffix(filepath.Base(file), ".go"))
}
