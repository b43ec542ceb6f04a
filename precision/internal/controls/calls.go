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
