package precision

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/emulator/native"
)

// The clock up to which a script takes a call.
func TestTakesClocksUpToTheEnd(t *testing.T) {
	for _, test := range []struct {
		script Script
		call   Call
		lastNs int64
	}{
		{GCRAV1, Call{Amount: 1, PeriodNs: 1000, Burst: 3}, 1<<61 - 3*1024},
		{GCRAV1, Call{Amount: 1, PeriodNs: 1 << 52, Burst: 1}, 1<<61 - 1<<52},
		{GCRAV2, Call{Amount: 1, PeriodNs: 1000, Burst: 3}, math.MaxInt64 - 3000},
		{WindowV1, Call{Amount: 1, PeriodNs: 1000}, 1<<62 - 1},
	} {
		f := NewFed(test.script, test.script.Grid())
		for nowNs, want := range map[int64]bool{0: true, test.lastNs: true, test.lastNs + 1: false, math.MaxInt64: test.lastNs == math.MaxInt64} {
			test.call.NowNs = nowNs
			if f.Takes(&test.call) != want {
				t.Errorf("%s at %d: taken is not %v", test.script, nowNs, want)
			}
		}
	}
}

func TestReads(t *testing.T) {
	const ten18 = 1_000_000_000_000_000_000
	tat := func(tat uint64) State { return State{Exists: true, Value: tat} }
	credit := func(tat, last uint64) State { return State{Exists: true, Value: tat, Credit: "5", Last: last} }
	caller, server := Call{PeriodNs: 1000, NowNs: ten18}, Call{PeriodNs: 1000, NowNs: ten18, ByServer: true}
	early := Call{PeriodNs: 1000, NowNs: ten18 - 1, ByServer: true}
	counts := State{Exists: true, PeriodNs: 1000, Value: 1}
	for i, test := range []struct {
		state State
		call  Call
		want  string // of gcra_v1, gcra_v2 and window_v1
	}{
		{State{}, server, "yes yes yes"},
		{tat(0), caller, "yes yes no"},
		{tat(ten18 - 1), caller, "yes yes no"},
		{tat(ten18 - 1), server, "no no no"},
		{tat(ten18 - 1), early, "yes yes no"},
		{tat(ten18), server, "yes yes no"},
		{tat(1 << 61), server, "yes yes no"},
		{tat(1<<61 + 1), server, "no yes no"},
		{credit(ten18, ten18), server, "no yes no"},
		{credit(ten18, ten18-1), server, "no no no"},
		{credit(ten18-1, ten18), server, "no no no"},
		{credit(0, 1), caller, "no yes no"},
		{credit(0, 1), early, "no yes no"},
		{counts, caller, "yes yes yes"},
		{counts, Call{PeriodNs: 1000 + 1<<32, NowNs: 5}, "yes yes yes"},
		{counts, Call{PeriodNs: 1001, NowNs: 5}, "yes yes no"},
	} {
		var got []string
		for _, s := range singles {
			got = append(got, map[bool]string{true: "yes", false: "no"}[s.Script.Reads(test.state, &test.call)])
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%d, %+v by %+v: %q, want %s", i, test.state, test.call, got, test.want)
		}
	}
}

// The limiter of a call is that of its limit, whatever the one before was.
func TestFedLearnsEachLimit(t *testing.T) {
	f := NewFed(GCRAV1, 256)
	c := Call{Amount: 7, PeriodNs: 1000, Burst: 3}
	for _, change := range []func(){func() {}, func() { c.Amount = 5 }, func() { c.PeriodNs = 2000 }, func() { c.Burst = 9 }, func() {}} {
		change()
		if got, want := f.GCRA(&c), NewGCRA(c.Amount, c.PeriodNs, c.Burst, 256); got != want {
			t.Errorf("%+v: %+v, want %+v", c, got, want)
		}
	}
}

// Counts are another period's until they are over, and stay until the key is gone.
func TestFedKeepsCounts(t *testing.T) {
	c := Call{Amount: 9, PeriodNs: 1000, Cost: 4, NowNs: 10_000_300}
	other := Call{Amount: 9, PeriodNs: 1001, NowNs: 10_000_300, Cost: 1}
	f := NewFed(WindowV1, 1)
	if f.Foreign(&other) {
		t.Error("no counts are another period's")
	}
	f.Admit(&c)
	if want := (Counts{10_000, 0, 4}); f.counts != want || f.endNs != 10_002_000 {
		t.Fatalf("%+v to %d", f.counts, f.endNs)
	}
	look := c
	look.Cost = 0
	f.Admit(&look)
	if f.counts.Current != 4 || f.endNs != 10_002_000 {
		t.Errorf("a look leaves %+v to %d", f.counts, f.endNs)
	}
	for _, test := range []struct {
		nowNs   int64
		foreign bool
	}{{10_000_300, true}, {10_001_999, true}, {10_002_000, false}} {
		other.NowNs = test.nowNs
		if f.Foreign(&other) != test.foreign {
			t.Errorf("at %d the counts are another period's: %v", test.nowNs, !test.foreign)
		}
	}
	if f.Foreign(&c) {
		t.Error("its own counts are another period's")
	}
	if v := f.Ask(&other); v.Status != 1 || v.Remaining != 8 {
		t.Errorf("beside another period's counts: %+v", v)
	}
	if v := f.Ask(&c); v.Status != 1 || v.Remaining != 1 {
		t.Errorf("a second time: %+v", v)
	}
	behind := c
	behind.NowNs = 9_999_900 // the window before: it waits for 100 ns, and then has a whole one
	f.Admit(&behind)
	if want := (Counts{10_000, 0, 8}); f.counts != want || f.endNs != 10_002_000 {
		t.Errorf("with a clock behind: %+v to %d", f.counts, f.endNs)
	}
	f.Gone(10_001_999)
	if f.counts.Current != 8 {
		t.Error("counts that weigh are gone")
	}
	f.Gone(10_002_000)
	if f.counts != (Counts{}) {
		t.Errorf("counts that weigh no more are %+v", f.counts)
	}
	if other.NowNs = 10_000_300; f.Foreign(&other) { // a clock that went back
		t.Error("counts that are gone are another period's")
	}
}

// A gcra key is not the call's by its TAT alone.
func TestFedForeignTAT(t *testing.T) {
	server := Call{Amount: 1, PeriodNs: 1000, Burst: 3, ByServer: true, NowNs: epoch}
	f := NewFed(GCRAV2, 1)
	if f.Foreign(&server) {
		t.Error("no TAT is foreign")
	}
	c := Call{Amount: 1, PeriodNs: 1000, Burst: 3, Cost: 2, NowNs: 57}
	f.Admit(&c)
	if f.tat != 2057 || f.Foreign(&c) || !f.Foreign(&server) {
		t.Errorf("a TAT of %d: foreign to a caller %v, to the server's clock %v", f.tat, f.Foreign(&c), f.Foreign(&server))
	}
	c.Cost, c.NowNs = 0, 1e6
	if f.Admit(&c); f.tat != 2057 {
		t.Errorf("a look leaves the TAT %d", f.tat)
	}
	c.Cost, c.NowNs = 1, 57
	if f.Admit(&c); f.tat != 3057 {
		t.Errorf("the TAT is %d", f.tat)
	}
	given := Call{Given: "5000 7 6000"}
	f.Meet(&c)
	if f.tat != 3057 {
		t.Errorf("given nothing the TAT is %d", f.tat)
	}
	if f.Meet(&given); f.tat != 5000 || f.lastNs != 6000 {
		t.Errorf("given 5000 and 6000: %d and %d", f.tat, f.lastNs)
	}
}

func TestMayAnswer(t *testing.T) {
	far := Verdict{Status: 0, Remaining: 3, RetryAfterNs: FarNs - 10, ResetAfterNs: FarNs}
	near := Verdict{Status: 0, Remaining: 3, RetryAfterNs: FarNs - 10, ResetAfterNs: FarNs - 1}
	retry := Verdict{Status: 0, Remaining: 3, RetryAfterNs: FarNs, ResetAfterNs: 7}
	fits := Verdict{Status: 1, Remaining: 3, ResetAfterNs: FarNs}
	for _, test := range []struct {
		script Script
		want   Verdict
		change Verdict // added to it
		may    bool
	}{
		{GCRAV2, far, Verdict{}, true},
		{GCRAV2, far, Verdict{Status: 1}, false},
		{GCRAV2, far, Verdict{Remaining: 1}, false},
		{GCRAV2, far, Verdict{RetryAfterNs: 4096}, true},
		{GCRAV2, far, Verdict{RetryAfterNs: 4097}, false},
		{GCRAV2, far, Verdict{RetryAfterNs: -1}, false},
		{GCRAV2, far, Verdict{ResetAfterNs: 4096}, true},
		{GCRAV2, far, Verdict{ResetAfterNs: 4097}, false},
		{GCRAV2, far, Verdict{ResetAfterNs: -1}, false},
		{GCRAV2, retry, Verdict{RetryAfterNs: 4096}, true},
		{GCRAV2, near, Verdict{RetryAfterNs: 1}, false},
		{GCRAV2, near, Verdict{ResetAfterNs: 1}, false},
		{GCRAV2, fits, Verdict{ResetAfterNs: 1}, true},
		{GCRAV2, fits, Verdict{RetryAfterNs: 1}, false},
		{WindowV1, far, Verdict{RetryAfterNs: 3, ResetAfterNs: 3}, true},
		{WindowV1, far, Verdict{RetryAfterNs: 4}, false},
		{WindowV1, far, Verdict{ResetAfterNs: 4}, false},
		{GCRAV1, far, Verdict{}, true},
		{GCRAV1, far, Verdict{RetryAfterNs: 1}, false},
	} {
		got := Verdict{test.want.Status + test.change.Status, test.want.Remaining + test.change.Remaining,
			test.want.RetryAfterNs + test.change.RetryAfterNs, test.want.ResetAfterNs + test.change.ResetAfterNs}
		if test.script.MayAnswer(got, test.want) != test.may {
			t.Errorf("%s may answer %+v for %+v: %v", test.script, got, test.want, !test.may)
		}
	}
}

// Where waits are FarNs or more the judge takes what the scripts may round, and the native
// port alone says which it is. By a clock that is a window behind, so is an expiry.
func TestFarAnswers(t *testing.T) {
	for _, test := range []struct {
		trace  string
		change func(o *Outcome)
		want   Tally
	}{
		{"gcra_v2 2,4503599627370496,2,2,1709007199254740992 2,4503599627370496,2,1,1700000000000000000",
			func(o *Outcome) { o.ResetAfterNs++ }, Tally{Differences: 1}},
		{"gcra_v2 2,4503599627370496,2,2,1709007199254740992 2,4503599627370496,2,1,1700000000000000000",
			func(o *Outcome) { o.RetryAfterNs++ }, Tally{Differences: 1}},
		{"window_v1 5,4503599627370496,fixed,1,450359962737049600 5,4503599627370496,fixed,1,450359962737049500",
			func(o *Outcome) { o.TTLMs += 1000 }, Tally{Differences: 1}},
		{"window_v1 5,4503599627370496,fixed,1,450359962737049600 5,4503599627370496,fixed,1,450359962737049500",
			func(o *Outcome) { o.TTLMs -= 1000 }, Tally{Differences: 1}},
		{"window_v1 5,4503599627370496,fixed,1,450359962737049600 5,4503599627370496,fixed,1,450359962737049500",
			func(o *Outcome) { o.TTLMs += 2000 }, Tally{Differences: 1, WrongTTLs: 1}},
		{"window_v1 5,4503599627370496,fixed,1,450359962737049600 5,4503599627370496,fixed,1,450359962737049500",
			func(o *Outcome) { o.TTLMs -= 2000 }, Tally{Differences: 1, WrongTTLs: 1}},
		{"window_v1 5,4503599627370495,fixed,1,450359962737049500", // the end is less than FarNs away
			func(o *Outcome) { o.TTLMs += 1000 }, Tally{Differences: 1, WrongTTLs: 1}},
	} {
		trace, err := ParseTrace(test.trace)
		if err != nil {
			t.Fatal(err)
		}
		outcomes := append([]Outcome(nil), trace.Native...)
		if tally := Judge(trace, outcomes); !tally.Sound() {
			t.Errorf("%s: %s", test.trace, tally.Broken)
		}
		last := len(outcomes) - 1
		test.change(&outcomes[last])
		got := Judge(trace, outcomes)
		test.want.Decisions, test.want.Admitted, test.want.Broken, test.want.BrokenAt = got.Decisions, got.Admitted, got.Broken, last
		if got != test.want || got.Broken == "" {
			t.Errorf("%s, %+v: %+v, want %+v", test.trace, outcomes[last], got, test.want)
		}
	}
}

// A refusal whose promise leads past every clock, or names no wait, is not asked again.
func TestPromisePastEveryClock(t *testing.T) {
	for retryNs, want := range map[int64]int64{math.MinInt64: 0, 0: 0, 1: 1, 1000: 0, 1001: 1, math.MaxInt64: 0} {
		j := NewClaims(GCRAV2)
		c := Call{Amount: 1, PeriodNs: 1000, Burst: 1, Cost: 1, NowNs: epoch}
		j.call = &c
		j.fed.Admit(&c)
		j.promise(&c, &Outcome{Verdict: Verdict{RetryAfterNs: retryNs}})
		if j.WrongReplies != want {
			t.Errorf("retry_after %d: %d objections, want %d", retryNs, j.WrongReplies, want)
		}
	}
}

// gcra_v1 may be early by the exact interval after a step back of the clock, and after a
// change of the interval: that is no fault.
func TestExactIntervalIsLost(t *testing.T) {
	for name, text := range map[string]string{
		"a step back":    "gcra_v1 1,1000,64,1,1780000080000000000 1,1000,64,1,1780000079999936512",
		"another period": "gcra_v1 1,1024,64,64,1780000080000000000 1,1000,64,1,1780000080000001024",
		"another amount": "gcra_v1 1000,1024000,64,64,1780000080000000000 1024,1024000,64,1,1780000080000001024",
	} {
		trace, err := ParseTrace(text)
		if err != nil {
			t.Fatal(err)
		}
		j, outcomes := NewClaims(GCRAV1), trace.Native
		j.Call(&trace.Calls[0], &outcomes[0])
		if v := j.Exact(&trace.Calls[1]); v.Status != 0 || outcomes[1].Status != 1 {
			t.Errorf("%s: exact %+v, gcra_v1 %+v", name, v, outcomes[1])
		}
		if j.Call(&trace.Calls[1], &outcomes[1]); !j.Sound() {
			t.Errorf("%s: %s", name, j.Broken)
		}
	}
	// So is one by a state that somebody else left.
	tat := epoch + 1024
	key := nativeKey{gcra: native.ParseGCRA(fmt.Sprint(tat))}
	c := Call{Amount: 1, PeriodNs: 1000, Burst: 3, Cost: 1, NowNs: tat - 2*1024}
	o := key.call(GCRAV1, &c)
	j := NewClaims(GCRAV1)
	j.Hold(State{Exists: true, Value: uint64(tat)}, -1)
	if v := j.Exact(&c); v.Status != 0 || o.Status != 1 {
		t.Errorf("on a state: exact %+v, gcra_v1 %+v", v, o)
	}
	o.TTLMs = 62000 // over the edge of a second
	if j.Call(&c, &o); !j.Sound() {
		t.Errorf("on a state: %s", j.Broken)
	}
}

// What a key holds and when it expires, by hand and by the server's clock.
func TestClaimsFollowTheKey(t *testing.T) {
	j := NewClaims(GCRAV2)
	ttl := func(what string, want int64) {
		t.Helper()
		if got := j.TTLMs(); got != want {
			t.Errorf("%s: the ttl is %d, want %d", what, got, want)
		}
	}
	ttl("no key", 0)
	j.Set(epoch)
	j.Hold(State{Exists: true, Value: uint64(epoch + 5000)}, -1)
	ttl("a key without expiry", -1)
	j.Hold(State{Exists: true, Value: uint64(epoch + 5000)}, 1500)
	ttl("held with 1500", 1500)
	j.Hold(State{Exists: true, Value: uint64(epoch + 5000)}, 0)
	ttl("held with 0", 0)
	j.Hold(State{Exists: true, Value: uint64(epoch + 5000)}, 1500)
	j.Set(epoch + 400e6)
	ttl("400 ms on", 1100)
	j.Expire(-1)
	ttl("its expiry taken away", -1)
	j.Expire(0)
	ttl("it ends now", 0)
	j.Expire(100)
	ttl("100 ms by hand", 100)
	j.Exact(&Call{Amount: 1, PeriodNs: 5000, Burst: 1, Cost: 1, NowNs: epoch})
	ttl("the server's clock stands", 100)
	c := Call{Amount: 1, PeriodNs: 5000, Burst: 1, Cost: 1, NowNs: epoch, ServerNs: epoch + 500e6}
	if v := j.Exact(&c); v.Status != 0 || v.RetryAfterNs != 5000 || !j.state.Exists {
		t.Errorf("in its last ms the key answers %+v, and holds %+v", v, j.state)
	}
	c.ServerNs, c.NowNs = epoch+501e6, epoch+501e6
	if v := j.Exact(&c); v.Status != 1 || j.state.Exists {
		t.Errorf("a ms on it answers %+v, and holds %+v", v, j.state)
	}
	ttl("it is gone", 0)

	// Where an error is due there is no verdict.
	c = Call{Amount: 1, PeriodNs: 5000, Burst: 1, Cost: 1, NowNs: math.MaxInt64}
	if v := j.Exact(&c); v != (Verdict{}) {
		t.Errorf("of a clock that is not taken: %+v", v)
	}
	j.Hold(State{Exists: true, Value: 57}, -1)
	c = Call{Amount: 1, PeriodNs: 5000, Burst: 1, Cost: 1, NowNs: epoch, ServerNs: epoch, ByServer: true}
	if v := j.Exact(&c); v != (Verdict{}) {
		t.Errorf("of a state that is not read: %+v", v)
	}
	c.ByServer = false
	if v := j.Exact(&c); v.Status != 1 {
		t.Errorf("of one that is: %+v", v)
	}
	c.Given = "1780000080000005000 5 1780000080000005000"
	if v := j.Exact(&c); v.Status != 0 || j.state.Credit != "5" || j.TTLMs() != 61000 {
		t.Errorf("of one that is given: %+v, %+v, %d ms", v, j.state, j.TTLMs())
	}

	// The exact verdict of gcra_v1 is that of the exact interval, also after a step back.
	j = NewClaims(GCRAV1)
	for i, nowNs := range []int64{epoch, epoch - 1} {
		c := Call{Amount: 1, PeriodNs: 1000, Burst: 3, Cost: 1, NowNs: nowNs}
		want, _ := NewGCRA(1, 1000, 3, 1).Call([]int64{0, epoch + 1000}[i], 1, nowNs)
		if v := j.Exact(&c); v != want {
			t.Errorf("%+v, want %+v", v, want)
		}
		o := NewTraceOf(GCRAV1, []Call{{Amount: 1, PeriodNs: 1000, Burst: 3, Cost: 1, NowNs: epoch}, c}).Native[i]
		if j.Call(&c, &o); !j.Sound() {
			t.Error(j.Broken)
		}
	}
	c = Call{Amount: 1, PeriodNs: 1000, Burst: 3, NowNs: epoch}
	if v := j.Exact(&c); v.ResetAfterNs != 2000 {
		t.Errorf("after two units the exact reset is %d", v.ResetAfterNs)
	}
}

// Where a window's index comes round, counts that were over with their key stay over.
func TestClaimsForgetCountsThatAreOver(t *testing.T) {
	const round = 1 << 32
	calls := []Call{
		{Amount: 2, PeriodNs: 30, Cost: 2, NowNs: epoch, ServerNs: epoch},
		{Amount: 2, PeriodNs: 30, Cost: 1, NowNs: epoch + 30*round, ServerNs: epoch + 30*round},
	}
	trace := NewTraceOf(WindowV1, calls)
	if trace.Native[1].Status != 1 {
		t.Fatalf("%+v", trace.Native)
	}
	if tally := Judge(trace, trace.Native); !tally.Sound() {
		t.Error(tally.Broken)
	}
}

// gcra_v1's waits are to the nanosecond below FarNs, and to the grid point before the clock
// from there on.
func TestWide(t *testing.T) {
	for _, test := range []struct{ instant, now, want int64 }{
		{512, 3, 509},
		{FarNs - 256 + 256, 256 + 1, FarNs - 257},
		{FarNs + 256, 256 + 5, FarNs},
		{FarNs + 256, 511, FarNs},
		{FarNs + 256, 512, FarNs - 256},
		{FarNs, 511, FarNs - 511},
	} {
		if got := wide(256, test.instant, test.now); got != test.want {
			t.Errorf("from %d to %d: %d, want %d", test.now, test.instant, got, test.want)
		}
	}
}

// A wait is held against the instants next to it up to the last clock, and below FarNs.
func TestPromiseUpToTheEnds(t *testing.T) {
	for _, c := range []struct {
		nowNs, retryNs int64
		broken         bool
	}{
		{math.MaxInt64 - 5000, 4999, true}, {math.MaxInt64 - 5000, 5000, true}, {math.MaxInt64 - 5000, 5001, false},
		{0, FarNs - 1, true}, {0, FarNs, false},
	} {
		j, call := NewClaims(GCRAV2), Call{Amount: 1, PeriodNs: 1000, Burst: 1, Cost: 1, NowNs: c.nowNs}
		j.call = &call
		// the key is empty, so the call fits a nanosecond earlier too
		if j.promise(&call, &Outcome{Verdict: Verdict{RetryAfterNs: c.retryNs}}); j.Sound() == c.broken {
			t.Errorf("%d ns after %d: found broken in %q, want it broken: %v", c.retryNs, c.nowNs, j.Broken, c.broken)
		}
	}
}

// A write by the server's clock leaves a key without an expiry so, while its second stays.
func TestClaimsLeaveNoExpiry(t *testing.T) {
	for ttlMs, sound := range map[int64]bool{-1: true, 1: false, 0: false} {
		j := NewClaims(GCRAV2)
		j.Hold(State{Exists: true, Value: uint64(epoch)}, -1)
		c := Call{Amount: 1, PeriodNs: 5000, Burst: 1, Cost: 1, NowNs: epoch, ServerNs: epoch, ByServer: true}
		o := Outcome{Verdict: j.Exact(&c), State: State{Exists: true, Value: uint64(epoch + 5000)}, TTLMs: ttlMs}
		if j.Call(&c, &o); j.Sound() != sound {
			t.Errorf("a ttl of %d: %q, want it sound: %v", ttlMs, j.Broken, sound)
		}
	}
}

// The expiry of a window may be a second off where its end is FarNs away.
func TestFarExpiries(t *testing.T) {
	for aheadNs, offS := range map[int64]int64{0: 1, 1: 0} {
		for _, moreS := range []int64{-2, -1, 0, 1, 2} {
			c := Call{Amount: 5, PeriodNs: 1 << 52, Cost: 1, NowNs: 395<<52 + aheadNs}
			j := NewClaims(WindowV1)
			want := j.Exact(&c)
			fed := NewFed(WindowV1, 1)
			fed.Admit(&c)
			o := Outcome{Verdict: want, State: newCounts(fed.counts, c.PeriodNs),
				TTLMs: (windowTTLS(FarNs-aheadNs, c.NowNs, false) + moreS) * 1000}
			if j.Call(&c, &o); j.Sound() != (moreS >= -offS && moreS <= offS) {
				t.Errorf("%d ns before FarNs, %d s off: %q", aheadNs, moreS, j.Broken)
			}
		}
	}
}

// What is found of a ttl names all that it may be.
func TestWrongTTLsAreNamed(t *testing.T) {
	c := Call{Amount: 1, PeriodNs: 5000, Burst: 1, Cost: 1, NowNs: epoch, ServerNs: epoch}
	for cost, want := range map[int64]string{0: "ttl 2..7 ms was 0:", 1: "ttl 2..7 ms, want 61000"} {
		c.Cost = cost
		j := NewClaims(GCRAV2)
		o := Outcome{Verdict: j.Exact(&c), TTLMs: 2, TTLSlackMs: 5}
		if cost > 0 {
			o.State = State{Exists: true, Value: uint64(epoch + 5000)}
		}
		if j.Call(&c, &o); !strings.Contains(j.Broken, want) {
			t.Errorf("cost %d: %q does not say %q", cost, j.Broken, want)
		}
	}
}

// What gcra_v1 may say by the grid is within what is claimed of it: with every small TAT,
// clock and limit.
func TestOnGridIsWithinItsBounds(t *testing.T) {
	smallGCRA(1, func(c Call, tat int64) {
		f := NewFed(GCRAV1, smallGrid)
		f.tat = tat
		v, g := f.onGrid(&c), f.GCRA(&c)
		exact, after := g.Call(tat, c.Cost, c.NowNs)
		if v.Status != exact.Status && (exact.Status != 1 || v.Status != 0) { // late, never early
			t.Fatalf("tat %d, %+v: status %d, exact %d", tat, c, v.Status, exact.Status)
		}
		if v.Status == 0 {
			after = tat
			if late := c.NowNs + v.RetryAfterNs - max(g.FirstNs(tat, c.Cost), c.NowNs); late < 0 || late >= smallGrid || v.RetryAfterNs < 1 {
				t.Fatalf("tat %d, %+v: retry_after %d is %d late", tat, c, v.RetryAfterNs, late)
			}
		}
		low, high := g.Remaining(after, c.NowNs), g.Remaining(after, c.NowNs+smallGrid-1)
		if v.Remaining < low || v.Remaining > high {
			t.Fatalf("tat %d, %+v: remaining %d is not from %d to %d", tat, c, v.Remaining, low, high)
		}
		if late := v.ResetAfterNs - max(after-c.NowNs, 0); late < 0 || late >= smallGrid {
			t.Fatalf("tat %d, %+v: reset_after %d is %d late", tat, c, v.ResetAfterNs, late)
		}
	})
}
