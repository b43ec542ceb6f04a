// Package skew measures what clocks that disagree let through. Gateways share a key and
// pass now_ns from clocks of their own; an instant is one of the server's clock, so
// calls that leave now_ns out are those without skew. (TIME is cut to microseconds,
// which only leaves instants out.)
//
// The span S is the largest distance between two gateways' clocks. Two calls in a
// stretch of L ns are at most L - 1 apart, so their clocks, the later call's less the
// earlier one's, at most D = L - 1 + S. What can be admitted in any stretch of L ns:
//
// gcra: burst + floor(D / interval). Each admission leaves tat >= now + cost*interval
// and raises tat by cost*interval at least. With a the clock of the stretch's first
// admission, b that of its last, and N the units of all, tat >= a + N*interval after
// the last; it was admitted, so tat <= b + interval*burst, and b - a <= D. S is counted
// once, however long the stretch: skew costs S / interval units, once. For gcra_v1
// this holds with its own interval, as its tat is the exact one or later. It holds while
// the key is there, and with S <= 60 s also when it expires, as below.
//
// window_v1, with S <= 60 s: the window that a call is counted in never moves back,
// since a clock behind the stored window counts as its first instant. So the clocks
// of the stretch's admissions, set forward where that happens, lie in order within D.
// They touch the last instant of one window, then whole = floor((D - 1) / w) windows
// to their last instant, then one up to (D - 1) mod w; any other place touches less.
// Fixed: a window admits the amount, so amount*(whole + 2). Sliding: a window that
// follows one of count P admits at most amount - ceil(P*left / w), left being what
// is left of it at its last admission. One unit more in a window takes at most one from
// the next, so the sum is largest when each window in turn admits all that it can.
//
// With S <= 60 s expiry changes nothing: with now_ns passed it comes 60 s or more after
// the key is as good as new on the writer's clock, so it is that on every clock by then.
// With a larger S the key may be gone before it is as good as new on a slower clock, and
// each time that happens this one is given units anew, up to a burst or amount. The bounds
// then hold only from one expiry to the next; TestTwoCallersWhoseClocksDiffer has an example.
package skew

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/tatami-rate/tatami/precision"
)

// gateways are callers of one key, each with its own clock.
type gateways struct {
	Script precision.Script
	Limit  precision.Call // Amount, PeriodNs, Burst and Sliding; the rest is not read
	// OffsetsNs is what each gateway's clock is ahead of the server's, ascending.
	OffsetsNs []int64
}

// arrival is a call of a gateway at an instant.
type arrival struct {
	atNs    int64
	gateway int
	cost    int64
}

// admission is an arrival that was admitted.
type admission struct {
	atNs, cost int64
}

// spanNs is the largest distance between two clocks.
func (g *gateways) spanNs() int64 { return g.OffsetsNs[len(g.OffsetsNs)-1] - g.OffsetsNs[0] }

// play makes the calls, in order, on a fresh key.
func (g *gateways) play(arrivals []arrival) []admission {
	calls := make([]precision.Call, len(arrivals))
	for i, a := range arrivals {
		calls[i] = g.Limit
		calls[i].Cost, calls[i].NowNs = a.cost, a.atNs+g.OffsetsNs[a.gateway]
	}
	outcomes := make([]precision.Outcome, len(calls))
	_ = precision.NewNative().Play(g.Script, "", calls, outcomes) // it never fails
	var admitted []admission
	for i, a := range arrivals {
		if outcomes[i].Status == 1 {
			admitted = append(admitted, admission{a.atNs, a.cost})
		}
	}
	return admitted
}

// bound is the most that can be admitted in any stretch of lengthNs, at least 2.
func (g *gateways) bound(lengthNs int64) int64 {
	c := &g.Limit
	d := lengthNs - 1 + g.spanNs()
	if !g.Script.IsWindow() {
		gcra := precision.NewGCRA(c.Amount, c.PeriodNs, c.Burst, g.Script.Grid())
		return c.Burst + d/gcra.Interval
	}
	w := precision.Window{Amount: c.Amount, PeriodNs: c.PeriodNs, Sliding: c.Sliding}
	whole, elapsed := (d-1)/c.PeriodNs, (d-1)%c.PeriodNs
	last := c.Amount
	units := last
	for range whole {
		last = w.Remaining(precision.Counts{Previous: uint16(last)}, 1)
		units += last
	}
	return units + w.Remaining(precision.Counts{Previous: uint16(last)}, c.PeriodNs-elapsed)
}

// peak is the most units in any stretch of lengthNs.
func peak(admitted []admission, lengthNs int64) (most int64) {
	units, from := int64(0), 0
	for _, a := range admitted {
		units += a.cost
		for ; admitted[from].atNs <= a.atNs-lengthNs; from++ {
			units -= admitted[from].cost
		}
		most = max(most, units)
	}
	return most
}

// traffics are ways to look for more than one clock lets through. Each gives calls
// for three periods and more, in order, on a key that has rested. Those with more to
// hit upon are tried more often.
var traffics = []struct {
	calls func(*gateways, *rand.Rand) []arrival
	tries int
}{
	{(*gateways).saturated, 1}, {(*gateways).straddling, 1}, {(*gateways).turns, 1}, {(*gateways).shaped, 1},
	{(*gateways).relay, 10},
}

// rested is the first instant of a traffic: half the time the slowest clock stands a
// nanosecond before a boundary.
func (g *gateways) rested(rng *rand.Rand) int64 {
	const today = 1_780_000_000_000_000_000
	if w := g.Limit.PeriodNs; rng.IntN(2) == 0 {
		return boundary(today, w) - 1 - g.OffsetsNs[0]
	}
	return today + rng.Int64N(g.Limit.PeriodNs)
}

// boundary is the first multiple of w at or after an instant.
func boundary(atNs, w int64) int64 { return (atNs + w - 1) / w * w }

// full is a number of calls of cost 1 that no script admits all of at one instant.
func (g *gateways) full() int64 { return max(g.Limit.Amount, g.Limit.Burst) + 1 }

// saturated: every gateway calls 500 times a period.
func (g *gateways) saturated(rng *rand.Rand) []arrival {
	var calls []arrival
	start, step := g.rested(rng), g.Limit.PeriodNs/500
	for gateway := range g.OffsetsNs {
		for at := rng.Int64N(step); at < 3*g.Limit.PeriodNs; at += step {
			calls = append(calls, arrival{start + at, gateway, 1})
		}
	}
	return inOrder(calls)
}

// straddling: every gateway fills its window at the last instant of it and the next
// one at its first, on its own clock.
func (g *gateways) straddling(rng *rand.Rand) []arrival {
	var calls []arrival
	w := g.Limit.PeriodNs
	start := g.rested(rng)
	for gateway, offset := range g.OffsetsNs {
		first := boundary(start+offset+1, w) - offset
		for at := first; at < first+3*w; at += w {
			for range g.full() {
				calls = append(calls, arrival{at - 1, gateway, 1}, arrival{at, gateway, 1})
			}
		}
	}
	return inOrder(calls)
}

// turns: 50 times a period the gateways fill their windows, slowest first.
func (g *gateways) turns(rng *rand.Rand) []arrival {
	var calls []arrival
	start := g.rested(rng)
	for at := start; at < start+3*g.Limit.PeriodNs; at += g.Limit.PeriodNs / 50 {
		for gateway := range g.OffsetsNs {
			for range g.full() {
				calls = append(calls, arrival{at, gateway, 1})
			}
		}
	}
	return calls
}

// relay: one gateway at a time, slowest first, fills its window and goes on 500 times a
// period until it hands over to the next. They all do so at once, or at the end of a
// period, or in between.
func (g *gateways) relay(rng *rand.Rand) []arrival {
	var calls []arrival
	w := g.Limit.PeriodNs
	start, step := g.rested(rng), w/500
	over := make([]int64, len(g.OffsetsNs)+1) // when each gateway takes over
	for i := 1; i < len(g.OffsetsNs); i++ {
		over[i] = rng.Int64N(w)
	}
	switch rng.IntN(3) {
	case 0:
		clear(over)
	case 1:
		for i := 1; i < len(over); i++ {
			over[i] = w - 1
		}
	}
	over[len(g.OffsetsNs)] = 3 * w
	slices.Sort(over)
	for gateway := range g.OffsetsNs {
		for range g.full() {
			calls = append(calls, arrival{start + over[gateway], gateway, 1})
		}
		for at := over[gateway] + step; at < over[gateway+1]; at += step {
			calls = append(calls, arrival{start + at, gateway, 1})
		}
	}
	return calls
}

// shaped: every gateway calls at a rate of its own after a silence of its own, asking
// for several units at times.
func (g *gateways) shaped(rng *rand.Rand) []arrival {
	var calls []arrival
	w := g.Limit.PeriodNs
	start := g.rested(rng)
	for gateway := range g.OffsetsNs {
		gap := w/500 + rng.Int64N(w/5)
		for at := rng.Int64N(2 * w); at < 3*w; at += gap {
			calls = append(calls, arrival{start + at, gateway, 1 + rng.Int64N(2)*rng.Int64N(g.Limit.Amount)})
		}
	}
	return inOrder(calls)
}

// inOrder sorts calls by their instants; at one instant they stay as they are.
func inOrder(calls []arrival) []arrival {
	slices.SortStableFunc(calls, func(a, b arrival) int { return cmp.Compare(a.atNs, b.atNs) })
	return calls
}

// Row is the worst that was found of a script under one span of clocks.
type Row struct {
	Script  precision.Script
	Sliding bool
	SpanNs  int64 // 0: the server's clock
	// Gateways is how many there were, Most the units that they were admitted in some
	// stretch of one period, Bound the most that is possible in that stretch.
	Gateways    int
	Most, Bound int64
}

// Algorithms are the scripts, the windows in both modes.
var Algorithms = []struct {
	Script  precision.Script
	Sliding bool
}{{precision.GCRAV1, false}, {precision.GCRAV2, false}, {precision.WindowV1, false}, {precision.WindowV1, true}}

// limit is the limit that Measure and Streams have: 10 a second, burst 10.
var limit = precision.Call{Amount: 10, PeriodNs: 1e9, Burst: 10}

// Measure measures every algorithm at each span, with 2 to 8 gateways whose clocks are
// spread evenly about the server's, under every traffic. Rows stand in the order of
// Algorithms, and within one in that of the spans.
func Measure(seed uint64, spansNs []int64) []Row {
	rows := make([]Row, len(Algorithms)*len(spansNs))
	var group sync.WaitGroup
	for i, algorithm := range Algorithms {
		group.Go(func() {
			for at, span := range spansNs {
				row := &rows[i*len(spansNs)+at]
				*row = Row{Script: algorithm.Script, Sliding: algorithm.Sliding, SpanNs: span}
				row.measure(rand.New(rand.NewPCG(seed, uint64(span))))
			}
		})
	}
	group.Wait()
	return rows
}

func (s *Row) measure(rng *rand.Rand) {
	for n := 2; n <= 8; n++ {
		g := &gateways{Script: s.Script, Limit: limit}
		g.Limit.Sliding = s.Sliding
		for i := range int64(n) {
			g.OffsetsNs = append(g.OffsetsNs, s.SpanNs*i/int64(n-1)-s.SpanNs/2)
		}
		for _, traffic := range traffics {
			for range traffic.tries {
				if most := peak(g.play(traffic.calls(g, rng)), limit.PeriodNs); most > s.Most {
					s.Gateways, s.Most, s.Bound = n, most, g.bound(limit.PeriodNs)
				}
			}
		}
	}
}
