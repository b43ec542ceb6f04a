// Package loader loads the scripts into a Redis and calls them. Every script is
// pinned by its SHA1, every limit is checked before anything is sent, and a call
// that may have been counted is never sent again.
package loader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrCost means that a cost is negative or above 2^52; nothing was sent.
	ErrCost = errors.New("bad cost")
	// ErrClock means that the caller's clock is before 1970 or past 2262, where its
	// nanoseconds leave an int64; nothing was sent.
	ErrClock = errors.New("bad clock")
)

// Limiter calls the scripts through one client. It may be used by many goroutines
// at once.
type Limiter struct {
	client       redis.UniversalClient
	gcra, window *Script
	clock        func() time.Time // nil: the server's
}

// New checks the pins, loads the scripts of both versions on every master that the
// client knows, and holds the servers' SHA1s against the pins; a difference is an
// ErrPin. A nil client is an error too, and so is a server that cannot be reached; but
// of a cluster's masters it is enough that one can be, so that a program starts while
// another is down, starts, or is busy. A master that is added, restarted, flushed or
// back again gets the scripts from the calls themselves. The limiter calls gcra_v2 and
// window_v2.
func New(ctx context.Context, client redis.UniversalClient) (*Limiter, error) {
	scripts, err := Scripts()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	loaded := 0
	var refused error // by a server that was reached, and is neither starting nor busy
	err = forEachMaster(ctx, client, func(ctx context.Context, _ string, server redis.Cmdable) error {
		err := load(ctx, server, scripts)
		mu.Lock()
		defer mu.Unlock()
		var answer redis.Error
		switch {
		case err == nil:
			loaded++
		case redis.HasErrorPrefix(err, "LOADING"), redis.HasErrorPrefix(err, "BUSY"):
		case errors.Is(err, ErrPin), errors.As(err, &answer):
			refused = err
		}
		return err
	})
	if refused != nil {
		return nil, refused
	}
	if err != nil && (loaded == 0 || ctx.Err() != nil) {
		return nil, err
	}
	return &Limiter{client: client, gcra: &gcraV2, window: &windowV2}, nil
}

// load loads the scripts into one server.
func load(ctx context.Context, server redis.Cmdable, scripts []Script) error {
	for _, script := range scripts {
		sha1, err := server.ScriptLoad(ctx, script.text).Result()
		if err != nil {
			return fmt.Errorf("load %s: %w", script.Name, err)
		}
		if sha1 != script.SHA1 {
			return fmt.Errorf("%w: %s is pinned as %s, the server answers %s",
				ErrPin, script.Name, script.SHA1, sha1)
		}
	}
	return nil
}

// WithClock returns a limiter on the same client that sends the time from now with
// each call, for tests, replays and callers with a better clock than the server's.
// Keys then live a minute longer than they need, so that clocks may differ by that
// much. The scripts bound the time further, and answer ErrBadArg.
func (l *Limiter) WithClock(now func() time.Time) *Limiter {
	clocked := *l
	clocked.clock = now
	return &clocked
}

// WithV1 returns a limiter on the same client, and with the same clock, that calls
// gcra_v1 and window_v1. Use it where callers of version 1 share the keys: both
// versions read each other's state, but callers of both on one key at the same time
// may be admitted up to Burst x (1 - interval / interval1) units more by GCRA, rounded
// up, where interval1 is the interval rounded up to a multiple of 256 ns; and a window
// that window_v1 resets is reset for all. So a key's callers switch together.
func (l *Limiter) WithV1() *Limiter {
	v1 := *l
	v1.gcra, v1.window = &gcraV1, &windowV1
	return &v1
}

// Allow asks for one unit of the limit at key.
func (l *Limiter) Allow(ctx context.Context, key string, limit Limit) (Result, error) {
	return l.AllowN(ctx, key, limit, 1)
}

// Peek asks for nothing: it tells what remains, writes nothing and also runs on a
// replica. Allowed says that nothing may be had for nothing, so look at Remaining.
func (l *Limiter) Peek(ctx context.Context, key string, limit Limit) (Result, error) {
	return l.AllowN(ctx, key, limit, 0)
}

// AllowN asks for cost units at once, 0 to 2^52: all of them are spent or none.
//
// The error is an ErrLimit, ErrCost or ErrClock before anything is sent; an
// ErrBadArg, ErrBadState, ErrReadOnly or ErrOutOfMemory when nothing was spent; an
// ErrReply; or the client's own. After a network error the units may have been
// spent: the reply was lost, and the call is not sent again. Nor is one that a server
// answered with LOADING or CLUSTERDOWN, which go-redis sends again for other commands:
// nothing was spent then.
func (l *Limiter) AllowN(ctx context.Context, key string, limit Limit, cost int64) (Result, error) {
	c := &call{}
	if err := l.prepare(ctx, c, key, limit, cost); err != nil {
		return Result{}, err
	}
	err := l.client.Process(ctx, c)
	if c.notRun() {
		err = l.eval(ctx, []*call{c})
	}
	return c.result(err)
}

// Reset forgets the key, whatever it holds. Like a call it is sent once: a second DEL
// would also forget what was spent in between.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	if err := l.client.Process(ctx, once{redis.NewIntCmd(ctx, "del", key)}); err != nil {
		return typed(err)
	}
	return nil
}

// once is a command that go-redis does not send again.
type once struct{ *redis.IntCmd }

func (once) NoRetry() bool { return true }
