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
	good := []Script{gcraV1, gcraV2, windowV1, windowV2}
	for name, alter := range map[string]func(scripts []Script, sum *string){
		"text":     func(scripts []Script, _ *string) { scripts[0].text += " " },
		"literal":  func(scripts []Script, _ *string) { scripts[1].SHA1 = gcraV1.SHA1 },
		"sum":      func(_ []Script, sum *string) { *sum = strings.ReplaceAll(*sum, gcraV2.SHA1, gcraV1.SHA1) },
		"no line":  func(_ []Script, sum *string) { *sum = strings.ReplaceAll(*sum, "window_v2 ", "window_v0 ") },
		"empty":    func(_ []Script, sum *string) { *sum = "" },
		"textless": func(scripts []Script, _ *string) { scripts[0].text = "" },
		"swapped":  func(scripts []Script, _ *string) { scripts[2].text, scripts[3].text = scripts[3].text, scripts[2].text },
	} {
		scripts, sum := append([]Script(nil), good...), lua.Sum
		alter(scripts, &sum)
		if err := checkPins(scripts, sum); !errors.Is(err, ErrPin) {
			t.Errorf("%s: %v, want an ErrPin", name, err)
		}
	}
}

func TestReleased(t *testing.T) {
	scripts := []Script{gcraV1, windowV2}
	sum := "# released: x\nwindow_v2 " + windowV2.SHA1 + " 0\n# candidates: y\ngcra_v1 " + gcraV1.SHA1 + " 0\n"
	if err := checkPins(scripts, sum); err != nil {
		t.Fatal(err)
	}
	if scripts[0].Released || !scripts[1].Released {
		t.Errorf("released: gcra_v1 %v, window_v2 %v, want false, true", scripts[0].Released, scripts[1].Released)
	}
}

// replied is an error reply, as go-redis has them.
type replied string

func (e replied) Error() string { return string(e) }
func (replied) RedisError()     {}

func TestTyped(t *testing.T) {
	for text, want := range map[string]error{
		"BADARG gcra_v2: x":   ErrBadArg,
		"BADSTATE gcra_v2: x": ErrBadState,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                    ErrBadState,
		"READONLY You can't write against a read only replica.":                                                ErrReadOnly,
		"@user_script: 132: -READONLY You can't write against a read only replica. ":                           ErrReadOnly, // 6.0
		"OOM command not allowed when used memory > 'maxmemory'.":                                              ErrOutOfMemory,
		"@user_script: 132: -OOM command not allowed when used memory > 'maxmemory'. ":                         ErrOutOfMemory,
		"@user_script:132: WRONGTYPE is not the first word":                                                    nil,
		"ERR BADARG is not the first word":                                                                     nil,
		"ERR Error running script (call to f_0): @user_script:132: @user_script: 132: -READONLY not handed on": nil,
	} {
		err := typed(replied(text))
		known := false
		for _, sentinel := range []error{ErrBadArg, ErrBadState, ErrReadOnly, ErrOutOfMemory, ErrReply} {
			is := errors.Is(err, sentinel)
			known = known || is
			if is != (sentinel == want) {
				t.Errorf("%q is %v: %v", text, sentinel, is)
			}
		}
		if known != (want != nil) || !errors.Is(err, replied(text)) {
			t.Errorf("%q became %v", text, err)
		}
	}
	if err := typed(errors.New("BADARG of no server")); errors.Is(err, ErrBadArg) {
		t.Errorf("%v", err)
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
