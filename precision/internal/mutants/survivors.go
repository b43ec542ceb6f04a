package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed survivors.txt
var survivorsText string

// String names the mutant as survivors.txt does.
func (m mutant) String() string {
	name := m.asset + ": " + m.was + "  =>  " + m.is
	if m.nth > 1 {
		name += fmt.Sprintf("  (%d)", m.nth)
	}
	return name
}

// assetOf is the asset of a mutant's name.
func assetOf(name string) string {
	asset, _, _ := strings.Cut(name, ":")
	return asset
}

// explanations reads survivors.txt: why each survivor computes the same, by its name.
// A reason is lines that start with #, and the mutants under it share it.
func explanations() (map[string]string, error) {
	reasons := map[string]string{}
	reason, inReason := "", false
	for at, line := range strings.Split(strings.TrimSpace(survivorsText), "\n") {
		text, isReason := strings.CutPrefix(line, "# ")
		switch {
		case line == "":
		case isReason && inReason:
			reason += " " + text
		case isReason:
			reason = text
		case reason == "" || reasons[line] != "":
			return nil, fmt.Errorf("survivors.txt:%d: without a reason, or named twice: %s", at+1, line)
		default:
			reasons[line] = reason
		}
		inReason = isReason
	}
	return reasons, nil
}
