package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tatami-rate/tatami/emulator/interpreters"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

// evidence plays explained mutants of the suite's script on an interpreter, each call by the
// script too, and returns what speaks against their rules: a difference where there is to be
// none, none where there is to be one, and a script that is not as the native port.
func (s *suite) evidence(ctx context.Context, name, script string, mutants []mutant, of map[string]*rule,
	calls []interpreters.Call) (against []string, err error) {
	var variants []string
	for _, m := range mutants {
		variants = append(variants, m.script)
	}
	outcomes, differences, err := interpreters.Run(ctx, name, script, variants, calls)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.script, err)
	}
	for i, c := range calls {
		if want, ok := s.port(name, c); ok && outcomes[i] != want {
			against = append(against, fmt.Sprintf("%s itself on %s: %s: %s, want %s", s.script, name, show(c), outcomes[i], want))
			break
		}
	}
	for i, m := range mutants {
		r, d := of[m.String()], differences[i]
		differs := slices.Contains(r.differs, name)
		switch {
		case d != nil && !differs:
			against = append(against, fmt.Sprintf("%s says equal on %s: %s\n  %s: %s, the script's is %s",
				r.name, name, m, show(calls[d.Call]), d.Outcome, outcomes[d.Call]))
		case d == nil && differs:
			against = append(against, fmt.Sprintf("%s says that it differs on %s, and of %d calls none shows it: %s",
				r.name, name, len(calls), m))
		}
	}
	return against, nil
}

// port is the outcome of the call by the native port. It reads numbers as Redis' Lua 5.1 does:
// of others ok is only true where the arguments are digits.
func (s *suite) port(name string, c interpreters.Call) (outcome string, ok bool) {
	if c.Refuses != "" || c.Prelude != "" {
		return "", false
	}
	for i, arg := range c.Args {
		plain := arg != "" && strings.Trim(arg, "0123456789") == "" || arg == "fixed" || arg == "sliding"
		if s.script == precision.LimitsV1 {
			plain = plain || arg == "" || arg == "gcra" || i%6 == 0 || digitsBelowZero.MatchString(arg)
		}
		if name != "lua5.1" && !plain {
			return "", false
		}
	}
	after, reply, _ := native.Call(string(s.script), c.Keys, c.Args, native.ServerClock(c.UnixUs))
	return interpreters.Outcome(reply, after), true
}

var digitsBelowZero = regexp.MustCompile(`^-[0-9]+$`)

// show is a call, for a reader.
func show(c interpreters.Call) string {
	text := fmt.Sprintf("%.80q on %s", c.Args, held(c.Keys))
	if c.Refuses != "" {
		text += ", " + c.Refuses + " refused"
	}
	if c.Prelude != "" {
		text += ", after a prelude"
	}
	return fmt.Sprintf("%s at %d us", text, c.UnixUs)
}
