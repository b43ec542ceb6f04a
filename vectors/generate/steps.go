package generate

import (
	"encoding/binary"
	"strconv"

	"github.com/tatami-rate/tatami/precision"
)

const (
	us     = int64(1e3)
	ms     = int64(1e6)
	second = int64(1e9)
	day    = 86400 * second
	// epoch is today's clock where windows of 1, 8 and 60 s and gcra_v1's grid begin.
	epoch = 1_780_000_080 * second
)

// A call is a cost and an instant.
type call struct{ cost, atNs int64 }

// calls are calls, each a cost and an instant.
func calls(pairs ...int64) []call {
	var list []call
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, call{pairs[i], pairs[i+1]})
	}
	return list
}

// again is the same call n times.
func again(n int, cost, atNs int64) []call { return every(n, cost, atNs, 0) }

// every is the same call n times, gapNs apart.
func every(n int, cost, atNs, gapNs int64) []call {
	list := make([]call, n)
	for i := range list {
		list[i] = call{cost, atNs + int64(i)*gapNs}
	}
	return list
}

// from gives the calls as cost and now_ns, their instants counted from startNs.
func from(startNs int64, lists ...[]call) []request {
	var steps []request
	for _, list := range lists {
		for _, c := range list {
			steps = append(steps, by(decimal(c.cost), decimal(startNs+c.atNs)))
		}
	}
	return steps
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// limiter is a script's limiter of one key in exact integers, with one limit: of gcra_v1 with
// interval and TAT on its grid.
type limiter func(cost, nowNs int64) precision.Verdict

func gcraLimiter(script precision.Script, amount, periodNs, burst int64) limiter {
	gridNs := script.Grid()
	g := precision.NewGCRA(amount, periodNs, burst, gridNs)
	tat := int64(0)
	return func(cost, nowNs int64) precision.Verdict {
		v, _ := g.Call(tat, cost, nowNs)
		if v.Status == 1 {
			_, tat = g.Call(tat, cost, (nowNs+gridNs-1)/gridNs*gridNs)
		}
		return v
	}
}

func windowLimiter(amount, periodNs int64, mode string) limiter {
	w := precision.Window{Amount: amount, PeriodNs: periodNs, Sliding: mode == sliding}
	var counts precision.Counts
	return func(cost, nowNs int64) (v precision.Verdict) {
		v, counts = w.Call(counts, cost, nowNs)
		return v
	}
}

// thin leaves out the refused calls that stand between two refused ones: a refused call
// changes nothing, so the others answer as if all were made.
func thin(l limiter, list []call) []call {
	refused := make([]bool, len(list))
	for i, c := range list {
		refused[i] = l(c.cost, epoch+c.atNs).Status != 1
	}
	var thinned []call
	for i, c := range list {
		if i == 0 || i == len(list)-1 || !(refused[i-1] && refused[i] && refused[i+1]) {
			thinned = append(thinned, c)
		}
	}
	return thinned
}

// waiting makes calls of these costs from atNs on. After one that is refused it comes
// again 1 ns before its wait is over, and when it is over.
func waiting(l limiter, startNs, atNs int64, costs ...int64) []call {
	var list []call
	for _, cost := range costs {
		list = append(list, call{cost, atNs})
		if v := l(cost, startNs+atNs); v.Status == 0 {
			list = append(list, call{cost, atNs + v.RetryAfterNs - 1}, call{cost, atNs + v.RetryAfterNs})
			atNs += v.RetryAfterNs
			l(cost, startNs+atNs)
		}
	}
	return list
}

// thirty are 30 calls a second for ten seconds, at whole ms.
func thirty() []call {
	list := make([]call, 300)
	for i := range list {
		list[i] = call{1, (int64(i)*1000 + 15) / 30 * ms}
	}
	return list
}

// counts is a window's state: its index, the counts of the window before it and of itself,
// and its period.
func counts(index int64, previous, current uint16, periodNs int64) string {
	state := binary.BigEndian.AppendUint32(nil, uint32(index))
	state = binary.BigEndian.AppendUint16(state, previous)
	state = binary.BigEndian.AppendUint16(state, current)
	return string(binary.BigEndian.AppendUint32(state, uint32(periodNs)))
}

// holdingCounts is a key with a window's state.
func holdingCounts(index int64, previous, current uint16, periodNs int64) held {
	return holding(counts(index, previous, current, periodNs))
}
