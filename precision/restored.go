package precision

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Restored plays on a server whose key does not stay: after every movedAfter calls
// its state goes to another key by DUMP and RESTORE, as it does when a server loads a
// snapshot or a cluster moves a slot. Outcomes must be as if it had stayed.
type Restored struct{ *Real }

// movedAfter is not a multiple of what a pipeline takes, and small enough that a trace
// has several moves.
const movedAfter = 500

// Play makes the calls. Afterwards the state is under the key's own name.
func (r Restored) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	here, there := key, key+":restored"
	for len(calls) > 0 {
		n := min(len(calls), movedAfter)
		if err := r.Real.Play(script, here, calls[:n], outcomes[:n]); err != nil {
			return err
		}
		if err := r.move(r.prefix+here, r.prefix+there); err != nil {
			return err
		}
		calls, outcomes = calls[n:], outcomes[n:]
		here, there = there, here
	}
	if here != key {
		return r.move(r.prefix+here, r.prefix+there)
	}
	return nil
}

// move carries a key's state and ttl over to a key that does not exist, and deletes
// the old one. A missing key stays missing.
func (r Restored) move(from, to string) error {
	ctx := context.Background()
	pipe := r.client.Pipeline()
	before, ttl, dump := pipe.Time(ctx), pipe.Do(ctx, "PTTL", from), pipe.Dump(ctx, from)
	var end *redis.Cmd
	if r.frozen {
		end = pipe.Do(ctx, "PEXPIRETIME", from)
	}
	if _, err := pipe.Exec(ctx); errors.Is(err, redis.Nil) {
		return nil
	} else if err != nil {
		return err
	}
	if left, err := ttl.Int64(); err != nil || left <= 0 {
		return fmt.Errorf("PTTL of a live key is %d, %w", left, err)
	}
	if r.frozen {
		pipe.Do(ctx, "RESTORE", to, end.Val(), dump.Val(), "ABSTTL")
	} else {
		pipe.Do(ctx, "RESTORE", to, ttl.Val(), dump.Val())
	}
	after := pipe.Time(ctx)
	pipe.Del(ctx, from)
	if _, err := pipe.Exec(ctx); err != nil {
		return err
	}
	written := r.last[from]
	if !r.frozen {
		// The new key ends later than the old one would have by the time from PTTL to
		// RESTORE, as if the last write had come that much later.
		written.to += after.Val().UnixMilli() - before.Val().UnixMilli()
	}
	r.last[to], r.held[to] = written, r.held[from]
	delete(r.last, from)
	delete(r.held, from)
	return nil
}
