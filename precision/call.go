package precision

import (
	"errors"
	"strconv"

	"github.com/tatami-rate/tatami/emulator/native"
)

// Script names one of the scripts.
type Script string

// The scripts.
const (
	GCRAV1   Script = "gcra_v1"
	GCRAV2   Script = "gcra_v2"
	WindowV1 Script = "window_v1"
	WindowV2 Script = "window_v2"
)

// IsWindow tells a window script from a gcra one.
func (s Script) IsWindow() bool { return s == WindowV1 || s == WindowV2 }

const grid = native.Grid

// Grid is the multiple of nanoseconds that a gcra script keeps its TAT on.
func (s Script) Grid() int64 {
	if s == GCRAV1 {
		return grid
	}
	return 1
}

// Call is one call of a script with a caller's clock. Burst is of gcra alone,
// Sliding of window.
type Call struct {
	Amount, PeriodNs, Burst int64
	Sliding                 bool
	Cost, NowNs             int64
}

// Check tells whether the limit and the cost are in the range that a script takes, and
// the clock is not before 1970; how late it may be is another question.
func (c Call) Check(script Script) error {
	const most = 1 << 52
	switch {
	case c.PeriodNs < 1 || c.PeriodNs > most:
		return errors.New("period_ns is not from 1 to 2^52")
	case c.Cost < 0 || c.Cost > most:
		return errors.New("cost is not from 0 to 2^52")
	case c.NowNs < 0:
		return errors.New("now_ns is below 0")
	case script.IsWindow() && (c.Amount < 1 || c.Amount > 65535):
		return errors.New("amount is not from 1 to 65535")
	case !script.IsWindow() && (c.Amount < 1 || c.Amount > c.PeriodNs):
		return errors.New("amount is not from 1 to period_ns")
	case !script.IsWindow() && (c.Burst < 1 || c.Burst > most/ceilDiv(c.PeriodNs, c.Amount)):
		return errors.New("burst is not from 1 to 2^52 / interval")
	}
	return nil
}

// appendArgs appends the call's ARGV to args.
func (c Call) appendArgs(args []any, script Script) []any {
	third := strconv.FormatInt(c.Burst, 10)
	if script.IsWindow() {
		third = "fixed"
		if c.Sliding {
			third = "sliding"
		}
	}
	return append(args, strconv.FormatInt(c.Amount, 10), strconv.FormatInt(c.PeriodNs, 10),
		third, strconv.FormatInt(c.Cost, 10), strconv.FormatInt(c.NowNs, 10))
}

// Outcome is all that can be seen of one call: the reply or the error, and what the
// key holds after it.
type Outcome struct {
	Err string // the error reply, when there is one; the verdict is zero then
	Verdict
	State State
	// TTLMs is the key's time to live in ms, as set by the last write; 0 without a
	// key. A driver that can only bound it gives that bound in TTLSlackMs: the ttl
	// set lies in TTLMs .. TTLMs + TTLSlackMs.
	TTLMs, TTLSlackMs int64
}

// State is a key's value: a TAT, or the 8 bytes of a window as a big-endian number.
type State struct {
	Exists bool
	Value  uint64
}

// parseState reads a key's bytes; ok is false for bytes that the script would not
// have written, such as a number that is not canonical.
func parseState(script Script, text string) (state State, ok bool) {
	if script.IsWindow() {
		if len(text) != 8 {
			return State{}, false
		}
		for i := range 8 {
			state.Value = state.Value<<8 | uint64(text[i])
		}
		return State{true, state.Value}, true
	}
	value, err := strconv.ParseUint(text, 10, 63)
	return State{true, value}, err == nil && strconv.FormatUint(value, 10) == text
}

// newCounts is the state with these counts.
func newCounts(c Counts) State {
	return State{true, uint64(c.Index)<<32 | uint64(c.Previous)<<16 | uint64(c.Current)}
}

// counts is the state of a window key; that of a missing key is the zero value.
func (s State) counts() Counts {
	return Counts{uint32(s.Value >> 32), uint16(s.Value >> 16), uint16(s.Value)}
}
