package loader_test

import (
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
)

// TestVersions has calls that the two versions of gcra answer differently, and calls of the
// one window, which does not mind what gcra is chosen.
func TestVersions(t *testing.T) { eachServer(t, testVersions) }

func testVersions(t *testing.T, server testServer, limiter testLimiter) {
	// 1 ms is 64 ns above the grid of gcra_v1, which goes up to 1000192 ns.
	gcra := loader.Limit{Amount: 1000, Period: time.Second, Burst: 1}
	sliding := loader.Limit{Amount: 60, Period: 8 * time.Second, Algorithm: loader.SlidingWindow}
	fixed := loader.Limit{Amount: 10, Period: 8 * time.Second, Algorithm: loader.FixedWindow}
	type step struct {
		ns   int64 // after 1_780_000_000 s, which is a multiple of 8 s
		cost int64
		want loader.Result
	}
	for _, test := range []struct {
		name  string
		limit loader.Limit
		v1    []step // nil: as v2
		v2    []step
	}{
		{"interval on the grid", gcra,
			[]step{
				{0, 1, loader.Result{Allowed: true, ResetAfter: 1000192}},
				{1000000, 1, loader.Result{Remaining: 1, RetryAfter: 192, ResetAfter: 192}},
				{1000191, 1, loader.Result{Remaining: 1, RetryAfter: 1, ResetAfter: 1}},
				{1000192, 1, loader.Result{Allowed: true, ResetAfter: 1000192}},
			},
			[]step{
				{0, 1, loader.Result{Allowed: true, ResetAfter: 1000000}},
				{999999, 1, loader.Result{RetryAfter: 1, ResetAfter: 1}},
				{1000000, 1, loader.Result{Allowed: true, ResetAfter: 1000000}},
			}},
		// Previous 60, current 12, 1.6 s into 8 s: 60 x 6.4/8 + 12 are 60. One more
		// fits when 60 x left / 8 s is 47, so left is 6.266666666 s.
		{"wait for a sliding window", sliding,
			nil,
			[]step{
				{0, 60, loader.Result{Allowed: true, ResetAfter: 16e9}},
				{9.6e9, 12, loader.Result{Allowed: true, ResetAfter: 14.4e9}},
				{9.6e9, 1, loader.Result{RetryAfter: 133333334, ResetAfter: 14.4e9}},
				{9.6e9 + 133333333, 1, loader.Result{RetryAfter: 1, ResetAfter: 14.4e9 - 133333333}},
				{9.6e9 + 133333334, 1, loader.Result{Allowed: true, ResetAfter: 14.4e9 - 133333334}},
			}},
		{"clock behind the window", fixed,
			nil,
			[]step{
				{0, 10, loader.Result{Allowed: true, ResetAfter: 8e9}},
				{-1, 10, loader.Result{RetryAfter: 8e9 + 1, ResetAfter: 8e9 + 1}},
				{0, 10, loader.Result{RetryAfter: 8e9, ResetAfter: 8e9}},
			}},
	} {
		if test.v1 == nil {
			test.v1 = test.v2
		}
		at := func(limiter testLimiter, ns int64) testLimiter { return limiter.WithClock(t, clockAt(ns)) }
		for _, version := range []struct {
			name  string
			steps []step
			at    func(ns int64) testLimiter
		}{
			{"v1", test.v1, func(ns int64) testLimiter { return at(limiter.WithV1(t), ns) }},
			{"v1, clock first", test.v1, func(ns int64) testLimiter { return at(limiter, ns).WithV1(t) }},
			{"v2", test.v2, func(ns int64) testLimiter { return at(limiter, ns) }}, // WithV1 left it as it was
		} {
			for i, step := range version.steps {
				if got := allow(t, version.at(step.ns), "k", test.limit, step.cost); got != step.want {
					t.Errorf("%s, %s, step %d: %+v, want %+v", test.name, version.name, i, got, step.want)
				}
			}
			forgotten(t)(limiter.Reset(t.Context(), "k", test.limit))
		}
	}
	if n := server.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys are left of 1 that was reset", n)
	}
}

// TestVersionsTogether has callers of both versions on one key: each reads what the
// other wrote, and they are admitted no more units than the documentation of WithScripts
// says above what exact GCRA admits.
func TestVersionsTogether(t *testing.T) { eachServer(t, testVersionsTogether) }

func testVersionsTogether(t *testing.T, _ testServer, limiter testLimiter) {
	for _, test := range []struct {
		limit loader.Limit
		want  int64
		most  int64 // ceil(burst x 255 / interval)
	}{
		{loader.Limit{Amount: 1_000_000, Period: time.Second, Burst: 60}, 1, 16},
		{loader.Limit{Amount: 1e6, Period: time.Millisecond, Burst: 100}, 99, 25500},
		{loader.Limit{Amount: 3, Period: time.Second, Burst: 200}, 0, 1},
		{loader.Limit{Amount: 300, Period: time.Minute, Burst: 60}, 0, 1},
	} {
		forgotten(t)(limiter.Reset(t.Context(), "k", test.limit))
		interval := int64(test.limit.Interval())
		admitted, above := int64(0), int64(0)
		for i := range int64(200) {
			ns := i / 4 * interval
			for _, one := range []testLimiter{limiter, limiter.WithV1(t)} {
				at := one.WithClock(t, clockAt(ns))
				cost := max(1, allow(t, at, "k", test.limit, 0).Remaining)
				if allow(t, at, "k", test.limit, cost).Allowed {
					admitted += cost
				}
			}
			above = max(above, admitted-(test.limit.Burst+ns/interval))
		}
		if above != test.want || above > test.most {
			t.Errorf("%v: %d units above exact GCRA, want %d, and at most %d", test.limit, above, test.want, test.most)
		}
	}
}
