// Package controls holds deliberately wrong scripts, one published fault each. A suite
// that passes one of them proves nothing, so each is played by the same drivers and
// traces as the scripts, and judged by the same judge.
package controls

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// The controls that are scripts of their own.
var (
	//go:embed nearest.lua
	nearest string
	//go:embed refill.lua
	refill string
	//go:embed resets.lua
	resets string
)

// control is one fault: a text that is played in place of a script.
type control struct {
	fault  string
	script precision.Script // what it claims to be
	text   string           // "": the script's own, patched
	patch  []replacement
	calls  []precision.Call       // on which the fault shows
	limits []precision.LimitsCall // of limits_v1
	// expected is what is wrong with it, in the order below. Just that must be seen.
	expected []string
}

// replacement changes a piece of a script that is there exactly once.
type replacement struct{ old, new string }

// The ways to be wrong: admitted before the exact instant or refused after it, and
// what the judge counts.
const (
	early      = "early"
	late       = "late"
	reply      = "reply"
	state      = "state"
	ttl        = "ttl"
	difference = "difference" // from the native port
)

// source is the control's text.
func (c *control) source() (string, error) {
	if c.text != "" {
		return c.text, nil
	}
	text := lua.Assets[string(c.script)]
	for _, r := range c.patch {
		if n := strings.Count(text, r.old); n != 1 {
			return "", fmt.Errorf("%s: %s has %d times %q, not once", c.fault, c.script, n, r.old)
		}
		text = strings.Replace(text, r.old, r.new, 1)
	}
	return text, nil
}
