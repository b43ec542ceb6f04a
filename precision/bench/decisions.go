package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

const traceCalls = 100_000

// decision is a call of the trace. Its cost is a share of what the limit gives at
// once, which is the burst or, in a window, the amount.
type decision struct {
	key   string
	limit limit
	part  part
}

type part int

const (
	one part = iota
	all
	allButOne
	some // two fifths
)

func (p part) of(full int64) int64 {
	switch p {
	case all:
		return full
	case allButOne:
		return max(full-1, 1)
	case some:
		return max(full*2/5, 1)
	default:
		return 1
	}
}

var (
	// Intervals that neither ns nor binary fractions of a second hold.
	slowLimits = []limit{{7, time.Minute, 7}, {13, 10 * time.Second, 13}, {17, 30 * time.Second, 17}, usual}
	// Always at their limit, so that what a rounded interval gains or loses adds up.
	fastLimits = []limit{{30_000, time.Second, 1000}, {7000, time.Second, 100}}
	// A time to live cut to whole seconds forgets these.
	longLimits = []limit{{1, 1900 * time.Millisecond, 1}, {3, 1900 * time.Millisecond, 2}}
)

// newTrace returns the trace, the same for all.
func newTrace(length int) []decision {
	random := rand.New(rand.NewPCG(1, 2))
	trace := make([]decision, 0, length)
	add := func(kind string, number int, l limit, parts ...part) {
		for _, p := range parts {
			trace = append(trace, decision{fmt.Sprintf("%s:%d", kind, number), l, p})
		}
	}
	for i := 0; len(trace) < length; i++ {
		// A new key, spent at once or nearly, and one unit more.
		add("slow", i, slowLimits[i%len(slowLimits)],
			[][]part{{all, one}, {allButOne, one, one}, {some, some, one, one, some}}[random.IntN(3)]...)
		for fast, l := range fastLimits {
			add("fast", fast, l, []part{some, one}[random.IntN(2)])
		}
		long := random.IntN(40)
		add("long", long, longLimits[long%len(longLimits)], one)
	}
	return trace[:length]
}

// decide fills in how many decisions of each candidate are wrong.
func decide(ctx context.Context, options redis.Options, rows []*row, done func()) error {
	trace := newTrace(traceCalls)
	var group errgroup.Group
	group.SetLimit(4) // they mostly wait
	for i, r := range rows {
		if !r.judged() {
			continue
		}
		group.Go(func() error {
			wrong, err := decideTrace(ctx, r.candidate, options, fmt.Sprintf("decide:%d:", i), trace)
			if err != nil {
				return err
			}
			r.Wrong = &wrong
			done()
			return nil
		})
	}
	return group.Wait()
}

// wrongs counts the decisions that are wrong: admissions too early, refusals too late.
type wrongs struct {
	Early int `json:"early"`
	Late  int `json:"late"`
}

// decideTrace makes the calls of the trace at keys with this prefix. The server's
// clock runs; a caller's clock takes steps of up to 100 us.
func decideTrace(ctx context.Context, c candidate, options redis.Options, prefix string, trace []decision) (wrongs, error) {
	var wrong wrongs
	plain := redis.NewClient(&options)
	defer plain.Close()
	between := &bracket{plain: plain}
	client := redis.NewClient(&options)
	defer client.Close()
	client.AddHook(between)

	now := time.Now()
	allow, err := c.open(ctx, client, func() time.Time { return now })
	if err != nil {
		return wrong, fmt.Errorf("%s: %w", c.label(), err)
	}
	origin, err := plain.Time(ctx).Result()
	if err != nil {
		return wrong, err
	}
	judge := newJudge(c.counts, min(origin.UnixNano(), now.UnixNano()))
	random := rand.New(rand.NewPCG(3, 4))
	for _, d := range trace {
		full := d.limit.amount
		if c.counts == gcra {
			full = d.limit.burst
		}
		cost := d.part.of(full)
		between.from = time.Time{}
		now = now.Add(time.Duration(random.IntN(100_000)))
		got, err := allow(ctx, prefix+d.key, d.limit, cost)
		if err != nil {
			return wrong, fmt.Errorf("%s: %d units of %v at %s: %w", c.label(), cost, d.limit, d.key, err)
		}
		from, to := between.from, between.to
		if c.clock == callerClock {
			from, to = now, now
		}
		if judge.call(d.key, d.limit, cost, from.UnixNano(), to.UnixNano(), got) {
			if got {
				wrong.Early++
			} else {
				wrong.Late++
			}
		}
	}
	return wrong, nil
}

// bracket is a hook that sends TIME before and after what a limiter sends, in the
// same pipeline.
type bracket struct {
	plain    *redis.Client
	from, to time.Time // from the first to the last since from was cleared
}

func (b *bracket) send(ctx context.Context, cmds ...redis.Cmder) {
	pipe := b.plain.Pipeline()
	from := pipe.Time(ctx)
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd) // it only queues
	}
	to := pipe.Time(ctx)
	_, err := pipe.Exec(ctx)
	if from.Err() != nil || to.Err() != nil {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return
	}
	if b.from.IsZero() {
		b.from = from.Val()
	}
	b.to = to.Val()
}

func (b *bracket) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *bracket) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b.send(ctx, cmd)
		return cmd.Err()
	}
}

func (b *bracket) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		b.send(ctx, cmds...)
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				return cmd.Err()
			}
		}
		return nil
	}
}
