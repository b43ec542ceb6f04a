package precision

import (
	"math"
	"testing"
	"time"
)

// By a real server's own clock, and with callers beside it, for some seconds.
func TestServersOwnClock(t *testing.T) { testLive(t, realDriver(t), 6*time.Second) }

func testLive(t *testing.T, real *Real, lasting time.Duration) {
	for _, s := range Scripts {
		for name, callers := range map[string]bool{"alone": false, "with callers": true} {
			t.Run(string(s.Script)+" "+name, func(t *testing.T) {
				t.Parallel()
				var tally Tally
				for seed := uint64(1); seed < 10 && (tally.Admitted == 0 || tally.Admitted == tally.Decisions); seed++ {
					one, err := real.Live(s.Script, seed, lasting, callers)
					if err != nil {
						t.Fatal(err)
					}
					tally.Add(&one)
				}
				if !tally.Sound() {
					t.Error(tally.Broken)
				}
				if tally.Admitted == 0 || tally.Admitted == tally.Decisions {
					t.Errorf("%d of %d admitted", tally.Admitted, tally.Decisions)
				}
				t.Logf("%d decisions, %d admitted", tally.Decisions, tally.Admitted)
			})
		}
	}
}

// liveCase is a call between two readings of the server's clock, on a key that was called once
// before, and what is said of it.
type liveCase struct {
	name         string
	change       func(c *Call, o *Outcome)
	fromNs, toNs int64
	endMs        int64
	callers      bool
	want         Tally // what is broken
}

// By a clock that is known only to lie between two readings an outcome is right when it is
// right at the instant that it tells; the readings are 2 ms apart here.
func TestLiveJudgesEachOutcome(t *testing.T) {
	const at = epoch + 300*ms // of the call, in the second that epoch begins
	right := func(*Call, *Outcome) {}
	for _, script := range []Script{GCRAV1, GCRAV2, WindowV1} {
		limit := Call{Amount: 4, PeriodNs: 1_024_000_000, Burst: 2, Cost: 1, ByServer: true}
		if script.IsWindow() {
			limit = Call{Amount: 4, PeriodNs: 1_000_000_000, Cost: 1, ByServer: true}
		}
		endMs := at/ms + 2000 // by EX: from the clock's second to that of the TAT, and 2
		if script.IsWindow() {
			endMs = at/ms + 3000 // to the end of the next window, and 1
		}
		for _, test := range []liveCase{
			{"right", right, at - ms, at + ms, endMs, false, Tally{}},
			{"right, at the first reading", right, at, at + 2*ms, endMs, false, Tally{}},
			{"right, at the last reading", right, at - 2*ms, at, endMs, false, Tally{}},
			{"right, with callers", right, at - ms, at + ms, endMs, true, Tally{}},
			{"before the first reading", right, at + 1000, at + 2*ms, endMs, false, Tally{WrongReplies: 1}},
			{"after the last reading", right, at - 2*ms, at - 1000, endMs, false, Tally{WrongReplies: 1}},
			{"ends 3 ms early", right, at - ms, at + ms, endMs - 5, false, Tally{WrongTTLs: 1}},
			{"ends a second early", right, at - ms, at + ms, endMs - 1000, false, Tally{WrongTTLs: 2}},
			{"ends a second late", right, at - ms, at + ms, endMs + 1000, false, Tally{WrongTTLs: 2}},
			{"ends a second late, with callers", right, at - ms, at + ms, endMs + 1000, true, Tally{WrongTTLs: 1}},
			{"ends before all is over, with callers", right, at - ms, at + ms, epoch / ms, true, Tally{WrongTTLs: 2}},
			{"another remaining", func(_ *Call, o *Outcome) { o.Remaining++ }, at - ms, at + ms, endMs, false, Tally{WrongReplies: 1}},
			{"an error", func(_ *Call, o *Outcome) { *o = Outcome{Err: "ERR", State: o.State} }, at - ms, at + ms, endMs, false, Tally{WrongReplies: 1, WrongStates: 1, WrongTTLs: 1}},
		} {
			c := limit
			c.ServerNs, c.NowNs = at, at
			o := NewTraceOf(script, []Call{c}).Native[0]
			asked := limit
			test.change(&asked, &o)
			k := &liveKey{claims: NewClaims(script)}
			if script.IsWindow() && test.fromNs > at { // its reset leads to the end of a window, here of the next one
				test.want = Tally{WrongReplies: 1, WrongStates: 1, WrongTTLs: 1}
			}
			sure := k.judge(&asked, &o, test.fromNs, test.toNs, test.endMs, test.callers)
			got := k.claims.Tally
			test.want.Decisions, test.want.Admitted, test.want.Broken = got.Decisions, got.Admitted, got.Broken
			if !sure || got != test.want || (got.Broken != "") == k.claims.Sound() {
				t.Errorf("%s, %s: sure %v, %+v, want %+v", script, test.name, sure, got, test.want)
			}
		}
	}
}

// Of a call while the key was about to expire nothing is said.
func TestLiveIsNotSureWhenTheKeyEnds(t *testing.T) {
	for offMs, sure := range map[int64]bool{-6: true, -5: false, 0: false, 5: false, 6: true} {
		k := &liveKey{claims: NewClaims(GCRAV2), setMs: 2}
		k.claims.Set(epoch)
		k.claims.Hold(State{Exists: true, Value: uint64(epoch)}, 1000)
		endMs := epoch/ms + 1000
		atNs := (endMs + offMs) * ms
		c := Call{Amount: 4, PeriodNs: 1_024_000_000, Burst: 2, ByServer: true}
		o := Outcome{Verdict: Verdict{Status: 1, Remaining: 2}, State: State{Exists: true, Value: uint64(epoch)}}
		if offMs > 0 {
			o.State = State{}
		}
		if got := k.judge(&c, &o, atNs-2*ms, atNs, endMs, false); got != sure || !k.claims.Sound() {
			t.Errorf("%d ms from its end: sure %v, want %v, %s", offMs, got, sure, k.claims.Broken)
		}
	}
}

// Of a call that took as long as a window nothing is said: it may have been made in any.
func TestLiveIsNotSureOfAWindowThatPassed(t *testing.T) {
	const periodNs = 300 * ms
	for spanNs, sure := range map[int64]bool{periodNs - 1: true, periodNs: false} {
		c := Call{Amount: 3, PeriodNs: periodNs, Cost: 1, ByServer: true, ServerNs: epoch, NowNs: epoch}
		o := NewTraceOf(WindowV1, []Call{c}).Native[0]
		k := &liveKey{claims: NewClaims(WindowV1)}
		if got := k.judge(&c, &o, epoch-spanNs, epoch, epoch/ms+o.TTLMs, false); got != sure || k.claims.Broken != "" {
			t.Errorf("within %d ns: sure %v, want %v, %s", spanNs, got, sure, k.claims.Broken)
		}
	}
}

// A caller's write, one that moves the expiry, and a state that is given set by how much the
// expiry is known; a write that leaves it does not.
func TestLiveKnowsWhenAnExpiryWasSet(t *testing.T) {
	const endMs = epoch/ms + 3000
	for _, test := range []struct {
		name string
		call Call
		cost int64
		// the TAT before the call and after it
		was, tat, want int64
	}{
		{"by the server's clock, stays", Call{ByServer: true}, 1, epoch, epoch, 7},
		{"by the server's clock, stays to the last ns of the second", Call{ByServer: true}, 1, epoch, epoch + second - 1, 7},
		{"by the server's clock, moves", Call{ByServer: true}, 1, epoch, epoch + second, 2},
		{"by the server's clock, moves back", Call{ByServer: true}, 1, epoch, epoch - 1, 2},
		{"by the server's clock, a new key", Call{ByServer: true}, 1, 0, epoch, 2},
		{"by the server's clock, a new key in the first second of 1970", Call{ByServer: true}, 1, 0, 5, 2},
		{"by a caller's, stays", Call{}, 1, epoch, epoch, 2},
		{"a look", Call{}, 0, epoch, epoch + second, 7},
		{"given", Call{ByServer: true, Given: "1780000080000000000 5 1780000080000000000"}, 0, epoch, epoch, 2},
	} {
		k := &liveKey{claims: NewClaims(GCRAV2), setMs: 7}
		k.claims.Set(epoch)
		if test.was > 0 {
			k.claims.Hold(State{Exists: true, Value: uint64(test.was)}, 3000)
		}
		c := test.call
		c.Amount, c.PeriodNs, c.Burst, c.Cost, c.NowNs = 4, 1_024_000_000, 2, test.cost, epoch
		o := Outcome{Verdict: Verdict{Status: 1}, State: State{Exists: true, Value: uint64(test.tat)}}
		k.judge(&c, &o, epoch-ms, epoch+ms, endMs, true)
		if k.setMs != test.want {
			t.Errorf("%s: known to %d ms, want %d", test.name, k.setMs, test.want)
		}
	}
}

// Whose expiry is checked, and against which span.
func TestLives(t *testing.T) {
	tat := State{Exists: true, Value: uint64(epoch + 300*ms)} // over at 1 s
	credit := State{Exists: true, Value: uint64(epoch), Credit: "5", Last: uint64(epoch + 1300*ms)}
	counts := func(index int64) State {
		return newCounts(Counts{uint32(index), 0, 1}, 700*ms)
	}
	index := epoch / (700 * ms)
	overMs := func(index int64) int64 { return ceilDiv((index+2)*700*ms, second) * 1000 }
	const e = epoch / ms
	for _, test := range []struct {
		name        string
		script      Script
		state       State
		least, most int64
		callers     bool
	}{
		{"a TAT", GCRAV2, tat, e + 2000, e + 3000, false},
		{"the last TAT", GCRAV2, credit, e + 3000, e + 4000, false},
		{"a TAT, with callers", GCRAV2, tat, e + 1000, math.MaxInt64 - 20, true},
		{"counts", WindowV1, counts(index), overMs(index) + 1000, overMs(index) + 2000, false},
		{"counts of the next window", WindowV1, counts(index + 1), overMs(index+1) + 1000, overMs(index+1) + 2000, false},
		{"counts, with callers", WindowV1, counts(index), (index + 2) * 700, math.MaxInt64 - 20, true},
	} {
		c := Call{Cost: 1, ByServer: true, NowNs: epoch, PeriodNs: 700 * ms}
		for endMs, want := range map[int64]int64{test.least - 10: 0, test.least - 11: 1, test.most + 10: 0, test.most + 11: 1} {
			if test.callers && endMs > test.least {
				continue // as late as may be
			}
			j := NewClaims(test.script)
			j.call = &c
			j.lives(&c, &Outcome{Verdict: Verdict{Status: 1}, State: test.state}, endMs, 10, test.callers)
			if j.WrongTTLs != want {
				t.Errorf("%s, ends at %d: %d objections, want %d", test.name, endMs-e, j.WrongTTLs, want)
			}
		}
		for name, change := range map[string]func(c *Call, o *Outcome){
			"refused":   func(_ *Call, o *Outcome) { o.Status = 0 },
			"a look":    func(c *Call, _ *Outcome) { c.Cost = 0 },
			"by caller": func(c *Call, _ *Outcome) { c.ByServer = false },
			"no key":    func(_ *Call, o *Outcome) { o.State = State{} },
		} {
			c, o := c, Outcome{Verdict: Verdict{Status: 1}, State: test.state}
			change(&c, &o)
			j := NewClaims(test.script)
			j.call = &c
			if j.lives(&c, &o, 0, 10, test.callers); j.WrongTTLs != 0 {
				t.Errorf("%s, %s: %s", test.name, name, j.Broken)
			}
		}
	}
}

// The instant that an outcome tells.
func TestLiveClock(t *testing.T) {
	gcra := Call{PeriodNs: 1000, ByServer: true}
	window := Call{PeriodNs: 1000, ByServer: true}
	o := Outcome{Verdict: Verdict{Status: 1, ResetAfterNs: 300}, State: State{Exists: true, Value: 5000}}
	for _, test := range []struct {
		script Script
		call   Call
		o      Outcome
		fromNs int64
		want   int64
		ok     bool
	}{
		{GCRAV2, gcra, o, 4600, 4700, true},
		{WindowV1, window, o, 4600, 4700, true},
		{WindowV1, window, o, 4700, 4700, true},
		{WindowV1, window, o, 4701, 5700, true},
		{GCRAV2, Call{PeriodNs: 1000}, o, 4600, 0, false},
		{GCRAV2, gcra, Outcome{Err: "ERR", Verdict: o.Verdict}, 4600, 0, false},
		{GCRAV2, gcra, Outcome{Verdict: Verdict{Status: 1}}, 4600, 0, false},
	} {
		at, ok := liveClock(test.script, &test.call, &test.o, test.fromNs)
		if at != test.want || ok != test.ok {
			t.Errorf("%s, %+v from %d: %d %v, want %d %v", test.script, test.o, test.fromNs, at, ok, test.want, test.ok)
		}
	}
}

// How far an expiry is known stays as it is while the expiry does, however far the readings of
// a call in between lie apart. Here a caller's write is known to 1 ms, and a server of before
// 7.2 tells the expiry too early by the time between the readings.
func TestLiveKeepsHowFarAnExpiryIsKnown(t *testing.T) {
	const endMs = epoch/ms + 499 + 61_000 // of the write at 499 ms, whose last reading is at 500 ms
	calls := []Call{
		{Amount: 10, PeriodNs: second, Burst: 10, Cost: 1, NowNs: epoch + second, ServerNs: epoch + 500*ms},
		{Amount: 10, PeriodNs: second, Burst: 10, NowNs: epoch + 1100*ms, ServerNs: epoch + 1100*ms, ByServer: true},
		{Amount: 10, PeriodNs: second, Burst: 10, Cost: 1, NowNs: epoch + 1200*ms, ServerNs: epoch + 1200*ms, ByServer: true},
	}
	for _, script := range []Script{GCRAV1, GCRAV2} {
		outcomes := NewTraceOf(script, calls).Native
		k := &liveKey{claims: NewClaims(script)}
		for i, spanMs := range []int64{1, 2, 0} {
			c, o := calls[i], outcomes[i]
			fromNs, toNs := c.ServerNs, c.ServerNs+spanMs*ms
			if !c.ByServer {
				fromNs, toNs = fromNs-spanMs*ms, c.ServerNs
			}
			if sure := k.judge(&c, &o, fromNs, toNs, endMs-spanMs, true); !sure || !k.claims.Sound() {
				t.Errorf("%s, call %d: sure %v, %s", script, i, sure, k.claims.Broken)
			}
		}
	}
}
