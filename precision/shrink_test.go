package precision

import (
	"reflect"
	"strings"
	"testing"
)

// faulty is the native port with a fault: after a refusal, the next call of cost 2 is
// said to be admitted.
type faulty struct{ *Native }

func (f faulty) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	if err := f.Native.Play(script, key, calls, outcomes); err != nil {
		return err
	}
	for i := range outcomes {
		if i > 0 && outcomes[i-1].Status == 0 && calls[i].Cost == 2 {
			outcomes[i].Status = 1
		}
	}
	return nil
}

func TestShrinkFindsTheSmallestTrace(t *testing.T) {
	var calls []Call
	for i := range int64(200) {
		c := gcra(10, 1000, 10)
		c.Cost, c.NowNs = 1, epoch+i*ms
		if i == 150 {
			c.Cost = 2
		}
		calls = append(calls, c)
	}
	d := faulty{NewNative()}
	small, broken := Shrink(d, NewTraceOf(GCRAV2, calls))
	// ten units fill the burst, the eleventh is refused, and then comes the fault
	if len(small.Calls) != 12 || small.Calls[11].Cost != 2 || broken == "" {
		t.Errorf("%d calls, %q: %v", len(small.Calls), broken, small)
	}
	whole, broken := Shrink(NewNative(), NewTraceOf(GCRAV2, calls))
	if len(whole.Calls) != 200 || broken != "" {
		t.Errorf("a sound trace became %d calls, %q", len(whole.Calls), broken)
	}
}

func TestTraceAsText(t *testing.T) {
	for index := range limitsStyles {
		trace := NewLimitsTrace(3, index)
		again, err := ReadTrial(trace.String())
		if err != nil {
			t.Errorf("limits_v1, trace %d: %v", index, err)
			continue
		}
		trace.asks, trace.keys, again.(*LimitsTrace).keys = nil, nil, nil // room
		if !reflect.DeepEqual(again, trace) {
			t.Errorf("limits_v1, trace %d: it reads as another", index)
		}
	}
	for _, s := range singles {
		for index := range len(gcraStyles[GCRAV2]) { // callers' clocks, and the server's
			trace := NewTrace(s.Script, 3, index)
			again, err := ParseTrace(trace.String())
			if err != nil || !reflect.DeepEqual(again, trace) {
				t.Errorf("%s, trace %d: %v", s.Script, index, err)
			}
		}
	}
	for text, want := range map[string]string{
		"":                                 "a trace is",
		"gcra_v2":                          "a trace is",
		"gcra_v9 1,1,1,1,1":                "no script",
		"gcra_v2 1,1,1,1":                  "4 values",
		"gcra_v2 1,1,x,1,1":                "invalid syntax",
		"window_v1 1,1,both,1,1":           "mode",
		"gcra_v2 1,0,1,1,1":                "period_ns",
		"gcra_v1 2,1,1,1,1":                "amount",
		"gcra_v1 1,1000,4503599627371,1,1": "burst", // one more than 2^52 / 1000
		"gcra_v2 1,1,1,-1,1":               "cost",
		"gcra_v2 1,1,1,1,,5":               "whole number of us",
		"gcra_v2 1,1,1,1,,0":               "must be given",
		"gcra_v2 1,1,1,1,-5":               "now_ns",
		"window_v1 0,1,fixed,1,1":          "amount",
		"gcra_v2 1,1,1,1,5@9":              "no TAT with credit",
		"window_v1 1,1,fixed,1,5@9:1:9":    "no TAT with credit",
		"gcra_v2 1,1,1,1,5@9:1:8":          "before the TAT",
		"gcra_v2 1,1,1,1,5@4:1:4":          "or the clock",
	} {
		if _, err := ParseTrace(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
