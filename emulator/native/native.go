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
	"strconv"

	"github.com/tatami-rate/tatami/emulator/number"
)

// Clock is the time of a call as the scripts take it: whole seconds S and the
// nanoseconds SubNs below 10^9 on top of them, since one double holds neither today's
// nanoseconds nor their sum. S is NaN for a text that is no clock. Server says that it is
// the server's TIME, not a caller's now_ns: it sets other expiries, and bears no TAT of
// less than 19 digits after 2001.
type Clock struct {
	S, SubNs float64
	Server   bool
}

// CallerClock is the clock of a call that passes nowNs, 0 or more.
func CallerClock(nowNs int64) Clock {
	return Clock{float64(nowNs / 1e9), float64(nowNs % 1e9), false}
}

// ServerClock is the clock of a call that leaves now_ns out, on a server whose TIME
// says unixUs microseconds.
func ServerClock(unixUs int64) Clock {
	return Clock{float64(unixUs / 1e6), float64(unixUs%1e6) * 1000, true}
}

// ParseClock reads the argument now_ns.
func ParseClock(now string) Clock {
	if len(now) > 19 || !isDigits(now) {
		return Clock{S: math.NaN(), SubNs: math.NaN()}
	}
	at := parseInstant(now)
	return Clock{at.S, at.SubNs, false}
}

// Decision is what a script answers and does. With Err set it does nothing, and
// the other fields are zero.
type Decision struct {
	Err                                           string // the text of the error reply
	Status, Remaining, RetryAfterNs, ResetAfterNs int64  // the reply
	Written                                       bool   // whether it writes the state
	TTLS                                          int64  // the EX of that write, in seconds; 0: KEEPTTL
}

// Instant is a time in ns since 1970: whole seconds and the nanoseconds below 10^9.
type Instant struct {
	S, SubNs float64
}

// parseInstant reads digits, at most 19.
func parseInstant(digits string) Instant {
	at := max(len(digits)-9, 0)
	s, _ := number.ToNumber("0" + digits[:at]) // fewer than ten digits leave no seconds
	subNs, _ := number.ToNumber(digits[at:])
	return Instant{s, subNs}
}

// afterNs is the time from another instant to this one, exact below 2^53.
func (i Instant) afterNs(s, subNs float64) float64 {
	return float64((i.S-s)*1e9) + (i.SubNs - subNs)
}

// digits is the instant in decimal ns.
func (i Instant) digits() string {
	if i.S == 0 {
		return strconv.FormatUint(uint64(i.SubNs), 10)
	}
	return strconv.FormatUint(uint64(i.S), 10) + strconv.FormatUint(1e9+uint64(i.SubNs), 10)[1:]
}

// isWhole tells whether x is a whole number in a range.
func isWhole(x, least, greatest float64) bool {
	return x >= least && x <= greatest && math.Floor(x) == x
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}
