package loader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// maxAsks is how many keys limits_v1 takes.
const maxAsks = 32

// Ask is one limit of a reservation.
type Ask struct {
	// Key names who is limited, and is not empty. Limiter.Key tells the Redis key.
	Key   string
	Limit Limit
	// Cost is the units asked for, 0 to 2^52. 0 only looks, and is refused while an
	// over-use is not paid off.
	Cost int64
}

// Reservation is the answer to Reserve. It may be used by many goroutines at once.
type Reservation struct {
	// OK is true when every ask was admitted and charged. Otherwise none is charged.
	OK bool
	// RetryAfter is 0 when OK, and -1 when an ask can never be admitted. Otherwise it is
	// the longest wait of the asks: the same asks are admitted after it if nothing else is
	// spent meanwhile, and, when every wait is exact, would be refused a nanosecond
	// earlier. When they were asked InTurn the wait may be longer than it says.
	RetryAfter time.Duration
	// InTurn is true when the asks' keys are on several servers or slots, and so were not
	// asked in one call.
	InTurn bool
	// Results are what each limit answers, in the order of the asks. When not OK, Allowed
	// says that this limit alone would admit its ask, and Remaining and ResetAfter are
	// without it. InTurn they are of each limit's own call: with its charge where that was
	// given back since, and only a Limit and a Key where one before it refused.
	Results []Result
	// Binding is the index of the limit that decides: of those that refuse the first that
	// can never admit its ask, or else has the longest wait; when OK the one that has the
	// least share of its Quota left, for a header.
	Binding int
	// Receipts has what settles each ask, for Reopen. It is empty for what was not charged.
	Receipts []string

	limiter *Limiter
	asks    []Ask
	keys    []string
	groups  [][]int // the asks of each call

	mu      sync.Mutex
	charged []bool // by ask: it is, and no settlement of it may have run
}

// ChargedError is in an error of Reserve, Settle and Cancel after which asks are charged, or
// may be.
type ChargedError struct {
	// Asks are the indices of these asks, in their order.
	Asks []int
	err  error
}

// Error counts the asks from 1.
func (e *ChargedError) Error() string {
	word, numbers := "ask", make([]string, len(e.Asks))
	for i, ask := range e.Asks {
		numbers[i] = fmt.Sprint(ask + 1)
	}
	if len(numbers) > 1 {
		word = "asks"
	}
	return fmt.Sprintf("%s%s %s may be charged still: %s", errorPrefix, word, strings.Join(numbers, ", "),
		strings.TrimPrefix(e.err.Error(), errorPrefix))
}

// Unwrap returns the error of the calls.
func (e *ChargedError) Unwrap() error { return e.err }

// Reserve asks for the units of several limits at once, 1 to 32 with different Redis keys:
// all are charged, or none is. Settle tells later what was really used.
//
// Limits of one Key are one call, which is atomic, and so are all on a server that is no
// cluster's. Limits of different Keys have other slots in a cluster and other servers in a
// Ring, unless their Keys have a common tag in braces. They are asked in turn, always in
// the same order, and what was charged is given back when one refuses. Meanwhile others see
// it as spent, so they may be refused, and never admitted too much. A plain Client on a
// cluster's node does the same when that answers CROSSSLOT.
//
// The error is one of AllowN's, or an ErrAsks before anything is sent. With ErrNotSpent
// nothing is charged. With ErrMaybeSpent a ChargedError names the asks that are charged or
// may be: where a reply was lost, or where a give-back failed, which Cancel tries once more.
// What nobody gives back drains as if it was used. The Reservation is never nil; beside an
// error it is not OK, and says no more than was answered.
func (l *Limiter) Reserve(ctx context.Context, asks ...Ask) (*Reservation, error) {
	r, err := l.open(asks)
	if err != nil {
		return &Reservation{}, err
	}
	for {
		err := r.ask(ctx)
		if !r.splits(err) {
			return r, err
		}
	}
}

// Reopen returns the Reservation that Reserve has made of the asks, by its Receipts, so that
// another process can settle it. It sends nothing. Of the two only one may Settle: a
// settlement that is made twice gives back twice. The error is an ErrAsks, or of an ask.
func (l *Limiter) Reopen(receipts []string, asks ...Ask) (*Reservation, error) {
	r, err := l.open(asks)
	if err == nil && len(receipts) != len(asks) {
		err = refuse(ErrAsks, fmt.Sprintf("%d receipts of %d asks", len(receipts), len(asks)))
	}
	if err != nil {
		return &Reservation{}, err
	}
	r.OK = true
	copy(r.Receipts, receipts)
	for i := range r.charged {
		r.charged[i] = true
	}
	return r, nil
}

// open checks the asks and makes a Reservation of them, of which none is charged.
func (l *Limiter) open(asks []Ask) (*Reservation, error) {
	if l == nil || l.client == nil {
		return nil, &failure{spent: ErrNotSpent, cause: errNoLimiter}
	}
	n := len(asks)
	if n < 1 || n > maxAsks {
		return nil, refuse(ErrAsks, fmt.Sprintf("there are %d, want 1 to %d", n, maxAsks))
	}
	r := &Reservation{
		limiter: l, asks: slices.Clone(asks), keys: make([]string, n), charged: make([]bool, n),
		Results: make([]Result, n), Receipts: make([]string, n),
	}
	for i, ask := range asks {
		if err := check(ask.Key, ask.Limit, ask.Cost); err != nil {
			var f *failure
			errors.As(err, &f)
			return nil, refuse(f.kind, fmt.Sprintf("ask %d: %s", i+1, f.causeText()))
		}
		r.keys[i] = l.Key(ask.Key, ask.Limit)
		if first := slices.Index(r.keys[:i], r.keys[i]); first >= 0 {
			return nil, refuse(ErrAsks, fmt.Sprintf("asks %d and %d have one Redis key; a Name keeps limits apart", first+1, i+1))
		}
		r.Results[i] = Result{Limit: ask.Limit, Key: r.keys[i]}
	}
	r.groups = [][]int{make([]int, n)}
	for i := range n {
		r.groups[0][i] = i
	}
	if l.spread {
		r.group()
	}
	return r, nil
}

// group puts the asks into as few calls as have keys of one slot each, or of one tag on a
// ring. Their order is that of the slots, whoever asks: were it another, two callers could
// each charge what the other asks for next.
func (r *Reservation) group() {
	byPlace := map[string][]int{}
	_, ring := r.limiter.client.(ringClient)
	for i, key := range r.keys {
		place := tagOf(key)
		if !ring {
			place = fmt.Sprintf("%05d", slotOf(key))
		}
		byPlace[place] = append(byPlace[place], i)
	}
	r.groups = nil
	for _, place := range slices.Sorted(maps.Keys(byPlace)) {
		r.groups = append(r.groups, byPlace[place])
	}
}

// splits is true when the calls have to be made again, by slots: one call of several slots
// was refused. It ran nothing.
func (r *Reservation) splits(err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.groups) > 1 || !redis.HasErrorPrefix(err, "CROSSSLOT") {
		return false
	}
	r.group()
	return len(r.groups) > 1
}

// ask makes the calls in turn, until one refuses or fails.
func (r *Reservation) ask(ctx context.Context) error {
	r.InTurn = len(r.groups) > 1
	order := slices.Clone(r.groups)
	if r.InTurn {
		// What can never be admitted says so first, so that nothing is charged for it.
		slices.SortStableFunc(order, func(a, b []int) int { return r.fits(a) - r.fits(b) })
	}
	for _, group := range order {
		if err := r.askOne(ctx, group); err != nil || r.RetryAfter != 0 {
			return r.giveBack(ctx, group, err)
		}
	}
	r.OK = true
	r.Binding = tightest(r.Results)
	return nil
}

// fits is 0 when an ask of the group can never be admitted, and else 1.
func (r *Reservation) fits(group []int) int {
	for _, i := range group {
		if r.asks[i].Cost > r.asks[i].Limit.Quota() {
			return 0
		}
	}
	return 1
}

// askOne makes one call.
func (r *Reservation) askOne(ctx context.Context, group []int) error {
	if err := r.limiter.usable(ctx); err != nil {
		return err
	}
	c, err := r.call(group, nil)
	if err != nil {
		return err
	}
	r.limiter.send(ctx, c)
	if c.failed != nil {
		return c.failed
	}
	answer, err := decodeLimits(c.reply, len(group))
	if err != nil {
		return r.limiter.unexpected(c, err)
	}
	r.RetryAfter = answer.retry
	longest := time.Duration(0)
	for at, i := range group {
		result := answer.results[at]
		result.Limit, result.Key = r.asks[i].Limit, r.keys[i]
		r.Results[i], r.Receipts[i], r.charged[i] = result, answer.receipts[at], answer.retry == 0
		switch {
		case longest < 0:
		case result.Unfittable, result.RetryAfter > longest:
			r.Binding, longest = i, result.RetryAfter
		}
	}
	return nil
}

// giveBack gives back what was charged before the group, which refused, or failed with err,
// and returns the error of both.
func (r *Reservation) giveBack(ctx context.Context, group []int, err error) error {
	kept, errs := r.settle(ctx, make([]int64, len(r.asks)))
	for i := range r.Receipts {
		if !r.charged[i] {
			r.Receipts[i] = ""
		}
	}
	if errors.Is(err, ErrMaybeSpent) {
		kept = append(kept, group...)
	}
	if len(kept) == 0 {
		return err
	}
	if err != nil {
		errs = append([]error{err}, errs...)
	}
	return charged(ErrMaybeSpent, kept, errs) // a give-back that surely did not run leaves them too
}

// charged is one error of all that leave these asks charged.
func charged(spent error, asks []int, errs []error) error {
	var all failures
	for _, err := range errs {
		all = append(all, unspent(err))
	}
	slices.Sort(asks)
	return &ChargedError{asks, &failure{spent: spent, cause: all}}
}

// Settle tells what was really used of each ask, 0 to 2^52 units, in their order. What was
// charged beyond it is given back, as far as that admits no more than the limit by what was
// really used, each unit at its ask's instant: what was charged long ago has drained by
// then. More than was charged is charged now, beyond the limit too, which then admits
// nothing until it is paid off. An ask of cost 0 can be settled as well, so a limit can also
// charge only afterwards.
//
// It is sent once, for it would give back twice. Another Settle or Cancel, at the same time
// too, does nothing and returns nil; so does one of a Reservation that is not OK. After an
// ErrNotSpent nothing was settled of what its ChargedError names: another Settle sends that
// alone. After an ErrMaybeSpent it is not known of some, and another sends what surely was
// not. The context is best one that outlives the request, as context.WithoutCancel makes.
//
// What is never settled stays charged as it was asked for, and drains. The interval of the
// limit has to be that of the ask.
func (r *Reservation) Settle(ctx context.Context, used ...int64) error {
	if r == nil || r.limiter == nil {
		return nil
	}
	if len(used) != len(r.asks) {
		return refuse(ErrAsks, fmt.Sprintf("%d numbers of units used for %d asks", len(used), len(r.asks)))
	}
	for i, units := range used {
		if units < 0 || units > maxCost {
			return refuse(ErrCost, fmt.Sprintf("ask %d: %d units used are outside 0 .. %d", i+1, units, int64(maxCost)))
		}
	}
	return r.settleAll(ctx, used)
}

// Cancel is Settle with 0 for each ask: nothing was used. It is not for a defer, where it would
// also give back what was used, when a Settle before it did not run.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r == nil || r.limiter == nil {
		return nil
	}
	return r.settleAll(ctx, make([]int64, len(r.asks)))
}

func (r *Reservation) settleAll(ctx context.Context, used []int64) error {
	kept, errs := r.settle(ctx, used)
	if len(kept) == 0 {
		return nil
	}
	spent := ErrNotSpent
	if slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, ErrMaybeSpent) }) {
		spent = ErrMaybeSpent
	}
	return charged(spent, kept, errs)
}

// settle settles what is charged, and returns the asks of which it is not known that they
// are settled, and why.
func (r *Reservation) settle(ctx context.Context, used []int64) (kept []int, errs []error) {
	groups := r.take(used)
	if len(groups) == 0 {
		return nil, nil
	}
	calls := make([]*call, len(groups))
	err := r.limiter.usable(ctx)
	for at := 0; at < len(groups) && err == nil; at++ {
		calls[at], err = r.call(groups[at], used)
	}
	if err != nil {
		kept = slices.Concat(groups...)
		r.putBack(kept)
		return kept, []error{err}
	}
	r.limiter.sendEach(ctx, calls)
	for at, group := range groups {
		err := r.limiter.settled(calls[at])
		if err == nil {
			continue
		}
		if errors.Is(err, ErrNotSpent) {
			r.putBack(group)
			if r.splits(err) {
				return r.settle(ctx, used)
			}
		}
		kept, errs = append(kept, group...), append(errs, err)
	}
	return kept, errs
}

// take returns the asks that have to be settled, by calls. Nobody else gets them then.
func (r *Reservation) take(used []int64) (groups [][]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, all := range r.groups {
		var group []int
		for _, i := range all {
			// What was used as it was asked for needs no call.
			if r.charged[i] && used[i] != r.asks[i].Cost {
				group = append(group, i)
			}
			r.charged[i] = false
		}
		if group != nil {
			groups = append(groups, group)
		}
	}
	return groups
}

// putBack has another settlement take these.
func (r *Reservation) putBack(asks []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, i := range asks {
		r.charged[i] = true
	}
}

// settled is the error of a call that settles.
func (l *Limiter) settled(c *call) error {
	if c.failed != nil {
		return c.failed
	}
	answer, err := decodeLimits(c.reply, len(c.asks))
	if err == nil && answer.retry != 0 {
		err = fmt.Errorf("%w: %v refuses a settlement", ErrReply, c.reply)
	}
	if err != nil {
		return l.unexpected(c, err)
	}
	return nil
}

// call is the call of limits_v1 that asks for the group, or, when used is not nil, settles it.
func (r *Reservation) call(group []int, used []int64) (*call, error) {
	l := r.limiter
	c := &call{script: l.limits, key: r.keys[group[0]], asks: group, free: used == nil, count: strconv.AppendInt(nil, int64(len(group)), 10)}
	c.args = make([]any, 0, 4+7*len(group))
	c.args = append(c.args, "evalsha", c.script.sha1, (*numKeys)(c))
	for at, i := range group {
		if at > 0 {
			c.others = append(c.others, r.keys[i])
		}
		c.args = append(c.args, r.keys[i])
	}
	if l.clock == nil {
		c.args = append(c.args, "")
	} else {
		now, err := l.nowNS()
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, now)
	}
	for _, i := range group {
		limit, cost, receipt := r.asks[i].Limit, r.asks[i].Cost, ""
		if used != nil {
			cost, receipt = used[i]-cost, r.Receipts[i]
			if receipt == "" { // of an ask of cost 0: an over-use has no look at it
				receipt = "0"
			}
		} else if cost > 0 {
			c.free = false
		}
		kind, burst := "gcra", any(limit.Quota())
		switch limit.Algorithm {
		case FixedWindow:
			kind, burst = "fixed", ""
		case SlidingWindow:
			kind, burst = "sliding", ""
		}
		c.args = append(c.args, kind, limit.Amount, int64(limit.Period), burst, cost, receipt)
	}
	return c, nil
}

// limitsReply is a reply of limits_v1.
type limitsReply struct {
	retry    time.Duration // 0 with status 1, -1 with status -1
	results  []Result
	receipts []string
}

// decodeLimits takes the reply {status, retry_after_ns, {status, remaining, retry_after_ns,
// reset_after_ns, receipt} x n}.
func decodeLimits(reply any, n int) (limitsReply, error) {
	refused := func(format string, args ...any) (limitsReply, error) {
		return limitsReply{}, fmt.Errorf("%w: "+format, append([]any{ErrReply}, args...)...)
	}
	values, ok := reply.([]any)
	if !ok || len(values) != n+2 {
		return refused("%T %v, want %d elements", reply, reply, n+2)
	}
	answer := limitsReply{results: make([]Result, n), receipts: make([]string, n)}
	status, retry := int64(1), time.Duration(0)
	for i := range n {
		inner, ok := values[i+2].([]any)
		if !ok || len(inner) != 5 {
			return refused("element %d is %T %v, want 5 elements", i+3, values[i+2], values[i+2])
		}
		var err error
		if answer.results[i], err = decodeNumbers(inner[:4]); err != nil {
			return limitsReply{}, err
		}
		if answer.receipts[i], ok = inner[4].(string); !ok {
			return refused("element %d has the receipt %T %v, want text", i+3, inner[4], inner[4])
		}
		status, retry = min(status, inner[0].(int64)), max(retry, answer.results[i].RetryAfter)
	}
	if status < 0 {
		retry = -1
	}
	if values[0] != any(status) || values[1] != any(int64(retry)) {
		return refused("%v is not what its limits say, status %d and %d ns", values, status, retry)
	}
	answer.retry = retry
	return answer, nil
}

// tightest is the index of the result with the least share of its quota left.
func tightest(results []Result) (least int) {
	for i, result := range results {
		// a.Remaining / a.Quota < b.Remaining / b.Quota, by whole numbers
		high, low := bits.Mul64(uint64(result.Remaining), uint64(results[least].Limit.Quota()))
		leastHigh, leastLow := bits.Mul64(uint64(results[least].Remaining), uint64(result.Limit.Quota()))
		if high < leastHigh || high == leastHigh && low < leastLow {
			least = i
		}
	}
	return least
}
