package precision

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LimitsV1 is asked of several keys in one call, so it has calls, outcomes and traces of its
// own; what it does to each key is said by those of the scripts of one key.
const LimitsV1 Script = "limits_v1"

// limitsKeys is how many keys a call takes, and a trace has.
const limitsKeys = 32

// LimitsCall is a call of limits_v1.
type LimitsCall struct {
	// Asks are what it is about, each on another key, all by the same clock.
	Asks []Ask
	// Alone has gcra_v2 or window_v1 answer its only ask, in place of limits_v1.
	Alone bool
}

// Ask is what a call asks or settles on one key.
type Ask struct {
	// Key is the number of the key in its trace, from 0 on.
	Key int
	// Kind is the script of one key that answers the same: GCRAV2 or WindowV1.
	Kind Script
	Call
	// Of is 0 for an ask. Else this settles what was asked of the key by that call of the
	// trace, counted from 1, and cost is from -2^52 on.
	Of int
	// Lost has the key's state lost just before the call.
	Lost bool

	// receipt is the one of what is settled, by exact integers.
	receipt string
}

// LimitsOutcome is all that can be seen of a call of limits_v1.
type LimitsOutcome struct {
	Err                  string
	Status, RetryAfterNs int64
	// Keys are what the call did to each key, in the order of its asks. With an error only
	// the states and their ttls are there.
	Keys []KeyOutcome
}

// KeyOutcome is what can be seen of one key. Err is empty.
type KeyOutcome struct {
	Outcome
	Receipt string
}

// LimitsTrace is a list of calls on some keys, with what the native port says of each.
type LimitsTrace struct {
	Calls  []LimitsCall
	Native []LimitsOutcome

	asks []Ask // room for those of the calls
	keys []KeyOutcome
}

// NewLimitsTraceOf returns the trace of these calls. It is an error where one settles what
// exact integers do not charge.
func NewLimitsTraceOf(calls []LimitsCall) (*LimitsTrace, error) {
	t := &LimitsTrace{Calls: calls}
	if err := t.resolve(); err != nil {
		return nil, err
	}
	t.playNative()
	return t, nil
}

// resolve gives each settlement the receipt that exact integers answer to what it settles.
func (t *LimitsTrace) resolve() error {
	l := NewLimitsClaims()
	for i := range t.Calls {
		c := &t.Calls[i]
		if err := c.Check(); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		for n := range c.Asks {
			a := &c.Asks[n]
			if a.Of == 0 {
				continue
			}
			paid := l.charged(a.Key, a.Of)
			if a.Of > i || paid == nil {
				return fmt.Errorf("call %d settles what call %d was not charged on key %d", i, a.Of-1, a.Key)
			}
			if a.Cost < -paid.left {
				return fmt.Errorf("call %d gives back more than the %d units that call %d was charged on key %d", i, paid.left, a.Of-1, a.Key)
			}
			a.receipt = paid.receipt
		}
		l.Pass(c)
	}
	return nil
}

// clock is the call's.
func (c *LimitsCall) clock() *Call { return &c.Asks[0].Call }

// Check tells whether the keys, the limits and the costs are such as the scripts take.
func (c *LimitsCall) Check() error {
	switch n := len(c.Asks); {
	case n < 1 || n > limitsKeys:
		return errors.New("a call has 1 to 32 keys")
	case c.Alone && (n > 1 || c.Asks[0].Of > 0):
		return errors.New("a script of one key is asked of one")
	}
	named := [limitsKeys]bool{}
	for i := range c.Asks {
		a := &c.Asks[i]
		clock := c.clock()
		switch {
		case a.Key < 0 || a.Key >= limitsKeys || named[a.Key]:
			return errors.New("the keys are not all different numbers below 32")
		case a.Kind != GCRAV2 && a.Kind != WindowV1:
			return fmt.Errorf("no limit of limits_v1 is of %q", a.Kind)
		case a.NowNs != clock.NowNs || a.ServerNs != clock.ServerNs || a.ByServer != clock.ByServer:
			return errors.New("a call has one clock")
		case a.Given != "":
			return errors.New("limits_v1 makes its credit itself")
		case a.Of < 0:
			return errors.New("what is settled is no call")
		}
		named[a.Key] = true
		limit := a.Call
		if a.Of > 0 {
			limit.Cost = max(limit.Cost, -limit.Cost)
		}
		if err := limit.Check(a.Kind); err != nil {
			return err
		}
	}
	return nil
}

// appendArgs appends the call's ARGV to args.
func (c *LimitsCall) appendArgs(args []any) []any {
	if c.Alone {
		return c.clock().appendArgs(args, c.Asks[0].Kind)
	}
	now := ""
	if !c.clock().ByServer {
		now = strconv.FormatInt(c.clock().NowNs, 10)
	}
	args = append(args, now)
	for i := range c.Asks {
		a := &c.Asks[i]
		kind, burst := "gcra", ""
		switch {
		case !a.Kind.IsWindow():
			burst = strconv.FormatInt(a.Burst, 10)
		case a.Sliding:
			kind = "sliding"
		default:
			kind = "fixed"
		}
		args = append(args, kind, strconv.FormatInt(a.Amount, 10), strconv.FormatInt(a.PeriodNs, 10), burst,
			strconv.FormatInt(a.Cost, 10), a.receipt)
	}
	return args
}

// script is the one that answers the call.
func (c *LimitsCall) script() Script {
	if c.Alone {
		return c.Asks[0].Kind
	}
	return LimitsV1
}

// String is the call as a trace has it: key:ask for each ask, with + between them, where the
// ask is that of a call of one key. /N follows it where it settles what the Nth call asked,
// ! is before it where the key's state is lost, and ~ before a call that gcra_v2 or window_v1
// answers.
func (c *LimitsCall) String() string {
	var words []string
	for i := range c.Asks {
		a := &c.Asks[i]
		word := fmt.Sprintf("%d:%s", a.Key, a.Call.text(a.Kind))
		if a.Of > 0 {
			word += "/" + strconv.Itoa(a.Of)
		}
		if a.Lost {
			word = "!" + word
		}
		words = append(words, word)
	}
	text := strings.Join(words, "+")
	if c.Alone {
		text = "~" + text
	}
	return text
}

func parseLimitsCall(word string) (c LimitsCall, err error) {
	word, c.Alone = strings.CutPrefix(word, "~")
	for _, word := range strings.Split(word, "+") {
		var a Ask
		word, a.Lost = strings.CutPrefix(word, "!")
		word, of, settles := strings.Cut(word, "/")
		if settles {
			if a.Of, err = strconv.Atoi(of); err != nil {
				return c, err
			}
		}
		key, word, _ := strings.Cut(word, ":")
		if a.Key, err = strconv.Atoi(key); err != nil {
			return c, err
		}
		a.Kind = GCRAV2
		if strings.Contains(word, ",fixed,") || strings.Contains(word, ",sliding,") {
			a.Kind = WindowV1
		}
		if a.Call, err = parseCall(a.Kind, word); err != nil {
			return c, err
		}
		c.Asks = append(c.Asks, a)
	}
	return c, c.Check()
}

// String is the trace as one argument of the command line, which ReadTrial reads.
func (t *LimitsTrace) String() string {
	words := []string{string(LimitsV1)}
	for i := range t.Calls {
		words = append(words, t.Calls[i].String())
	}
	return strings.Join(words, " ")
}

// ParseLimitsTrace reads what String writes.
func ParseLimitsTrace(text string) (*LimitsTrace, error) {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != string(LimitsV1) {
		return nil, fmt.Errorf("a trace of limits_v1 is its name and calls, as limits_v1 0:300,60000000000,60,1,0, not %q", text)
	}
	var calls []LimitsCall
	for _, word := range words[1:] {
		c, err := parseLimitsCall(word)
		if err != nil {
			return nil, fmt.Errorf("call %q: %w", word, err)
		}
		calls = append(calls, c)
	}
	return NewLimitsTraceOf(calls)
}

// keyNames are the names of a trace's keys.
func keyNames(key string, calls []LimitsCall) []string {
	var names []string
	for i := range calls {
		for _, a := range calls[i].Asks {
			for len(names) <= a.Key {
				names = append(names, key+":"+strconv.Itoa(len(names)))
			}
		}
	}
	return names
}

// without is the calls less those from one to another, and less the settlements of what is
// gone.
func without(calls []LimitsCall, from, to int) []LimitsCall {
	var less []LimitsCall
	moved := make([]int, len(calls)+1) // the number of each call, 0 where it is gone
	for i := range calls {
		if i >= from && i < to {
			continue
		}
		c := LimitsCall{Alone: calls[i].Alone}
		for _, a := range calls[i].Asks {
			if a.Of > 0 {
				if a.Of = moved[a.Of]; a.Of == 0 || !slices.ContainsFunc(less[a.Of-1].Asks, func(b Ask) bool { return b.Key == a.Key }) {
					continue
				}
			}
			c.Asks = append(c.Asks, a)
		}
		if len(c.Asks) > 0 {
			less = append(less, c)
			moved[i+1] = len(less)
		}
	}
	return less
}
