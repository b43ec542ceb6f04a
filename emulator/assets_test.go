package emulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/native"
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
	gcra("gcra_v1"), gcra("gcra_v2"),
	window("window_v1"), window("window_v2"),
}

func gcra(name string) asset {
	return asset{name, lua.Assets[name], []string{"amount", "period_ns", "burst", "cost", "now_ns"},
		[]any{"300", "60000000000", "60", "1", nowText}}
}

func window(name string) asset {
	return asset{name, lua.Assets[name], []string{"amount", "period_ns", "mode", "cost", "now_ns"},
		[]any{"300", "60000000000", "sliding", "1", nowText}}
}

func (a asset) isWindow() bool { return a.slots[2] == "mode" }

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

// taken are the arguments of the list below that a slot takes, by script and slot, or by
// slot for all scripts.
var taken = map[string][]string{
	"amount":              {"1e3", "0x10", "010", " 10 ", "1", "65535", "10\x00", "0x1p4", "\n7"},
	"gcra_v1 amount":      {"65536"},
	"gcra_v2 amount":      {"65536"},
	"period_ns":           {"1e3", "65535", "65536", "4503599627370496"}, // 300 and more
	"window_v1 period_ns": {"0x10", "010", " 10 ", "1", "10\x00", "0x1p4", "\n7"},
	"window_v2 period_ns": {"0x10", "010", " 10 ", "1", "10\x00", "0x1p4", "\n7"},
	"burst":               {"1e3", "0x10", "010", " 10 ", "1", "65535", "65536", "10\x00", "0x1p4", "\n7"},
	"mode":                {"fixed", "sliding"},
	"cost": {"1e3", "0x10", "010", " 10 ", "-0", "0", "1", "65535", "65536", "4503599627370496", "10\x00", "0x1p4",
		"\n7"},
	"now_ns": {"010", "0", "1", "65535", "65536", "4503599627370496", "4503599627370497", "9007199254740992",
		"9007199254740993"},
	"gcra_v2 now_ns": {"4611686018427387904"},
	"gcra_v1 state": append(tats, "0", "1735689600000000000", "1735689600000000001", "1735689612000000000", "1735689612000000256",
		"2305843009213693697", "2305843009213693952"),
	"gcra_v2 state": append(tats, "0", "1735689600000000000", "1735689600000000001", "1735689612000000000", "1735689612000000256",
		"2305843009213693697", "2305843009213693952", "2305843009213693953", "9223372036854775807", "9223372036854775808",
		"9999999999999999999"),
	"window_v1 state": counts,
	"window_v2 state": counts,
}

// tats are TATs of a second or less after 1970, one a length; counts are states of
// windows: none, the present one, the one before, the next, one that is far.
var (
	tats   = []string{"1", "12", "123", "1234", "12345", "123456", "1234567", "12345678", "123456789", "1234567890"}
	counts = []string{"12345678", "\x00\x00\x00\x00\x00\x00\x00\x00", "\x01\xb9\x6c\xc0\x00\x05\x00\x07",
		"\x01\xb9\x6c\xbf\xff\xff\xff\xff", "\x01\xb9\x6c\xc1\x00\x05\x00\x07", "\xff\xff\xff\xff\xff\xff\xff\xff"}
)

// arguments are tried in every slot.
var arguments = []string{" ", "nan", "-nan", "inf", "-inf", "1e400", "1_000", "10abc", "1.5", "-1", "-9007199254740992",
	"18446744073709551616", "99999999999999999999", "0x", "1e-3", "x", "--1", "1e", "nan(1)",
	"1e3", "0x10", "010", " 10 ", "-0", "0", "1", "65535", "65536", "4503599627370496", "4503599627370497",
	"9007199254740992", "9007199254740993", "4611686018427387904", "10\x00", "0x1p4", "\n7", "fixed", "sliding", "SLIDING",
	strings.Repeat("9", 10000)}

// states are texts that a key may hold.
var states = slices.Concat([]string{"hello", "", "nan", "inf", "-1", "1e400", "0x10", " 5 ", "5 ", "1e18", "1.5", "00", "01", "0",
	"0735689600000000000", "173568960000000000x", "x735689600000000000", "1735689600000000000", "1735689600000000001", "1735689612000000000", "1735689612000000256", "2305843009213693697",
	"2305843009213693952", "2305843009213693953", "9223372036854775807", "9223372036854775808", "9999999999999999999",
	"10000000000000000000", strings.Repeat("1", 10000), "5\x00", "17\n"}, tats, counts)

// clocks are now_ns of 1 to 10 digits, with zeros in front, and around the last one that
// a script takes: with a burst worth 12 s, 2^61 or 2^63 - 1 less that for gcra, 2^62 for
// window.
var clocks = []string{"0", "9", "12", "123", "1234", "12345", "123456", "1234567", "12345678", "123456789", "1234567890",
	"00", "000000000", "0000000000", "0001234567890", "0000000000000000001", "1735689600000000000", "1735689600000000001",
	"2305842997213693696", "2305842997213693952", "2305842997213693953", "2305843009213693951", "2305843009213693952",
	"2305843009213693953", "4611686018427387903", "4611686018427387904", "4611686018427387905",
	"9218868435999999999", "9218868436000000000", "9223372024854775807", "9223372024854775808", "9223372036854775807",
	"9223372036854775808", "9999999999999999999"}

// lastClock is the last now_ns that a script takes with a burst worth 12 s.
var lastClock = map[string]uint64{"gcra_v1": 1<<61 - 12e9, "gcra_v2": 1<<63 - 1 - 12e9, "window_v1": 1<<62 - 1, "window_v2": 1<<62 - 1}

func trials() []trial {
	var all []trial
	for _, a := range assets {
		used := []any{"SET", "k", "1735689600000000000", "PX", "90000"}
		if a.isWindow() {
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
			if slices.Contains(taken[slot], value) || slices.Contains(taken[a.name+" "+slot], value) {
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
		for _, now := range clocks {
			nowNs, err := strconv.ParseUint(now, 10, 64)
			if err != nil {
				panic(err)
			}
			for _, state := range states {
				want := wants("BADSTATE", "state", state)
				if nowNs > lastClock[a.name] {
					want = "BADARG"
				}
				add(want, fmt.Sprintf("now_ns %s, state %.40q", now, state),
					[]any{"SET", "k", state, "PX", "90000"}, []string{"k"}, a.with("now_ns", now)...)
			}
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
				remaining := int64(59)
				if a.isWindow() {
					remaining = 299
				}
				if reply[0] != 1 || reply[1] != remaining || reply[2] != 0 || reply[3] <= 0 {
					t.Errorf("%s answers %v", a.name, reply)
				}
			}
		}
	})
}

// The elements of TIME have no zeros in front: 999 us are "999", and earlier than "1000".
func TestAssetsAtUnpaddedTimes(t *testing.T) {
	for _, a := range assets {
		for _, us := range []int64{0, 9, 999, 1000, 99_999, 100_000, 999_999} {
			s := New()
			now := time.UnixMicro(1_780_000_000_000_000 + us)
			s.SetTime(now)
			server := outcome(s.Eval(t.Context(), a.script, []string{"server"}, a.args[:4]...)) + " " + outcome(do(s, "GET", "server"))
			args := a.with("now_ns", strconv.FormatInt(now.UnixNano(), 10))
			caller := outcome(s.Eval(t.Context(), a.script, []string{"caller"}, args...)) + " " + outcome(do(s, "GET", "caller"))
			if server != caller {
				t.Errorf("%s, %d us into a second: the server's clock gives %s, the same of a caller %s", a.name, us, server, caller)
			}
		}
	}
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

// gcra_v2 writes the TAT as a decimal number, with the seconds only where there are any.
func TestGCRAV2State(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for _, test := range []struct{ now, cost, want string }{
			{"0", "1", "1000"},
			{"0", "5", "5000"},
			{"7", "1", "1007"},
			{"0000000007", "1", "1007"},
			{"999998999", "1", "999999999"},
			{"999999000", "1", "1000000000"},
			{"999999999", "1", "1000000999"},
			{"1000000000", "5", "1000005000"},
			{"9999998999", "1", "9999999999"},
			{"9999999000", "1", "10000000000"},
			{"1735689600000000001", "3", "1735689600000003001"},
			{"9223372036854770807", "5", "9223372036854775807"},
		} {
			if err := do(s, "DEL", "k").Err(); err != nil {
				t.Fatal(err)
			}
			reply := outcome(s.Eval(t.Context(), lua.GCRAV2, []string{"k"}, "1", "1000", "5", test.cost, test.now))
			if got := outcome(do(s, "GET", "k")); got != test.want {
				t.Errorf("now_ns %s, cost %s: %s, the key holds %s, want %s", test.now, test.cost, reply, got, test.want)
			}
		}
	})
}

// window_v2 finds the counts of a window that starts within a minute or is the next one,
// as at its first instant; a clock further behind finds none.
func TestWindowV2ClockBehind(t *testing.T) {
	const amount, previous, current = 100, 20, 30
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for _, test := range []struct{ periodNs, nowNs int64 }{
			{1, 1735689600000000000}, {1, 5}, {2, 1735689600000000001}, {1000, 1735689600000000999}, {1000, 1735689600000000000}, {20e9, 1735689600000000000},
			{999999937, 1735689600123456789}, {29999999999, 1735689600123456789}, {60e9, 1735689600000000000},
			{60e9, 1735689659999999999}, {61e9, 1735689600123456789}, {86400e9, 1735689600123456789},
			{1 << 52, 1735689600123456789}, {1<<52 - 1, 4000000000000000000}, {1 << 52, 0},
		} {
			index := test.nowNs / test.periodNs
			// The last window that starts within a minute, and its neighbours.
			near := (test.nowNs + 60e9) / test.periodNs
			for _, stored := range []int64{index + 1, index + 2, index + 3, near - 1, near, near + 1} {
				if stored <= index || stored-index >= 1<<31 {
					continue
				}
				gap := stored*test.periodNs - test.nowNs // at most 2^52 + 2^34, or 3 windows
				found := stored == index+1 || gap <= 60e9
				state := native.WindowState{Index: float64(uint32(stored)), Previous: previous, Current: current}.Bytes()
				for mode, free := range map[string]int64{"fixed": amount - current, "sliding": amount - current - previous} {
					want := []int64{1, amount, 0, 0}
					if found {
						want[1], want[3] = free, gap+test.periodNs
						if mode == "sliding" {
							want[3] += test.periodNs
						}
					}
					if err := do(s, "SET", "k", string(state[:])).Err(); err != nil {
						t.Fatal(err)
					}
					got, err := s.Eval(t.Context(), lua.WindowV2, []string{"k"}, amount, test.periodNs, mode, 0, test.nowNs).Int64Slice()
					if err != nil {
						t.Fatal(err)
					}
					if over := got[3] - want[3]; want[3] >= 1<<53 && over >= 0 && over <= 3 {
						want[3] = got[3] // from 2^53 on the script promises no more
					}
					if !slices.Equal(got, want) {
						t.Errorf("period %d, now %d, %d windows behind by %d ns, %s: %v, want %v",
							test.periodNs, test.nowNs, stored-index, gap, mode, got, want)
					}
				}
			}
		}
	})
}
