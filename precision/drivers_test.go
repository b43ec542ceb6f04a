package precision

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
)

// eachDriver runs a test on the native port, on the emulator and on a real server.
func eachDriver(t *testing.T, run func(t *testing.T, d Driver)) {
	t.Run("native", func(t *testing.T) { run(t, NewNative()) })
	t.Run("emulator", func(t *testing.T) {
		asset, err := NewAsset()
		if err != nil {
			t.Fatal(err)
		}
		run(t, asset)
	})
	t.Run("server", func(t *testing.T) { run(t, realDriver(t)) })
}

// realDriver returns a driver of a server of the test's own.
func realDriver(t *testing.T) *Real {
	real, err := NewReal(context.Background(), servers.ForTest(t), "test:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	return real
}

// key is one key on one driver, called with one limit.
type key struct {
	t      *testing.T
	driver Driver
	script Script
	name   string
	limit  Call // Cost and NowNs are set by each call
}

func newKey(t *testing.T, d Driver, limit Call) *key {
	script := WindowV1
	if limit.Burst > 0 {
		script = GCRAV1
	}
	return &key{t, d, script, rand.Text(), limit}
}

// call makes one call at nowNs; an error reply fails the test.
func (k *key) call(cost, nowNs int64) Outcome {
	k.t.Helper()
	o := k.try(cost, nowNs)
	if o.Err != "" {
		k.t.Fatalf("%s: cost %d at %d: %s", k.script, cost, nowNs, o.Err)
	}
	return o
}

func (k *key) try(cost, nowNs int64) Outcome {
	k.t.Helper()
	c, o := k.limit, make([]Outcome, 1)
	c.Cost, c.NowNs = cost, nowNs
	if err := k.driver.Play(k.script, k.name, []Call{c}, o); err != nil {
		k.t.Fatal(err)
	}
	return o[0]
}

// want checks status, remaining and retry of one call.
func (k *key) want(cost, nowNs, status, remaining, retryNs int64) Outcome {
	k.t.Helper()
	o := k.call(cost, nowNs)
	got := fmt.Sprint(o.Status, o.Remaining, o.RetryAfterNs)
	if want := fmt.Sprint(status, remaining, retryNs); got != want {
		k.t.Fatalf("%s: cost %d at %d: status, remaining, retry are %s, want %s", k.script, cost, nowNs, got, want)
	}
	return o
}

// Limits of the tests. Times are in ms, as published figures are.
func gcra(amount, periodMs, burst int64) Call {
	return Call{Amount: amount, PeriodNs: periodMs * ms, Burst: burst}
}

func fixed(amount, periodMs int64) Call {
	return Call{Amount: amount, PeriodNs: periodMs * ms}
}

func sliding(amount, periodMs int64) Call {
	return Call{Amount: amount, PeriodNs: periodMs * ms, Sliding: true}
}

const (
	ms     = int64(1e6)
	second = 1000 * ms
	// epoch is today's clock where windows of 1, 8 and 60 s and the grid begin.
	epoch = 1_780_000_080 * second
)
