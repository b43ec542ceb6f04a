package loader

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one command to run a script. Its arguments stand in its own array, which
// spares an allocation.
type call struct {
	*redis.Cmd
	script *Script
	args   [9]any
	n      int // arguments in use
	cost   int64
}

// NoRetry keeps go-redis, whose MaxRetries is 3 by default, from sending the call
// again after a lost reply: it may have been counted. One that costs nothing writes
// nothing and may be repeated.
func (c *call) NoRetry() bool { return c.cost != 0 }

// prepare checks the arguments and makes c the EVALSHA for them.
func (l *Limiter) prepare(ctx context.Context, c *call, key string, limit Limit, cost int64) error {
	if err := limit.Check(); err != nil {
		return err
	}
	if cost < 0 || cost > maxCost {
		return fmt.Errorf("%w: %v: cost %d is outside 0 .. %d", ErrCost, limit, cost, int64(maxCost))
	}
	c.script, c.cost, c.n = l.gcra, cost, 8
	switch limit.Algorithm {
	case FixedWindow:
		c.script, c.args[6] = l.window, "fixed"
	case SlidingWindow:
		c.script, c.args[6] = l.window, "sliding"
	default:
		c.args[6] = limit.burst()
	}
	c.args[2], c.args[3], c.args[4], c.args[5], c.args[7] = 1, key, limit.Amount, int64(limit.Period), cost
	if l.clock != nil {
		now := l.clock()
		if now.Before(time.Unix(0, 0)) || now.After(time.Unix(0, 1<<63-1)) {
			return fmt.Errorf("%w: %v is outside 1970 .. 2262", ErrClock, now)
		}
		c.args[8], c.n = now.UnixNano(), 9
	}
	c.args[0], c.args[1] = "evalsha", c.script.SHA1
	c.command(ctx)
	return nil
}

// command makes c a new command of its arguments.
func (c *call) command(ctx context.Context) {
	c.Cmd = redis.NewCmd(ctx, c.args[:c.n]...)
	c.SetFirstKeyPos(3) // by which a cluster client finds the slot, a ring the shard
}

// SetErr keeps a reply that is there: go-redis puts a lost connection's error on
// every call of the pipeline, also on those whose reply came before.
func (c *call) SetErr(err error) {
	if err == nil || c.Val() == nil {
		c.Cmd.SetErr(err)
	}
}

// notRun is true when the server answered that it lacks the script. HasErrorPrefix
// allocates, so it is only asked about an error.
func (c *call) notRun() bool {
	return c.Err() != nil && redis.HasErrorPrefix(c.Err(), "NOSCRIPT")
}

// eval sends each call again with the script's text, which loads it and runs it in
// one step, so that a flush cannot come between. The calls share one pipeline, whose
// error it returns.
func (l *Limiter) eval(ctx context.Context, calls []*call) error {
	pipe := l.client.Pipeline()
	for _, c := range calls {
		c.args[0], c.args[1] = "eval", c.script.text
		c.command(ctx)
		_ = pipe.Process(ctx, c) // it only queues
	}
	_, err := pipe.Exec(ctx)
	return err
}

// result decodes the reply. sent is the error of the command or pipeline that
// carried the call, which a hook may have kept from the call itself.
func (c *call) result(sent error) (Result, error) {
	err := c.Err()
	if err == nil && c.Val() == nil {
		err = sent
	}
	if err != nil {
		return Result{}, typed(err)
	}
	return decode(c.Val())
}
