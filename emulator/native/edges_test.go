package native

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/emulator/number"
)

// Calls at the very number at which a comparison turns, which the vectors pass by.
func TestEdges(t *testing.T) {
	const (
		us2026 = 1_780_000_080_000_000
		late   = "BADARG gcra_v2: now_ns + burst * interval is above 2^63 - 1"
		bad    = "BADSTATE gcra_v2: the key holds something else than a decimal TAT"
	)
	for _, c := range []struct{ what, script, state, argv, want string }{
		{"a last of 19 digits by the server's clock", "gcra_v2", "1000000000000000000 5 1000000000000000000", "1 1000 1 0",
			"1 1 0 0"},
		{"a last of 18", "gcra_v2", "999999999999999999 5 999999999999999999", "1 1000 1 0", bad},
		{"a wait of 2^53 ns counts from the grid", "gcra_v1", "9007199254741760", "1 1000 1 1 1000",
			"0 0 9007199254740992 9007199254740992"},
		{"one step of the grid less does not", "gcra_v1", "9007199254741504", "1 1000 1 1 1000",
			"0 0 9007199254740504 9007199254740504"},
		{"the last clock for a burst of 2^52 ns", "gcra_v2", "", "1 4503599627370496 1 0 9218868437227405311", "1 1 0 0"},
		{"a nanosecond later", "gcra_v2", "", "1 4503599627370496 1 0 9218868437227405312", late},
		{"the longest wait", "gcra_v2", "9999999999999999999", "1 1000 1 1 0",
			"0 0 9223372036854774784 9223372036854774784"},
	} {
		key := Key{Exists: c.state != "", Text: c.state}
		_, d, _ := Call(c.script, []Key{key}, strings.Fields(c.argv), ServerClock(us2026))
		got := fmt.Sprint(d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs)
		if d.Err != "" {
			got = d.Err
		}
		if got != c.want {
			t.Errorf("%s: %s of %s on %q: %s, want %s", c.what, c.script, c.argv, c.state, got, c.want)
		}
	}
}

// From the second 10^9 of the server's clock on a TAT has 19 digits.
func TestSecondOfTheServersClock(t *testing.T) {
	for unixUs, taken := range map[int64]bool{1e15 - 1: true, 1e15: false} {
		_, d, _ := Call("gcra_v2", []Key{{Exists: true, Text: "17"}}, []string{"1", "1000", "1", "0"}, ServerClock(unixUs))
		if got := d.Err == ""; got != taken {
			t.Errorf("at %d us the state 17 is taken: %v (%s), want %v", unixUs, got, d.Err, taken)
		}
	}
}

// The expiry of a window is rounded up to whole seconds, and a minute is added.
func TestWindowExpiry(t *testing.T) {
	for period, want := range map[string]int64{"1000000000": 62, "1000000001": 63, "1200000000": 63, "1499999999": 63, "1500000000": 63} {
		if _, d, _ := Call("window_v1", []Key{{}}, []string{"1", period, "fixed", "1", "0"}, Clock{}); d.TTLS != want {
			t.Errorf("of a period of %s ns: EX %d, want %d", period, d.TTLS, want)
		}
	}
}

// As TestEdges, on what one call has left.
func TestWindowEdges(t *testing.T) {
	for _, c := range []struct{ what, before, argv, want string }{
		{"a clock 60 s behind", "5 1000000000 fixed 5 1600000060000000000", "5 1000000000 fixed 1 1600000000000000000",
			"0 0 61000000000 61000000000"},
		{"a nanosecond more", "5 1000000000 fixed 5 1600000060000000000", "5 1000000000 fixed 1 1599999999999999999", "1 4 0 1"},
		{"a clock 2^31 windows behind", "5 10 fixed 5 21474836480", "5 10 fixed 1 0", "0 0 21474836490 21474836490"},
		{"a clock 2^31 windows ahead is as one behind", "5 10 fixed 5 0", "5 10 fixed 1 21474836480",
			"0 0 21474836490 21474836490"},
		{"2^31 - 1 ahead", "5 10 fixed 5 0", "5 10 fixed 1 21474836470", "1 4 0 10"},
		{"a wait of two of the longest windows", "5 4503599627370496 sliding 1 0", "5 4503599627370496 sliding 5 0",
			"0 4 9007199254740992 9007199254740992"},
	} {
		keys, _, _ := Call("window_v1", []Key{{}}, strings.Fields(c.before), Clock{})
		_, d, _ := Call("window_v1", keys, strings.Fields(c.argv), Clock{})
		if got := fmt.Sprint(d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs); got != c.want || d.Err != "" {
			t.Errorf("%s: %s after %s: %s %s, want %s", c.what, c.argv, c.before, got, d.Err, c.want)
		}
	}
}

// The three ways to name an instant agree on it.
func TestClocks(t *testing.T) {
	for _, ns := range []int64{0, 1000, 999_999_999_000, 1_000_000_000_000, 1_780_000_000_123_456_000, math.MaxInt64 - 807} {
		caller, server, read := CallerClock(ns), ServerClock(ns/1000), ParseClock(strconv.FormatInt(ns, 10))
		server.Server = !server.Server
		if caller != read || server != read {
			t.Errorf("%d: the caller's %v, the server's %v, as a text %v", ns, caller, server, read)
		}
	}
}

// Where a comparison may or may not hold at equality, as what follows is the same: the
// mutants that survive, and are listed in precision/internal/gomutants/survivors.txt.
func TestEqualForms(t *testing.T) {
	const tries = 100_000
	rng := rand.New(rand.NewPCG(1, 1))
	atMost := func(greatest int64) float64 { return float64(rng.Int64N(greatest + 1)) }
	for range tries {
		// afterNs is 0 for the same instant alone.
		a := Instant{atMost(1e10), atMost(999_999_999)}
		b := Instant{max(a.S+atMost(4)-2, 0), atMost(999_999_999)}
		if rng.IntN(2) == 0 {
			b.SubNs = a.SubNs
		}
		if got := a.afterNs(b.S, b.SubNs) == 0; got != (a == b) {
			t.Fatalf("%v is 0 ns after %v: %v", a, b, got)
		}
		// A rested key has tau / interval units, which is the burst, without a rest.
		interval := 1 + atMost(1<<rng.IntN(53)-1)
		burst := 1 + math.Floor(atMost(1<<52-1)/interval)
		if tau := interval * burst; math.Floor(tau/interval) != burst {
			t.Fatalf("floor(%v / %v) = %v, want the burst, %v", tau, interval, math.Floor(tau/interval), burst)
		}
		// Of no units before none are carried: w % 0 is NaN, and nothing is above NaN.
		w := 1 + atMost(1<<52-1)
		left, previous := 1+math.Floor(atMost(int64(w)-1)), 0.0
		carried, spare := math.Floor(previous*left/w+0.5), number.ModWhole(w, previous)
		if carried != 0 || left > carried*((w-spare)/previous)+math.Floor(carried*spare/previous) {
			t.Fatalf("of no units %v are carried, or one more; w %v, left %v", carried, w, left)
		}
	}
	// What is raised to a number may be raised when it is that number.
	for _, least := range []float64{0, Grid} {
		for _, x := range []float64{-1 << 53, -Grid, -1, 0, 1, Grid - 1, Grid, Grid + 1, 1 << 53} {
			below, notAbove := x, x
			if x < least {
				below = least
			}
			if x <= least {
				notAbove = least
			}
			if below != notAbove {
				t.Errorf("%v raised to %v: %v and %v", x, least, below, notAbove)
			}
		}
	}
}
