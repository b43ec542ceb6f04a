package emulator

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/lua"
)

// The native port judges the texts of arguments and states as the asset does.
func TestNativeReadsWhatTheAssetReads(t *testing.T) {
	s := New()
	compared := 0
	for _, c := range trials() {
		state, ok := nativeState(c)
		if len(c.keys) != 1 || len(c.args) > 5 || !ok {
			continue // told from the form of the call, or a list: not native's to judge
		}
		compared++
		for _, command := range c.prepare {
			if err := do(s, command...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		want := outcome(s.Eval(t.Context(), c.script, c.keys, c.args...)) + " " + outcome(do(s, "GET", "k"))
		var d Decision
		if c.script == lua.GCRAV1 {
			d, state = nativeGCRA(c.args, state)
		} else {
			d, state = nativeWindow(c.args, state)
		}
		got := redis.NewCmdResult([]any{d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs}, nil)
		if d.Err != "" {
			got.SetErr(errors.New(d.Err))
		}
		held := redis.NewCmdResult(state, nil)
		if state == nil {
			held.SetErr(redis.Nil)
		}
		if got := outcome(got) + " " + outcome(held); got != want {
			t.Errorf("%s: native %.200s, asset %.200s", c.name, got, want)
		}
	}
	if compared < 500 {
		t.Errorf("only %d trials were compared", compared)
	}
}

// nativeState is what the trial's key holds as text, nil without a key; ok is false
// for what is no text.
func nativeState(c trial) (state any, ok bool) {
	for _, command := range c.prepare {
		switch command[0] {
		case "SET":
			state = command[2]
		case "DEL":
			state = nil
		default:
			return nil, false
		}
	}
	return state, true
}

// argument is an argument as a number.
func argument(args []any, i int) float64 {
	if i < len(args) {
		if x, ok := ToNumber(args[i].(string)); ok {
			return x
		}
	}
	return math.NaN()
}

// clockArgument is the clock that the arguments carry, the emulator's without one.
func clockArgument(args []any) Clock {
	if len(args) < 5 {
		return ServerClock(New().now.UnixMicro())
	}
	return ParseClock(args[4].(string))
}

func nativeGCRA(args []any, state any) (Decision, any) {
	tat := 0.0
	if state != nil {
		tat = ParseTAT(state.(string))
	}
	tat, d := GCRAV1(tat, GCRAArgs{argument(args, 0), argument(args, 1), argument(args, 2), argument(args, 3)}, clockArgument(args))
	if d.Written {
		state = FormatInt(tat)
	}
	return d, state
}

func nativeWindow(args []any, state any) (Decision, any) {
	window, mode := WindowState{}, ""
	if state != nil {
		window = ParseWindow(state.(string))
	}
	if len(args) > 2 {
		mode = args[2].(string)
	}
	window, d := WindowV1(window, WindowArgs{Amount: argument(args, 0), PeriodNs: argument(args, 1),
		Sliding: mode == "sliding", BadMode: mode != "sliding" && mode != "fixed", Cost: argument(args, 3)}, clockArgument(args))
	if d.Written {
		bytes := window.Bytes()
		state = string(bytes[:])
	}
	return d, state
}

func TestNativeAllocatesNothing(t *testing.T) {
	for name, call := range nativeCalls() {
		if n := testing.AllocsPerRun(1000, call); n != 0 {
			t.Errorf("%s: %v allocations a decision", name, n)
		}
	}
}

func BenchmarkNative(b *testing.B) {
	for name, call := range nativeCalls() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// nativeCalls are decisions of each kind, 10 us after the one before.
func nativeCalls() map[string]func() {
	calls := map[string]func(){}
	for name, burst := range map[string]float64{"admitted": 1e6, "refused": 1} {
		now, tat := int64(1_780_000_000_000_000_000), 0.0
		calls["gcra_v1 "+name] = func() {
			tat, _ = GCRAV1(tat, GCRAArgs{300, 60e9, burst, 1}, CallerClock(now))
			now += 10_000
		}
	}
	for _, sliding := range []bool{false, true} {
		now, state := int64(1_780_000_000_000_000_000), WindowState{}
		calls[fmt.Sprintf("window_v1 sliding=%v", sliding)] = func() {
			state, _ = WindowV1(state, WindowArgs{Amount: 300, PeriodNs: 1e6, Sliding: sliding, Cost: 1}, CallerClock(now))
			now += 10_000
		}
	}
	return calls
}
