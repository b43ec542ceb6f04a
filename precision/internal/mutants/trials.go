package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

// trial is one call with texts that no trace would pass, on keys that hold anything, with the
// answer of the native port.
type trial struct {
	unixUs   int64 // the server's clock
	keys     []native.Key
	list     bool // the last key holds a list instead
	endless  bool // they have no expiry
	readOnly bool
	server   string // what stands before the script, to run it as on another server
	args     []string
	want     string
}

// holding is one key, which holds a text, and missing one that holds nothing.
func holding(text string) []native.Key { return []native.Key{{Name: "k", Exists: true, Text: text}} }

var missing = []native.Key{{Name: "k"}}

const (
	heldTTLMs = 90000
	serverUs  = 1735689600_000000 // 2025-01-01T00:00:00Z
	nowText   = "1735689600000000000"
)

// narrowLong stands before a script that runs as on a server whose C long has 32 bits, i386:
// there string.format makes -2^31 of all that does not fit.
const narrowLong = `local string = setmetatable({format = function(form, ...)
  local values, at = {...}, 0
  for i = 1, #values do
    local _, last, conversion = string.find(form, '%%[0-9.]*(%a)', at + 1)
    at = last
    if conversion == 'd' and not (values[i] > -2^31 - 1 and values[i] < 2^31) then
      values[i] = -2^31
    end
  end
  return string.format(form, unpack(values))
end}, {__index = string})
`

// noTime stands before a script that runs as for a user who may not ask for the time.
const noTime = `local redis = setmetatable({pcall = function(name, ...)
  if name == 'TIME' then
    return {err = 'NOPERM no permission to run time'}
  end
  return redis.pcall(name, ...)
end}, {__index = redis})
`

// run makes the call and returns all that can be seen of it. sha is that of the script.
func (c *trial) run(r *emulator.Redis, sha string) string {
	ctx := context.Background()
	r.SetTime(time.UnixMicro(c.unixUs))
	names := make([]string, len(c.keys))
	for i, key := range c.keys {
		names[i] = key.Name
		switch {
		case c.list && i == len(c.keys)-1:
			r.Do(ctx, "DEL", key.Name)
			r.Do(ctx, "RPUSH", key.Name, "a")
		case !key.Exists:
			r.Do(ctx, "DEL", key.Name)
		case c.endless:
			r.Do(ctx, "SET", key.Name, key.Text)
		default:
			r.Do(ctx, "SET", key.Name, key.Text, "PX", heldTTLMs)
		}
	}
	args := make([]any, len(c.args))
	for i, arg := range c.args {
		args[i] = arg
	}
	eval := r.EvalSha
	if c.readOnly {
		eval = r.EvalShaRO
	}
	all := seen(eval(ctx, sha, names, args...))
	for _, name := range names {
		all += " " + seen(r.Do(ctx, "GET", name)) + " " + seen(r.Do(ctx, "PTTL", name))
	}
	return all
}

func seen(cmd *redis.Cmd) string {
	if cmd.Err() != nil {
		return "error " + cmd.Err().Error()
	}
	return fmt.Sprintf("%q", fmt.Sprint(cmd.Val()))
}

const wrongType = "error WRONGTYPE Operation against a key holding the wrong kind of value"

// expect sets what run must return, from the native port.
func (c *trial) expect(script precision.Script) {
	after, reply, _ := native.Call(string(script), c.keys, c.args, native.ServerClock(c.unixUs))
	written := []native.Decision{reply.Decision}
	numbers := func(d native.Decision) []any { return []any{d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs} }
	values := numbers(reply.Decision)
	if reply.Limits != nil {
		written, values = nil, []any{reply.Status, reply.RetryAfterNs}
		for _, l := range reply.Limits {
			written, values = append(written, l.Decision), append(values, append(numbers(l.Decision), l.Receipt))
		}
	}
	c.want = fmt.Sprintf("%q", fmt.Sprint(values))
	writes := slices.ContainsFunc(written, func(d native.Decision) bool { return d.Written })
	isForm := strings.Contains(reply.Err, ": takes 1 ")
	switch {
	case c.server == noTime && !isForm && c.byServer(script): // the arguments of such a trial are good
		c.want, writes = "error NOPERM no permission to run time", false
	case c.list && !isForm:
		c.want, writes = wrongType, false
	case reply.Err != "":
		c.want = "error " + reply.Err
	case writes && c.readOnly:
		c.want, writes = "error ERR Write commands are not allowed from read-only scripts.", false
	}
	for i, key := range c.keys {
		d := native.Decision{}
		if writes {
			key, d = after[i], written[i]
		}
		state, ttlMs := fmt.Sprintf("%q", key.Text), int64(heldTTLMs)
		switch {
		case c.list && i == len(c.keys)-1:
			state, ttlMs = wrongType, -1
		case !key.Exists:
			state, ttlMs = "error redis: nil", -2
		case d.TTLS > 0:
			ttlMs = d.TTLS * 1000
		case c.endless:
			ttlMs = -1
		}
		c.want += fmt.Sprintf(" %s %q", state, strconv.FormatInt(ttlMs, 10))
	}
}

// byServer tells whether the call takes the server's clock.
func (c *trial) byServer(script precision.Script) bool {
	if script == precision.LimitsV1 {
		return c.args[0] == ""
	}
	return len(c.args) < 5 || c.args[4] == ""
}

// ordinary are the arguments of a call that fits, of 300 units a minute, and what its key
// holds.
func ordinary(isWindow bool) (args []string, held string) {
	if isWindow {
		return []string{"300", "60000000000", "sliding", "1", nowText}, windowText(serverUs/60_000_000, 5, 7, 60e9)
	}
	return []string{"300", "60000000000", "60", "1", nowText}, nowText
}

// costs are around what the ordinary call's key, burst and amount have left.
var costs = []string{"0", "1", "2", "5", "59", "60", "61", "62", "299", "300", "301", "4503599627370496"}

// trials are calls that differ from an ordinary one in a part: an argument, the key's
// state, the count of arguments or keys, the clock, the permission to write.
func trials(script precision.Script, isWindow bool) []trial {
	good, held := ordinary(isWindow)
	var all []trial
	add := func(c trial) {
		if c.unixUs == 0 {
			c.unixUs = serverUs
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
		for _, a := range hostile.Arguments {
			add(trial{keys: holding(held), args: with(slot, a.Text)})
		}
	}
	for n := range len(good) + 1 {
		add(trial{keys: holding(held), args: good[:n]})
	}
	add(trial{keys: holding(held), args: append(slices.Clone(good), "")})
	add(trial{keys: holding(held), args: append(slices.Clone(good), "", "")})
	add(trial{args: good})
	add(trial{args: good, keys: append(holding(held), native.Key{Name: "k2"})})
	add(trial{args: good, keys: append(holding(held), native.Key{Name: "k2"}, native.Key{Name: "k3"})})
	for _, cost := range costs {
		args := with(3, cost)
		for _, s := range append([]hostile.State{{Text: " 5 7"}}, hostile.States...) {
			add(trial{keys: holding(s.Text), args: args})
			add(trial{keys: holding(s.Text), args: args[:4]})
		}
		add(trial{keys: missing, args: args})
		add(trial{keys: missing, args: args, readOnly: true})
		add(trial{keys: holding(held), args: args, readOnly: true})
		add(trial{keys: holding(held), args: args, endless: true})
		add(trial{keys: holding(held), args: args[:4], endless: true})
		add(trial{keys: missing, list: true, args: args})
		if isWindow {
			fixed := slices.Clone(args)
			fixed[2] = "fixed"
			for _, s := range hostile.States {
				add(trial{keys: holding(s.Text), args: fixed})
			}
		}
		for _, us := range []int64{0, 1, 999, 1000, 123_456, 999_999} {
			add(trial{unixUs: serverUs + us, keys: missing, args: args[:4]})
			if isWindow {
				windowsByServer(serverUs+us, args[:4], add)
			} else {
				// 1 ms a unit, so that there may be zeros after the second of the new TAT
				add(trial{unixUs: serverUs + us, keys: missing, args: []string{"60000", args[1], args[2], cost}})
				gcraByServer(serverUs+us, args[:4], add)
			}
		}
	}
	add(trial{server: noTime, keys: holding(held), args: good})
	add(trial{server: noTime, keys: holding(held), args: good[:4]})
	after2038(script, good, held, add)
	if isWindow {
		add(trial{keys: missing, args: []string{"300", "4294967295", "sliding", "1", nowText}}) // four bytes of 255
		// the end is 9007200 s and 1 ns after the second of the clock, which no double is
		add(trial{keys: missing, unixUs: 1796936214927681, args: []string{"1", "4503599536159601", "fixed", "1"}})
	} else {
		// a TAT in the second of the server's clock, whose nanoseconds begin with zeros
		add(trial{unixUs: serverUs + 1, keys: missing, args: []string{"1", "256", "3", "1"}})
		// servers whose clock is not set, and TATs too short for one that is
		for _, us := range []int64{0, 1, 999_999, 1_000_000, 999_999_998_999_999, 999_999_999_000_000, 999_999_999_999_999,
			1_000_000_000_000_000, 1_000_000_000_999_999, 1_000_000_001_000_000} {
			add(trial{unixUs: us, keys: missing, args: good[:4]})
			for _, text := range []string{"0", "5", "999999999", "1000000000", "100000000000000000", "999999998999999999",
				"999999999999999999", "1000000000000000000", "1000000000000000001",
				"999999999999999999 5 999999999999999999", "999999999999999999 5 1000000000000000000",
				"1000000000000000000 5 1000000000000000000", "1000000000000000000 5 999999999999999999", "0 5 7"} {
				add(trial{unixUs: us, keys: holding(text), args: good[:4]})
			}
		}
	}
	return all
}

// gcraByServer are calls by the server's clock on TATs around it, so that the new one, or
// last, lies in the same second or in another.
func gcraByServer(unixUs int64, args []string, add func(trial)) {
	cost, _ := strconv.ParseInt(args[3], 10, 64)
	spent := min(cost, 61) * 200_000_000 // by 300 a minute
	steps := []int64{0, 1, 255, 256, 799_999_999, 800_000_000, 999_999_744, 999_999_745, 999_999_999, 1e9, 11_999_999_999, 12e9}
	for _, step := range steps {
		tat := unixUs*1000 + step
		for _, tat := range []int64{tat, tat - 2e9} {
			add(trial{unixUs: unixUs, keys: holding(strconv.FormatInt(tat, 10)), args: args})
		}
		for _, last := range append([]int64{spent - 1, spent, spent + 1}, steps...) {
			add(trial{unixUs: unixUs, keys: holding(fmt.Sprintf("%d 123456789 %d", tat, tat+last)), args: args})
		}
	}
}

// windowsByServer are calls by the server's clock on windows around it.
func windowsByServer(unixUs int64, args []string, add func(trial)) {
	index := unixUs / 60_000_000
	for _, apart := range []int64{0, 1, 2, -1, -2} {
		for _, us := range []int64{0, 30_000_000, 59_000_000, 59_999_999} {
			for _, counts := range [][2]uint16{{5, 7}, {0, 1}, {300, 0}} {
				add(trial{unixUs: unixUs + us, keys: holding(windowText(index-apart, counts[0], counts[1], 60e9)), args: args})
			}
		}
	}
}

// windowText is a window's state.
func windowText(index int64, previous, current uint16, periodNs int64) string {
	held := binary.BigEndian.AppendUint32(nil, uint32(index))
	held = binary.BigEndian.AppendUint16(held, previous)
	held = binary.BigEndian.AppendUint16(held, current)
	return string(binary.BigEndian.AppendUint32(held, uint32(periodNs)))
}

// after2038 are calls on a server whose long has 32 bits, with clocks and TATs on both
// sides of the seconds that it holds.
func after2038(script precision.Script, args []string, held string, add func(trial)) {
	if script.IsWindow() {
		add(trial{server: narrowLong, keys: holding(held), args: args})
		add(trial{server: narrowLong, keys: missing, args: []string{"1", "4503599627370496", "fixed", "1", nowText}})
		return
	}
	for _, s := range []int64{0, 1, 1<<30 - 1, 1 << 30, 1<<31 - 2, 1<<31 - 1, 1 << 31, 1<<31 + 1, 2305843009, 1<<32 - 1, 1 << 32, 9218868436} {
		for _, cost := range []string{"1", "5", "10"} {
			for _, subNs := range []string{"000000000", "000000256", "999999744"} {
				now := strconv.FormatInt(s, 10) + subNs
				args := []string{args[0], args[1], args[2], cost, now}
				add(trial{server: narrowLong, keys: missing, args: args})
				add(trial{server: narrowLong, keys: missing, unixUs: s*1e6 + 1, args: args[:4]})
				if s > 0 {
					add(trial{server: narrowLong, keys: holding(now), args: args})
				}
				if s >= 1e9 {
					add(trial{server: narrowLong, keys: holding(now), unixUs: s * 1e6, args: args[:4]})
				}
			}
		}
	}
}

// edgeClocks and edgeTATs are instants at which doubles, digits or a script's domain
// change.
var (
	edgeClocks = []string{"0", "1", "255", "256", "257", "999999999", "1000000000", "9007199254740991", "9007199254740992",
		"9007199254740993", "1152921504606846975", "1152921504606846976", "1152921504606847233", "1780000000123456789",
		"2301339409586323455", "2301339409586323456", "2301339409586323457", "2305843009213693951", "2305843009213693952",
		"2305843009213693953", "4611686018427387647", "4611686018427387903", "4611686018427387904", "9218868436999999999",
		"9218868437000000000", "9218868437227405311", "9218868437227405312", "9223372035854775807", "9223372036854775806",
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
		c.unixUs = serverUs
		c.expect(script)
		all = append(all, c)
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
				add(trial{keys: missing, args: args})
				for _, tat := range edgeTATs {
					add(trial{keys: holding(tat), args: args})
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
			add(trial{keys: missing, args: args})
			if nowNs >= 1<<62 {
				continue // refused before the key is read
			}
			for _, bit := range []uint64{0, 7, 8, 15, 16, 23, 24, 31} { // of another period
				add(trial{keys: holding(windowText(int64(nowNs/periodNs), 1, 1, int64(periodNs^1<<bit))), args: args})
			}
			for _, apart := range []uint64{0, 1, 2, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 61, 1<<32 - 60, 1<<32 - 2, 1<<32 - 1} {
				for _, counts := range allCounts {
					held := windowText(int64(nowNs/periodNs-apart), uint16(counts[0]), uint16(counts[1]), int64(periodNs))
					add(trial{keys: holding(held), args: args})
					if mode == "fixed" {
						break // the counts are rolled the same way
					}
				}
			}
		}
	}
}
