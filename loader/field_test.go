package loader_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

// A user to whom SCRIPT is refused and EVAL is not: nothing can be loaded, and every call
// works, from an empty script cache too.
func TestScriptRefused(t *testing.T) {
	eachVersionOn(t, nil, func(t *testing.T, server testServer, admin testLimiter) {
		ctx := t.Context()
		must(t, server.Do(ctx, "acl", "setuser", "app", "on", ">secret", "~*", "+@all", "-script").Err())
		client := redis.NewClient(&redis.Options{Addr: server.Options().Addr, Username: "app", Password: "secret"})
		defer client.Close()
		limiter := testLimiter{nil, client, admin.options}.WithClock(t, clockAt(0)) // a window may end at any call by the server's
		if _, err := limiter.Load(ctx); !redis.HasErrorPrefix(err, "NOPERM") {
			t.Fatalf("Load: %v, want NOPERM", err)
		}
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.FixedWindow, loader.SlidingWindow} {
			limit := loader.Limit{Amount: 10, Period: time.Hour, Algorithm: algorithm}
			key := string(algorithm)
			for _, flushed := range []bool{true, false} {
				empty := func() {
					if flushed {
						must(t, server.ScriptFlush(ctx).Err())
					}
				}
				empty()
				got, err := limiter.Allow(ctx, key, limit)
				if err != nil || !got.Allowed || got.Remaining != 9 {
					t.Errorf("%s, flushed %v: Allow: %+v, %v", key, flushed, got, err)
				}
				empty()
				if got := allow(t, limiter, key, limit, 4); !got.Allowed || got.Remaining != 5 {
					t.Errorf("%s, flushed %v: AllowN: %+v", key, flushed, got)
				}
				empty()
				each := allowEach(t, limiter, []loader.Call{{Key: key, Limit: limit, Cost: 3}, {Key: key, Limit: limit, Cost: 3}})
				if !each[0].Allowed || each[0].Remaining != 2 || each[1].Allowed || each[1].Remaining != 2 {
					t.Errorf("%s, flushed %v: AllowEach: %+v", key, flushed, each)
				}
				empty()
				forgotten(t)(limiter.Reset(ctx, key, limit))
				if held := server.held(t, limiter.Key(key, limit)); held != "" {
					t.Errorf("%s, flushed %v: after Reset the key holds %q", key, flushed, held)
				}
			}
		}
	})
}

// aheadBy is how much the clock was ahead that a server takes over from.
const aheadBy = time.Hour

// A server whose clock is behind that of the one before it refuses for the difference,
// until the key is reset. On the emulator it is known to the microsecond.
func TestClockBehindTheOneBefore(t *testing.T) {
	server, v2 := startEmulator(t)
	for name, version := range versions {
		limiter := version(t, v2)
		limit := loader.Limit{Amount: 1, Period: time.Second}
		for what, forget := range clearings {
			key := name + what
			server.emulator.SetTime(clockAt(0)().Add(aheadBy))
			if got := allow(t, limiter, key, limit, 1); !got.Allowed {
				t.Fatalf("%s: %+v", key, got)
			}
			server.emulator.SetTime(clockAt(0)())
			want := loader.Result{RetryAfter: aheadBy + time.Second, ResetAfter: aheadBy + time.Second}
			if got := allow(t, limiter, key, limit, 1); got != want {
				t.Errorf("%s: %+v, want %+v", key, got, want)
			}
			server.emulator.SetTime(clockAt(0)().Add(aheadBy + time.Second - time.Microsecond))
			want = loader.Result{RetryAfter: time.Microsecond, ResetAfter: time.Microsecond}
			if got := allow(t, limiter, key, limit, 1); got != want {
				t.Errorf("%s, a microsecond early: %+v, want %+v", key, got, want)
			}
			server.emulator.SetTime(clockAt(0)())
			must(t, forget(t, limiter, key, limit))
			if got := allow(t, limiter, key, limit, 1); !got.Allowed {
				t.Errorf("%s, cleared: %+v", key, got)
			}
		}
	}
}

// clearings are the ways to make a key as good as new.
var clearings = map[string]func(t *testing.T, limiter testLimiter, key string, limit loader.Limit) error{
	"Reset": func(t *testing.T, limiter testLimiter, key string, limit loader.Limit) error {
		_, err := limiter.Reset(t.Context(), key, limit)
		return err
	},
	"DEL": func(t *testing.T, limiter testLimiter, key string, limit loader.Limit) error {
		return limiter.client.Del(t.Context(), limiter.Key(key, limit)).Err()
	},
}

// The same of a replica that is promoted. Both servers have this machine's clock, so a
// caller's stands in for the master's, and the key is given the end that it would have by
// that: replicas are told when a key ends, not how long it lives.
func TestPromotedReplicaWhoseClockIsBehind(t *testing.T) {
	master, onMaster := start(t, "--repl-diskless-sync-delay", "0")
	host, port := address(master.Client)
	eachVersionOn(t, []string{"--replicaof", host + " " + port}, func(t *testing.T, replica testServer, limiter testLimiter) {
		ctx := t.Context()
		limit := loader.Limit{Amount: 1, Period: time.Second}
		now := time.Now().Round(0) // the clock that TIME tells, not Go's monotonic one
		ahead := onMaster
		ahead.options = limiter.options
		ahead = ahead.WithClock(t, func() time.Time { return now.Add(aheadBy) })
		for what := range clearings {
			key := t.Name() + what
			if got := allow(t, ahead, key, limit, 1); !got.Allowed {
				t.Fatalf("%s: %+v", key, got)
			}
			must(t, master.PExpireAt(ctx, limiter.Key(key, limit), now.Add(aheadBy+3*time.Second)).Err())
		}
		if n, err := master.Wait(ctx, 1, 20*time.Second).Result(); n != 1 || err != nil {
			t.Fatalf("the replica did not follow: %d, %v", n, err)
		}
		must(t, replica.Do(ctx, "replicaof", "no", "one").Err())
		for what, forget := range clearings {
			key := t.Name() + what
			before := time.Now()
			got := allow(t, limiter, key, limit, 1)
			after := time.Now()
			least, most := aheadBy+time.Second-after.Sub(now), aheadBy+time.Second-before.Sub(now)
			// TIME is cut to microseconds, and gcra_v1's state is up to 255 ns late.
			if got.Allowed || got.RetryAfter < least || got.RetryAfter > most+2*time.Microsecond {
				t.Errorf("%s: %+v, want it refused for %v to %v", key, got, least, most)
			}
			must(t, forget(t, limiter, key, limit))
			if got := allow(t, limiter, key, limit, 1); !got.Allowed {
				t.Errorf("%s, cleared: %+v", key, got)
			}
		}
	})
}

// Windows begin at whole multiples of their period since 1970 began, which was a Thursday:
// those of a week on Thursdays. A year is above 2^52 ns, and no limit can have it.
func TestLongWindows(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, limiter testLimiter) {
		const week = 168 * time.Hour
		thursday := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
		if thursday.Weekday() != time.Thursday {
			t.Fatal(thursday.Weekday())
		}
		at := func(now time.Time) testLimiter {
			return limiter.WithClock(t, func() time.Time { return now })
		}
		limit := loader.Limit{Amount: 10, Period: week, Algorithm: loader.FixedWindow}
		for _, step := range []struct {
			now  time.Time
			want loader.Result
		}{
			{thursday.Add(-1), loader.Result{Allowed: true, ResetAfter: 1}},
			{thursday, loader.Result{Allowed: true, ResetAfter: week}},
			{thursday.Add(week - 1), loader.Result{RetryAfter: 1, ResetAfter: 1}},
			{thursday.Add(week), loader.Result{Allowed: true, ResetAfter: week}},
		} {
			if got := allow(t, at(step.now), "k", limit, 10); got != step.want {
				t.Errorf("%v: %+v, want %+v", step.now, got, step.want)
			}
		}

		server.resetStats(t)
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.FixedWindow, loader.SlidingWindow} {
			year := loader.Limit{Amount: 10, Period: 8760 * time.Hour, Algorithm: algorithm}
			got, err := limiter.Allow(t.Context(), "year", year)
			if got != (loader.Result{}) || !errors.Is(err, loader.ErrLimit) || !errors.Is(err, loader.ErrNotSpent) ||
				!strings.Contains(err.Error(), "exceeds 2^52 ns") {
				t.Errorf("%v: %+v, %v, want an ErrLimit", year, got, err)
			}
		}
		if calls, _ := server.stats(t, "evalsha"); calls != 0 {
			t.Errorf("%d calls were sent with a limit that cannot be", calls)
		}
	})
}

// While a slot moves, the node that it moves to runs calls on new keys of it, by ASK. It
// lacks the scripts; a batch of calls on one such key is counted there exactly.
func TestBatchOnAMovingSlot(t *testing.T) {
	nodes, cluster := startCluster(t)
	v2 := newLimiter(t, cluster)
	for name, version := range versions {
		limiter := version(t, v2)
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.FixedWindow, loader.SlidingWindow} {
			limit := loader.Limit{Amount: 10, Period: time.Hour, Algorithm: algorithm}
			calls := make([]loader.Call, 30)
			key := name + string(algorithm)
			for i := range calls {
				calls[i] = loader.Call{Key: key, Limit: limit, Cost: 1}
			}
			stored := limiter.Key(key, limit)
			slot := cluster.ClusterKeySlot(t.Context(), stored).Val()
			from := ownerOf(t, nodes, slot)
			to := nodes[0]
			if to == from {
				to = nodes[1]
			}
			must(t, to.Do(t.Context(), "cluster", "setslot", slot, "importing", nodeID(t, from)).Err())
			must(t, from.Do(t.Context(), "cluster", "setslot", slot, "migrating", nodeID(t, to)).Err())
			must(t, to.ScriptFlush(t.Context()).Err())
			importing := testServer{Client: to}
			importing.resetStats(t)

			admitted := 0
			for i, got := range allowEach(t, limiter.WithClock(t, clockAt(0)), calls) {
				if got.Allowed {
					admitted++
				}
				// Each has its own reply: they come in the order of the calls.
				if got.Allowed != (i < 10) || got.Remaining != int64(max(0, 9-i)) || (got.RetryAfter > 0) == got.Allowed {
					t.Errorf("%s, call %d: %+v, want allowed %v and %d remaining", key, i, got, i < 10, max(0, 9-i))
				}
			}
			if admitted != 10 {
				t.Errorf("%s: %d of 30 are admitted, want 10", key, admitted)
			}
			_, lacked := importing.stats(t, "evalsha")
			texts, _ := importing.stats(t, "eval")
			if asking, _ := importing.stats(t, "asking"); lacked != 30 || texts != 30 || asking < 60 {
				t.Errorf("%s: %d lacked the script, %d texts, %d by ASK; want 30, 30, 60", key, lacked, texts, asking)
			}
			if n := from.Exists(t.Context(), stored).Val(); n != 0 {
				t.Errorf("%s is on the node that gives the slot away", key)
			}
			// Without ASKING the node answers MOVED for a slot that it does not own yet.
			if keys := to.ClusterGetKeysInSlot(t.Context(), int(slot), 10).Val(); !slices.Equal(keys, []string{stored}) {
				t.Errorf("%s: the slot's new node holds %q", key, keys)
			}
			for _, node := range nodes {
				must(t, node.Do(t.Context(), "cluster", "setslot", slot, "node", nodeID(t, to)).Err())
			}
		}
	}
}
