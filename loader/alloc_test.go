//go:build !race

// The race detector makes a sync.Pool drop some of what it is given.

package loader_test

import (
	"context"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
)

// TestAllocations bounds what a call allocates, in go-redis and here, by what it did when
// it neither put a key together nor kept a deadline.
func TestAllocations(t *testing.T) {
	_, limiter := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	limit := loader.Limit{Amount: 1_000_000, Period: time.Hour, Burst: 1000}
	var calls []loader.Call
	for range 100 {
		calls = append(calls, loader.Call{Key: "batch", Limit: limit, Cost: 1})
	}
	for _, test := range []struct {
		name string
		most float64
		do   func()
	}{
		{"Allow", 14, func() {
			if _, err := limiter.Allow(t.Context(), "k", limit); err != nil {
				t.Error(err)
			}
		}},
		{"Allow with a deadline", 13, func() {
			if _, err := limiter.Allow(ctx, "k", limit); err != nil {
				t.Error(err)
			}
		}},
		{"AllowEach of 100", 1016, func() { limiter.AllowEach(t.Context(), calls...) }},
	} {
		test.do() // makes the connection
		n := testing.AllocsPerRun(500, test.do)
		for try := 0; n > test.most && try < 20; try++ { // others allocate too, and a collection empties pools
			n = testing.AllocsPerRun(500, test.do)
		}
		if n > test.most {
			t.Errorf("%s: %v allocations, want at most %v", test.name, n, test.most)
		}
	}
}
