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
)

// control is one fault: a text that is played in place of a script.
type control struct {
	fault  string
	script precision.Script // what it claims to be
	text   string           // "": the script's own, patched
	patch  []replacement
	calls  []precision.Call // on which the fault shows
	// expected is what is wrong with it. Each must be seen, or the suite is too weak.
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

// gcraTTL is the expiry that gcra_v2 sets.
const gcraTTL = "format('%d', (ahead + -ahead % 1e6) / 1e6 + margin_ms)"

// list is every control. A patch of a ttl leaves the margin out, as the published
// scripts do: the minute that a caller's clock is given would cover the fault.
func list() []control {
	const (
		us     = int64(1e3)
		ms     = int64(1e6)
		second = int64(1e9)
	)
	gcra := func(amount, periodNs, burst int64) precision.Call {
		return precision.Call{Amount: amount, PeriodNs: periodNs, Burst: burst, Cost: 1}
	}
	window := func(amount, periodNs int64, sliding bool) precision.Call {
		return precision.Call{Amount: amount, PeriodNs: periodNs, Sliding: sliding, Cost: 1}
	}
	return []control{
		{
			fault: "TAT rounded to nearest, interval 1100 ns", script: precision.GCRAV2, text: nearest,
			calls:    every(gcra(1, 1100, 64), 10000, 550),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "TAT rounded to nearest, interval 100 ns", script: precision.GCRAV2, text: nearest,
			calls:    every(gcra(1, 100, 64), 10000, 50),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "state through tostring, 14 digits", script: precision.GCRAV2,
			patch: []replacement{{"local tat = format('%d%09d', tat_s, tat_ns)",
				"local tat = format('%.0f', tonumber(tostring(tat_s * 1e9 + tat_ns)))"}},
			calls:    every(gcra(7000, second, 10), 10000, 70*us),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "interval floored", script: precision.GCRAV2,
			patch: []replacement{{"(period_ns + -period_ns % amount) / amount",
				"(period_ns - period_ns % amount) / amount"}},
			calls:    every(gcra(400_000_000, second, 10), 10000, 1),
			expected: []string{early, reply, state, difference},
		}, {
			fault: "ttl floored to seconds", script: precision.GCRAV2,
			patch: []replacement{{gcraTTL,
				"format('%d', math.max((ahead - ahead % 1e9) / 1e9 * 1000, 1))"}},
			calls:    every(gcra(3, second, 1), 1000, 10*ms),
			expected: []string{early, ttl, difference},
		}, {
			fault: "ttl forgets the cost", script: precision.GCRAV2,
			patch: []replacement{{gcraTTL,
				"format('%d', math.ceil((ahead - cost * interval) / 1e6) + 1)"}},
			calls:    every(gcra(1, 10*second, 1), 1000, 100*ms),
			expected: []string{early, ttl, difference},
		}, {
			fault: "burst off by one", script: precision.GCRAV2,
			patch:    []replacement{{"local tau = interval * burst", "local tau = interval * (burst - 1)"}},
			calls:    every(gcra(1, second, 1), 1000, 100*ms),
			expected: []string{late, reply, difference},
		}, {
			fault: "refill floored on each call", script: precision.GCRAV2, text: refill,
			calls:    every(gcra(5, second, 10), 500, 20*ms),
			expected: []string{late, reply, state, difference},
		}, {
			fault: "% for fmod in the window's index", script: precision.WindowV2,
			patch: []replacement{
				{"local e = fmod(seconds, w)", "local e = seconds % w"},
				{"fmod(seconds, w * 2^32)", "seconds % (w * 2^32)"},
			},
			calls:    every(window(5, 7919, false), 10000, 500),
			expected: []string{early, late, reply, state, difference},
		}, {
			fault: "window's test with rounded products", script: precision.WindowV2,
			patch: []replacement{{"carried = previous * left / w + 0.5", "carried = previous * left / w"},
				{"carried = carried - carried % 1", "carried = math.ceil(carried)"},
				{"  if left > carried * ((w - spare) / previous) + (part - part % previous) / previous then\n" +
					"    carried = carried + 1\n  end\n", ""}},
			calls:    precision.NewFading(precision.WindowV2, 65535, 2_345_678_901_234_567, 500).Calls,
			expected: []string{early, reply, difference},
		}, {
			fault: "refused calls are charged", script: precision.WindowV2,
			patch: []replacement{
				{"  status, retry = 0, gap + left\n", "  status, retry, current = 0, gap + left, math.min(current + cost, 65535)\n"},
				{"if status == 1 and cost > 0 then", "if status >= 0 and cost > 0 then"},
			},
			calls:    every(window(10, second, true), 1000, 20*ms),
			expected: []string{late, reply, state, difference},
		}, {
			fault: "retry rounded down to ms", script: precision.GCRAV2,
			patch: []replacement{{"  status, retry = -1, -1\n",
				"  status, retry = -1, -1\nelse\n  retry = retry - retry % 1e6\n"}},
			calls:    every(gcra(7, second, 7), 1000, 10*ms),
			expected: []string{reply, difference},
		}, {
			fault: "a clock behind resets the window (window_v1)", script: precision.WindowV2, text: lua.WindowV1,
			calls:    straddling(window(10, second, false), 500),
			expected: []string{early, reply, state, difference},
		},
	}
}
