package generate

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/precision"
)

// This file holds a call of limits_v1 against exact integers: an ask against the claims of
// the script that takes the key alone, a settlement against its rule.

// limitCall is what a call of limits_v1 asks of one key. Of a settlement, which has a
// receipt, call is the look after it.
type limitCall struct {
	key     *keyTruth
	call    precision.Call
	receipt string
	units   int64 // of a settlement
}

// limits is step of limits_v1.
func (o *truth) limits(argv []string, a answer, still bool) (Step, error) {
	s := o.unanswered("")
	var calls []limitCall
	if calls, s.Error = o.readLimits(argv); !s.errorIs(a.refused) {
		return s, fmt.Errorf("error %q, want %q", a.refused, s.Error)
	}
	if s.Error != "WRONGTYPE" { // the server's own text
		s.Error = a.refused
	}
	leastMs := make([]int64, len(o.keys))
	if s.Error == "" {
		if err := s.answer(calls, a, leastMs, still); err != nil {
			return s, err
		}
	}
	for i, k := range o.keys {
		s.State[i], s.TTLMs[i] = k.state, k.ttlRange(leastMs[i])
		if err := k.holds(a.keys[i], s.TTLMs[i], still); err != nil {
			return s, fmt.Errorf("key %d: %w", i+1, err)
		}
	}
	return s, nil
}

// answer holds the reply of a call that has to be answered, and takes it over.
func (s *Step) answer(calls []limitCall, a answer, leastMs []int64, still bool) error {
	if len(a.reply) != common+each*len(calls) {
		return fmt.Errorf("reply %q, want one of %d keys", a.reply, len(calls))
	}
	status, exactNs := int64(1), int64(0)
	for i := range calls {
		if c := &calls[i]; c.receipt == "" {
			v := c.key.exact(&c.call)
			status, exactNs = min(status, v.Status), max(exactNs, v.RetryAfterNs)
		}
	}
	gotNs := int64(0)
	for i := range calls {
		reply := a.reply[common+each*i:][:each]
		got, exact, receipt, err := calls[i].answer(reply[:single], a.keys[i], status == 1, &leastMs[i], still)
		if err != nil {
			return fmt.Errorf("key %d: %w", i+1, err)
		}
		s.Reply = append(append(s.Reply, ranges(got)...), Range(receipt))
		s.Exact = append(append(s.Exact, ranges(exact)...), Range(receipt))
		gotNs = max(gotNs, got.RetryAfterNs)
	}
	if status < 0 {
		exactNs, gotNs = -1, -1
	}
	s.Reply = append(Reply{newRange(status, status), newRange(gotNs, gotNs)}, s.Reply...)
	s.Exact = append(Reply{newRange(status, status), newRange(exactNs, exactNs)}, s.Exact...)
	if !s.replyIs(a.reply) {
		return fmt.Errorf("reply %q, want %q: %w", a.reply, s.Reply, errBeyond)
	}
	return nil
}

// answer holds one key's part of the reply, and returns it, the exact one, and the receipt
// that is due.
func (c *limitCall) answer(reply []string, key seen, admitted bool, leastMs *int64, still bool) (got, exact precision.Verdict, receipt string, err error) {
	k := c.key
	if c.receipt != "" {
		before := k.exact(&c.call)
		if k.settle(c) {
			*leastMs = max(k.ttlMs()-slackNs/ms, 0)
		}
		exact = k.exact(&c.call)
		exact.Status, exact.RetryAfterNs = 1, 0
		far := before.ResetAfterNs >= precision.FarNs && exact.ResetAfterNs < precision.FarNs
		if got, err = verdict(reply); err == nil && !mayAnswerSettled(k.script, got, exact, far) {
			err = fmt.Errorf("reply %+v, want %+v: %w", got, exact, errBeyond)
		}
		return got, exact, c.receipt, err
	}
	if !admitted && k.exact(&c.call).Status == 1 {
		c.call.Cost = 0 // it answers as a look does
	}
	if got, exact, err = k.call(&c.call, reply, key); err == nil && got.Status == 1 && c.call.Cost > 0 {
		*leastMs = k.written(key.state)
		receipt = k.held().Receipt(k.script)
	}
	return got, exact, receipt, err
}

// mayAnswerSettled tells whether a settlement may be answered so. far says that the key was
// FarNs ahead of the clock before it and no longer is: what was rounded up then still is.
func mayAnswerSettled(script precision.Script, got, exact precision.Verdict, far bool) bool {
	if far {
		got.ResetAfterNs += precision.FarNs
		exact.ResetAfterNs += precision.FarNs
	}
	return script.MayAnswer(got, exact)
}

// readLimits reads a call's arguments: what is asked of each key, or how the error begins
// that the call has to be answered with.
func (o *truth) readLimits(argv []string) (calls []limitCall, refused string) {
	var numbers []string
	for i := range o.keys {
		numbers = append(numbers, decimal(int64(i)))
	}
	names := named(o.setting, numbers)
	if n := len(names); n < 1 || n > 32 || len(argv) != 6*n+1 {
		return nil, "BADARG limits_v1: takes 1 to 32 keys"
	}
	now, byServer := uint64(o.serverNs), argv[0] == ""
	if !byServer {
		var err error
		if now, err = strconv.ParseUint(argv[0], 10, 64); err != nil || !hostile.IsClock(argv[0]) {
			return nil, "BADARG limits_v1: now_ns "
		}
	} else if o.setting.Refuses == "TIME" {
		return nil, "REFUSED TIME"
	}
	named := map[string]bool{}
	for i, name := range names {
		number, _ := strconv.Atoi(name)
		c := limitCall{key: o.keys[number], call: precision.Call{NowNs: int64(now), ServerNs: o.serverNs, ByServer: byServer}}
		script, ok := c.read(argv[1+6*i:][:6])
		switch k := c.key; {
		case named[name] || !ok || now > math.MaxInt64 || !precision.NewFed(script, 1).Takes(&c.call):
			return nil, fmt.Sprintf("BADARG limits_v1: key %d: ", i+1)
		case k.list:
			return nil, "WRONGTYPE"
		default:
			if k.as(script); k.exists && k.badState(&c.call) {
				return nil, fmt.Sprintf("BADSTATE limits_v1: key %d: ", i+1)
			}
		}
		named[name] = true
		calls = append(calls, c)
	}
	return calls, ""
}

// read reads a key's arguments, but for the clock's range, and returns the script that takes
// the key alone; ok is false for those that the script refuses.
func (c *limitCall) read(argv []string) (script precision.Script, ok bool) {
	script = precision.GCRAV2
	var burstOK, receiptOK bool
	switch argv[0] {
	case "gcra":
		c.call.Burst, burstOK = whole(argv[3])
		_, receiptOK = precision.ParseReceipt(argv[5])
	case fixed, sliding:
		script, burstOK, c.call.Sliding = precision.WindowV1, argv[3] == "", argv[0] == sliding
		index, err := strconv.ParseUint(argv[5], 10, 32)
		receiptOK = err == nil && argv[5] == strconv.FormatUint(index, 10)
	default:
		return script, false
	}
	var amountOK, periodOK, costOK bool
	c.call.Amount, amountOK = whole(argv[1])
	c.call.PeriodNs, periodOK = whole(argv[2])
	cost, costOK := whole(argv[4])
	const most = 1 << 52
	if c.receipt = argv[5]; c.receipt == "" {
		c.call.Cost, receiptOK = cost, true
	} else {
		c.units, costOK = cost, costOK && cost >= -most && cost <= most
	}
	return script, amountOK && periodOK && burstOK && costOK && receiptOK && c.call.Check(script) == nil
}

// as has a key read by a script from now on.
func (o *keyTruth) as(script precision.Script) {
	if o.script == script {
		return
	}
	kind := "none"
	if o.exists {
		kind = "string"
	}
	as := newKeyTruth(script, Key{kind, o.state}, o.serverNs)
	as.expires, as.expiresMs = o.expires, o.expiresMs
	if as.expires {
		as.claims.Expire(o.ttlMs())
	}
	*o = *as
}

// exact is the exact verdict on a call.
func (o *keyTruth) exact(c *precision.Call) precision.Verdict {
	earlier := *c
	earlier.NowNs -= o.earlierNs
	return o.claims.Exact(&earlier)
}

// held is the state that the key holds.
func (o *keyTruth) held() (s precision.State) {
	if o.exists {
		s, _ = precision.ParseState(o.script, textOf(o.state))
	}
	return s
}

// settle takes a settlement over, and tells whether it changes the state.
func (o *keyTruth) settle(c *limitCall) bool {
	before := o.held()
	after, stays, ttlS := c.call.Settle(o.script, before, c.receipt, c.units)
	if after == before {
		return false
	}
	o.exists, o.state = true, hex.EncodeToString([]byte(after.Text(o.script)))
	ttlMs := 1000 * ttlS
	if stays {
		ttlMs = o.ttlMs()
	}
	o.expireIn(ttlMs)
	if !o.script.IsWindow() && after.Value > math.MaxInt64 {
		o.earlierNs = 1 << 62
	}
	o.claims.Hold(o.earlier(after), ttlMs)
	return true
}
