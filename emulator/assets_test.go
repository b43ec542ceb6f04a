package emulator

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/lua"
)

const nowText = "1735689600000000000" // 2025-01-01T00:00:00Z

// asset is a script with arguments that are admitted, the clock last.
type asset struct {
	name, script string
	slots        []string
	args         []any
}

var assets = []asset{
	{"gcra_v1", lua.GCRAV1, []string{"amount", "period_ns", "burst", "cost", "now_ns"},
		[]any{"300", "60000000000", "60", "1", nowText}},
	{"window_v1", lua.WindowV1, []string{"amount", "period_ns", "mode", "cost", "now_ns"},
		[]any{"300", "60000000000", "sliding", "1", nowText}},
}

// with is the arguments with one replaced.
func (a asset) with(slot string, value any) []any {
	args := slices.Clone(a.args)
	args[slices.Index(a.slots, slot)] = value
	return args
}

// trial is one call on a key that was prepared by commands.
type trial struct {
	name    string
	prepare [][]any
	script  string
	keys    []string
	args    []any
	want    string // how the error reply starts; empty for none
}

// taken are the arguments of the list below that a slot takes, by script and slot.
var taken = map[string][]string{
	"gcra_v1 amount":    {"1e3", "0x10", "010", " 10 ", "1", "65535", "65536", "10\x00", "0x1p4", "\n7"},
	"gcra_v1 period_ns": {"1e3", "65535", "65536", "4503599627370496"}, // amount and more
	"gcra_v1 burst":     {"1e3", "0x10", "010", " 10 ", "1", "65535", "65536", "10\x00", "0x1p4", "\n7"},
	"gcra_v1 cost": {"1e3", "0x10", "010", " 10 ", "-0", "0", "1", "65535", "65536", "4503599627370496", "10\x00", "0x1p4",
		"\n7"},
	"gcra_v1 now_ns": {"010", "0", "1", "65535", "65536", "4503599627370496", "4503599627370497", "9007199254740992",
		"9007199254740993"},
	"gcra_v1 state": {"0", "1735689600000000000", "1735689600000000001", "1735689612000000000", "1735689612000000256",
		"2305843009213693952", "1234567", "12345678", "123456789"},
	"window_v1 amount": {"1e3", "0x10", "010", " 10 ", "1", "65535", "10\x00", "0x1p4", "\n7"},
	"window_v1 period_ns": {"1e3", "0x10", "010", " 10 ", "1", "65535", "65536", "4503599627370496", "10\x00", "0x1p4",
		"\n7"},
	"window_v1 mode": {"fixed", "sliding"},
	"window_v1 cost": {"1e3", "0x10", "010", " 10 ", "-0", "0", "1", "65535", "65536", "4503599627370496", "10\x00", "0x1p4",
		"\n7"},
	"window_v1 now_ns": {"010", "0", "1", "65535", "65536", "4503599627370496", "4503599627370497", "9007199254740992",
		"9007199254740993"},
	"window_v1 state": {"12345678", "\x00\x00\x00\x00\x00\x00\x00\x00", "\x01\xb9\x6c\xc0\x00\x05\x00\x07",
		"\x01\xb9\x6c\xbf\xff\xff\xff\xff", "\xff\xff\xff\xff\xff\xff\xff\xff"},
}

// arguments are tried in every slot.
var arguments = []string{" ", "nan", "-nan", "inf", "-inf", "1e400", "1_000", "10abc", "1.5", "-1", "-9007199254740992",
	"18446744073709551616", "99999999999999999999", "0x", "1e-3", "x", "--1", "1e", "nan(1)",
	"1e3", "0x10", "010", " 10 ", "-0", "0", "1", "65535", "65536", "4503599627370496", "4503599627370497",
	"9007199254740992", "9007199254740993", "4611686018427387904", "10\x00", "0x1p4", "\n7", "fixed", "sliding", "SLIDING",
	strings.Repeat("9", 10000)}

// states are texts that a key may hold.
var states = []string{"hello", "", "nan", "inf", "-1", "1e400", "0x10", " 5 ", "5 ", "1e18", "1.5", "00", "01", "0",
	"1735689600000000000", "1735689600000000001", "1735689612000000000", "1735689612000000256", "2305843009213693952",
	"2305843009213693953", "9999999999999999999", "10000000000000000000", strings.Repeat("1", 10000), "5\x00", "17\n",
	"\x00\x00\x00\x00\x00\x00\x00\x00", "\x01\xb9\x6c\xc0\x00\x05\x00\x07", "\x01\xb9\x6c\xbf\xff\xff\xff\xff",
	"\xff\xff\xff\xff\xff\xff\xff\xff", "1234567", "12345678", "123456789"}

func trials() []trial {
	var all []trial
	for _, a := range assets {
		used := []any{"SET", "k", "1735689600000000000", "PX", "90000"}
		if a.name == "window_v1" {
			used = []any{"SET", "k", "\x01\xb9\x6c\xc0\x00\x05\x00\x07", "PX", "90000"}
		}
		add := func(want, name string, prepare []any, keys []string, args ...any) {
			commands := [][]any{{"DEL", "k", "k2"}}
			if prepare != nil {
				commands = append(commands, prepare)
			}
			if want == "BADARG" || want == "BADSTATE" {
				want += " " + a.name + ": "
			}
			all = append(all, trial{a.name + " " + name, commands, a.script, keys, args, want})
		}
		wants := func(refusal, slot, value string) string {
			if slices.Contains(taken[a.name+" "+slot], value) {
				return ""
			}
			return refusal
		}
		for _, slot := range a.slots {
			for _, value := range arguments {
				add(wants("BADARG", slot, value), fmt.Sprintf("%s=%.40q", slot, value), used, []string{"k"}, a.with(slot, value)...)
			}
			if slot != "now_ns" {
				add("BADARG", slot+" empty", used, []string{"k"}, a.with(slot, "")...)
			}
		}
		for n := range len(a.args) - 1 {
			add("BADARG", fmt.Sprintf("%d arguments", n), used, []string{"k"}, a.args[:n]...)
		}
		add("BADARG", "6 arguments", used, []string{"k"}, append(slices.Clone(a.args), "")...)
		add("BADARG", "no key", used, nil, a.args...)
		add("BADARG", "2 keys", used, []string{"k", "k2"}, a.args...)
		for _, cost := range []string{"0", "1", "5", "61", "301"} {
			args := a.with("cost", cost)
			for _, state := range states {
				add(wants("BADSTATE", "state", state), fmt.Sprintf("cost %s, state %.40q", cost, state),
					[]any{"SET", "k", state, "PX", "90000"}, []string{"k"}, args...)
			}
			add("", "cost "+cost+", no key yet", nil, []string{"k"}, args...)
			add("WRONGTYPE ", "cost "+cost+", a list", []any{"RPUSH", "k", "a"}, []string{"k"}, args...)
			add("", "cost "+cost+", no expiry", used[:3], []string{"k"}, args...)
		}
	}
	return all
}

// playTrials runs all trials, and checks of each that a call which does not admit, or only
// looks, leaves the key as it was.
func playTrials(t *testing.T, s redis.Scripter) (names, outcomes []string) {
	t.Helper()
	for _, c := range trials() {
		for _, command := range c.prepare {
			if err := do(s, command...).Err(); err != nil {
				t.Fatalf("%s: %q: %v", c.name, command, err)
			}
		}
		before := fingerprint(s)
		cmd := s.Eval(t.Context(), c.script, c.keys, c.args...)
		after := fingerprint(s)
		reply, err := cmd.Int64Slice()
		looks := len(c.args) > 3 && slices.Contains([]any{"0", "-0"}, c.args[3])
		if admitted := err == nil && reply[0] == 1; admitted && !looks {
			if after == before {
				t.Errorf("%s: admitted, and the key is still %s", c.name, before)
			}
		} else if after != before {
			t.Errorf("%s: %s, and the key was %s and is %s", c.name, outcome(cmd), before, after)
		}
		if got := outcome(cmd); c.want == "" && err != nil || !strings.HasPrefix(got, "error "+c.want) && c.want != "" {
			t.Errorf("%s: %s, want an error that starts with %q", c.name, got, c.want)
		}
		names = append(names, c.name)
		outcomes = append(outcomes, outcome(cmd)+" "+outcome(do(s, "GET", "k")))
	}
	return names, outcomes
}

// fingerprint is all there is to the key k: its bytes, and when it ends.
func fingerprint(s redis.Scripter) string {
	commands := [][]any{{"TYPE", "k"}, {"GET", "k"}, {"PTTL", "k"}, {"EXISTS", "k2"}}
	if _, ok := s.(*Redis); !ok { // its clock runs
		commands = [][]any{{"DUMP", "k"}, {"PEXPIRETIME", "k"}, {"EXISTS", "k2"}}
	}
	var all []string
	for _, command := range commands {
		all = append(all, fmt.Sprintf("%q", outcome(do(s, command...))))
	}
	return strings.Join(all, " ")
}

// Whatever a caller passes and a key holds, emulator and server answer the same.
func TestAssets(t *testing.T) {
	t.Run("emulator", func(t *testing.T) { playTrials(t, New()) })
	t.Run("server", func(t *testing.T) {
		client := serverClient(t)
		_, want := playTrials(t, New())
		names, outcomes := playTrials(t, client)
		for i, got := range outcomes {
			if got != want[i] {
				t.Errorf("%s: server %s, emulator %s", names[i], got, want[i])
			}
		}
	})
}

// Without now_ns, or with an empty one, the server's clock is taken; the first call
// on a key answers the same at any time.
func TestAssetsWithServerClock(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for i, a := range assets {
			for j, args := range [][]any{a.args[:4], a.with("now_ns", "")} {
				key := fmt.Sprintf("k%d%d", i, j)
				reply, err := s.Eval(t.Context(), a.script, []string{key}, args...).Int64Slice()
				if err != nil {
					t.Fatalf("%s: %v", a.name, err)
				}
				remaining := map[string]int64{"gcra_v1": 59, "window_v1": 299}[a.name]
				if reply[0] != 1 || reply[1] != remaining || reply[2] != 0 || reply[3] <= 0 {
					t.Errorf("%s answers %v", a.name, reply)
				}
			}
		}
	})
}

// A look also runs read-only; a call that would write is refused there.
func TestAssetsReadOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for _, a := range assets {
			sha, err := s.ScriptLoad(t.Context(), a.script).Result()
			if err != nil {
				t.Fatal(err)
			}
			look, err := s.EvalShaRO(t.Context(), sha, []string{"k"}, a.with("cost", "0")...).Int64Slice()
			if err != nil || look[0] != 1 || look[3] != 0 {
				t.Errorf("%s with cost 0: %v, %v", a.name, look, err)
			}
			err = s.EvalShaRO(t.Context(), sha, []string{"k"}, a.args...).Err()
			if err == nil || err.Error() != "ERR Write commands are not allowed from read-only scripts." {
				t.Errorf("%s with cost 1: %v", a.name, err)
			}
			if got := outcome(do(s, "EXISTS", "k")); got != "int64 0" {
				t.Errorf("%s wrote: EXISTS gives %s", a.name, got)
			}
		}
	})
}
