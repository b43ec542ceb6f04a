package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mutant is a script with one token changed, or one rounding dropped.
type mutant struct {
	asset string // the script's name
	// line is the changed line without comment and indentation, with {{old => new}} where
	// it is changed, and nth counts from 1 the mutants of the asset for which it is the
	// same. The three name the mutant; a change elsewhere in the asset leaves them.
	line   string
	nth    int
	script string
}

// String names the mutant as survivors.txt does.
func (m mutant) String() string {
	name := m.asset + ": " + m.line
	if m.nth > 1 {
		name += fmt.Sprintf("  (%d)", m.nth)
	}
	return name
}

// swaps are what stands in for an operator or a name.
var swaps = map[string][]string{
	"<": {"<=", ">"}, "<=": {"<", ">="}, ">": {">=", "<"}, ">=": {">", "<="},
	"==": {"~="}, "~=": {"=="},
	"+": {"-", "*", "/", "%"}, "-": {"+", "*", "/", "%"}, "*": {"+", "-", "/", "%"},
	"/": {"+", "-", "*", "%"}, "%": {"+", "-", "*", "/"},
	"and": {"or"}, "or": {"and"}, "not": {""}, "true": {"false"}, "false": {"true"},
	"floor": {"ceil", ""}, "ceil": {"floor", ""}, "min": {"max"}, "max": {"min"},
}

// patternSwaps are what stands in for a part of a pattern or a format.
var patternSwaps = []struct{ part, to string }{
	{"^", ""}, {"$", ""}, {"[1-9]", "%d"}, {"%d*", "%d+"}, {"%d+", "%d*"}, {"%D", "%d"}, {"%09d", "%d"}, {"%.0f", "%d"},
	{"'EX'", "'PX'"}, {"'KEEPTTL'", "'XX'"}, // XX leaves a key that is there without expiry
}

// mutate returns every mutant of an asset: each operator and name of swaps replaced,
// each number one up and one down, each minus of a sign dropped, each term after a
// + or - dropped, which is how the assets round, each floor and ceil dropped, each part of
// a pattern, a format or the option of the expiry replaced, each condition negated, and
// each assignment and return of a name dropped.
func mutate(asset, script string) ([]mutant, error) {
	all, err := tokens(script)
	if err != nil {
		return nil, err
	}
	m := mutations{asset: asset, script: script, seen: map[string]int{}}
	for i, t := range all {
		sign := t.text == "-" && (i == 0 || !all[i-1].endsOperand())
		if t.text == "if" || t.text == "elseif" {
			then := i + slices.IndexFunc(all[i:], func(t token) bool { return t.text == "then" })
			m.add(all[i+1].from, all[then-1].to, "not ("+script[all[i+1].from:all[then-1].to]+")")
		}
		switch {
		case t.kind == numeral:
			m.add(t.from, t.to, "("+t.text+" + 1)")
			m.add(t.from, t.to, "("+t.text+" - 1)")
		case t.kind == quoted:
			if !strings.Contains(t.text, "%") && t.text != "'EX'" && t.text != "'KEEPTTL'" {
				continue // a command or an error's text, which the trials compare as it is
			}
			for _, s := range patternSwaps {
				for at := range t.text {
					if strings.HasPrefix(t.text[at:], s.part) {
						m.add(t.from+at, t.from+at+len(s.part), s.to)
					}
				}
			}
		case sign:
			m.add(t.from, t.to, "")
		case t.text == "floor" || t.text == "ceil":
			for _, to := range swaps[t.text] {
				if to == "" { // math.ceil(x) becomes (x)
					m.add(all[i-2].from, t.to, "")
				} else {
					m.add(t.from, t.to, to)
				}
			}
		default:
			for _, to := range swaps[t.text] {
				m.add(t.from, t.to, to)
			}
			if t.text == "+" || t.text == "-" {
				m.add(all[i-1].to, all[termEnd(all, i+1)].to, "")
			}
		}
	}
	for _, at := range statements.FindAllStringSubmatchIndex(script, -1) {
		if !goesOn.MatchString(script[at[1]:]) {
			m.add(at[2], at[3], "do end")
		}
	}
	return m.mutants, nil
}

// statements are lines inside a block that are nothing but an assignment or the return of
// a name: a script without one of them is a script too.
var statements = regexp.MustCompile(`(?m)^ +([a-z_0-9]+(?:, [a-z_0-9]+)* = .*[^,(\n]|return [a-z]+(?: -- .*)?)$`)

// goesOn fits what follows a line whose statement does not end there.
var goesOn = regexp.MustCompile(`^\n +(\+|-[^-]|\.\.|and |or )`)

// termEnd is the index of the last token of the term that starts with token at.
func termEnd(all []token, at int) int {
	depth := 0
	for i := at; ; i++ {
		switch all[i].text {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
		next := all[i+1]
		ends := next.kind != operator && all[i].endsOperand() || // a statement or and, or, then
			slices.Contains([]string{"+", "-", "..", "<", "<=", ">", ">=", "==", "~=", ",", ")", "]", "}"}, next.text) &&
				all[i].endsOperand()
		if depth == 0 && ends {
			return i
		}
	}
}

type mutations struct {
	asset, script string
	mutants       []mutant
	seen          map[string]int
}

// add is the mutant with the bytes from .. to replaced.
func (m *mutations) add(from, to int, text string) {
	lineFrom := strings.LastIndexByte(m.script[:from], '\n') + 1
	lineTo := to + strings.IndexByte(m.script[to:], '\n')
	marked := m.script[lineFrom:from] + "{{" + m.script[from:to] + " => " + text + "}}" + m.script[to:lineTo]
	code, _, _ := strings.Cut(marked, " -- ")
	line := strings.Join(strings.Fields(code), " ") // a condition may take two lines
	m.seen[line]++
	m.mutants = append(m.mutants, mutant{m.asset, line, m.seen[line], m.script[:from] + text + m.script[to:]})
}
