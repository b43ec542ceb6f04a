package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tatami-rate/tatami/emulator/interpreters"
)

//go:embed survivors.txt
var survivorsText string

// rule is why some mutants compute the same.
type rule struct {
	name string
	text string
	// forms are of the mutants' names: a mutant that fits one is listed, and no other.
	forms []*regexp.Regexp
	// differs are the interpreters on which each of the mutants differs from its script; on
	// the others none does.
	differs []string
	mutants []string
}

func (r *rule) fits(mutant string) bool {
	return slices.ContainsFunc(r.forms, func(form *regexp.Regexp) bool { return form.MatchString(mutant) })
}

// parseRules reads survivors.txt: a rule's name, its text, its forms, where it differs, an
// empty line, its mutants. What starts with # is a remark.
func parseRules(survivors string) ([]*rule, error) {
	var rules []*rule
	inHead := false
	for at, line := range strings.Split(strings.TrimSpace(survivors), "\n") {
		fail := func(what string) ([]*rule, error) {
			return nil, fmt.Errorf("survivors.txt:%d: %s: %s", at+1, what, line)
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "rule" && !inHead {
			if slices.ContainsFunc(rules, func(r *rule) bool { return r.name == rest }) {
				return fail("a rule of this name stands above")
			}
			rules, inHead = append(rules, &rule{name: rest}), true
			continue
		}
		if line == "" && len(rules) == 0 {
			continue
		}
		if len(rules) == 0 {
			return fail("there is no rule yet")
		}
		r := rules[len(rules)-1]
		switch {
		case line == "" && inHead && (r.text == "" || len(r.forms) == 0):
			return fail("the rule before has no text or no form")
		case line == "":
			inHead = false
		case !inHead:
			r.mutants = append(r.mutants, line)
		case word == "form":
			form, err := regexp.Compile(rest)
			if err != nil {
				return fail(err.Error())
			}
			r.forms = append(r.forms, form)
		case word == "differs":
			if r.differs = strings.Fields(rest); !subset(r.differs, interpreters.Names) {
				return fail("not an interpreter")
			}
		default:
			r.text = strings.TrimSpace(r.text + " " + line)
		}
	}
	return rules, nil
}

func subset(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// explanations are the rules by the mutants that they list, and what is wrong with them:
// every mutant of all that fits a rule is to be listed under it, and under no other.
func explanations(rules []*rule, all []mutant) (of map[string]*rule, wrong []string) {
	of = map[string]*rule{}
	for _, r := range rules {
		for _, name := range r.mutants {
			if of[name] != nil {
				wrong = append(wrong, fmt.Sprintf("under %s and under %s: %s", of[name].name, r.name, name))
			}
			of[name] = r
		}
	}
	known := map[string]bool{}
	for _, m := range all {
		name := m.String()
		known[name] = true
		for _, r := range rules {
			if fits := r.fits(name); fits && of[name] != r {
				wrong = append(wrong, fmt.Sprintf("has the form of %s, not listed there: %s", r.name, name))
			} else if !fits && of[name] == r {
				wrong = append(wrong, fmt.Sprintf("under %s, not of its form: %s", r.name, name))
			}
		}
	}
	for name, r := range of {
		if !known[name] {
			wrong = append(wrong, fmt.Sprintf("under %s, no mutant: %s", r.name, name))
		}
	}
	slices.Sort(wrong)
	return of, wrong
}
