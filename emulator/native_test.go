package emulator

import (
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/interpreters"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/lua"
)

// The native port judges the texts of arguments and states as the asset does.
func TestNativeReadsWhatTheAssetReads(t *testing.T) {
	s := New()
	compared := 0
	for _, c := range trials() {
		key, ok := keyOf(c)
		if len(c.keys) != 1 || !ok {
			continue // told from the form of the call, or a list: not native's to judge
		}
		compared++
		for _, command := range c.prepare {
			if err := do(s, command...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		want := outcome(s.Eval(t.Context(), lua.Assets[c.script], c.keys, c.args...)) + " " + outcome(do(s, "GET", "k"))
		argv := make([]string, len(c.args))
		for i, arg := range c.args {
			argv[i] = arg.(string)
		}
		after, d, ok := native.Call(c.script, []native.Key{key}, argv, native.ServerClock(s.now.UnixMicro()))
		if !ok {
			t.Fatalf("native has no script %s", c.script)
		}
		reply := redis.NewCmdResult([]any{d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs}, nil)
		if d.Err != "" {
			reply.SetErr(errors.New(d.Err))
		}
		held := redis.NewCmdResult(after[0].Text, nil)
		if !after[0].Exists {
			held.SetErr(redis.Nil)
		}
		if got := outcome(reply) + " " + outcome(held); got != want {
			t.Errorf("%s: native %.200s, asset %.200s", c.name, got, want)
		}
	}
	if compared < 5000 {
		t.Errorf("only %d trials were compared", compared)
	}
}

// keyOf is what the trial's key holds; ok is false for what is no text.
func keyOf(c trial) (key native.Key, ok bool) {
	for _, command := range c.prepare {
		switch command[0] {
		case "SET":
			key = native.Key{Exists: true, Text: command[2].(string)}
		case "DEL":
			key = native.Key{}
		default:
			return key, false
		}
	}
	return key, true
}

// The native port answers and writes what the asset does, on random calls. They are
// counted by kind, so that none of the kinds goes missing.
func TestNativeIsTheAsset(t *testing.T) {
	n := 100_000 // of each asset
	if testing.Short() {
		n = 2000
	}
	for _, a := range assets {
		t.Run(a.name, func(t *testing.T) {
			different, kinds := 0, map[string]int{}
			for _, c := range record(t, a, n) {
				after, reply, _ := native.Call(a.name, c.keys, c.args, native.ServerClock(c.unixUs))
				if got := interpreters.Outcome(reply, after); got != c.outcome {
					if different++; different <= 10 {
						t.Errorf("%q, keys %q, server's clock %d us: native %s, asset %s", c.args, held(c.keys), c.unixUs, got, c.outcome)
					}
				}
				kinds[c.kind()]++
				if reply.Written && strings.Contains(after[0].Text, " ") && !a.isWindow() {
					kinds["credit kept"]++
				}
			}
			t.Logf("%d calls, %d different; %v", n, different, kinds)
			want := []string{"EX caller new", "EX caller used", "EX server new", "EX server used, expires", "EX server used, no expiry",
				"KEEPTTL server used, expires", "KEEPTTL server used, no expiry", "unwritten caller", "unwritten server", "error caller",
				"error server"}
			if a.name == "gcra_v2" {
				want = append(want, "credit kept")
			}
			for _, kind := range want {
				if kinds[kind] < n/500 {
					t.Errorf("only %d of %d calls are %q", kinds[kind], n, kind)
				}
				delete(kinds, kind)
			}
			if len(kinds) > 0 {
				t.Errorf("calls that should not be: %v", kinds)
			}
		})
	}
}

// kind is what the call's expiry depends on, and what became of it.
func (c *recorded) kind() string {
	clock, key := " caller", " new"
	if c.byServer() {
		clock = " server"
	}
	if c.keys[0].Exists {
		key = " used"
		if c.byServer() {
			key = " used, no expiry"
			if c.ttlMs[0] > 0 {
				key = " used, expires"
			}
		}
	}
	switch words := strings.Fields(c.outcome); {
	case words[0] == "error":
		return "error" + clock
	case len(words) == 4:
		return "unwritten" + clock
	default:
		return words[5] + clock + key
	}
}
