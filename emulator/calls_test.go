package emulator

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/emulator/native"
)

// recorded is a call, with what the emulator made of it.
type recorded struct {
	unixUs  int64 // the server's clock
	keys    []native.Key
	ttlMs   []int64 // when each key expires; 0 for never
	args    []string
	outcome string // as interpreters.Run tells it
}

// record makes n random calls on the emulator: limits and clocks of every size and at
// the edges, by the server's clock and a caller's, instants at which a refused call just
// fits or just does not, and keys that hold what the calls before left or what another
// limit, clock or script might have left, with an expiry and without.
func record(t testing.TB, a asset, n int) []recorded {
	rng := rand.New(rand.NewPCG(7, uint64(len(a.name))))
	r := New()
	sha := r.ScriptLoad(t.Context(), a.script).Val()
	calls := make([]recorded, n)
	var limit []string
	var units, nowNs, retryNs int64
	var key native.Key
	for i := range calls {
		if i%16 == 0 {
			limit, units = randomLimit(rng, a)
			nowNs, key = randomClock(rng), native.Key{Name: "k"}
		}
		switch rng.IntN(10) {
		case 0, 1:
			nowNs += upTo(rng, 1<<52)
		case 2:
			nowNs -= upTo(rng, 1<<52)
		case 3:
			nowNs += rng.Int64N(256) - 128
		case 4:
			nowNs += retryNs + rng.Int64N(3) - 1
		case 5: // within the second or into the next
			nowNs += rng.Int64N(2e9)
		case 6, 7:
			key = native.Key{Name: "k", Exists: true, Text: randomState(rng, a, limit, nowNs)}
		}
		nowNs = max(nowNs, 0) // what passed 2^63 - 1 too
		cost := []int64{1, 1, 1, 0, units, units + 1, upTo(rng, units), upTo(rng, 1<<52)}[rng.IntN(8)]
		c := &calls[i]
		*c = recorded{unixUs: nowNs / 1000, keys: []native.Key{key}, ttlMs: []int64{randomTTL(rng)},
			args: append(limit[:3:3], strconv.FormatInt(cost, 10))}
		if rng.IntN(2) > 0 {
			c.args = append(c.args, strconv.FormatInt(nowNs, 10))
		}
		if rng.IntN(64) == 0 {
			bad := []string{"", "0", "-1", "1.5", "x", "4503599627370497", "00000000000000000017", "9999999999999999999"}
			c.args[rng.IntN(len(c.args))] = bad[rng.IntN(len(bad))]
		}
		c.outcome = answerTo(t, r, sha, c)
		key = heldBy(r, "k")
		retryNs = 0
		if reply := strings.Fields(c.outcome); reply[0] == "0" {
			retryNs, _ = strconv.ParseInt(reply[2], 10, 64)
		}
	}
	return calls
}

// byServer tells whether the call takes the server's clock.
func (c *recorded) byServer() bool { return len(c.args) < 5 || c.args[4] == "" }

// answerTo makes the call and returns its outcome.
func answerTo(t testing.TB, r *Redis, sha string, c *recorded) string {
	now := time.UnixMicro(c.unixUs)
	r.SetTime(now)
	names := make([]string, len(c.keys))
	for i, key := range c.keys {
		names[i] = key.Name
		delete(r.keys, key.Name)
		if key.Exists {
			r.keys[key.Name] = &value{text: key.Text, expires: c.ttlMs[i] > 0, expiresMs: now.UnixMilli() + c.ttlMs[i]}
		}
	}
	before := maps.Clone(r.keys)
	cmd := r.EvalSha(t.Context(), sha, names, c.args)
	line := outcome(cmd)
	if reply, err := cmd.Slice(); err == nil {
		line = bracketed(reply)
		line = line[1 : len(line)-1]
	}
	for i, name := range names {
		before, after := before[name], r.keys[name]
		if after == before {
			continue
		}
		line += fmt.Sprintf(" %d:%x", i+1, after.text)
		switch ttlMs := after.expiresMs - now.UnixMilli(); {
		case after.expires && ttlMs%1000 == 0:
			line += fmt.Sprintf(" EX %d", ttlMs/1000)
		case before != nil && after.expires == before.expires && (!after.expires || after.expiresMs == before.expiresMs):
			line += " KEEPTTL"
		default:
			line += fmt.Sprintf(" and an expiry (%v) in %d ms", after.expires, ttlMs)
		}
	}
	return line
}

// bracketed is a part of a reply, its tables in brackets.
func bracketed(value any) string {
	parts, ok := value.([]any)
	if !ok {
		return fmt.Sprint(value)
	}
	texts := make([]string, len(parts))
	for i, part := range parts {
		texts[i] = bracketed(part)
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// randomTTL is an expiry, 0 for none. EX gives whole seconds, so that another one shows
// whether it was kept.
func randomTTL(rng *rand.Rand) int64 {
	if rng.IntN(2) == 0 {
		return 0
	}
	return rng.Int64N(1e6)*1000 + 1 + rng.Int64N(999)
}

// heldBy is a key as it is now.
func heldBy(r *Redis, name string) native.Key {
	held := r.keys[name]
	if held == nil {
		return native.Key{Name: name}
	}
	return native.Key{Name: name, Exists: true, Text: held.text}
}

// upTo is a number from 1 to most, of any size or near the top.
func upTo(rng *rand.Rand, most int64) int64 {
	if rng.IntN(4) == 0 {
		return 1 + rng.Int64N(most)
	}
	return min(1+rng.Int64N(1<<rng.IntN(53)), most)
}

// randomLimit returns the first three arguments, and the units that a new key has.
func randomLimit(rng *rand.Rand, a asset) (limit []string, units int64) {
	period := upTo(rng, 1<<52)
	amount, third := upTo(rng, 65535), []string{"fixed", "sliding"}[rng.IntN(2)]
	units = amount
	if !a.isWindow() {
		amount = upTo(rng, period)
		units = upTo(rng, 1<<52/((period+amount-1)/amount))
		third = strconv.FormatInt(units, 10)
	}
	return []string{strconv.FormatInt(amount, 10), strconv.FormatInt(period, 10), third}, units
}

// randomClock is an instant of our days, one at an edge, or any.
func randomClock(rng *rand.Rand) int64 {
	switch rng.IntN(4) {
	case 0:
		edges := []int64{0, 1e9, 1 << 53, 1e18, 1 << 60, (1 << 31) * 1e9, 1 << 61, 1 << 62, math.MaxInt64}
		return max(edges[rng.IntN(len(edges))]-upTo(rng, 1<<52), 0)
	case 1:
		return rng.Int64() >> rng.IntN(63)
	}
	return 1_700_000_000_000_000_000 + rng.Int64N(1e17)
}

// randomState is a TAT of any size or near the clock, some with credit, or counts in any
// window or near the one of nowNs, some of another period; or a text near to one of them.
func randomState(rng *rand.Rand, a asset, limit []string, nowNs int64) string {
	if rng.IntN(16) == 0 {
		return states[rng.IntN(len(states))]
	}
	if !a.isWindow() {
		tat := randomTAT(rng, nowNs)
		if rng.IntN(3) > 0 {
			return strconv.FormatUint(tat, 10)
		}
		last := randomTAT(rng, nowNs)
		switch rng.IntN(4) {
		case 0:
			last = tat
		case 1: // below it too
			last = tat + uint64(upTo(rng, 1<<52)) - uint64(upTo(rng, 1<<52))
		}
		credit := strconv.FormatUint(rng.Uint64()>>rng.IntN(64), 10) + "0123456789"[:rng.IntN(11)]
		return fmt.Sprintf("%d %s %d", tat, credit, last)
	}
	period, _ := strconv.ParseInt(limit[1], 10, 64)
	index := uint32(nowNs/period + rng.Int64N(9) - 4)
	switch rng.IntN(4) {
	case 0:
		index = rng.Uint32()
	case 1:
		index = uint32((nowNs+60e9)/period + rng.Int64N(3) - 1)
	}
	switch rng.IntN(32) {
	case 0:
		period = upTo(rng, 1<<52)
	case 1:
		period += 1 << 32 // looks the same
	}
	return counts(index, uint16(rng.IntN(1<<rng.IntN(17))), uint16(rng.IntN(1<<rng.IntN(17))), period)
}

// randomTAT is a TAT of any size, or within 2^52 ns of nowNs.
func randomTAT(rng *rand.Rand, nowNs int64) uint64 {
	switch rng.IntN(4) {
	case 0:
		return rng.Uint64N(1e19) >> rng.IntN(64)
	case 1:
		return uint64(max(nowNs-upTo(rng, 1<<52), 0))
	}
	return uint64(nowNs) + uint64(upTo(rng, 1<<52))
}

// held is what keys hold, for a reader.
func held(keys []native.Key) (texts []string) {
	for _, key := range keys {
		texts = append(texts, key.Text)
	}
	return texts
}
