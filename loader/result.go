package loader

import (
	"fmt"
	"time"
)

// Result is a script's answer.
type Result struct {
	// Allowed is true when the units asked for may be spent, and then they are spent.
	Allowed bool
	// Unfittable is true when the cost is above burst, or above a window's amount:
	// the same call can never be allowed.
	Unfittable bool
	// Remaining is the units that could be allowed now, after this call, 0 or more.
	// It is not 0 on every refusal: a cost may be above what is left. By gcra_v1 it may
	// already count a unit that comes up to 255 ns later.
	Remaining int64
	// RetryAfter is 0 when allowed, and -1 when unfittable. Otherwise the same call
	// is allowed after this wait if nothing else is spent meanwhile, and, when the wait
	// is exact, would be refused a nanosecond earlier.
	RetryAfter time.Duration
	// ResetAfter is the time until the key is as good as new, 0 or more.
	ResetAfter time.Duration
	// Limit is the limit of the call.
	Limit Limit
	// Key is the Redis key that was used.
	Key string
}

// WaitExact is false when RetryAfter may be up to 4096 ns longer than it has to be, and
// ResetAfter likewise: while the key is full for 2^53 ns (104 days) or more.
func (r Result) WaitExact() bool { return r.ResetAfter < 1<<53 }

// ResetAfterSeconds is ResetAfter in whole seconds, rounded up, for a header such as
// RateLimit-Reset. Beside it Limit.Quota is for RateLimit-Limit, and Remaining for
// RateLimit-Remaining.
func (r Result) ResetAfterSeconds() int64 { return wholeSeconds(r.ResetAfter) }

// RetryAfterSeconds is RetryAfter in whole seconds, rounded up, for the HTTP header
// Retry-After. It is at least 1. It is absent, and false, when the call was allowed
// or never can be.
func (r Result) RetryAfterSeconds() (int64, bool) {
	if r.RetryAfter <= 0 {
		return 0, false
	}
	return wholeSeconds(r.RetryAfter), true
}

// wholeSeconds rounds up, and cannot overflow.
func wholeSeconds(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/time.Second + 1)
}

// decode takes the reply {status, remaining, retry_after_ns, reset_after_ns}.
func decode(reply any) (Result, error) {
	values, ok := reply.([]any)
	if !ok || len(values) != 4 {
		return Result{}, fmt.Errorf("%w: %T %v, want 4 integers", ErrReply, reply, reply)
	}
	return decodeNumbers(values)
}

// decodeNumbers takes the four elements of a reply.
func decodeNumbers(values []any) (Result, error) {
	var numbers [4]int64
	ok := false
	for i, value := range values {
		if numbers[i], ok = value.(int64); !ok {
			return Result{}, fmt.Errorf("%w: element %d is %T %v, want an integer", ErrReply, i+1, value, value)
		}
	}
	status, remaining, retry, reset := numbers[0], numbers[1], numbers[2], numbers[3]
	switch {
	case remaining < 0 || reset < 0,
		status == 1 && retry != 0,
		status == 0 && retry < 1,
		status == -1 && retry != -1,
		status < -1 || status > 1:
		return Result{}, fmt.Errorf("%w: %v is out of range", ErrReply, values)
	}
	return Result{
		Allowed:    status == 1,
		Unfittable: status == -1,
		Remaining:  remaining,
		RetryAfter: time.Duration(retry),
		ResetAfter: time.Duration(reset),
	}, nil
}
