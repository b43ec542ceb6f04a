package native

import (
	"math"

	"github.com/tatami-rate/tatami/emulator/number"
)

// WindowArgs are the arguments of window_v1 but the clock. BadMode is true when
// the mode is neither fixed nor sliding.
type WindowArgs struct {
	Amount, PeriodNs float64
	Sliding, BadMode bool
	Cost             float64
}

// WindowState is what a window key holds: the window's index mod 2^32, the counts of the
// window before it and of itself, and the period mod 2^32 in ns. A missing key is the zero
// value; Index is NaN for a text that is no state.
type WindowState struct {
	Exists                             bool
	Index, Previous, Current, PeriodNs float64
}

// ParseWindow reads the state of a window key.
func ParseWindow(state string) WindowState {
	if len(state) != 12 {
		return WindowState{Exists: true, Index: math.NaN()}
	}
	b := func(i int) float64 { return float64(state[i]) }
	return WindowState{
		Exists:   true,
		Index:    ((b(0)*256+b(1))*256+b(2))*256 + b(3),
		Previous: b(4)*256 + b(5),
		Current:  b(6)*256 + b(7),
		PeriodNs: ((b(8)*256+b(9))*256+b(10))*256 + b(11),
	}
}

// Bytes is the state as the key holds it.
func (s WindowState) Bytes() [12]byte {
	i, p, c, w := uint32(s.Index), uint16(s.Previous), uint16(s.Current), uint32(s.PeriodNs)
	return [12]byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i),
		byte(p >> 8), byte(p), byte(c >> 8), byte(c),
		byte(w >> 24), byte(w >> 16), byte(w >> 8), byte(w)}
}

// What is wrong with an argument, a clock or a state, without the script's name.
const (
	badCount    = "amount must be a whole number from 1 to 65535; for more use gcra"
	lateWindow  = "now_ns must be below 2^62"
	badCounts   = "something else than 12 bytes of counts"
	otherPeriod = "counts of another period; name the period in the key"
)

// tooLateForWindow tells whether the clock is 2^62 ns or more.
func (now Clock) tooLateForWindow() bool { return 1<<62-now.S*1e9 <= now.SubNs }

// window is what a call counts in: the window of its clock, or that of the state where the
// clock is behind it.
type window struct {
	w, index, left         float64 // left is the time until the window ends
	previous, current, gap float64 // gap is the time until the window starts
	stays                  bool    // the state's window is this one
}

// begin sets the window to that of a clock, which began e before it.
func (v *window) begin(now Clock) (e float64) {
	w := v.w
	secondsNs := now.S * 1e9
	beganNs := number.FmodWhole(secondsNs, w)
	whole := (number.FmodWhole(secondsNs, w*(1<<32))-beganNs)/w + 0.5
	sinceNs := beganNs + now.SubNs
	e = number.ModWhole(sinceNs, w)
	v.index, v.left = number.ModWhole(math.Floor(whole)+(sinceNs-e)/w, 1<<32), w-e
	return e
}

// roll takes the counts of a state that is there, e after the clock's window began, and
// returns what is wrong with it.
func (v *window) roll(s *WindowState, e float64) (bad string) {
	if math.IsNaN(s.Index) {
		return badCounts
	}
	if s.PeriodNs != number.ModWhole(v.w, 1<<32) {
		return otherPeriod
	}
	ahead := number.ModWhole(v.index-s.Index, 1<<32)
	if ahead == 0 {
		v.previous, v.current, v.stays = s.Previous, s.Current, true
	} else if ahead == 1 {
		v.previous = s.Current
	} else if ahead >= 1<<31 {
		untilNs := float64((1<<32-ahead)*v.w) - e
		if untilNs <= 60e9 || ahead == 1<<32-1 {
			v.previous, v.current, v.gap, v.stays = s.Previous, s.Current, untilNs, true
			v.index, v.left = s.Index, v.w
		}
	}
	return ""
}

// carried is ceil(previous * left / w) of a sliding window, 0 of a fixed one.
func (v *window) carried(sliding bool) float64 {
	if sliding && v.previous > 0 {
		// the product is inexact, but nothing is added to it before the division
		carried := math.Floor(v.previous*v.left/v.w + 0.5)
		spare := number.ModWhole(v.w, v.previous)
		if v.left > carried*((v.w-spare)/v.previous)+math.Floor(carried*spare/v.previous) {
			carried = carried + 1
		}
		return carried
	}
	return 0
}

// decide is the status and the retry of an ask, of which nothing is charged yet.
func (v *window) decide(amount, cost, carried float64, sliding bool) (status, retry float64) {
	free := amount - v.current - cost
	if free >= carried {
		return 1, 0
	}
	if cost > amount {
		return -1, -1
	}
	retry = v.gap + v.left
	if sliding {
		count, from := v.previous, 0.0
		if free < 0 {
			count, free, from = v.current, amount-cost, v.w
		}
		spare := number.ModWhole(v.w, count)
		retry = retry + (from - (free*((v.w-spare)/count) + math.Floor(free*spare/count)))
	}
	if v.gap > 0 && retry >= 1<<53 {
		retry = retry + 2
	}
	return 0, retry
}

// endNs is the time until no count weighs when sliding.
func (v *window) endNs() float64 {
	endNs := v.gap + v.left + v.w
	if v.gap > 0 && endNs >= 1<<53 {
		endNs = endNs + 2
	}
	return endNs
}

func (v *window) resetNs(sliding bool) float64 {
	if v.current > 0 && sliding {
		return v.endNs()
	} else if v.current > 0 || sliding && v.previous > 0 {
		return v.gap + v.left
	}
	return 0
}

// write has a state hold the counts, and returns the EX of that write, 0 for KEEPTTL.
func (v *window) write(s *WindowState, now Clock) (ttlS int64) {
	s.Exists, s.Index, s.Previous, s.Current = true, v.index, v.previous, v.current
	s.PeriodNs = number.ModWhole(v.w, 1<<32)
	if now.Server && v.stays {
		return 0
	}
	endNs, marginS := v.endNs(), 60.0
	if now.Server {
		endNs, marginS = now.SubNs+endNs, 1
	}
	return int64((endNs+number.ModWhole(-endNs, 1e9))/1e9 + marginS)
}

// WindowV1 is window_v1.lua on a state, which it changes where it writes.
func WindowV1(s *WindowState, a WindowArgs, now Clock) (d Decision) {
	// Check.
	if !isWhole(a.Amount, 1, 65535) {
		return Decision{Err: "BADARG window_v1: " + badCount}
	}
	if !isWhole(a.PeriodNs, 1, 1<<52) {
		return Decision{Err: "BADARG window_v1: " + badPeriod}
	}
	if a.BadMode {
		return Decision{Err: "BADARG window_v1: mode must be fixed or sliding"}
	}
	if !isWhole(a.Cost, 0, 1<<52) {
		return Decision{Err: "BADARG window_v1: " + badCost}
	}

	// Clock.
	if math.IsNaN(now.S) {
		return Decision{Err: "BADARG window_v1: " + badClock}
	}
	if now.tooLateForWindow() {
		return Decision{Err: "BADARG window_v1: " + lateWindow}
	}

	// Read and roll.
	v := window{w: a.PeriodNs}
	e := v.begin(now)
	if s.Exists {
		if bad := v.roll(s, e); bad != "" {
			return Decision{Err: "BADSTATE window_v1: the key holds " + bad}
		}
	}

	// Decide.
	carried := v.carried(a.Sliding)
	status, retry := v.decide(a.Amount, a.Cost, carried, a.Sliding)
	if status == 1 {
		v.current = v.current + a.Cost
	}
	d.Status, d.Remaining = int64(status), int64(max(a.Amount-carried-v.current, 0))
	d.RetryAfterNs, d.ResetAfterNs = int64(retry), int64(v.resetNs(a.Sliding))

	// Write.
	if status == 1 && a.Cost > 0 {
		d.Written, d.TTLS = true, v.write(s, now)
	}
	return d
}
