package generate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision"
)

// askedOfLimits are keys and calls of limits_v1: what the last of them comes to, wrong answers
// to it must not be written down.
var askedOfLimits = []struct {
	name  string
	key   held
	calls []request
	want  string // the error, or the status
}{
	{"asks", none.and(none), []request{at(1, bucket+"1", window10+"1")}, "1"},
	{"one refused", none.and(none), []request{at(1, bucket+"60", window10+"1"), at(2, bucket+"1", window10+"2")}, "0"},
	{"both refused", tat(epoch + 12*second).and(holdingCounts(epoch/second, 0, 10, second).expiring()), []request{at(1, bucket+"1", window10+"2")}, "0"},
	{"one never", none.and(tat(epoch + second).expiring()), []request{at(1, bucket+"1", bucket+"61")}, "-1"},
	{"a look", none.and(tat(epoch + second).expiring()), []request{at(1, bucket+"0", bucket+"0")}, "1"},
	{"a give-back beside an ask", none.and(none), []request{at(1, bucket+"9", window10+"5"), at(2, bucket+"-4 1780000081800000001", window10+"1")}, "1"},
	{"a give-back beside a refused ask", none.and(none), []request{at(1, bucket+"9", window10+"5"), at(2, bucket+"1", window10+"-4 1780000080"), at(3, bucket+"52", window10+"-1 1780000080")}, "0"},
	{"a second give-back", none.and(credited(epoch+5*second, "1000000000", epoch+6*second).expiring()), []request{at(1, bucket+"0", bucket+"-4 1780000086000000000")}, "1"},
	{"an over-use", none.and(holdingCounts(epoch/second, 3, 9, second).expiring()), []request{at(1, bucket+"70 0", "fixed 10 1000000000 5 1780000080")}, "1"},
	{"settlements that change nothing", tat(epoch + second).expiring().and(holdingCounts(epoch/second, 3, 9, second)), []request{at(1, bucket+"-1 1780000099000000000", fixed10+"-1 5")}, "1"},
	{"an ask on credit", credited(epoch+5*second, "7", epoch+6*second), []request{at(1, bucket+"1")}, "1"},
	{"by the server's clock", tat(epoch - second).and(none), []request{atServer(bucket+"1", window10+"1")}, "1"},
	{"a give-back by the server's clock", tat(epoch + 5*second).expiring(), []request{atServer(bucket + "-1 1780000085000000000")}, "1"},
	{"bad argument", none.and(tat(epoch).expiring()), []request{at(1, bucket+"1", bucket+"x")}, "BADARG"},
	{"bad receipt", none.and(tat(epoch).expiring()), []request{at(1, bucket+"1", bucket+"1 00")}, "BADARG"},
	{"bad state", none.and(holding("hello").expiring()), []request{at(1, bucket+"1", bucket+"1")}, "BADSTATE"},
	{"a list", none.and(list.expiring()), []request{at(1, bucket+"1", bucket+"1")}, "WRONGTYPE"},
}

// answerOfLimits plays a case on the native port, and returns the truth before its last call,
// and the answer to that.
func answerOfLimits(t *testing.T, key held, calls []request) (*truth, answer) {
	t.Helper()
	p := NewNativePort(precision.LimitsV1)
	var keys []Key
	var expire []string
	for _, k := range key.keys() {
		keys, expire = append(keys, k.key), append(expire, k.expire)
	}
	o := newTruth(precision.LimitsV1, usual, keys, epoch)
	if err := errors.Join(p.Hold(keys), p.Expire(expire), o.expire(expire)); err != nil {
		t.Fatal(err)
	}
	last := len(calls) - 1
	for _, r := range calls[:last] {
		a, err := ask(p, nil, r.argv)
		if err == nil {
			_, err = o.step(r.argv, a, true)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a, err := ask(p, nil, calls[last].argv)
	if err != nil {
		t.Fatal(err)
	}
	return o, a
}

// A right answer becomes a step; one that is changed anywhere is refused.
func TestLimitsStepRefusesEachWrongAnswer(t *testing.T) {
	for _, c := range askedOfLimits {
		argv := c.calls[len(c.calls)-1].argv
		o, right := answerOfLimits(t, c.key, c.calls)
		step, err := o.step(argv, right, true)
		word, _, _ := strings.Cut(step.Error, " ")
		if got := word + strings.Join(right.reply[:min(len(right.reply), 1)], ""); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q: %v", c.name, got, c.want, err)
		}
		for i, k := range o.keys {
			if !k.list && k.state != right.keys[i].state || k.ttlMs() != right.keys[i].ttlMs {
				t.Errorf("%s: it holds %s for %d, the key %v", c.name, k.state, k.ttlMs(), right.keys[i])
			}
		}
		changes := map[string]func(a *answer){
			"another error": func(a *answer) { a.refused = "ERR of nothing" },
			"a shorter one": func(a *answer) { a.reply = a.reply[:max(len(a.reply)-each, 0)] },
			"another key's": func(a *answer) { a.refused = strings.Replace(a.refused, "key 2", "key 1", 1) },
			"no error": func(a *answer) {
				a.refused, a.reply = "", []string{"1", "0", "1", "0", "0", "0", "", "1", "0", "0", "0", ""}
			},
			"an error":       func(a *answer) { a.refused = "BADARG gcra_v2: x" },
			"an error of it": func(a *answer) { a.refused = "BADARG limits_v1: takes" },
		}
		if right.refused != "" {
			delete(changes, "a shorter one")
		}
		for i := range right.reply {
			changes[fmt.Sprintf("element %d", i)] = func(a *answer) {
				if isReceipt(i, len(a.reply)) {
					a.reply[i] += "0"
				} else {
					n, _ := strconv.ParseInt(a.reply[i], 10, 64)
					a.reply[i] = decimal(n + 1)
				}
			}
			changes[fmt.Sprintf("element %d, less", i)] = func(a *answer) {
				if isReceipt(i, len(a.reply)) {
					a.reply[i] = strings.TrimSuffix(a.reply[i], "0")
				} else {
					n, _ := strconv.ParseInt(a.reply[i], 10, 64)
					a.reply[i] = decimal(n - 1)
				}
			}
		}
		for i := range right.keys {
			state := func(name string, change func(text string) string) {
				changes[fmt.Sprintf("key %d: %s", i, name)] = func(a *answer) {
					a.keys[i].state = hex.EncodeToString([]byte(change(textOf(a.keys[i].state))))
				}
			}
			state("none", func(string) string { return "" })
			state("a digit more", func(text string) string { return text + "0" })
			state("another digit", func(text string) string {
				if text == "" {
					return text
				}
				return text[:len(text)-1] + string(text[len(text)-1]^1)
			})
			state("without credit", func(text string) string { tat, _, _ := strings.Cut(text, " "); return tat })
			for _, byMs := range []int64{-1, 1, 1000} {
				changes[fmt.Sprintf("key %d: ttl %d", i, byMs)] = func(a *answer) { a.keys[i].ttlMs += byMs }
			}
		}
		for name, change := range changes {
			o, a := answerOfLimits(t, c.key, c.calls)
			change(&a)
			if reflect.DeepEqual(a, right) || slices.ContainsFunc(o.keys, func(k *keyTruth) bool { return k.list }) && !slices.Equal(states(a), states(right)) {
				continue // of a list nothing is known
			}
			if step, err := o.step(argv, a, true); err == nil {
				t.Errorf("%s, %s: %+v is taken as %+v", c.name, name, a, step)
			}
		}
	}
}

func states(a answer) (all []string) {
	for _, key := range a.keys {
		all = append(all, key.state)
	}
	return all
}

// Which arguments of a key are read, and as what.
func TestReadLimits(t *testing.T) {
	o := newTruth(precision.LimitsV1, usual, []Key{none.key, none.key}, epoch)
	calls, refused := o.readLimits(at(1, bucket+"2", "fixed 10 1000 -3 7").argv)
	want := precision.Call{Amount: 300, PeriodNs: 60e9, Burst: 60, Cost: 2, NowNs: epoch + 1, ServerNs: epoch}
	if refused != "" || calls[0].call != want || calls[0].receipt != "" {
		t.Errorf("%+v, %q; want %+v", calls, refused, want)
	}
	want = precision.Call{Amount: 10, PeriodNs: 1000, NowNs: epoch + 1, ServerNs: epoch}
	if calls[1].call != want || calls[1].receipt != "7" || calls[1].units != -3 {
		t.Errorf("%+v; want %+v", calls[1], want)
	}
	for _, key := range []string{
		"gcra 300 60000000000 60 -1", "gcra 300 60000000000 60 1 00", "gcra 300 60000000000 60 1 5 0", "gcra 300 60000000000 0 1", "fixed 65536 1000 1", "fixed 10 1000 -4503599627370497 7",
		"fixed 10 1000 4503599627370497 7", "fixed 10 1000 1 4294967296", "fixed 10 1000 1 07", "Fixed 10 1000 1", "fixed 10 x 1", "fixed 10 1000 -1",
	} {
		if calls, refused := o.readLimits(at(1, bucket+"0", key).argv); !strings.HasPrefix(refused, "BADARG limits_v1: key 2: ") {
			t.Errorf("%s is read as %+v, %q", key, calls, refused)
		}
	}
	withBurst := at(1, bucket+"0", window10+"1")
	withBurst.argv[10] = "5"
	for _, argv := range [][]string{withBurst.argv, at(1, bucket+"0").argv, append(at(1, bucket+"0", bucket+"0").argv, ""), atClock("x", bucket+"0", bucket+"0").argv,
		atClock("00000000000000000001", bucket+"0", bucket+"0").argv} {
		if calls, refused := o.readLimits(argv); !strings.HasPrefix(refused, "BADARG limits_v1: ") {
			t.Errorf("%q is read as %+v, %q", argv, calls, refused)
		}
	}
}
