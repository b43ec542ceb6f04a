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
	for w.Fits(at, left, want.Remaining+1) {
		want.Remaining++
	}
	// reset: how long until no count weighs at the start of a window
	if s != at || at.Previous > 0 || at.Current > 0 {
		for {
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
		for !fits(want.RetryAfterNs) {
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
