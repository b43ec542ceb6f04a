package loader_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision/servers"
)

// testLimiter is a limiter that makes others like it, on the same client.
type testLimiter struct {
	*loader.Limiter
	client  redis.UniversalClient
	options []loader.Option
}

func (l testLimiter) with(t *testing.T, option loader.Option) testLimiter {
	t.Helper()
	l.options = append(slices.Clone(l.options), option)
	limiter, err := loader.New(l.client, l.options...)
	must(t, err)
	l.Limiter = limiter
	return l
}

func (l testLimiter) WithClock(t *testing.T, now func() time.Time) testLimiter {
	t.Helper()
	return l.with(t, loader.WithClock(now))
}

func (l testLimiter) WithV1(t *testing.T) testLimiter {
	t.Helper()
	return l.with(t, loader.WithScripts("gcra_v1", "window_v1"))
}

// clockAt is a clock that stands still, on the grid of gcra_v1.
func clockAt(ns int64) func() time.Time {
	return func() time.Time { return time.Unix(1_780_000_000, ns) }
}

// allow returns the result without its limit and key, which it checks.
func allow(t *testing.T, limiter testLimiter, key string, limit loader.Limit, cost int64) loader.Result {
	t.Helper()
	result, err := limiter.AllowN(t.Context(), key, limit, cost)
	if err != nil {
		t.Fatal(err)
	}
	if result.Limit != limit || result.Key != limiter.Key(key, limit) {
		t.Fatalf("%v at %s: the result says %v at %s", limit, limiter.Key(key, limit), result.Limit, result.Key)
	}
	result.Limit, result.Key = loader.Limit{}, ""
	return result
}

func allowEach(t *testing.T, limiter testLimiter, calls []loader.Call) []loader.Outcome {
	t.Helper()
	outcomes := limiter.AllowEach(t.Context(), calls...)
	if len(outcomes) != len(calls) {
		t.Fatalf("%d outcomes of %d calls", len(outcomes), len(calls))
	}
	for i, outcome := range outcomes {
		if outcome.Err != nil {
			t.Errorf("call %d: %v", i, outcome.Err)
		}
	}
	return outcomes
}

// sha1Of returns the pinned SHA1 of a script.
func sha1Of(t *testing.T, name string) string {
	t.Helper()
	scripts, err := loader.Scripts()
	must(t, err)
	for _, script := range scripts {
		if script.Name == name {
			return script.SHA1
		}
	}
	t.Fatalf("%s is not pinned", name)
	return ""
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// forgotten fails the test when Reset or Delete, whose results it takes, did.
func forgotten(t *testing.T) func(existed bool, err error) {
	return func(_ bool, err error) {
		t.Helper()
		must(t, err)
	}
}

func TestAllow(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ testServer, limiter testLimiter) {
		for _, algorithm := range []loader.Algorithm{"", loader.GCRA, loader.TokenBucket, loader.LeakyBucket} {
			limit := loader.Limit{Amount: 300, Period: time.Minute, Burst: 60, Algorithm: algorithm}
			key := "gcra:" + string(algorithm)
			at := limiter.WithClock(t, clockAt(0))
			want := loader.Result{Allowed: true, Remaining: 60}
			if got := allow(t, at, key, limit, 0); got != want {
				t.Errorf("%v: at rest %+v, want %+v", limit, got, want)
			}
			for i := range int64(60) {
				// 200 ms is 256 ns x 781250, so the grid adds nothing.
				want := loader.Result{Allowed: true, Remaining: 59 - i, ResetAfter: time.Duration(i+1) * 200 * time.Millisecond}
				if got := allow(t, at, key, limit, 1); got != want {
					t.Fatalf("%v: call %d: %+v, want %+v", limit, i, got, want)
				}
			}
			want = loader.Result{RetryAfter: 200 * time.Millisecond, ResetAfter: 12 * time.Second}
			if got := allow(t, at, key, limit, 1); got != want {
				t.Errorf("%v: after the burst %+v, want %+v", limit, got, want)
			}
			if got := allow(t, limiter.WithClock(t, clockAt(200e6-1)), key, limit, 1); got.Allowed || got.RetryAfter != 1 {
				t.Errorf("%v: 1 ns early %+v, want it refused for 1 ns", limit, got)
			}
			if got := allow(t, limiter.WithClock(t, clockAt(200e6)), key, limit, 1); !got.Allowed {
				t.Errorf("%v: at the interval %+v, want it allowed", limit, got)
			}
			want = loader.Result{Unfittable: true, RetryAfter: -1, ResetAfter: 12200 * time.Millisecond}
			if got := allow(t, at, key, limit, 61); got != want {
				t.Errorf("%v: cost 61: %+v, want %+v", limit, got, want)
			}
			forgotten(t)(limiter.Reset(t.Context(), key, limit))
			if got, err := at.Peek(t.Context(), key, limit); got.Remaining != 60 || err != nil {
				t.Errorf("%v: after Reset %+v, %v, want 60 remaining", limit, got, err)
			}
		}
	})
}

func TestAllowWindow(t *testing.T) {
	eachVersion(t, func(t *testing.T, _ testServer, limiter testLimiter) {
		fixed := loader.Limit{Amount: 10, Period: 8 * time.Second, Algorithm: loader.FixedWindow}
		admitted := int64(0)
		for _, test := range []struct {
			second  int64
			allowed bool
		}{{0, true}, {1, true}, {2, true}, {4, false}, {8, true}, {9, true}, {10, true}} {
			// 1_780_000_000 s is a multiple of 8 s.
			got := allow(t, limiter.WithClock(t, clockAt(test.second*1e9)), "fixed", fixed, 3)
			if got.Allowed != test.allowed {
				t.Errorf("fixed, second %d: %+v, want allowed %v", test.second, got, test.allowed)
			}
			if got.Allowed {
				admitted += 3
			}
		}
		if admitted != 18 {
			t.Errorf("fixed: %d admitted, want 18", admitted)
		}
		// Previous 6, current 6, 6 s into 8 s: sliding carries 6 x 2/8, and 7.5 + 3 > 10.
		for _, test := range []struct {
			algorithm loader.Algorithm
			allowed   bool
		}{{loader.SlidingWindow, false}, {loader.FixedWindow, true}} {
			limit := loader.Limit{Amount: 10, Period: 8 * time.Second, Algorithm: test.algorithm}
			key := string(test.algorithm)
			allow(t, limiter.WithClock(t, clockAt(0)), key, limit, 6)
			if got := allow(t, limiter.WithClock(t, clockAt(8e9)), key, limit, 4); !got.Allowed {
				t.Errorf("%v: cost 4: %+v, want it allowed", limit, got)
			}
			allow(t, limiter.WithClock(t, clockAt(12e9)), key, limit, 2)
			got := allow(t, limiter.WithClock(t, clockAt(14e9)), key, limit, 3)
			if got.Allowed != test.allowed {
				t.Errorf("%v: cost 3: %+v, want allowed %v", limit, got, test.allowed)
			}
		}
	})
}

// TestPublishedFigures holds what is published for a limit of 300 a minute.
func TestPublishedFigures(t *testing.T) { eachServer(t, testPublishedFigures) }

func testPublishedFigures(t *testing.T, _ testServer, limiter testLimiter) {
	minute := loader.Limit{Amount: 300, Period: time.Minute}
	if got := allow(t, limiter, "left out", minute, 1); !got.Allowed || got.Remaining != 299 {
		t.Errorf("burst left out: %+v, want 299 remaining", got)
	}
	at := limiter.WithClock(t, clockAt(0))
	for i := range int64(300) {
		if got := allow(t, at, "300", minute, 1); !got.Allowed || got.Remaining != 299-i {
			t.Fatalf("burst left out, call %d: %+v, want %d remaining", i, got, 299-i)
		}
	}
	if got := allow(t, at, "300", minute, 1); got.Allowed {
		t.Errorf("burst left out, call 301: %+v, want it refused", got)
	}
	burst60 := minute
	burst60.Burst = 60
	if got := allow(t, limiter, "burst 60", burst60, 1); !got.Allowed || got.Remaining != 59 ||
		got.ResetAfter != 200*time.Millisecond {
		t.Errorf("burst 60: %+v, want 59 remaining and reset after 0.2 s", got)
	}
	if got := allow(t, limiter.WithV1(t), "v1", burst60, 1); !got.Allowed || got.Remaining != 59 ||
		got.ResetAfter < 200*time.Millisecond || got.ResetAfter >= 200*time.Millisecond+256 {
		t.Errorf("burst 60, v1: %+v, want 59 remaining and reset after 0.2 s and less than 256 ns", got)
	}
}

// TestRefusedUnsent counts what reaches the server: nothing.
func TestRefusedUnsent(t *testing.T) { eachServer(t, testRefusedUnsent) }

func testRefusedUnsent(t *testing.T, server testServer, limiter testLimiter) {
	server.resetStats(t)
	good := loader.Limit{Amount: 10, Period: time.Second}
	refuse := func(limiter testLimiter, limit loader.Limit, cost int64, want error) {
		t.Helper()
		got, err := limiter.AllowN(t.Context(), "k", limit, cost)
		if !errors.Is(err, want) || !errors.Is(err, loader.ErrNotSpent) || got != (loader.Result{}) {
			t.Errorf("%v cost %d: %+v, %v, want %v", limit, cost, got, err, want)
		}
		each := limiter.AllowEach(t.Context(), loader.Call{Key: "k", Limit: limit, Cost: cost})[0]
		if !errors.Is(each.Err, want) || !errors.Is(each.Err, loader.ErrNotSpent) || each.Result != (loader.Result{}) {
			t.Errorf("AllowEach, %v cost %d: %+v, want %v", limit, cost, each, want)
		}
	}
	for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.FixedWindow, loader.SlidingWindow} {
		for _, n := range []int64{0, -1} {
			refuse(limiter, loader.Limit{Amount: n, Period: time.Second, Algorithm: algorithm}, 1, loader.ErrLimit)
			refuse(limiter, loader.Limit{Amount: 1, Period: time.Duration(n), Algorithm: algorithm}, 1, loader.ErrLimit)
		}
		refuse(limiter, loader.Limit{Amount: 1, Period: time.Second, Burst: -1, Algorithm: algorithm}, 1, loader.ErrLimit)
		limit := loader.Limit{Amount: 10, Period: time.Second, Algorithm: algorithm}
		for _, cost := range []int64{-1, -1 << 53, -1 << 63, 1<<52 + 1, 1<<63 - 1} {
			refuse(limiter, limit, cost, loader.ErrCost)
		}
	}
	refuse(limiter, loader.Limit{Amount: 100000, Period: time.Minute, Algorithm: loader.SlidingWindow}, 1, loader.ErrLimit)
	for _, now := range []time.Time{{}, time.Unix(0, -1), time.Unix(0, 1<<63-1).Add(1)} {
		refuse(limiter.WithClock(t, func() time.Time { return now }), good, 1, loader.ErrClock)
	}
	if _, err := limiter.Allow(t.Context(), "", good); !errors.Is(err, loader.ErrKey) || !errors.Is(err, loader.ErrNotSpent) {
		t.Errorf("empty key: %v, want an ErrKey", err)
	}
	for _, command := range []string{"evalsha", "eval", "script|load"} {
		if calls, _ := server.stats(t, command); calls != 0 {
			t.Errorf("%d %s were sent, want none", calls, command)
		}
	}
	// The bounds themselves pass, so the count above can be other than 0.
	allow(t, limiter, "k", good, 1<<52)
	allow(t, limiter.WithClock(t, func() time.Time { return time.Unix(0, 0) }), "k", good, 0)
	if calls, _ := server.stats(t, "evalsha"); calls != 2 {
		t.Errorf("%d evalsha were sent, want 2", calls)
	}
	// A clock that Go can tell and a script cannot is the script's to refuse.
	in2262 := limiter.WithClock(t, func() time.Time { return time.Unix(0, 1<<63-1) })
	sliding := loader.Limit{Amount: 10, Period: time.Second, Algorithm: loader.SlidingWindow}
	for _, test := range []struct {
		limiter testLimiter
		limit   loader.Limit
		want    string
	}{
		{in2262, good, "BADARG gcra_v2: now_ns + burst * interval is above 2^63 - 1"},
		{in2262.WithV1(t), good, "BADARG gcra_v1: now_ns + burst * interval is above 2^61; use gcra_v2"},
		{in2262, sliding, "BADARG window_v1: now_ns must be below 2^62"},
		{in2262.WithV1(t), sliding, "BADARG window_v1: now_ns must be below 2^62"},
	} {
		_, err := test.limiter.Allow(t.Context(), "k", test.limit)
		if !errors.Is(err, loader.ErrBadArg) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v in 2262: %v, want an ErrBadArg with %q", test.limit, err, test.want)
		}
	}
}

func TestPeekWritesNothing(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.SlidingWindow} {
			limit := loader.Limit{Amount: 10, Period: time.Hour, Algorithm: algorithm}
			key := string(algorithm)
			if got, err := limiter.Peek(t.Context(), key, limit); err != nil || !got.Allowed || got.Remaining != 10 {
				t.Errorf("%v: %+v, %v, want 10 remaining", limit, got, err)
			}
			stored := limiter.Key(key, limit)
			if n := server.Exists(t.Context(), stored).Val(); n != 0 {
				t.Errorf("%v: Peek made the key", limit)
			}
			allow(t, limiter, key, limit, 10)
			before := server.Get(t.Context(), stored).Val()
			must(t, server.Persist(t.Context(), stored).Err()) // so that an expiry set by Peek shows
			if got, err := limiter.Peek(t.Context(), key, limit); err != nil || !got.Allowed || got.Remaining != 0 {
				t.Errorf("%v: %+v, %v, want 0 remaining", limit, got, err)
			}
			if after := server.Get(t.Context(), stored).Val(); after != before || before == "" {
				t.Errorf("%v: Peek wrote %q over %q", limit, after, before)
			}
			if ttl := server.TTL(t.Context(), stored).Val(); ttl != -1 {
				t.Errorf("%v: Peek set an expiry of %v", limit, ttl)
			}
		}
	})
}

func TestBadState(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.FixedWindow} {
			limit := loader.Limit{Amount: 10, Period: time.Second, Algorithm: algorithm}
			must(t, server.Set(t.Context(), limiter.Key("text", limit), "hello", 0).Err())
			must(t, server.Del(t.Context(), limiter.Key("list", limit)).Err())
			must(t, server.RPush(t.Context(), limiter.Key("list", limit), "a").Err())
			for key, want := range map[string]string{"text": "BADSTATE", "list": "WRONGTYPE"} {
				stored := limiter.Key(key, limit)
				before := server.held(t, stored)
				for _, cost := range []int64{0, 1, 11} {
					got, err := limiter.AllowN(t.Context(), key, limit, cost)
					if got != (loader.Result{}) || !errors.Is(err, loader.ErrBadState) || !redis.HasErrorPrefix(err, want) {
						t.Errorf("%v, %s, cost %d: %+v, %v, want an ErrBadState with the server's %s", limit, key, cost, got, err, want)
					}
				}
				if after := server.held(t, stored); after != before || before == "" {
					t.Errorf("%v: %s was altered", limit, key)
				}
			}
		}
	})
}

func TestFlushUnderCalls(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		recovered := 0
		for round := range 20 {
			key := fmt.Sprint("k", round)
			limit := loader.Limit{Amount: 50, Period: time.Hour}
			if round%2 == 1 {
				limit.Algorithm = loader.FixedWindow
			}
			at := limiter.WithClock(t, clockAt(0))
			must(t, server.ScriptFlush(t.Context()).Err())
			server.resetStats(t)
			var group sync.WaitGroup
			for i := range 50 {
				group.Go(func() {
					if i == 25 {
						if err := server.ScriptFlush(t.Context()).Err(); err != nil {
							t.Error(err)
						}
					}
					if got, err := at.Allow(t.Context(), key, limit); err != nil || !got.Allowed {
						t.Errorf("%+v, %v, want it allowed", got, err)
					}
				})
			}
			group.Wait()
			calls, failed := server.stats(t, "evalsha")
			again, _ := server.stats(t, "eval")
			if calls != 50 || failed != again {
				t.Errorf("%d evalsha, %d failed, %d sent again; want 50 and as many again as failed", calls, failed, again)
			}
			recovered += again
			if got := allow(t, at, key, limit, 1); got.Allowed || got.Remaining != 0 {
				t.Errorf("call 51: %+v, want it refused: 50 were spent", got)
			}
		}
		if recovered < 20 {
			t.Errorf("%d calls recovered in 20 rounds, each of which has one at least", recovered)
		}
	})
}

// TestFlushBeforeBatch has one of two scripts gone: only its calls go again.
func TestFlushBeforeBatch(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		gcra := loader.Limit{Amount: 1000, Period: time.Hour}
		window := loader.Limit{Amount: 1000, Period: time.Hour, Algorithm: loader.FixedWindow}
		must(t, server.ScriptFlush(t.Context()).Err())
		allow(t, limiter, "other", gcra, 1) // loads gcra only
		server.resetStats(t)
		var calls []loader.Call
		for i := range 100 {
			if i%10 == 3 {
				calls = append(calls, loader.Call{Key: "window", Limit: window, Cost: 1})
			} else {
				calls = append(calls, loader.Call{Key: "gcra", Limit: gcra, Cost: 1})
			}
		}
		at := limiter.WithClock(t, clockAt(0))
		left := map[string]int64{"gcra": 1000, "window": 1000}
		for i, got := range allowEach(t, at, calls) {
			left[calls[i].Key]--
			if !got.Allowed || got.Remaining != left[calls[i].Key] {
				t.Errorf("call %d: %+v, want it allowed with %d remaining", i, got.Result, left[calls[i].Key])
			}
		}
		sent, failed := server.stats(t, "evalsha")
		again, _ := server.stats(t, "eval")
		if sent != 100 || failed != 10 || again != 10 {
			t.Errorf("%d evalsha, %d failed, %d sent again, want 100, 10, 10", sent, failed, again)
		}
		if got := allow(t, at, "gcra", gcra, 0); got.Remaining != 910 {
			t.Errorf("gcra: %d remaining, want 910", got.Remaining)
		}
		if got := allow(t, at, "window", window, 0); got.Remaining != 990 {
			t.Errorf("window: %d remaining, want 990", got.Remaining)
		}
	})
}

func TestFlushUnderBatches(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		limit := loader.Limit{Amount: 2000, Period: time.Hour}
		at := limiter.WithClock(t, clockAt(0))
		server.resetStats(t)
		done, flushed := make(chan struct{}), make(chan struct{}, 1)
		var flusher sync.WaitGroup
		flusher.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := server.ScriptFlush(t.Context()).Err(); err != nil {
					t.Error(err)
				}
				select {
				case flushed <- struct{}{}:
				default:
				}
			}
		})
		for range 20 {
			<-flushed // so that the flusher takes part, however slow it is
			calls := make([]loader.Call, 100)
			for i := range calls {
				calls[i] = loader.Call{Key: "k", Limit: limit, Cost: 1}
			}
			allowEach(t, at, calls)
		}
		close(done)
		flusher.Wait()
		sent, failed := server.stats(t, "evalsha")
		again, _ := server.stats(t, "eval")
		if sent != 2000 || failed != again || again == 0 {
			t.Errorf("%d evalsha, %d failed, %d sent again; want 2000 and as many again as failed", sent, failed, again)
		}
		if got := allow(t, at, "k", limit, 1); got.Allowed || got.Remaining != 0 {
			t.Errorf("call 2001: %+v, want it refused: 2000 were spent", got)
		}
	})
}

func TestAllowEach(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		limit := loader.Limit{Amount: 2, Period: time.Hour}
		window := loader.Limit{Amount: 2, Period: time.Hour, Algorithm: loader.SlidingWindow}
		must(t, server.Set(t.Context(), limiter.Key("text", limit), "hello", 0).Err())
		calls := []loader.Call{
			{Key: "a", Limit: limit, Cost: 1},
			{Key: "a", Limit: loader.Limit{Amount: 0, Period: time.Hour}, Cost: 1},
			{Key: "text", Limit: limit, Cost: 1},
			{Key: "a", Limit: limit, Cost: 1},
			{Key: "a", Limit: limit, Cost: 1},
			{Key: "a", Limit: limit, Cost: 3},
			{Key: "b", Limit: window, Cost: 2},
			{Key: "b", Limit: limit, Cost: -1},
		}
		at := limiter.WithClock(t, clockAt(0))
		before := slices.Clone(calls)
		for round := range 2 {
			outcomes := at.AllowEach(t.Context(), calls...)
			if !slices.Equal(calls, before) {
				t.Errorf("round %d: the calls are %v, they were %v", round, calls, before)
			}
			for i, want := range []struct {
				allowed, unfittable bool
				remaining           int64
				err                 error
			}{
				{allowed: true, remaining: 1}, {err: loader.ErrLimit}, {err: loader.ErrBadState},
				{allowed: true}, {}, {unfittable: true}, {allowed: true}, {err: loader.ErrCost},
			} {
				got := outcomes[i]
				if got.Allowed != want.allowed || got.Unfittable != want.unfittable || got.Remaining != want.remaining ||
					!errors.Is(got.Err, want.err) || (got.Err == nil) != (want.err == nil) {
					t.Errorf("round %d, call %d: %+v, %v, want %+v", round, i, got.Result, got.Err, want)
				}
				if key := limiter.Key(calls[i].Key, calls[i].Limit); want.err == nil && (got.Key != key || got.Limit != calls[i].Limit) {
					t.Errorf("round %d, call %d: %+v, want the key %s and the limit", round, i, got.Result, key)
				}
			}
			forgotten(t)(limiter.Reset(t.Context(), "a", limit))
			forgotten(t)(limiter.Reset(t.Context(), "b", window))
		}
		if got := limiter.AllowEach(t.Context()); len(got) != 0 {
			t.Errorf("no calls: %v", got)
		}
	})
}

func TestReplica(t *testing.T) {
	master, onMaster := start(t, "--repl-diskless-sync-delay", "0")
	host, port := address(master.Client)
	eachVersionOn(t, []string{"--replicaof", host + " " + port}, func(t *testing.T, replica testServer, limiter testLimiter) {
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.SlidingWindow} {
			limit := loader.Limit{Amount: 10, Period: time.Hour, Algorithm: algorithm}
			key := t.Name() + string(algorithm)
			allow(t, onMaster, key, limit, 4)
			if n, err := master.Wait(t.Context(), 1, 20*time.Second).Result(); n != 1 || err != nil {
				t.Fatalf("the replica did not follow: %d, %v", n, err)
			}
			stored := limiter.Key(key, limit)
			before := replica.held(t, stored)
			if got, err := limiter.Peek(t.Context(), key, limit); err != nil || got.Remaining != 6 {
				t.Errorf("%v: Peek %+v, %v, want 6 remaining", limit, got, err)
			}
			replica.resetStats(t)
			got, err := limiter.Allow(t.Context(), key, limit)
			if got != (loader.Result{}) || !errors.Is(err, loader.ErrReadOnly) {
				t.Errorf("%v: Allow %+v, %v, want an ErrReadOnly", limit, got, err)
			}
			each := limiter.AllowEach(t.Context(), loader.Call{Key: key, Limit: limit, Cost: 1}, loader.Call{Key: key, Limit: limit})
			if !errors.Is(each[0].Err, loader.ErrReadOnly) || !errors.Is(each[0].Err, loader.ErrNotSpent) {
				t.Errorf("%v: AllowEach %v, want an ErrReadOnly", limit, each[0].Err)
			}
			if each[1].Err != nil || each[1].Remaining != 6 {
				t.Errorf("%v: the batch's look %+v, want 6 remaining", limit, each[1])
			}
			if calls, _ := replica.stats(t, "evalsha"); calls != 3 {
				t.Errorf("%v: %d evalsha for 3 calls", limit, calls)
			}
			if _, err := limiter.Reset(t.Context(), key, limit); !errors.Is(err, loader.ErrReadOnly) {
				t.Errorf("Reset: %v, want an ErrReadOnly", err)
			}
			if after := replica.held(t, stored); after != before || before == "" {
				t.Errorf("%v: the key was altered on the replica", limit)
			}
		}
	})
}

func TestOutOfMemory(t *testing.T) {
	eachVersionOn(t, []string{"--maxmemory", "1", "--maxmemory-policy", "noeviction"}, func(t *testing.T, server testServer, limiter testLimiter) {
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.SlidingWindow} {
			limit := loader.Limit{Amount: 10, Period: time.Hour, Algorithm: algorithm}
			key := string(algorithm)
			got, err := limiter.Allow(t.Context(), key, limit)
			if got != (loader.Result{}) || !errors.Is(err, loader.ErrOutOfMemory) {
				t.Errorf("%v: %+v, %v, want an ErrOutOfMemory", limit, got, err)
			}
			stored := limiter.Key(key, limit)
			if n := server.Exists(t.Context(), stored).Val(); n != 0 {
				t.Errorf("%v: the key was made", limit)
			}
			must(t, server.ConfigSet(t.Context(), "maxmemory", "0").Err())
			allow(t, limiter, key, limit, 3)
			before := server.held(t, stored)
			must(t, server.ConfigSet(t.Context(), "maxmemory", "1").Err())
			if got, err := limiter.Allow(t.Context(), key, limit); !errors.Is(err, loader.ErrOutOfMemory) {
				t.Errorf("%v: %+v, %v, want an ErrOutOfMemory", limit, got, err)
			}
			if after := server.held(t, stored); after != before || before == "" {
				t.Errorf("%v: the key was altered", limit)
			}
			if got, err := limiter.Peek(t.Context(), key, limit); err != nil || got.Remaining != 7 {
				t.Errorf("%v: Peek %+v, %v, want 7 remaining", limit, got, err)
			}
		}
	})
}

func TestTimeRefused(t *testing.T) {
	admin, _ := start(t)
	must(t, admin.ACLSetUser(t.Context(), "timeless", "on", "nopass", "~*", "+@all", "-time").Err())
	options := *admin.Options()
	options.Username, options.Password = "timeless", "any"
	client := redis.NewClient(&options)
	t.Cleanup(func() { client.Close() })
	v2 := newLimiter(t, client)
	refused := regexp.MustCompile(`The user executing the script can't run this command|ACL failure in script`) // to 7.0, later
	for version, limiter := range map[string]testLimiter{"v2": v2, "v1": v2.WithV1(t)} {
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.SlidingWindow} {
			limit := loader.Limit{Amount: 10, Period: time.Hour, Algorithm: algorithm}
			key := string(algorithm) + version
			got, err := limiter.Allow(t.Context(), key, limit)
			if got != (loader.Result{}) || !isSpent(err, loader.ErrNotSpent) || !refused.MatchString(err.Error()) {
				t.Errorf("%s, %v: %+v, %v, want an ErrNotSpent with the server's reason", version, limit, got, err)
			}
			if n := admin.Exists(t.Context(), limiter.Key(key, limit)).Val(); n != 0 {
				t.Errorf("%s, %v: the key was made", version, limit)
			}
			if got := allow(t, limiter.WithClock(t, time.Now), key, limit, 1); !got.Allowed || got.Remaining != 9 {
				t.Errorf("%s, %v: with a clock %+v, want 9 remaining", version, limit, got)
			}
		}
	}
}

func TestNilClient(t *testing.T) {
	for _, client := range []redis.UniversalClient{
		nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil), (*redis.Ring)(nil),
	} {
		limiter, err := loader.New(client)
		if limiter != nil || err == nil || err.Error() != "tatami: the client is nil" {
			t.Errorf("New, %T: %v, %v, want the error that the client is nil", client, limiter, err)
		}
	}
	for _, client := range []redis.UniversalClient{&redis.Client{}, &redis.ClusterClient{}, &redis.Ring{}} {
		limiter, err := loader.New(client)
		if limiter != nil || err == nil || err.Error() != "tatami: the client was not made by go-redis" {
			t.Errorf("New, a zero %T: %v, %v, want the error that go-redis has not made it", client, limiter, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	server := servers.ForTest(t)
	client := server.Client()
	t.Cleanup(func() { client.Close() })
	limiter := newLimiter(t, client)
	server.Stop()
	quick := *client.Options()
	quick.MaxRetries, quick.DialerRetries = -1, 1
	gone := redis.NewClient(&quick)
	t.Cleanup(func() { gone.Close() })
	onGone, err := loader.New(gone)
	must(t, err) // nothing is sent
	for name, ask := range map[string]func(context.Context) ([]loader.Presence, error){"Load": onGone.Load, "Verify": onGone.Verify} {
		found, err := ask(t.Context())
		if found != nil || !errors.Is(err, loader.ErrUnreached) || !strings.Contains(err.Error(), quick.Addr) {
			t.Errorf("%s: %v, %v, want an ErrUnreached that names %s", name, found, err, quick.Addr)
		}
	}
	got, err := limiter.Allow(t.Context(), "k", loader.Limit{Amount: 1, Period: time.Second})
	if !errors.Is(err, loader.ErrNotSpent) || got != (loader.Result{}) || !strings.Contains(err.Error(), quick.Addr) {
		t.Errorf("Allow: %+v, %v, want an ErrNotSpent that names %s", got, err, quick.Addr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := limiter.Allow(ctx, "k", loader.Limit{Amount: 1, Period: time.Second}); !errors.Is(err, context.Canceled) || !errors.Is(err, loader.ErrNotSpent) {
		t.Errorf("cancelled: %v, want context.Canceled", err)
	}
	each := limiter.AllowEach(ctx, loader.Call{Key: "k", Limit: loader.Limit{Amount: 1, Period: time.Second}})[0]
	if !errors.Is(each.Err, context.Canceled) || !errors.Is(each.Err, loader.ErrNotSpent) {
		t.Errorf("cancelled batch: %v, want context.Canceled", each.Err)
	}
}

func TestVerify(t *testing.T) { eachServer(t, testVerify) }

func testVerify(t *testing.T, server testServer, limiter testLimiter) {
	scripts, err := loader.Scripts()
	must(t, err)
	check := func(loaded ...bool) {
		t.Helper()
		got, err := limiter.Verify(t.Context())
		if err != nil || len(got) != len(scripts) {
			t.Fatalf("%v, %v, want %d answers", got, err, len(scripts))
		}
		for i, script := range scripts {
			want := loader.Presence{Server: server.Options().Addr, Script: script.Name, SHA1: script.SHA1, Loaded: loaded[i], Bits: 64}
			if got[i] != want {
				t.Errorf("got %+v, want %+v", got[i], want)
			}
		}
	}
	check(true, true, true, true)
	must(t, server.ScriptFlush(t.Context()).Err())
	check(false, false, false, false)
	must(t, server.ScriptLoad(t.Context(), lua.WindowV1).Err())
	check(false, false, true, false)
}
