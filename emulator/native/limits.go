package native

import (
	"math"
	"strconv"
	"strings"

	"github.com/tatami-rate/tatami/emulator/number"
)

// LimitsKey is one key of a call of limits_v1: its limit, what is asked or settled, what it
// holds, and the answer.
type LimitsKey struct {
	Repeated bool   // the call names this key before
	Kind     string // gcra, fixed or sliding

	Amount, PeriodNs, Burst, Cost float64

	BurstGiven bool   // the text of burst is not empty, as a window's has to be
	Receipt    string // empty: an ask
	// GCRA or Window, by Kind, is the state, which changes where the call writes.
	GCRA   GCRAState
	Window WindowState
	// Answer is what the call made of this key; zero when it has an error.
	Answer Decision

	// what is to be written, once every key is read
	gcra      GCRAState
	window    WindowState
	uncharged float64 // the reset if nothing is charged
}

// LimitsDecision is what limits_v1 answers of all its keys. With Err set it did nothing.
type LimitsDecision struct {
	Err                  string
	Status, RetryAfterNs int64
}

// Answered is the receipt of the answer.
func (k *LimitsKey) Answered() string {
	switch {
	case k.Receipt != "" || !k.Answer.Written:
		return k.Receipt
	case k.Kind == "gcra":
		return k.GCRA.receipt()
	default:
		return strconv.FormatUint(uint64(k.Window.Index), 10)
	}
}

// LimitsV1 is limits_v1.lua on keys, whose states it changes where it writes.
func LimitsV1(keys []LimitsKey, now Clock) LimitsDecision {
	if len(keys) < 1 || len(keys) > 32 {
		return LimitsDecision{Err: "BADARG limits_v1: takes 1 to 32 keys, then now_ns, " +
			"then kind amount period_ns burst cost receipt for each"}
	}
	if math.IsNaN(now.S) {
		return LimitsDecision{Err: "BADARG limits_v1: " + badClock}
	}
	d := LimitsDecision{Status: 1}
	for at := range keys {
		k := &keys[at]
		k.Answer = Decision{}
		class, bad := k.decide(now, d.Status == 1)
		if bad != "" {
			for i := range keys[:at] {
				keys[i].Answer = Decision{}
			}
			return LimitsDecision{Err: class + " limits_v1: key " + strconv.Itoa(at+1) + ": " + bad}
		}
		if k.Answer.Status < 1 {
			d.Status = min(d.Status, k.Answer.Status)
			d.RetryAfterNs = max(d.RetryAfterNs, k.Answer.RetryAfterNs)
			if d.Status < 0 {
				d.RetryAfterNs = -1
			}
		}
	}

	// Write: settlements, and the asks when all are admitted.
	for at := range keys {
		k := &keys[at]
		switch {
		case !k.Answer.Written:
		case d.Status < 1 && k.Receipt == "":
			k.Answer.Remaining += int64(k.Cost)
			k.Answer.ResetAfterNs = int64(k.uncharged)
			k.Answer.Written, k.Answer.TTLS = false, 0
		case k.Kind == "gcra":
			k.GCRA = k.gcra
		default:
			k.Window = k.window
		}
	}
	return d
}

// decide fills the answer, and what is to be written. An ask is charged when all before it are
// admitted. What is wrong is of a class: BADARG or BADSTATE.
func (k *LimitsKey) decide(now Clock, charges bool) (class, bad string) {
	if k.Repeated {
		return "BADARG", "it is named before"
	}
	if !isWhole(k.PeriodNs, 1, 1<<52) {
		return "BADARG", badPeriod
	}
	least := 0.0
	if k.Receipt != "" {
		least = -1 << 52
	}
	if !isWhole(k.Cost, least, 1<<52) {
		return "BADARG", badCost + ", or from -2^52 beside a receipt"
	}
	switch k.Kind {
	case "gcra":
		return k.decideGCRA(now, charges)
	case "fixed", "sliding":
		return k.decideWindow(now, charges)
	}
	return "BADARG", "kind must be gcra, fixed or sliding"
}

const badReceipt = "receipt must be empty, or that of an earlier ask"

func (k *LimitsKey) decideGCRA(now Clock, charges bool) (class, bad string) {
	// Check.
	if !isWhole(k.Amount, 1, k.PeriodNs) {
		return "BADARG", badAmount
	}
	interval := math.Ceil(k.PeriodNs / k.Amount)
	if !isWhole(k.Burst, 1, (1<<52)/interval) {
		return "BADARG", badBurst
	}
	tau := interval * k.Burst
	paid, credited, spaced := strings.Cut(k.Receipt, " ")
	if k.Receipt != "" &&
		(len(paid) > 19 || paid != "0" && !isCanonical(paid) || spaced && !isCanonical(credited)) {
		return "BADARG", badReceipt
	}
	if now.tooLate(tau) {
		return "BADARG", lateGCRA
	}

	// Read.
	ahead := 0.0
	if k.GCRA.Exists {
		if k.GCRA.foreign(now) {
			return "BADSTATE", "it holds something else than a decimal TAT"
		}
		ahead = k.GCRA.aheadNs(now)
	}

	// Decide.
	status, retry, worth := 1.0, 0.0, float64(k.Cost*interval)
	k.gcra, k.uncharged = k.GCRA, ahead
	written, tat := false, Instant{}
	switch {
	case k.Receipt == "":
		// The product may be inexact, but the ask then never fits.
		retry = ahead - (tau - worth)
		if retry > 0 {
			status = 0
			if k.Cost > k.Burst {
				status, retry = -1, -1
			}
		} else {
			retry = 0
			if k.Cost > 0 && charges {
				ahead = ahead + worth
				written, tat = true, plus(now.S, now.SubNs+ahead)
			}
		}
	case k.Cost > 0:
		debt := min(ahead+worth, 1<<53-1)
		if debt > ahead {
			ahead = debt
			written, tat = true, plus(now.S, now.SubNs+debt)
			if debt > 1<<52 { // whole seconds aside, or the sum could round
				tat = plus(now.S+4e6, now.SubNs+(debt-4e15))
			}
		}
	case k.Cost < 0 && ahead > 0:
		if c := k.gcra.giveBack(parseInstant(paid).afterNs(now.S, now.SubNs), credited, -worth, ahead); c > 0 {
			ahead = ahead - c
			written, tat = true, plus(k.GCRA.TAT.S, k.GCRA.TAT.SubNs-c)
		}
	}
	k.Answer.Status, k.Answer.RetryAfterNs, k.Answer.ResetAfterNs = int64(status), int64(retry), int64(ahead)
	if left := tau - ahead; left >= interval {
		k.Answer.Remaining = int64(math.Floor(left / interval))
	}
	if written {
		k.Answer.Written, k.Answer.TTLS = true, k.gcra.write(tat, now)
	}
	return "", ""
}

// giveBack adds to the credit what an ask gives back, and returns it: at most most, and what the
// receipt, paidNs ahead of the clock and with a credit, is still worth.
func (s *GCRAState) giveBack(paidNs float64, credited string, most, ahead float64) (c float64) {
	if len(s.Credit) > 24 || len(credited) > 24 {
		return 0
	}
	sum := parseInstant(s.Credit)
	before := parseInstant(credited)
	since := sum.afterNs(before.S, before.SubNs)
	if !(paidNs < 1<<53 && since >= 0 && since < 1<<53) {
		return 0
	}
	worth := paidNs - since
	c = min(most, worth)
	if !(c > 0 && worth <= ahead) {
		return 0
	}
	if s.Credit == "" {
		s.Last = s.TAT
	}
	subNs := number.ModWhole(c, 1e9)
	sum.S, sum.SubNs = sum.S+(c-subNs)/1e9, sum.SubNs+subNs
	if sum.SubNs >= 1e9 {
		sum.S, sum.SubNs = sum.S+1, sum.SubNs-1e9
	}
	s.Credit = sum.digits()
	return c
}

func (k *LimitsKey) decideWindow(now Clock, charges bool) (class, bad string) {
	// Check.
	if !isWhole(k.Amount, 1, 65535) {
		return "BADARG", badCount
	}
	if k.BurstGiven {
		return "BADARG", "burst must be empty for a window"
	}
	receipt := 0.0
	if k.Receipt != "" {
		if receipt, _ = number.ToNumber(k.Receipt); k.Receipt != "0" && !isCanonical(k.Receipt) || receipt >= 1<<32 {
			return "BADARG", badReceipt
		}
	}
	if now.tooLateForWindow() {
		return "BADARG", lateWindow
	}

	// Read and roll.
	v := window{w: k.PeriodNs}
	e := v.begin(now)
	if k.Window.Exists {
		if bad := v.roll(&k.Window, e); bad != "" {
			return "BADSTATE", "it holds " + bad
		}
	}

	// Settle.
	changed := false
	if k.Receipt != "" {
		behind, was := number.ModWhole(v.index-receipt, 1<<32), v.previous+v.current
		if k.Cost > 0 {
			v.current = min(v.current+k.Cost, 65535)
		} else if behind == 0 && v.current < 65535 {
			v.current = max(v.current+k.Cost, 0)
		} else if behind == 1 && v.previous < 65535 {
			v.previous = max(v.previous+k.Cost, 0)
		}
		changed = v.previous+v.current != was
	}

	// Decide.
	sliding := k.Kind == "sliding"
	carried := v.carried(sliding)
	k.uncharged = v.resetNs(sliding)
	status, retry := 1.0, 0.0
	if k.Receipt == "" {
		if status, retry = v.decide(k.Amount, k.Cost, carried, sliding); status == 1 && k.Cost > 0 && charges {
			v.current, changed = v.current+k.Cost, true
		}
	}
	k.Answer.Status, k.Answer.Remaining = int64(status), int64(max(k.Amount-carried-v.current, 0))
	k.Answer.RetryAfterNs, k.Answer.ResetAfterNs = int64(retry), int64(v.resetNs(sliding))
	if changed {
		k.Answer.Written, k.Answer.TTLS = true, v.write(&k.window, now)
	}
	return "", ""
}
