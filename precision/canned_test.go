package precision

import (
	"strings"
	"testing"
)

// Judges' controls: traces whose last answer is wrong in one way. The judge must count it in
// the columns where it is wrong, in no other, and name it.

// scene is a trace, and what its last call comes to.
type scene struct {
	name  string
	kind  int
	calls string
	// moves tells whether the expiry is another one where the call is admitted.
	moves bool
	// early is how many exact limiters refuse the call, lateNs how much later than by exact
	// integers a call that does not fit at once is admitted.
	early, lateNs int64
}

// The kinds of scenes: what is right of the last call.
const (
	wrote       = iota // admitted, with a cost
	looked             // admitted, without
	refused            // with a cost
	refusedLook        // without
	never              // its cost never fits
	failed             // an error
)

// scenes are traces by what the last of their calls comes to. Clocks are 1 ns past a whole
// second, so that gcra_v1 is 255 ns late.
var scenes = map[Script][]scene{
	GCRAV1: {
		{"fresh", wrote, "3,1000000000,2,1,1780000080000000001", true, 0, 0},
		{"busy", wrote, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,1,1780000080000000256", false, 0, 255},
		{"refused", refused, "3,1000000000,2,2,1780000080000000001 3,1000000000,2,1,1780000080000000001", true, 2, 255},
		{"refused by the interval on the grid alone", refused, "3,1000000000,2,2,1780000080000000001 3,1000000000,2,1,1780000080333333335", true, 1, 255},
		{"refused, another amount before", refused, "4,1000000000,2,2,1780000080000000001 3,1000000000,2,1,1780000080000000001", false, 1, 255},
		{"refused, another period before", refused, "3,1000000001,2,2,1780000080000000001 3,1000000000,2,1,1780000080000000001", true, 1, 255},
		{"refused, another burst before", refused, "3,1000000000,3,3,1780000080000000001 3,1000000000,2,1,1780000080000000001", false, 2, 255},
		{"refused, a step back before", refused, "3,1000000000,2,2,1780000080000000002 3,1000000000,2,1,1780000080000000001", true, 1, 254},
		{"look", looked, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,0,1780000080000000001", false, 0, 255},
		{"refused look", refusedLook, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,0,1780000070000000001", false, 1, 255},
		{"never", never, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,3,1780000080000000001", true, 2, 255},
		{"expiry stays", wrote, "3,1000000000,2,1,,1780000080000001000 3,1000000000,2,1,,1780000080001001000", false, 0, 24},
		{"expiry moves", wrote, "3,1000000000,2,1,,1780000080000001000 3,1000000000,2,2,,1780000081001001000", true, 0, 24},
		{"bad clock", failed, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,1,2305843009213693952", false, 0, 0},
		{"foreign", failed, "3,1000000000,2,1,0,1780000080000000000 3,1000000000,2,1,,1780000080001000000", false, 0, 0},
		{"credit", failed, "3,1000000000,2,1,1780000080000000001@1780000080000000001:5:1780000080000000001", false, 0, 0},
	},
	GCRAV2: {
		{"fresh", wrote, "3,1000000000,2,1,1780000080000000001", true, 0, 0},
		{"busy", wrote, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,1,1780000080000000001", false, 0, 0},
		{"refused", refused, "3,1000000000,2,2,1780000080000000001 3,1000000000,2,1,1780000080000000001", true, 1, 0},
		{"look", looked, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,0,1780000080000000001", false, 0, 0},
		{"refused look", refusedLook, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,0,1780000070000000001", false, 1, 0},
		{"never", never, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,3,1780000080000000001", true, 1, 0},
		{"expiry stays", wrote, "3,1000000000,2,1,,1780000080000001000 3,1000000000,2,1,,1780000080001001000", false, 0, 0},
		{"expiry moves", wrote, "3,1000000000,2,1,,1780000080000001000 3,1000000000,2,2,,1780000081001001000", true, 0, 0},
		{"bad clock", failed, "3,1000000000,2,1,1780000080000000001 3,1000000000,2,1,9223372036854775807", false, 0, 0},
		{"foreign", failed, "3,1000000000,2,1,0,1780000080000000000 3,1000000000,2,1,,1780000080001000000", false, 0, 0},
		{"last raised", wrote, "3,1000000000,2,1,1780000080000000001@1780000080000000001:5:1780000080000000001", false, 0, 0},
		{"last kept", wrote, "3,1000000000,2,1,1780000080000000001@1780000080000000001:5:1780000090000000001", false, 0, 0},
		{"last raised, expiry moves", wrote, "3,1000000000,2,2,,1780000080900000000@1780000080900000000:5:1780000080900000000", true, 0, 0},
		{"last kept, expiry stays", wrote, "3,1000000000,2,2,,1780000080900000000@1780000080900000000:5:1780000082900000000", false, 0, 0},
	},
	WindowV1: {
		{"fresh", wrote, "3,1000000000,sliding,1,1780000080000000001", true, 0, 0},
		{"busy", wrote, "3,1000000000,sliding,2,1780000080000000001 3,1000000000,sliding,1,1780000081000000001", false, 0, 0},
		{"refused", refused, "3,1000000000,sliding,3,1780000080000000001 3,1000000000,sliding,1,1780000081000000001", false, 1, 0},
		{"refused, full", refused, "3,1000000000,sliding,3,1780000080000000001 3,1000000000,sliding,1,1780000080000000001", false, 1, 0},
		{"refused, fixed", refused, "3,1000000000,fixed,3,1780000080000000001 3,1000000000,fixed,1,1780000080000000001", false, 1, 0},
		{"look", looked, "3,1000000000,sliding,1,1780000080000000001 3,1000000000,sliding,0,1780000080000000001", false, 0, 0},
		{"refused look", refusedLook, "3,1000000000,sliding,3,1780000080000000001 2,1000000000,sliding,0,1780000080000000001", false, 1, 0},
		{"never", never, "3,1000000000,sliding,1,1780000080000000001 3,1000000000,sliding,4,1780000080000000001", false, 1, 0},
		{"expiry stays", wrote, "3,1000000000,sliding,1,,1780000080000001000 3,1000000000,sliding,1,,1780000080001001000", false, 0, 0},
		{"expiry moves", wrote, "3,1000000000,sliding,1,,1780000080000001000 3,1000000000,sliding,1,,1780000081001001000", true, 0, 0},
		{"bad clock", failed, "3,1000000000,sliding,1,1780000080000000001 3,1000000000,sliding,1,4611686018427387904", false, 0, 0},
		{"another period's", failed, "3,1000000000,sliding,1,1780000080000000001 3,1000000001,sliding,1,1780000080000000001", false, 0, 0},
	},
}

// wrongs change an answer in one way.
var wrongs = map[string]func(o *Outcome){
	"status 1":                    func(o *Outcome) { o.Err, o.Status = "", 1 },
	"status 0":                    func(o *Outcome) { o.Err, o.Status = "", 0 },
	"status -1":                   func(o *Outcome) { o.Err, o.Status = "", -1 },
	"status 2":                    func(o *Outcome) { o.Err, o.Status = "", 2 },
	"remaining + 1":               func(o *Outcome) { o.Remaining++ },
	"remaining - 1":               func(o *Outcome) { o.Remaining-- },
	"retry_after + 1":             func(o *Outcome) { o.RetryAfterNs++ },
	"retry_after - 1":             func(o *Outcome) { o.RetryAfterNs-- },
	"retry_after + 1 s, status 0": func(o *Outcome) { o.Err, o.Status, o.RetryAfterNs = "", 0, o.RetryAfterNs+1e9 },
	"reset_after + 1":             func(o *Outcome) { o.ResetAfterNs++ },
	"reset_after - 1":             func(o *Outcome) { o.ResetAfterNs-- },
	"an error":                    func(o *Outcome) { o.Err, o.Verdict = "ERR of nothing", Verdict{} },
	"an error beside a reply":     func(o *Outcome) { o.Err, o.Status = o.Err+"ERR", 1 },
	"an error that says more":     func(o *Outcome) { o.Err += "!" },
	"state + 256":                 func(o *Outcome) { o.State.Value += 256 },
	"state - 256":                 func(o *Outcome) { o.State.Value -= 256 },
	"state + 1":                   func(o *Outcome) { o.State.Value++ },
	"a state of another period":   func(o *Outcome) { o.State.PeriodNs++ },
	"another credit":              func(o *Outcome) { o.State.Credit += "1" },
	"another last":                func(o *Outcome) { o.State.Last++ },
	"no state":                    func(o *Outcome) { o.State = State{} },
	"ttl + 1 s":                   func(o *Outcome) { o.TTLMs += 1000 },
	"ttl - 1 s":                   func(o *Outcome) { o.TTLMs -= 1000 },
	"ttl - 1 ms":                  func(o *Outcome) { o.TTLMs-- },
	"no ttl":                      func(o *Outcome) { o.TTLMs = -1 },
	"a ttl above the right one":   func(o *Outcome) { o.TTLMs, o.TTLSlackMs = o.TTLMs+1, 5 },
	"a ttl below the right one":   func(o *Outcome) { o.TTLMs, o.TTLSlackMs = o.TTLMs-6, 5 },
}

// columns are those of the table that count got, where right is right.
func (s *scene) columns(script Script, right, got *Outcome) Tally {
	t := Tally{Differences: 1}
	admits := s.kind != failed && got.Status == 1
	switch {
	case s.kind == failed && got.Err == right.Err+"!":
	case got.Err != right.Err || got.Verdict != right.Verdict:
		t.WrongReplies = 1
	}
	if admits && right.Status != 1 {
		t.Early = s.early
	}
	if s.kind != failed && got.Status == 0 && got.Err == "" {
		moreNs := got.RetryAfterNs - max(right.RetryAfterNs, 0)
		t.LatestNs = max(s.lateNs+moreNs, 0)
		// asked again the exact limiter says the same, of a wait that is one
		if script != GCRAV1 && moreNs != 0 && got.RetryAfterNs > 0 {
			t.WrongReplies++
		}
	}
	// a key that was written without an admission, or the reverse, has neither what it had nor
	// what it should have
	if got.State != right.State || (s.kind == wrote && !admits) || admits && (s.kind == refused || s.kind == never) {
		t.WrongStates = 1
		if s.moves && admits != (s.kind == wrote) {
			t.WrongTTLs = 1
		}
	}
	if got.TTLMs != right.TTLMs {
		t.WrongTTLs = 1
	}
	return t
}

func TestJudgeCountsEachWrongAnswer(t *testing.T) {
	for _, s := range singles {
		for _, scene := range scenes[s.Script] {
			trace, err := ParseTrace(string(s.Script) + " " + scene.calls)
			if err != nil {
				t.Fatal(err)
			}
			last := len(trace.Calls) - 1
			right := trace.Native[last]
			tally := Judge(trace, append([]Outcome(nil), trace.Native...))
			if !tally.Sound() || tally.Decisions != int64(len(trace.Calls)) || tally.LatestNs > s.BoundNs {
				t.Errorf("%s, %s: the right answers are %+v", s.Script, scene.name, tally)
			}
			if is := right.Err != ""; is != (scene.kind == failed) ||
				!is && right.Status != map[int]int64{wrote: 1, looked: 1, never: -1}[scene.kind] {
				t.Errorf("%s, %s: the last call comes to %+v", s.Script, scene.name, right)
			}
			for name, change := range wrongs {
				outcomes := append([]Outcome(nil), trace.Native...)
				got := &outcomes[last]
				change(got)
				if *got == right {
					continue
				}
				tally := Judge(trace, outcomes)
				want := scene.columns(s.Script, &right, got)
				want.Decisions, want.Admitted = int64(len(trace.Calls)), 0
				for _, o := range outcomes {
					if o.Status == 1 {
						want.Admitted++
					}
				}
				want.Broken, want.BrokenAt = tally.Broken, last
				if tally != want || tally.Sound() {
					t.Errorf("%s, %s, %s: %+v is counted as\n%+v, want\n%+v", s.Script, scene.name, name, *got, tally, want)
				}
				what := "outcome" // differs from native
				for _, column := range []struct {
					count int64
					word  string
				}{{want.WrongTTLs, "ttl"}, {want.WrongStates, "state"}, {want.WrongReplies, "reply"}, {want.Early, "early"}} {
					if column.count > 0 {
						what = column.word
					}
				}
				if !strings.Contains(tally.Broken, what) || !strings.HasPrefix(tally.Broken, "call ") {
					t.Errorf("%s, %s, %s: %q does not name the %s", s.Script, scene.name, name, tally.Broken, what)
				}
			}
		}
	}
}
