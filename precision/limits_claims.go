package precision

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// LimitsClaims follows the keys of one trace of limits_v1 and holds each outcome against
// exact integers.
type LimitsClaims struct {
	Tally
	keys  []*limitsKey
	wants []Verdict // of the asks of the call at hand
	call  int       // its number, from 1 on
	nowMs int64     // the server's clock
}

// limitsKey is one key. Of its Claims, state is what the key holds.
type limitsKey struct {
	Claims
	// exact is what it holds by exact integers, fed with what the script charges; of a
	// window fed is that.
	exact State
	// used is the exact limiter fed with what was really used. It counts while it is sure:
	// the clock does not step back, no state is lost and no debt is cut.
	used    Used
	sure    bool
	clockNs int64
	// paid is what was charged, in the order of the calls.
	paid []paid
}

// paid is an ask that was charged.
type paid struct {
	of      int    // the call's number, from 1 on
	used    int    // the ask's number in used
	left    int64  // of its units, what was not given back
	receipt string // by exact integers
}

// NewLimitsClaims returns the claims of limits_v1 on keys that are not there.
func NewLimitsClaims() *LimitsClaims { return &LimitsClaims{} }

// charged is what the call with this number, from 1 on, was charged on a key; nil is nothing.
func (l *LimitsClaims) charged(key, call int) *paid {
	if key >= len(l.keys) || l.keys[key] == nil {
		return nil
	}
	return l.keys[key].charged(call)
}

func (k *limitsKey) charged(call int) *paid {
	at, ok := slices.BinarySearchFunc(k.paid, call, func(p paid, call int) int { return p.of - call })
	if !ok {
		return nil
	}
	return &k.paid[at]
}

// Call holds one outcome against exact integers, and tells whether they admit the call and
// which wait they name else.
func (l *LimitsClaims) Call(c *LimitsCall, o *LimitsOutcome) (status, retryNs int64) {
	if l.Decisions++; o.Status == 1 {
		l.Admitted++
	}
	wrong := l.WrongReplies
	due, status, retryNs := l.step(c, o)
	for i := range c.Asks {
		l.take(l.keys[c.Asks[i].Key])
	}
	if o.Status == 0 && o.Err == "" && due == "" && l.WrongReplies > wrong {
		l.LatestNs = max(l.LatestNs, o.RetryAfterNs-max(retryNs, 0))
	}
	return status, retryNs
}

// take takes over what a key counted.
func (l *LimitsClaims) take(k *limitsKey) {
	if k.Decisions = 0; !k.Sound() {
		l.Tally.Add(&k.Tally)
		k.Tally = Tally{}
	}
}

func (l *LimitsClaims) fail(count *int64, c *LimitsCall, format string, args ...any) {
	*count++
	if l.Broken == "" {
		l.BrokenAt = int(l.Decisions) - 1
		l.Broken = fmt.Sprintf("call %d, %s: ", l.BrokenAt, c) + fmt.Sprintf(format, args...)
	}
}

// Pass makes a call as exact integers do, and tells whether they admit it and which wait they
// name else; of one that the script does not take both are 0.
func (l *LimitsClaims) Pass(c *LimitsCall) (status, retryNs int64) {
	_, status, retryNs = l.step(c, nil)
	return status, retryNs
}

// step makes a call: what the outcome says is admitted is charged, and without one what exact
// integers admit. It holds the outcome against them. due is how the error begins that the
// script owes, "" where it owes a reply.
func (l *LimitsClaims) step(c *LimitsCall, o *LimitsOutcome) (due string, status, retryNs int64) {
	l.call++
	due = l.arrive(c)
	if o != nil && (due != "" || o.Err != "") {
		l.refused(c, o, due)
	}
	if due != "" {
		return due, 0, 0
	}
	status = 1
	l.wants = l.wants[:0]
	for i := range c.Asks {
		a := &c.Asks[i]
		want := Verdict{Status: 1}
		if a.Of == 0 {
			want = l.keys[a.Key].ask(&a.Call)
			status, retryNs = min(status, want.Status), max(retryNs, want.RetryAfterNs)
		}
		l.wants = append(l.wants, want)
	}
	if status < 0 {
		retryNs = -1
	}
	charges := status == 1
	if o != nil {
		if o.Err != "" {
			return "", status, retryNs
		}
		charges = o.Status == 1
		l.whole(c, o, status, retryNs)
	}
	for i := range c.Asks {
		a, want, receipt := &c.Asks[i], l.wants[i], ""
		k := l.keys[a.Key]
		state, writes := k.state, false
		far := a.Of > 0 && aheadNs(k.exact.Value, a.NowNs) >= FarNs
		switch {
		case a.Of > 0:
			want, state, writes = k.settle(a)
			receipt = a.receipt
		case charges && a.Cost > 0:
			state, receipt = k.charge(&a.Call)
			if writes = true; c.Alone {
				receipt = ""
			} else {
				k.paid = append(k.paid, paid{l.call, len(k.used.asks) - 1, a.Cost, receipt})
			}
		case status < 1 && want.Status == 1:
			want = k.look(&a.Call)
		}
		if o == nil {
			if writes {
				stays, ttlS, _ := k.ttl(&a.Call, state)
				k.renew(stays, ttlS)
			}
			k.state = state
			continue
		}
		ko := &o.Keys[i]
		if far {
			want = k.fromFar(&a.Call, want, ko.ResetAfterNs)
		}
		k.answer(ko, want, receipt)
		if writes {
			k.wrote(&a.Call, &ko.Outcome, state)
		} else {
			k.untouched(&ko.Outcome)
		}
		k.state = ko.State
		k.neverBelowUsed(a.NowNs)
	}
	if o != nil {
		l.promise(c, o)
	}
	return "", status, retryNs
}

// arrive brings the server's clock to a call, has what is lost be lost and what has expired
// be gone, and returns how the error begins that is due, if one is.
func (l *LimitsClaims) arrive(c *LimitsCall) (due string) {
	if ns := c.clock().ServerNs; ns > 0 {
		l.nowMs = ns / 1e6
	}
	for i := range c.Asks {
		a := &c.Asks[i]
		for len(l.keys) <= a.Key {
			l.keys = append(l.keys, nil)
		}
		k := l.keys[a.Key]
		if k != nil {
			k.nowMs = l.nowMs
			k.arrive(a)
		}
		if k == nil || k.script != a.Kind && !k.state.Exists { // what holds nothing is of any kind
			k = &limitsKey{sure: true}
			k.Claims = Claims{script: a.Kind, fed: NewFed(a.Kind, 1), nowMs: l.nowMs}
			l.keys[a.Key] = k
		}
		k.Decisions, k.of, k.number = l.Decisions, c, i+1
		if k.clockNs > a.NowNs {
			k.sure = false
		}
		k.clockNs = a.NowNs
		if due == "" {
			due = k.due(a, c, i+1)
		}
	}
	return due
}

// arrive has the key be gone where it is lost or has expired. By exact integers what expired
// and still counts stays.
func (k *limitsKey) arrive(a *Ask) {
	existed := k.state.Exists
	k.Claims.arrive(&a.Call)
	if a.Lost {
		k.state, k.expires, k.exact, k.sure = State{}, false, State{}, false
		k.fed = NewFed(k.script, 1)
	} else if existed && !k.state.Exists {
		k.exact.Credit, k.exact.Last = "", 0
		if k.exact.Value <= uint64(a.NowNs) {
			k.exact = State{}
		}
	}
}

// due is how the error begins that the script owes to an ask, "" where it owes none.
func (k *limitsKey) due(a *Ask, c *LimitsCall, number int) string {
	badArg, badState := "", ""
	if c.Alone {
		badArg = "BADARG " + string(a.Kind) + ": "
		badState = "BADSTATE " + string(a.Kind) + ": the key holds "
	}
	named := func(class, it string) string {
		return class + " limits_v1: key " + strconv.Itoa(number) + ": " + it
	}
	fed := k.fed
	if k.script != a.Kind {
		fed = NewFed(a.Kind, 1)
	}
	if !fed.Takes(&a.Call) {
		if badArg == "" {
			badArg = named("BADARG", "")
		}
		return badArg + "now_ns"
	}
	if k.script == a.Kind && k.script.Reads(k.state, &a.Call) {
		return ""
	}
	if badState == "" {
		badState = named("BADSTATE", "it holds ")
	}
	switch {
	case k.script != a.Kind && a.Kind.IsWindow() && len(k.state.Text(k.script)) != 12: // a TAT may have 12 digits
		return badState + "something else than 12 bytes of counts"
	case a.Kind.IsWindow():
		return badState + "counts of another period"
	}
	return badState + "something else than a decimal TAT"
}

// refused checks that an error is the one that is due, and left the keys alone.
func (l *LimitsClaims) refused(c *LimitsCall, o *LimitsOutcome, due string) {
	if due == "" || !strings.HasPrefix(o.Err, due) || o.Status != 0 || o.RetryAfterNs != 0 {
		l.fail(&l.WrongReplies, c, "reply %d %d %q, want %q", o.Status, o.RetryAfterNs, o.Err, due)
	}
	for i := range c.Asks {
		k, ko := l.keys[c.Asks[i].Key], &o.Keys[i]
		if ko.Verdict != (Verdict{}) || ko.Receipt != "" || ko.Err != "" {
			k.fail(&k.WrongReplies, "reply %+v beside an error", *ko)
		}
		k.untouched(&ko.Outcome)
		k.state = ko.State
	}
}

// whole holds what a call answers as a whole against what it has to.
func (l *LimitsClaims) whole(c *LimitsCall, o *LimitsOutcome, status, retryNs int64) {
	if o.Status == 1 && status != 1 {
		l.fail(&l.Early, c, "admitted %d ns early by the exact limiters", retryNs)
	}
	longestNs := int64(0)
	for i := range o.Keys {
		if c.Asks[i].Of == 0 {
			longestNs = max(longestNs, o.Keys[i].RetryAfterNs)
		}
	}
	if status < 0 {
		longestNs = -1
	}
	if o.Status != status || o.RetryAfterNs != longestNs {
		l.fail(&l.WrongReplies, c, "reply %d %d, want %d %d, the longest of the keys'", o.Status, o.RetryAfterNs, status, longestNs)
	}
}

// ask is the verdict on an ask alone.
func (k *limitsKey) ask(c *Call) Verdict {
	if k.script.IsWindow() {
		return k.fed.Ask(c)
	}
	v, _, _ := k.fed.GCRA(c).Ask(k.exact, c.Cost, c.NowNs)
	return v
}

// look is the verdict on an ask that is admitted and not charged.
func (k *limitsKey) look(c *Call) Verdict {
	looks := *c
	looks.Cost = 0
	return k.ask(&looks)
}

// charge charges an ask, whatever its verdict, and returns the state after it and its receipt.
func (k *limitsKey) charge(c *Call) (State, string) {
	if k.script.IsWindow() {
		k.fed.Admit(c)
		state := newCounts(k.fed.counts, c.PeriodNs)
		return state, state.Receipt(k.script)
	}
	ns := c.Cost * k.fed.GCRA(c).Interval
	k.exact = k.exact.spend(max(k.exact.Value, uint64(c.NowNs)) + uint64(ns))
	k.used.Ask(c.NowNs, ns)
	return k.exact, k.exact.Receipt(k.script)
}

// settle settles, and returns the reply and, where it writes, the state after it.
func (k *limitsKey) settle(a *Ask) (want Verdict, state State, writes bool) {
	state = k.state
	if paid := k.charged(a.Of); paid != nil && a.Cost < 0 {
		paid.left += a.Cost
	}
	if k.script.IsWindow() {
		at, leftNs, gapNs := k.fed.at(&a.Call)
		index, _ := strconv.ParseUint(a.receipt, 10, 32) // the oracle's own
		if after := at.Settle(uint32(index), a.Cost); after != at {
			k.fed.keep(&a.Call, after, leftNs, gapNs)
			state, writes = newCounts(after, a.PeriodNs), true
		}
	} else {
		g := k.fed.GCRA(&a.Call)
		receipt, _ := ParseReceipt(a.receipt)
		after, ns := g.Settle(k.exact, receipt, a.Cost, a.NowNs)
		if after != k.exact {
			k.exact, state, writes = after, after, true
		}
		k.reallyUsed(g, a, ns)
	}
	v := k.look(&a.Call)
	return Verdict{1, v.Remaining, 0, v.ResetAfterNs}, state, writes
}

// reallyUsed feeds a settlement, which moved the TAT by ns, to the exact limiter.
func (k *limitsKey) reallyUsed(g GCRA, a *Ask, ns int64) {
	paid := k.charged(a.Of)
	switch {
	case paid == nil, a.Cost > mostDebtNs/g.Interval, a.Cost > 0 && ns != a.Cost*g.Interval:
		k.sure = false // of an ask that was not admitted, or the debt is cut
	case a.Cost < 0:
		ns = a.Cost * g.Interval
	}
	if k.sure {
		k.used.Settle(paid.used, ns)
	}
}

// fromFar is what a settlement has to answer of a key whose TAT was FarNs or more ahead, where
// it answers this reset: that may be later as it may be there, wherever it leads now.
func (k *limitsKey) fromFar(c *Call, want Verdict, resetNs int64) Verdict {
	if moreNs := resetNs - want.ResetAfterNs; moreNs > 0 && moreNs <= k.script.farMoreNs() {
		want.ResetAfterNs = resetNs
		want.Remaining = max(k.fed.GCRA(c).Tau()-resetNs, 0) / k.fed.GCRA(c).Interval
	}
	return want
}

// mostWaitNs is the largest wait of gcra that a reply holds.
const mostWaitNs = 1<<63 - 1024

// answer holds the reply of one key against the one that it has to be.
func (k *limitsKey) answer(o *KeyOutcome, want Verdict, receipt string) {
	if overNs := want.ResetAfterNs - mostWaitNs; overNs > 0 && !k.script.IsWindow() {
		want.ResetAfterNs -= overNs
		if want.Status == 0 {
			want.RetryAfterNs -= overNs
			if off := o.RetryAfterNs - want.RetryAfterNs; off >= -512 && off <= 512 { // doubles are 1024 apart there
				want.RetryAfterNs = o.RetryAfterNs
			}
		}
	}
	if o.Err != "" || !k.script.MayAnswer(o.Verdict, want) {
		k.fail(&k.WrongReplies, "reply %+v %q, want %+v", o.Verdict, o.Err, want)
	}
	if o.Receipt != receipt {
		k.fail(&k.WrongReplies, "reply with the receipt %q, want %q", o.Receipt, receipt)
	}
}

// ttl is whether the write of a state leaves the expiry, and the EX that it has else, give or
// take orS.
func (k *limitsKey) ttl(c *Call, state State) (stays bool, ttlS, orS int64) {
	stays = k.stays(c, state)
	if !k.script.IsWindow() {
		return stays, gcraTTLS(state.lastNs(), c.NowNs, c.ByServer), 0
	}
	endNs := k.fed.endNs - c.NowNs
	if endNs >= FarNs { // a sum and a quotient that round
		orS = 1
	}
	return stays, windowTTLS(endNs, c.NowNs, c.ByServer), orS
}

// wrote holds the state that a call leaves against the one that it has to, and its expiry.
func (k *limitsKey) wrote(c *Call, o *Outcome, want State) {
	if o.State != want {
		k.fail(&k.WrongStates, "state %+v, want %+v", o.State, want)
	}
	stays, ttlS, orS := k.ttl(c, want)
	k.expiry(o, stays, ttlS, orS)
}

// neverBelowUsed checks that the TAT that is kept is not before that of the exact limiter fed
// with what was really used. Both count from the clock on.
func (k *limitsKey) neverBelowUsed(nowNs int64) {
	if !k.sure || k.script.IsWindow() {
		return
	}
	kept := max(k.state.Value, uint64(nowNs))
	if used := k.used.TAT(); used > kept {
		k.fail(&k.Early, "early: the TAT that is kept is %d ns before that of what was used", used-kept)
	}
}

// promise checks the wait that a refusal names by asking the exact limiters again: the asks
// fit after it, and not a nanosecond earlier, but where waits are FarNs or more.
func (l *LimitsClaims) promise(c *LimitsCall, o *LimitsOutcome) {
	clock := c.clock()
	if o.Status != 0 || o.RetryAfterNs < 1 || o.RetryAfterNs > math.MaxInt64-clock.NowNs {
		return // past every clock, or no wait at all
	}
	fit := func(nowNs int64, over bool) bool {
		for i := range c.Asks {
			if a := &c.Asks[i]; a.Of == 0 && !l.keys[a.Key].fits(a.Call, nowNs, over) {
				return false
			}
		}
		return true
	}
	laterNs, far := clock.NowNs+o.RetryAfterNs, o.RetryAfterNs >= FarNs
	for i := range o.Keys {
		if o.Keys[i].ResetAfterNs >= mostWaitNs {
			return // what is further is cut
		}
		far = far || o.Keys[i].ResetAfterNs >= FarNs
		if a := &c.Asks[i]; a.Of == 0 && l.keys[a.Key].passesOver(&a.Call) {
			return
		}
	}
	if !fit(laterNs, true) {
		l.fail(&l.WrongReplies, c, "reply with retry_after %d: the call does not fit then", o.RetryAfterNs)
	}
	if !far && fit(laterNs-1, false) {
		l.fail(&l.WrongReplies, c, "reply with retry_after %d: the call fits a nanosecond earlier", o.RetryAfterNs)
	}
}

// passesOver tells whether a window's clock is so far behind the counts that it begins anew:
// they count again when it comes to them.
func (k *limitsKey) passesOver(c *Call) bool {
	if !k.script.IsWindow() || !k.fed.kept {
		return false
	}
	_, leftNs, gapNs := k.fed.at(c)
	return k.fed.endNs-c.NowNs > gapNs+leftNs+c.PeriodNs
}

// fits tells whether an ask fits at a later clock if nothing else comes. Where counts may be
// over they are from their end on, though the window's index comes round later.
func (k *limitsKey) fits(c Call, nowNs int64, over bool) bool {
	if over && k.script.IsWindow() && k.fed.kept && nowNs >= k.fed.endNs {
		return c.Cost <= c.Amount
	}
	c.NowNs = nowNs
	return k.ask(&c).Status == 1
}

// JudgeLimits holds the outcomes that a driver gave of a trace against exact integers, and
// against the native port's.
func JudgeLimits(t *LimitsTrace, outcomes []LimitsOutcome) Tally {
	l := NewLimitsClaims()
	for i := range t.Calls {
		c, o, n := &t.Calls[i], &outcomes[i], &t.Native[i]
		l.Call(c, o)
		// the long run judges the native port's own outcomes: the very same
		if o != n && !o.is(n) {
			l.fail(&l.Differences, c, "outcome %+v, native %+v", *o, *n)
		}
	}
	return l.Tally
}

// is tells whether an outcome is the native port's.
func (o *LimitsOutcome) is(n *LimitsOutcome) bool {
	return o.Err == n.Err && o.Status == n.Status && o.RetryAfterNs == n.RetryAfterNs &&
		slices.EqualFunc(o.Keys, n.Keys, func(a, b KeyOutcome) bool {
			return a.Err == b.Err && a.Verdict == b.Verdict && a.Receipt == b.Receipt && a.State == b.State && a.ttlIs(b.TTLMs)
		})
}
