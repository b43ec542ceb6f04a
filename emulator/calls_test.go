package emulator

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/emulator/native"
)

// recorded is a call on a key, with what the emulator made of it.
type recorded struct {
	unixUs int64 // the server's clock
	state  any   // what the key holds, nil for nothing
	args   []any
	// The reply's numbers or "error" with its text, then what was set, in hexadecimal,
	// and its PX.
	outcome string
}

// record makes n random calls on the emulator: limits and clocks of every size and at
// the edges, instants at which a refused call just fits or just does not, and keys that
// hold what the calls before left or what another limit or clock might have left.
func record(t testing.TB, a asset, n int) []recorded {
	rng := rand.New(rand.NewPCG(7, uint64(len(a.name))))
	r := New()
	sha := r.ScriptLoad(t.Context(), a.script).Val()
	calls := make([]recorded, n)
	var limit []any
	var units, nowNs, retryNs int64
	var state any
	for i := range calls {
		if i%16 == 0 {
			limit, units = randomLimit(rng, a)
			nowNs, state = randomClock(rng), nil
		}
		switch rng.IntN(8) {
		case 0, 1:
			nowNs += upTo(rng, 1<<52)
		case 2:
			nowNs -= upTo(rng, 1<<52)
		case 3:
			nowNs += rng.Int64N(256) - 128
		case 4:
			nowNs += retryNs + rng.Int64N(3) - 1
		case 5, 6:
			state = randomState(rng, a, limit, nowNs)
		}
		nowNs = max(nowNs, 0) // what passed 2^63 - 1 too
		cost := []int64{1, 1, 1, 0, units, units + 1, upTo(rng, units), upTo(rng, 1<<52)}[rng.IntN(8)]
		c := &calls[i]
		*c = recorded{nowNs / 1000, state, append(limit[:3:3], strconv.FormatInt(cost, 10)), ""}
		if rng.IntN(4) > 0 {
			c.args = append(c.args, strconv.FormatInt(nowNs, 10))
		}
		if rng.IntN(64) == 0 {
			bad := []any{"", "0", "-1", "1.5", "x", "4503599627370497", "00000000000000000017", "9999999999999999999"}
			c.args[rng.IntN(len(c.args))] = bad[rng.IntN(len(bad))]
		}
		c.outcome = answerTo(t, r, sha, c)
		if held := r.keys["k"]; held != nil {
			state = held.text
		}
		retryNs = 0
		if reply := strings.Fields(c.outcome); reply[0] == "0" {
			retryNs, _ = strconv.ParseInt(reply[2], 10, 64)
		}
	}
	return calls
}

// answerTo makes the call and returns its outcome.
func answerTo(t testing.TB, r *Redis, sha string, c *recorded) string {
	r.SetTime(time.UnixMicro(c.unixUs))
	delete(r.keys, "k")
	if c.state != nil {
		r.keys["k"] = &value{text: c.state.(string)}
	}
	before := r.keys["k"]
	cmd := r.EvalSha(t.Context(), sha, []string{"k"}, c.args...)
	line := outcome(cmd)
	if reply, err := cmd.Int64Slice(); err == nil {
		line = fmt.Sprintf("%d %d %d %d", reply[0], reply[1], reply[2], reply[3])
	}
	if after := r.keys["k"]; after != before {
		line += fmt.Sprintf(" %s %d", hex.EncodeToString([]byte(after.text)), after.expiresMs-r.nowMs())
	}
	return line
}

// upTo is a number from 1 to most, of any size or near the top.
func upTo(rng *rand.Rand, most int64) int64 {
	if rng.IntN(4) == 0 {
		return 1 + rng.Int64N(most)
	}
	return min(1+rng.Int64N(1<<rng.IntN(53)), most)
}

// randomLimit returns the first three arguments, and the units that a new key has.
func randomLimit(rng *rand.Rand, a asset) (limit []any, units int64) {
	period := upTo(rng, 1<<52)
	if a.isWindow() {
		amount := upTo(rng, 65535)
		mode := []string{"fixed", "sliding"}[rng.IntN(2)]
		return []any{strconv.FormatInt(amount, 10), strconv.FormatInt(period, 10), mode}, amount
	}
	amount := upTo(rng, period)
	burst := upTo(rng, 1<<52/((period+amount-1)/amount))
	return []any{strconv.FormatInt(amount, 10), strconv.FormatInt(period, 10), strconv.FormatInt(burst, 10)}, burst
}

// randomClock is an instant of our days, one at an edge, or any.
func randomClock(rng *rand.Rand) int64 {
	switch rng.IntN(4) {
	case 0:
		edges := []int64{0, 1e9, 1 << 53, 1 << 60, 1 << 61, 1 << 62, math.MaxInt64}
		return max(edges[rng.IntN(len(edges))]-upTo(rng, 1<<52), 0)
	case 1:
		return rng.Int64() >> rng.IntN(63)
	}
	return 1_700_000_000_000_000_000 + rng.Int64N(1e17)
}

// randomState is a TAT of any size, or counts in any window or near the one of nowNs.
func randomState(rng *rand.Rand, a asset, limit []any, nowNs int64) any {
	if !a.isWindow() {
		return strconv.FormatUint(rng.Uint64N(1e19)>>rng.IntN(64), 10)
	}
	period, _ := strconv.ParseInt(limit[1].(string), 10, 64)
	index := uint32(nowNs/period + rng.Int64N(9) - 4)
	switch rng.IntN(4) {
	case 0:
		index = rng.Uint32()
	case 1:
		index = uint32((nowNs+60e9)/period + rng.Int64N(3) - 1)
	}
	counts := native.WindowState{Index: float64(index), Previous: float64(rng.IntN(1 << rng.IntN(17))), Current: float64(rng.IntN(1 << rng.IntN(17)))}
	bytes := counts.Bytes()
	return string(bytes[:])
}
