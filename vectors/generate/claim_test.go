package generate

import (
	"encoding/hex"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/precision"
)

// singles are the scripts of one key.
var singles = []precision.Script{precision.GCRAV1, precision.GCRAV2, precision.WindowV1}

// asked is a key and the calls on it: what the last of them comes to, wrong answers to it
// must not be written down.
type asked struct {
	name  string
	key   held
	calls [][]string
	want  string // the error, or the status
}

func askedOf(script precision.Script) []asked {
	const now, later = "1780000080000000001", "1780000080010000001"
	if script.IsWindow() {
		limit := func(cost, now string) []string { return []string{"3", "1000000000", "sliding", cost, now} }
		return []asked{
			{"first", none, [][]string{limit("1", now)}, "1"},
			{"second", none, [][]string{limit("1", now), limit("2", later)}, "1"},
			{"refused", none, [][]string{limit("3", now), limit("1", later)}, "0"},
			{"look", none, [][]string{limit("3", now), limit("0", later)}, "1"},
			{"never", none, [][]string{limit("1", now), limit("4", later)}, "-1"},
			{"on counts", holdingCounts(1780000080, 0, 1, second).expiring(), [][]string{limit("1", now)}, "1"},
			{"refused on counts", holdingCounts(1780000080, 0, 3, second), [][]string{limit("1", now)}, "0"},
			{"bad argument", holdingCounts(1780000080, 0, 3, second).expiring(), [][]string{limit("x", now)}, "BADARG"},
			{"bad clock", none, [][]string{limit("1", now), limit("1", "4611686018427387904")}, "BADARG"},
			{"another period's", holdingCounts(1780000080, 0, 3, minute), [][]string{limit("1", now)}, "BADSTATE"},
			{"a text", holding("hello").expiring(), [][]string{limit("1", now)}, "BADSTATE"},
			{"a list", list.expiring(), [][]string{limit("1", now)}, "WRONGTYPE"},
		}
	}
	limit := func(cost, now string) []string { return []string{"4", "1024000000", "2", cost, now} } // on gcra_v1's grid
	cases := []asked{
		{"first", none, [][]string{limit("1", now)}, "1"},
		{"second", none, [][]string{limit("1", now), limit("1", later)}, "1"},
		{"refused", none, [][]string{limit("2", now), limit("1", later)}, "0"},
		{"look", none, [][]string{limit("2", now), limit("0", later)}, "1"},
		{"never", none, [][]string{limit("1", now), limit("3", later)}, "-1"},
		{"on a TAT", tat(epoch).expiring(), [][]string{limit("1", now)}, "1"},
		{"refused on a TAT", tat(epoch + second), [][]string{limit("1", now)}, "0"},
		{"bad argument", tat(epoch).expiring(), [][]string{limit("x", now)}, "BADARG"},
		{"bad clock", none, [][]string{limit("1", now), limit("1", "9223372036854775807")}, "BADARG"},
		{"a text", holding("hello").expiring(), [][]string{limit("1", now)}, "BADSTATE"},
		{"a list", list.expiring(), [][]string{limit("1", now)}, "WRONGTYPE"},
	}
	if script == precision.GCRAV1 {
		return append(cases, asked{"credit", holding("1780000080000000000 5 1780000080000000000"), [][]string{limit("1", now)}, "BADSTATE"})
	}
	return append(cases, asked{"credit", holding("1780000080000000000 5 1780000080000000000"), [][]string{limit("1", now)}, "1"})
}

// answerOf plays the case on the native port, and returns the truth before its last call, and
// the answer to that.
func answerOf(t *testing.T, script precision.Script, c asked) (*truth, answer) {
	t.Helper()
	p := NewNativePort(script)
	if err := p.Hold([]Key{c.key.key}); err != nil {
		t.Fatal(err)
	}
	o := newTruth(script, usual, []Key{c.key.key}, epoch)
	if c.key.expire != "" {
		if err := errors.Join(p.Expire([]string{c.key.expire}), o.expire([]string{c.key.expire})); err != nil {
			t.Fatal(err)
		}
	}
	last := len(c.calls) - 1
	for _, argv := range c.calls[:last] {
		a, err := ask(p, nil, argv)
		if err == nil {
			_, err = o.step(argv, a, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := ask(p, nil, c.calls[last])
	if err != nil {
		t.Fatal(err)
	}
	return o, a
}

// A right answer becomes a step; one that is changed anywhere is refused.
func TestStepRefusesEachWrongAnswer(t *testing.T) {
	add := func(i int, n int64) func(*answer) {
		return func(a *answer) {
			if a.refused == "" {
				a.reply = slices.Clone(a.reply)
				v, _ := verdict(a.reply)
				a.reply[i] = decimal([]int64{v.Status, v.Remaining, v.RetryAfterNs, v.ResetAfterNs}[i] + n)
			}
		}
	}
	changes := map[string]func(a *answer){
		"status + 1": add(0, 1), "status - 1": add(0, -1), "remaining + 1": add(1, 1), "remaining - 1": add(1, -1),
		"retry_after + 1": add(2, 1), "retry_after - 1": add(2, -1), "reset_after + 1": add(3, 1), "reset_after - 1": add(3, -1),
		"three numbers": func(a *answer) { a.reply = a.reply[:max(len(a.reply)-1, 0)] },
		"five numbers": func(a *answer) {
			if a.reply != nil {
				a.reply = append(slices.Clone(a.reply), "0")
			}
		},
		"no number": func(a *answer) {
			if a.reply != nil {
				a.reply = append([]string{"x"}, a.reply[1:]...)
			}
		},
		"another error": func(a *answer) { a.refused = "ERR of nothing" },
		"no error": func(a *answer) {
			if a.refused != "" {
				a.refused, a.reply = "", []string{"1", "0", "0", "0"}
			}
		},
		"BADARG": func(a *answer) {
			if !strings.HasPrefix(a.refused, "BADARG") {
				a.refused = "BADARG gcra_v2: x"
			}
		},
		"no state": func(a *answer) { a.keys[0].state = "" },
		"another text": func(a *answer) {
			if a.keys[0].state != "" {
				last, _ := hex.DecodeString(a.keys[0].state)
				last[len(last)-1] ^= 1
				a.keys[0].state = hex.EncodeToString(last)
			}
		},
		"a text with more": func(a *answer) { a.keys[0].state += "30" },
		"a zero in front": func(a *answer) {
			if a.keys[0].state != "" {
				a.keys[0].state = "30" + a.keys[0].state
			}
		},
		"ttl + 1":    func(a *answer) { a.keys[0].ttlMs++ },
		"ttl - 1":    func(a *answer) { a.keys[0].ttlMs-- },
		"ttl + 1 s":  func(a *answer) { a.keys[0].ttlMs += 1000 },
		"no ttl":     func(a *answer) { a.keys[0].ttlMs = -1 },
		"no key":     func(a *answer) { a.keys[0].ttlMs = -2 },
		"ttl of 1 h": func(a *answer) { a.keys[0].ttlMs = 3_600_000 },
	}
	for _, script := range singles {
		for _, c := range askedOf(script) {
			argv := c.calls[len(c.calls)-1]
			o, right := answerOf(t, script, c)
			step, err := o.step(argv, right, true)
			word, _, _ := strings.Cut(step.Error, " ")
			if got := word + strings.Join(right.reply[:min(len(right.reply), 1)], ""); err != nil || got != c.want {
				t.Errorf("%s, %s: %q, want %q: %v", script, c.name, got, c.want, err)
			}
			if o.keys[0].list == false && o.keys[0].state != right.keys[0].state {
				t.Errorf("%s, %s: it holds %s, the key %s", script, c.name, o.keys[0].state, right.keys[0].state)
			}
			if o.keys[0].ttlMs() != right.keys[0].ttlMs {
				t.Errorf("%s, %s: the ttl is %d, the key's %d", script, c.name, o.keys[0].ttlMs(), right.keys[0].ttlMs)
			}
			for name, change := range changes {
				o, a := answerOf(t, script, c)
				change(&a)
				if reflect.DeepEqual(a, right) || c.key.key.Kind == "list" && a.keys[0].state != right.keys[0].state {
					continue // of a list nothing is known
				}
				if step, err := o.step(argv, a, true); err == nil {
					t.Errorf("%s, %s, %s: %+v is taken as %+v", script, c.name, name, a, step)
				}
			}
			// By a clock that runs a ttl may be shorter, but never longer.
			ttlMs := right.keys[0].ttlMs
			lives := ttlMs > 0
			for _, test := range []struct {
				ttlMs int64
				taken bool
			}{{ttlMs, true}, {ttlMs - 1, lives}, {ttlMs - 1000, lives}, {ttlMs - 11_000, lives && step.Error != ""}, {ttlMs + 1, false}} {
				o, a := answerOf(t, script, c)
				a.keys[0].ttlMs = test.ttlMs
				if _, err := o.step(argv, a, false); (err == nil) != test.taken {
					t.Errorf("%s, %s: ttl %d by a clock that runs, where %d is right: %v", script, c.name, test.ttlMs, ttlMs, err)
				}
			}
		}
	}
}

// A state is known by its bytes: others that read as the same number are refused.
func TestStepRefusesAnotherForm(t *testing.T) {
	c := askedOf(precision.GCRAV2)[0]
	o, a := answerOf(t, precision.GCRAV2, c)
	a.keys[0].state = "30" + a.keys[0].state
	if _, err := o.step(c.calls[0], a, true); err == nil || !strings.Contains(err.Error(), "is written as") {
		t.Errorf("got %v", err)
	}
	o, a = answerOf(t, precision.GCRAV2, c)
	a.reply = a.reply[:3]
	if _, err := o.step(c.calls[0], a, true); err == nil || !strings.Contains(err.Error(), "is not four numbers") {
		t.Errorf("got %v", err)
	}
}

// What the next call meets is what the last admission left, and its expiry.
func TestStepFollowsTheKey(t *testing.T) {
	for _, script := range singles {
		p := NewNativePort(script)
		if err := p.Hold([]Key{none.key}); err != nil {
			t.Fatal(err)
		}
		o := newTruth(script, usual, []Key{none.key}, epoch)
		third := "2"
		if script.IsWindow() {
			third = fixed
		}
		for i, nowNs := range []int64{epoch, epoch + 1, epoch + 1, epoch + 2*second, epoch + 2*second + 1} {
			argv := []string{"1", "1024000000", third, "1", decimal(nowNs)}
			if i > 2 {
				p.Set(nowNs)
				o.set(nowNs)
			}
			a, err := ask(p, nil, argv)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.step(argv, a, true); err != nil {
				t.Fatalf("%s, call %d: %v", script, i, err)
			}
			if k := o.keys[0]; k.state != a.keys[0].state || k.ttlMs() != a.keys[0].ttlMs || !k.exists {
				t.Errorf("%s, call %d: %s, %d ms; the key has %s, %d ms", script, i, k.state, k.ttlMs(), a.keys[0].state, a.keys[0].ttlMs)
			}
		}
		k := o.keys[0]
		if err := o.expire([]string{noExpiry}); err != nil || k.ttlMs() != -1 {
			t.Errorf("without expiry the ttl is %d: %v", k.ttlMs(), err)
		}
		if err := o.expire([]string{"1500"}); err != nil || k.ttlMs() != 1500 {
			t.Errorf("a ttl of 1500 is %d: %v", k.ttlMs(), err)
		}
		if err := o.expire([]string{""}); err != nil || k.ttlMs() != 1500 {
			t.Errorf("a ttl of 1500 that is left is %d: %v", k.ttlMs(), err)
		}
		if err := o.expire([]string{"x"}); err == nil {
			t.Error("an expiry of x is taken")
		}
		if ttlMs := newTruth(script, usual, []Key{none.key}, epoch).keys[0].ttlMs(); ttlMs != -2 {
			t.Errorf("a key that is not there has the ttl %d", ttlMs)
		}
	}
	// The claims' integers end at 2^63 - 1: a state beyond is taken for an earlier one.
	for text, want := range map[string]int64{"9223372036854775807": 0, "9223372036854775808": 1 << 62} {
		if o := newTruth(precision.GCRAV2, usual, []Key{holding(text).key}, epoch).keys[0]; o.earlierNs != want {
			t.Errorf("a TAT of %s is taken for one %d ns earlier, want %d", text, o.earlierNs, want)
		}
	}
}

// A key that lives through its last millisecond: PTTL is asked after the call, and is 0 then.
func TestStepInTheLastMillisecond(t *testing.T) {
	c := asked{"refused on a TAT", tat(epoch + second), [][]string{{"4", "1024000000", "2", "1", "1780000080000000001"}}, "0"}
	c.key.expire = "1"
	for ttlMs, taken := range map[int64]bool{1: true, 0: true, -1: false, 2: false} {
		o, a := answerOf(t, precision.GCRAV2, c)
		a.keys[0].ttlMs = ttlMs
		if _, err := o.step(c.calls[0], a, false); (err == nil) != taken {
			t.Errorf("a ttl of %d ms by a clock that runs, where 1 is right: %v", ttlMs, err)
		}
		o, a = answerOf(t, precision.GCRAV2, c)
		a.keys[0].ttlMs = ttlMs
		call, _ := o.read(c.calls[0])
		if _, _, err := o.keys[0].call(&call, a.reply, a.keys[0]); (err == nil) != taken {
			t.Errorf("a ttl of %d ms in a stream, where 1 is right: %v", ttlMs, err)
		}
	}
	o := newTruth(precision.GCRAV2, usual, []Key{tat(epoch).key}, epoch)
	if err := o.expire([]string{"0"}); err != nil || o.keys[0].ttlMs() != 0 {
		t.Errorf("a ttl of 0 is %d: %v", o.keys[0].ttlMs(), err)
	}
}

// The forms of survivors in precision/internal/gomutants/survivors.txt, each held against
// what it may differ in.
func TestEqualForms(t *testing.T) {
	up, down := map[int64]bool{}, map[int64]bool{}
	for i := range int64(32) {
		up[(1_357_913_579_864_208+i)*us%precision.GCRAV1.Grid()] = true
		down[(1_357_913_579_864_208-i)*us%precision.GCRAV1.Grid()] = true
	}
	if len(up) != 32 || !maps.Equal(up, down) {
		t.Errorf("32 us on end have %d distances from the grid, and before it %d", len(up), len(down))
	}
	for _, s := range precision.Scripts {
		good := precision.Call{Amount: 1, PeriodNs: 1, Burst: 1, Cost: 1}
		last := good
		last.NowNs = math.MaxInt64
		if good.Check(s.Script) != nil || precision.NewFed(s.Script, s.Script.Grid()).Takes(&last) {
			t.Errorf("%s takes the last clock of 63 bits with the smallest tau", s.Script)
		}
		for _, a := range hostile.Arguments {
			n, _ := whole(a.Text)
			for i, c := range []precision.Call{good, good, good, good} {
				field := []*int64{&c.Amount, &c.PeriodNs, &c.Burst, &c.Cost}[i]
				*field = n
				if (i < 2 && !a.Whole || i == 3 && math.Abs(a.Value) == 1<<62) && c.Check(s.Script) == nil {
					t.Errorf("%s: %q is taken as %d of argument %d", s.Script, a.Text, n, i)
				}
			}
		}
		for _, h := range hostile.States {
			if state, ok := precision.ParseState(s.Script, h.Text); ok && state.Value == uint64(epoch+precision.FarNs) {
				t.Errorf("%q holds the instant from which on waits are far", h.Text)
			}
		}
		o := newTruth(s.Script, usual, []Key{tat(epoch).key}, epoch)
		k := o.keys[0]
		if err := o.expire([]string{"0"}); err != nil || k.ttlRange(0) != newRange(k.ttlMs(), k.ttlMs()) {
			t.Errorf("%s: the range of a ttl of 0 is %s: %v", s.Script, k.ttlRange(0), err)
		}
	}
}

// Which arguments are read, and as what.
func TestRead(t *testing.T) {
	gcra := func(o *truth, argv ...string) (precision.Call, bool) { return o.read(argv) }
	o := newTruth(precision.GCRAV2, usual, []Key{none.key}, epoch)
	c, ok := gcra(o, "300", "60000000000", "60", "2", "1780000080000000001")
	want := precision.Call{Amount: 300, PeriodNs: 60e9, Burst: 60, Cost: 2, NowNs: epoch + 1, ServerNs: epoch}
	if !ok || c != want {
		t.Errorf("%+v, %v; want %+v", c, ok, want)
	}
	want.NowNs, want.ByServer = epoch, true
	for _, argv := range [][]string{{"300", "60000000000", "60", "2"}, {"300", "60000000000", "60", "2", ""}} {
		if c, ok := gcra(o, argv...); !ok || c != want {
			t.Errorf("%q: %+v, %v; want %+v", argv, c, ok, want)
		}
	}
	for _, argv := range [][]string{
		{}, {"300", "60000000000", "60"}, {"300", "60000000000", "60", "2", "1", ""}, {"x", "60000000000", "60", "2"},
		{"300", "x", "60", "2"}, {"300", "60000000000", "x", "2"}, {"300", "60000000000", "60", "x"}, {"0", "60000000000", "60", "2"},
		{"300", "60000000000", "60", "2", "x"}, {"300", "60000000000", "60", "2", "+5"}, {"300", "60000000000", "60", "2", "00000000000000000005"},
		{"300", "60000000000", "60", "2", "9223372036854775808"}, {"300", "60000000000", "60", "2", "9223372036854775807"},
		{"300.5", "60000000000", "60", "2"},
	} {
		if c, ok := gcra(o, argv...); ok {
			t.Errorf("%q is read as %+v", argv, c)
		}
	}
	o = newTruth(precision.WindowV1, usual, []Key{none.key}, epoch)
	for third, sliding := range map[string]bool{"sliding": true, "fixed": false} {
		if c, ok := o.read([]string{"3", "1000", third, "1", "7"}); !ok || c != (precision.Call{Amount: 3, PeriodNs: 1000, Sliding: sliding, Cost: 1, NowNs: 7, ServerNs: epoch}) {
			t.Errorf("%s: %+v, %v", third, c, ok)
		}
	}
	for _, third := range []string{"", "Fixed", "60"} {
		if c, ok := o.read([]string{"3", "1000", third, "1", "7"}); ok {
			t.Errorf("%q is read as %+v", third, c)
		}
	}
}
