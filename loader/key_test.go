package loader_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

func TestKey(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "server.invalid:1"})
	defer client.Close()
	gcra := loader.Limit{Amount: 1, Period: time.Minute}
	login, window, both := gcra, gcra, gcra
	login.Name, both.Name = "login", "login"
	window.Algorithm, both.Algorithm = loader.SlidingWindow, loader.FixedWindow
	for _, test := range []struct {
		prefix, key string
		limit       loader.Limit
		want        string
	}{
		{"rl:", "42", gcra, "rl:{42}"},
		{"rl:", "42", login, "rl:{42}:login"},
		{"rl:", "42", window, "rl:{42}:60000000000"},
		{"rl:", "42", both, "rl:{42}:login:60000000000"},
		{"", "42", gcra, "{42}"},
		{"app:", "a:b", gcra, "app:{a:b}"},
		{"rl:", "a{b}c", gcra, "rl:a{b}c"},
		{"rl:", "a{b}c", both, "rl:a{b}c:login:60000000000"},
		{"rl:", "{", login, "rl:{:login"},
		{"rl:", "a}b", gcra, "rl:{a}b}"},
		{"rl:", "", gcra, "rl:{}"}, // shown, but refused by calls
	} {
		limiter, err := loader.New(client, loader.WithPrefix(test.prefix))
		must(t, err)
		if got := limiter.Key(test.key, test.limit); got != test.want {
			t.Errorf("prefix %q, key %q, %v: %q, want %q", test.prefix, test.key, test.limit, got, test.want)
		}
	}
	limiter, err := loader.New(client)
	must(t, err)
	if got := limiter.Key("42", gcra); got != "rl:{42}" {
		t.Errorf("without a prefix of one's own: %q", got)
	}
}

// TestPeriodsApart alternates two windows at one key, which once limited nothing.
func TestPeriodsApart(t *testing.T) { eachServer(t, testPeriodsApart) }

func testPeriodsApart(t *testing.T, _ testServer, limiter testLimiter) {
	at := limiter.WithClock(t, clockAt(0))
	short := loader.Limit{Amount: 100, Period: time.Second, Algorithm: loader.SlidingWindow}
	long := loader.Limit{Amount: 5, Period: time.Minute, Algorithm: loader.SlidingWindow}
	admitted := map[loader.Limit]int{}
	for range 500 {
		for _, limit := range []loader.Limit{short, long} {
			if allow(t, at, "k", limit, 1).Allowed {
				admitted[limit]++
			}
		}
	}
	if admitted[short] != 100 || admitted[long] != 5 {
		t.Errorf("%d and %d are admitted, want 100 and 5", admitted[short], admitted[long])
	}
}

// TestNamesApart has two limits of GCRA at one key: without a name they hold each other
// up, and with one they do not.
func TestNamesApart(t *testing.T) { eachServer(t, testNamesApart) }

func testNamesApart(t *testing.T, _ testServer, limiter testLimiter) {
	at := limiter.WithClock(t, clockAt(0))
	minute := loader.Limit{Amount: 10, Period: time.Minute}
	day := loader.Limit{Amount: 100, Period: 24 * time.Hour}
	for range 10 {
		allow(t, at, "k", minute, 1)
		allow(t, at, "k", day, 1)
	}
	if got := allow(t, at, "k", minute, 1); got.Allowed || got.RetryAfter < 20*time.Minute {
		t.Errorf("one state: %+v, want a wait above 20 minutes", got)
	}
	day.Name = "day"
	for range 10 {
		if !allow(t, at, "named", minute, 1).Allowed || !allow(t, at, "named", day, 1).Allowed {
			t.Fatal("two states: refused")
		}
	}
	if got := allow(t, at, "named", minute, 1); got.Allowed || got.RetryAfter != 6*time.Second {
		t.Errorf("two states: %+v, want a wait of 6 s", got)
	}
}
