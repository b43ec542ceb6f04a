// Package precision holds the scripts against exact integers.
//
// oracle.go computes each algorithm in integers, trace.go makes up calls that look
// for trouble, drivers.go makes the same calls on the native port, on the asset in
// the emulator and on the asset in a real server, judge.go says of each answer
// whether the claims hold, and suite.go runs it all and counts.
package precision

import "math/bits"

// Verdict is what exact arithmetic says of one call. The fields are those of the
// scripts' reply.
type Verdict struct {
	Status, Remaining, RetryAfterNs, ResetAfterNs int64
}

// GCRA is the generic cell rate algorithm in integers, all in nanoseconds:
//
//	base = max(tat, now)
//	admit iff now >= base + cost*interval - tau;  then tat = base + cost*interval
//
// With interval*burst <= 2^60 and clocks up to 2^62 nothing overflows.
type GCRA struct {
	Interval, Burst int64
}

// NewGCRA returns the exact limiter of amount units a period: its interval is
// ceil(periodNs / amount), on a grid of 1, or that rounded up to a multiple of grid.
func NewGCRA(amount, periodNs, burst, grid int64) GCRA {
	interval := ceilDiv(periodNs, amount)
	return GCRA{Interval: ceilDiv(interval, grid) * grid, Burst: burst}
}

// Tau is the allowance, interval*burst.
func (g GCRA) Tau() int64 { return g.Interval * g.Burst }

// FirstNs is the first instant at which a call of cost units, at most the burst, is
// admitted: cost*interval <= tau, so base may be read as tat in the inequality.
func (g GCRA) FirstNs(tat, cost int64) int64 {
	return tat + cost*g.Interval - g.Tau()
}

// Call returns the verdict on a call and the TAT after it. A fresh key's TAT is 0.
func (g GCRA) Call(tat, cost, nowNs int64) (Verdict, int64) {
	v := Verdict{Status: 1}
	switch {
	case cost > g.Burst:
		v.Status, v.RetryAfterNs = -1, -1
	case nowNs < g.FirstNs(tat, cost):
		v.Status, v.RetryAfterNs = 0, g.FirstNs(tat, cost)-nowNs
	case cost > 0:
		tat = max(tat, nowNs) + cost*g.Interval
	}
	v.Remaining = g.Remaining(tat, nowNs)
	v.ResetAfterNs = max(tat-nowNs, 0)
	return v, tat
}

// Remaining is the largest cost that is admitted at nowNs, and 0 where not even a
// call of cost 0 is.
func (g GCRA) Remaining(tat, nowNs int64) int64 {
	return max(g.Tau()-max(tat-nowNs, 0), 0) / g.Interval
}

// Window is the fixed or sliding window in integers. The state is the window's
// index and two counts; the index is kept mod 2^32, as the key holds it.
type Window struct {
	Amount, PeriodNs int64
	Sliding          bool
}

// Counts is a window's state.
type Counts struct {
	Index             uint32
	Previous, Current uint16
}

// At returns the counts as they stand at nowNs, and the time left in the window.
func (w Window) At(s Counts, nowNs int64) (Counts, int64) {
	index := uint32(nowNs / w.PeriodNs)
	left := w.PeriodNs - nowNs%w.PeriodNs
	switch index {
	case s.Index:
		return s, left
	case s.Index + 1:
		return Counts{index, s.Current, 0}, left
	default:
		return Counts{Index: index}, left
	}
}

// Fits tells whether previous*weight + (current+cost)*period <= amount*period, the
// products in 128 bits; cost is at most 65535.
func (w Window) Fits(s Counts, leftNs, cost int64) bool {
	weight := uint64(0)
	if w.Sliding {
		weight = uint64(leftNs)
	}
	free := w.Amount - int64(s.Current) - cost
	if free < 0 {
		return false
	}
	high, low := bits.Mul64(uint64(s.Previous), weight)
	freeHigh, freeLow := bits.Mul64(uint64(free), uint64(w.PeriodNs))
	return high < freeHigh || high == freeHigh && low <= freeLow
}

// Call returns the verdict on a call and the state after it. A fresh key's state is
// the zero value. RetryAfterNs is the published bound of window_v1: the first
// window boundary at which the call is sure to fit.
func (w Window) Call(stored Counts, cost, nowNs int64) (Verdict, Counts) {
	s, left := w.At(stored, nowNs)
	v := Verdict{Status: 1}
	switch {
	case cost > w.Amount:
		v.Status, v.RetryAfterNs = -1, -1
	case !w.Fits(s, left, cost):
		v.Status, v.RetryAfterNs = 0, left
		if w.Sliding && int64(s.Current)+cost > w.Amount {
			v.RetryAfterNs = left + w.PeriodNs
		}
	default:
		s.Current += uint16(cost)
	}
	v.Remaining = w.remaining(s, left)
	v.ResetAfterNs = w.reset(s, left)
	if v.Status != 1 || cost == 0 {
		s = stored // nothing is written
	}
	return v, s
}

// remaining is the largest cost that fits, found by bisection on Fits alone; 0
// where not even cost 0 does.
func (w Window) remaining(s Counts, leftNs int64) int64 {
	low, high := int64(0), w.Amount
	for low < high {
		middle := (low + high + 1) / 2
		if w.Fits(s, leftNs, middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// reset is the time until no count weighs: the end of this window for the previous
// count, and for the current one too when fixed, else the end of the next.
func (w Window) reset(s Counts, leftNs int64) int64 {
	switch {
	case s.Current > 0 && w.Sliding:
		return leftNs + w.PeriodNs
	case s.Current > 0, s.Previous > 0 && w.Sliding:
		return leftNs
	default:
		return 0
	}
}

// TTLMs is the expiry of a state that is as good as new after resetNs: whole
// milliseconds, up, plus the margin.
func TTLMs(resetNs, marginMs int64) int64 {
	return ceilDiv(resetNs, 1e6) + marginMs
}

// ceilDiv is ceil(p / a) for p >= 0, a > 0.
func ceilDiv(p, a int64) int64 {
	q := p / a
	if q*a < p {
		q++
	}
	return q
}
