package controls

import (
	"fmt"

	"github.com/tatami-rate/tatami/precision"
)

// epochNs is today's clock on a whole second, where windows of 1 s begin; it is on the
// grid of today's doubles.
const epochNs = 1_780_000_080 * int64(1e9)

// every is the same call n times, gapNs apart.
func every(c precision.Call, n int, gapNs int64) []precision.Call {
	calls := make([]precision.Call, n)
	for i := range calls {
		calls[i] = c
		calls[i].NowNs = epochNs + int64(i)*gapNs
	}
	return calls
}

// straddling is two callers whose clocks are 2 ms apart and stand on both sides of a
// window's boundary, n calls each in turn, 1 us after each other.
func straddling(c precision.Call, n int) []precision.Call {
	var calls []precision.Call
	for i := range int64(n) {
		for _, aheadNs := range []int64{1e6, -1e6} {
			c.NowNs = epochNs + aheadNs + i*1000
			calls = append(calls, c)
		}
	}
	return calls
}

// turns is n calls each of two limits in turn, gapNs apart.
func turns(a, b precision.Call, n int, gapNs int64) []precision.Call {
	var calls []precision.Call
	for i := range int64(n) {
		a.NowNs, b.NowNs = epochNs+2*i*gapNs, epochNs+(2*i+1)*gapNs
		calls = append(calls, a, b)
	}
	return calls
}

// byServer is the same calls by the server's clock.
func byServer(calls []precision.Call) []precision.Call {
	for i := range calls {
		calls[i].ServerNs, calls[i].ByServer = calls[i].NowNs, true
	}
	return calls
}

// credited is the same calls on a key that holds credit from the first on, and a last TAT
// this long after that call.
func credited(calls []precision.Call, lastNs int64) []precision.Call {
	calls[0].Given = fmt.Sprintf("%d 123456789012345678901234 %d", calls[0].NowNs, calls[0].NowNs+lastNs)
	return calls
}

// foreign is a call of a caller whose clock stands at 1970, which leaves a number of a few
// digits, and n calls by the server's clock on it.
func foreign(c precision.Call, n int) []precision.Call {
	calls := byServer(every(c, n+1, 1e6))
	calls[0].NowNs, calls[0].ByServer = 0, false
	return calls
}

// asks is a call of limits_v1 of one limit after another, on keys 0, 1, ..., at an instant.
func asks(nowNs int64, of int, limits ...precision.Call) precision.LimitsCall {
	var call precision.LimitsCall
	for i, c := range limits {
		a := precision.Ask{Key: i, Kind: precision.GCRAV2, Call: c, Of: of}
		if c.Burst == 0 {
			a.Kind = precision.WindowV1
		}
		a.NowNs = nowNs
		call.Asks = append(call.Asks, a)
	}
	return call
}

// pairs is n calls of two limits at once, gapNs apart.
func pairs(a, b precision.Call, n int, gapNs int64) []precision.LimitsCall {
	calls := make([]precision.LimitsCall, n)
	for i := range calls {
		calls[i] = asks(epochNs+int64(i)*gapNs, 0, a, b)
	}
	return calls
}

// withServer is the same calls by the server's clock, or on a server whose clock moves with
// the caller's.
func withServer(calls []precision.LimitsCall, byServer bool) []precision.LimitsCall {
	with := make([]precision.LimitsCall, len(calls))
	for i, c := range calls {
		for _, a := range c.Asks {
			if a.ByServer = a.ByServer || byServer; a.ServerNs == 0 {
				a.ServerNs = a.NowNs / 1000 * 1000 // TIME has whole us
			}
			with[i].Asks = append(with[i].Asks, a)
		}
	}
	return with
}

// refunded is ten rounds of one limit of a unit a second, 100 at once: all of it is charged,
// of which 40 are really used; a minute later 60 more are charged, the 60 that were not used
// are given back, and 100 calls ask for one unit each. Of these 40 fit, since what was given
// back had drained.
func refunded() []precision.LimitsCall {
	const second = int64(1e9)
	unit := precision.Call{Amount: 1, PeriodNs: second, Burst: 100}
	units := func(cost int64) precision.Call {
		c := unit
		c.Cost = cost
		return c
	}
	var calls []precision.LimitsCall
	for round := range int64(10) {
		nowNs := epochNs + round*1000*second
		calls = append(calls, asks(nowNs, 0, units(100)))
		paid := len(calls)
		nowNs += 60 * second
		calls = append(calls, asks(nowNs, 0, units(60)), asks(nowNs, paid, units(-60)))
		for range 100 {
			calls = append(calls, asks(nowNs, 0, units(1)))
		}
	}
	return calls
}

// settledBesideARefusal is rounds in which all is charged, and given back beside an ask of
// another key that is refused; then it is asked for again.
func settledBesideARefusal() []precision.LimitsCall {
	const second = int64(1e9)
	unit := precision.Call{Amount: 1, PeriodNs: second, Burst: 100, Cost: 100}
	full := precision.Call{Amount: 1, PeriodNs: 1 << 50, Cost: 1}
	var calls []precision.LimitsCall
	for round := range int64(10) {
		nowNs := epochNs + round*1000*second
		calls = append(calls, asks(nowNs, 0, unit))
		back := asks(nowNs+second, 0, unit, full)
		back.Asks[0].Of, back.Asks[0].Cost = len(calls), -99
		back.Asks[1].Cost = 2
		if round%2 == 0 {
			back.Asks[1].Cost = 1 // the first of them is admitted
		}
		calls = append(calls, back, asks(nowNs+second, 0, unit))
	}
	return calls
}
