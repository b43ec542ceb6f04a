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

// WindowV1 is window_v1.lua on a state, which it changes where it writes.
func WindowV1(s *WindowState, a WindowArgs, now Clock) (d Decision) {
	// Check.
	amount, w, sliding, cost := a.Amount, a.PeriodNs, a.Sliding, a.Cost
	if !(amount >= 1 && amount <= 65535 && math.Floor(amount) == amount) {
		return Decision{Err: "BADARG window_v1: amount must be a whole number from 1 to 65535; for more use gcra"}
	}
	if !(w >= 1 && w <= 1<<52 && math.Floor(w) == w) {
		return Decision{Err: "BADARG window_v1: period_ns must be a whole number from 1 to 2^52"}
	}
	if a.BadMode {
		return Decision{Err: "BADARG window_v1: mode must be fixed or sliding"}
	}
	if !(cost >= 0 && cost <= 1<<52 && math.Floor(cost) == cost) {
		return Decision{Err: "BADARG window_v1: cost must be a whole number from 0 to 2^52"}
	}

	// Clock.
	if math.IsNaN(now.S) {
		return Decision{Err: "BADARG window_v1: now_ns must be at most 19 decimal digits"}
	}
	secondsNs := now.S * 1e9
	if 1<<62-secondsNs <= now.SubNs {
		return Decision{Err: "BADARG window_v1: now_ns must be below 2^62"}
	}

	// Window.
	beganNs := number.FmodWhole(secondsNs, w)
	whole := (number.FmodWhole(secondsNs, w*(1<<32))-beganNs)/w + 0.5
	sinceNs := beganNs + now.SubNs
	e := number.ModWhole(sinceNs, w)
	index := number.ModWhole(math.Floor(whole)+(sinceNs-e)/w, 1<<32)
	left := w - e

	// Read and roll.
	previous, current, gap, stays := 0.0, 0.0, 0.0, false
	if s.Exists {
		if math.IsNaN(s.Index) {
			return Decision{Err: "BADSTATE window_v1: the key holds something else than 12 bytes of counts"}
		}
		if s.PeriodNs != number.ModWhole(w, 1<<32) {
			return Decision{Err: "BADSTATE window_v1: the key holds counts of another period; " +
				"name the period in the key"}
		}
		ahead := number.ModWhole(index-s.Index, 1<<32)
		if ahead == 0 {
			previous, current, stays = s.Previous, s.Current, true
		} else if ahead == 1 {
			previous = s.Current
		} else if ahead >= 1<<31 {
			untilNs := float64((1<<32-ahead)*w) - e
			if untilNs <= 60e9 || ahead == 1<<32-1 {
				previous, current, gap, stays = s.Previous, s.Current, untilNs, true
				index, left = s.Index, w
			}
		}
	}

	// carried = ceil(previous * left / w)
	carried := 0.0
	if sliding && previous > 0 {
		// the product is inexact, but nothing is added to it before the division
		carried = math.Floor(previous*left/w + 0.5)
		spare := number.ModWhole(w, previous)
		if left > carried*((w-spare)/previous)+math.Floor(carried*spare/previous) {
			carried = carried + 1
		}
	}

	// Decide.
	status, retry := 1.0, 0.0
	free := amount - current - cost
	if free >= carried {
		current = current + cost
	} else if cost > amount {
		status, retry = -1, -1
	} else {
		status, retry = 0, gap+left
		if sliding {
			count, from := previous, 0.0
			if free < 0 {
				count, free, from = current, amount-cost, w
			}
			spare := number.ModWhole(w, count)
			retry = retry + (from - (free*((w-spare)/count) + math.Floor(free*spare/count)))
		}
		if gap > 0 && retry >= 1<<53 {
			retry = retry + 2
		}
	}
	remaining := amount - carried - current
	if remaining < 0 {
		remaining = 0
	}
	endNs := gap + left + w
	if gap > 0 && endNs >= 1<<53 {
		endNs = endNs + 2
	}
	reset := 0.0
	if current > 0 && sliding {
		reset = endNs
	} else if current > 0 || sliding && previous > 0 {
		reset = gap + left
	}

	// Write.
	d.Status, d.Remaining = int64(status), int64(remaining)
	d.RetryAfterNs, d.ResetAfterNs = int64(retry), int64(reset)
	if status == 1 && cost > 0 {
		*s = WindowState{true, index, previous, current, number.ModWhole(w, 1<<32)}
		d.Written = true
		if !(now.Server && stays) {
			marginS := 60.0
			if now.Server {
				endNs, marginS = now.SubNs+endNs, 1
			}
			d.TTLS = int64((endNs+number.ModWhole(-endNs, 1e9))/1e9 + marginS)
		}
	}
	return d
}
