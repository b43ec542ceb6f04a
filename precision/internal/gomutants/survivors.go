package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed survivors.txt
var survivorsText string

// waits begins the reason of a mutant whose tests wait for ever.
const waits = "It waits for ever"

// fileOf is the file of a mutant's name.
func fileOf(name string) string {
	file, _, _ := strings.Cut(name, ":")
	return file
}

// changed is what a mutant's name has that its line has not: the change, and the number.
var changed = regexp.MustCompile(`{{(\S+) => \S+}}|  \(\d+\)$`)

// lineOf is the line of a mutant's name, as it is without the change.
func lineOf(name string) string {
	_, text, _ := strings.Cut(name, ": ")
	return changed.ReplaceAllString(text, "$1")
}

// explanations reads survivors.txt: why each survivor does the same, by its name. A reason
// is lines that start with #, and the mutants under it share it. It ends with the name of
// the test that checks it.
func explanations(text string) (map[string]string, error) {
	reasons := map[string]string{}
	reason, inReason := "", false
	for at, line := range strings.Split(strings.TrimSpace(text), "\n") {
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
