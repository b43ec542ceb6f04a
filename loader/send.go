package loader

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how often and with which waits the client's options repeat a command, and
// how long they wait for a server.
type patience struct {
	retries    int
	minBackoff time.Duration
	maxBackoff time.Duration
	read       time.Duration // below 1: without end, or unknown
}

func patienceOf(client redis.UniversalClient) patience {
	switch client := client.(type) {
	case interface{ Options() *redis.Options }:
		o := client.Options()
		return patience{o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff, o.ReadTimeout}
	case interface{ Options() *redis.ClusterOptions }:
		o := client.Options() // its MaxRedirects counts all attempts
		return patience{o.MaxRedirects, o.MinRetryBackoff, o.MaxRetryBackoff, o.ReadTimeout}
	case interface {
		Options() *redis.RingOptions
		GetShardClients() []*redis.Client
	}:
		o, read := client.Options(), time.Duration(0)
		for _, shard := range client.GetShardClients() {
			read = max(read, shard.Options().ReadTimeout) // a ring leaves the default to them
		}
		return patience{o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff, read}
	}
	return patience{3, 10 * time.Millisecond, time.Second, 0} // go-redis's defaults
}

// lasts is true when a call that did not run may be sent again after so many retries. A
// deadline bounds them in place of MaxRetries, unless the options allow none, or no wait
// between them.
func (p patience) lasts(ctx context.Context, retries int) bool {
	_, bounded := ctx.Deadline()
	return retries < p.retries || bounded && p.retries > 0 && min(p.minBackoff, p.maxBackoff) > 0
}

// backoff is go-redis's: a random wait that doubles on average.
func (p patience) backoff(attempt int) time.Duration {
	if p.minBackoff < 1 {
		return 0
	}
	// 2^20 times the shortest wait is above any longest one in use.
	spread := p.minBackoff << min(attempt, 20)
	if spread < p.minBackoff {
		return p.maxBackoff
	}
	return min(p.minBackoff+rand.N(spread), p.maxBackoff)
}

// send makes one call, and sends it again while it surely did not run.
func (l *Limiter) send(ctx context.Context, c *call) {
	l.one(ctx, c, 0)
	if c.failed != nil {
		l.again(ctx, []*call{c}, 0)
	}
}

// sendEach makes the calls in one pipeline. Without a deadline it waits for the servers,
// their connections included, as long as the client does for one reply.
func (l *Limiter) sendEach(ctx context.Context, calls []*call) {
	l.attempt(ctx, calls, l.patience.read)
	l.again(ctx, calls, l.patience.read)
}

// again sends what has failed once more: with the script's text where a server lacks the
// script, and after a wait what did not run and may soon pass.
func (l *Limiter) again(ctx context.Context, calls []*call, wait time.Duration) {
	for retries := 0; ; {
		var next []*call
		paused := false
		for _, c := range calls {
			switch {
			case c.failed == nil:
			case c.lacksScript():
				c.byText()
				next = append(next, c)
			case c.failed.again && l.patience.lasts(ctx, retries):
				paused = true
				next = append(next, c)
			}
		}
		if len(next) == 0 {
			return
		}
		if paused {
			retries++
			if err := sleep(ctx, l.patience.backoff(retries)); err != nil {
				for _, c := range next {
					c.failed.ended = err
				}
				return
			}
		}
		l.attempt(ctx, next, wait)
		calls = next
	}
}

// lacksScript is true when the server answered that it has not the script of the call.
func (c *call) lacksScript() bool {
	return c.args[0] == "evalsha" && c.gaveUp == nil && redis.HasErrorPrefix(c.failed.cause, "NOSCRIPT")
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt sends each call once. A single one takes no pipeline: go-redis has other
// connections for those.
func (l *Limiter) attempt(ctx context.Context, calls []*call, wait time.Duration) {
	switch len(calls) {
	case 0:
	case 1:
		l.one(ctx, calls[0], wait)
	default:
		l.many(ctx, calls, wait)
	}
}

func (l *Limiter) one(ctx context.Context, c *call, wait time.Duration) {
	c.ready(ctx, false)
	c.client = l.client
	err, late := l.within(ctx, wait, c)
	if late {
		c.giveUp(err)
	}
	l.conclude(ctx, c, err, time.Now().Add(naming))
}

func (c *call) run(ctx context.Context) error {
	err := c.client.Process(ctx, c)
	_ = c.Err() // waits, when an auto pipeline has only queued the call
	return err
}

func (l *Limiter) many(ctx context.Context, calls []*call, wait time.Duration) {
	pipe := l.client.Pipeline()
	for _, c := range calls {
		c.ready(ctx, l.spread)
		_ = pipe.Process(ctx, c) // it only queues
	}
	err, late := l.within(ctx, wait, runFunc(func(ctx context.Context) error {
		_, err := pipe.Exec(ctx)
		return err
	}))
	then := time.Now().Add(naming) // of all together
	for _, c := range calls {
		if late {
			c.giveUp(err)
		}
		l.conclude(ctx, c, err, then)
	}
}

// runner is what within runs: an interface, since a closure for one call would be an
// allocation more.
type runner interface {
	run(ctx context.Context) error
}

type runFunc func(ctx context.Context) error

func (f runFunc) run(ctx context.Context) error { return f(ctx) }

// within runs r and waits for it until the context's deadline, or without one for wait
// when that is above 0: go-redis looks at a context only between its steps, and reads on
// past it unless ContextTimeoutEnabled is set. late is true when r was left to end by
// itself, at the latest by the client's own timeouts.
func (l *Limiter) within(ctx context.Context, wait time.Duration, r runner) (err error, late bool) {
	limited := ctx
	if _, bounded := ctx.Deadline(); !bounded {
		if wait < 1 {
			return r.run(ctx), false
		}
		with, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		limited = with
	}
	result, _ := l.results.Get().(chan error)
	if result == nil {
		result = make(chan error, 1)
	}
	inner := limited // which is set once, so it needs no allocation
	go func() { result <- r.run(inner) }()
	select {
	case err := <-result:
		l.results.Put(result)
		return err, false
	case <-limited.Done():
		return limited.Err(), true
	}
}
