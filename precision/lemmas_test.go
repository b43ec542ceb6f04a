package precision

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/emulator/number"
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
// quotient. Those of one that is rounded twice, as x87 does, first to 11 bits more, are
// for dividends up to a little above 2^52.
func TestLemmaQuotient(t *testing.T) {
	slow(t)
	right := func(q float64, p, a int64) bool {
		return math.Floor(q) == float64(p/a) && math.Ceil(q) == float64(ceilDiv(p, a)) &&
			math.Floor(-q) == float64(-ceilDiv(p, a))
	}
	const moreBits = 11
	wrong := 0
	for bits := 2; bits <= 10; bits++ {
		for p := int64(1); p < 1<<bits; p++ {
			for a := int64(1); a < 1<<bits; a++ {
				exact := float64(p) / float64(a)
				if q := few(exact, bits); !right(q, p, a) {
					t.Fatalf("%d bits: %d / %d rounds to %v", bits, p, a, q)
				}
				if q := few(few(exact, bits+moreBits), bits); !right(q, p, a) && p <= 1<<(bits-1) {
					t.Fatalf("%d and %d bits: %d / %d rounds to %v", bits+moreBits, bits, p, a, q)
				}
			}
		}
	}
	hard(func(p, a int64) {
		if q := float64(p) / float64(a); !right(q, p, a) {
			t.Fatalf("%d / %d rounds to %v", p, a, q)
		}
		if q := twice(p, a); !right(q, p, a) {
			if wrong++; p <= 1<<52+1<<30 {
				t.Fatalf("%d / %d rounds to %v by way of 64 bits", p, a, q)
			}
		}
	})
	t.Logf("%d of the larger ones wrong by way of 64 bits", wrong)
	if q := twice(9007199254740959, 2198486515680); q != 4097 {
		t.Errorf("the case that the bound is for rounds to %v", q)
	}
	rng := rand.New(rand.NewPCG(14, 14)) // what window_v1's expiry divides
	for range 200_000 {
		p := rng.Int64N(9007200)*1e9 + rng.Int64N(5) - 2
		if p > 0 && p < 1<<53 && !right(twice(p, 1e9), p, 1e9) {
			t.Fatalf("%d / 1e9 rounds to %v by way of 64 bits", p, twice(p, 1e9))
		}
	}
}

// twice is p / a rounded to the 64 bits of x87's format, and then to a double.
func twice(p, a int64) float64 {
	whole := func(x int64) *big.Float { return new(big.Float).SetInt64(x) }
	q, _ := new(big.Float).SetPrec(64).Quo(whole(p), whole(a)).Float64()
	return q
}

// a - floor(a / b) * b, each operation rounded, is the exact remainder for |a| and b
// below 2^53, where the multiple of b below a negative a is not below -2^53, or b is 10^9,
// of which it is a double all the same; and so it is for 256 times such numbers.
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
		down := (1_000_000_000 - a%1_000_000_000) % 1_000_000_000 // of ns before a second
		if r := number.Mod(-x, 1e9); r != float64(down) || (-x-r)/1e9 != float64(-ceilDiv(a, 1e9)) {
			t.Fatalf("%d %% 10^9 is %v", -a, r)
		}
	})
}

// By a power of two a remainder is exact, also of numbers below 0, and so are what is left
// without it and the quotient of that. By such steps window_v1 takes a number of 32 bits into
// bytes, and by products with 256 it makes one of them.
func TestLemmaPowers(t *testing.T) {
	for bits := 2; bits <= 12; bits++ {
		for a := 1 - int64(1)<<bits; a < 1<<bits; a++ {
			for b := int64(1); b < 1<<bits; b *= 2 {
				remainder := (a%b + b) % b
				r := few(float64(a)-few(math.Floor(few(float64(a)/float64(b), bits))*float64(b), bits), bits)
				if q := few(few(float64(a)-r, bits)/float64(b), bits); r != float64(remainder) || q != float64((a-remainder)/b) {
					t.Fatalf("%d bits: %d / %d is %v, and %v is left", bits, a, b, q, r)
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(17, 17))
	for range 200_000 {
		x, b := magnitude(rng, 1<<53-1), int64(1)<<rng.IntN(33)
		r, less := number.Mod(float64(x), float64(b)), number.Mod(-float64(x), float64(b))
		if r != float64(x%b) || (float64(x)-r)/float64(b) != float64(x/b) || less != float64((b-x%b)%b) {
			t.Fatalf("%d / %d: %v is left, and %v of the negative one", x, b, r, less)
		}
		if y := math.Ldexp(float64(x), -1-rng.IntN(60)); y != math.Floor(y) && number.Mod(y, 1) == 0 {
			t.Fatalf("%v %% 1 is 0", y)
		}
	}
	try := func(n uint32) {
		x := float64(n)
		low := number.Mod(x, 1<<16)
		high := (x - low) / (1 << 16)
		b2, b0 := number.Mod(high, 256), number.Mod(low, 256)
		b3, b1 := (high-b2)/256, (low-b0)/256
		if b := binary.BigEndian.AppendUint32(nil, n); b3 != float64(b[0]) || b2 != float64(b[1]) || b1 != float64(b[2]) || b0 != float64(b[3]) {
			t.Fatalf("the bytes of %d are %v %v %v %v", n, b3, b2, b1, b0)
		}
		if back := ((b3*256+b2)*256+b1)*256 + b0; back != x {
			t.Fatalf("the bytes of %d make %v", n, back)
		}
	}
	for half := range uint32(1 << 16) { // each half with the other at its ends and between
		for _, other := range []uint32{0, 1, 255, 256, 32767, 32768, 65535} {
			try(half<<16 | other)
			try(other<<16 | half)
		}
	}
}

// Digits of at most 16, which have zeros in front too, are read as the number that they say,
// while that is below 2^53, and so they are when 0 is added.
func TestLemmaDigits(t *testing.T) {
	try := func(text string) {
		want, err := strconv.ParseInt(text, 10, 64)
		if x, ok := number.ToNumber(text); err != nil || !ok || x+0 != float64(want) || int64(x) != want {
			t.Fatalf("%q is read as %v, %v", text, x, ok)
		}
	}
	rng := rand.New(rand.NewPCG(18, 18))
	for digits := 1; digits <= 15; digits++ {
		try(strings.Repeat("9", digits))
		try("0" + strings.Repeat("9", digits))
		for range 20_000 {
			try(fmt.Sprintf("%0*d", digits, rng.Int64N(int64(math.Pow10(digits)))))
		}
	}
}

// A whole burst is at most the rounded 2^52 / interval exactly when burst * interval is
// at most 2^52, and so is the rounded product.
func TestLemmaBurst(t *testing.T) {
	for bits := 2; bits <= 11; bits++ {
		most := int64(1) << (bits - 1)
		for interval := int64(1); interval <= most; interval++ {
			q := few(float64(most)/float64(interval), bits)
			for burst := int64(1); burst <= most; burst++ {
				product := few(float64(burst*interval), bits)
				if fits := burst*interval <= most; float64(burst) <= q != fits || product <= float64(most) != fits {
					t.Fatalf("%d bits: burst %d, interval %d: the quotient is %v, the product %v", bits, burst, interval, q, product)
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
			v1 := native.GCRAV1(&native.GCRAState{}, a, native.CallerClock(0))
			v2 := native.GCRAV2(&native.GCRAState{}, a, native.CallerClock(0))
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
// index of the window, of every clock that is a float. fmod is the remainder of whole numbers
// of any size.
func TestLemmaIndex(t *testing.T) {
	slow(t)
	rng := rand.New(rand.NewPCG(19, 19))
	for range 200_000 {
		x, w := float64(magnitude(rng, 1<<62)), float64(magnitude(rng, 1<<52))
		if rng.IntN(2) == 0 {
			w *= 1 << 32
		}
		whole, _ := new(big.Float).SetFloat64(x).Int(nil)
		by, _ := new(big.Float).SetFloat64(w).Int(nil)
		want, _ := new(big.Float).SetInt(whole.Rem(whole, by)).Float64()
		if got := number.Fmod(x, w); got != want {
			t.Fatalf("fmod(%v, %v) is %v, want %v", x, w, got, want)
		}
	}
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

// carried is ceil(previous * left / w), by the operations of window_v1.
func TestLemmaCarried(t *testing.T) {
	slow(t)
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

// % parts any ns of gcra_v1's write, a multiple of 256, into seconds and the rest, as 256
// divides 1e9.
func TestLemmaSplit(t *testing.T) {
	const most = 1<<60 + 1<<30
	rng := rand.New(rand.NewPCG(9, 9))
	for range 1_000_000 {
		ns := rng.Int64N(most)
		if rng.IntN(2) == 0 { // beside a whole second
			ns = rng.Int64N(most/1_000_000_000)*1e9 + rng.Int64N(2048) - 1024
		}
		ns = max(ns/grid*grid, 0)
		x := float64(ns)
		rest := math.Mod(x, 1e9)
		if int64(rest) != ns%1e9 || (x-rest)/1e9 != float64(ns/1e9) ||
			number.Fmod(x, 1e9) != rest || number.Mod(x, 1e9) != rest {
			t.Fatalf("%d is %v s and %v ns", ns, (x-rest)/1e9, rest)
		}
	}
}

// (x + -x % 1e9) / 1e9 is ceil(x / 1e9), of every whole double up to 2^54. The expiry of
// window_v1 may yet be a second short, of a sum that was rounded.
func TestLemmaSeconds(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 1_000_000 {
		x := rng.Int64N(1 << 54)
		switch rng.IntN(4) {
		case 0: // beside a whole second
			x = rng.Int64N(1<<54/1_000_000_000)*1e9 + rng.Int64N(9) - 4
		case 1: // and a long one, of windows of 2^52
			x = (1<<53/1_000_000_000+rng.Int64N(1<<52/1_000_000_000))*1e9 + rng.Int64N(9) - 4
		}
		x = int64(float64(max(x, 0)))
		if s := (float64(x) + number.Mod(-float64(x), 1e9)) / 1e9; s != float64(ceilDiv(x, 1e9)) {
			t.Fatalf("ceil(%d / 1e9) is %v", x, s)
		}
	}
	// what window_v1 divides by the server's clock is a sum, here 9007200 s and 1 ns: it
	// loses the 1, and the key lives a second less
	args := native.WindowArgs{Amount: 1, PeriodNs: 4503599536159601, Cost: 1}
	if d := native.WindowV1(&native.WindowState{}, args, native.ServerClock(1796936214927681)); d.TTLS != 9007200+1 {
		t.Errorf("an end 9007200.000000001 s after the second of the clock gives an expiry of %d s", d.TTLS)
	}
}

// No two periods of whole seconds are equal mod 2^32.
func TestLemmaPeriods(t *testing.T) {
	slow(t)
	var periods []uint32
	for ns := uint64(1e9); ns <= 1<<52; ns += 1e9 {
		periods = append(periods, uint32(ns))
	}
	slices.Sort(periods)
	if n := len(slices.Compact(slices.Clone(periods))); n != len(periods) || n != 1<<52/1_000_000_000 {
		t.Errorf("%d of %d periods differ mod 2^32", n, len(periods))
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

		d := native.GCRAV1(&native.GCRAState{}, a, clock)
		if (d.Err == "") != within(1<<61-uint64(tau1), up(now)) {
			t.Fatalf("gcra_v1 at %d, tau %d: %q", now, tau1, d.Err)
		}
		stored := native.ParseGCRA(now.String())
		d = native.GCRAV1(&stored, native.GCRAArgs{Amount: 1, PeriodNs: 1, Burst: 1}, native.CallerClock(0))
		if (d.Err == "") != within(1<<61, up(now)) || d.Err == "" && d.ResetAfterNs != up(now).Int64() {
			t.Fatalf("gcra_v1 reads %d as %+v", now, d)
		}
		d = native.GCRAV2(&native.GCRAState{}, a, clock)
		if (d.Err == "") != within(math.MaxInt64-uint64(tau), now) {
			t.Fatalf("gcra_v2 at %d, tau %d: %q", now, tau, d.Err)
		}
		d = native.WindowV1(&native.WindowState{}, native.WindowArgs{Amount: 1, PeriodNs: a.PeriodNs}, clock)
		if (d.Err == "") != within(1<<62-1, now) {
			t.Fatalf("window_v1 at %d: %q", now, d.Err)
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
		state := native.ParseGCRA(strconv.FormatInt(tat, 10))
		d := native.GCRAV2(&state, a, native.CallerClock(now))
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
	checkObserved(t, "gcra_v2, waits from 2^53 on, ns more", fmt.Sprint(GCRAV2.farMoreNs()), fmt.Sprint(longest))
}

// The waits of window_v1 with a clock behind: exact below 2^53, 1 to 3 ns more from
// there on.
func TestLemmaFarWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	longest := int64(0)
	for range 1_000_000 {
		w := Window{1 + rng.Int64N(65535), 1<<52 - rng.Int64N(1<<51), true}
		if rng.IntN(2) == 0 {
			w.PeriodNs = 1<<52 - rng.Int64N(100)
		}
		now := rng.Int64N(1<<62 - 1)
		s := Counts{uint32(now/w.PeriodNs) + 1, uint16(rng.Uint32()), uint16(rng.Uint32())}
		cost := rng.Int64N(w.Amount + 1)
		want, _ := w.Call(s, cost, now)
		stored := native.WindowState{Exists: true, Index: float64(s.Index), Previous: float64(s.Previous),
			Current: float64(s.Current), PeriodNs: float64(uint32(w.PeriodNs))}
		d := native.WindowV1(&stored, native.WindowArgs{
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
	checkObserved(t, "window_v1, waits from 2^53 on, ns more", fmt.Sprint(WindowV1.farMoreNs()), fmt.Sprint(longest))
}

// gcra_v2 decides on a state with credit as on one without, keeps the credit and raises
// last to the TAT.
func TestLemmaCredit(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 15))
	later := 0
	for range 200_000 {
		a := native.GCRAArgs{Amount: 1, PeriodNs: float64(magnitude(rng, 1<<40)), Cost: float64(rng.IntN(3))}
		a.Burst = float64(magnitude(rng, 1<<10))
		now := magnitude(rng, 1<<62)
		tat := max(now+magnitude(rng, 1<<50)-magnitude(rng, 1<<50), 1)
		last := max(tat+magnitude(rng, 1<<50)-magnitude(rng, 1<<50), 1)
		if rng.IntN(4) == 0 { // the new TAT, or a little more
			last = max(tat, now) + int64(a.Cost*a.PeriodNs) + rng.Int64N(3)
		}
		text := strconv.FormatInt(tat, 10)
		plain := native.ParseGCRA(text)
		want := native.GCRAV2(&plain, a, native.CallerClock(now))
		credit := strconv.FormatInt(magnitude(rng, 1<<62), 10)
		after := native.ParseGCRA(fmt.Sprint(text, " ", credit, " ", last))
		d := native.GCRAV2(&after, a, native.CallerClock(now))
		want.TTLS, d.TTLS = 0, 0
		if d != want {
			t.Fatalf("%s with credit %s: %+v, without: %+v", text, credit, d, want)
		}
		if d.Written {
			newTAT, _ := strconv.ParseInt(plain.String(), 10, 64)
			last = max(last, newTAT)
			if last > newTAT {
				later++
			}
		}
		if text := fmt.Sprint(plain.String(), " ", credit, " ", last); after.String() != text {
			t.Fatalf("after %d the key holds %q, want %q", now, after.String(), text)
		}
	}
	if later == 0 {
		t.Error("last was never after the TAT")
	}
}

// A key is there for every call whose clock is before the end of what it holds: with the
// server's clock, where a script is held up for less than a second before TIME, and with
// callers' clocks of which none is more than 60 s behind one that wrote. With others it
// is not.
func TestLemmaExpiry(t *testing.T) {
	slow(t)
	played, allGone := 0, 0 // of the clocks with which no key may be gone early
	always := func(aheadMs int64) func(*rand.Rand) int64 { return func(*rand.Rand) int64 { return aheadMs } }
	for _, clocks := range []struct {
		name      string
		byServer  int // of 4 calls
		aheadMs   func(*rand.Rand) int64
		goneEarly bool
	}{
		{"the server's", 4, always(0), false},
		{"callers' within 60 s", 0, func(rng *rand.Rand) int64 { return rng.Int64N(60_001) - 30_000 }, false},
		{"callers' over 60 s apart", 0, func(rng *rand.Rand) int64 { return rng.Int64N(2) * 62_100 }, true},
		{"both, the caller's ahead", 2, func(rng *rand.Rand) int64 { return rng.Int64N(60_001) }, false},
		{"both, the caller's over 60 s ahead", 2, always(62_100), true},
		{"both, the caller's over 2 s behind", 2, always(-2_100), true},
	} {
		for _, shared := range []string{"gcra", "gcra with credit", "window"} {
			t.Run(clocks.name+", "+shared, func(t *testing.T) {
				gone, early := playExpiry(t, shared, clocks.byServer, clocks.aheadMs)
				t.Logf("%d keys gone, %d of them early", gone, early)
				if gone == 0 || (early > 0) != clocks.goneEarly {
					t.Errorf("of %d keys gone %d are early", gone, early)
				}
				if !clocks.goneEarly {
					played, allGone = played+1, allGone+gone
				}
			})
		}
	}
	if played == 9 { // all of them, not only those that -run names
		checkObserved(t, "keys gone early, with the clocks that Expiry asks for", "0", "0 of "+grouped(allGone)+" gone")
	}
}

// playExpiry plays calls by the two gcra scripts, or by window_v1, on a key that expires
// as a server's does, and counts how often it was gone, and gone although what it held
// had not ended for the call's clock.
func playExpiry(t *testing.T, shared string, byServer int, aheadMs func(*rand.Rand) int64) (gone, early int) {
	rng := rand.New(rand.NewPCG(16, 16))
	for range 300 {
		key, expiresMs, endNs := native.Key{}, int64(0), int64(0)
		beganNs := 1_780_000_000_000_000_000 + rng.Int64N(1e12)
		limit := [2]string{strconv.FormatInt(1+rng.Int64N(20), 10), strconv.FormatInt(1+rng.Int64N(20e9), 10)}
		for range 200 {
			switch beganNs += rng.Int64N(3e9); {
			case rng.IntN(3) == 0 && endNs > beganNs: // near the end
				beganNs = endNs - rng.Int64N(1e9)
			case rng.IntN(10) == 0:
				beganNs += 50e9 + rng.Int64N(20e9)
			}
			beganMs := beganNs / 1e6
			clockNs := beganNs + aheadMs(rng)*1e6
			clock, now := native.Clock{}, strconv.FormatInt(clockNs, 10)
			if rng.IntN(4) < byServer {
				clockNs = (beganNs + rng.Int64N(990e6)) / 1000 * 1000 // held up before TIME
				clock, now = native.ServerClock(clockNs/1000), ""
			}
			if key.Exists && beganMs > expiresMs {
				if gone++; clockNs < endNs {
					early++
				}
				key = native.Key{}
			}
			script, third := "window_v1", []string{"fixed", "sliding"}[rng.IntN(2)]
			if shared != "window" {
				script, third = []string{"gcra_v1", "gcra_v2"}[rng.IntN(2)], strconv.FormatInt(1+rng.Int64N(9), 10)
			}
			if shared == "gcra with credit" {
				if script = "gcra_v2"; key.Exists { // up to 10 s given back
					tat, _, _ := strings.Cut(key.Text, " ")
					tatNs, _ := strconv.ParseInt(tat, 10, 64)
					key.Text = fmt.Sprint(tatNs-rng.Int64N(10e9), " 5 ", endNs)
				}
			}
			cost := strconv.FormatInt(rng.Int64N(4), 10)
			after, d, _ := native.Call(script, []native.Key{key}, []string{limit[0], limit[1], third, cost, now}, clock)
			if d.Err != "" {
				t.Fatalf("%s on %q: %s", script, key.Text, d.Err)
			}
			if d.Written {
				if d.TTLS == 0 && !key.Exists {
					t.Fatalf("%s keeps the expiry of a missing key", script)
				}
				if d.TTLS > 0 {
					expiresMs = beganMs + d.TTLS*1000
				}
				endNs = stateEndNs(shared, after[0].Text, clockNs, limit[1])
			}
			key = after[0]
		}
	}
	return gone, early
}

// stateEndNs is the instant from which on a state is as good as none: its last number,
// for a window the end of the one after it, near nowNs.
func stateEndNs(shared, text string, nowNs int64, period string) int64 {
	if shared != "window" {
		end, _ := strconv.ParseInt(text[strings.LastIndexByte(text, ' ')+1:], 10, 64)
		return end
	}
	w, _ := strconv.ParseInt(period, 10, 64)
	behind := int32(uint32(native.ParseWindow(text).Index) - uint32(nowNs/w))
	return (nowNs/w + int64(behind) + 2) * w
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
	checkObserved(t, "gcra_v1 after steps back, early, in parts of (1 - r) x B", "1", fmt.Sprintf("%.3f", closest))
	if early == 0 {
		t.Error("no step back made it early: the bound was not tried")
	}
}
