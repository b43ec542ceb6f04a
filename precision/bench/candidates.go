package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/lua"
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
	nothing       = "no decision" // a script that only sets a floor
)

// candidate is what is measured, with one of the clocks.
type candidate struct {
	name   string
	counts string
	clock  string
	prefix string // what it puts before a key
	open   opener
}

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
			asset("window_v2", loader.FixedWindow, clock),
			asset("window_v2", loader.SlidingWindow, clock),
		)
	}
	return append(all,
		candidate{"redis_rate v10", gcra, serverClock, "rate:", openRedisRate},
		candidate{"throttled v2", gcra, serverClock, "", openThrottled},
		candidate{"ulule/limiter v3", firstWindow, serverClock, limiter.DefaultPrefix + ":", openUlule},
	)
}()

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
	return candidate{name, nothing, clock, "", open}
}

// asset is one of the scripts: through the loader where it is what the loader calls
// for the algorithm, else through EVALSHA.
func asset(name string, algorithm loader.Algorithm, clock string) candidate {
	counts := map[loader.Algorithm]string{loader.GCRA: gcra,
		loader.FixedWindow: fixedWindow, loader.SlidingWindow: slidingWindow}[algorithm]
	throughLoader := func(ctx context.Context, client *redis.Client, now func() time.Time) (allower, error) {
		var options []loader.Option
		if clock == callerClock {
			options = append(options, loader.WithClock(now))
		}
		limiter, err := loader.New(client, options...)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
			limit := loader.Limit{Amount: l.amount, Period: l.period, Algorithm: algorithm}
			if counts == gcra {
				limit.Burst = l.burst
			}
			result, err := limiter.AllowN(ctx, key, limit, cost)
			return result.Allowed, err
		}, nil
	}
	open := func(ctx context.Context, client *redis.Client, now func() time.Time) (allower, error) {
		sha, err := client.ScriptLoad(ctx, lua.Assets[name]).Result()
		if err != nil {
			return nil, err
		}
		command, err := commandOf(ctx, client, throughLoader, now, usual)
		if err != nil {
			return nil, err
		}
		if command("")[1] == sha {
			return throughLoader(ctx, client, now)
		}
		return func(ctx context.Context, key string, l limit, cost int64) (bool, error) {
			args := []any{l.amount, int64(l.period), l.burst, cost}
			if counts != gcra {
				args[2] = counts
			}
			if clock == callerClock {
				args = append(args, now().UnixNano())
			}
			reply, err := client.EvalSha(ctx, sha, []string{key}, args...).Int64Slice()
			return err == nil && reply[0] == 1, err
		}, nil
	}
	return candidate{name, counts, clock, "", open}
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
	at := slices.IndexFunc(command, func(arg any) bool {
		text, ok := arg.(string)
		return ok && strings.Contains(text, mark)
	})
	return func(key string) []any {
		made := slices.Clone(command)
		if at >= 0 {
			made[at] = strings.Replace(made[at].(string), mark, key, 1)
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
