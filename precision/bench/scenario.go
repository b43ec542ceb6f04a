package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/tatami-rate/tatami/precision/servers"
)

// scenario is what the calls of a measure meet.
type scenario string

const (
	fresh   scenario = "new key"           // each call another one: admitted
	busy    scenario = "busy key"          // one key with much room: admitted
	slow    scenario = "busy, 10 a minute" // the same, at less than one a second
	refused scenario = "refused"           // one key with nothing left
)

// scenarios are those in which the instructions of a candidate are counted. A window's
// busy key has the same period and expiry at any amount.
func (c candidate) scenarios() []scenario {
	switch c.counts {
	case nothing:
		return []scenario{fresh, busy}
	case settled:
		return []scenario{fresh}
	case gcra:
		return []scenario{fresh, busy, slow, refused}
	default:
		return []scenario{fresh, busy, refused}
	}
}

const roomy = 60_000 // units; the busy key has room for so many calls

// session is a limiter on one connection of its own, making calls.
type session struct {
	candidate
	client  *redis.Client
	allow   allower
	command func(key string) []any // of the usual limit; nil where one call is no single command
	counter *counter
	keys    int
}

// connecting returns the options of clients of a server: with one connection, on which
// nothing is sent twice.
func connecting(server *servers.Server) (redis.Options, error) {
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		return redis.Options{}, err
	}
	options.PoolSize, options.PipelinePoolSize = 1, -1 // the one connection is for pipelines too
	options.MaxRetries, options.ReadTimeout = -1, time.Minute
	// Clients made of another's options may not register for notifications again.
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return *options, nil
}

// newSession opens the candidate on the server with these options.
func newSession(ctx context.Context, c candidate, options redis.Options) (*session, error) {
	s := &session{candidate: c, client: redis.NewClient(&options), counter: &counter{}}
	s.client.AddHook(s.counter)
	err := s.client.FlushDB(ctx).Err() // of keys of the same names
	if err == nil {
		s.allow, err = c.open(ctx, s.client, time.Now)
	}
	if err == nil && c.counts != settled { // which is two
		s.command, err = commandOf(ctx, s.client, c.open, time.Now, usual)
	}
	if err == nil {
		// Some load their script with the first call.
		err = s.expect(ctx, s.newKey(), usual, 1, true)
	}
	if err != nil {
		_ = s.client.Close()
		return nil, fmt.Errorf("%s: %w", c.label(), err)
	}
	return s, nil
}

// newKey returns a new key that is 16 bytes long with what the limiter puts around it.
func (s *session) newKey() string {
	s.keys++
	number := strconv.FormatInt(int64(s.keys), 36) // for windows 46656 of them, which do
	return strings.Repeat("0", 16-len(s.redisKey(number))) + number
}

// expect makes a call, which has to come out so.
func (s *session) expect(ctx context.Context, key string, l limit, cost int64, admitted bool) error {
	got, err := s.allow(ctx, key, l, cost)
	if err != nil {
		return fmt.Errorf("%s: %w", s.label(), err)
	}
	if got != admitted {
		return fmt.Errorf("%s: %d units of %v: admitted is %v, want %v", s.label(), cost, l, got, admitted)
	}
	return nil
}

// call returns what makes one call of the scenario. What the key has to be before is
// done already; need bounds how long the calls will take.
func (s *session) call(ctx context.Context, of scenario, need time.Duration) (func() error, error) {
	switch of {
	case fresh:
		return func() error { return s.expect(ctx, s.newKey(), usual, 1, true) }, nil
	case busy, slow:
		l, key := limit{usual.amount, usual.period, roomy}, s.newKey()
		if of == slow {
			l.amount = 10
		}
		if s.counts != gcra {
			l.amount = roomy
		}
		return func() error { return s.expect(ctx, key, l, 1, true) }, s.expect(ctx, key, l, 1, true)
	default:
		key, err := s.exhaust(ctx, need)
		return func() error { return s.expect(ctx, key, usual, 1, false) }, err
	}
}

// exhaust returns a new key that refuses the usual limit for the time that is needed.
func (s *session) exhaust(ctx context.Context, need time.Duration) (string, error) {
	key := s.newKey()
	if s.counts == gcra {
		// A slower limit leaves the same key hours of debt.
		return key, s.expect(ctx, key, limit{1, time.Hour, usual.burst}, usual.burst, true)
	}
	if s.counts != firstWindow {
		// The window must not end meanwhile.
		if left := usual.period - time.Duration(time.Now().UnixNano())%usual.period; left < need {
			time.Sleep(left)
		}
	}
	return key, s.expect(ctx, key, usual, usual.amount, true)
}
