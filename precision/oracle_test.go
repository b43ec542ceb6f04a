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
		w := Window{c.Amount, c.PeriodNs, c.Sliding}
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

func TestWindowRollsAndPromises(t *testing.T) {
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
	rolled := Counts{Index: uint32(now / w.PeriodNs)}
	if rolled.Index == s.Index {
		rolled = s
	} else if rolled.Index == s.Index+1 {
		rolled.Previous = s.Current
	}
	at, left := w.At(s, now)
	if at != rolled || left != w.PeriodNs-now%w.PeriodNs {
		t.Fatalf("%+v %+v at %d: %+v, %d left", w, s, now, at, left)
	}
	v, after := w.Call(s, cost, now)
	if fits := w.Fits(at, left, cost); (v.Status == 1) != fits || (v.Status == -1) != (cost > w.Amount) {
		t.Fatalf("%+v %+v cost %d at %d: status %d, fits %v", w, s, cost, now, v.Status, fits)
	}
	written := s
	if v.Status == 1 && cost > 0 {
		written = at
		written.Current += uint16(cost)
	}
	if after != written {
		t.Fatalf("%+v %+v cost %d at %d: state %+v, want %+v", w, s, cost, now, after, written)
	}
	if v.Status == 1 && cost > 0 {
		at = written
	}
	remaining := int64(0)
	for w.Fits(at, left, remaining+1) {
		remaining++
	}
	if v.Remaining != remaining {
		t.Fatalf("%+v %+v cost %d at %d: remaining %d, want %d", w, s, cost, now, v.Remaining, remaining)
	}
	// reset: from when on, and not before, a fresh key's remaining is there
	reset := int64(0)
	for {
		later, left := w.At(at, now+reset)
		if w.remaining(later, left) == w.Amount || weightless(w, later) {
			break
		}
		reset++
	}
	if v.ResetAfterNs != reset {
		t.Fatalf("%+v %+v cost %d at %d: reset %d, want %d", w, s, cost, now, v.ResetAfterNs, reset)
	}
	if v.Status == 0 {
		later, left := w.At(s, now+v.RetryAfterNs)
		if !w.Fits(later, left, cost) {
			t.Fatalf("%+v %+v cost %d at %d: retry %d is too short", w, s, cost, now, v.RetryAfterNs)
		}
	}
}

// weightless tells whether no count weighs at the start of a window.
func weightless(w Window, s Counts) bool {
	return s.Current == 0 && (s.Previous == 0 || !w.Sliding)
}
