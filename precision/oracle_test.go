package precision

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// The oracle's closed forms against the definitions, by brute force and in big
// integers.

func TestGCRAIsItsDefinition(t *testing.T) {
	// all small limiters, states, costs and clocks
	for interval := int64(1); interval <= 4; interval++ {
		for burst := int64(1); burst <= 4; burst++ {
			g := GCRA{interval, burst}
			for tat := range int64(40) {
				for now := range int64(40) {
					for cost := range burst + 2 {
						v, after := g.Call(tat, cost, now)
						if want := definedGCRA(g, tat, cost, now); v != want {
							t.Fatalf("%+v tat %d cost %d now %d: %+v, want %+v", g, tat, cost, now, v, want)
						}
						want := tat
						if v.Status == 1 && cost > 0 {
							want = max(tat, now) + cost*interval
						}
						if after != want {
							t.Fatalf("%+v tat %d cost %d now %d: tat %d, want %d", g, tat, cost, now, after, want)
						}
					}
				}
			}
		}
	}
}

// definedGCRA reads every field off the admission rule alone.
func definedGCRA(g GCRA, tat, cost, now int64) Verdict {
	admits := func(tat, cost, now int64) bool {
		return cost <= g.Burst && now >= max(tat, now)+cost*g.Interval-g.Tau()
	}
	v := Verdict{Status: 1}
	switch {
	case cost > g.Burst:
		v.Status, v.RetryAfterNs = -1, -1
	case !admits(tat, cost, now):
		v.Status = 0
		for !admits(tat, cost, now+v.RetryAfterNs) {
			v.RetryAfterNs++
		}
	case cost > 0:
		tat = max(tat, now) + cost*g.Interval
	}
	for admits(tat, v.Remaining+1, now) {
		v.Remaining++
	}
	for now+v.ResetAfterNs < tat {
		v.ResetAfterNs++
	}
	return v
}

func TestIntervalIsRoundedUp(t *testing.T) {
	for period := int64(1); period <= 64; period++ {
		for amount := int64(1); amount <= period; amount++ {
			interval := NewGCRA(amount, period, 1, 1).Interval
			if interval*amount < period || (interval-1)*amount >= period {
				t.Fatalf("ceil(%d / %d) is not %d", period, amount, interval)
			}
		}
	}
}

func TestWindowFitsIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200000 {
		var c Call
		windowLimit(rng, &c)
		w := c.Window()
		s := Counts{0, uint16(rng.Uint32()), uint16(rng.Int64N(w.Amount + 1))}
		left := 1 + rng.Int64N(w.PeriodNs)
		cost := rng.Int64N(w.Amount + 1)
		if rng.IntN(2) == 0 { // where the two sides are nearly equal
			left = min(max(w.turn(s, w.PeriodNs, cost), 1), w.PeriodNs)
			left = w.PeriodNs - left + 1
		}
		weight := left
		if !w.Sliding {
			weight = 0
		}
		spent := new(big.Int).Mul(big.NewInt(int64(s.Previous)), big.NewInt(weight))
		spent.Add(spent, new(big.Int).Mul(big.NewInt(int64(s.Current)+cost), big.NewInt(w.PeriodNs)))
		most := new(big.Int).Mul(big.NewInt(w.Amount), big.NewInt(w.PeriodNs))
		if want := spent.Cmp(most) <= 0; w.Fits(s, left, cost) != want {
			t.Fatalf("%+v %+v left %d cost %d: fits is not %v", w, s, left, cost, want)
		}
	}
}

func TestWindowIsItsDefinition(t *testing.T) {
	// all small windows, states and clocks
	for _, sliding := range []bool{false, true} {
		for period := int64(1); period <= 4; period++ {
			for amount := int64(1); amount <= 3; amount++ {
				w := Window{amount, period, sliding}
				for stored := range uint16(64) {
					s := Counts{uint32(stored / 16), stored % 4, stored / 4 % 4}
					for now := range 4 * period {
						for cost := range amount + 2 {
							checkWindow(t, w, s, cost, now)
						}
					}
				}
			}
		}
	}
}

func checkWindow(t *testing.T, w Window, s Counts, cost, now int64) {
	t.Helper()
	index := now / w.PeriodNs
	rolled, left, gap := Counts{Index: uint32(index)}, w.PeriodNs-now%w.PeriodNs, int64(0)
	switch stored := int64(s.Index); {
	case stored == index:
		rolled = s
	case stored == index-1:
		rolled.Previous = s.Current
	case stored > index && (s.Previous > 0 || s.Current > 0):
		rolled, left, gap = s, w.PeriodNs, stored*w.PeriodNs-now
	}
	at, atLeft, atGap := w.At(s, now)
	if at != rolled || atLeft != left || atGap != gap {
		t.Fatalf("%+v %+v at %d: %+v, %d left, gap %d", w, s, now, at, atLeft, atGap)
	}
	v, after := w.Call(s, cost, now)
	if fits := w.Fits(at, left, cost); (v.Status == 1) != fits || (v.Status == -1) != (cost > w.Amount) {
		t.Fatalf("%+v %+v cost %d at %d: status %d, fits %v", w, s, cost, now, v.Status, fits)
	}
	written := s
	if v.Status == 1 && cost > 0 {
		at.Current += uint16(cost)
		written = at
	}
	if after != written {
		t.Fatalf("%+v %+v cost %d at %d: state %+v, want %+v", w, s, cost, now, after, written)
	}
	want := Verdict{Status: v.Status}
	const most = 1000 // more than any number here, so that a wrong one ends
	for want.Remaining < most && w.Fits(at, left, want.Remaining+1) {
		want.Remaining++
	}
	// reset: how long until no count weighs at the start of a window
	if s != at || at.Previous > 0 || at.Current > 0 {
		for want.ResetAfterNs < most {
			later, _, _ := w.At(at, now+want.ResetAfterNs)
			if later.Current == 0 && (later.Previous == 0 || !w.Sliding) {
				break
			}
			want.ResetAfterNs++
		}
	}
	fits := func(after int64) bool {
		later, left, _ := w.At(s, now+after)
		return w.Fits(later, left, cost)
	}
	switch {
	case v.Status == -1:
		want.RetryAfterNs = -1
	case v.Status == 0: // the earliest instant
		for want.RetryAfterNs < most && !fits(want.RetryAfterNs) {
			want.RetryAfterNs++
		}
	}
	if v != want {
		t.Fatalf("%+v %+v cost %d at %d: %+v, want %+v", w, s, cost, now, v, want)
	}
}

// How far behind a clock may be.
func TestWindowGapIsBounded(t *testing.T) {
	s := Counts{1000, 3, 4}
	for _, test := range []struct{ period, now, gap int64 }{
		{1000e9, 999e12, 1000e9}, // the window before, however long
		{1 << 52, 999 << 52, 1 << 52},
		{30e9, 998 * 30e9, 60e9}, // a minute
		{30e9, 998*30e9 - 1, 0},
		{1e9, 940e9, 60e9},
		{1e9, 940e9 - 1, 0},
		{1, 0, 1000},
		{1 << 52, 998 << 52, 0},
	} {
		w := Window{10, test.period, true}
		want, wantLeft := s, test.period
		if test.gap == 0 {
			want, wantLeft = Counts{Index: uint32(test.now / test.period)}, test.period-test.now%test.period
		}
		at, left, gap := w.At(s, test.now)
		if at != want || left != wantLeft || gap != test.gap {
			t.Errorf("%+v: %+v, %d left, gap %d", test, at, left, gap)
		}
	}
}

// At by big integers, at the edges of each of its comparisons: how far the stored window lies
// ahead, mod 2^32, and how long until it begins.
func TestWindowAtIsItsDefinition(t *testing.T) {
	round := new(big.Int).Lsh(big.NewInt(1), 32)
	defined := func(w Window, s Counts, nowNs int64) (at Counts, leftNs, gapNs int64) {
		index, elapsed := new(big.Int).DivMod(big.NewInt(nowNs), big.NewInt(w.PeriodNs), new(big.Int))
		index.Mod(index, round)
		// the stored window less the clock's, from 2^31 behind to less than that ahead
		ahead := new(big.Int).Sub(big.NewInt(int64(s.Index)), index)
		half := new(big.Int).Rsh(round, 1)
		if ahead.Cmp(half) > 0 {
			ahead.Sub(ahead, round)
		} else if ahead.Cmp(new(big.Int).Neg(half)) <= 0 {
			ahead.Add(ahead, round)
		}
		gap := new(big.Int).Sub(new(big.Int).Mul(ahead, big.NewInt(w.PeriodNs)), elapsed)
		counts := s.Previous > 0 || s.Current > 0
		minute := big.NewInt(60_000_000_000)
		switch {
		case ahead.Sign() > 0 && counts && (ahead.Cmp(big.NewInt(1)) == 0 || gap.Cmp(minute) <= 0):
			return s, w.PeriodNs, gap.Int64()
		case ahead.Sign() == 0:
			at = s
		case ahead.Cmp(big.NewInt(-1)) == 0:
			at = Counts{uint32(index.Uint64()), s.Current, 0}
		default:
			at = Counts{Index: uint32(index.Uint64())}
		}
		return at, w.PeriodNs - elapsed.Int64(), 0
	}
	tried := 0
	for _, period := range []int64{1, 2, 27, 28, 29, 1000, 1e9, 30e9, 60e9, 60e9 + 1, 1 << 40, 1<<52 - 1, 1 << 52} {
		for _, index := range []int64{0, 1, 5000, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 5000} {
			if period > 1<<62/(index+2) {
				continue // past every clock
			}
			deltas := []int64{-5000, -2, -1, 0, 1, 2, 3, 4096, 1 << 20, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 2}
			for more := int64(-1); more <= 1; more++ {
				deltas = append(deltas, 60e9/period+more)
			}
			for _, delta := range deltas {
				for _, elapsed := range []int64{0, 1, period / 2, period - 1} {
					for _, counts := range []Counts{{}, {Previous: 3}, {Current: 4}, {Previous: 3, Current: 4}} {
						tried++
						w, s, now := Window{10, period, true}, counts, index*period+min(elapsed, period-1)
						s.Index = uint32(index + delta)
						at, left, gap := w.At(s, now)
						wantAt, wantLeft, wantGap := defined(w, s, now)
						if at != wantAt || left != wantLeft || gap != wantGap {
							t.Fatalf("period %d, %+v at %d: %+v, %d left, gap %d; want %+v, %d, %d",
								period, s, now, at, left, gap, wantAt, wantLeft, wantGap)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", tried)
}

// The reply of a window with numbers of every size, by its inequality in big integers.
func TestWindowReplyIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var seen [3]int
	for range 100000 {
		var c Call
		windowLimit(rng, &c)
		w := c.Window()
		now := rng.Int64N(1<<62-2*w.PeriodNs) / w.PeriodNs * w.PeriodNs
		s := Counts{uint32(now / w.PeriodNs), uint16(rng.Int64N(w.Amount + 1)), uint16(rng.Int64N(w.Amount + 1))}
		now += rng.Int64N(w.PeriodNs)
		cost := rng.Int64N(w.Amount + 2)
		if rng.IntN(2) == 0 {
			cost = min(cost, max(w.Amount-int64(s.Current), 0))
		}
		// previous x left + (current + cost) x period <= amount x period, some time later
		fits := func(cost, laterNs int64) bool {
			windows := (now%w.PeriodNs + laterNs) / w.PeriodNs
			previous, current := int64(s.Previous), int64(s.Current)
			switch {
			case windows == 1:
				previous, current = current, 0
			case windows > 1:
				previous, current = 0, 0
			}
			left := w.PeriodNs - (now+laterNs)%w.PeriodNs
			if !w.Sliding {
				left = 0
			}
			spent := new(big.Int).Mul(big.NewInt(previous), big.NewInt(left))
			spent.Add(spent, new(big.Int).Mul(big.NewInt(current+cost), big.NewInt(w.PeriodNs)))
			return spent.Cmp(new(big.Int).Mul(big.NewInt(w.Amount), big.NewInt(w.PeriodNs))) <= 0
		}
		v, after := w.Call(s, cost, now)
		seen[v.Status+1]++
		wantAfter := s
		if v.Status == 1 {
			wantAfter.Current += uint16(cost)
		}
		ok := after == wantAfter
		switch v.Status {
		case -1:
			ok = ok && cost > w.Amount && v.RetryAfterNs == -1
		case 0:
			ok = ok && cost <= w.Amount && !fits(cost, 0) && v.RetryAfterNs > 0 && fits(cost, v.RetryAfterNs) && !fits(cost, v.RetryAfterNs-1)
		case 1:
			ok = ok && fits(cost, 0) && v.RetryAfterNs == 0
			s = after
		}
		ok = ok && v.Remaining >= 0 && (v.Remaining == 0 || fits(v.Remaining, 0)) && !fits(v.Remaining+1, 0)
		left := w.PeriodNs - now%w.PeriodNs
		reset := int64(0)
		if s.Previous > 0 && w.Sliding || s.Current > 0 {
			reset = left
		}
		if s.Current > 0 && w.Sliding {
			reset = left + w.PeriodNs
		}
		if !ok || v.ResetAfterNs != reset {
			t.Fatalf("%+v %+v cost %d at %d: %+v, reset %d", w, s, cost, now, v, reset)
		}
	}
	t.Logf("%d never, %d refused, %d admitted", seen[0], seen[1], seen[2])
}

// GCRA with numbers of every size up to where nothing overflows, in big integers.
func TestGCRAOfLargeNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	var seen [3]int
	for range 100000 {
		var c Call
		gcraLimit(rng, &c)
		g := NewGCRA(c.Amount, c.PeriodNs, c.Burst, []int64{1, 4, 256}[rng.IntN(3)])
		now := rng.Int64N(1<<61) + rng.Int64N(1<<61)
		tat := max(now+rng.Int64N(4*g.Tau()+3)-2*g.Tau()-1, 0)
		cost := rng.Int64N(g.Burst + 2)
		if first := tat + cost*g.Interval - g.Tau(); rng.IntN(2) == 0 && first > 1 {
			now = first + rng.Int64N(3) - 1
		}
		tau := new(big.Int).Mul(big.NewInt(g.Interval), big.NewInt(g.Burst))
		base := max(tat, now)
		spent := new(big.Int).Mul(big.NewInt(cost), big.NewInt(g.Interval))
		wait := new(big.Int).Sub(new(big.Int).Add(big.NewInt(base), spent), tau) // the first instant
		wait.Sub(wait, big.NewInt(now))
		want, after := Verdict{Status: 1}, tat
		switch {
		case cost > g.Burst:
			want.Status, want.RetryAfterNs = -1, -1
		case wait.Sign() > 0:
			want.Status, want.RetryAfterNs = 0, wait.Int64()
		case cost > 0:
			after = new(big.Int).Add(big.NewInt(base), spent).Int64()
		}
		debt := big.NewInt(max(after-now, 0))
		if free := new(big.Int).Sub(tau, debt); free.Sign() > 0 {
			want.Remaining = free.Div(free, big.NewInt(g.Interval)).Int64()
		}
		want.ResetAfterNs = debt.Int64()
		v, got := g.Call(tat, cost, now)
		seen[v.Status+1]++
		if v != want || got != after {
			t.Fatalf("%+v tat %d cost %d now %d: %+v and %d, want %+v and %d", g, tat, cost, now, v, got, want, after)
		}
	}
	t.Logf("%d never, %d refused, %d admitted", seen[0], seen[1], seen[2])
}

// upTo and ceilDiv by big integers, at the edges of what they are used for.
func TestRoundingUp(t *testing.T) {
	ends := []int64{0, 1, 2, 3, 255, 256, 257, 1e9 - 1, 1e9, 1e9 + 1, 1 << 52, 1<<53 + 1, 1 << 61, 1<<62 - 1, 1 << 62}
	for _, x := range ends {
		for _, a := range ends[1:] {
			q, rest := new(big.Int).DivMod(big.NewInt(x), big.NewInt(a), new(big.Int))
			if rest.Sign() > 0 {
				q.Add(q, big.NewInt(1))
			}
			if got := ceilDiv(x, a); got != q.Int64() {
				t.Errorf("ceil(%d / %d) is not %d", x, a, got)
			}
		}
		for _, grid := range []int64{1, 2, 4, 256, 1 << 20} {
			want := new(big.Int).Sub(big.NewInt(x), big.NewInt(1))
			want.Div(want, big.NewInt(grid)).Add(want, big.NewInt(1)).Mul(want, big.NewInt(grid))
			if got := upTo(grid, x); got != want.Int64() {
				t.Errorf("%d up to a multiple of %d is not %d", x, grid, got)
			}
		}
	}
}

// The EX of a key by the instants that it is made of: the whole second at which the key is to
// end, and the second of the clock.
func TestExpiriesAreTheirDefinition(t *testing.T) {
	for _, clock := range []int64{0, 1, 999_999_999, 1e9, 1e9 + 1, epoch, epoch + 5e8, epoch + 999_999_999} {
		for _, ahead := range []int64{0, 1, 5e8, 999_999_999, 1e9, 1e9 + 1, 61e9, 1 << 52} {
			over := clock + ahead
			// of a TAT: its second is over at end, and the key ends 1 s after that; of a caller's
			// clock a minute after
			end := int64(0)
			for end = over / 1e9; end*1e9 <= over; end++ {
			}
			if got, want := gcraTTLS(uint64(over), clock, true), end+1-clock/1e9; got != want {
				t.Errorf("gcra, from %d to %d: %d s, want %d", clock, over, got, want)
			}
			if got, want := gcraTTLS(uint64(over), clock, false), end+60-clock/1e9; got != want {
				t.Errorf("gcra by a caller, from %d to %d: %d s, want %d", clock, over, got, want)
			}
			// of a window: the first whole second at or after the end, and 1 s
			for end = over / 1e9; end*1e9 < over; end++ {
			}
			if got, want := windowTTLS(ahead, clock, true), end+1-clock/1e9; got != want {
				t.Errorf("window, from %d to %d: %d s, want %d", clock, over, got, want)
			}
			// by a caller's clock the time from now, in whole seconds up, and a minute
			for end = 0; end*1e9 < ahead; end++ {
			}
			if got, want := windowTTLS(ahead, clock, false), end+60; got != want {
				t.Errorf("window by a caller, from %d to %d: %d s, want %d", clock, over, got, want)
			}
		}
	}
}
