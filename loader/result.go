package loader

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrReply means that the reply is not four integers in range. Whether the call
	// was counted is unknown.
	ErrReply = errors.New("unexpected reply")
	// ErrBadArg means that the script refused an argument, its clock among them, or
	// that the server refuses the script the time.
	ErrBadArg = errors.New("argument refused")
	// ErrBadState means that the key holds something else than a limiter's state. It
	// is left as it was.
	ErrBadState = errors.New("key holds something else")
	// ErrReadOnly means that the server is a replica, where only calls that cost
	// nothing run.
	ErrReadOnly = errors.New("server is read only")
	// ErrOutOfMemory means that the server is at its maxmemory and may evict nothing.
	ErrOutOfMemory = errors.New("server is out of memory")
)

// Result is a script's answer.
type Result struct {
	// Allowed is true when the units asked for may be spent, and then they are spent.
	Allowed bool
	// Unfittable is true when the cost is above burst, or above a window's amount:
	// the same call can never be allowed.
	Unfittable bool
	// Remaining is the units that could be allowed now, after this call, 0 or more.
	// It is not 0 on every refusal: a cost may be above what is left. With WithV1 it
	// may already count a unit of GCRA that comes up to 255 ns later.
	Remaining int64
	// RetryAfter is 0 when allowed, and -1 when unfittable. Otherwise the same call
	// is allowed after this wait if nothing else is spent meanwhile, and it would be
	// refused a nanosecond earlier. With WithV1 a sliding window's wait is an upper
	// bound: it ends at the first start of a window at which the call is sure to fit.
	// So is any wait while the key is full for 2^53 ns (104 days) or more, by up to 4096 ns.
	RetryAfter time.Duration
	// ResetAfter is the time until the key is as good as new, 0 or more.
	ResetAfter time.Duration
}

// RetryAfterSeconds is RetryAfter in whole seconds, rounded up, for the HTTP header
// Retry-After. It is at least 1. It is absent, and false, when the call was allowed
// or never can be.
func (r Result) RetryAfterSeconds() (int64, bool) {
	if r.RetryAfter <= 0 {
		return 0, false
	}
	return int64((r.RetryAfter-1)/time.Second + 1), true
}

// decode takes the reply {status, remaining, retry_after_ns, reset_after_ns}.
func decode(reply any) (Result, error) {
	values, ok := reply.([]any)
	if !ok || len(values) != 4 {
		return Result{}, fmt.Errorf("%w: %T %v, want 4 integers", ErrReply, reply, reply)
	}
	var numbers [4]int64
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

// handedOn is what Redis 6 puts before an error that a script hands on: its line.
var handedOn = regexp.MustCompile(`^@user_script: ?\d+: -`)

// typed puts a sentinel before a server's error that has one.
func typed(err error) error {
	if err == redis.Nil {
		return fmt.Errorf("%w: nil, want 4 integers", ErrReply)
	}
	var replied redis.Error
	if !errors.As(err, &replied) {
		return err
	}
	message := handedOn.ReplaceAllString(err.Error(), "")
	for _, known := range []struct {
		prefix   string
		sentinel error
	}{
		{"BADARG ", ErrBadArg},
		{"BADSTATE ", ErrBadState},
		{"WRONGTYPE ", ErrBadState},
		{"READONLY ", ErrReadOnly},
		{"OOM ", ErrOutOfMemory},
	} {
		if strings.HasPrefix(message, known.prefix) {
			return fmt.Errorf("%w: %w", known.sentinel, err)
		}
	}
	return err
}
