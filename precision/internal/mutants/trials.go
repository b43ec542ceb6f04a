package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/internal/number"
	"github.com/tatami-rate/tatami/precision"
)

// trial is one call with texts that no trace would pass, on a key that holds
// anything, with the answer of the native port.
type trial struct {
	unixUs   int64  // the server's clock
	held     string // what the key holds before, unless missing is set
	missing  bool
	list     bool // it holds a list instead
	endless  bool // it has no expiry
	readOnly bool
	keys     []string
	args     []string
	want     string
}

const (
	heldTTLMs = 90000
	serverUs  = 1735689600_000000 // 2025-01-01T00:00:00Z
	nowText   = "1735689600000000000"
)

// run makes the call and returns all that can be seen of it.
func (c *trial) run(r *emulator.Redis, sha string) string {
	ctx := context.Background()
	r.SetTime(time.UnixMicro(c.unixUs))
	switch {
	case c.missing:
		r.Do(ctx, "DEL", "k")
	case c.list:
		r.Do(ctx, "DEL", "k")
		r.Do(ctx, "RPUSH", "k", "a")
	case c.endless:
		r.Do(ctx, "SET", "k", c.held)
	default:
		r.Do(ctx, "SET", "k", c.held, "PX", heldTTLMs)
	}
	args := make([]any, len(c.args))
	for i, arg := range c.args {
		args[i] = arg
	}
	eval := r.EvalSha
	if c.readOnly {
		eval = r.EvalShaRO
	}
	return seen(eval(ctx, sha, c.keys, args...)) + " " + seen(r.Do(ctx, "GET", "k")) + " " + seen(r.Do(ctx, "PTTL", "k"))
}

func seen(cmd *redis.Cmd) string {
	if cmd.Err() != nil {
		return "error " + cmd.Err().Error()
	}
	return fmt.Sprintf("%q", fmt.Sprint(cmd.Val()))
}

// expect sets what run must return, from the native port.
func (c *trial) expect(script precision.Script) {
	answer, held, ttlMs := c.native(script)
	state := fmt.Sprintf("%q", held)
	switch {
	case c.list:
		state, ttlMs = "error WRONGTYPE Operation against a key holding the wrong kind of value", -1
	case c.missing && held == "":
		state, ttlMs = "error redis: nil", -2
	}
	c.want = fmt.Sprintf("%s %s %q", answer, state, strconv.FormatInt(ttlMs, 10))
}

func (c *trial) native(script precision.Script) (answer, held string, ttlMs int64) {
	held, ttlMs = c.held, heldTTLMs
	if c.endless {
		ttlMs = -1
	}
	third := "burst"
	if script == precision.WindowV1 || script == precision.WindowV2 {
		third = "mode"
	}
	if len(c.keys) != 1 || len(c.args) > 5 {
		return fmt.Sprintf("error BADARG %s: takes 1 key, then amount period_ns %s cost [now_ns]", script, third), held, ttlMs
	}
	if c.list { // the arguments of such a trial are good
		return "error WRONGTYPE Operation against a key holding the wrong kind of value", held, ttlMs
	}
	after, d := c.decide(script)
	switch {
	case d.Err != "":
		return "error " + d.Err, held, ttlMs
	case d.Written && c.readOnly:
		return "error ERR Write commands are not allowed from read-only scripts.", held, ttlMs
	case d.Written:
		held, ttlMs = after, d.TTLMs
	}
	return fmt.Sprintf("%q", fmt.Sprint([]int64{d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs})), held, ttlMs
}

// decide asks the native port; after is the state as text.
func (c *trial) decide(script precision.Script) (after string, d native.Decision) {
	argument := func(i int) string {
		if i < len(c.args) {
			return c.args[i]
		}
		return ""
	}
	value := func(i int) float64 {
		if x, ok := number.ToNumber(argument(i)); ok {
			return x
		}
		return math.NaN()
	}
	now := native.ServerClock(c.unixUs)
	if argument(4) != "" {
		now = native.ParseClock(argument(4))
	}
	gcra := native.GCRAArgs{Amount: value(0), PeriodNs: value(1), Burst: value(2), Cost: value(3)}
	mode := argument(2)
	window := native.WindowArgs{Amount: value(0), PeriodNs: value(1), Cost: value(3),
		Sliding: mode == "sliding", BadMode: mode != "sliding" && mode != "fixed"}
	switch script {
	case precision.GCRAV1:
		tat := 0.0
		if !c.missing {
			tat = native.ParseTAT(c.held)
		}
		tat, d = native.GCRAV1(tat, gcra, now)
		return number.FormatInt(tat), d
	case precision.GCRAV2:
		tat := native.TAT{}
		if !c.missing {
			tat = native.ParseTATV2(c.held)
		}
		tat, d = native.GCRAV2(tat, gcra, now)
		return strconv.FormatUint(uint64(tat.S)*1e9+uint64(tat.Ns), 10), d
	}
	state, call := native.WindowState{}, native.WindowV1
	if !c.missing {
		state = native.ParseWindow(c.held)
	}
	if script == precision.WindowV2 {
		call = native.WindowV2
	}
	state, d = call(state, window, now)
	bytes := state.Bytes()
	return string(bytes[:]), d
}

// hostile are texts for every argument, states for every key.
var hostile = []string{"", " ", "nan", "inf", "-inf", "1e400", "1_000", "1.5", "0.5", "-1", "-9007199254740992",
	"18446744073709551616", "99999999999999999999", "0x", "1e-3", "x", "1e3", "0x10", "010", " 10 ", "-0", "0", "1", "2",
	"3", "59", "60", "61", "299", "300", "301", "65534", "65535", "65536", "65537", "4503599627370495", "4503599627370496",
	"4503599627370497", "9007199254740992", "9007199254740993", "4611686018427387903", "4611686018427387904", "fixed",
	"sliding", "0000000000000000001", "00000000000000000001", "999999999", "1000000000", "1000000001", "9999999999", "1a", "a1"}

var heldTexts = map[bool][]string{
	false: {"", "hello", "nan", "-1", "1e18", "1.5", "00", "01", "0", "0x10", " 5 ", "5 ", "17\n", "5\x00", "1", "255", "256",
		"257", "999999999", "1000000000", "1000000001", "99999999999999999", "100000000000000000", "999999999999999999", "1735689600000000000", "1735689600000000001", "1735689611999999999",
		"1735689612000000000", "1735689612000000001", "1735689612000000256", "2305843009213693951", "2305843009213693952",
		"2305843009213693953", "9223372036854775807", "9999999999999999999", "10000000000000000000", "12345678901234567890", "0735689600000000000",
		"173568960000000000x"},
	true: {"", "hello", "1234567", "123456789", "\x00\x00\x00\x00\x00\x00\x00\x00", "\x01\xb9\x6c\xc0\x00\x05\x00\x07",
		"\x01\xb9\x6c\xbf\x00\x05\x01\x2c", "\x01\xb9\x6c\xbf\xff\xff\xff\xff", "\x01\xb9\x6c\xc1\x00\x05\x00\x07",
		"\x01\xb9\x6c\xc2\x00\x05\x00\x07", "\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\xb9\x6c\xc0\x00\x00\x01\x2c"},
}

// trials are calls that differ from an ordinary one in a part: an argument, the key's
// state, the count of arguments or keys, the clock, the permission to write.
func trials(script precision.Script, isWindow bool) []trial {
	good := []string{"300", "60000000000", "60", "1", nowText}
	held := "1735689600000000000"
	if isWindow {
		good[2], held = "sliding", "\x01\xb9\x6c\xc0\x00\x05\x00\x07"
	}
	var all []trial
	add := func(c trial) {
		if c.unixUs == 0 {
			c.unixUs = serverUs
		}
		if c.keys == nil {
			c.keys = []string{"k"}
		}
		c.expect(script)
		all = append(all, c)
	}
	with := func(slot int, value string) []string {
		args := slices.Clone(good)
		args[slot] = value
		return args
	}
	for slot := range good {
		for _, value := range append(hostile, strings.Repeat("9", 10000)) {
			add(trial{held: held, args: with(slot, value)})
		}
	}
	for n := range len(good) + 1 {
		add(trial{held: held, args: good[:n]})
	}
	add(trial{held: held, args: append(slices.Clone(good), "")})
	add(trial{held: held, args: append(slices.Clone(good), "", "")})
	add(trial{held: held, args: good, keys: []string{}})
	add(trial{held: held, args: good, keys: []string{"k", "k2"}})
	add(trial{held: held, args: good, keys: []string{"k", "k2", "k3"}})
	for _, cost := range []string{"0", "1", "2", "5", "59", "60", "61", "62", "299", "300", "301", "4503599627370496"} {
		args := with(3, cost)
		for _, text := range heldTexts[isWindow] {
			add(trial{held: text, args: args})
		}
		add(trial{missing: true, args: args})
		add(trial{missing: true, args: args, readOnly: true})
		add(trial{held: held, args: args, readOnly: true})
		add(trial{held: held, args: args, endless: true})
		add(trial{list: true, args: args})
		for _, us := range []int64{1, 999, 1000, 123_456, 999_999} {
			add(trial{unixUs: serverUs + us, missing: true, args: args[:4]})
			add(trial{unixUs: serverUs + us, held: held, args: args[:4]})
		}
		if isWindow {
			fixed := slices.Clone(args)
			fixed[2] = "fixed"
			for _, text := range heldTexts[isWindow] {
				add(trial{held: text, args: fixed})
			}
		}
	}
	return all
}

// edgeClocks and edgeTATs are instants at which doubles, digits or a script's domain
// change.
var (
	edgeClocks = []string{"0", "1", "255", "256", "257", "999999999", "1000000000", "9007199254740991", "9007199254740992",
		"9007199254740993", "1152921504606846975", "1152921504606846976", "1152921504606847233", "1780000000123456789",
		"2301339409586323455", "2301339409586323456", "2301339409586323457", "2305843009213693951", "2305843009213693952",
		"2305843009213693953", "4611686018427387647", "4611686018427387903", "4611686018427387904", "9218868435999999999",
		"9218868436000000000", "9218868437227405311", "9218868437227405312", "9223372035854775807", "9223372036854775806",
		"9223372036854775807", "9223372036854775808", "9999999999999999999"}
	edgeTATs = append([]string{"1780000000123456788", "1780000000123457789", "1780000001123456789", "1784503599750827285",
		"1789007199378197780", "1789007199378197781", "1789007199378197782", "1789007199378197783", "2301339409586323200", "2305843009213693697",
		"10007199254740992", "9999999999999999744"}, edgeClocks...)
	edgeLimits = [][3]string{{"1", "1", "1"}, {"1", "256", "3"}, {"1", "1100", "64"}, {"1", "1000000000", "5"},
		{"1", "4503599627370496", "1"}, {"4503599627370496", "4503599627370496", "4503599627370496"},
		{"3", "4503599627370496", "3"}, {"7", "60000000000", "7"},
		{"3", "767", "5"}} // 255 and two thirds: up to 256 and no further
)

// edges are calls with clock, state and limit at the ends of what numbers hold.
func edges(script precision.Script, isWindow bool) []trial {
	var all []trial
	add := func(c trial) {
		c.unixUs, c.keys = serverUs, []string{"k"}
		c.expect(script)
		all = append(all, c)
	}
	if !isWindow {
		// gcra_v1 is then 9100000003000064 ns ahead, above 2^53 and 64 past a whole ms:
		// the 255 below the grid, taken off, would cost the ttl a ms
		add(trial{missing: true, args: []string{"1", "1", "4503599627370496", "35546875011718", "255"}})
	}
	for _, limit := range edgeLimits {
		for _, now := range edgeClocks {
			if isWindow {
				windowEdges(limit, now, add)
				continue
			}
			burst, _ := strconv.ParseInt(limit[2], 10, 64)
			costs := []string{"0", "1", limit[2], strconv.FormatInt(min(burst+1, 1<<52), 10)}
			slices.Sort(costs)
			for _, cost := range slices.Compact(costs) {
				args := []string{limit[0], limit[1], limit[2], cost, now}
				add(trial{missing: true, args: args})
				for _, tat := range edgeTATs {
					add(trial{held: tat, args: args})
				}
			}
		}
	}
	return all
}

// windowEdges are those of one clock and limit: the stored window is near the
// clock's or half the range of indexes away, and its counts are near the amount.
func windowEdges(limit [3]string, now string, add func(trial)) {
	amount, _ := strconv.ParseInt(limit[0], 10, 64)
	amount = min(amount, 65535)
	periodNs, _ := strconv.ParseUint(limit[1], 10, 64)
	nowNs, _ := strconv.ParseUint(now, 10, 64)
	allCounts := [][2]uint64{{uint64(amount), 1}, {0, uint64(amount)}, {1, 0}, {65535, 65535}}
	for _, mode := range []string{"fixed", "sliding"} {
		for _, cost := range []int64{0, 1, amount, amount + 1} {
			args := []string{strconv.FormatInt(amount, 10), limit[1], mode, strconv.FormatInt(cost, 10), now}
			add(trial{missing: true, args: args})
			if nowNs >= 1<<62 {
				continue // refused before the key is read
			}
			for _, apart := range []uint64{0, 1, 2, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 61, 1<<32 - 60, 1<<32 - 2, 1<<32 - 1} {
				for _, counts := range allCounts {
					index := nowNs/periodNs - apart
					held := make([]byte, 0, 8)
					for shift := 24; shift >= 0; shift -= 8 {
						held = append(held, byte(index>>shift))
					}
					held = append(held, byte(counts[0]>>8), byte(counts[0]), byte(counts[1]>>8), byte(counts[1]))
					add(trial{held: string(held), args: args})
					if mode == "fixed" {
						break // the counts are rolled the same way
					}
				}
			}
		}
	}
}
