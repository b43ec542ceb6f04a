package precision

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision/servers"
)

// slow leaves a test out, by name, that takes seconds where -short asks for less.
func slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("skipped: -short")
	}
}

// eachDriver runs a test of both versions on the native port, on the emulator and on a
// real server.
func eachDriver(t *testing.T, run func(t *testing.T, d versioned)) { onDrivers(t, 2, run) }

// eachWindowDriver runs a test of the window alone on the same: it has one version.
func eachWindowDriver(t *testing.T, run func(t *testing.T, d versioned)) { onDrivers(t, 1, run) }

func onDrivers(t *testing.T, versions int, run func(t *testing.T, d versioned)) {
	onDriver := func(name string, driver func(t *testing.T) Driver) {
		for version := 1; version <= versions; version++ {
			t.Run(fmt.Sprintf("%s v%d", name, version), func(t *testing.T) {
				run(t, versioned{driver(t), version})
			})
		}
	}
	onDriver("native", func(*testing.T) Driver { return NewNative() })
	onDriver("emulator", func(t *testing.T) Driver {
		asset, err := NewAsset()
		if err != nil {
			t.Fatal(err)
		}
		return asset
	})
	onDriver("server", func(t *testing.T) Driver { return realDriver(t) })
}

// eachClockDriver runs a test on the drivers whose server's clock can be set.
func eachClockDriver(t *testing.T, run func(t *testing.T, d versioned)) {
	for version := 1; version <= 2; version++ {
		asset, err := NewAsset()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []Driver{NewNative(), asset} {
			t.Run(fmt.Sprintf("%s v%d", d.Name(), version), func(t *testing.T) { run(t, versioned{d, version}) })
		}
	}
}

// versioned is a driver and the version of the scripts to call on it.
type versioned struct {
	Driver
	version int
}

// either returns what version 1 does where version 2 does something else.
func (d versioned) either(v1, v2 int64) int64 {
	if d.version == 1 {
		return v1
	}
	return v2
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
	driver versioned
	script Script
	name   string
	limit  Call // Cost and NowNs are set by each call
}

func newKey(t *testing.T, d versioned, limit Call) *key {
	script := WindowV1
	if limit.Burst > 0 {
		script = []Script{GCRAV1, GCRAV2}[d.version-1]
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
	c := k.limit
	c.Cost, c.NowNs = cost, nowNs
	return k.play(c)
}

// moving makes one call at nowNs, while the server's clock, which a real one keeps to
// itself, stands at serverNs.
func (k *key) moving(cost, nowNs, serverNs int64) Outcome {
	k.t.Helper()
	c := k.limit
	c.Cost, c.NowNs, c.ServerNs = cost, nowNs, serverNs
	return k.play(c)
}

// served makes one call by the server's clock, set to nowNs.
func (k *key) served(cost, nowNs int64) Outcome {
	k.t.Helper()
	c := k.limit
	c.Cost, c.NowNs, c.ServerNs, c.ByServer = cost, nowNs, nowNs, true
	return k.play(c)
}

func (k *key) play(c Call) Outcome {
	k.t.Helper()
	o := make([]Outcome, 1)
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

// The emulator and the native port give the same outcomes, of calls in every style.
func TestDriversAgree(t *testing.T) {
	asset, err := NewAsset()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range singles {
		for i := range 10 {
			trace := NewTrace(s.Script, 7, i)
			calls := trace.Calls[:150]
			if served := slices.IndexFunc(calls, func(c Call) bool { return c.ServerNs > 0 }); served < 0 {
				asset.SetTimeNs(1)
			}
			outcomes := make([]Outcome, len(calls))
			if err := errors.Join(asset.Play(s.Script, "k", calls, outcomes), asset.Forget("k")); err != nil {
				t.Fatal(err)
			}
			for n, got := range outcomes {
				if got != trace.Native[n] {
					t.Fatalf("%s, trace %d, call %d, %+v: %+v, native %+v", s.Script, i, n, calls[n], got, trace.Native[n])
				}
			}
		}
	}
}

// A key that has no expiry says so.
func TestNativeWithoutExpiry(t *testing.T) {
	k := nativeKey{gcra: native.ParseGCRA("1780000080000000000")}
	c := Call{Amount: 1, PeriodNs: 1000, Burst: 1, NowNs: 1_780_000_080_000_000_000}
	if o := k.call(GCRAV2, &c); o.TTLMs != -1 || !o.State.Exists {
		t.Errorf("got %+v, want a ttl of -1", o)
	}
}
