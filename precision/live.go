package precision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// liveLimits are settled within seconds, so that keys live and die while Live looks on.
var liveLimits = map[bool][]Call{
	false: {
		{Amount: 10, PeriodNs: 1e9, Burst: 10}, {Amount: 3, PeriodNs: 1e9, Burst: 1}, {Amount: 1, PeriodNs: 2e9, Burst: 2},
		{Amount: 1000, PeriodNs: 1e9, Burst: 1500}, {Amount: 7, PeriodNs: 3e9, Burst: 5}, {Amount: 1, PeriodNs: 1, Burst: 1},
	},
	true: {
		{Amount: 10, PeriodNs: 1e9}, {Amount: 10, PeriodNs: 1e9, Sliding: true}, {Amount: 3, PeriodNs: 3e8},
		{Amount: 7, PeriodNs: 5e8, Sliding: true}, {Amount: 100, PeriodNs: 2e9}, {Amount: 5, PeriodNs: 333_333_333, Sliding: true},
	},
}

// liveKey is a key that is called by the server's clock.
type liveKey struct {
	limit  Call
	name   string
	claims *Claims
	setMs  int64 // within how many ms its expiry was set
}

// Live calls a script by the server's own clock for some seconds and holds each outcome
// against the oracle. With callers there are calls in between that pass a clock 1 to 60 s
// ahead of it. Each call stands between two readings of TIME in one transaction; the
// instant at which it was made follows from its reset_after_ns and the key's state, and has
// to lie between them. From 7.2 on the two are one.
func (r *Real) Live(script Script, seed uint64, lasting time.Duration, callers bool) (Tally, error) {
	if script == LimitsV1 {
		return r.liveLimits(seed, lasting, callers)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var keys []*liveKey
	var sum Tally
	renew := func(k *liveKey) {
		if k.claims != nil {
			sum.Add(&k.claims.Tally)
		}
		k.name = fmt.Sprintf("%slive:%s:%v:%d", r.prefix, script, callers, rng.Uint64())
		k.claims = NewClaims(script)
	}
	for _, limit := range liveLimits[script.IsWindow()] {
		keys = append(keys, &liveKey{limit: limit})
		renew(keys[len(keys)-1])
	}
	latestNs, latest := int64(0), time.Time{} // the server's clock at the last call, and when that was
	err := liveTurns(rng, lasting, len(keys), func(i int) error {
		k := keys[i]
		c := k.limit
		c.Cost = rng.Int64N(3)
		if rng.IntN(8) == 0 {
			c.Cost = max(c.Burst, c.Amount) + rng.Int64N(2)
		}
		c.ByServer = true
		if callers && latestNs > 0 && rng.IntN(4) == 0 {
			c.ByServer, c.NowNs = false, latestNs+1e9+rng.Int64N(59e9)
		}
		if script == GCRAV2 && c.ByServer && time.Since(latest) < time.Second/2 && rng.IntN(20) == 0 {
			c.Given = liveCredit(rng, k.claims.state, latestNs)
		}
		sure, toNs, err := r.live(script, k, c, callers)
		latestNs, latest = toNs, time.Now()
		if err == nil && !sure {
			renew(k)
		}
		return err
	})
	for _, k := range keys {
		sum.Add(&k.claims.Tally)
	}
	return sum, err
}

// liveTurns plays each of n turns again and again for a time, with waits of some ms between
// the rounds. Now and then one is left alone for seconds, until its keys are gone, or nearly.
func liveTurns(rng *rand.Rand, lasting time.Duration, n int, play func(turn int) error) error {
	asleep := make([]time.Time, n) // until when each is left alone
	for end := time.Now().Add(lasting); time.Now().Before(end); time.Sleep(time.Duration(rng.Int64N(10e6))) {
		for turn := range n {
			if time.Now().Before(asleep[turn]) {
				continue
			}
			if rng.IntN(200) == 0 {
				asleep[turn] = time.Now().Add(time.Duration(1e9 + rng.Int64N(3e9)))
			}
			if err := play(turn); err != nil {
				return err
			}
		}
	}
	return nil
}

// giving sets the key with an expiry by the server's clock, 2 s after the second ARGV[2].
const giving = `return redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2] - redis.call('TIME')[1] + 2)`

// liveCredit is a state that giving back may leave of this one, a little after nowNs: its last
// TAT is a second ahead or more, so that it can be set.
func liveCredit(rng *rand.Rand, state State, nowNs int64) string {
	lastNs := max(int64(state.lastNs()), nowNs+1e9+rng.Int64N(1e9))
	tatNs := min(lastNs, nowNs+rng.Int64N(2e9)-1e9)
	return State{Exists: true, Value: uint64(tatNs), Credit: strconv.FormatInt(1+rng.Int64N(math.MaxInt64), 10),
		Last: uint64(lastNs)}.Text(GCRAV2)
}

// live makes one call and judges it. Where it is not sure nothing is said of the call.
func (r *Real) live(script Script, k *liveKey, c Call, callers bool) (sure bool, toNs int64, err error) {
	ctx := context.Background()
	pipe := r.client.TxPipeline()
	began := pipe.Time(ctx)
	var give *redis.Cmd
	if c.Given != "" {
		state, _ := c.given()
		give = pipe.Eval(ctx, giving, []string{k.name}, c.Given, state.Last/1e9)
	}
	eval := pipe.Do(ctx, c.appendArgs([]any{"EVALSHA", r.shas[script], 1, k.name}, script)...)
	look := r.look(pipe, k.name)
	ended := pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each command's own error is looked at
	if err := errors.Join(began.Err(), ended.Err()); err != nil {
		return false, 0, err
	}
	from, to := began.Val(), ended.Val()
	if give != nil {
		if state, _ := c.given(); to.Unix() > int64(state.Last/1e9)+1 {
			return false, to.UnixNano(), nil // by then it may have been over, and not to be set
		}
		if give.Err() != nil {
			return false, 0, give.Err()
		}
		if from.Unix() != to.Unix() {
			return false, to.UnixNano(), nil // the second by which its expiry was set is not known
		}
	}
	var o Outcome
	if err := o.reply(eval); err != nil {
		return false, 0, err
	}
	text, err := look.get.Result()
	if err := o.value(script, text, err); err != nil {
		return false, 0, err
	}
	endMs, err := look.endMs(from)
	if err != nil {
		return false, 0, err
	}
	return k.judge(&c, &o, from.UnixNano(), to.UnixNano(), endMs, callers), to.UnixNano(), nil
}

// judge judges an outcome of a call that was made between two readings of the server's clock,
// and after which the key was to expire at endMs. It is not sure when the key was to expire
// within that span, or when the span is as long as a window: its reset then does not tell when
// the call was made.
func (k *liveKey) judge(c *Call, o *Outcome, fromNs, toNs, endMs int64, callers bool) (sure bool) {
	spanMs := toNs/1e6 - fromNs/1e6
	j := k.claims
	if j.script.IsWindow() && toNs-fromNs >= c.PeriodNs {
		return false
	}
	c.ServerNs = toNs
	if at, ok := liveClock(j.script, c, o, fromNs); ok {
		c.ServerNs = at
	}
	if c.ByServer {
		c.NowNs = c.ServerNs
	}
	if j.expires && max(j.expiresMs-c.ServerNs/1e6, c.ServerNs/1e6-j.expiresMs) <= spanMs+k.setMs+1 {
		return false
	}
	if o.State.Exists {
		wrote := o.Status == 1 && c.Cost > 0
		if c.Given != "" || wrote && !j.stays(c, o.State) {
			k.setMs = spanMs
		}
		o.TTLMs = endMs - c.ServerNs/1e6 - spanMs - k.setMs
		o.TTLSlackMs = 2 * (spanMs + k.setMs)
	}
	j.Call(c, o)
	if c.ServerNs < fromNs || c.ServerNs > toNs {
		j.fail(&j.WrongReplies, "reply %+v and state %+v are of the instant %d, the server's clock was %d .. %d",
			o.Verdict, o.State, c.ServerNs, fromNs, toNs)
	}
	j.lives(c, o, endMs, spanMs+k.setMs, callers)
	return true
}

// lives checks the expiry as the contract says it, beside the account that Claims keeps: 1
// to 2 s after the second of the TAT, or the whole second at or after the end of the window
// after the key's own, is over, never earlier. Where a caller whose clock is up to a minute
// ahead wrote last, that write's expiry may stay: it is later, or at least not before all is
// over.
func (j *Claims) lives(c *Call, o *Outcome, endMs, orMs int64, callers bool) {
	if o.Status != 1 || c.Cost == 0 || !c.ByServer || !o.State.Exists {
		return
	}
	overNs := (int64(o.State.lastNs())/1e9 + 1) * 1e9
	if j.script.IsWindow() {
		// the window's index is known mod 2^32, and is that of the clock or one ahead of it
		index := c.NowNs / c.PeriodNs
		index += int64(int32(o.State.counts().Index - uint32(index)))
		overNs = (index + 2) * c.PeriodNs
	}
	overMs := ceilDiv(overNs, 1e9) * 1000
	leastMs, mostMs := overMs+1000, overMs+2000
	if callers {
		leastMs, mostMs = overNs/1e6, math.MaxInt64-orMs
	}
	if endMs < leastMs-orMs || endMs > mostMs+orMs {
		j.fail(&j.WrongTTLs, "the key expires at %d ms, and is over at %d", endMs, overMs)
	}
}

// liveClock is the instant at which a call was made, as its outcome tells it; ok is false
// where it tells none: of a rested key.
func liveClock(script Script, c *Call, o *Outcome, fromNs int64) (atNs int64, ok bool) {
	if !c.ByServer || o.Err != "" || o.ResetAfterNs == 0 {
		return 0, false
	}
	if !script.IsWindow() {
		return int64(o.State.Value) - o.ResetAfterNs, true
	}
	// a reset leads to the end of a window
	rest := (fromNs + o.ResetAfterNs) % c.PeriodNs
	return fromNs + (c.PeriodNs-rest)%c.PeriodNs, true
}
