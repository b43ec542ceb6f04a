package main

import (
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"hash/fnv"
	"io"
	"slices"
	"strings"
)

// mutant is a line with one operator changed, and what became of it.
type mutant struct {
	file   string
	line   int
	offset int    // of the operator, in the file
	was    string // the operator
	is     string
	text   string // of the line, with {{was => is}} in the operator's place
	nth    int    // of the same change of the same line in the file
	id     int    // from 1 on
	status string // what became of it
}

// String names the mutant as survivors.txt does.
func (m *mutant) String() string {
	name := m.file + ": " + m.text
	if m.nth > 1 {
		name += fmt.Sprintf("  (%d)", m.nth)
	}
	return name
}

// changes is what gremlins makes of a token, by its name for the kind of change.
var changes = map[string]map[token.Token]token.Token{
	"ARITHMETIC_BASE": {token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
		token.REM: token.MUL},
	"CONDITIONALS_BOUNDARY": {token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR},
	"CONDITIONALS_NEGATION": {token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.LEQ: token.GTR,
		token.GTR: token.LEQ, token.GEQ: token.LSS},
	"INCREMENT_DECREMENT": {token.INC: token.DEC, token.DEC: token.INC},
	"INVERT_LOGICAL":      {token.LAND: token.LOR, token.LOR: token.LAND},
	"INVERT_LOOPCTRL":     {token.BREAK: token.CONTINUE, token.CONTINUE: token.BREAK},
	"INVERT_BITWISE": {token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND, token.AND_NOT: token.AND,
		token.SHL: token.SHR, token.SHR: token.SHL},
	"INVERT_ASSIGNMENTS": {token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
		token.MUL_ASSIGN: token.QUO_ASSIGN, token.QUO_ASSIGN: token.MUL_ASSIGN},
	"REMOVE_SELF_ASSIGNMENTS": {token.ADD_ASSIGN: token.ASSIGN, token.SUB_ASSIGN: token.ASSIGN,
		token.MUL_ASSIGN: token.ASSIGN, token.QUO_ASSIGN: token.ASSIGN},
}

// change makes m the change of the token at a column of the line, which counts from 0.
func (m *mutant) change(line string, column int, kind string) error {
	before, rest := line[:column], line[column:]
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(rest)), []byte(rest), nil, 0)
	_, was, _ := s.Scan()
	is, ok := changes[kind][was]
	if !ok {
		return fmt.Errorf("%s of %s is no change that is known", kind, was)
	}
	m.was, m.is = was.String(), is.String()
	m.text = strings.TrimSpace(fmt.Sprintf("%s{{%s => %s}}%s", before, m.was, m.is, strings.TrimPrefix(rest, m.was)))
	return nil
}

// number tells mutants of one name apart, in the order of the lines.
func number(mutants []*mutant) {
	slices.SortStableFunc(mutants, func(a, b *mutant) int { return cmp.Or(strings.Compare(a.file, b.file), a.line-b.line) })
	seen := map[string]int{}
	for i, m := range mutants {
		name := m.String()
		seen[name]++
		m.nth, m.id = seen[name], i+1
	}
}

// choose leaves out all but about one mutant in n. Which ones hangs on their names alone, so
// they are the same in every run, and a change elsewhere changes nothing.
func choose(mutants []*mutant, n uint32) {
	for _, m := range mutants {
		hash := fnv.New32a()
		io.WriteString(hash, m.String())
		if hash.Sum32()%n != 0 {
			m.status = leftOut
		}
	}
}
