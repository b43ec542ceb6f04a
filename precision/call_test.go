package precision

import (
	"math"
	"testing"
)

// Which texts are a state: those that a script writes, byte for byte.
func TestParseState(t *testing.T) {
	const digits19, digits20 = "9999999999999999999", "10000000000000000000"
	for text, want := range map[string]State{
		"0":                    {Exists: true},
		"1":                    {Exists: true, Value: 1},
		"10":                   {Exists: true, Value: 10},
		digits19:               {Exists: true, Value: 9999999999999999999},
		"0 5 1":                {Exists: true, Credit: "5", Last: 1},
		"2 " + digits20 + " 3": {Exists: true, Value: 2, Credit: digits20, Last: 3},
		"2 1 " + digits19:      {Exists: true, Value: 2, Credit: "1", Last: 9999999999999999999},
	} {
		state, ok := ParseState(GCRAV2, text)
		if !ok || state != want || state.Text(GCRAV2) != text {
			t.Errorf("%q: %+v, %v, want %+v", text, state, ok, want)
		}
	}
	for _, text := range []string{
		"", " ", "00", "01", "-1", "+1", " 1", "1 ", "1.0", "a", "1a", "a1", digits20, "1 1", "1 1 ", "1  1", "1 0 1", "1 01 1",
		"1 1 0", "1 1 01", "1 1 a", "1 1 ", "1 a 1", "1 1a 1", "1 -1 1", "1 1 1 1", "01 1 1", "a 1 1", " 1 1", "1 1 " + digits20,
		digits20 + " 1 1",
	} {
		if state, ok := ParseState(GCRAV2, text); ok || state != (State{}) {
			t.Errorf("%q is read as %+v", text, state)
		}
	}
	counts := "\x00\x00\x00\x01\x00\x02\x00\x03\x00\x00\x00\x04"
	want := State{Exists: true, PeriodNs: 4, Value: 1<<32 | 2<<16 | 3}
	if state, ok := ParseState(WindowV1, counts); !ok || state != want || state.Text(WindowV1) != counts {
		t.Errorf("%q: %+v, %v, want %+v", counts, state, ok, want)
	}
	if got := newCounts(Counts{1, 2, 3}, 1<<32+4); got != want || got.counts() != (Counts{1, 2, 3}) {
		t.Errorf("the counts 1, 2, 3 are %+v, want %+v, and read as %+v", got, want, got.counts())
	}
	for _, text := range []string{"", counts[1:], counts + "\x00"} {
		if state, ok := ParseState(WindowV1, text); ok || state != (State{}) {
			t.Errorf("%q is read as %+v", text, state)
		}
	}
}

// The ranges of a call's numbers, each to its last.
func TestCallCheck(t *testing.T) {
	const most = int64(1) << 52
	for _, c := range []struct {
		what         string
		change       func(c *Call)
		gcra, window bool
	}{
		{"nothing", func(*Call) {}, true, true},
		{"period 0", func(c *Call) { c.PeriodNs = 0 }, false, false},
		{"period -1", func(c *Call) { c.PeriodNs = -1 }, false, false},
		{"period 1", func(c *Call) { c.PeriodNs = 1 }, true, true},
		{"period 2^52", func(c *Call) { c.PeriodNs = most }, true, true},
		{"period 2^52 + 1", func(c *Call) { c.PeriodNs, c.Amount = most+1, 2 }, false, false},
		{"cost -1", func(c *Call) { c.Cost = -1 }, false, false},
		{"cost 0", func(c *Call) { c.Cost = 0 }, true, true},
		{"cost 2^52", func(c *Call) { c.Cost = most }, true, true},
		{"cost 2^52 + 1", func(c *Call) { c.Cost = most + 1 }, false, false},
		{"clock -1", func(c *Call) { c.NowNs = -1 }, false, false},
		{"the last clock", func(c *Call) { c.NowNs = math.MaxInt64 }, true, true},
		{"server's clock -1000", func(c *Call) { c.ServerNs = -1000 }, false, false},
		{"server's clock 1000", func(c *Call) { c.ServerNs = 1000 }, true, true},
		{"server's clock 1001", func(c *Call) { c.ServerNs = 1001 }, false, false},
		{"by the server's clock", func(c *Call) { c.ServerNs, c.NowNs, c.ByServer = 1000, 1000, true }, true, true},
		{"by the server's clock, none given", func(c *Call) { c.ByServer = true }, false, false},
		{"by the server's clock, another", func(c *Call) { c.ServerNs, c.NowNs, c.ByServer = 1000, 2000, true }, false, false},
		{"amount 0", func(c *Call) { c.Amount = 0 }, false, false},
		{"amount -1", func(c *Call) { c.Amount = -1 }, false, false},
		{"amount 1000 in 1000 ns", func(c *Call) { c.Amount = 1000 }, true, true},
		{"amount 1001 in 1000 ns", func(c *Call) { c.Amount = 1001 }, false, true},
		{"amount 65535", func(c *Call) { c.Amount, c.PeriodNs = 65535, 1e6 }, true, true},
		{"amount 65536", func(c *Call) { c.Amount, c.PeriodNs = 65536, 1e6 }, true, false},
		{"burst 0", func(c *Call) { c.Burst = 0 }, false, true},
		{"burst -1", func(c *Call) { c.Burst = -1 }, false, true},
		{"the largest burst", func(c *Call) { c.Burst = most / 1000 }, true, true},
		{"a burst above", func(c *Call) { c.Burst = most/1000 + 1 }, false, true},
		{"the largest burst of an interval rounded up", func(c *Call) { c.Amount, c.Burst = 3, most/334 }, true, true},
		{"a burst above that", func(c *Call) { c.Amount, c.Burst = 3, most/334+1 }, false, true},
		{"given at the last TAT", func(c *Call) { c.Given, c.NowNs = "5 1 5", 5 }, true, false},
		{"given before the last TAT", func(c *Call) { c.Given, c.NowNs = "4 1 5", 4 }, true, false},
		{"given after the last TAT", func(c *Call) { c.Given, c.NowNs = "5 1 5", 6 }, false, false},
		{"given a TAT after the last one", func(c *Call) { c.Given = "6 1 5" }, false, false},
		{"given no credit", func(c *Call) { c.Given = "5" }, false, false},
		{"given no state", func(c *Call) { c.Given = "x" }, false, false},
	} {
		call := Call{Amount: 1, PeriodNs: 1000, Burst: 1, Cost: 1}
		c.change(&call)
		for script, want := range map[Script]bool{GCRAV1: c.gcra, GCRAV2: c.gcra, WindowV1: c.window} {
			if err := call.Check(script); (err == nil) != want {
				t.Errorf("%s, %s: %v, want it taken: %v", script, c.what, err, want)
			}
		}
	}
}
