package main

import (
	"fmt"
	"regexp"
)

// kind is what a token is, as far as the mutations ask.
type kind int

const (
	word kind = iota // a name or a keyword
	numeral
	quoted
	operator // everything else
)

// token is a piece of a script: its bytes are from .. to.
type token struct {
	kind     kind
	text     string
	from, to int
}

// lexemes are what an asset is made of: blanks and comments of one line, which are
// skipped, and the four kinds in the order of their constants.
var lexemes = regexp.MustCompile(`^(?:(\s+|--[^\n]*)` +
	`|([A-Za-z_]\w*)` +
	`|(\d+(?:\.\d+)?(?:e\d+)?)` +
	`|('(?:[^'\\\n]|\\.)*')` +
	`|(\.\.|[<>=~]=|[-+*/%^#<>=(){}\[\],.]))`)

// tokens splits a script. A script with anything that the assets do not use, such as
// a long comment, is an error.
func tokens(script string) ([]token, error) {
	var all []token
	for at := 0; at < len(script); {
		match := lexemes.FindStringSubmatchIndex(script[at:])
		if match == nil {
			return nil, fmt.Errorf("at byte %d: no token starts with %.20q", at, script[at:])
		}
		to := at + match[1]
		for k := word; k <= operator; k++ {
			if match[4+2*k] >= 0 {
				all = append(all, token{k, script[at:to], at, to})
			}
		}
		at = to
	}
	return all, nil
}

// keywords are the words that end no operand.
var keywords = map[string]bool{"local": true, "if": true, "then": true, "else": true, "elseif": true,
	"return": true, "and": true, "or": true, "not": true}

// endsOperand tells whether an operand may end with the token, so that a minus after
// it is a difference, and a word after it begins a statement.
func (t token) endsOperand() bool {
	switch t.kind {
	case word:
		return !keywords[t.text] && t.text != "end"
	case operator:
		return t.text == ")" || t.text == "]" || t.text == "}"
	default:
		return true
	}
}
