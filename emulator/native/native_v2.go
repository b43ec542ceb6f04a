package native

import (
	"math"

	"github.com/tatami-rate/tatami/internal/number"
)

// TAT is the state of a gcra key as gcra_v2 takes it: whole seconds and nanoseconds
// below 10^9. A missing key is the zero value; S is NaN for a text that is no TAT.
type TAT struct {
	S, Ns float64
}

// ParseTATV2 reads the state of a gcra key as gcra_v2 does.
func ParseTATV2(state string) TAT {
	if !isTAT(state) {
		return TAT{math.NaN(), math.NaN()}
	}
	s, ns := splitSecond(state)
	return TAT{s, ns}
}

// isTAT tells whether a key's text is a canonical decimal of at most 19 digits.
func isTAT(state string) bool {
	return len(state) <= 19 && isDigits(state) && (state[0] != '0' || state == "0")
}

// GCRAV2 is gcra_v2.lua on the state tat; it returns the state after the call.
func GCRAV2(tat TAT, a GCRAArgs, now Clock) (TAT, Decision) {
	// Check.
	if !(a.PeriodNs >= 1 && a.PeriodNs <= 1<<52 && math.Floor(a.PeriodNs) == a.PeriodNs) {
		return tat, Decision{Err: "BADARG gcra_v2: period_ns must be a whole number from 1 to 2^52"}
	}
	if !(a.Amount >= 1 && a.Amount <= a.PeriodNs && math.Floor(a.Amount) == a.Amount) {
		return tat, Decision{Err: "BADARG gcra_v2: amount must be a whole number from 1 to period_ns"}
	}
	interval := math.Ceil(a.PeriodNs / a.Amount)
	if !(a.Burst >= 1 && a.Burst <= (1<<52)/interval && math.Floor(a.Burst) == a.Burst) {
		return tat, Decision{Err: "BADARG gcra_v2: burst must be a whole number from 1 to 2^52 / interval, " +
			"where interval = ceil(period_ns / amount)"}
	}
	if !(a.Cost >= 0 && a.Cost <= 1<<52 && math.Floor(a.Cost) == a.Cost) {
		return tat, Decision{Err: "BADARG gcra_v2: cost must be a whole number from 0 to 2^52"}
	}
	tau := interval * a.Burst

	// Clock.
	if math.IsNaN(now.S) {
		return tat, Decision{Err: "BADARG gcra_v2: now_ns must be at most 19 decimal digits"}
	}
	if now.S >= 9218868436 && (9223372036-now.S)*1e9+(854775807-now.Ns) < tau {
		return tat, Decision{Err: "BADARG gcra_v2: now_ns + burst * interval is above 2^63 - 1"}
	}

	// Read.
	if math.IsNaN(tat.S) {
		return tat, Decision{Err: "BADSTATE gcra_v2: the key holds something else than a decimal TAT"}
	}
	ahead := (tat.S-now.S)*1e9 + (tat.Ns - now.Ns)
	if ahead < 0 {
		ahead = 0
	} else if ahead >= 1<<53 {
		ahead = min(ahead+2048, 1<<63-1024)
	}

	// Decide, and write. The product may be inexact, but the call is then unfittable.
	status, retry := 0.0, ahead-(tau-float64(a.Cost*interval))
	d := Decision{}
	if retry <= 0 {
		status, retry = 1, 0
		if a.Cost > 0 {
			ahead = ahead + a.Cost*interval
			ns := now.Ns + ahead
			tat.Ns = number.ModWhole(ns, 1e9)
			tat.S = now.S + (ns-tat.Ns)/1e9
			d.Written, d.TTLMs = true, int64(math.Ceil(ahead/1e6)+now.MarginMs)
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
	return tat, d
}

// WindowV2 is window_v2.lua on a state; it returns the state after the call.
func WindowV2(stored WindowState, a WindowArgs, now Clock) (WindowState, Decision) {
	// Check.
	amount, w, sliding, cost := a.Amount, a.PeriodNs, a.Sliding, a.Cost
	if !(amount >= 1 && amount <= 65535 && math.Floor(amount) == amount) {
		return stored, Decision{Err: "BADARG window_v2: amount must be a whole number from 1 to 65535; for more use gcra"}
	}
	if !(w >= 1 && w <= 1<<52 && math.Floor(w) == w) {
		return stored, Decision{Err: "BADARG window_v2: period_ns must be a whole number from 1 to 2^52"}
	}
	if a.BadMode {
		return stored, Decision{Err: "BADARG window_v2: mode must be fixed or sliding"}
	}
	if !(cost >= 0 && cost <= 1<<52 && math.Floor(cost) == cost) {
		return stored, Decision{Err: "BADARG window_v2: cost must be a whole number from 0 to 2^52"}
	}

	// Clock.
	if math.IsNaN(now.S) {
		return stored, Decision{Err: "BADARG window_v2: now_ns must be at most 19 decimal digits"}
	}
	seconds := now.S * 1e9
	if 1<<62-seconds <= now.Ns {
		return stored, Decision{Err: "BADARG window_v2: now_ns must be below 2^62"}
	}

	// Window.
	e := number.FmodWhole(seconds, w)
	i := (number.FmodWhole(seconds, w*(1<<32))-e)/w + 0.5
	e = e + now.Ns
	rest := number.ModWhole(e, w)
	i = number.ModWhole(math.Floor(i)+(e-rest)/w, 1<<32)
	e = rest
	left := w - e

	// Read and roll.
	if math.IsNaN(stored.Index) {
		return stored, Decision{Err: "BADSTATE window_v2: the key holds something else than 8 bytes of counts"}
	}
	previous, current, gap := 0.0, 0.0, 0.0
	if stored.Exists {
		ahead := number.ModWhole(i-stored.Index, 1<<32)
		if ahead == 0 {
			previous, current = stored.Previous, stored.Current
		} else if ahead == 1 {
			previous = stored.Current
		} else if ahead >= 1<<31 {
			until := float64((1<<32-ahead)*w) - e
			if until <= 60e9 || ahead == 1<<32-1 {
				previous, current, gap = stored.Previous, stored.Current, until
				i, left = stored.Index, w
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
			count, until := previous, 0.0
			if free < 0 {
				count, free, until = current, amount-cost, w
			}
			spare := number.ModWhole(w, count)
			retry = retry + (until - (free*((w-spare)/count) + math.Floor(free*spare/count)))
		}
		if gap > 0 && retry >= 1<<53 {
			retry = retry + 2
		}
	}
	remaining := amount - carried - current
	if remaining < 0 {
		remaining = 0
	}
	whole := gap + left + w
	if gap > 0 && whole >= 1<<53 {
		whole = whole + 2
	}
	reset := 0.0
	if current > 0 && sliding {
		reset = whole
	} else if current > 0 || sliding && previous > 0 {
		reset = gap + left
	}

	// Write.
	d := Decision{Status: int64(status), Remaining: int64(remaining),
		RetryAfterNs: int64(retry), ResetAfterNs: int64(reset)}
	if status == 1 && cost > 0 {
		stored = WindowState{true, i, previous, current}
		d.Written, d.TTLMs = true, int64(math.Ceil(whole/1e6)+now.MarginMs)
	}
	return stored, d
}
