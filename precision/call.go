package precision

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
)

// Script names one of the scripts.
type Script string

// The scripts.
const (
	GCRAV1   Script = "gcra_v1"
	GCRAV2   Script = "gcra_v2"
	WindowV1 Script = "window_v1"
)

// IsWindow tells a window script from a gcra one.
func (s Script) IsWindow() bool { return s == WindowV1 }

// Grid is the multiple of nanoseconds that a gcra script keeps its TAT on.
func (s Script) Grid() int64 {
	if s == GCRAV1 {
		return grid
	}
	return 1
}

// Call is one call of a script. Burst is of gcra alone, Sliding of window.
type Call struct {
	Amount, PeriodNs, Burst int64
	Sliding                 bool
	Cost, NowNs             int64
	// ServerNs is the server's clock at the call, in whole us; 0: it stands where it
	// stood. With ByServer now_ns is left out, and NowNs is ServerNs.
	ServerNs int64
	ByServer bool
	// Given is a state with credit that stands in a gcra key before the call, as another
	// script left it just then, with the expiry that it has by the rules; "" is none.
	Given string
}

// given is the state that Given is of, and its time to live in ms.
func (c *Call) given() (state State, ttlMs int64) {
	state, _ = ParseState(GCRAV2, c.Given)
	return state, 1000 * gcraTTLS(state.Last, c.NowNs, c.ByServer)
}

// checkGiven tells whether Given is what a script may have left.
func (c *Call) checkGiven(script Script) error {
	state, ok := ParseState(GCRAV2, c.Given)
	if script.IsWindow() || !ok || state.Credit == "" {
		return errors.New("what is given is no TAT with credit")
	}
	if state.Last < state.Value || int64(state.Last) < c.NowNs {
		return errors.New("the last TAT that is given is before the TAT, or the clock")
	}
	return nil
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
	case c.ServerNs < 0 || c.ServerNs%1000 > 0:
		return errors.New("the server's clock is no whole number of us, 0 or more")
	case c.ByServer && (c.ServerNs == 0 || c.NowNs != c.ServerNs):
		return errors.New("without now_ns the server's clock must be given")
	case script.IsWindow() && (c.Amount < 1 || c.Amount > 65535):
		return errors.New("amount is not from 1 to 65535")
	case !script.IsWindow() && (c.Amount < 1 || c.Amount > c.PeriodNs):
		return errors.New("amount is not from 1 to period_ns")
	case !script.IsWindow() && (c.Burst < 1 || c.Burst > most/ceilDiv(c.PeriodNs, c.Amount)):
		return errors.New("burst is not from 1 to 2^52 / interval")
	case c.Given != "":
		return c.checkGiven(script)
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
	args = append(args, strconv.FormatInt(c.Amount, 10), strconv.FormatInt(c.PeriodNs, 10),
		third, strconv.FormatInt(c.Cost, 10))
	if c.ByServer {
		return args
	}
	return append(args, strconv.FormatInt(c.NowNs, 10))
}

// Args is the call's ARGV.
func (c Call) Args(script Script) []string {
	var args []string
	for _, arg := range c.appendArgs(nil, script) {
		args = append(args, arg.(string))
	}
	return args
}

// Outcome is all that can be seen of one call: the reply or the error, and what the
// key holds after it.
type Outcome struct {
	Err string // the error reply, when there is one; the verdict is zero then
	Verdict
	State State
	// TTLMs is the key's time to live in ms after the call, on the server's clock as the
	// call saw it: 0 without a key, -1 without an expiry. A driver that can only bound it
	// gives that bound in TTLSlackMs: it lies in TTLMs .. TTLMs + TTLSlackMs.
	TTLMs, TTLSlackMs int64
}

// State is a key's value. Value is the TAT of a gcra key in ns, or the first 8 bytes of a
// window key as a big-endian number.
type State struct {
	Exists   bool
	PeriodNs uint32 // of a window: the period in ns, mod 2^32
	Value    uint64
	// Of a gcra key that units were given back to: Credit is their sum in ns, a decimal,
	// and Last the largest TAT that spending left, in ns.
	Credit string
	Last   uint64
}

// ParseState reads a key's bytes; ok is false for bytes that no script would have
// written, such as a number that is not canonical.
func ParseState(script Script, text string) (state State, ok bool) {
	if script.IsWindow() {
		if len(text) != 12 {
			return State{}, false
		}
		return State{Exists: true, Value: binary.BigEndian.Uint64([]byte(text)),
			PeriodNs: binary.BigEndian.Uint32([]byte(text[8:]))}, true
	}
	tat, rest, hasRest := strings.Cut(text, " ")
	state.Exists = true
	state.Value, ok = parseTAT(tat)
	if hasRest && ok {
		credit, last, _ := strings.Cut(rest, " ")
		state.Credit = credit
		state.Last, ok = parseTAT(last)
		ok = ok && state.Last > 0 && credit != "" && credit[0] != '0' && isDigits(credit)
	}
	if !ok {
		return State{}, false
	}
	return state, true
}

// parseTAT reads a decimal of at most 19 digits, as it is usually written.
func parseTAT(text string) (tat uint64, ok bool) {
	if len(text) > 19 || !isDigits(text) || text[0] == '0' && text != "0" {
		return 0, false
	}
	tat, err := strconv.ParseUint(text, 10, 64)
	return tat, err == nil
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// Text is the key's bytes.
func (s State) Text(script Script) string {
	switch {
	case script.IsWindow():
		return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, s.Value), s.PeriodNs))
	case s.Credit != "":
		return strconv.FormatUint(s.Value, 10) + " " + s.Credit + " " + strconv.FormatUint(s.Last, 10)
	default:
		return strconv.FormatUint(s.Value, 10)
	}
}

// newCounts is the state with these counts.
func newCounts(c Counts, periodNs int64) State {
	return State{Exists: true, PeriodNs: uint32(periodNs),
		Value: uint64(c.Index)<<32 | uint64(c.Previous)<<16 | uint64(c.Current)}
}

// counts is the state of a window key; that of a missing key is the zero value.
func (s State) counts() Counts {
	return Counts{uint32(s.Value >> 32), uint16(s.Value >> 16), uint16(s.Value)}
}

// lastNs is the TAT that says how long a gcra key has to be kept.
func (s State) lastNs() uint64 {
	if s.Credit != "" {
		return s.Last
	}
	return s.Value
}
