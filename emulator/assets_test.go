package emulator

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/lua"
)

const (
	nowText   = "1735689600000000000" // 2025-01-01T00:00:00Z, where the clock of New stands
	nowMinute = 1735689600 / 60
)

// asset is a script with arguments that are admitted, the clock last.
type asset struct {
	name, script string
	slots        []string
	args         []any
}

var assets = []asset{gcra("gcra_v1"), gcra("gcra_v2"), window("window_v1")}

func gcra(name string) asset {
	return asset{name, lua.Assets[name], []string{"amount", "period_ns", "burst", "cost", "now_ns"},
		[]any{"300", "60000000000", "60", "1", nowText}}
}

func window(name string) asset {
	return asset{name, lua.Assets[name], []string{"amount", "period_ns", "mode", "cost", "now_ns"},
		[]any{"300", "60000000000", "sliding", "1", nowText}}
}

// counts is the state of a window.
func counts(index uint32, previous, current uint16, periodNs int64) string {
	state := binary.BigEndian.AppendUint32(nil, index)
	state = binary.BigEndian.AppendUint16(state, previous)
	state = binary.BigEndian.AppendUint16(state, current)
	return string(binary.BigEndian.AppendUint32(state, uint32(periodNs)))
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
	name        string
	prepare     [][]any
	script      string // its name
	keys        []string
	args        []any
	serverClock bool   // whether now_ns is left out
	want        string // how the error reply starts; empty for none
}

// takes tells whether the script takes the argument in this slot, beside a's others.
func (a asset) takes(slot string, argument hostile.Argument) bool {
	within := func(least, most float64) bool {
		return argument.Whole && argument.Value >= least && argument.Value <= most
	}
	switch slot {
	case "amount":
		if a.isWindow() {
			return within(1, 65535)
		}
		return within(1, 60e9)
	case "period_ns":
		if a.isWindow() {
			return within(1, 1<<52)
		}
		return within(300, 1<<52)
	case "burst":
		return within(1, (1<<52)/200e6)
	case "mode":
		return argument.Text == "fixed" || argument.Text == "sliding"
	case "cost":
		return within(0, 1<<52)
	}
	if !hostile.IsClock(argument.Text) {
		return argument.Text == ""
	}
	nowNs, err := strconv.ParseUint(argument.Text, 10, 64)
	return err == nil && nowNs <= lastClock[a.name]
}

// states are what a key may hold: the table of all parts, and texts that differ from one of
// it in a place that this package's own patterns look at.
var states = func() (texts []string) {
	for _, state := range hostile.States {
		texts = append(texts, state.Text)
	}
	return append(texts, " 5", "+1735689600000000000", "1735689600000000000 ", "17356896000000000 0",
		"5 1", "5 1 ", "5  1 7", " 5 1 7", "5 1 7 ", "5 0 7", "5 1 0", "5 01 7", "5 1 07", "5 1 7 9", "-5 1 7", "5 1 x", "5\t1\t7",
		"1735689600000000000 1\x00 1735689600000000000", "00 1 7", "05 1 7", "10000000000000000000 1 7", "5 1 7",
		"1000000000000000000 99999999999999999999999999 9999999999999999999",
		counts(nowMinute, 5, 7, 60e9+1<<32), counts(0, 0, 0, 0))
}()

var (
	plainTAT   = regexp.MustCompile(`\A(?:0|[1-9][0-9]{0,18})\z`)
	withCredit = regexp.MustCompile(`\A([0-9]+) [1-9][0-9]* ([1-9][0-9]*)\z`)
)

// refusal is how the error reply to a state starts, and empty where there is none. By the
// server's clock a TAT has 19 digits: a shorter one is a counter of somebody's.
func (a asset) refusal(state string, serverClock bool) string {
	bad := func(what string) string { return "BADSTATE " + a.name + ": the " + what }
	if a.isWindow() {
		switch {
		case len(state) != 12:
			return bad("key holds something else than 12 bytes of counts")
		case state[8:] != counts(0, 0, 0, 60e9)[8:]:
			return bad("key holds counts of another period; name the period in the key")
		}
		return ""
	}
	tats := []string{state}
	if credit := withCredit.FindStringSubmatch(state); credit != nil {
		if a.name == "gcra_v1" {
			return bad("key holds a TAT with credit; use gcra_v2")
		}
		tats = credit[1:]
	}
	for _, tat := range tats {
		if !plainTAT.MatchString(tat) || serverClock && len(tat) < 19 {
			return bad("key holds something else than a decimal TAT")
		}
	}
	if a.name == "gcra_v1" && len(state) == 19 && state > strconv.Itoa(1<<61) {
		return bad("TAT is above 2^61; use gcra_v2")
	}
	return ""
}

// lastClock is the last now_ns that a script takes with a burst worth 12 s.
var lastClock = map[string]uint64{"gcra_v1": 1<<61 - 12e9, "gcra_v2": 1<<63 - 1 - 12e9, "window_v1": 1<<62 - 1}

func trials() []trial {
	var all []trial
	for _, a := range assets {
		used := []any{"SET", "k", "1735689600000000000", "PX", "90000"}
		if a.isWindow() {
			used = []any{"SET", "k", counts(nowMinute, 5, 7, 60e9), "PX", "90000"}
		}
		add := func(want, name string, prepare []any, keys []string, args ...any) {
			commands := [][]any{{"DEL", "k", "k2"}}
			if prepare != nil {
				commands = append(commands, prepare)
			}
			if want == "BADARG" {
				want += " " + a.name + ": "
			}
			serverClock := len(args) < 5 || args[4] == ""
			all = append(all, trial{a.name + " " + name, commands, a.name, keys, args, serverClock, want})
		}
		onState := func(want, name, state string, args []any) {
			add(want, fmt.Sprintf("%s, state %.40q", name, state), []any{"SET", "k", state, "PX", "90000"}, []string{"k"}, args...)
		}
		for _, slot := range a.slots {
			for _, argument := range hostile.Arguments {
				want, prepare := "BADARG", used
				if a.takes(slot, argument) {
					want = ""
				}
				if want == "" && a.isWindow() && slot == "period_ns" {
					prepare = nil // a key belongs to one period
				}
				add(want, fmt.Sprintf("%s=%.40q", slot, argument.Text), prepare, []string{"k"}, a.with(slot, argument.Text)...)
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
				onState(a.refusal(state, false), "cost "+cost, state, args)
				onState(a.refusal(state, true), "server's clock, cost "+cost, state, append(args[:4:4], ""))
			}
			add("", "cost "+cost+", no key yet", nil, []string{"k"}, args...)
			add("WRONGTYPE ", "cost "+cost+", a list", []any{"RPUSH", "k", "a"}, []string{"k"}, args...)
			add("", "cost "+cost+", no expiry", used[:3], []string{"k"}, args...)
		}
		for i, now := range hostile.Clocks {
			nowNs, err := strconv.ParseUint(now, 10, 64)
			if err != nil {
				panic(err)
			}
			for j, state := range states {
				if (i+j)%3 > 0 { // all of them would take a minute on a server
					continue
				}
				want := a.refusal(state, false)
				if nowNs > lastClock[a.name] {
					want = "BADARG"
				}
				onState(want, "now_ns "+now, state, a.with("now_ns", now))
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
		cmd := s.Eval(t.Context(), lua.Assets[c.script], c.keys, c.args...)
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
		if _, own := s.(*Redis); !own && c.serverClock && err == nil {
			outcomes = append(outcomes, "") // it has its own clock
			continue
		}
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
			if got != want[i] && got != "" {
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

// A gcra key holds the TAT as a decimal number without a zero in front: with the seconds
// only where there are any, and around 2^31 of them. gcra_v1 starts from the next
// multiple of 256.
func TestGCRAState(t *testing.T) {
	const interval = 1024
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for _, name := range []string{"gcra_v1", "gcra_v2"} {
			for _, now := range []uint64{0, 7, 256, 999_998_976, 999_998_977, 999_999_999, 1e9, 2e9 - 1024, 9_999_998_975, 9_999_998_976, 1e18 - 1024,
				1_735_689_600_000_000_001, 1_735_689_600_999_998_976, (1<<31-1)*1e9 - 1024, (1<<31-1)*1e9 + 1, (1<<31)*1e9 - 1025, (1<<31)*1e9 - 1024,
				(1<<31)*1e9 - 1, (1 << 31) * 1e9, (1<<31)*1e9 + 5, (1 << 32) * 1e9, 1<<61 - 7*1024, 1<<63 - 1 - 6*1024} {
				want := now
				if name == "gcra_v1" {
					want = (now + 255) / 256 * 256
					if now > 1<<61-7*1024 {
						continue
					}
				}
				if err := do(s, "DEL", "k").Err(); err != nil {
					t.Fatal(err)
				}
				for _, cost := range []uint64{1, 3, 1} {
					want += cost * interval
					reply := outcome(s.Eval(t.Context(), lua.Assets[name], []string{"k"}, 1, interval, 6, cost, now))
					if got := outcome(do(s, "GET", "k")); got != strconv.FormatUint(want, 10) {
						t.Errorf("%s, now_ns %d, cost %d: %s, the key holds %s, want %d", name, now, cost, reply, got, want)
					}
				}
			}
		}
	})
}

// By the server's clock a number of less than 19 digits is no TAT, unless the server
// itself is before 2001; the same of the last TAT beside credit.
func TestForeignNumbers(t *testing.T) {
	for _, test := range []struct {
		nowUs int64
		state string
		ok    bool
	}{
		{1e15, "57", false}, {1e15, "0", false}, {1e15, "999999999999999999", false}, {1e15, "1000000000000000000", true},
		{1e15 - 1, "57", true}, {1e15 - 1, "0", true}, {1e15 - 1, "999999999999999999", true}, {1e15 - 1, "1000000000000000000", true},
		{1e15 - 1, "10000000000000000000", false}, {1e15 - 1, "057", false}, {0, "57", true}, {0, "00", false},
		{1e15, "1000000000000000000 1 999999999999999999", false}, {1e15, "999999999999999999 1 1000000000000000000", false},
		{1e15, "1000000000000000000 1 1000000000000000000", true}, {1e15 - 1, "1000000000000000000 1 999999999999999999", true},
		{1e15 - 1, "5 1 7", true}, {0, "0 1 1", true}, {0, "0 1 10000000000000000000", false},
	} {
		for _, name := range []string{"gcra_v1", "gcra_v2"} {
			hasCredit := strings.Contains(test.state, " ")
			if hasCredit && name == "gcra_v1" {
				continue
			}
			s := New()
			s.SetTime(time.UnixMicro(test.nowUs))
			do(s, "SET", "k", test.state)
			err := s.Eval(t.Context(), lua.Assets[name], []string{"k"}, 1, 1000, 5, 1).Err()
			want := "BADSTATE " + name + ": the key holds something else than a decimal TAT"
			if (err == nil) != test.ok || err != nil && err.Error() != want {
				t.Errorf("%s, clock %d us, key %q: %v", name, test.nowUs, test.state, err)
			}
			if got := outcome(do(s, "GET", "k")); (got != test.state) != test.ok {
				t.Errorf("%s, clock %d us, key %q: it then holds %q", name, test.nowUs, test.state, got)
			}
		}
	}
}

// window_v1 finds the counts of a window that starts within a minute or is the next one,
// as at its first instant; a clock further behind finds none.
func TestWindowClockBehind(t *testing.T) {
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
				state := counts(uint32(stored), previous, current, test.periodNs)
				for mode, free := range map[string]int64{"fixed": amount - current, "sliding": amount - current - previous} {
					want := []int64{1, amount, 0, 0}
					if found {
						want[1], want[3] = free, gap+test.periodNs
						if mode == "sliding" {
							want[3] += test.periodNs
						}
					}
					if err := do(s, "SET", "k", state).Err(); err != nil {
						t.Fatal(err)
					}
					got, err := s.Eval(t.Context(), lua.WindowV1, []string{"k"}, amount, test.periodNs, mode, 0, test.nowNs).Int64Slice()
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
