package precision

import (
	"math/rand/v2"

	"github.com/tatami-rate/tatami/emulator"
)

// Trace is a list of calls on one key, with what the native port says of each. It is
// made from a seed and an index alone.
type Trace struct {
	Script Script
	Calls  []Call
	Native []Outcome
}

// traceCalls is how many calls a trace has.
const traceCalls = 2000

// NewTrace returns the trace of a script with this seed and index. Styles take turns
// with the index, so that any run of a few dozen indexes has them all.
func NewTrace(script Script, seed uint64, index int) *Trace {
	// The constants keep the two scripts' and the indexes' streams apart.
	rng := rand.New(rand.NewPCG(seed, uint64(index)*2+uint64(len(script)%2)))
	t := &Trace{Script: script}
	if script == WindowV1 {
		t.window(rng, index)
	} else {
		t.gcra(rng, index)
	}
	return t
}

// add makes a call on the native port and appends it with its outcome.
func (t *Trace) add(k *nativeKey, c Call) *Outcome {
	t.Calls = append(t.Calls, c)
	t.Native = append(t.Native, k.call(t.Script, &c))
	return &t.Native[len(t.Native)-1]
}

// saturatedResidues are the values of interval mod 256 that a saturated stream is
// made for: both neighbours of a multiple, both of the half, and three in between.
var saturatedResidues = []int64{1, 76, 127, 128, 182, 255}

// saturatedAdmissions is how many admissions a saturated stream has.
const saturatedAdmissions = 100000

// NewSaturated returns a stream of gcra_v1 that is asked again as soon as it can
// admit: each call comes at the first instant of the script's own, and before every
// 16th stands one a nanosecond earlier, which must be refused. This is where errors
// that lean to one side add up.
func NewSaturated(residue int64) *Trace {
	t := &Trace{Script: GCRAV1}
	interval := 1024 + residue
	c := Call{Amount: 1, PeriodNs: interval, Burst: 4, Cost: 1, NowNs: 1_780_000_000_123_456_789}
	k := &nativeKey{}
	limit := NewGCRA(c.Amount, c.PeriodNs, c.Burst, emulator.Grid)
	for admitted := 0; admitted < saturatedAdmissions; admitted++ {
		first := limit.FirstNs(int64(k.tat), c.Cost)
		if admitted%16 == 15 {
			c.NowNs = max(c.NowNs, first-1)
			t.add(k, c)
		}
		c.NowNs = max(c.NowNs, first)
		t.add(k, c)
	}
	return t
}

// starts are instants near which doubles change: the ends of the range in which they
// are 256 apart, and 2^53.
var starts = []int64{0, 1 << 53, 1 << 60, 1 << 61}

// start picks an instant at which a trace begins: today's clocks, any clock below
// limit, the neighbourhood of the starts, the edges of seconds.
func start(rng *rand.Rand, limit int64) int64 {
	now := int64(0)
	switch rng.IntN(4) {
	case 0:
		now = 1_780_000_000_000_000_000 + rng.Int64N(1e18/4)
	case 1:
		now = rng.Int64N(limit)
	case 2:
		now = starts[rng.IntN(len(starts))] + rng.Int64N(4097) - 2048
	default:
		now = rng.Int64N(limit/1e9)*1e9 + rng.Int64N(5) - 2
	}
	return min(max(now, 0), limit-1)
}

// magnitude picks a whole number from 1 to limit, every power of two alike.
func magnitude(rng *rand.Rand, limit int64) int64 {
	top := int64(1) << rng.IntN(63)
	if top > limit {
		top = limit
	}
	return 1 + rng.Int64N(top)
}

// gcraLimit sets amount, period and burst, anywhere in their ranges.
func gcraLimit(rng *rand.Rand, c *Call) {
	interval := magnitude(rng, 1<<52)
	if rng.IntN(2) == 0 {
		interval = 1 + rng.Int64N(2048) // a few grid points: where rounding weighs most
	}
	c.Amount = magnitude(rng, (1<<52)/interval)
	if rng.IntN(2) == 0 {
		c.Amount = min(c.Amount, 1+rng.Int64N(1000))
	}
	// ceil(period / amount) is interval for each of these periods
	c.PeriodNs = max(interval*c.Amount-rng.Int64N(c.Amount), c.Amount)
	c.Burst = magnitude(rng, (1<<52)/interval)
	switch rng.IntN(4) {
	case 0, 1:
		c.Burst = min(c.Burst, 1+rng.Int64N(100))
	case 2:
		c.Burst = min(c.Burst, 1+rng.Int64N(3))
	}
}

// The styles of a gcra trace.
const (
	asked     = iota // at the wait that the last refusal named, and 1 ns before it
	edges            // around the exact oracle's first instant
	uniform          // gaps around the interval
	bursts           // several calls at one instant, then a pause
	changing         // the limit changes while the key is in use
	backwards        // the clock jumps back
	gcraStyles
)

func (t *Trace) gcra(rng *rand.Rand, index int) {
	style := index % gcraStyles
	var c Call
	gcraLimit(rng, &c)
	c.NowNs = start(rng, 1<<61)
	k := &nativeKey{}
	var last *Outcome
	for range traceCalls {
		if style == changing && rng.IntN(50) == 0 {
			gcraLimit(rng, &c)
		}
		c.Cost = 1
		switch rng.IntN(8) {
		case 0:
			c.Cost = []int64{0, c.Burst, c.Burst + 1, 1 << 52}[rng.IntN(4)]
		case 1:
			c.Cost = rng.Int64N(c.Burst + 2)
		}
		limit := NewGCRA(c.Amount, c.PeriodNs, c.Burst, emulator.Grid)
		step := int64(0)
		switch style {
		case asked, changing:
			if last != nil && last.Status == 0 {
				c.Cost = t.Calls[len(t.Calls)-1].Cost
				step = last.RetryAfterNs
				if step > 1 {
					step -= rng.Int64N(2)
				}
			}
		case edges:
			first := limit.FirstNs(int64(k.tat), min(c.Cost, c.Burst))
			step = first - c.NowNs + rng.Int64N(515) - 257
			if rng.IntN(2) == 0 {
				step = first - c.NowNs + rng.Int64N(3) - 1
			}
		case uniform:
			step = rng.Int64N(2*limit.Interval + 1)
		case bursts:
			if rng.IntN(int(min(c.Burst, 64))+2) == 0 {
				step = rng.Int64N(limit.Tau() + 1)
			}
		case backwards:
			step = rng.Int64N(2*limit.Interval + 1)
			if rng.IntN(20) == 0 {
				step = -magnitude(rng, c.NowNs+1)
			}
		}
		if style != backwards {
			step = max(step, 0)
		}
		if c.NowNs+step > 1<<61 || c.NowNs+step < 0 {
			step = 0
		}
		c.NowNs += step
		last = t.add(k, c)
	}
}

// windowLimit sets amount and period, anywhere in their ranges.
func windowLimit(rng *rand.Rand, c *Call) {
	c.Amount = min(magnitude(rng, 65535), 1+rng.Int64N(65535))
	c.PeriodNs = magnitude(rng, 1<<52)
	switch rng.IntN(4) {
	case 0:
		c.PeriodNs = 1000 + rng.Int64N(1<<52-999)
	case 1:
		c.PeriodNs = []int64{1, 2, 999, 1000, 1e6, 1e9, 8e9, 60e9, 3600e9, 1 << 26, 1<<26 + 1, 1<<52 - 1, 1 << 52}[rng.IntN(13)]
	}
	c.Sliding = rng.IntN(3) > 0
}

// window makes a trace of the window script: gaps from a small part of the window to
// several, boundaries to the nanosecond, the very instant at which the oracle's
// verdict turns, and in turns a limit that changes or a clock that runs backwards.
func (t *Trace) window(rng *rand.Rand, index int) {
	style := index % 4
	const changing, backwards = 2, 3
	var c Call
	windowLimit(rng, &c)
	c.NowNs = start(rng, 1<<62)
	if rng.IntN(4) == 0 && c.PeriodNs < 1<<30 {
		// where the index passes a multiple of 2^32
		c.NowNs = c.PeriodNs<<32 - 1 - rng.Int64N(c.PeriodNs)
	}
	k := &nativeKey{}
	for range traceCalls {
		if style == changing && rng.IntN(50) == 0 {
			windowLimit(rng, &c)
		}
		w := Window{c.Amount, c.PeriodNs, c.Sliding}
		stored := Counts{uint32(k.window.Index), uint16(k.window.Previous), uint16(k.window.Current)}
		counts, left := w.At(stored, c.NowNs)
		c.Cost = 1 + rng.Int64N(c.Amount)/(1+rng.Int64N(20))
		switch rng.IntN(10) {
		case 0:
			c.Cost = []int64{0, c.Amount, c.Amount + 1, 1 << 52}[rng.IntN(4)]
		case 1:
			c.Cost = max(c.Amount-int64(counts.Current), 0) // fills the window, if nothing is carried
		}
		step := rng.Int64N(c.PeriodNs)/8 + rng.Int64N(2)
		switch rng.IntN(8) {
		case 0:
			step = left + rng.Int64N(3) - 1
		case 1:
			step = left + c.PeriodNs + rng.Int64N(3) - 1
		case 2, 3:
			step = w.turn(counts, left, min(c.Cost, c.Amount)) + rng.Int64N(3) - 1
		case 4:
			step = 0
		case 5:
			step = rng.Int64N(3 * c.PeriodNs)
		}
		if style == backwards && rng.IntN(20) == 0 {
			step = -magnitude(rng, c.NowNs+1)
		} else {
			step = max(step, 0)
		}
		if c.NowNs > 1<<62-step || c.NowNs+step < 0 {
			step = 0
		}
		c.NowNs += step
		t.add(k, c)
	}
}

// turn is the time until cost units fit within this window: by bisection, since what
// is carried only falls; the whole of the window where they never do.
func (w Window) turn(s Counts, leftNs, cost int64) int64 {
	low, high := int64(0), leftNs
	for low < high {
		middle := low + (high-low)/2
		if w.Fits(s, leftNs-middle, cost) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
