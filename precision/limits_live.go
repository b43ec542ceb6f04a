package precision

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// liveKeys are keys that are called together by the server's clock.
type liveKeys struct {
	limits []Ask
	name   string
	claims *LimitsClaims
	setMs  map[int]int64
}

// liveLimits is Live of limits_v1: on keys of both kinds together, with settlements, and with
// calls of gcra_v2 and window_v1 between.
func (r *Real) liveLimits(seed uint64, lasting time.Duration, callers bool) (Tally, error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var sum Tally
	var groups []*liveKeys
	renew := func(g *liveKeys) {
		if g.claims != nil {
			sum.Add(&g.claims.Tally)
		}
		g.name = fmt.Sprintf("%slive:limits:%v:%d", r.prefix, callers, rng.Uint64())
		g.claims, g.setMs = NewLimitsClaims(), map[int]int64{}
	}
	for i := range liveLimits[false] {
		g := &liveKeys{}
		for key, window := range []bool{false, true, false} {
			a := Ask{Key: key, Kind: GCRAV2, Call: liveLimits[window][(i+key)%len(liveLimits[window])]}
			if window {
				a.Kind = WindowV1
			}
			g.limits = append(g.limits, a)
		}
		renew(g)
		groups = append(groups, g)
	}
	latestNs := int64(0)
	err := liveTurns(rng, lasting, len(groups), func(i int) error {
		g := groups[i]
		c := g.next(rng)
		for i := range c.Asks {
			c.Asks[i].ByServer = true
		}
		if callers && latestNs > 0 && rng.IntN(4) == 0 {
			aheadNs := 1e9 + rng.Int64N(59e9)
			for i := range c.Asks {
				c.Asks[i].ByServer, c.Asks[i].NowNs = false, latestNs+aheadNs
			}
		}
		sure, toNs, err := r.liveCall(g, &c, callers)
		if latestNs = toNs; err == nil && !sure {
			renew(g)
		}
		return err
	})
	for _, g := range groups {
		sum.Add(&g.claims.Tally)
	}
	return sum, err
}

// next is the next call of the keys.
func (g *liveKeys) next(rng *rand.Rand) (c LimitsCall) {
	for _, a := range g.limits {
		if len(c.Asks) > 0 && rng.IntN(2) == 0 {
			continue
		}
		a.Cost = rng.Int64N(3)
		if rng.IntN(8) == 0 {
			a.Cost = max(a.Burst, a.Amount) + rng.Int64N(2)
		}
		if len(g.claims.keys) > a.Key && g.claims.keys[a.Key] != nil && rng.IntN(3) == 0 {
			if paid := g.claims.keys[a.Key].paid; len(paid) > 0 {
				p := paid[len(paid)-1-rng.IntN(min(len(paid), 5))]
				a.Of, a.receipt = p.of, p.receipt
				a.Cost = []int64{-p.left, -rng.Int64N(p.left + 1), rng.Int64N(2)}[rng.IntN(3)]
			}
		}
		c.Asks = append(c.Asks, a)
	}
	c.Alone = len(c.Asks) == 1 && c.Asks[0].Of == 0 && rng.IntN(4) == 0
	return c
}

// liveCall makes one call and judges it, as live does.
func (r *Real) liveCall(g *liveKeys, c *LimitsCall, callers bool) (sure bool, toNs int64, err error) {
	ctx := context.Background()
	var names []string
	for _, a := range g.limits {
		names = append(names, fmt.Sprintf("%s:%d", g.name, a.Key))
	}
	pipe := r.client.TxPipeline()
	began := pipe.Time(ctx)
	eval := pipe.Do(ctx, c.evalsha(r.shas, names)...)
	var looks []look
	for _, a := range c.Asks {
		looks = append(looks, r.look(pipe, names[a.Key]))
	}
	ended := pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each command's own error is looked at
	if err := errors.Join(began.Err(), ended.Err()); err != nil {
		return false, 0, err
	}
	from, to := began.Val(), ended.Val()
	var o LimitsOutcome
	if err := o.reply(c, eval); err != nil {
		return false, 0, err
	}
	endsMs := make([]int64, len(looks))
	for i, l := range looks {
		text, err := l.get.Result()
		if err := o.Keys[i].value(c.Asks[i].Kind, text, err); err != nil {
			return false, 0, err
		}
		if endsMs[i], err = l.endMs(from); err != nil {
			return false, 0, err
		}
	}
	return g.judge(c, &o, from.UnixNano(), to.UnixNano(), endsMs, callers), to.UnixNano(), nil
}

// endMs is when the key was to expire, as seen after a reading of the server's clock.
func (l look) endMs(from time.Time) (int64, error) {
	if l.end != nil {
		return l.end.Int64()
	}
	left, err := l.ttl.Int64()
	return from.UnixMilli() + left, err
}

// changed tells whether a call wrote what a key holds.
func (g *liveKeys) changed(a *Ask, o *KeyOutcome) bool {
	if keys := g.claims.keys; o.State.Exists && a.Key < len(keys) && keys[a.Key] != nil {
		return o.State != keys[a.Key].state
	}
	return o.State.Exists
}

// judge judges an outcome as judge of one key does. It is not sure, either, when the call
// wrote and tells no instant.
func (g *liveKeys) judge(c *LimitsCall, o *LimitsOutcome, fromNs, toNs int64, endsMs []int64, callers bool) (sure bool) {
	spanMs := toNs/1e6 - fromNs/1e6
	l, atNs := g.claims, toNs
	told, wrote := fromNs == toNs, false
	for i := range c.Asks {
		a, ko := &c.Asks[i], &o.Keys[i]
		at, ok := liveClock(a.Kind, &a.Call, &ko.Outcome, fromNs)
		if g.changed(a, ko) {
			if wrote = true; !a.Kind.IsWindow() && a.ByServer { // also where it is as good as new, as it was given back
				at, ok = int64(ko.State.Value)-ko.ResetAfterNs, true
			}
		}
		if ok && o.Err == "" {
			atNs, told = at, true
		}
	}
	if wrote && !told {
		return false
	}
	for i := range c.Asks {
		a, ko := &c.Asks[i], &o.Keys[i]
		if a.ServerNs = atNs; a.ByServer {
			a.NowNs = atNs
		}
		var k *limitsKey
		if a.Key < len(l.keys) {
			k = l.keys[a.Key]
		}
		if k != nil && k.expires && max(k.expiresMs-atNs/1e6, atNs/1e6-k.expiresMs) <= spanMs+g.setMs[a.Key]+1 {
			return false
		}
		if ko.State.Exists {
			if g.changed(a, ko) && (k == nil || !k.stays(&a.Call, ko.State)) {
				g.setMs[a.Key] = spanMs
			}
			ko.TTLMs = endsMs[i] - atNs/1e6 - spanMs - g.setMs[a.Key]
			ko.TTLSlackMs = 2 * (spanMs + g.setMs[a.Key])
		}
	}
	l.Call(c, o)
	if atNs < fromNs || atNs > toNs {
		l.fail(&l.WrongReplies, c, "reply %+v is of the instant %d, the server's clock was %d .. %d", *o, atNs, fromNs, toNs)
	}
	for i := range c.Asks {
		a, k := &c.Asks[i], l.keys[c.Asks[i].Key]
		if a.Of == 0 && o.Status == 1 {
			k.lives(&a.Call, &o.Keys[i].Outcome, endsMs[i], spanMs+g.setMs[a.Key], callers)
			l.take(k)
		}
	}
	return true
}
