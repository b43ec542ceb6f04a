package controls

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/servers"
)

// once is one run of the controls for all tests.
var once = sync.OnceValues(Run)

// The suite finds each control wrong, in every way in which it is.
func TestControlsAreRejected(t *testing.T) {
	results, err := once()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if !r.Rejected() {
			t.Errorf("%s: wrong in %q, and not in %q", r.Fault, r.Wrong, r.Missing)
		}
	}
	if t.Failed() || testing.Verbose() {
		if err := WriteTable(os.Stdout, results); err != nil {
			t.Fatal(err)
		}
	}
}

// The controls' figures, as they are published of each fault or follow from it.
func TestFigures(t *testing.T) {
	results, err := once()
	if err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[string][2]int64{ // admitted, right
		// Within 9,999 * 550 ns and 64 * 1100 ns at once a unit each 1100 ns is right;
		// a unit each 1024 ns comes out, and of an interval of 100 ns no limit at all.
		"TAT rounded to nearest, interval 1100 ns": {5439, 5063},
		"TAT rounded to nearest, interval 100 ns":  {10000, 5063},
		"burst off by one":                         {0, 100},
		"refill floored on each call":              {10, 59},
		// each period's calls count apart in turns, so that nothing is limited
		"a window's key without its period":                 {1000, 100},
		"a window's key without its period, rolling deploy": {12000, 1000},
		"a clock behind resets the window":                  {1000, 10},
	} {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Fault == fault })
		if i < 0 {
			t.Fatalf("there is no control %q", fault)
		}
		if got := [2]int64{results[i].Admitted, results[i].Right}; got != want {
			t.Errorf("%s: admitted and right are %d, want %d", fault, got, want)
		}
	}
}

// The script itself passes each control's trace: what is found wrong is the control.
func TestScriptsPassTheControlsTraces(t *testing.T) {
	for _, c := range list() {
		r, err := c.run(lua.Assets[string(c.script)])
		if err != nil {
			t.Fatalf("%s: %v", c.fault, err)
		}
		if len(r.Wrong) > 0 || r.Admitted != r.Right || r.TTLShortMs != 0 || r.RetryShortNs != 0 {
			t.Errorf("%s: the script itself: %+v", c.fault, r)
		}
	}
}

// A real server runs each control as the emulator does, but those whose keys expire
// before the trace is over, and those that set the server's clock.
func TestControlsOnServer(t *testing.T) {
	real, err := precision.NewReal(context.Background(), servers.ForTest(t), "test:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	for _, c := range list() {
		if slices.Contains(c.expected, ttl) || c.calls[0].ServerNs > 0 {
			continue
		}
		text, err := c.source()
		if err != nil {
			t.Fatal(err)
		}
		asset, err := precision.NewAsset()
		if err != nil {
			t.Fatal(err)
		}
		trace := precision.NewTraceOf(c.script, c.calls)
		outcomes := map[precision.Driver][]precision.Outcome{}
		for _, d := range []interface {
			precision.Driver
			Replace(precision.Script, string) error
		}{asset, real} {
			if err := d.Replace(c.script, text); err != nil {
				t.Fatal(err)
			}
			outcomes[d] = make([]precision.Outcome, len(c.calls))
			if err := d.Play(c.script, "k", c.calls, outcomes[d]); err != nil {
				t.Fatal(err)
			}
			if err := d.Forget("k"); err != nil {
				t.Fatal(err)
			}
			if tally := precision.Judge(trace, outcomes[d]); tally.Sound() {
				t.Errorf("%s passes on %s", c.fault, d.Name())
			}
		}
		for i, want := range outcomes[asset] {
			got := outcomes[real][i]
			if got.Err != want.Err || got.Verdict != want.Verdict || got.State != want.State {
				t.Fatalf("%s: call %d, %+v: server %+v, emulator %+v", c.fault, i, c.calls[i], got, want)
			}
		}
	}
}

func TestPatchAppliesOnce(t *testing.T) {
	for _, old := range []string{"not in any script", "then"} {
		c := control{fault: "f", script: precision.GCRAV2, patch: []replacement{{old, ""}}}
		if text, err := c.source(); err == nil {
			t.Errorf("replacing %q gives %.40q", old, text)
		}
	}
}
