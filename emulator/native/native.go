// Package native is each script in plain float64 arithmetic, in the script's own order
// and with its names, so that the two can be read side by side. No product that it
// computes is inexact unless the line says so, so a fused multiply-add, which some
// processors give, changes nothing.
//
// x % 1 == 0 is written as floor(x) == x, and a quotient of whole numbers below 2^53
// with floor and ceil in place of %: they say the same with fewer divisions.
// A text that a script cannot read as a number (an absent argument too) is NaN
// here: it fails the same range check.
package native

import (
	"math"

	"github.com/tatami-rate/tatami/internal/number"
)

// Grid is the distance of two doubles from 2^60 to 2^61, on which gcra_v1 works.
const Grid = 256

// Clock is the time of a call as the scripts take it: whole seconds S and the
// nanoseconds Ns below 10^9, since one double holds neither today's nanoseconds
// nor their sum. S is NaN for a text that is no clock. MarginMs is what is added
// to a ttl: 1 with the server's clock, 60000 with a caller's.
type Clock struct {
	S, Ns, MarginMs float64
}

// CallerClock is the clock of a call that passes nowNs, 0 or more.
func CallerClock(nowNs int64) Clock {
	return Clock{float64(nowNs / 1e9), float64(nowNs % 1e9), 60000}
}

// ServerClock is the clock of a call that leaves now_ns out, on a server whose TIME
// says unixUs microseconds.
func ServerClock(unixUs int64) Clock {
	return Clock{float64(unixUs / 1e6), float64(unixUs%1e6) * 1000, 1}
}

// ParseClock reads the argument now_ns.
func ParseClock(now string) Clock {
	if len(now) > 19 || !isDigits(now) {
		return Clock{math.NaN(), math.NaN(), 60000}
	}
	s, ns := splitSecond(now)
	return Clock{s, ns, 60000}
}

// splitSecond reads digits, at most 19, as whole seconds and nanoseconds.
func splitSecond(digits string) (s, ns float64) {
	at := max(len(digits)-9, 0)
	s, _ = number.ToNumber(digits[:at]) // an empty text is 0
	ns, _ = number.ToNumber(digits[at:])
	return s, ns
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

// Decision is what a script answers and does. With Err set it does nothing, and
// the other fields are zero.
type Decision struct {
	Err                                           string // the text of the error reply
	Status, Remaining, RetryAfterNs, ResetAfterNs int64  // the reply
	Written                                       bool   // whether it writes the state
	TTLMs                                         int64  // the PX of that write
}

// GCRAArgs are the arguments of gcra_v1 but the clock.
type GCRAArgs struct {
	Amount, PeriodNs, Burst, Cost float64
}

// ParseTAT reads the state of a gcra key as gcra_v1 does: nanoseconds, rounded up
// to the grid; NaN for what is no TAT, infinite for one above 2^61. A missing key is 0.
func ParseTAT(state string) float64 {
	if !isTAT(state) {
		return math.NaN()
	}
	s, ns := splitSecond(state)
	seconds, rest := s*1e9, ns+number.ModWhole(-ns, Grid)
	if rest > 1<<61-seconds {
		return math.Inf(1)
	}
	return seconds + rest
}

// GCRAV1 is gcra_v1.lua on the state tat, as ParseTAT gives it; it returns the
// state after the call.
func GCRAV1(tat float64, a GCRAArgs, now Clock) (float64, Decision) {
	return GCRAV1OnGrid(Grid, tat, a, now)
}

// GCRAV1OnGrid is GCRAV1 with another grid, a power of two up to 256: on a small
// one every state and input can be tried.
func GCRAV1OnGrid(grid, tat float64, a GCRAArgs, now Clock) (float64, Decision) {
	// Check.
	if !(a.PeriodNs >= 1 && a.PeriodNs <= 1<<52 && math.Floor(a.PeriodNs) == a.PeriodNs) {
		return tat, Decision{Err: "BADARG gcra_v1: period_ns must be a whole number from 1 to 2^52"}
	}
	if !(a.Amount >= 1 && a.Amount <= a.PeriodNs && math.Floor(a.Amount) == a.Amount) {
		return tat, Decision{Err: "BADARG gcra_v1: amount must be a whole number from 1 to period_ns"}
	}
	interval := math.Ceil(a.PeriodNs / a.Amount)
	if !(a.Burst >= 1 && a.Burst <= (1<<52)/interval && math.Floor(a.Burst) == a.Burst) {
		return tat, Decision{Err: "BADARG gcra_v1: burst must be a whole number from 1 to 2^52 / interval, " +
			"where interval = ceil(period_ns / amount)"}
	}
	if !(a.Cost >= 0 && a.Cost <= 1<<52 && math.Floor(a.Cost) == a.Cost) {
		return tat, Decision{Err: "BADARG gcra_v1: cost must be a whole number from 0 to 2^52"}
	}
	interval = math.Ceil(interval/grid) * grid
	tau := interval * a.Burst

	// Clock.
	if math.IsNaN(now.S) {
		return tat, Decision{Err: "BADARG gcra_v1: now_ns must be at most 19 decimal digits"}
	}
	below := number.ModWhole(now.Ns, grid)
	nowGrid := now.S*1e9 + (now.Ns - below)
	up := 0.0
	if below > 0 {
		up = grid
	}
	if nowGrid+up > 1<<61-tau {
		return tat, Decision{Err: "BADARG gcra_v1: now_ns + burst * interval is above 2^61; use gcra_v2"}
	}

	// Read.
	if math.IsNaN(tat) {
		return tat, Decision{Err: "BADSTATE gcra_v1: the key holds something else than a decimal TAT"}
	}
	if tat > 1<<61 {
		return tat, Decision{Err: "BADSTATE gcra_v1: the TAT is above 2^61; use gcra_v2"}
	}
	ahead := tat - nowGrid
	if ahead < 0 {
		ahead = 0
	}

	// Decide, and write. The product may be inexact, but the call is then unfittable.
	status, retry, reset := 0.0, ahead-(tau-float64(a.Cost*interval)), ahead-below
	d := Decision{}
	if retry <= 0 {
		status, retry = 1, 0
		if a.Cost > 0 {
			if ahead < up {
				ahead = up
			}
			ahead = ahead + a.Cost*interval
			reset = ahead - below
			if ahead >= 1<<53 {
				reset = ahead
			}
			tat = nowGrid + ahead
			d.Written, d.TTLMs = true, int64(math.Ceil(reset/1e6)+now.MarginMs)
		}
	} else if a.Cost > a.Burst {
		status, retry = -1, -1
	} else if retry < 1<<53 {
		retry = retry - below
	}
	if reset < 0 {
		reset = 0
	} else if ahead >= 1<<53 {
		reset = ahead
	}
	left, remaining := tau-ahead+up, 0.0
	if left >= tau {
		remaining = a.Burst
	} else if left >= interval {
		remaining = math.Floor(left / interval)
	}
	d.Status, d.Remaining = int64(status), int64(remaining)
	d.RetryAfterNs, d.ResetAfterNs = int64(retry), int64(reset)
	return tat, d
}

// WindowArgs are the arguments of window_v1 but the clock. BadMode is true when
// the mode is neither fixed nor sliding.
type WindowArgs struct {
	Amount, PeriodNs float64
	Sliding, BadMode bool
	Cost             float64
}

// WindowState is the state of a window key: the window's index mod 2^32 and the
// counts of the window before it and of itself. A missing key is the zero value;
// Index is NaN for a text that is no state.
type WindowState struct {
	Exists                   bool
	Index, Previous, Current float64
}

// ParseWindow reads the state of a window key.
func ParseWindow(state string) WindowState {
	if len(state) != 8 {
		return WindowState{Exists: true, Index: math.NaN()}
	}
	b := func(i int) float64 { return float64(state[i]) }
	return WindowState{
		Exists:   true,
		Index:    ((b(0)*256+b(1))*256+b(2))*256 + b(3),
		Previous: b(4)*256 + b(5),
		Current:  b(6)*256 + b(7),
	}
}

// Bytes is the state as the key holds it.
func (s WindowState) Bytes() [8]byte {
	i, p, c := uint32(s.Index), uint16(s.Previous), uint16(s.Current)
	return [8]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i),
		byte(p >> 8), byte(p), byte(c >> 8), byte(c)}
}

// WindowV1 is window_v1.lua on a state; it returns the state after the call.
func WindowV1(stored WindowState, a WindowArgs, now Clock) (WindowState, Decision) {
	// Check.
	amount, w, sliding, cost := a.Amount, a.PeriodNs, a.Sliding, a.Cost
	if !(amount >= 1 && amount <= 65535 && math.Floor(amount) == amount) {
		return stored, Decision{Err: "BADARG window_v1: amount must be a whole number from 1 to 65535; for more use gcra"}
	}
	if !(w >= 1 && w <= 1<<52 && math.Floor(w) == w) {
		return stored, Decision{Err: "BADARG window_v1: period_ns must be a whole number from 1 to 2^52"}
	}
	if a.BadMode {
		return stored, Decision{Err: "BADARG window_v1: mode must be fixed or sliding"}
	}
	if !(cost >= 0 && cost <= 1<<52 && math.Floor(cost) == cost) {
		return stored, Decision{Err: "BADARG window_v1: cost must be a whole number from 0 to 2^52"}
	}

	// Clock.
	if math.IsNaN(now.S) {
		return stored, Decision{Err: "BADARG window_v1: now_ns must be at most 19 decimal digits"}
	}
	seconds := now.S * 1e9
	if 1<<62-seconds <= now.Ns {
		return stored, Decision{Err: "BADARG window_v1: now_ns must be below 2^62"}
	}

	// Window.
	e := number.FmodWhole(seconds, w)
	i := math.Floor((number.FmodWhole(seconds, w*(1<<32))-e)/w + 0.5)
	over := math.Floor((e + now.Ns) / w)
	e = e + now.Ns - over*w
	i = number.ModWhole(i+over, 1<<32)
	left := w - e

	// Read and roll.
	previous, current := 0.0, 0.0
	if math.IsNaN(stored.Index) {
		return stored, Decision{Err: "BADSTATE window_v1: the key holds something else than 8 bytes of counts"}
	}
	if stored.Index == i {
		previous, current = stored.Previous, stored.Current
	} else if number.ModWhole(stored.Index+1, 1<<32) == i {
		previous = stored.Current
	}

	// carried = ceil(previous * left / w)
	carried := 0.0
	if sliding && previous > 0 {
		// the product is inexact, but nothing is added to it before the division
		carried = math.Floor(previous*left/w + 0.5)
		rest := number.ModWhole(w, previous)
		share := (w - rest) / previous
		if left > carried*share+math.Floor(carried*rest/previous) {
			carried = carried + 1
		}
	}

	// Decide.
	status, retry := 1.0, 0.0
	if cost > amount {
		status, retry = -1, -1
	} else if carried+current+cost > amount {
		status, retry = 0, left
		if sliding && current+cost > amount {
			retry = left + w
		}
	} else {
		current = current + cost
	}
	remaining := amount - carried - current
	if remaining < 0 {
		remaining = 0
	}
	reset := 0.0
	if current > 0 {
		reset = left
		if sliding {
			reset = left + w
		}
	} else if sliding && previous > 0 {
		reset = left
	}

	// Write.
	d := Decision{Status: int64(status), Remaining: int64(remaining),
		RetryAfterNs: int64(retry), ResetAfterNs: int64(reset)}
	if status == 1 && cost > 0 {
		stored = WindowState{true, i, previous, current}
		d.Written, d.TTLMs = true, int64(math.Ceil((left+w)/1e6)+now.MarginMs)
	}
	return stored, d
}
