package precision

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Calls of the scenes. The first key is 3 a second with bursts of 2, on a whole second.
const (
	oneFits      = "0:3,1000000000,2,1,1780000080000000000"
	bothFit      = oneFits + "+1:9,1000000000,sliding,2,1780000080000000000"
	allCharged   = "0:3,1000000000,2,2,1780000080000000000+1:9,1000000000,sliding,9,1780000080000000000"
	oneIsFull    = "1:9,1000000000,fixed,9,1780000080000000000"
	firstRefused = "0:3,1000000000,2,2,1780000080000000000"
)

// limitsWrong is an answer that is wrong in one way, and what it counts as.
type limitsWrong struct {
	scene  string
	what   string
	change func(o *LimitsOutcome)
	want   Tally
}

// limitsScenes are traces by name.
var limitsScenes = map[string]string{
	"charged":          bothFit,
	"refused":          firstRefused + " " + bothFit,
	"refused, tied":    allCharged + " " + bothFit,
	"never":            "0:3,1000000000,2,3,1780000080000000000+1:9,1000000000,sliding,2,1780000080000000000",
	"looked":           oneFits + " 0:3,1000000000,2,0,1780000080000000000+1:9,1000000000,sliding,0,1780000080000000000",
	"given back":       firstRefused + " 0:3,1000000000,2,-1,1780000080000000000/1",
	"over-used":        firstRefused + " 0:3,1000000000,2,1,1780000080000000000/1",
	"worth nothing":    firstRefused + " 0:3,1000000000,2,-2,1780000082000000000/1",
	"window back":      oneIsFull + " 1:9,1000000000,fixed,-4,1780000080000000000/1",
	"beside a refusal": firstRefused + " " + oneIsFull + " 0:3,1000000000,2,-1,1780000080000000000/1+1:9,1000000000,fixed,1,1780000080000000000",
	"credit":           firstRefused + " 0:3,1000000000,2,-1,1780000080000000000/1 0:3,1000000000,2,1,1780000080000000000",
	"alone":            "~" + oneFits,
	"late clock":       oneFits + " 0:3,1000000000,2,1,1780000080000000000+1:9,1000000000,fixed,9,1780000080000000000 0:3,1000000000,2,-1,4611686018427387904/2+1:9,1000000000,fixed,1,4611686018427387904",
	"other period":     "1:9,1000000000,fixed,1,1780000080000000000 0:3,1000000000,2,1,1780000080000000000+1:9,2000000000,fixed,1,1780000080000000000",
	"counts for a TAT": "0:9,1000000000,fixed,1,1780000080000000000 " + oneFits,
	"a TAT for counts": oneFits + " 0:9,1000000000,fixed,1,1780000080000000000",
	"foreign, alone":   "0:9,1000000000,fixed,1,1780000080000000000 ~" + oneFits,
	"late, alone":      oneFits + " ~0:3,1000000000,2,1,9223372036854775807",
}

// errorOf is how the error of a scene begins.
var errorOf = map[string]string{
	"late clock":       "BADARG limits_v1: key 2: now_ns",
	"other period":     "BADSTATE limits_v1: key 2: it holds counts of another period",
	"counts for a TAT": "BADSTATE limits_v1: key 1: it holds something else than a decimal TAT",
	"a TAT for counts": "BADSTATE limits_v1: key 1: it holds something else than 12 bytes",
	"foreign, alone":   "BADSTATE gcra_v2: the key holds something else",
	"late, alone":      "BADARG gcra_v2: now_ns",
}

// limitsWrongs are the answers that are wrong in one way. Each differs from the native port's.
var limitsWrongs = []limitsWrong{
	{"charged", "status 0", func(o *LimitsOutcome) { o.Status = 0 }, Tally{WrongReplies: 3, WrongStates: 2, WrongTTLs: 2}},
	{"charged", "status 2", func(o *LimitsOutcome) { o.Status = 2 }, Tally{WrongReplies: 3, WrongStates: 2, WrongTTLs: 2}},
	{"charged", "retry 1", func(o *LimitsOutcome) { o.RetryAfterNs = 1 }, Tally{WrongReplies: 1}},
	{"charged", "key 1, remaining", func(o *LimitsOutcome) { o.Keys[0].Remaining++ }, Tally{WrongReplies: 1}},
	{"charged", "key 2, remaining", func(o *LimitsOutcome) { o.Keys[1].Remaining-- }, Tally{WrongReplies: 1}},
	{"charged", "key 2, reset", func(o *LimitsOutcome) { o.Keys[1].ResetAfterNs++ }, Tally{WrongReplies: 1}},
	{"charged", "key 2, status", func(o *LimitsOutcome) { o.Keys[1].Status = 0 }, Tally{WrongReplies: 1}},
	{"charged", "key 1, an error", func(o *LimitsOutcome) { o.Keys[0].Err = "ERR" }, Tally{WrongReplies: 1}},
	{"charged", "key 1, another receipt", func(o *LimitsOutcome) { o.Keys[0].Receipt = "1780000080333333335" }, Tally{WrongReplies: 1}},
	{"charged", "key 1, no receipt", func(o *LimitsOutcome) { o.Keys[0].Receipt = "" }, Tally{WrongReplies: 1}},
	{"charged", "key 2, another receipt", func(o *LimitsOutcome) { o.Keys[1].Receipt += "0" }, Tally{WrongReplies: 1}},
	{"charged", "key 1, the TAT + 1", func(o *LimitsOutcome) { o.Keys[0].State.Value++ }, Tally{WrongStates: 1}},
	{"charged", "key 1, the TAT - 1", func(o *LimitsOutcome) { o.Keys[0].State.Value-- }, Tally{WrongStates: 1, Early: 1}},
	{"charged", "key 2, no state", func(o *LimitsOutcome) { o.Keys[1].State = State{} }, Tally{WrongStates: 1}},
	{"charged", "key 1, ttl", func(o *LimitsOutcome) { o.Keys[0].TTLMs -= 1000 }, Tally{WrongTTLs: 1}},
	{"charged", "key 2, ttl", func(o *LimitsOutcome) { o.Keys[1].TTLMs++ }, Tally{WrongTTLs: 1}},
	{"charged", "an error", func(o *LimitsOutcome) { *o = LimitsOutcome{Err: "ERR of nothing", Keys: make([]KeyOutcome, 2)} }, Tally{WrongReplies: 1}},
	{"charged", "an error that wrote", func(o *LimitsOutcome) {
		*o = LimitsOutcome{Err: "ERR of nothing", Keys: []KeyOutcome{{Outcome: Outcome{State: o.Keys[0].State, TTLMs: o.Keys[0].TTLMs}}, {}}}
	}, Tally{WrongReplies: 1, WrongStates: 1, WrongTTLs: 1}},

	{"refused", "status 1", func(o *LimitsOutcome) { o.Status = 1 }, Tally{WrongReplies: 4, WrongStates: 2, WrongTTLs: 2, Early: 2}},
	{"refused", "status -1", func(o *LimitsOutcome) { o.Status = -1 }, Tally{WrongReplies: 1}},
	{"refused", "retry + 1", func(o *LimitsOutcome) { o.RetryAfterNs++ }, Tally{WrongReplies: 2, LatestNs: 1}},
	{"refused", "retry - 1", func(o *LimitsOutcome) { o.RetryAfterNs-- }, Tally{WrongReplies: 2}},
	{"refused", "key 1, retry + 1", func(o *LimitsOutcome) { o.Keys[0].RetryAfterNs++ }, Tally{WrongReplies: 2}},
	{"refused", "both retries + 1", func(o *LimitsOutcome) { o.RetryAfterNs++; o.Keys[0].RetryAfterNs++ }, Tally{WrongReplies: 2, LatestNs: 1}},
	{"refused", "both retries - 1", func(o *LimitsOutcome) { o.RetryAfterNs--; o.Keys[0].RetryAfterNs-- }, Tally{WrongReplies: 2}},
	{"refused", "key 1, status", func(o *LimitsOutcome) { o.Keys[0].Status = 1 }, Tally{WrongReplies: 1}},
	{"refused", "key 2, charged", func(o *LimitsOutcome) { o.Keys[1].Remaining -= 2 }, Tally{WrongReplies: 1}},
	{"refused", "key 2, reset as if charged", func(o *LimitsOutcome) { o.Keys[1].ResetAfterNs = 2e9 }, Tally{WrongReplies: 1}},
	{"refused", "key 2, a receipt", func(o *LimitsOutcome) { o.Keys[1].Receipt = "1780000080" }, Tally{WrongReplies: 1}},
	{"refused", "key 2, written", func(o *LimitsOutcome) {
		o.Keys[1].State, o.Keys[1].TTLMs = newCounts(Counts{1780000080, 0, 2}, 1e9), 62000
	}, Tally{WrongStates: 1, WrongTTLs: 1}},
	{"refused", "key 1, the TAT", func(o *LimitsOutcome) { o.Keys[0].State.Value++ }, Tally{WrongStates: 1}},
	{"refused", "key 1, the ttl", func(o *LimitsOutcome) { o.Keys[0].TTLMs++ }, Tally{WrongTTLs: 1}},
	{"refused, tied", "the shorter wait", func(o *LimitsOutcome) { o.RetryAfterNs = o.Keys[0].RetryAfterNs }, Tally{WrongReplies: 2}},
	{"never", "status 0", func(o *LimitsOutcome) { o.Status = 0 }, Tally{WrongReplies: 1}},
	{"never", "status 0 and a wait", func(o *LimitsOutcome) { o.Status, o.RetryAfterNs = 0, 1e9 }, Tally{WrongReplies: 2, LatestNs: 1e9}},
	{"never", "retry 0", func(o *LimitsOutcome) { o.RetryAfterNs = 0 }, Tally{WrongReplies: 1}},
	{"looked", "a receipt", func(o *LimitsOutcome) { o.Keys[0].Receipt = "1780000080333333334" }, Tally{WrongReplies: 1}},
	{"looked", "written", func(o *LimitsOutcome) { o.Keys[0].State.Value++ }, Tally{WrongStates: 1}},

	{"given back", "status 0", func(o *LimitsOutcome) { o.Keys[0].Status = 0 }, Tally{WrongReplies: 1}},
	{"given back", "another receipt", func(o *LimitsOutcome) { o.Keys[0].Receipt = "1780000080333333334 333333334" }, Tally{WrongReplies: 1}},
	{"given back", "more", func(o *LimitsOutcome) { o.Keys[0].State.Value-- }, Tally{WrongStates: 1, Early: 1}},
	{"given back", "less", func(o *LimitsOutcome) { o.Keys[0].State.Value++ }, Tally{WrongStates: 1}},
	{"given back", "another credit", func(o *LimitsOutcome) { o.Keys[0].State.Credit = "333333335" }, Tally{WrongStates: 1}},
	{"given back", "another last", func(o *LimitsOutcome) { o.Keys[0].State.Last++ }, Tally{WrongStates: 1}},
	{"given back", "remaining", func(o *LimitsOutcome) { o.Keys[0].Remaining++ }, Tally{WrongReplies: 1}},
	{"given back", "reset", func(o *LimitsOutcome) { o.Keys[0].ResetAfterNs-- }, Tally{WrongReplies: 1}},
	{"given back", "ttl by the TAT", func(o *LimitsOutcome) { o.Keys[0].TTLMs -= 1000 }, Tally{WrongTTLs: 1}},
	{"given back", "not at all", func(o *LimitsOutcome) {
		o.Keys[0].State = State{Exists: true, Value: 1780000080666666668}
	}, Tally{WrongStates: 1}},
	{"over-used", "not charged", func(o *LimitsOutcome) { o.Keys[0].State.Value -= 333333334 }, Tally{WrongStates: 1, WrongTTLs: 0, Early: 1}},
	{"over-used", "remaining", func(o *LimitsOutcome) { o.Keys[0].Remaining++ }, Tally{WrongReplies: 1}},
	{"worth nothing", "credited", func(o *LimitsOutcome) { o.Keys[0].State.Credit, o.Keys[0].State.Last = "1", 1 }, Tally{WrongStates: 1}},
	{"window back", "5 units", func(o *LimitsOutcome) { o.Keys[0].State.Value-- }, Tally{WrongStates: 1}},
	{"window back", "remaining", func(o *LimitsOutcome) { o.Keys[0].Remaining-- }, Tally{WrongReplies: 1}},
	{"window back", "ttl", func(o *LimitsOutcome) { o.Keys[0].TTLMs -= 1000 }, Tally{WrongTTLs: 1}},
	{"beside a refusal", "not settled", func(o *LimitsOutcome) {
		o.Keys[0].State = State{Exists: true, Value: 1780000080666666668}
	}, Tally{WrongStates: 1}},
	{"credit", "the receipt without it", func(o *LimitsOutcome) { o.Keys[0].Receipt = "1780000080666666668" }, Tally{WrongReplies: 1}},
	{"alone", "a receipt", func(o *LimitsOutcome) { o.Keys[0].Receipt = "1780000080333333334" }, Tally{WrongReplies: 1}},
	{"alone", "remaining", func(o *LimitsOutcome) { o.Keys[0].Remaining++ }, Tally{WrongReplies: 1}},

	{"late clock", "settled", func(o *LimitsOutcome) { o.Keys[0].State.Value++ }, Tally{WrongStates: 1}},
	{"other period", "charged beside it", func(o *LimitsOutcome) {
		o.Keys[0].State, o.Keys[0].TTLMs = State{Exists: true, Value: 1780000080333333334}, 61000
	}, Tally{WrongStates: 1, WrongTTLs: 1}},
	{"other period", "a status", func(o *LimitsOutcome) { o.Status = -1 }, Tally{WrongReplies: 1}},
	{"other period", "a retry", func(o *LimitsOutcome) { o.RetryAfterNs = 5 }, Tally{WrongReplies: 1}},
	{"other period", "a reply of a key", func(o *LimitsOutcome) { o.Keys[0].Remaining = 1 }, Tally{WrongReplies: 1}},
	{"other period", "a receipt of a key", func(o *LimitsOutcome) { o.Keys[0].Receipt = "1" }, Tally{WrongReplies: 1}},
	{"other period", "an error of a key", func(o *LimitsOutcome) { o.Keys[0].Err = "ERR" }, Tally{WrongReplies: 1}},
	{"other period", "a ttl", func(o *LimitsOutcome) { o.Keys[1].TTLMs-- }, Tally{WrongTTLs: 1}},
}

// limitsTrace is the trace of a scene.
func limitsTrace(t *testing.T, name string) *LimitsTrace {
	t.Helper()
	trace, err := ParseLimitsTrace("limits_v1 " + limitsScenes[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return trace
}

// copied is the outcomes, to be changed.
func (t *LimitsTrace) copied() []LimitsOutcome {
	outcomes := slices.Clone(t.Native)
	for i := range outcomes {
		outcomes[i].Keys = slices.Clone(outcomes[i].Keys)
	}
	return outcomes
}

// The judge of limits_v1 counts each wrong answer in the columns where it is wrong, in no
// other, and names it.
func TestJudgeLimitsCountsEachWrongAnswer(t *testing.T) {
	tried := map[string]bool{}
	for _, w := range limitsWrongs {
		tried[w.scene] = true
		trace := limitsTrace(t, w.scene)
		outcomes := trace.copied()
		last := len(outcomes) - 1
		w.change(&outcomes[last])
		got := JudgeLimits(trace, outcomes)
		w.want.Differences, w.want.Decisions = 1, int64(len(outcomes))
		for _, o := range outcomes {
			if o.Status == 1 {
				w.want.Admitted++
			}
		}
		w.want.Broken, w.want.BrokenAt = got.Broken, last
		if got != w.want || got.Broken == "" {
			t.Errorf("%s, %s: counted as\n%+v, want\n%+v", w.scene, w.what, got, w.want)
		}
		if !strings.HasPrefix(got.Broken, fmt.Sprintf("call %d, %s: ", last, &trace.Calls[last])) {
			t.Errorf("%s, %s: %q does not name the call", w.scene, w.what, got.Broken)
		}
		if key, _, named := strings.Cut(w.what, ","); named && !strings.Contains(got.Broken, ": "+key+": ") && !strings.Contains(got.Broken, "longest") {
			t.Errorf("%s, %s: %q does not name the key", w.scene, w.what, got.Broken)
		}
	}
	// The right answers, and errors that are others' or go on.
	for name := range limitsScenes {
		trace := limitsTrace(t, name)
		last := len(trace.Native) - 1
		if tally := JudgeLimits(trace, trace.copied()); !tally.Sound() || tally.LatestNs != 0 {
			t.Errorf("%s: the right answers are %+v", name, tally)
		}
		due, isError := errorOf[name]
		if got := trace.Native[last].Err; isError != (got != "") || !strings.HasPrefix(got, due) {
			t.Errorf("%s: the error is %q, want %q", name, got, due)
		}
		if !isError {
			if !tried[name] {
				t.Errorf("%s: no wrong answer is tried", name)
			}
			continue
		}
		for _, change := range []func(text string) string{
			func(string) string { return "" },
			func(text string) string { return text[:len(due)-1] + "?" },
			func(text string) string { return "x" + text },
		} {
			outcomes := trace.copied()
			o := &outcomes[last]
			o.Err = change(o.Err)
			if tally := JudgeLimits(trace, outcomes); tally.WrongReplies != 1 || tally.Differences != 1 {
				t.Errorf("%s: the error %q is counted as %+v", name, o.Err, tally)
			}
		}
		outcomes := trace.copied()
		outcomes[last].Err += "!"
		if tally := JudgeLimits(trace, outcomes); tally.WrongReplies != 0 || tally.Differences != 1 {
			t.Errorf("%s: an error that goes on is counted as %+v", name, tally)
		}
	}
}

// The wait of all is held against each limiter, at the instant that it leads to.
func TestPromiseOfSeveralLimits(t *testing.T) {
	const text = "limits_v1 0:1,1000,1,1,1780000080000000000+1:1,3000,1,1,1780000080000000000 0:1,1000,1,1,1780000080000000000+1:1,3000,1,1,1780000080000000000"
	for retryNs, want := range map[int64]int64{2999: 1, 3000: 0, 3001: 1, 1000: 1, 0: 0} {
		trace, err := ParseLimitsTrace(text)
		if err != nil {
			t.Fatal(err)
		}
		l := NewLimitsClaims()
		l.Pass(&trace.Calls[0])
		l.call = 1
		o := trace.copied()[1]
		l.step(&trace.Calls[1], &o)
		if !l.Sound() {
			t.Fatal(l.Broken)
		}
		o.RetryAfterNs = retryNs
		if l.promise(&trace.Calls[1], &o); l.WrongReplies != want {
			t.Errorf("retry_after %d: %d objections, want %d", retryNs, l.WrongReplies, want)
		}
	}
}

// The limiter fed with what was used counts while it is sure, and until then.
func TestUsedIsSure(t *testing.T) {
	const paid = "limits_v1 0:1,1000,9,5,1780000080000000000 "
	for text, sure := range map[string]bool{
		paid + "0:1,1000,9,-5,1780000080000000000/1":               true,
		paid + "0:1,1000,9,1,1780000080000000000":                  true,
		paid + "0:1,1000,9,1,1780000079999999999":                  false, // a step back
		paid + "!0:1,1000,9,1,1780000080000000000":                 false,
		paid + "0:1,1000,9,4503599627370496,1780000080000000000/1": false, // the debt is cut
		paid + "0:1,1000,9,4503599627,1780000080000000000/1":       true,
		paid + "~0:1,1000,9,1,1780000080000000000":                 true,
		paid + "0:1,1000,9,1,1780000080000000000/1":                true,
	} {
		trace, err := ParseLimitsTrace(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		l := NewLimitsClaims()
		for i := range trace.Calls {
			l.Call(&trace.Calls[i], &trace.Native[i])
		}
		if k := l.keys[0]; k.sure != sure || !l.Sound() {
			t.Errorf("%s: sure %v, want %v; %s", text, k.sure, sure, l.Broken)
		} else if used := k.used.TAT(); sure && used > k.exact.Value {
			t.Errorf("%s: %d was used, and %d is kept", text, used, k.exact.Value)
		}
	}
}

// What no trace of limits_v1 may say.
func TestParseLimitsTraceRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "a trace of limits_v1",
		"limits_v1":              "a trace of limits_v1",
		"gcra_v2 0:1,1000,9,1,0": "a trace of limits_v1",
		"limits_v1 0:1,1000,9,1,0+0:1,1000,9,1,0":                            "not all different",
		"limits_v1 32:1,1000,9,1,0":                                          "below 32",
		"limits_v1 -1:1,1000,9,1,0":                                          "below 32",
		"limits_v1 0:1,1000,9,1,0+1:1,1000,9,1,5":                            "one clock",
		"limits_v1 0:1,1000,9,-1,0":                                          "cost is not",
		"limits_v1 0:1,1000,9,4503599627370497,0":                            "cost is not",
		"limits_v1 0:1,1000,9,1,0 0:1,1000,9,-2,0/1":                         "gives back more than the 1 units",
		"limits_v1 0:1,1000,9,1,0 0:1,1000,9,1,0/2":                          "was not charged",
		"limits_v1 0:1,1000,9,1,0 1:1,1000,9,-1,0/1":                         "was not charged",
		"limits_v1 0:1,1000,9,0,0 0:1,1000,9,-0,0/1":                         "was not charged",
		"limits_v1 0:1,1000,9,1,0 ~0:1,1000,9,0,0/1":                         "asked of one",
		"limits_v1 ~0:1,1000,9,1,0+1:1,1000,9,1,0":                           "asked of one",
		"limits_v1 0:1,1000,9,1,0/x":                                         "invalid syntax",
		"limits_v1 0:1,1000,9,1,0/-1":                                        "no call",
		"limits_v1 x:1,1000,9,1,0":                                           "invalid syntax",
		"limits_v1 0:1,1000,9,1":                                             "4 values",
		"limits_v1 0:0,1000,9,1,0":                                           "amount",
		"limits_v1 0:1,1000,9,1,0@1780000080000000000:5:1780000080000000000": "credit itself",
	} {
		if _, err := ParseLimitsTrace(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A trace that breaks is brought down to the calls and the keys that show it.
func TestShrinkLimits(t *testing.T) {
	d := canned{NewNative(), func(_ Script, _ string, calls []Call, outcomes []Outcome) {
		for i := range calls {
			if outcomes[i].State.Credit != "" {
				outcomes[i].State.Last++
			}
		}
	}}
	trace := NewLimitsTrace(1, 0)
	answers, err := trace.Play(d, "k")
	if err != nil {
		t.Fatal(err)
	}
	if tally := answers.Judge(); tally.Sound() {
		t.Fatal("nothing is broken")
	}
	small, broken := trace.Shrink(d)
	last := small.Len() - 1
	if last < 1 || last > 2 || !strings.HasPrefix(broken, fmt.Sprintf("call %d, ", last)) || !strings.HasSuffix(small.String(), fmt.Sprintf("/%d", last)) || strings.Contains(small.String(), "+") {
		t.Errorf("%d calls, %s\n%s", small.Len(), broken, small)
	}
	if again, broken := trace.Shrink(NewNative()); again != Trial(trace) || broken != "" {
		t.Errorf("a sound trace became %d calls, %q", again.Len(), broken)
	}
}

// An answer that is missing stops the run.
func TestPlayLimitsRefusesADriverThatDoesNothing(t *testing.T) {
	trace := limitsTrace(t, "refused")
	broke := errors.New("broke off")
	for want, d := range map[string]Driver{
		"call 0 of 2": idleOnLimits{NewNative(), 0, nil},
		"call 1 of 2": idleOnLimits{NewNative(), 1, nil},
		"broke off":   idleOnLimits{NewNative(), 2, broke},
		"cannot":      failing{NewNative(), nil, errors.New("cannot")},
	} {
		if _, err := trace.Play(d, "k"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// idleOnLimits makes only the first calls.
type idleOnLimits struct {
	*Native
	fill int
	err  error
}

func (d idleOnLimits) PlayLimits(key string, calls []LimitsCall, outcomes []LimitsOutcome) error {
	return errors.Join(d.err, d.Native.PlayLimits(key, calls[:d.fill], outcomes[:d.fill]))
}
