package precision

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/lua"
)

// The exact limiter is its definition unrolled: T is the most that an ask's instant and all
// that was used from it on come to.
func TestUsedIsItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 21))
	type ask struct{ atNs, ns int64 }
	for range 20_000 {
		var u Used
		var asks []ask
		for now := int64(0); len(asks) < 8; {
			if len(asks) == 0 || rng.IntN(2) == 0 {
				now = max(now+rng.Int64N(9)-1, 0) // a clock may step back
				a := ask{now, rng.Int64N(9)}
				if n := u.Ask(a.atNs, a.ns); n != len(asks) {
					t.Fatalf("ask %d is called %d", len(asks), n)
				}
				asks = append(asks, a)
			} else {
				i := rng.IntN(len(asks))
				ns := rng.Int64N(asks[i].ns+5) - asks[i].ns
				asks[i].ns += ns
				u.Settle(i, ns)
			}
			want, used := int64(0), int64(0)
			for i := len(asks) - 1; i >= 0; i-- {
				used += asks[i].ns
				want = max(want, asks[i].atNs+used)
			}
			if u.TAT() != uint64(want) {
				t.Fatalf("%v: T is %d, want %d", asks, u.TAT(), want)
			}
		}
	}
}

// ruleInBig is the settlement of gcra by the header of limits_v1, in big integers: the text
// of the state after it.
func ruleInBig(state, receipt string, interval, units, now int64) string {
	number := func(text string) *big.Int {
		n, _ := new(big.Int).SetString("0"+text, 10)
		return n
	}
	word := func(text string, i int) string { return append(strings.Fields(text), "", "", "")[i] }
	tat, credit, last := number(word(state, 0)), word(state, 1), number(word(state, 2))
	clock, change := big.NewInt(now), new(big.Int).Mul(big.NewInt(units), big.NewInt(interval))
	late := func(x, y *big.Int) *big.Int {
		if x.Cmp(y) < 0 {
			return y
		}
		return x
	}
	if units > 0 {
		after := new(big.Int).Add(late(tat, clock), change)
		if most := new(big.Int).Add(clock, big.NewInt(1<<53-1)); after.Cmp(most) > 0 {
			after = most
		}
		if after.Cmp(tat) <= 0 {
			return state
		}
		if credit == "" {
			return after.String()
		}
		return after.String() + " " + credit + " " + late(last, after).String()
	}
	far := big.NewInt(1 << 53)
	paid := new(big.Int).Sub(number(word(receipt, 0)), clock)
	since := new(big.Int).Sub(number(credit), number(word(receipt, 1)))
	worth := new(big.Int).Sub(paid, since)
	if since.Sign() < 0 || since.Cmp(far) >= 0 || paid.Cmp(far) >= 0 || len(credit) > 24 || len(word(receipt, 1)) > 24 ||
		worth.Cmp(new(big.Int).Sub(tat, clock)) > 0 {
		return state
	}
	c := change.Neg(change)
	if c.Cmp(worth) > 0 {
		c = worth
	}
	if c.Sign() <= 0 {
		return state
	}
	if credit == "" {
		last = tat
	}
	return fmt.Sprint(new(big.Int).Sub(tat, c), " ", new(big.Int).Add(number(credit), c), " ", last)
}

// The rule, over all that a key, a receipt and a clock may be, is that of the header in big
// integers and that of the script, whose reply is what is left after it.
func TestSettleIsTheScript(t *testing.T) {
	ctx, redis := context.Background(), emulator.New()
	sha, err := redis.ScriptLoad(ctx, lua.Assets["limits_v1"]).Result()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(22, 22))
	near := func(x int64) int64 { return max(x+[]int64{0, 0, 1, -1, 5, -5}[rng.IntN(6)], 0) }
	var given, charged, cut, nothing, far int
	for range 60_000 {
		interval := magnitude(rng, 1<<52)
		g := GCRA{interval, magnitude(rng, (1<<52)/interval)}
		now := magnitude(rng, 1<<62)
		if rng.IntN(8) == 0 {
			now = 1<<63 - 1 - g.Tau() - magnitude(rng, 1<<40) + 1
		}
		state := State{Exists: true, Value: uint64(near(now)) + uint64(magnitude(rng, 1<<54))}
		if rng.IntN(2) == 0 {
			state.Credit = new(big.Int).Rsh(new(big.Int).Mul(big.NewInt(magnitude(rng, 1<<62)), big.NewInt(1<<62)), uint(rng.IntN(62)+40)).String()
			if rng.IntN(20) == 0 {
				state.Credit = "1" + strings.Repeat("0", 22+rng.IntN(3))
			}
			if state.Credit == "0" {
				state.Credit = ""
			} else {
				state.Last = state.Value + uint64(magnitude(rng, 1<<40)-1)
			}
		}
		// the receipt of an ask that was charged, what was given back since, and others
		before := magnitude(rng, 1<<1+1<<rng.IntN(54)) - 1
		credit := new(big.Int).Sub(creditNs(state.Credit), big.NewInt(before))
		receipt := Receipt{TAT: state.Value + uint64(before) - uint64(min(before/2, magnitude(rng, 1<<40)))}
		if rng.IntN(4) == 0 {
			receipt.TAT = uint64(near(now)) + uint64(near(before))
		}
		if credit.Sign() > 0 {
			receipt.Credit = credit.String()
		} else if rng.IntN(20) == 0 {
			receipt.Credit = strconv.FormatInt(magnitude(rng, 1<<60), 10)
		}
		units := rng.Int64N(2*g.Burst+1) - g.Burst
		switch rng.IntN(6) {
		case 0:
			units = []int64{-1 << 52, 1 << 52}[rng.IntN(2)]
		case 1:
			units = (mostDebtNs-aheadNs(state.Value, now))/interval + rng.Int64N(3) - 1
			units = min(max(units, -1<<52), 1<<52)
		case 2:
			units = -1
		}
		after, ns := g.Settle(state, receipt, units, now)
		text := state.Text(GCRAV2)
		if want := ruleInBig(text, receipt.Text(), interval, units, now); after.Text(GCRAV2) != want {
			t.Fatalf("%q, %d x %d ns at %d by %q: %q, in big integers %q", text, units, interval, now, receipt.Text(), after.Text(GCRAV2), want)
		}
		redis.Do(ctx, "SET", "k", text)
		got, err := redis.EvalSha(ctx, sha, []string{"k"}, now, "gcra", 1, interval, g.Burst, units, receipt.Text()).Slice()
		if err != nil {
			t.Fatalf("%q, %d x %d ns at %d by %q: %v", text, units, interval, now, receipt.Text(), err)
		}
		written, err := redis.Do(ctx, "GET", "k").Text()
		if err != nil || written != after.Text(GCRAV2) {
			t.Fatalf("%q, %d x %d ns at %d by %q: %q, the script writes %q, %v", text, units, interval, now, receipt.Text(),
				after.Text(GCRAV2), written, err)
		}
		ahead := aheadNs(after.Value, now)
		want := Verdict{1, g.Remaining(ahead, 0), 0, ahead}
		inner := got[2].([]any)
		v := Verdict{inner[0].(int64), inner[1].(int64), inner[2].(int64), inner[3].(int64)}
		if aheadNs(state.Value, now) >= FarNs { // it says up to 4096 ns more, also when units given back bring it nearer
			moreNs := v.ResetAfterNs - want.ResetAfterNs
			if moreNs < 0 || moreNs > GCRAV2.farMoreNs() || v.Remaining != g.Remaining(v.ResetAfterNs, 0) {
				t.Fatalf("%q, %d x %d ns at %d by %q: %v, want %+v", text, units, interval, now, receipt.Text(), inner, want)
			}
			far++
			v = want
		}
		if v != want || inner[4] != receipt.Text() {
			t.Fatalf("%q, %d x %d ns at %d by %q: %v, want %+v", text, units, interval, now, receipt.Text(), inner, want)
		}
		switch {
		case ns == 0:
			nothing++
		case ns < 0 && -ns < g.unitsNs(-units), ns > 0 && ahead == mostDebtNs:
			cut++
		case ns < 0:
			given++
		default:
			charged++
		}
	}
	t.Logf("given back %d, charged %d, a part of it %d, nothing %d; %d far ahead", given, charged, cut, nothing, far)
	for _, n := range []int{given, charged, cut, nothing, far} {
		if n < 1000 {
			t.Error("one of these came up less than 1000 times")
		}
	}
}

// An ask beside the script: the verdict, what is written and the receipt, with and without
// credit.
func TestAskIsTheScript(t *testing.T) {
	ctx, redis := context.Background(), emulator.New()
	sha, err := redis.ScriptLoad(ctx, lua.Assets["limits_v1"]).Result()
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(23, 23))
	charged := 0
	for range 20_000 {
		interval := magnitude(rng, 1<<52)
		g := GCRA{interval, magnitude(rng, (1<<52)/interval)}
		now := 4096 + magnitude(rng, 1<<62-4096)
		state := State{Exists: true, Value: uint64(max(now+rng.Int64N(2*g.Tau()+1)-g.Tau(), 1))}
		if rng.IntN(2) == 0 {
			state.Credit, state.Last = strconv.FormatInt(magnitude(rng, 1<<62), 10), state.Value+uint64(rng.Int64N(2*g.Tau()))
		}
		cost := rng.Int64N(g.Burst + 2)
		v, after, receipt := g.Ask(state, cost, now)
		text := receipt.Text()
		if receipt == (Receipt{}) {
			text = ""
		} else {
			charged++
			if parsed, ok := ParseReceipt(text); !ok || parsed != receipt {
				t.Fatalf("%q is read as %+v, %v", text, parsed, ok)
			}
		}
		redis.Do(ctx, "SET", "k", state.Text(GCRAV2))
		got, err := redis.EvalSha(ctx, sha, []string{"k"}, now, "gcra", 1, interval, g.Burst, cost, "").Slice()
		if err != nil {
			t.Fatal(err)
		}
		written, err := redis.Do(ctx, "GET", "k").Text()
		want := []any{v.Status, v.Remaining, v.RetryAfterNs, v.ResetAfterNs, text}
		if inner := got[2].([]any); fmt.Sprint(inner) != fmt.Sprint(want) || err != nil || written != after.Text(GCRAV2) {
			t.Fatalf("%+v cost %d on %q at %d: %v and %q, %v; want %v and %q", g, cost, state.Text(GCRAV2), now, inner, written, err, want, after.Text(GCRAV2))
		}
	}
	if charged < 1000 {
		t.Errorf("%d asks were charged", charged)
	}
}

// Receipts that the script takes, and does not.
func TestParseReceipt(t *testing.T) {
	ctx, redis := context.Background(), emulator.New()
	sha, err := redis.ScriptLoad(ctx, lua.Assets["limits_v1"]).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"0", "1", "01", "9999999999999999999", "10000000000000000000", "0 1", "5 1", "5 01", "5 0",
		"5 ", " 5", "5  1", "5 1 ", "5 1 1", "00 1", "05 1", "x", "5 x", "-5", "+5", "5.0", "5 " + strings.Repeat("9", 40),
		"10000000000000000000 1"} {
		_, ok := ParseReceipt(text)
		_, err := redis.EvalSha(ctx, sha, []string{"k"}, 0, "gcra", 1, 1, 1, 0, text).Result()
		if (err == nil) != ok {
			t.Errorf("%q: read %v, the script answers %v", text, ok, err)
		}
	}
}

// A window's settlement, every count near its ends, beside the script.
func TestCountsSettleIsTheScript(t *testing.T) {
	ctx, redis := context.Background(), emulator.New()
	sha, err := redis.ScriptLoad(ctx, lua.Assets["limits_v1"]).Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := []uint16{0, 1, 2, 3, 65533, 65534, 65535}
	for _, previous := range counts {
		for _, current := range counts {
			for _, units := range []int64{-1 << 52, -65536, -3, -2, -1, 0, 1, 2, 3, 65535, 1 << 52} {
				for now := int64(70); now < 110; now += 10 {
					for _, receipt := range []uint32{6, 7, 8, 9, 10, 1<<32 - 1} {
						stored := Counts{9, previous, current}
						if previous == 0 && current == 0 && now < 90 {
							continue // At takes no counts for no key
						}
						at, _, _ := Window{5, 10, true}.At(stored, now)
						settled := at.Settle(receipt, units)
						if settled == at { // nothing is written
							settled = stored
						}
						after := newCounts(settled, 10).Text(WindowV1)
						redis.Do(ctx, "SET", "k", newCounts(stored, 10).Text(WindowV1))
						_, err := redis.EvalSha(ctx, sha, []string{"k"}, now, "sliding", 5, 10, "", units, strconv.Itoa(int(receipt))).Result()
						written, err2 := redis.Do(ctx, "GET", "k").Text()
						if err != nil || err2 != nil || written != after {
							t.Fatalf("%+v, %d at %d by %d: %x, %v, %v; want %x", stored, units, now, receipt, written, err, err2, after)
						}
					}
				}
			}
		}
	}
}
