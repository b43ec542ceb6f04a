package precision

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/internal/number"
)

// What the proofs in proof/ rest on and Gappa cannot state. Where a lemma speaks of
// numbers alone it is tried on every input of a format with few bits, and on doubles at
// random and where the margin is least; where it speaks of a script, on the native port.

// few rounds x to a float of bits bits, ties to even, exponents without bound. One
// operation in float64 rounded by it is that operation in the small format, since
// 53 >= 2*bits + 2: rounding twice then does no harm.
func few(x float64, bits int) float64 {
	fraction, exponent := math.Frexp(x)
	return math.Ldexp(math.RoundToEven(math.Ldexp(fraction, bits)), exponent-bits)
}

// hard calls f with whole numbers p and a from 1 to 2^53 - 1: at random, and with p
// beside and on a multiple of a, as large as it can be.
func hard(f func(p, a int64)) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 1_000_000 {
		a := magnitude(rng, 1<<53-1)
		f(magnitude(rng, 1<<53-1), a)
		most := (1<<53 - 2) / a
		for _, times := range []int64{most, 1 + rng.Int64N(max(most, 1))} {
			for step := int64(-1); step <= 1; step++ {
				if p := times*a + step; p >= 1 && p < 1<<53 {
					f(p, a)
				}
			}
		}
	}
}

// floor and ceil of the rounded quotient of whole numbers below 2^53 are those of the
// quotient.
func TestLemmaQuotient(t *testing.T) {
	for bits := 2; bits <= 10; bits++ {
		for p := int64(1); p < 1<<bits; p++ {
			for a := int64(1); a < 1<<bits; a++ {
				q := few(float64(p)/float64(a), bits)
				if math.Floor(q) != float64(p/a) || math.Ceil(q) != float64(ceilDiv(p, a)) ||
					math.Floor(-q) != float64(-ceilDiv(p, a)) {
					t.Fatalf("%d bits: %d / %d rounds to %v", bits, p, a, q)
				}
			}
		}
	}
	hard(func(p, a int64) {
		q := float64(p) / float64(a)
		if math.Floor(q) != float64(p/a) || math.Ceil(q) != float64(ceilDiv(p, a)) ||
			math.Floor(-q) != float64(-ceilDiv(p, a)) {
			t.Fatalf("%d / %d rounds to %v", p, a, q)
		}
	})
}

// a - floor(a / b) * b, each operation rounded, is the exact remainder for |a| and b
// below 2^53, where the multiple of b below a negative a is not below -2^53; and so it is
// for 256 times such numbers.
func TestLemmaRemainder(t *testing.T) {
	for bits := 2; bits <= 10; bits++ {
		for a := 1 - int64(1)<<bits; a < 1<<bits; a++ {
			for b := int64(1); b < 1<<bits; b++ {
				remainder := (a%b + b) % b
				if remainder-a > 1<<bits {
					continue
				}
				product := few(math.Floor(few(float64(a)/float64(b), bits))*float64(b), bits)
				if r := few(float64(a)-product, bits); r != float64(remainder) {
					t.Fatalf("%d bits: %d %% %d is %v", bits, a, b, r)
				}
			}
		}
	}
	hard(func(a, b int64) {
		remainder, up := a%b, (b-a%b)%b
		x, y := float64(a), float64(b)
		if number.Mod(x, y) != float64(remainder) || number.Mod(x*grid, y*grid) != float64(remainder)*grid ||
			a+up <= 1<<53 && number.Mod(-x, y) != float64(up) {
			t.Fatalf("%d %% %d is %v, negative %v", a, b, number.Mod(x, y), number.Mod(-x, y))
		}
	})
}

// A whole burst is at most the rounded 2^52 / interval exactly when burst * interval is
// at most 2^52.
func TestLemmaBurst(t *testing.T) {
	for bits := 2; bits <= 11; bits++ {
		most := int64(1) << (bits - 1)
		for interval := int64(1); interval <= most; interval++ {
			q := few(float64(most)/float64(interval), bits)
			for burst := int64(1); burst <= most; burst++ {
				if (float64(burst) <= q) != (burst*interval <= most) {
					t.Fatalf("%d bits: burst %d, interval %d: the quotient is %v", bits, burst, interval, q)
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(8, 8))
	for range 200_000 {
		interval := magnitude(rng, 1<<52)
		if rng.IntN(2) == 0 { // a quotient close to a whole number
			interval = ceilDiv(1<<52, magnitude(rng, 1<<26)) + rng.Int64N(3) - 1
		}
		interval = min(interval, 1<<52)
		for burst := (1 << 52) / interval; burst <= (1<<52)/interval+1; burst++ {
			a := native.GCRAArgs{Amount: 1, PeriodNs: float64(interval), Burst: float64(burst)}
			fits := new(big.Int).Mul(big.NewInt(interval), big.NewInt(burst)).Cmp(big.NewInt(1<<52)) <= 0
			_, v1 := native.GCRAV1(0, a, native.CallerClock(0))
			_, v2 := native.GCRAV2(native.TAT{}, a, native.CallerClock(0))
			if (v1.Err == "") != fits || (v2.Err == "") != fits {
				t.Fatalf("burst %d, interval %d: %q, %q", burst, interval, v1.Err, v2.Err)
			}
		}
	}
}

// A rounded sum, difference or product lies on the side of a double, 0 or another, on
// which the exact one lies, or on that double.
func TestLemmaSides(t *testing.T) {
	const bits = 4
	var doubles []float64
	for x := -256.0; x <= 256; x++ {
		if few(x, bits) == x {
			doubles = append(doubles, x)
		}
	}
	for _, a := range doubles {
		for _, b := range doubles {
			for _, exact := range []float64{a + b, a - b, a * b} {
				rounded := few(exact, bits)
				if (rounded == 0) != (exact == 0) {
					t.Fatalf("%v rounds to %v", exact, rounded)
				}
				for _, c := range doubles {
					if exact >= c && rounded < c || exact <= c && rounded > c {
						t.Fatalf("%v rounds to %v, across %v", exact, rounded, c)
					}
				}
			}
		}
	}
}

// floor(q + 0.5), where q is the rounded quotient by w of a rounded multiple of w, is the
// index of the window, of every clock that is a float.
func TestLemmaIndex(t *testing.T) {
	const bits, indexBits = 11, 6 // a double has 53 and 32
	for w := int64(1); w <= 1<<(bits-1); w++ {
		clock := int64(0)
		for clock < w<<indexBits {
			e := clock % w
			q := few(few(float64(clock-e), bits)/float64(w), bits)
			if i := math.Floor(few(q+0.5, bits)); i != float64(clock/w) {
				t.Fatalf("clock %d, window %d: index %v", clock, w, i)
			}
			clock += int64(1) << max(0, math.Ilogb(float64(max(clock, 1)))+1-bits) // the next float
		}
	}
}

// carried is ceil(previous * left / w), by the operations of the window scripts.
func TestLemmaCarried(t *testing.T) {
	const bits, countBits = 11, 4 // a double has 53 and 16
	for w := int64(1); w <= 1<<(bits-1); w++ {
		for previous := int64(1); previous < 1<<countBits; previous++ {
			for left := int64(1); left <= w; left++ {
				product := few(float64(previous*left), bits)
				carried := int64(math.Floor(few(few(product/float64(w), bits)+0.5, bits)))
				spare := w % previous
				if left > carried*((w-spare)/previous)+carried*spare/previous {
					carried++
				}
				if carried != ceilDiv(previous*left, w) {
					t.Fatalf("previous %d, left %d, w %d: carried %d", previous, left, w, carried)
				}
			}
		}
	}
}

// ceil(x / 1e6) is that of the exact quotient for every wait of the window scripts and
// below 2^53 of gcra_v1, and for multiples of 256 up to 2^40 ms. From there on gcra_v1
// may give 1 ms less, of a wait at most 64 ns longer.
func TestLemmaMilliseconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	check := func(x, shortNs int64) {
		ms := int64(math.Ceil(float64(x) / 1e6))
		if ms != ceilDiv(x, 1e6) && (ms != x/1e6 || x-ms*1e6 > shortNs) {
			t.Fatalf("ceil(%d / 1e6) is %d", x, ms)
		}
	}
	const lastMs, far = (1<<53 + 1<<52) / 1000000, 1<<60 + grid
	for range 1_000_000 {
		ms := rng.Int64N(lastMs)
		if rng.IntN(2) == 0 {
			ms = lastMs - rng.Int64N(1000)
		}
		for step := int64(-2); step <= 2; step++ {
			if x := max(ms*1e6+step, 0); int64(float64(x)) == x {
				check(x, 0)
			}
		}
		// 64 ns beside a whole ms, where a multiple of 256 can be
		ms = 1<<33 + rng.Int64N(far/1000000-1<<33)
		for x := (ms*1e6 - 512) / grid * grid; x <= min(ms*1e6+512, far); x += grid {
			if x < 1e6<<40 {
				check(x, 0)
			} else {
				check(x, 64)
			}
		}
	}
	// the case that the bound is for
	x := int64(256) * (11719 + 15625*288000000000)
	if ms := int64(math.Ceil(float64(x) / 1e6)); x%1e6 != 64 || ms != x/1e6 {
		t.Errorf("ceil(%d / 1e6) is %d, not 1 less than exact", x, ms)
	}
}

// Each script refuses a clock, and gcra_v1 a TAT, exactly where integers say so.
func TestLemmaClock(t *testing.T) {
	rng := rand.New(rand.NewPCG(10, 10))
	up := func(x *big.Int) *big.Int { // to the grid
		x = new(big.Int).Add(x, big.NewInt(grid-1))
		return x.Rsh(x, 8).Lsh(x, 8)
	}
	for range 200_000 {
		a := native.GCRAArgs{Amount: 1, PeriodNs: float64(magnitude(rng, 1<<52))}
		a.Burst = float64(magnitude(rng, (1<<52)/int64(a.PeriodNs)))
		tau := NewGCRA(1, int64(a.PeriodNs), int64(a.Burst), 1).Tau()
		tau1 := NewGCRA(1, int64(a.PeriodNs), int64(a.Burst), grid).Tau()
		now := new(big.Int).SetUint64(rng.Uint64N(1e19))
		edges := []uint64{1<<61 - uint64(tau1), 1 << 61, 1 << 62, 1<<63 - uint64(tau), 1 << 63}
		if rng.IntN(4) > 0 {
			now.SetUint64(edges[rng.IntN(len(edges))])
			step := int64(1200)
			if rng.IntN(2) == 0 {
				step = 2e9
			}
			now.Add(now, big.NewInt(rng.Int64N(2*step)-step))
		}
		clock := native.ParseClock(now.String())
		within := func(limit uint64, x *big.Int) bool { return x.Cmp(new(big.Int).SetUint64(limit)) <= 0 }

		_, d := native.GCRAV1(0, a, clock)
		if (d.Err == "") != within(1<<61-uint64(tau1), up(now)) {
			t.Fatalf("gcra_v1 at %d, tau %d: %q", now, tau1, d.Err)
		}
		tat := native.ParseTAT(now.String())
		if want := up(now); math.IsInf(tat, 1) == within(1<<61, want) || !math.IsInf(tat, 1) && tat != float64(want.Int64()) {
			t.Fatalf("gcra_v1 reads %d as %v", now, tat)
		}
		_, d = native.GCRAV2(native.TAT{}, a, clock)
		if (d.Err == "") != within(math.MaxInt64-uint64(tau), now) {
			t.Fatalf("gcra_v2 at %d, tau %d: %q", now, tau, d.Err)
		}
		w := native.WindowArgs{Amount: 1, PeriodNs: a.PeriodNs}
		_, v1 := native.WindowV1(native.WindowState{}, w, clock)
		_, v2 := native.WindowV2(native.WindowState{}, w, clock)
		if fits := within(1<<62-1, now); (v1.Err == "") != fits || (v2.Err == "") != fits {
			t.Fatalf("windows at %d: %q, %q", now, v1.Err, v2.Err)
		}
	}
}

// The waits of gcra_v2: exact below 2^53, and from there on 0 to 4096 ns more, with
// clocks from 2048 ns on and TATs below 2^63.
func TestLemmaFarGCRA(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	edges := []int64{1 << 53, 1 << 60, 1 << 61, 1 << 62, math.MaxInt64}
	longest := int64(0)
	for range 1_000_000 {
		a := native.GCRAArgs{Amount: 1, PeriodNs: float64(magnitude(rng, 1<<52)), Cost: 1}
		a.Burst = float64(magnitude(rng, (1<<52)/int64(a.PeriodNs)))
		g := NewGCRA(1, int64(a.PeriodNs), int64(a.Burst), 1)
		ahead := rng.Int64N(math.MaxInt64 - 2048)
		if rng.IntN(2) == 0 {
			ahead = min(edges[rng.IntN(len(edges))]-rng.Int64N(4096), math.MaxInt64-2048)
		}
		now := 2048 + rng.Int64N(math.MaxInt64-2048-ahead+1)
		if now > math.MaxInt64-g.Tau() {
			continue
		}
		tat := ahead + now
		want, _ := g.Call(tat, 1, now)
		state := native.TAT{S: float64(tat / 1e9), Ns: float64(tat % 1e9)}
		_, d := native.GCRAV2(state, a, native.CallerClock(now))
		reset, retry := d.ResetAfterNs-want.ResetAfterNs, d.RetryAfterNs-want.RetryAfterNs
		longest = max(longest, reset, retry)
		most := int64(0)
		if ahead >= 1<<53 {
			most = GCRAV2.farMoreNs()
		}
		if want.Status != 1 && (reset < 0 || reset > most || retry < 0 || retry > most) {
			t.Fatalf("%+v tat %d now %d: %+v, want %+v", g, tat, now, d, want)
		}
	}
	t.Logf("at most %d ns more", longest)
}

// The waits of window_v2 with a clock behind: exact below 2^53, 1 to 3 ns more from
// there on.
func TestLemmaFarWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	longest := int64(0)
	for range 1_000_000 {
		w := Window{1 + rng.Int64N(65535), 1<<52 - rng.Int64N(1<<51), true, true}
		if rng.IntN(2) == 0 {
			w.PeriodNs = 1<<52 - rng.Int64N(100)
		}
		now := rng.Int64N(1<<62 - 1)
		s := Counts{uint32(now/w.PeriodNs) + 1, uint16(rng.Uint32()), uint16(rng.Uint32())}
		cost := rng.Int64N(w.Amount + 1)
		want, _ := w.Call(s, cost, now)
		stored := native.WindowState{Exists: true, Index: float64(s.Index), Previous: float64(s.Previous), Current: float64(s.Current)}
		_, d := native.WindowV2(stored, native.WindowArgs{
			Amount: float64(w.Amount), PeriodNs: float64(w.PeriodNs), Sliding: true, Cost: float64(cost)}, native.CallerClock(now))
		for _, wait := range [][2]int64{{d.ResetAfterNs, want.ResetAfterNs}, {d.RetryAfterNs, want.RetryAfterNs}} {
			more, least, most := wait[0]-wait[1], int64(0), int64(0)
			if wait[1] >= 1<<53 {
				least, most = 1, 3
				if wait[1] == 1<<53 {
					least = 0 // where nothing but gap + left was added
				}
			}
			longest = max(longest, more)
			if more < least || more > most {
				t.Fatalf("%+v %+v cost %d now %d: %+v, want %+v", w, s, cost, now, d, want)
			}
		}
	}
	t.Logf("at most %d ns more", longest)
}

// A limiter with an interval made longer is never earlier than the exact one fed with
// its admissions while the clock does not run backwards; steps back that sum to back
// make it early by at most (1 - interval/longer) * back. Debts are held as the README
// does: debt * interval + (longer - interval) * back >= exactDebt * longer.
func TestLemmaLongerInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	early, closest := 0, 0.0
	for range 20_000 {
		exact := GCRA{1 + rng.Int64N(12), 1 + rng.Int64N(5)}
		longer := GCRA{exact.Interval + rng.Int64N(4), exact.Burst}
		steps := rng.IntN(2) == 0
		tat, exactTat, now, back := int64(0), int64(0), int64(1000), int64(0)
		for range 100 {
			step := rng.Int64N(2 * longer.Interval)
			if steps && rng.IntN(10) == 0 {
				step = -rng.Int64N(50)
				back -= step
			}
			now += step
			cost := rng.Int64N(exact.Burst + 1)
			v, after := longer.Call(tat, cost, now)
			if v.Status == 1 && cost > 0 {
				e, _ := exact.Call(exactTat, cost, now)
				if e.RetryAfterNs*longer.Interval > (longer.Interval-exact.Interval)*back {
					t.Fatalf("%+v, %+v: %d early after %d back", exact, longer, e.RetryAfterNs, back)
				}
				if e.Status != 1 {
					early++
					closest = max(closest, float64(e.RetryAfterNs*longer.Interval)/float64((longer.Interval-exact.Interval)*back))
				}
				tat, exactTat = after, max(exactTat, now)+cost*exact.Interval
			}
			debt, exactDebt := max(tat-now, 0), max(exactTat-now, 0)
			if exactTat > tat || exactDebt*longer.Interval > debt*exact.Interval+(longer.Interval-exact.Interval)*back {
				t.Fatalf("%+v, %+v: debts %d and %d after %d back", exact, longer, debt, exactDebt, back)
			}
		}
	}
	t.Logf("early %d times, by at most %.3f of the bound", early, closest)
	if early == 0 {
		t.Error("no step back made it early: the bound was not tried")
	}
}
