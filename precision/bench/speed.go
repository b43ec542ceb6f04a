package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

const (
	speedRounds = 21
	slotCalls   = 400
	needed      = 2 * time.Second // a slot takes less
)

var depths = [...]int{1, 16, 100} // of a pipeline, in calls

// speed fills in the calls a second, the server's time and the bytes of each row. In
// each round every row has a short turn, beginning with another one each time; the
// medians of the rounds count. It returns the calls a second of Allow and AllowEach.
func speed(ctx context.Context, options redis.Options, rows []*row, done func()) (allow, each float64, err error) {
	type turn struct {
		make  func() (float64, error)
		into  *float64
		rates []float64
	}
	var turns []*turn
	add := func(into *float64, make func() (float64, error)) {
		turns = append(turns, &turn{make: make, into: into})
	}
	for _, r := range rows {
		s, err := newSession(ctx, r.candidate, options)
		if err != nil {
			return 0, 0, err
		}
		defer s.client.Close()
		if r.Bytes, err = s.bytes(ctx); err != nil {
			return 0, 0, err
		}
		for _, o := range r.outcomes() {
			add(&o.Server, func() (float64, error) { return s.serverTime(ctx, o.of) })
			for i, depth := range depths {
				if depth == 1 {
					add(&o.Rates[i], func() (float64, error) { return s.singly(ctx, o.of) })
				} else if s.command != nil {
					add(&o.Rates[i], func() (float64, error) { return s.pipelined(ctx, o.of, depth) })
				}
			}
		}
	}
	batch, err := newBatch(ctx, options)
	if err != nil {
		return 0, 0, err
	}
	defer batch.client.Close()
	add(&allow, func() (float64, error) { return batch.singly(ctx) })
	add(&each, func() (float64, error) { return batch.together(ctx) })

	for round := range speedRounds {
		for i := range turns {
			t := turns[(i+round*len(turns)/speedRounds)%len(turns)]
			if err := batch.client.FlushDB(ctx).Err(); err != nil {
				return 0, 0, err
			}
			rate, err := t.make()
			if err != nil {
				return 0, 0, err
			}
			t.rates = append(t.rates, rate)
		}
		done()
	}
	for _, t := range turns {
		*t.into = median(t.rates)
	}
	return allow, each, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}

// singly returns the calls a second of calls made one by one.
func (s *session) singly(ctx context.Context, of scenario) (float64, error) {
	call, err := s.call(ctx, of, needed)
	began := time.Now()
	for i := 0; i < slotCalls && err == nil; i++ {
		err = call()
	}
	return slotCalls / time.Since(began).Seconds(), err
}

// pipelined returns the calls a second of the same command in pipelines.
func (s *session) pipelined(ctx context.Context, of scenario, depth int) (float64, error) {
	key := ""
	if of == refused {
		var err error
		if key, err = s.exhaust(ctx, needed); err != nil {
			return 0, err
		}
	}
	calls := 0
	began := time.Now()
	for calls < slotCalls {
		pipe := s.client.Pipeline()
		for range depth {
			if of == fresh {
				key = s.newKey()
			}
			pipe.Do(ctx, s.command(key)...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, fmt.Errorf("%s: %w", s.label(), err)
		}
		calls += depth
	}
	return float64(calls) / time.Since(began).Seconds(), nil
}

// serverTime returns the microseconds a call that the server has spent on the
// commands which the limiter sent.
func (s *session) serverTime(ctx context.Context, of scenario) (float64, error) {
	call, err := s.call(ctx, of, needed)
	if err != nil {
		return 0, err
	}
	if err := s.client.ConfigResetStat(ctx).Err(); err != nil {
		return 0, err
	}
	sent := map[string]int{}
	s.counter.sent = sent
	for i := 0; i < slotCalls && err == nil; i++ {
		err = call()
	}
	s.counter.sent = nil
	if err != nil {
		return 0, err
	}
	microseconds := 0.0
	for name, times := range sent {
		stat, err := info(ctx, s.client, "commandstats", "cmdstat_"+name)
		if err != nil {
			return 0, err
		}
		// A command inside a script counts there already, and here too: so take the
		// mean a call, times the calls sent.
		_, mean, _ := strings.Cut(stat, "usec_per_call=")
		mean, _, _ = strings.Cut(mean, ",")
		each, err := strconv.ParseFloat(mean, 64)
		if err != nil {
			return 0, fmt.Errorf("INFO commandstats: %s: %w", stat, err)
		}
		microseconds += each * float64(times)
	}
	return microseconds / slotCalls, nil
}

// bytes returns the MEMORY USAGE of a short key, or 0 where a call leaves none.
func (s *session) bytes(ctx context.Context) (float64, error) {
	const key = "k"
	if err := s.expect(ctx, key, usual, 1, true); err != nil {
		return 0, err
	}
	n, err := s.client.MemoryUsage(ctx, s.redisKey(key)).Result()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return float64(n), err
}

// processOf returns the process id of a server.
func processOf(ctx context.Context, options redis.Options) (int, error) {
	client := redis.NewClient(&options)
	defer client.Close()
	pid, err := info(ctx, client, "server", "process_id")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(pid)
}

// info returns a field of a section of INFO.
func info(ctx context.Context, client *redis.Client, section, field string) (string, error) {
	text, err := client.Info(ctx, section).Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("INFO %s has no %s", section, field)
}

// counter is a hook that counts the commands sent, where it has a map for them.
type counter struct {
	sent map[string]int
}

func (c *counter) count(cmd redis.Cmder) {
	if c.sent != nil {
		c.sent[cmd.Name()]++
	}
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			c.count(cmd)
		}
		return next(ctx, cmds)
	}
}

// batch calls the loader on one connection, one by one and a hundred together.
type batch struct {
	client  *redis.Client
	limiter *loader.Limiter
	calls   []loader.Call
}

func newBatch(ctx context.Context, options redis.Options) (*batch, error) {
	b := &batch{client: redis.NewClient(&options), calls: make([]loader.Call, 100)}
	for i := range b.calls {
		b.calls[i] = loader.Call{Key: fmt.Sprintf("%016d", i), Cost: 1,
			Limit: loader.Limit{Amount: usual.amount, Period: usual.period, Burst: usual.burst}}
	}
	var err error
	b.limiter, err = loader.New(b.client)
	return b, err
}

func (b *batch) singly(ctx context.Context) (float64, error) {
	began := time.Now()
	for _, call := range b.calls {
		if _, err := b.limiter.AllowN(ctx, call.Key, call.Limit, call.Cost); err != nil {
			return 0, err
		}
	}
	return float64(len(b.calls)) / time.Since(began).Seconds(), nil
}

func (b *batch) together(ctx context.Context) (float64, error) {
	began := time.Now()
	outcomes := b.limiter.AllowEach(ctx, b.calls...)
	perSecond := float64(len(b.calls)) / time.Since(began).Seconds()
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			return 0, outcome.Err
		}
	}
	return perSecond, nil
}
