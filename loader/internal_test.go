package loader

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/lua"
)

func TestPinsAgree(t *testing.T) {
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]bool{}
	for _, script := range scripts {
		pinned[script.Name] = true
	}
	for line := range strings.Lines(lua.Sum) {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" && !pinned[name] {
			t.Errorf("lua.sum has %s, which is not pinned", name)
		}
	}
}

func TestAlteredPins(t *testing.T) {
	good := []Script{gcra, window}
	for name, alter := range map[string]func(scripts []Script, sum *string){
		"text":     func(scripts []Script, _ *string) { scripts[0].text += " " },
		"literal":  func(scripts []Script, _ *string) { scripts[1].SHA1 = gcra.SHA1 },
		"sum":      func(_ []Script, sum *string) { *sum = strings.ReplaceAll(*sum, gcra.SHA1, window.SHA1) },
		"no line":  func(_ []Script, sum *string) { *sum = strings.ReplaceAll(*sum, "gcra_v1 ", "gcra_v0 ") },
		"empty":    func(_ []Script, sum *string) { *sum = "" },
		"textless": func(scripts []Script, _ *string) { scripts[0].text = "" },
	} {
		scripts, sum := append([]Script(nil), good...), lua.Sum
		alter(scripts, &sum)
		if err := checkPins(scripts, sum); !errors.Is(err, ErrPin) {
			t.Errorf("%s: %v, want an ErrPin", name, err)
		}
	}
}

func TestReleased(t *testing.T) {
	scripts := []Script{gcra, window}
	sum := "# released: x\nwindow_v1 " + window.SHA1 + " 0\n# candidates: y\ngcra_v1 " + gcra.SHA1 + " 0\n"
	if err := checkPins(scripts, sum); err != nil {
		t.Fatal(err)
	}
	if scripts[0].Released || !scripts[1].Released {
		t.Errorf("released: gcra %v, window %v, want false, true", scripts[0].Released, scripts[1].Released)
	}
}

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		reply any
		want  Result
	}{
		{[]any{int64(1), int64(59), int64(0), int64(200)}, Result{Allowed: true, Remaining: 59, ResetAfter: 200}},
		{[]any{int64(0), int64(3), int64(7), int64(9)}, Result{Remaining: 3, RetryAfter: 7, ResetAfter: 9}},
		{[]any{int64(-1), int64(0), int64(-1), int64(0)}, Result{Unfittable: true, RetryAfter: -1}},
	} {
		if got, err := decode(test.reply); got != test.want || err != nil {
			t.Errorf("%v: %+v, %v, want %+v", test.reply, got, err, test.want)
		}
	}
	for _, reply := range []any{
		nil, 1.5, "1", int64(1), true, []any{}, []any(nil),
		[]any{int64(1), int64(59), int64(0)},
		[]any{int64(1), int64(59), int64(0), int64(200), int64(0)},
		[]any{int64(1), 59.0, int64(0), int64(200)},
		[]any{int64(1), "59", int64(0), int64(200)},
		[]any{int64(1), nil, int64(0), int64(200)},
		[]any{true, int64(59), int64(0), int64(200)},
		[]any{[]any{int64(1)}, int64(59), int64(0), int64(200)},
		[]any{int64(2), int64(59), int64(0), int64(200)},
		[]any{int64(-2), int64(59), int64(-1), int64(200)},
		[]any{int64(1), int64(-1), int64(0), int64(200)},
		[]any{int64(1), int64(59), int64(1), int64(200)},
		[]any{int64(1), int64(59), int64(0), int64(-1)},
		[]any{int64(0), int64(0), int64(0), int64(200)},
		[]any{int64(0), int64(0), int64(-1), int64(200)},
		[]any{int64(-1), int64(0), int64(0), int64(200)},
		map[any]any{int64(1): int64(59)},
		errors.New("an error in an array"),
	} {
		if got, err := decode(reply); got != (Result{}) || !errors.Is(err, ErrReply) {
			t.Errorf("%v: %+v, %v, want an ErrReply", reply, got, err)
		}
	}
}

func TestRetryAfterSeconds(t *testing.T) {
	for _, test := range []struct {
		retry   time.Duration
		seconds int64
		ok      bool
	}{
		{time.Millisecond, 1, true},
		{493 * time.Millisecond, 1, true},
		{999 * time.Millisecond, 1, true},
		{1000 * time.Millisecond, 1, true},
		{1001 * time.Millisecond, 2, true},
		{1, 1, true},
		{time.Second + 1, 2, true},
		{1<<63 - 1, 9223372037, true},
		{0, 0, false},  // allowed
		{-1, 0, false}, // unfittable
	} {
		seconds, ok := Result{RetryAfter: test.retry}.RetryAfterSeconds()
		if seconds != test.seconds || ok != test.ok {
			t.Errorf("%v: %d, %v, want %d, %v", test.retry, seconds, ok, test.seconds, test.ok)
		}
	}
}
