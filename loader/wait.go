package loader

import (
	"context"
	"fmt"
	"time"
)

// Wait waits until the limit at key admits cost units, 0 to 2^52, and spends them. After a
// refusal it sleeps exactly as long as the script says, and asks again. Those who wait have
// no order among them: whoever asks first once there is a unit gets it.
//
// With LeakyBucket it is a queue of at most Burst units that lets one out each Interval:
// what is admitted is held until its turn, so that work leaves evenly however it came. Who
// finds the queue full waits for a place in it.
//
// A wait or a turn that would come after the context's deadline is an ErrWait at once, and a
// cost that the limit can never admit an ErrCost. Other errors are AllowN's. When the context
// ends a wait, nothing was spent (ErrNotSpent); when it ends the hold of a LeakyBucket, the
// place stays taken, since those behind it have their turns (ErrMaybeSpent). Waits pass in
// real time, whatever the clock of WithClock says.
func (l *Limiter) Wait(ctx context.Context, key string, limit Limit, cost int64) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	if err := check(key, limit, cost); err != nil {
		return err
	}
	if cost > limit.Quota() {
		return refuse(ErrCost, fmt.Sprintf("%v: cost %d can never be admitted", limit, cost))
	}
	queued := limit.Algorithm == LeakyBucket
	for {
		asked := limit
		if deadline, bounded := ctx.Deadline(); bounded && queued {
			// Only a place whose turn comes in time: a burst of cost + n units admits what has
			// at most n intervals to be held.
			n := int64(max(time.Until(deadline), 0) / limit.Interval())
			asked.Burst = max(cost+min(n, limit.Quota()-cost), 1)
		}
		result, err := l.AllowN(ctx, key, asked, cost)
		if err != nil {
			return err
		}
		if result.Allowed && !queued {
			return nil
		}
		if result.Allowed {
			// What was there before has to leave.
			if err := sleep(ctx, result.ResetAfter-time.Duration(cost)*limit.Interval()); err != nil {
				return &failure{spent: ErrMaybeSpent, cause: err}
			}
			return nil
		}
		wait := result.RetryAfter
		if queued {
			wait = max(wait, result.ResetAfter) // its turn, once it has a place
		}
		if deadline, bounded := ctx.Deadline(); bounded && wait > time.Until(deadline) {
			return refuse(ErrWait, fmt.Sprintf("%v: %v would pass the context's deadline", limit, wait))
		}
		if err := sleep(ctx, result.RetryAfter); err != nil {
			return &failure{spent: ErrNotSpent, cause: err}
		}
	}
}

// AllowAtMost asks for as many of 1 to cost units as there are, and spends those that it
// grants: all of cost, or what the limit had left. With none granted the Result is the
// refusal of one unit; otherwise it is that of the granted ones. It asks for all of them,
// then for what was left, and on until it is admitted or one unit is refused: one round trip
// when all are there, two when they are not, and more when others take them meanwhile. What
// is granted was charged at once. Errors are AllowN's, and a cost of 0 is an ErrCost.
func (l *Limiter) AllowAtMost(ctx context.Context, key string, limit Limit, cost int64) (granted int64, result Result, err error) {
	if cost < 1 {
		return 0, Result{}, refuse(ErrCost, fmt.Sprintf("%v: cost %d is outside 1 .. %d", limit, cost, int64(maxCost)))
	}
	for {
		result, err = l.AllowN(ctx, key, limit, cost)
		switch {
		case err != nil:
			return 0, Result{}, err
		case result.Allowed:
			return cost, result, nil
		case cost == 1:
			return 0, result, nil
		}
		// Fewer each time, also by gcra_v1, whose Remaining may count a unit that is to come.
		cost = max(1, min(result.Remaining, cost-1))
	}
}
