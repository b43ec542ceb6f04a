package loader_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
)

// TestReset has a state in each of its forms, and what only looks like one.
func TestReset(t *testing.T) { eachServer(t, testReset) }

func testReset(t *testing.T, server testServer, limiter testLimiter) {
	const tat = "1780000000000000000"
	gcra := loader.Limit{Amount: 10, Period: time.Minute}
	window := loader.Limit{Amount: 10, Period: time.Minute, Algorithm: loader.FixedWindow}
	period := "\xf8\x47\x58\x00" // 60e9 modulo 2^32
	for _, test := range []struct {
		name        string
		limit       loader.Limit
		value       string
		byServer    bool // a state by the server's clock
		byOwnClocks bool // a state by a caller's clock
	}{
		{"TAT", gcra, tat, true, true},
		{"TAT and credit", gcra, tat + " 6000000000 " + tat, true, true},
		{"TAT and a long credit", gcra, tat + " 999999999999999999999999 " + tat, true, true},
		{"replayed near 0", gcra, "6000000000", false, true},
		{"counter", gcra, "57", false, true},
		{"20 digits", gcra, tat + "0", false, false},
		{"negative", gcra, "-" + tat[1:], false, false},
		{"text", gcra, "hello", false, false},
		{"empty", gcra, "", false, false},
		{"TAT and a space", gcra, tat + " ", false, false},
		{"TAT and one number", gcra, tat + " 5", false, false},
		{"TAT and three numbers", gcra, tat + " 5 " + tat + " 5", false, false},
		{"TAT and no credit", gcra, tat + " 0 " + tat, false, false},
		{"TAT and a credit with a zero in front", gcra, tat + " 05 " + tat, false, false},
		{"zeros in front", gcra, "0000000000000000057", false, false},
		{"zeros in front of last", gcra, tat + " 5 0" + tat[1:], false, false},
		{"TAT at 0", gcra, "0", false, true},
		{"TAT and a longer credit", gcra, tat + " 1000000000000000000000000 " + tat, true, true},
		{"TAT, credit and a last too long", gcra, tat + " 5 " + tat + "0", false, false},
		{"TAT and a newline", gcra, tat + "\n", false, false},
		{"window's counts", gcra, "\x00\x00\x00\x01\x00\x02\x00\x03" + period, false, false},
		{"counts", window, "\x00\x00\x00\x01\x00\x02\x00\x03" + period, true, true},
		{"counts of another period", window, "\x00\x00\x00\x01\x00\x02\x00\x03\xf8\x47\x58\x01", false, false},
		{"12 letters", window, "hello, world", false, false},
		{"7 bytes", window, "1234567", false, false},
		{"counts without a period", window, "\x00\x00\x00\x01\x00\x02\x00\x03", false, false},
		{"TAT in a window", window, tat, false, false},
	} {
		for _, one := range []struct {
			limiter testLimiter
			isState bool
		}{{limiter, test.byServer}, {limiter.WithClock(t, clockAt(0)), test.byOwnClocks}} {
			stored := limiter.Key("k", test.limit)
			must(t, server.Set(t.Context(), stored, test.value, time.Hour).Err())
			before := server.held(t, stored)
			existed, err := one.limiter.Reset(t.Context(), "k", test.limit)
			after := server.held(t, stored)
			if one.isState && (err != nil || !existed || after != "") {
				t.Errorf("%s: existed is %v, %v, and %q is left", test.name, existed, err, after)
			}
			if !one.isState && (!errors.Is(err, loader.ErrBadState) || !isSpent(err, loader.ErrNotSpent) || after != before) {
				t.Errorf("%s: %v, and %q is %q, want an ErrBadState and nothing altered", test.name, err, before, after)
			}
			existed, err = one.limiter.Delete(t.Context(), "k", test.limit)
			if err != nil || existed != !one.isState {
				t.Errorf("%s: Delete says existed is %v, %v, after a reset that deletes is %v", test.name, existed, err, one.isState)
			}
			if n := server.Exists(t.Context(), stored).Val(); n != 0 {
				t.Errorf("%s: Delete left the key", test.name)
			}
			if existed, err := one.limiter.Reset(t.Context(), "k", test.limit); err != nil || existed {
				t.Errorf("%s: a reset of nothing says existed is %v, %v", test.name, existed, err)
			}
		}
	}
	for name, make := range map[string]func(key string) error{
		"hash": func(key string) error { return server.HSet(t.Context(), key, "a", 1).Err() },
		"list": func(key string) error { return server.RPush(t.Context(), key, "a").Err() },
	} {
		if name == "hash" && server.emulator != nil {
			continue // it has none
		}
		for _, limit := range []loader.Limit{gcra, window} {
			stored := limiter.Key(name, limit)
			must(t, make(stored))
			if _, err := limiter.Reset(t.Context(), name, limit); !errors.Is(err, loader.ErrBadState) ||
				!isSpent(err, loader.ErrNotSpent) || server.Exists(t.Context(), stored).Val() != 1 {
				t.Errorf("%s: %v, want an ErrBadState, and the key left", name, err)
			}
			forgotten(t)(limiter.Delete(t.Context(), name, limit))
		}
	}
}

// TestResetOfWhatWasWritten resets what the scripts write, by both clocks.
func TestResetOfWhatWasWritten(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		for _, one := range []testLimiter{limiter, limiter.WithClock(t, clockAt(0)),
			limiter.WithClock(t, func() time.Time { return time.Unix(0, 1) })} {
			for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.FixedWindow, loader.SlidingWindow} {
				limit := loader.Limit{Amount: 10, Period: time.Hour, Algorithm: algorithm, Name: "n"}
				allow(t, one, "k", limit, 4)
				forgotten(t)(one.Reset(t.Context(), "k", limit))
				if got := allow(t, one, "k", limit, 0); got.Remaining != 10 {
					t.Errorf("%v: %+v, want 10 remaining", limit, got)
				}
			}
		}
		if n := server.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

// TestResetUnderCalls has resets among calls of one key, on a cluster: each is one step, so
// that the limit is admitted between any two of them, and no more.
func TestResetUnderCalls(t *testing.T) {
	_, cluster := startCluster(t)
	limiter := newLimiter(t, cluster).WithClock(t, clockAt(0))
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	const resets = 50
	const callers = 4
	var group sync.WaitGroup
	var admitted, refused atomic.Int64
	var done atomic.Bool
	defer group.Wait()
	defer done.Store(true)
	for range callers {
		group.Go(func() {
			for !done.Load() {
				got, err := limiter.Allow(t.Context(), "k", limit)
				switch {
				case err != nil:
					t.Error(err)
					return
				case got.Allowed:
					admitted.Add(1)
				default:
					refused.Add(1)
				}
			}
		})
	}
	for i := range resets + 1 {
		// Of as many refusals and one more, one is of a call that began after the last reset.
		before := refused.Load()
		until(t, "refusals", func() bool { return refused.Load() > before+callers })
		if i < resets {
			forgotten(t)(limiter.Reset(t.Context(), "k", limit))
		}
	}
	done.Store(true)
	group.Wait()
	if got := admitted.Load(); got != 10*(resets+1) {
		t.Errorf("%d are admitted with %d resets of a limit of 10, want %d", got, resets, 10*(resets+1))
	}
	for i := range 20 { // in many slots
		key := fmt.Sprint("k", i)
		allow(t, limiter, key, limit, 3)
		forgotten(t)(limiter.Reset(t.Context(), key, limit))
		if got := allow(t, limiter, key, limit, 0); got.Remaining != 10 {
			t.Errorf("%s: %+v, want 10 remaining", key, got)
		}
	}
}
