package native

import (
	"math"
	"strings"

	"github.com/tatami-rate/tatami/emulator/number"
)

// Grid is the distance of two doubles from 2^60 to 2^61, on which gcra_v1 works.
const Grid = 256

// GCRAArgs are the arguments of a gcra script but the clock.
type GCRAArgs struct {
	Amount, PeriodNs, Burst, Cost float64
}

// GCRAState is what a gcra key holds. A missing key is the zero value. TAT.S is NaN for a
// text that is no state.
type GCRAState struct {
	Exists bool
	TAT    Instant
	// Credit is what limits_v1 has given back in all, in decimal ns, and Last the largest
	// TAT that spending left; empty and zero where nothing was given back.
	Credit string
	Last   Instant
}

// ParseGCRA reads the state of a gcra key.
func ParseGCRA(state string) GCRAState {
	state, rest, spaced := strings.Cut(state, " ")
	credit, last, _ := strings.Cut(rest, " ")
	s := GCRAState{Exists: true}
	if isDigits(state) && isCanonical(credit) && isCanonical(last) {
		s.Credit = credit
	} else if spaced {
		state = ""
	}
	if len(state) > 19 || !isCanonical(state) && state != "0" || s.Credit != "" && len(last) > 19 {
		s.TAT.S = math.NaN()
		return s
	}
	s.TAT = parseInstant(state)
	if s.Credit != "" {
		s.Last = parseInstant(last)
	}
	return s
}

// isCanonical tells whether a text is a decimal above 0 as it is usually written.
func isCanonical(text string) bool { return isDigits(text) && text[0] != '0' }

// String is the state as the key holds it.
func (s GCRAState) String() string {
	if s.Credit == "" {
		return s.TAT.digits()
	}
	return s.TAT.digits() + " " + s.Credit + " " + s.Last.digits()
}

// receipt is that of an ask that has just been written.
func (s *GCRAState) receipt() string {
	if s.Credit == "" {
		return s.TAT.digits()
	}
	return s.TAT.digits() + " " + s.Credit
}

// foreign tells whether the state is taken for none of the scripts' own.
func (s *GCRAState) foreign(now Clock) bool {
	// 19 digits are those of a second from 10^9 on, in 2001
	short := s.TAT.S < 1e9 || s.Credit != "" && s.Last.S < 1e9
	return math.IsNaN(s.TAT.S) || now.Server && now.S >= 1e9 && short
}

// aheadNs is max(tat - now, 0) as gcra_v2 and limits_v1 have it.
func (s *GCRAState) aheadNs(now Clock) float64 {
	ahead := s.TAT.afterNs(now.S, now.SubNs)
	if ahead < 0 {
		return 0
	} else if ahead >= 1<<53 {
		return min(ahead+2048, 1<<63-1024)
	}
	return ahead
}

// expiryS is the second by which the key expires.
func (s *GCRAState) expiryS() float64 {
	if s.Credit != "" {
		return s.Last.S
	}
	return s.TAT.S
}

// write has the state hold a new TAT, and returns the EX of that write, 0 for KEEPTTL.
func (s *GCRAState) write(tat Instant, now Clock) (ttlS int64) {
	existed, wasS := s.Exists, s.expiryS()
	s.Exists, s.TAT = true, tat
	if s.Credit != "" && !(s.Last.afterNs(tat.S, tat.SubNs) > 0) {
		s.Last = tat
	}
	expiryS, marginS := s.expiryS(), 61.0
	if now.Server {
		if existed && expiryS == wasS {
			return 0
		}
		marginS = 2
	}
	return int64(expiryS - now.S + marginS)
}

// What is wrong with an argument or a clock, without the script's name.
const (
	badPeriod = "period_ns must be a whole number from 1 to 2^52"
	badAmount = "amount must be a whole number from 1 to period_ns"
	badBurst  = "burst must be a whole number from 1 to 2^52 / interval, " +
		"where interval = ceil(period_ns / amount)"
	badCost  = "cost must be a whole number from 0 to 2^52"
	badClock = "now_ns must be at most 19 decimal digits"
	lateGCRA = "now_ns + burst * interval is above 2^63 - 1"
)

// interval is ceil(period_ns / amount).
func (a *GCRAArgs) interval() float64 { return math.Ceil(a.PeriodNs / a.Amount) }

// check is the first part of the scripts of one limit.
func (a *GCRAArgs) check(script string) (interval float64, err string) {
	if !isWhole(a.PeriodNs, 1, 1<<52) {
		return 0, "BADARG " + script + ": " + badPeriod
	}
	if !isWhole(a.Amount, 1, a.PeriodNs) {
		return 0, "BADARG " + script + ": " + badAmount
	}
	interval = a.interval()
	if !isWhole(a.Burst, 1, (1<<52)/interval) {
		return 0, "BADARG " + script + ": " + badBurst
	}
	if !isWhole(a.Cost, 0, 1<<52) {
		return 0, "BADARG " + script + ": " + badCost
	}
	return interval, ""
}

// tooLate tells whether now + tau is above what a reply of gcra_v2 or limits_v1 holds.
func (now Clock) tooLate(tau float64) bool {
	return now.S >= 9218868437 && (9223372036-now.S)*1e9+(854775807-now.SubNs) < tau
}

// plus is the TAT that lies ns after the clock's or another second.
func plus(s, ns float64) Instant {
	subNs := number.ModWhole(ns, 1e9)
	return Instant{s + (ns-subNs)/1e9, subNs}
}

// GCRAV1 is gcra_v1.lua on a state, which it changes where it writes.
func GCRAV1(s *GCRAState, a GCRAArgs, now Clock) Decision {
	return GCRAV1OnGrid(Grid, s, a, now)
}

// GCRAV1OnGrid is GCRAV1 with another grid, a power of two up to 256: on a small
// one every state and input can be tried.
func GCRAV1OnGrid(grid float64, s *GCRAState, a GCRAArgs, now Clock) (d Decision) {
	// Check.
	interval, refused := a.check("gcra_v1")
	if refused != "" {
		return Decision{Err: refused}
	}
	interval = math.Ceil(interval/grid) * grid
	tau := interval * a.Burst

	// Clock.
	if math.IsNaN(now.S) {
		return Decision{Err: "BADARG gcra_v1: " + badClock}
	}
	below := number.ModWhole(now.SubNs, grid)
	gridSubNs := now.SubNs - below
	nowGrid := now.S*1e9 + gridSubNs
	up := 0.0
	if below > 0 {
		up = grid
	}
	if nowGrid+up > 1<<61-tau {
		return Decision{Err: "BADARG gcra_v1: now_ns + burst * interval is above 2^61; use gcra_v2"}
	}

	// Read.
	ahead := 0.0
	if s.Exists {
		if s.Credit != "" {
			return Decision{Err: "BADSTATE gcra_v1: the key holds a TAT with credit; use gcra_v2"}
		}
		if s.foreign(now) {
			return Decision{Err: "BADSTATE gcra_v1: the key holds something else than a decimal TAT"}
		}
		secondsNs := s.TAT.S * 1e9
		subNs := s.TAT.SubNs + number.ModWhole(-s.TAT.SubNs, grid)
		if subNs > 1<<61-secondsNs {
			return Decision{Err: "BADSTATE gcra_v1: the TAT is above 2^61; use gcra_v2"}
		}
		ahead = secondsNs + subNs - nowGrid
		if ahead < 0 {
			ahead = 0
		}
	}

	// Decide, and write. The product may be inexact, but the call then never fits.
	status, retry, reset := 0.0, ahead-(tau-float64(a.Cost*interval)), ahead-below
	if retry <= 0 {
		status, retry = 1, 0
		if a.Cost > 0 {
			if ahead < up {
				ahead = up
			}
			ahead = ahead + a.Cost*interval
			reset = ahead - below
			d.Written, d.TTLS = true, s.write(plus(now.S, gridSubNs+ahead), now) // exact: both are on the grid
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
	return d
}

// GCRAV2 is gcra_v2.lua on a state, which it changes where it writes.
func GCRAV2(s *GCRAState, a GCRAArgs, now Clock) (d Decision) {
	// Check.
	interval, refused := a.check("gcra_v2")
	if refused != "" {
		return Decision{Err: refused}
	}
	tau := interval * a.Burst

	// Clock.
	if math.IsNaN(now.S) {
		return Decision{Err: "BADARG gcra_v2: " + badClock}
	}
	if now.tooLate(tau) {
		return Decision{Err: "BADARG gcra_v2: " + lateGCRA}
	}

	// Read.
	ahead := 0.0
	if s.Exists {
		if s.foreign(now) {
			return Decision{Err: "BADSTATE gcra_v2: the key holds something else than a decimal TAT"}
		}
		ahead = s.aheadNs(now)
	}

	// Decide, and write. The product may be inexact, but the call then never fits.
	status, retry := 0.0, ahead-(tau-float64(a.Cost*interval))
	if retry <= 0 {
		status, retry = 1, 0
		if a.Cost > 0 {
			ahead = ahead + a.Cost*interval
			d.Written, d.TTLS = true, s.write(plus(now.S, now.SubNs+ahead), now)
		}
	} else if a.Cost > a.Burst {
		status, retry = -1, -1
	}
	left, remaining := tau-ahead, 0.0
	if left >= interval {
		remaining = math.Floor(left / interval)
	}
	d.Status, d.Remaining = int64(status), int64(remaining)
	d.RetryAfterNs, d.ResetAfterNs = int64(retry), int64(ahead)
	return d
}
