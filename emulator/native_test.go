package emulator

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/internal/number"
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
		d, state := port(c.script, c.args, state, s.now.UnixMicro())
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
	if compared < 5000 {
		t.Errorf("only %d trials were compared", compared)
	}
}

// The native port answers and writes what the asset does, on random calls.
func TestNativeIsTheAsset(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 500
	}
	for _, a := range assets {
		for _, c := range record(t, a, n) {
			d, state := port(a.script, c.args, c.state, c.unixUs)
			got := fmt.Sprintf("%d %d %d %d", d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs)
			if d.Err != "" {
				got = "error " + d.Err
			}
			if d.Written {
				got += fmt.Sprintf(" %x %d", state, d.TTLMs)
			}
			if got != c.outcome {
				t.Errorf("%s %q, key %q, server's clock %d us: native %s, asset %s", a.name, c.args, c.state, c.unixUs, got, c.outcome)
			}
		}
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
		if x, ok := number.ToNumber(args[i].(string)); ok {
			return x
		}
	}
	return math.NaN()
}

// port makes the call on a script's port, on a server whose clock says unixUs, and
// returns what the key then holds.
func port(script string, args []any, state any, unixUs int64) (native.Decision, any) {
	now := native.ServerClock(unixUs)
	if len(args) > 4 && args[4] != "" {
		now = native.ParseClock(args[4].(string))
	}
	written := ""
	mode := ""
	if len(args) > 2 {
		mode = args[2].(string)
	}
	gcra := native.GCRAArgs{Amount: argument(args, 0), PeriodNs: argument(args, 1),
		Burst: argument(args, 2), Cost: argument(args, 3)}
	window := native.WindowArgs{Amount: argument(args, 0), PeriodNs: argument(args, 1),
		Sliding: mode == "sliding", BadMode: mode != "sliding" && mode != "fixed", Cost: argument(args, 3)}
	var d native.Decision
	switch script {
	case lua.GCRAV1:
		tat := 0.0
		if state != nil {
			tat = native.ParseTAT(state.(string))
		}
		tat, d = native.GCRAV1(tat, gcra, now)
		written = number.FormatInt(tat)
	case lua.GCRAV2:
		tat := native.TAT{}
		if state != nil {
			tat = native.ParseTATV2(state.(string))
		}
		tat, d = native.GCRAV2(tat, gcra, now)
		if d.Written {
			written = strconv.FormatInt(int64(tat.S)*1e9+int64(tat.Ns), 10)
		}
	case lua.WindowV1, lua.WindowV2:
		counts := native.WindowState{}
		if state != nil {
			counts = native.ParseWindow(state.(string))
		}
		if script == lua.WindowV1 {
			counts, d = native.WindowV1(counts, window, now)
		} else {
			counts, d = native.WindowV2(counts, window, now)
		}
		bytes := counts.Bytes()
		written = string(bytes[:])
	}
	if d.Written {
		return d, written
	}
	return d, state
}
