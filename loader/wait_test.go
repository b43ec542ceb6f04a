package loader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
)

// Each wait is slept to its end and no longer, so the second call is admitted.
func TestWait(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		const interval = 50 * time.Millisecond
		for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.LeakyBucket, loader.FixedWindow, loader.SlidingWindow} {
			limit := loader.Limit{Amount: 2, Period: 2 * interval, Burst: 1, Algorithm: algorithm}
			least := 4 * interval // from the first to the fifth
			if algorithm == loader.FixedWindow || algorithm == loader.SlidingWindow {
				limit.Burst, least = 0, 2*interval // two windows begin between them
				if algorithm == loader.FixedWindow {
					least = interval // the first may come at the end of one
				}
			}
			server.resetStats(t)
			began := time.Now()
			for range 5 {
				must(t, limiter.Wait(t.Context(), string(algorithm), limit, 1))
			}
			if took := time.Since(began); took < least {
				t.Errorf("%v: 5 units in %v, want %v at least", limit, took, least)
			}
			calls, failed := server.stats(t, "evalsha")
			if most := 9; calls > most || failed > 0 {
				t.Errorf("%v: %d calls for 5 units, want %d at most", limit, calls, most)
			}
		}
	})
}

func TestWaitEnds(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, limiter testLimiter) {
		at := limiter.WithClock(t, clockAt(0))
		server.resetStats(t)
		for _, limit := range []loader.Limit{perMinute, perDay, {Amount: 5, Period: time.Hour, Algorithm: loader.LeakyBucket}} {
			if err := at.Wait(t.Context(), "k", limit, limit.Quota()+1); !errors.Is(err, loader.ErrCost) || !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("%v: a cost of %d: %v, want an ErrCost", limit, limit.Quota()+1, err)
			}
		}
		for _, test := range []struct {
			key   string
			limit loader.Limit
			cost  int64
			want  error
		}{{"", perMinute, 1, loader.ErrKey}, {"k", perMinute, -1, loader.ErrCost}, {"k", loader.Limit{}, 1, loader.ErrLimit}} {
			if err := at.Wait(t.Context(), test.key, test.limit, test.cost); !errors.Is(err, test.want) {
				t.Errorf("%+v: %v", test, err)
			}
		}
		if n, _ := server.stats(t, "evalsha"); n != 0 {
			t.Errorf("%d calls were sent", n)
		}

		// The wait is 1 h.
		hourly := loader.Limit{Amount: 1, Period: time.Hour}
		allow(t, at, "hourly", hourly, 1)
		for left, want := range map[time.Duration]error{time.Hour - time.Minute: loader.ErrWait, time.Hour + time.Minute: context.Canceled, 0: context.Canceled} {
			server.resetStats(t)
			ctx, cancel := context.WithCancel(t.Context())
			if left > 0 {
				ctx, cancel = context.WithTimeout(t.Context(), left)
			}
			ended := make(chan error, 1)
			go func() { ended <- at.Wait(ctx, "hourly", hourly, 1) }()
			if want == context.Canceled {
				until(t, "the refusal", func() bool { n, _ := server.stats(t, "evalsha"); return n == 1 })
				cancel()
			}
			err := <-ended
			cancel()
			if !errors.Is(err, want) || !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("%v until the deadline: %v, want %v", left, err, want)
			}
			if n, _ := server.stats(t, "evalsha"); n != 1 {
				t.Errorf("%v until the deadline: %d calls, want 1", left, n)
			}
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if err := at.Wait(cancelled, "hourly", hourly, 1); !errors.Is(err, context.Canceled) || !isSpent(err, loader.ErrNotSpent) {
			t.Errorf("cancelled: %v", err)
		}
		must(t, server.Set(t.Context(), at.Key("text", hourly), "text", 0).Err())
		if err := at.Wait(t.Context(), "text", hourly, 1); !errors.Is(err, loader.ErrBadState) {
			t.Errorf("text: %v, want an ErrBadState", err)
		}
	})
}

// TestQueue has callers of a leaky bucket that come at once, more than it holds. The n-th
// leaves no sooner than n intervals after the first was let in.
func TestQueue(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		const interval, callers = 20 * time.Millisecond, 12
		limit := loader.Limit{Amount: 50, Period: time.Second, Burst: 8, Algorithm: loader.LeakyBucket}
		var mu sync.Mutex
		var left []time.Duration
		var all sync.WaitGroup
		began := time.Now()
		for i := range callers {
			all.Go(func() {
				ctx := t.Context()
				if i%2 == 0 { // a deadline that asks for a burst of its own
					with, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					ctx = with
				}
				if err := limiter.Wait(ctx, "queue", limit, 1); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				left = append(left, time.Since(began))
			})
		}
		all.Wait()
		slices.Sort(left)
		for n, at := range left {
			if least := time.Duration(n) * interval; at < least {
				t.Errorf("caller %d left after %v, want %v at least", n, at, least)
			}
		}
	})
}

// TestQueueDeadline has a queue whose clock stands still, with 2 units of an hour in it.
func TestQueueDeadline(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, limiter testLimiter) {
		limit := loader.Limit{Amount: 1, Period: time.Hour, Burst: 5, Algorithm: loader.LeakyBucket}
		at := limiter.WithClock(t, clockAt(0))
		wait := func(limiter testLimiter, left time.Duration, cost int64, admitted func() bool) error {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- limiter.Wait(ctx, "k", limit, cost) }()
			if admitted != nil {
				until(t, "its place in the queue", admitted)
				cancel()
			}
			return <-ended
		}
		leaves := func(n int64) func() bool {
			return func() bool { return allow(t, at, "k", limit, 0).Remaining == n }
		}
		must(t, wait(at, time.Minute, 2, nil)) // there is nothing before it
		for _, cost := range []int64{1, 3} {
			// Its turn is in 2 h.
			if err := wait(at, 2*time.Hour-time.Minute, cost, nil); !errors.Is(err, loader.ErrWait) || !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("a turn after the deadline: %v, want an ErrWait", err)
			}
			if !leaves(3)() {
				t.Error("a turn after the deadline was charged")
			}
		}
		if err := wait(at, 2*time.Hour+time.Minute, 1, leaves(2)); !errors.Is(err, context.Canceled) || !isSpent(err, loader.ErrMaybeSpent) {
			t.Errorf("cancelled in the hold: %v, want an ErrMaybeSpent", err)
		}
		if !leaves(2)() {
			t.Error("cancelled in the hold: the place was given back, in which others would come too early")
		}

		// Its turn is in 3 h less 3,599.9 s, just in time, but the burst of whole intervals
		// before the deadline does not admit it yet: it is asked for once more 100 ms later.
		var asked atomic.Int64
		moving := limiter.WithClock(t, func() time.Time {
			if asked.Add(1) == 1 {
				return clockAt(3599.9e9)()
			}
			return clockAt(3600e9)()
		})
		if err := wait(moving, 2*time.Hour+30*time.Minute, 1, func() bool {
			return allow(t, limiter.WithClock(t, clockAt(3600e9)), "k", limit, 0).Remaining == 2
		}); !errors.Is(err, context.Canceled) || !isSpent(err, loader.ErrMaybeSpent) || asked.Load() != 2 {
			t.Errorf("a turn between whole intervals: %v after %d calls, want it held after 2", err, asked.Load())
		}
	})
}

func TestAllowAtMost(t *testing.T) {
	eachVersion(t, func(t *testing.T, server testServer, limiter testLimiter) {
		at := limiter.WithClock(t, clockAt(0))
		for _, limit := range []loader.Limit{
			{Amount: 10, Period: 10 * 256 * time.Millisecond}, // on the grid of gcra_v1
			{Amount: 10, Period: 8 * time.Second, Algorithm: loader.FixedWindow},
			{Amount: 10, Period: 8 * time.Second, Algorithm: loader.SlidingWindow},
		} {
			key := "k" + string(limit.Algorithm)
			for _, step := range []struct {
				cost, granted, left int64
				calls               int
			}{
				{4, 4, 6, 1}, {1 << 52, 6, 0, 2}, {3, 0, 0, 2}, {1, 0, 0, 1},
			} {
				server.resetStats(t)
				granted, result, err := at.AllowAtMost(t.Context(), key, limit, step.cost)
				must(t, err)
				if granted != step.granted || result.Allowed != (granted > 0) || result.Remaining != step.left {
					t.Errorf("%v, %d: %d granted, %+v, want %d and %d left", limit, step.cost, granted, result, step.granted, step.left)
				}
				if calls, _ := server.stats(t, "evalsha"); calls != step.calls {
					t.Errorf("%v, %d: %d calls, want %d", limit, step.cost, calls, step.calls)
				}
				if step.granted > 0 {
					continue
				}
				if want := allow(t, at, key, limit, 1); result.RetryAfter != want.RetryAfter {
					t.Errorf("%v: %+v, want the wait for one unit, %v", limit, result, want.RetryAfter)
				}
			}
			for _, cost := range []int64{0, -1, 1<<52 + 1} {
				if granted, _, err := at.AllowAtMost(t.Context(), key, limit, cost); granted != 0 || !errors.Is(err, loader.ErrCost) {
					t.Errorf("cost %d: %d, %v, want an ErrCost", cost, granted, err)
				}
			}
		}

		// Of many at once, what they are granted is all that there is, and no more.
		limit := loader.Limit{Amount: 500, Period: 1000 * time.Hour}
		var granted atomic.Int64
		var all sync.WaitGroup
		for caller := range 20 {
			all.Go(func() {
				for i := range 20 {
					n, _, err := at.AllowAtMost(t.Context(), "many", limit, int64(1+(caller+i)%7))
					if err != nil {
						t.Error(err)
					}
					granted.Add(n)
				}
			})
		}
		all.Wait()
		if left := allow(t, at, "many", limit, 0).Remaining; granted.Load() != 500 || left != 0 {
			t.Errorf("%d granted of 500, %d left", granted.Load(), left)
		}
	})
}

// A lost reply grants nothing: the units may be spent.
func TestAllowAtMostLostReply(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, _ testLimiter) {
		limiter, p, _ := through(t, server)
		p.lose(1)
		granted, result, err := limiter.AllowAtMost(t.Context(), "k", perMinute, 4)
		if granted != 0 || result != (loader.Result{}) || !isSpent(err, loader.ErrMaybeSpent) {
			t.Errorf("%d, %+v, %v, want an ErrMaybeSpent", granted, result, err)
		}
		p.lose(1)
		if err := limiter.Wait(t.Context(), "k", perMinute, 4); !isSpent(err, loader.ErrMaybeSpent) || !strings.Contains(fmt.Sprint(err), p.addr) {
			t.Errorf("Wait: %v, want an ErrMaybeSpent that names %s", err, p.addr)
		}
	})
}
