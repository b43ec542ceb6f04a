// Package precision holds the scripts against exact integers.
//
// oracle.go computes each algorithm in integers, trace.go makes up calls that look
// for trouble, drivers.go makes the same calls on the native port and on the asset in
// the emulator, real.go on the asset in a real server, judge.go says of each answer
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
// With now + interval*burst below 2^63 nothing overflows.
type GCRA struct {
	Interval, Burst int64
}

// grid is the distance of two doubles from 2^60 to 2^61, of today's clocks: gcra_v1 keeps
// its TAT on multiples of it.
const grid = 256

// NewGCRA returns the exact limiter of amount units a period: its interval is
// ceil(periodNs / amount), on a grid of 1, or that rounded up to a multiple of grid, a
// power of two.
func NewGCRA(amount, periodNs, burst, grid int64) GCRA {
	return GCRA{Interval: upTo(grid, ceilDiv(periodNs, amount)), Burst: burst}
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
	status, retryNs, tat := g.decide(tat, cost, nowNs)
	return Verdict{status, g.Remaining(tat, nowNs), retryNs, max(tat-nowNs, 0)}, tat
}

// decide is what of the verdict says whether a call is admitted, and the TAT after it.
func (g GCRA) decide(tat, cost, nowNs int64) (status, retryNs, after int64) {
	switch first := g.FirstNs(tat, cost); {
	case cost > g.Burst:
		return -1, -1, tat
	case nowNs < first:
		return 0, first - nowNs, tat
	case cost > 0:
		return 1, 0, max(tat, nowNs) + cost*g.Interval
	}
	return 1, 0, tat
}

// Remaining is the largest cost that is admitted at nowNs, and 0 where not even a
// call of cost 0 is.
func (g GCRA) Remaining(tat, nowNs int64) int64 {
	return max(g.Tau()-max(tat-nowNs, 0), 0) / g.Interval
}

// Window is the fixed or sliding window in integers. The state is the window's
// index and two counts; the index is kept mod 2^32, as the key holds it. A clock behind
// the stored window, by one window or by a minute, counts as that window's first
// instant. A key that holds counts of another period is not the window's to read.
type Window struct {
	Amount, PeriodNs int64
	Sliding          bool
}

// Counts is a window's state. One that a script wrote has a count above 0; that of a
// missing key is the zero value.
type Counts struct {
	Index             uint32
	Previous, Current uint16
}

// skewNs is how far a clock may be behind a window that is not the next one.
const skewNs = 60e9

// At returns the counts as they stand at nowNs, the time left in their window, and
// the gap until that window starts, 0 unless the clock is behind it.
func (w Window) At(s Counts, nowNs int64) (at Counts, leftNs, gapNs int64) {
	if s.Previous == 0 && s.Current == 0 {
		return w.from(nowNs)
	}
	return w.at(s, nowNs)
}

// from is At of a key that holds nothing.
func (w Window) from(nowNs int64) (at Counts, leftNs, gapNs int64) {
	return Counts{Index: uint32(nowNs / w.PeriodNs)}, w.PeriodNs - nowNs%w.PeriodNs, 0
}

// at is At of counts that a key holds. Both are 0 where all was given back.
func (w Window) at(s Counts, nowNs int64) (at Counts, leftNs, gapNs int64) {
	windows, elapsed := nowNs/w.PeriodNs, nowNs%w.PeriodNs
	index := uint32(windows)
	behind := s.Index - index // windows, mod 2^32
	if behind <= 1<<31 {      // with none behind the difference below wraps, or is that of the first instant
		high, low := bits.Mul64(uint64(behind), uint64(w.PeriodNs))
		if behind == 1 || high == 0 && low-uint64(elapsed) <= skewNs {
			return s, w.PeriodNs, int64(low) - elapsed
		}
	}
	at = Counts{Index: index}
	switch behind {
	case 0:
		at = s
	case 1<<32 - 1:
		at.Previous = s.Current
	}
	return at, w.PeriodNs - elapsed, 0
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
// the zero value.
func (w Window) Call(stored Counts, cost, nowNs int64) (Verdict, Counts) {
	s, left, gap := w.At(stored, nowNs)
	v, s := w.call(s, left, gap, cost)
	if v.Status != 1 || cost == 0 {
		s = stored // nothing is written
	}
	return v, s
}

// call is Call on the counts as they stand, with the time left in their window and the
// gap until it starts; it returns them with what is admitted.
func (w Window) call(s Counts, leftNs, gapNs, cost int64) (Verdict, Counts) {
	status, retryNs := w.decide(s, leftNs, gapNs, cost)
	if status == 1 {
		s.Current += uint16(cost)
	}
	resetNs := w.reset(s, leftNs)
	if resetNs > 0 {
		resetNs += gapNs
	}
	return Verdict{status, w.Remaining(s, leftNs), retryNs, resetNs}, s
}

// decide is what of the verdict says whether a call is admitted.
func (w Window) decide(s Counts, leftNs, gapNs, cost int64) (status, retryNs int64) {
	switch {
	case cost > w.Amount:
		return -1, -1
	case !w.Fits(s, leftNs, cost):
		return 0, gapNs + w.retry(s, leftNs, cost)
	}
	return 1, 0
}

// Remaining is the largest cost that fits, 0 where not even cost 0 does:
// amount - current - ceil(previous*left / period).
func (w Window) Remaining(s Counts, leftNs int64) int64 {
	free := w.Amount - int64(s.Current)
	if w.Sliding {
		high, low := bits.Mul64(uint64(s.Previous), uint64(leftNs))
		carried, rest := bits.Div64(high, low, uint64(w.PeriodNs))
		if rest > 0 {
			carried++
		}
		free -= int64(carried)
	}
	return max(free, 0)
}

// retry is the time from an instant with leftNs left in the window until a call that
// does not fit there does.
func (w Window) retry(s Counts, leftNs, cost int64) int64 {
	free := w.Amount - int64(s.Current) - cost
	switch {
	case !w.Sliding:
		return leftNs // no count is left at the boundary
	case free < 0:
		// In this window never; in the next the current count fades as previous.
		return leftNs + w.PeriodNs - w.faded(s.Current, w.Amount-cost)
	default:
		return leftNs - w.faded(s.Previous, free)
	}
}

// faded is the longest time left in a window at which a previous count takes no more
// than free units: count*left <= free*period. free is below count.
func (w Window) faded(count uint16, free int64) int64 {
	high, low := bits.Mul64(uint64(free), uint64(w.PeriodNs))
	left, _ := bits.Div64(high, low, uint64(count))
	return int64(left)
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

// An expiry is set in whole seconds, by these rules. With the server's clock it is left
// as it is while the second, or the window, that it stands for stays the same.

// gcraTTLS is the EX of a gcra key whose TAT, or last TAT, is lastNs: from the second of
// the clock to that of the TAT, and 2 more, or 61 with a caller's clock.
func gcraTTLS(lastNs uint64, nowNs int64, byServer bool) int64 {
	ttlS := int64(lastNs/1e9) - nowNs/1e9
	if byServer {
		return ttlS + 2
	}
	return ttlS + 61
}

// windowTTLS is the EX of a window key, of which nothing weighs after endNs from nowNs on.
// With the server's clock that is the first whole second at or after the end, and one
// more; with a caller's, endNs up to whole seconds, and a minute.
func windowTTLS(endNs, nowNs int64, byServer bool) int64 {
	if byServer {
		return ceilDiv(nowNs%1e9+endNs, 1e9) + 1
	}
	return ceilDiv(endNs, 1e9) + 60
}

// upTo is x up to a multiple of grid, a power of two, for x >= 0.
func upTo(grid, x int64) int64 { return (x + grid - 1) &^ (grid - 1) }

// ceilDiv is ceil(p / a) for p >= 0, a > 0.
func ceilDiv(p, a int64) int64 {
	q := p / a
	if q*a < p {
		q++
	}
	return q
}
