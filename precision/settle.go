package precision

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// How limits_v1 settles, in integers; and what it is held against, the exact limiter fed
// with what was really used.
//
// A gcra key is a State: Value is the TAT; Credit, the sum of what was given back, and
// Last, the largest TAT that spending left, are there once something was given back.
// last >= TAT, credit only grows while the key lives, and each receipt's TAT is at most
// last (at most the TAT without one). An instant is ns since 1970, and uint64 where it may
// pass 2^63 - 1: an over-use near the last clock can lead there.

// Receipt is what an ask answers that was charged: the TAT and the credit just after it.
type Receipt struct {
	TAT    uint64 // S, in ns
	Credit string // R, a decimal of ns; "" is 0
}

// Text is the receipt as limits_v1 writes it: `S`, or `S R`. That of no receipt is "0".
func (r Receipt) Text() string {
	if r.Credit == "" {
		return strconv.FormatUint(r.TAT, 10)
	}
	return strconv.FormatUint(r.TAT, 10) + " " + r.Credit
}

// ParseReceipt reads a receipt of gcra; ok is false for what limits_v1 calls BADARG.
func ParseReceipt(text string) (r Receipt, ok bool) {
	tat, credit, hasCredit := strings.Cut(text, " ")
	r.TAT, ok = parseTAT(tat)
	r.Credit = credit
	return r, ok && (!hasCredit || isDigits(credit) && credit[0] != '0')
}

// mostDebtNs is how far ahead of the clock an over-use can bring the TAT.
const mostDebtNs = 1<<53 - 1

// mostCreditDigits is how long a credit may be with which something is given back.
const mostCreditDigits = 24

// aheadNs is max(tat - now, 0), at most 2^63 - 1.
func aheadNs(tat uint64, nowNs int64) int64 {
	if tat <= uint64(nowNs) {
		return 0
	}
	return int64(min(tat-uint64(nowNs), math.MaxInt64))
}

// spend has a key hold the TAT that an ask or an over-use left.
func (s State) spend(tat uint64) State {
	s.Exists, s.Value = true, tat
	if s.Credit != "" {
		s.Last = max(s.Last, tat)
	}
	return s
}

// Ask is an ask of cost units, by limits_v1 or gcra_v2: the verdict, the state after it, and
// the receipt where it was charged. The verdict's waits end at 2^63 - 1 ns.
func (g GCRA) Ask(s State, cost, nowNs int64) (Verdict, State, Receipt) {
	v, after := g.Call(aheadNs(s.Value, nowNs), cost, 0)
	if v.Status != 1 || cost == 0 {
		return v, s, Receipt{}
	}
	s = s.spend(uint64(nowNs) + uint64(after))
	return v, s, Receipt{s.Value, s.Credit}
}

// Settle is the settlement of an ask by its receipt: units are what was really used less
// what was charged, -2^52 to 2^52. It returns the state after it and by how many ns the TAT,
// read as max(TAT, now), went up or down.
func (g GCRA) Settle(s State, r Receipt, units, nowNs int64) (State, int64) {
	if units > 0 {
		return g.overUse(s, units, nowNs)
	}
	s, ns := g.giveBack(s, r, -units, nowNs)
	return s, -ns
}

// unitsNs is units*interval, at most mostDebtNs.
func (g GCRA) unitsNs(units int64) int64 {
	if units > mostDebtNs/g.Interval {
		return mostDebtNs
	}
	return units * g.Interval
}

// overUse charges units beyond the limit too:
//
//	TAT = max(TAT, now) + units*interval, at most now + 2^53 - 1 but no less than it was
//
// It returns the ns that were charged.
func (g GCRA) overUse(s State, units, nowNs int64) (State, int64) {
	ahead := aheadNs(s.Value, nowNs)
	if ahead >= mostDebtNs {
		return s, 0
	}
	debt := min(ahead+g.unitsNs(units), mostDebtNs)
	return s.spend(uint64(nowNs) + uint64(debt)), debt - ahead
}

// giveBack credits what units of an ask are still worth:
//
//	c = max(0, min(units*interval, worth));  TAT = TAT - c;  credit = credit + c
//
// It returns c.
func (g GCRA) giveBack(s State, r Receipt, units, nowNs int64) (State, int64) {
	paid := aheadNs(r.TAT, nowNs)
	c := min(g.unitsNs(units), worthNs(paid, sinceNs(s.Credit, r.Credit), aheadNs(s.Value, nowNs)))
	if c <= 0 {
		return s, 0
	}
	if s.Credit == "" {
		s.Last = s.Value
	}
	s.Value -= uint64(c)
	s.Credit = new(big.Int).Add(creditNs(s.Credit), big.NewInt(c)).String()
	return s, c
}

// worthNs is the most that can be given back on an ask that left the TAT at S and the credit
// at R, where the TAT is now aheadNs ahead of the clock:
//
//	worth = (S - now) - (credit - R), 0 if that is below 0
//
// paidNs is S - now, at least 0; sinceNs is credit - R. What has drained since the ask, or was
// given back, is not there any more. It is 0, too, if credit < R or worth > TAT - now, as
// after the state was lost, and if S - now is 2^53 or more.
func worthNs(paidNs, sinceNs, aheadNs int64) int64 {
	worth := paidNs - sinceNs
	if paidNs >= FarNs || sinceNs < 0 || worth < 0 || worth > aheadNs {
		return 0
	}
	return worth
}

// sinceNs is credit - R, at most FarNs, and -1 if it is below 0 or one has too many digits.
func sinceNs(credit, before string) int64 {
	if len(credit) > mostCreditDigits || len(before) > mostCreditDigits {
		return -1
	}
	since := new(big.Int).Sub(creditNs(credit), creditNs(before))
	switch {
	case since.Sign() < 0:
		return -1
	case since.BitLen() > 53:
		return FarNs
	}
	return since.Int64()
}

// creditNs is a credit's number; of none it is 0.
func creditNs(credit string) *big.Int {
	n, _ := new(big.Int).SetString("0"+credit, 10)
	return n
}

// Settle is the settlement of an ask by its receipt, the index of its window, on the counts
// as At gives them; units are what was really used less what was charged. More counts in
// the current window, to 65535. Less lowers the count of the receipt's window, if that is
// the current or the previous one and its count is not 65535, which may have been cut.
func (s Counts) Settle(receipt uint32, units int64) Counts {
	const most = math.MaxUint16
	changed := func(count uint16) uint16 { return uint16(min(max(int64(count)+units, 0), most)) }
	switch behind := s.Index - receipt; {
	case units > 0 || behind == 0 && s.Current < most:
		s.Current = changed(s.Current)
	case behind == 1 && s.Previous < most:
		s.Previous = changed(s.Previous)
	}
	return s
}

// Receipt is what an ask answers that was charged and left this state.
func (s State) Receipt(script Script) string {
	if script.IsWindow() {
		return strconv.FormatUint(uint64(s.counts().Index), 10)
	}
	return Receipt{s.Value, s.Credit}.Text()
}

// Settle settles an ask by its receipt on a key of gcra_v2 or window_v1 that holds s, by the
// call's limit and clock; units are what was really used less what was charged. Where the state
// after it is another it is written: its expiry is ttlS from the clock on, or stays.
func (c *Call) Settle(script Script, s State, receipt string, units int64) (after State, stays bool, ttlS int64) {
	if !script.IsWindow() {
		paid, _ := ParseReceipt(receipt)
		after, _ = NewGCRA(c.Amount, c.PeriodNs, c.Burst, 1).Settle(s, paid, units, c.NowNs)
		stays = c.ByServer && s.Exists && after.lastNs()/1e9 == s.lastNs()/1e9
		return after, stays, gcraTTLS(after.lastNs(), c.NowNs, c.ByServer)
	}
	w := c.Window()
	at, leftNs, gapNs := w.from(c.NowNs)
	if s.Exists {
		at, leftNs, gapNs = w.at(s.counts(), c.NowNs)
	}
	index, _ := strconv.ParseUint(receipt, 10, 32)
	settled := at.Settle(uint32(index), units)
	if settled == at {
		return s, false, 0
	}
	stays = c.ByServer && s.Exists && settled.Index == s.counts().Index
	return newCounts(settled, c.PeriodNs), stays, windowTTLS(gapNs+leftNs+c.PeriodNs, c.NowNs, c.ByServer)
}

// Used is the exact limiter of one key fed, at each ask's instant, with what is settled of
// that ask so far:
//
//	T = max(T, instant) + units*interval, over the asks in their order
//
// Intervals may differ from ask to ask. Its zero value has no asks.
type Used struct {
	asks []usedAsk
}

type usedAsk struct {
	atNs, ns int64
	tat      uint64 // T just after it
}

// Ask feeds it with an ask of ns, units*interval, and returns its number.
func (u *Used) Ask(atNs, ns int64) int {
	u.asks = append(u.asks, usedAsk{atNs: atNs, ns: ns})
	u.feed(len(u.asks) - 1)
	return len(u.asks) - 1
}

// Settle changes the ns that an ask really used: more by what an over-use charged, less by
// the whole of what was given back, whatever that was worth. None may use less than 0.
func (u *Used) Settle(ask int, ns int64) {
	u.asks[ask].ns += ns
	u.feed(ask)
}

// feed computes T anew from an ask on, as far as it changes.
func (u *Used) feed(from int) {
	tat := uint64(0)
	if from > 0 {
		tat = u.asks[from-1].tat
	}
	for i := from; i < len(u.asks); i++ {
		a := &u.asks[i]
		tat = max(tat, uint64(a.atNs)) + uint64(a.ns)
		if tat == a.tat {
			return
		}
		a.tat = tat
	}
}

// TAT is T, in ns; without asks it is 0.
func (u *Used) TAT() uint64 {
	if len(u.asks) == 0 {
		return 0
	}
	return u.asks[len(u.asks)-1].tat
}
