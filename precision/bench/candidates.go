package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/tatami-rate/tatami/loader"
)

// limit is the same for all: a window counts amount a period and has no burst.
type limit struct {
	amount int64
	period time.Duration
	burst  int64
}

// usual is the limit of all that is not about a certain limit.
var usual = limit{300, time.Minute, 60}

// allower decides whether cost units may be spent at a key.
type allower func(ctx context.Context, key string, l limit, cost int64) (bool, error)

// opener makes a limiter ready on a server; one that takes the caller's clock reads
// now at each call.
type opener func(ctx context.Context, client *redis.Client, now func() time.Time) (allower, error)

// Whose clock a limiter goes by.
const (
	noClock     = "-"
	serverClock = "server"
	callerClock = "caller"
)

// What a limiter counts, which says when its decision is right.
const (
	gcra          = "gcra"
	fixedWindow   = "fixed"       // starts at multiples of the period
	slidingWindow = "sliding"     // the same, and part of the last window
	firstWindow   = "first call"  // starts with the first call
	settled       = "settled"     // gcra, each call asks for a unit more and gives it back
	nothing       = "no decision" // a script that only sets a floor
)

// candidate is what is measured, with one of the clocks.
type candidate struct {
	name          string
	counts        string
	clock         string
	before, after string // what it puts around a key
	open          opener
}

// redisKey is the key in the server.
func (c candidate) redisKey(key string) string { return c.before + key + c.after }

// candidates are what is measured, in the order of the table.
var candidates = func() []candidate {
	all := []candidate{
		floor("return 1", noClock, 0, "return 1"),
		floor("TIME, GET, SET", serverClock, 1, `local time = redis.call('TIME')
redis.call('GET', KEYS[1])
redis.call('SET', KEYS[1], time[1] .. time[2] .. '000', 'PX', ARGV[1])
return {1, 59, 0, 200000000}`, "201"),
	}
	for _, clock := range []string{serverClock, callerClock} {
		all = append(all,
			asset("gcra_v1", loader.GCRA, clock),
			asset("gcra_v2", loader.GCRA, clock),
			asset("window_v1", loader.FixedWindow, clock),
			asset("window_v1", loader.SlidingWindow, clock),
		)
	}
	for _, asks := range []int{1, 2, 8} {
		all = append(all, several(asks))
	}
	return append(all,
		givenBack(),
		candidate{"redis_rate v10", gcra, serverClock, "rate:", "", openRedisRate},
		candidate{"throttled v2", gcra, serverClock, "", "", openThrottled},
		candidate{"ulule/limiter v3", firstWindow, serverClock, limiter.DefaultPrefix + ":", "", openUlule},
	)
}()

// judged tells whether its decisions can be held against exact integers, and whether it
// has other scenarios than a new key.
func (c candidate) judged() bool { return c.counts != nothing && c.counts != settled }

// label is the name with what the script's mode says.
func (c candidate) label() string {
	if c.counts == fixedWindow || c.counts == slidingWindow {
		return c.name + " " + c.counts
	}
	return c.name
}

// floor is a script that decides nothing, of no key or one.
func floor(name, clock string, keys int, text string, args ...any) candidate {
	open := func(ctx context.Context, client *redis.Client, _ func() time.Time) (allower, error) {
		sha, err := client.ScriptLoad(ctx, text).Result()
		return func(ctx context.Context, key string, _ limit, _ int64) (bool, error) {
			return true, client.EvalSha(ctx, sha, []string{key}[:keys], args...).Err()
		}, err
	}
	return candidate{name, nothing, clock, "", "", open}
}

// asset is one of the scripts, through the loader.
func asset(name string, algorithm loader.Algorithm, clock string) candidate {
	c := candidate{name, gcra, clock, "rl:{", "}", nil}
	switch algorithm {
	case loader.FixedWindow:
		c.counts = fixedWindow
	case loader.SlidingWindow:
		c.counts = slidingWindow
	}
	if c.counts != gcra {
		// The loader puts the period behind a window's key. Without its prefix, and with a
		// brace that keeps it from adding a pair, the key can still be as short as others.
		c.before, c.after = "{", ":60000000000"
	}
	c.open = func(_ context.Context, client *redis.Client, now func() time.Time) (allower, error) {
		options := []loader.Option{loader.WithScripts(name)}
		if clock == callerClock {
			options = append(options, loader.WithClock(now))
		}
		if c.counts != gcra {
			options = append(options, loader.WithPrefix(""))
		}
		limiter, err := loader.New(client, options...)
		return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
			limit := loader.Limit{Amount: l.amount, Period: l.period, Algorithm: algorithm}
			if c.counts == gcra {
				limit.Burst = l.burst
			} else {
				key = "{" + key
			}
			result, err := limiter.AllowN(ctx, key, limit, cost)
			return result.Allowed, err
		}, err
	}
	return c
}

// several is limits_v1 with so many asks of one limit, through the loader. A key is that of
// the session with a digit before it, and so as long as the others'.
func several(n int) candidate {
	return candidate{fmt.Sprintf("limits_v1, asks: %d", n), gcra, serverClock, "{0", "}",
		func(_ context.Context, client *redis.Client, _ func() time.Time) (allower, error) {
			limiter, err := loader.New(client, loader.WithPrefix(""))
			return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
				asks := make([]loader.Ask, n)
				for i := range asks {
					asks[i] = ask(strconv.Itoa(i)+key, l, cost)
				}
				reservation, err := limiter.Reserve(ctx, asks...)
				return reservation.OK, err
			}, err
		}}
}

// givenBack is limits_v1 with one ask, of a unit more than is used, and its settlement.
func givenBack() candidate {
	return candidate{"limits_v1, ask and give-back", settled, serverClock, "{", "}",
		func(_ context.Context, client *redis.Client, _ func() time.Time) (allower, error) {
			limiter, err := loader.New(client, loader.WithPrefix(""))
			return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
				reservation, err := limiter.Reserve(ctx, ask(key, l, cost+1))
				if err == nil && reservation.OK {
					err = reservation.Settle(ctx, cost)
				}
				return reservation.OK, err
			}, err
		}}
}

// ask is one whose Redis key is the key, in the braces that the loader adds but for a brace.
func ask(key string, l limit, cost int64) loader.Ask {
	return loader.Ask{Key: key, Limit: loader.Limit{Amount: l.amount, Period: l.period, Burst: l.burst}, Cost: cost}
}

func openRedisRate(_ context.Context, client *redis.Client, _ func() time.Time) (allower, error) {
	limiter := redis_rate.NewLimiter(client)
	return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
		limit := redis_rate.Limit{Rate: int(l.amount), Period: l.period, Burst: int(l.burst)}
		result, err := limiter.AllowN(ctx, key, limit, int(cost))
		return err == nil && result.Allowed > 0, err
	}, nil
}

func openThrottled(_ context.Context, client *redis.Client, _ func() time.Time) (allower, error) {
	store, err := goredisstore.NewCtx(client, "")
	limiters := map[limit]*throttled.GCRARateLimiterCtx{} // it is made once a limit
	return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
		limiter := limiters[l]
		if limiter == nil {
			limiter, err = throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
				MaxRate: throttled.PerDuration(int(l.amount), l.period), MaxBurst: int(l.burst) - 1})
			if err != nil {
				return false, err
			}
			limiters[l] = limiter
		}
		limited, _, err := limiter.RateLimitCtx(ctx, key, int(cost))
		return !limited, err
	}, err
}

func openUlule(_ context.Context, client *redis.Client, _ func() time.Time) (allower, error) {
	store, err := ulule.NewStore(client)
	return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
		result, err := store.Increment(ctx, key, cost, limiter.Rate{Period: l.period, Limit: l.amount})
		return !result.Reached, err
	}, err
}

// commandOf returns what makes the one command that a limiter sends for a unit of
// the limit at a key, or nil for a limiter that sends more than one.
func commandOf(ctx context.Context, client *redis.Client, open opener, now func() time.Time, l limit) (func(key string) []any, error) {
	tapped := redis.NewClient(client.Options())
	defer tapped.Close()
	t := &tap{}
	tapped.AddHook(t)
	allow, err := open(ctx, tapped, now)
	if err != nil {
		return nil, err
	}
	t.armed = true
	const mark = "the key"
	if _, err := allow(ctx, mark, l, 1); !errors.Is(err, errTapped) {
		return nil, fmt.Errorf("a command got past the tap: %v", err)
	}
	if t.pipelined || len(t.commands) != 1 {
		return nil, nil
	}
	command := t.commands[0]
	return func(key string) []any {
		made := slices.Clone(command)
		for at := range made {
			if text, ok := made[at].(string); ok {
				made[at] = strings.Replace(text, mark, key, 1)
			}
		}
		return made
	}, nil
}

var errTapped = errors.New("the command was noted and not sent")

// tap is a hook that, once armed, notes the commands instead of sending them.
type tap struct {
	armed, pipelined bool
	commands         [][]any
}

func (t *tap) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !t.armed {
			return next(ctx, cmd)
		}
		t.commands = append(t.commands, slices.Clone(cmd.Args()))
		cmd.SetErr(errTapped)
		return errTapped
	}
}

func (t *tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if !t.armed {
			return next(ctx, cmds)
		}
		t.pipelined = true
		for _, cmd := range cmds {
			cmd.SetErr(errTapped)
		}
		return errTapped
	}
}
