package loader_test

import (
	"errors"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
)

const longest = 1 << 52 * time.Nanosecond

func TestLimitValidate(t *testing.T) {
	for _, test := range []struct {
		limit  loader.Limit
		named  string // how the error names it; empty: the limit is good
		reason string
	}{
		{loader.Limit{Amount: 300, Period: time.Minute}, "", ""},
		{loader.Limit{Amount: 300, Period: time.Minute, Burst: 60}, "", ""},
		{loader.Limit{Amount: 1, Period: time.Millisecond}, "", ""},
		{loader.Limit{Amount: 1e6, Period: time.Millisecond, Burst: 1 << 52}, "", ""},
		{loader.Limit{Amount: 1, Period: time.Minute, Name: "a"}, "", ""},
		{loader.Limit{Amount: 1, Period: time.Minute, Name: "Log-in_2.b", Algorithm: loader.FixedWindow}, "", ""},
		{loader.Limit{Amount: 1, Period: time.Minute, Name: strings.Repeat("n", 100)}, "", ""},
		{loader.Limit{Amount: 1, Period: longest}, "", ""},
		{loader.Limit{Amount: 1 << 52, Period: longest}, "", ""},
		{loader.Limit{Amount: 2_000_000, Period: time.Second, Algorithm: loader.TokenBucket}, "", ""},
		{loader.Limit{Amount: 65535, Period: longest, Algorithm: loader.FixedWindow}, "", ""},
		{loader.Limit{Amount: 65535, Period: time.Millisecond, Algorithm: loader.SlidingWindow}, "", ""},

		{loader.Limit{Amount: 100000, Period: time.Minute, Algorithm: loader.SlidingWindow},
			"limit 100000 per 1m0s sliding_window",
			"amount 100000 exceeds 65535; use gcra"},
		{loader.Limit{Amount: 65536, Period: time.Minute, Algorithm: loader.FixedWindow},
			"limit 65536 per 1m0s fixed_window",
			"amount 65536 exceeds 65535; use gcra"},
		{loader.Limit{Amount: 10, Period: time.Second, Burst: 20, Algorithm: loader.FixedWindow},
			"limit 10 per 1s burst 20 fixed_window",
			"burst 20 is set, but a window has none; leave it out or use gcra"},
		{loader.Limit{Amount: 10, Period: time.Second, Burst: -1, Algorithm: loader.SlidingWindow},
			"limit 10 per 1s burst -1 sliding_window",
			"burst -1 is set, but a window has none; leave it out or use gcra"},
		{loader.Limit{Period: time.Second}, "limit 0 per 1s gcra",
			"amount 0 is below 1; to admit nothing, do not call"},
		{loader.Limit{Amount: -1, Period: time.Second, Algorithm: loader.FixedWindow}, "limit -1 per 1s fixed_window",
			"amount -1 is below 1; to admit nothing, do not call"},
		{loader.Limit{Amount: 1}, "limit 1 per 0s gcra",
			"period 0s is below 1ms; set a period"},
		{loader.Limit{Amount: 1, Period: -time.Second}, "limit 1 per -1s gcra",
			"period -1s is below 1ms; set a period"},
		{loader.Limit{Amount: 1, Period: longest + 1, Algorithm: loader.FixedWindow},
			"limit 1 per 1250h59m59.627370497s fixed_window",
			"period 1250h59m59.627370497s exceeds 2^52 ns (1250h59m59.627370496s); use a shorter period and a smaller amount"},
		{loader.Limit{Amount: 50, Period: 60}, "limit 50 per 60ns gcra",
			"period 60ns is below 1ms; were 60 seconds meant? Write 60 * time.Second"},
		{loader.Limit{Amount: 1, Period: time.Millisecond - 1, Algorithm: loader.SlidingWindow},
			"limit 1 per 999.999µs sliding_window",
			"period 999.999µs is below 1ms; were 999999 seconds meant? Write 999999 * time.Second"},
		{loader.Limit{}, "limit 0 per 0s gcra",
			"period 0s is below 1ms; set a period"},
		{loader.Limit{Amount: 1e6 + 1, Period: time.Millisecond}, "limit 1000001 per 1ms gcra",
			"amount 1000001 exceeds 1000000, one a nanosecond; count in larger units"},
		{loader.Limit{Amount: 1, Period: time.Minute, Name: "60"}, `limit 60 1 per 1m0s gcra`,
			`name "60" is not a letter and then letters, digits, '_', '-' and '.'`},
		{loader.Limit{Amount: 1, Period: time.Minute, Name: "a:b"}, `limit a:b 1 per 1m0s gcra`,
			`name "a:b" is not a letter and then letters, digits, '_', '-' and '.'`},
		{loader.Limit{Amount: 1, Period: time.Minute, Name: strings.Repeat("n", 101)}, "limit (101 bytes) 1 per 1m0s gcra",
			"the name is longer than 100 bytes"},
		{loader.Limit{Amount: 1, Period: time.Minute, Name: strings.Repeat("n", 1<<20), Algorithm: loader.Algorithm(strings.Repeat("a", 1<<20))},
			`limit (1048576 bytes) 1 per 1m0s (1048576 bytes)`,
			`algorithm "(1048576 bytes)" is unknown; use gcra, token_bucket, leaky_bucket, fixed_window or sliding_window`},
		{loader.Limit{Amount: 1, Period: time.Second, Burst: -1}, "limit 1 per 1s burst -1 gcra",
			"burst -1 is negative; leave it out to use the amount"},
		{loader.Limit{Amount: 1, Period: longest, Burst: 2}, "limit 1 per 1250h59m59.627370496s burst 2 gcra",
			"burst 2 exceeds 1, 2^52 ns / 4503599627370496 ns; use a smaller burst"},
		{loader.Limit{Amount: 1e6, Period: time.Millisecond, Burst: 1<<52 + 1},
			"limit 1000000 per 1ms burst 4503599627370497 gcra",
			"burst 4503599627370497 exceeds 4503599627370496, 2^52 ns / 1 ns; use a smaller burst"},
		{loader.Limit{Amount: 3, Period: longest, Burst: math.MaxInt64},
			"limit 3 per 1250h59m59.627370496s burst 9223372036854775807 gcra",
			"burst 9223372036854775807 exceeds 2, 2^52 ns / 1501199875790166 ns; use a smaller burst"},
		// 3 intervals of 2^52 / 3, rounded up, are 2 ns more than 2^52.
		{loader.Limit{Amount: 3, Period: longest}, "limit 3 per 1250h59m59.627370496s gcra",
			"burst is left out, so it is the amount, 3, and exceeds 2, 2^52 ns / 1501199875790166 ns; set a smaller burst"},
		{loader.Limit{Amount: 1, Period: time.Second, Algorithm: "tocken_bucket"}, `limit 1 per 1s tocken_bucket`,
			`algorithm "tocken_bucket" is unknown; use gcra, token_bucket, leaky_bucket, fixed_window or sliding_window`},
	} {
		err := test.limit.Validate()
		switch {
		case test.named == "" && err != nil:
			t.Errorf("%v: %v, want it good", test.limit, err)
		case test.named != "" && (!errors.Is(err, loader.ErrLimit) || err.Error() != "tatami: bad limit: "+test.named+": "+test.reason):
			t.Errorf("got  %v\nwant tatami: bad limit: %s: %s", err, test.named, test.reason)
		}
	}
}

// No Name looks like a period or has a separator of the key.
func TestNames(t *testing.T) {
	for c := range 256 {
		for _, name := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)})} {
			letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
			good := letter || len(name) == 2 && ('0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')
			err := loader.Limit{Amount: 1, Period: time.Second, Name: name}.Validate()
			if (err == nil) != good {
				t.Errorf("%q: %v, want it good %v", name, err, good)
			}
		}
	}
}

// lua/README.md has the rule for names that other languages follow.
func TestNameRuleOfReadme(t *testing.T) {
	text, err := os.ReadFile("../lua/README.md")
	must(t, err)
	rule := regexp.MustCompile("A name matches `([^`]+)` and has at most (\\d+) bytes\\.").FindStringSubmatch(string(text))
	if rule == nil {
		t.Fatal("lua/README.md has no rule for names")
	}
	name := regexp.MustCompile(`\A(?:` + rule[1] + `)\z`)
	most, err := strconv.Atoi(rule[2])
	must(t, err)
	for c := range 256 {
		for length := range 103 {
			text := string([]byte{byte(c)}) + strings.Repeat("n", length)
			for _, text := range []string{text, "n" + text} {
				err := loader.Limit{Amount: 1, Period: time.Second, Name: text}.Validate()
				good := name.MatchString(text) && len(text) <= most
				if (err == nil) != good {
					t.Fatalf("%q: %v, by lua/README.md it is good %v", text, err, good)
				}
			}
		}
	}
}

func TestInterval(t *testing.T) {
	for _, test := range []struct {
		amount int64
		period time.Duration
		want   time.Duration
	}{
		{300, time.Minute, 200 * time.Millisecond},
		{3, time.Second, 333333334},
		{1, 1, 1},
		{1, longest, longest},
		{7, 7, 1},
		{7, 8, 2},
		{0, time.Second, 0},
		{1, 0, 0},
	} {
		if got := (loader.Limit{Amount: test.amount, Period: test.period}).Interval(); got != test.want {
			t.Errorf("%d per %v: interval %d ns, want %d", test.amount, test.period, got, test.want)
		}
	}
}

// TestBurstAndAmount spends all that there is at each return of a unit, from rest
// through one period, both ends included.
func TestBurstAndAmount(t *testing.T) { eachServer(t, testBurstAndAmount) }

func testBurstAndAmount(t *testing.T, _ testServer, limiter testLimiter) {
	for i, test := range []struct {
		limit loader.Limit
		want  int64
	}{
		{loader.Limit{Amount: 5, Period: time.Second, Burst: 3}, 8},
		{loader.Limit{Amount: 5, Period: time.Second, Burst: 1}, 6},
		{loader.Limit{Amount: 5, Period: time.Second}, 10},
		// The third interval, rounded up, ends 2 ns after the period.
		{loader.Limit{Amount: 3, Period: time.Second}, 5},
	} {
		key, passed := strconv.Itoa(i), int64(0)
		for at := time.Duration(0); at <= test.limit.Period; at += test.limit.Interval() {
			clocked := limiter.WithClock(t, clockAt(at.Nanoseconds()))
			for allow(t, clocked, key, test.limit, 1).Allowed {
				passed++
			}
		}
		if passed != test.want {
			t.Errorf("%v: %d units pass, want %d", test.limit, passed, test.want)
		}
	}
}

func TestParseAlgorithm(t *testing.T) {
	for name, want := range map[string]loader.Algorithm{
		"": loader.GCRA, "gcra": loader.GCRA, "token_bucket": loader.TokenBucket,
		"leaky_bucket": loader.LeakyBucket, "fixed_window": loader.FixedWindow,
		"sliding_window": loader.SlidingWindow,
	} {
		if got, err := loader.ParseAlgorithm(name); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"GCRA", "gcra ", "fixed", "none"} {
		_, err := loader.ParseAlgorithm(name)
		if !errors.Is(err, loader.ErrLimit) || !strings.Contains(err.Error(), "use gcra, token_bucket") {
			t.Errorf("%q: %v, want an ErrLimit with the names", name, err)
		}
	}
}
