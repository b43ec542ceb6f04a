package emulator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/emulator/interpreters"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/lua"
)

// limitArgs are the arguments of limits_v1 for each key.
var limitArgs = []string{"kind", "amount", "period_ns", "burst", "cost", "receipt"}

// limitOf is a limit that a key has in several calls.
type limitOf struct {
	asset
	args     []string // kind amount period_ns burst
	units    int64    // that a new key has
	receipts []string // that its asks answered
}

// recordLimits makes n random calls of limits_v1 on the emulator, as record does: of one key
// or up to 32, some asks and some settlements of what the calls before answered, or of receipts
// that no call did; on what these calls left, or another limit, clock or script might have.
func recordLimits(t testing.TB, n int) []recorded {
	rng := rand.New(rand.NewPCG(7, 77))
	r := New()
	sha := r.ScriptLoad(t.Context(), lua.LimitsV1).Val()
	calls := make([]recorded, n)
	var limits []limitOf
	var keys []native.Key
	var nowNs, retryNs int64
	for i := range calls {
		if i%16 == 0 {
			count := []int{1, 1, 2, 2, 3, 5, 8, 1 + rng.IntN(32), 32}[rng.IntN(9)]
			limits, keys = make([]limitOf, count), make([]native.Key, count)
			for at := range limits {
				limits[at] = randomLimitOf(rng)
				keys[at] = native.Key{Name: fmt.Sprint("k", at)}
			}
			nowNs = randomClock(rng)
		}
		switch rng.IntN(10) {
		case 0:
			nowNs += upTo(rng, 1<<52)
		case 1:
			nowNs -= upTo(rng, 1<<52)
		case 2:
			nowNs += rng.Int64N(256) - 128
		case 3:
			nowNs += retryNs + rng.Int64N(3) - 1
		case 4: // within the second or into the next
			nowNs += rng.Int64N(2e9)
		}
		nowNs = max(nowNs, 0) // what passed 2^63 - 1 too
		first := rng.IntN(len(keys))
		most := 1 + rng.IntN(len(keys)-first)
		if rng.IntN(4) == 0 {
			first, most = 0, len(keys)
		}
		c := &calls[i]
		*c = recorded{unixUs: nowNs / 1000, args: []string{""}}
		if rng.IntN(2) > 0 {
			c.args[0] = strconv.FormatInt(nowNs, 10)
		}
		for at := first; at < first+most; at++ {
			l := &limits[at]
			if rng.IntN(6) == 0 {
				keys[at] = native.Key{Name: keys[at].Name, Exists: rng.IntN(4) > 0}
				if keys[at].Exists {
					keys[at].Text = randomState(rng, l.asset, l.args[1:], nowNs)
				}
			}
			c.keys, c.ttlMs = append(c.keys, keys[at]), append(c.ttlMs, randomTTL(rng))
			c.args = slices.Concat(c.args, l.args, l.askOrSettle(rng, nowNs))
		}
		if rng.IntN(20) == 0 {
			spoil(rng, c)
		}
		c.outcome = answerTo(t, r, sha, c)
		for at := range c.keys {
			keys[first+at] = heldBy(r, keys[first+at].Name)
		}
		retryNs = 0
		if words := strings.Fields(c.outcome); words[0] == "0" {
			retryNs, _ = strconv.ParseInt(words[1], 10, 64)
		}
		for at, receipt := range receiptsIn(c.outcome) {
			if receipt != "" {
				limits[first+at].receipts = append(limits[first+at].receipts, receipt)
			}
		}
	}
	return calls
}

func randomLimitOf(rng *rand.Rand) limitOf {
	a := assets[1+rng.IntN(2)] // gcra_v2 or window_v1
	limit, units := randomLimit(rng, a)
	if a.isWindow() {
		return limitOf{asset: a, args: []string{limit[2], limit[0], limit[1], ""}, units: units}
	}
	return limitOf{asset: a, args: []string{"gcra", limit[0], limit[1], limit[2]}, units: units}
}

// askOrSettle is the cost and the receipt.
func (l *limitOf) askOrSettle(rng *rand.Rand, nowNs int64) []string {
	cost := []int64{1, 1, 1, 0, l.units, l.units + 1, upTo(rng, l.units), upTo(rng, 1<<52)}[rng.IntN(8)]
	if rng.IntN(3) > 0 {
		return []string{strconv.FormatInt(cost, 10), ""}
	}
	if rng.IntN(3) > 0 {
		cost = -cost
	}
	receipt := ""
	switch {
	case len(l.receipts) > 0 && rng.IntN(8) > 0:
		receipt = l.receipts[max(len(l.receipts)-1-rng.IntN(3), 0)]
	case l.isWindow():
		period, _ := strconv.ParseInt(l.args[2], 10, 64)
		receipt = fmt.Sprint(uint32(nowNs/period + rng.Int64N(4) - 2))
	default:
		receipt = strconv.FormatUint(randomTAT(rng, nowNs), 10)
		if rng.IntN(2) > 0 {
			receipt += " " + strconv.FormatUint(max(rng.Uint64()>>rng.IntN(64), 1), 10) + "0123456789"[:rng.IntN(11)]
		}
	}
	return []string{strconv.FormatInt(cost, 10), receipt}
}

// spoil makes an argument hostile, names a key twice, or passes too few arguments or too many.
func spoil(rng *rand.Rand, c *recorded) {
	switch {
	case rng.IntN(8) == 0:
		c.args = c.args[:rng.IntN(len(c.args))]
	case rng.IntN(8) == 0:
		c.args = append(c.args, "")
	case len(c.keys) > 1 && rng.IntN(4) == 0:
		first, again := rng.IntN(len(c.keys)-1), len(c.keys)-1
		c.keys[again], c.ttlMs[again] = c.keys[first], c.ttlMs[first]
	default:
		text := hostile.Arguments[rng.IntN(len(hostile.Arguments))].Text
		if !strings.Contains(text, "\x00") { // which Luas read in different ways
			c.args[rng.IntN(len(c.args))] = text
		}
	}
}

// receiptsIn are those of an outcome's keys.
func receiptsIn(outcome string) (receipts []string) {
	for _, part := range strings.Split(outcome, "[")[1:] {
		fields, _, _ := strings.Cut(part, "]")
		receipts = append(receipts, strings.SplitN(fields, " ", 5)[4])
	}
	return receipts
}

// limitsTrial is a call of limits_v1 of which the texts alone say whether it is taken.
type limitsTrial struct {
	recorded
	want string // how the error reply starts; empty for none
}

// limitsTrials differ from an ordinary ask or settlement, alone or after another key, in one
// text: an argument, a state, a clock.
func limitsTrials() []limitsTrial {
	var all []limitsTrial
	kinds := map[string]asset{"gcra": assets[1], "fixed": assets[2], "sliding": assets[2]}
	isWindow := func(kind string) bool { return kind == "fixed" || kind == "sliding" }
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		a := kinds[kind]
		good := []string{kind, "300", "60000000000", "60", "1", ""}
		state, receipt := "1735689601000000000", "1735689600800000000"
		if a.isWindow() {
			good[3], state, receipt = "", counts(nowMinute, 5, 7, 60e9), strconv.Itoa(nowMinute)
		}
		// add makes the call by a caller's clock, and by the server's where that may be, of one
		// key, and of it after another.
		add := func(want, now, held string, args []string) {
			keys := []native.Key{{Name: "{k}1", Exists: true, Text: held}}
			for _, clock := range []string{now, ""} {
				if clock == "" && now != nowText {
					continue
				}
				want := want
				if want == "" {
					want = stateRefusal(a, kind, held, clock == "")
				}
				c := recorded{unixUs: 1735689600_000000, keys: keys, args: append([]string{clock}, args...)}
				all = append(all, limitsTrial{c, strings.Replace(want, "key N", "key 1", 1)})
				if len(all)%3 > 0 || strings.HasPrefix(want, "BADARG limits_v1: key N: now_ns") { // which is key 1's then
					continue
				}
				c.keys = []native.Key{{Name: "{k}2"}, keys[0]}
				c.args = slices.Concat([]string{clock}, []string{"gcra", "1", "1000", "1", "1", ""}, args)
				all = append(all, limitsTrial{c, strings.Replace(want, "key N", "key 2", 1)})
			}
		}
		with := func(slot int, text string, settles bool) []string {
			args := slices.Clone(good)
			if settles {
				args[4], args[5] = "-1", receipt
			}
			args[slot] = text
			return args
		}
		for _, settles := range []bool{false, true} {
			for slot, name := range limitArgs {
				for _, argument := range hostile.Arguments {
					want := "BADARG limits_v1: key N: " + name
					switch {
					case name == "kind" && !a.isWindow() && isWindow(argument.Text):
						want = "BADARG limits_v1: key N: burst" // which a window does not take
					case name == "period_ns" && !a.isWindow() && argument.Whole && argument.Value >= 1 && argument.Value < 300:
						want = "BADARG limits_v1: key N: amount"
					case name == "receipt" && argument.Text == "" && settles:
						want = "BADARG limits_v1: key N: cost" // then of an ask
					}
					if takesOfLimits(a, name, argument, settles) {
						want = ""
					}
					if want == "" && name == "period_ns" && a.isWindow() && argument.Value != 60e9 {
						want = "BADSTATE limits_v1: key N: it holds counts of another period"
					}
					add(want, nowText, state, with(slot, argument.Text, settles))
				}
			}
			for _, cost := range []string{"0", "1", "-1", "5", "61", "-61", "301", "-301"} {
				if !settles && cost[0] == '-' {
					continue
				}
				for _, held := range states {
					add("", nowText, held, with(4, cost, settles))
				}
			}
			for i, now := range hostile.Clocks {
				nowNs, _ := strconv.ParseUint(now, 10, 64)
				want := ""
				if nowNs > lastClock[a.name] {
					want = "BADARG limits_v1: key N: now_ns"
				}
				for j, held := range states {
					if (i+j)%5 == 0 {
						add(want, now, held, with(1, "300", settles))
					}
				}
			}
			for _, argument := range hostile.Arguments {
				if hostile.IsClock(argument.Text) || argument.Text == "" {
					continue // above
				}
				const want = "BADARG limits_v1: now_ns must be at most 19 decimal digits"
				add(want, argument.Text, state, with(4, "1", settles))
			}
		}
		for _, text := range slices.Concat(states, hostile.Receipts) {
			want := "BADARG limits_v1: key N: receipt"
			form := receiptOf[a.name]
			if index, err := strconv.ParseUint(text, 10, 64); form.MatchString(text) && !(a.isWindow() && (err != nil || index >= 1<<32)) {
				want = ""
			}
			for _, cost := range []string{"0", "1", "-1", "-60"} {
				if text != "" {
					args := with(5, text, true)
					args[4] = cost
					add(want, nowText, state, args)
				}
			}
		}
	}
	return all
}

// receiptOf is the form of a receipt, of a window below 2^32.
var receiptOf = map[string]*regexp.Regexp{
	"gcra_v2":   regexp.MustCompile(`\A(0|[1-9][0-9]{0,18})( [1-9][0-9]*)?\z`),
	"window_v1": regexp.MustCompile(`\A(0|[1-9][0-9]{0,9})\z`),
}

// takesOfLimits tells whether limits_v1 takes the argument in this slot, where the script of
// one limit takes what a.takes tells.
func takesOfLimits(a asset, slot string, argument hostile.Argument, settles bool) bool {
	switch slot {
	case "kind":
		return a.isWindow() && a.takes("mode", argument)
	case "burst":
		if a.isWindow() {
			return argument.Text == ""
		}
	case "cost":
		if settles {
			return argument.Whole && argument.Value >= -1<<52 && argument.Value <= 1<<52
		}
	case "receipt":
		index, err := strconv.ParseUint(argument.Text, 10, 64)
		return argument.Text == "" && !settles || receiptOf[a.name].MatchString(argument.Text) && !(a.isWindow() && (err != nil || index >= 1<<32))
	}
	return a.takes(slot, argument)
}

// stateRefusal is how the error reply to a state starts.
func stateRefusal(a asset, kind, state string, serverClock bool) string {
	refusal := a.refusal(state, serverClock)
	return strings.Replace(refusal, a.name+": the key", "limits_v1: key N: it", 1)
}

// Whatever a caller passes and the keys hold, emulator, server and native port answer and write
// the same; what is refused leaves every key as it was.
func TestLimitsTrials(t *testing.T) {
	all := limitsTrials()
	play := func(t *testing.T, s redis.Scripter) (outcomes []string) {
		sha := s.ScriptLoad(t.Context(), lua.LimitsV1).Val()
		for _, c := range all {
			var names []string
			for _, key := range c.keys {
				names = append(names, key.Name)
				do(s, "DEL", key.Name)
				if key.Exists {
					do(s, "SET", key.Name, key.Text, "PX", "90000")
				}
			}
			got := outcome(s.EvalSha(t.Context(), sha, names, c.args))
			if c.want == "" && strings.HasPrefix(got, "error ") || !strings.HasPrefix(got, "error "+c.want) && c.want != "" {
				t.Errorf("%.300q, keys %.300q: %s, want an error that starts with %q", c.args, held(c.keys), got, c.want)
			}
			for _, key := range c.keys {
				now := outcome(do(s, "GET", key.Name))
				got += " " + now
				if c.want != "" && now != key.Text && (key.Exists || now != "error redis: nil") {
					t.Errorf("%.300q, keys %.300q: refused, and %s holds %q", c.args, held(c.keys), key.Name, now)
				}
			}
			outcomes = append(outcomes, got)
		}
		return outcomes
	}
	var outcomes []string
	t.Run("emulator", func(t *testing.T) {
		r := New()
		r.SetTime(time.UnixMicro(1735689600_000000))
		outcomes = play(t, r)
	})
	t.Run("native", func(t *testing.T) {
		r := New()
		sha := r.ScriptLoad(t.Context(), lua.LimitsV1).Val()
		for _, c := range all {
			c.ttlMs = make([]int64, len(c.keys))
			want := answerTo(t, r, sha, &c.recorded)
			after, reply, _ := native.Call("limits_v1", c.keys, c.args, native.ServerClock(c.unixUs))
			if got := interpreters.Outcome(reply, after); got != want {
				t.Errorf("%.300q, keys %.300q: native %s, asset %s", c.args, held(c.keys), got, want)
			}
		}
	})
	t.Run("server", func(t *testing.T) {
		for i, got := range play(t, serverClient(t)) {
			if c := all[i]; got != outcomes[i] && (c.args[0] != "" || c.want != "") { // else it has its own clock
				t.Errorf("%.300q, keys %.300q: server %s, emulator %s", c.args, held(c.keys), got, outcomes[i])
			}
		}
	})
	t.Logf("%d calls", len(all))
}

// The native port answers and writes what limits_v1 does, as TestNativeIsTheAsset holds of the
// scripts of one limit.
func TestNativeIsLimits(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 4000
	}
	different, kinds := 0, map[string]int{}
	for _, c := range recordLimits(t, n) {
		after, reply, _ := native.Call("limits_v1", c.keys, c.args, native.ServerClock(c.unixUs))
		got := interpreters.Outcome(reply, after)
		if got != c.outcome {
			if different++; different <= 10 {
				t.Errorf("%q, keys %q, server's clock %d us: native\n%s, asset\n%s", c.args, held(c.keys), c.unixUs, got, c.outcome)
			}
		}
		for _, kind := range c.limitKinds(after, reply) {
			kinds[kind]++
		}
	}
	t.Logf("%d calls, %d different; %v", n, different, kinds)
	for _, kind := range []string{"-1", "0", "1", "error BADARG", "error BADSTATE", "32 keys", "2 keys", "ask charged", "ask undone",
		"give-back", "over-use", "settled for nothing", "credit more", "current", "previous", "EX server", "EX caller", "KEEPTTL server",
		"written beside a refusal"} {
		if kinds[kind] < n/2000 {
			t.Errorf("only %d of %d calls are %q", kinds[kind], n, kind)
		}
	}
}

// limitKinds are what there is to see in a call of limits_v1.
func (c *recorded) limitKinds(after []native.Key, reply native.Reply) []string {
	kinds := []string{fmt.Sprint(reply.Status), fmt.Sprint(len(c.keys), " keys")}
	if reply.Err != "" {
		return []string{"error " + strings.Fields(reply.Err)[0]}
	}
	for i, l := range reply.Limits {
		cost, receipt := c.args[6*i+5], c.args[6*i+6]
		back := strings.HasPrefix(cost, "-")
		switch {
		case receipt == "" && l.Written:
			kinds = append(kinds, "ask charged")
		case receipt == "" && l.Status == 1 && cost != "0":
			kinds = append(kinds, "ask undone")
		case receipt != "" && !l.Written:
			kinds = append(kinds, "settled for nothing")
		case receipt != "" && !back:
			kinds = append(kinds, "over-use")
		case receipt != "":
			kinds = append(kinds, "give-back")
		}
		if !l.Written {
			continue
		}
		if c.args[6*i+1] == "gcra" && back && strings.Contains(c.keys[i].Text, " ") {
			kinds = append(kinds, "credit more")
		}
		if before, now := c.keys[i].Text, after[i].Text; len(now) == 12 && len(before) == 12 && back {
			if before[4:6] != now[4:6] {
				kinds = append(kinds, "previous")
			} else {
				kinds = append(kinds, "current")
			}
		}
		if reply.Status < 1 {
			kinds = append(kinds, "written beside a refusal")
		}
		clock := " caller"
		if c.args[0] == "" {
			clock = " server"
		}
		if l.TTLS == 0 {
			kinds = append(kinds, "KEEPTTL"+clock)
		} else {
			kinds = append(kinds, "EX"+clock)
		}
	}
	return kinds
}
