package controls

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
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
			t.Errorf("%s: found wrong in %q, want %q; generated traces find %q", r.Fault, r.Wrong, r.Expected, r.Generated)
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
	// admitted, right, early ns, late ns, retry short ns, ttl short ms
	for fault, want := range map[string][6]int64{
		// Within 9,999 * 550 ns and 64 * 1100 ns at once a unit each 1100 ns is right;
		// a unit each 1024 ns comes out, and of an interval of 100 ns no limit at all.
		"TAT rounded to nearest, interval 1100 ns": {5439, 5063, 413050, 0, 413344, 0},
		"TAT rounded to nearest, interval 100 ns":  {10000, 5063, 493650, 0, 0, 0},
		"burst off by one":                         {0, 100, 0, 1000000000, 0, 0},
		"refill floored on each call":              {10, 59, 0, 200000000, 0, 0},
		// each period's calls count apart in turns, so that nothing is limited
		"a window's key without its period":                 {1000, 100, 0, 0, 0, 0},
		"a window's key without its period, rolling deploy": {12000, 1000, 0, 0, 0, 0},
		"a clock behind resets the window":                  {1000, 10, 1000995000, 0, 0, 0},
		// the key dies 9 s early, and 90 units are admitted that should wait
		"ttl forgets the cost": {91, 10, 801000000000, 0, 801000000000, 9000},
		// some are admitted early and others late, as many in all
		"% for fmod in the window's index": {3161, 3161, 80, 5419, 80, 0},
		// a counter on the key is overwritten by the first of 100 calls, and 10 more fit
		"a foreign number is taken for a TAT":       {11, 1, 0, 0, 0, 0},
		"a window's counts live for its own window": {110, 99, 90000000000, 0, 0, 100000},
		// 40 units of each 100 that are asked for fit beside the 100 that were really used: 20
		// of what is given back had drained, and are spent twice
		"the usual refund: the TAT less units x interval": {1600, 1400, 20000000000, 0, 20000000000, 0},
		// credit leaves a last TAT, which decides nothing
		"the last TAT stays": {19, 19, 0, 0, 0, 0},
	} {
		i := slices.IndexFunc(results, func(r Result) bool { return r.Fault == fault })
		if i < 0 {
			t.Fatalf("there is no control %q", fault)
		}
		r := results[i]
		if got := [6]int64{r.Admitted, r.Right, r.EarlyNs, r.LateNs, r.RetryShortNs, r.TTLShortMs}; got != want {
			t.Errorf("%s: the figures are %d, want %d", fault, got, want)
		}
	}
}

// The table has each figure under its name.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTable(&out, []Result{
		{Fault: "few", Script: precision.GCRAV2, Calls: 1000, Admitted: 150, Right: 100, EarlyNs: 3, LateNs: 4, RetryShortNs: 5, TTLShortMs: 6,
			Wrong: []string{early, ttl}},
		{Fault: "many", Script: precision.WindowV1, Calls: 7, Admitted: 2, Right: 5},
	}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"control plays as calls admitted right too many lost early ns late ns retry short ns ttl short ms rejected by",
		"few gcra_v2 1000 150 100 50.0 % 0 3 4 5 6 early ttl",
		"many window_v1 7 2 5 0.0 % 3 0 0 0 0",
	} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// Each script is played by controls that are wrong in each way.
func TestControlsPlayAsEveryScript(t *testing.T) {
	controls := list()
	for _, s := range precision.Scripts {
		for _, way := range []string{early, late, reply, state, ttl, difference} {
			if !slices.ContainsFunc(controls, func(c control) bool {
				return c.script == s.Script && slices.Contains(c.expected, way)
			}) {
				t.Errorf("no control of %s is wrong in %s", s.Script, way)
			}
		}
	}
}

// The runner names as not rejected what is not wrong, what is wrong in fewer ways or in more
// than it should be, and what no generated trace finds.
func TestRunnerReportsWhatIsNotRejected(t *testing.T) {
	const us = int64(1e3)
	calls := every(precision.Call{Amount: 7, PeriodNs: 1e9, Burst: 7, Cost: 1}, 20, 10*us)
	coarse := []replacement{{"  status = 0\n", "  status, retry = 0, retry - retry % 1e6\n"}}
	late9 := []replacement{{"  status = 0\n", "  status, retry = 0, retry - (cost == 123456789 and 1 or 0)\n"}}
	results, err := play([]control{
		{fault: "right", script: precision.GCRAV2, calls: calls, expected: []string{reply, difference}},
		{fault: "right, and nothing expected", script: precision.GCRAV2, calls: calls},
		{fault: "wrong", script: precision.GCRAV2, patch: coarse, calls: calls, expected: []string{reply, difference}},
		{fault: "wrong by a nanosecond", script: precision.GCRAV2, patch: []replacement{{"  status = 0\n", "  status, retry = 0, retry + 1\n"}},
			calls: calls, expected: []string{late, reply, difference}},
		{fault: "wrong in fewer ways", script: precision.GCRAV2, patch: coarse, calls: calls, expected: []string{early, reply, difference}},
		{fault: "wrong in more ways", script: precision.GCRAV2, patch: coarse, calls: calls, expected: []string{difference}},
		{fault: "wrong in another way", script: precision.GCRAV2, patch: coarse, calls: calls, expected: []string{reply, state}},
		{fault: "nothing expected", script: precision.GCRAV2, patch: coarse, calls: calls},
		{fault: "its own trace does not show it", script: precision.GCRAV2, patch: coarse, calls: calls[:7], expected: []string{reply, difference}},
		{fault: "generated traces do not show it", script: precision.GCRAV2, patch: late9,
			calls:    []precision.Call{{Amount: 1, PeriodNs: 1000, Burst: 123456789, Cost: 1, NowNs: epochNs}, {Amount: 1, PeriodNs: 1000, Burst: 123456789, Cost: 123456789, NowNs: epochNs}},
			expected: []string{reply, difference}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		want := r.Fault == "wrong" || r.Fault == "wrong by a nanosecond"
		if r.Rejected() != want {
			t.Errorf("%s: rejected is %v, want %v: %+v", r.Fault, r.Rejected(), want, r)
		}
		err := Check([]Result{r})
		if want {
			if err != nil {
				t.Errorf("%s: %v", r.Fault, err)
			}
		} else if want := fmt.Sprintf("the control %q is not rejected", r.Fault); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", r.Fault, err, want)
		}
	}
	good := results[2]
	if err := Check(append(slices.Repeat([]Result{good}, 3), results[0])); err == nil {
		t.Error("the last of four is not looked at")
	}
	idle, nothing := good, good
	idle.Calls, nothing.Right = 0, 0
	for name, results := range map[string][]Result{
		"tries nothing: 0 calls": {idle}, "admit 0 units": {nothing}, "no control was played": nil, `the control "" is not rejected`: {{}},
		`the control "blank" is not rejected`: {{Fault: "blank", Calls: 1, Right: 1, Generated: "call 0"}},
	} {
		if err := Check(results); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %s", err, name)
		}
	}
}

// What stands in a key before a call counts: here 950 ms of debt, so that a unit has to wait.
func TestMeasureMeetsWhatIsGiven(t *testing.T) {
	calls := []precision.Call{{Amount: 10, PeriodNs: 1e9, Burst: 10, Cost: 1, NowNs: epochNs,
		Given: fmt.Sprintf("%d 5 %d", epochNs+950_000_000, epochNs+950_000_000)}}
	r := Result{Script: precision.GCRAV2}
	if err := r.measure(calls, precision.NewTraceOf(precision.GCRAV2, calls).Native); err != nil {
		t.Fatal(err)
	}
	if r.Calls != 1 || r.Right != 0 || r.Admitted != 0 || r.LateNs != 0 || r.RetryShortNs != 0 {
		t.Errorf("%+v", r)
	}
}

// A control that is no script, or answers an error where none is right, stops the run.
func TestRunnerStops(t *testing.T) {
	calls := every(precision.Call{Amount: 7, PeriodNs: 1e9, Burst: 7, Cost: 1}, 20, 1e4)
	for want, c := range map[string]control{
		"load a text":       {text: "return ("},
		"not once":          {patch: []replacement{{"not in any script", ""}}},
		"reply has 1":       {text: "return {1}"},
		"BADARG of nothing": {text: "return redis.error_reply('BADARG of nothing')"},
	} {
		c.fault, c.script, c.calls = "f", precision.GCRAV2, calls
		if _, err := play([]control{c}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// The script itself passes each control's trace: what is found wrong is the control.
func TestScriptsPassTheControlsTraces(t *testing.T) {
	played := map[precision.Script]bool{}
	for _, c := range list() {
		more := generated
		if played[c.script] {
			more = 0 // the same for each control
		}
		played[c.script] = true
		r, err := c.run(lua.Assets[string(c.script)], more)
		if err != nil {
			t.Fatalf("%s: %v", c.fault, err)
		}
		// gcra_v1's own interval is longer
		few := r.Admitted < r.Right && c.script == precision.GCRAV1
		if len(r.Wrong) > 0 || r.Generated != "" || r.Admitted != r.Right && !few || r.TTLShortMs != 0 || r.RetryShortNs != 0 {
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
		if slices.Contains(c.expected, ttl) || c.calls != nil && c.calls[0].ServerNs > 0 ||
			c.limits != nil && c.limits[0].Asks[0].ServerNs > 0 {
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
		trace := precision.Trial(precision.NewTraceOf(c.script, c.calls))
		if c.limits != nil {
			if trace, err = precision.NewLimitsTraceOf(c.limits); err != nil {
				t.Fatal(err)
			}
		}
		answers := map[precision.Driver]precision.Answers{}
		for _, d := range []interface {
			precision.Driver
			Replace(precision.Script, string) error
		}{asset, real} {
			if err := d.Replace(c.script, text); err != nil {
				t.Fatal(err)
			}
			if answers[d], err = trace.Play(d, "k"); err != nil {
				t.Fatal(err)
			}
			if tally := answers[d].Judge(); tally.Sound() {
				t.Errorf("%s passes on %s", c.fault, d.Name())
			}
		}
		for i := range trace.Len() {
			call, want := answers[asset].Line(i)
			if _, got := answers[real].Line(i); withoutTTL(got) != withoutTTL(want) {
				t.Fatalf("%s: call %d, %s: server %s, emulator %s", c.fault, i, call, got, want)
			}
		}
	}
}

// withoutTTL is an outcome without what a real server's clock makes of a ttl.
func withoutTTL(outcome string) string {
	return regexp.MustCompile(`TTLMs:-?\d+ TTLSlackMs:\d+`).ReplaceAllString(outcome, "")
}

func TestPatchAppliesOnce(t *testing.T) {
	for _, old := range []string{"not in any script", "then"} {
		c := control{fault: "f", script: precision.GCRAV2, patch: []replacement{{old, ""}}}
		if text, err := c.source(); err == nil {
			t.Errorf("replacing %q gives %.40q", old, text)
		}
	}
}

// The usual refund is measured by what was really used: it lets 200 units more through.
func TestMeasureOfLimits(t *testing.T) {
	controls := list()
	c := &controls[slices.IndexFunc(controls, func(c control) bool { return strings.HasPrefix(c.fault, "the usual refund") })]
	text, err := c.source()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.run(text, 0)
	if err != nil || r.Calls != int64(len(c.limits)) || r.Right != 1400 || r.Admitted != 1600 {
		t.Errorf("%d calls of %d, %d units where %d are right, want 1600 and 1400: %v", r.Calls, len(c.limits), r.Admitted, r.Right, err)
	}
}
