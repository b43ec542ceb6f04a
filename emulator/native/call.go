package native

import (
	"math"

	"github.com/tatami-rate/tatami/emulator/number"
)

// Key is what a key holds: nothing, or a text.
type Key struct {
	Exists bool
	Text   string
}

// Call is one call of the script with this name, on texts as the server has them: the
// key, and ARGV, whose now_ns may be left out or be empty; then the clock is server. It
// returns what the key holds after it. ok is false for a name that is no script's.
//
// It is for whole replies and states in tests and tools; a limiter calls the functions of
// the scripts, which allocate nothing.
func Call(script string, key Key, argv []string, server Clock) (after Key, d Decision, ok bool) {
	third := map[string]string{"gcra_v1": "burst", "gcra_v2": "burst", "window_v1": "mode"}[script]
	if third == "" {
		return key, Decision{}, false
	}
	if len(argv) > 5 {
		return key, Decision{Err: "BADARG " + script + ": takes 1 key, then amount period_ns " + third +
			" cost [now_ns]"}, true
	}
	argument := func(i int) string {
		if i < len(argv) {
			return argv[i]
		}
		return ""
	}
	value := func(i int) float64 {
		if x, ok := number.ToNumber(argument(i)); ok {
			return x
		}
		return math.NaN()
	}
	now := server
	if text := argument(4); text != "" {
		now = ParseClock(text)
	}
	after = key
	if third == "mode" {
		mode := argument(2)
		args := WindowArgs{value(0), value(1), mode == "sliding", mode != "sliding" && mode != "fixed", value(3)}
		var state WindowState
		if key.Exists {
			state = ParseWindow(key.Text)
		}
		if d = WindowV1(&state, args, now); d.Written {
			bytes := state.Bytes()
			after = Key{true, string(bytes[:])}
		}
		return after, d, true
	}
	call := GCRAV2
	if script == "gcra_v1" {
		call = GCRAV1
	}
	var state GCRAState
	if key.Exists {
		state = ParseGCRA(key.Text)
	}
	if d = call(&state, GCRAArgs{value(0), value(1), value(2), value(3)}, now); d.Written {
		after = Key{true, state.String()}
	}
	return after, d, true
}
