package precision

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/native"
)

// PlayLimits makes the calls; it never fails.
func (n *Native) PlayLimits(key string, calls []LimitsCall, outcomes []LimitsOutcome) error {
	var keys []*nativeKey
	for _, name := range keyNames(key, calls) {
		if n.keys[name] == nil {
			n.keys[name] = &nativeKey{}
		}
		keys = append(keys, n.keys[name])
	}
	p := nativeLimits{keys: keys}
	for i := range calls {
		outcomes[i] = LimitsOutcome{Keys: make([]KeyOutcome, len(calls[i].Asks))}
		p.play(&calls[i], &outcomes[i])
	}
	return nil
}

// playNative makes the calls on the native port.
func (t *LimitsTrace) playNative() {
	asks := 0
	for i := range t.Calls {
		asks += len(t.Calls[i].Asks)
	}
	if cap(t.keys) < asks {
		t.keys = make([]KeyOutcome, asks)
	}
	if cap(t.Native) < len(t.Calls) {
		t.Native = make([]LimitsOutcome, len(t.Calls))
	}
	t.Native = t.Native[:len(t.Calls)]
	var keys [limitsKeys]nativeKey
	var p nativeLimits
	for i := range keys {
		p.keys = append(p.keys, &keys[i])
	}
	room := t.keys[:asks]
	for i := range t.Calls {
		n := len(t.Calls[i].Asks)
		t.Native[i], room = LimitsOutcome{Keys: room[:n:n]}, room[n:]
		p.play(&t.Calls[i], &t.Native[i])
	}
}

// nativeLimits are the keys of a trace, by their numbers.
type nativeLimits struct {
	keys   []*nativeKey
	nowMs  int64
	limits []native.LimitsKey
}

// play makes a call and fills its outcome, whose keys have room.
func (p *nativeLimits) play(c *LimitsCall, o *LimitsOutcome) {
	if c.clock().ServerNs > 0 {
		p.nowMs = c.clock().ServerNs / 1e6
	}
	p.limits = p.limits[:0]
	for i := range c.Asks {
		a := &c.Asks[i]
		k := p.keys[a.Key]
		k.nowMs = p.nowMs
		if k.expire(); a.Lost {
			*k = nativeKey{nowMs: k.nowMs}
		}
		p.limits = append(p.limits, k.limits(a))
	}
	var answers [1]native.Decision
	if c.Alone {
		p.alone(&c.Asks[0], &answers[0], o)
	} else {
		d := native.LimitsV1(p.limits, c.clock().nativeClock())
		o.Err, o.Status, o.RetryAfterNs = d.Err, d.Status, d.RetryAfterNs
	}
	for i := range c.Asks {
		k, l, ko := p.keys[c.Asks[i].Key], &p.limits[i], &o.Keys[i]
		d := &l.Answer
		ko.Receipt = ""
		if c.Alone {
			d = &answers[0]
		} else if o.Err == "" {
			ko.Receipt = l.Answered()
		}
		if d.Written && c.Asks[i].Kind.IsWindow() {
			k.window = l.Window
		} else if d.Written {
			k.gcra = l.GCRA
		}
		k.wrote(d)
		ko.Err = ""
		ko.Status, ko.Remaining, ko.RetryAfterNs, ko.ResetAfterNs = d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs
		held := GCRAV2
		if k.window.Exists {
			held = WindowV1
		}
		k.state(held, &ko.State)
		k.ttl(&ko.Outcome)
	}
}

// limits is the key and what is asked of it, as the port takes them.
func (k *nativeKey) limits(a *Ask) native.LimitsKey {
	l := native.LimitsKey{Kind: "gcra", Amount: float64(a.Amount), PeriodNs: float64(a.PeriodNs), Burst: float64(a.Burst),
		BurstGiven: true, Cost: float64(a.Cost), Receipt: a.receipt, GCRA: k.gcra, Window: k.window}
	if a.Kind.IsWindow() {
		if l.Kind, l.BurstGiven = "fixed", false; a.Sliding {
			l.Kind = "sliding"
		}
		if k.gcra.Exists {
			l.Window = native.ParseWindow(k.gcra.String())
		}
	} else if k.window.Exists {
		bytes := k.window.Bytes()
		l.GCRA = native.ParseGCRA(string(bytes[:]))
	}
	return l
}

// alone has the script of one key answer.
func (p *nativeLimits) alone(a *Ask, d *native.Decision, o *LimitsOutcome) {
	if l := &p.limits[0]; a.Kind.IsWindow() {
		*d = native.WindowV1(&l.Window, a.windowArgs(), a.nativeClock())
	} else {
		*d = native.GCRAV2(&l.GCRA, a.gcraArgs(), a.nativeClock())
	}
	o.Err, o.Status, o.RetryAfterNs = d.Err, d.Status, d.RetryAfterNs
}

// evalsha is the command that makes the call on the keys with these names.
func (c *LimitsCall) evalsha(shas map[Script]string, names []string) []any {
	args := append(make([]any, 0, 4+7*len(c.Asks)), "EVALSHA", shas[c.script()], len(c.Asks))
	for i := range c.Asks {
		args = append(args, names[c.Asks[i].Key])
	}
	return c.appendArgs(args)
}

// PlayLimits makes the calls.
func (a *Asset) PlayLimits(key string, calls []LimitsCall, outcomes []LimitsOutcome) error {
	ctx := context.Background()
	names := keyNames(key, calls)
	for i := range calls {
		c, o := &calls[i], &outcomes[i]
		if c.clock().ServerNs > 0 {
			a.SetTimeNs(c.clock().ServerNs)
		}
		for _, ask := range c.Asks {
			if ask.Lost {
				if err := a.Forget(names[ask.Key]); err != nil {
					return err
				}
			}
		}
		if err := o.reply(c, a.redis.Do(ctx, c.evalsha(a.shas, names)...)); err != nil {
			return err
		}
		for n := range c.Asks {
			if err := a.look(&o.Keys[n].Outcome, c.Asks[n].Kind, names[c.Asks[n].Key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// reply takes over what limits_v1, or the script in its place, answered.
func (o *LimitsOutcome) reply(c *LimitsCall, cmd *redis.Cmd) error {
	*o = LimitsOutcome{Keys: make([]KeyOutcome, len(c.Asks))}
	if c.Alone {
		k := &o.Keys[0]
		if err := k.reply(cmd); err != nil {
			return err
		}
		o.Err, o.Status, o.RetryAfterNs, k.Err = k.Err, k.Status, k.RetryAfterNs, ""
		return nil
	}
	values, err := replied(cmd, &o.Err)
	if err != nil || o.Err != "" {
		return err
	}
	if len(values) != 2+len(c.Asks) {
		return fmt.Errorf("reply has %d elements: %v", len(values), values)
	}
	if err := integers(values, &o.Status, &o.RetryAfterNs); err != nil {
		return err
	}
	for i, value := range values[2:] {
		k := &o.Keys[i]
		inner, _ := value.([]any)
		if len(inner) != 5 {
			return fmt.Errorf("reply's element %d has not five: %v", 2+i, values)
		}
		if err := integers(inner, &k.Status, &k.Remaining, &k.RetryAfterNs, &k.ResetAfterNs); err != nil {
			return err
		}
		receipt, ok := inner[4].(string)
		if !ok {
			return fmt.Errorf("reply's receipt is no string: %v", values)
		}
		k.Receipt = receipt
	}
	return nil
}

// PlayLimits makes the calls, as Play does. A settlement that is worth nothing does not write:
// what a key holds tells whether one did.
func (r *Real) PlayLimits(key string, calls []LimitsCall, outcomes []LimitsOutcome) error {
	names := keyNames(r.prefix+key, calls)
	for len(calls) > 0 {
		n, asks := 0, 0
		for ; n < len(calls) && (n == 0 || asks+len(calls[n].Asks) <= pipelined); n++ {
			asks += len(calls[n].Asks)
		}
		if err := r.playLimits(names, calls[:n], outcomes[:n]); err != nil {
			return err
		}
		calls, outcomes = calls[n:], outcomes[n:]
	}
	return nil
}

func (r *Real) playLimits(names []string, calls []LimitsCall, outcomes []LimitsOutcome) error {
	ctx := context.Background()
	pipe := r.client.Pipeline()
	if r.frozen {
		pipe = r.client.TxPipeline()
	}
	evals := make([]*redis.Cmd, len(calls))
	looks := make([][]look, len(calls))
	times := make([]*redis.TimeCmd, len(calls)+1)
	times[0] = pipe.Time(ctx)
	for i := range calls {
		for _, a := range calls[i].Asks {
			if a.Lost {
				pipe.Del(ctx, names[a.Key])
			}
		}
		evals[i] = pipe.Do(ctx, calls[i].evalsha(r.shas, names)...)
		for _, a := range calls[i].Asks {
			looks[i] = append(looks[i], r.look(pipe, names[a.Key]))
		}
		times[i+1] = pipe.Time(ctx)
	}
	_, _ = pipe.Exec(ctx) // each command's own error is looked at
	for i := range calls {
		now, err := between(times[i], times[i+1])
		if err != nil {
			return err
		}
		o := &outcomes[i]
		if err := o.reply(&calls[i], evals[i]); err != nil {
			return err
		}
		for n, a := range calls[i].Asks {
			key, ko := names[a.Key], &o.Keys[n]
			if a.Lost {
				delete(r.held, key)
			}
			state, _ := parseEither(a.Kind, looks[i][n].get.Val())
			if err := r.saw(&ko.Outcome, a.Kind, key, looks[i][n], now, state != r.held[key]); err != nil {
				return err
			}
			r.held[key] = ko.State
		}
	}
	return nil
}

// PlayLimits makes the calls on keys that move, as Play does.
func (r Restored) PlayLimits(key string, calls []LimitsCall, outcomes []LimitsOutcome) error {
	here, there, all := key, key+":restored", calls
	for len(calls) > 0 {
		n := min(len(calls), movedAfter)
		if err := r.Real.PlayLimits(here, calls[:n], outcomes[:n]); err != nil {
			return err
		}
		if err := r.moveLimits(here, there, all); err != nil {
			return err
		}
		calls, outcomes = calls[n:], outcomes[n:]
		here, there = there, here
	}
	if here != key {
		return r.moveLimits(here, key, all)
	}
	return nil
}

func (r Restored) moveLimits(from, to string, calls []LimitsCall) error {
	names := keyNames(r.prefix+to, calls)
	for i, name := range keyNames(r.prefix+from, calls) {
		if err := r.move(name, names[i]); err != nil {
			return err
		}
	}
	return nil
}

// parseEither reads the state of a key that was asked by one kind, and may hold the other's.
func parseEither(kind Script, text string) (State, bool) {
	state, ok := ParseState(kind, text)
	if !ok {
		for _, other := range []Script{GCRAV2, WindowV1} {
			if other != kind && !ok {
				state, ok = ParseState(other, text)
			}
		}
	}
	return state, ok
}
