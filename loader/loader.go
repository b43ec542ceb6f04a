// Package loader loads the scripts into a Redis and calls them. Every script is
// pinned by its SHA1, every limit is checked before anything is sent, and a call
// that may have been counted is never sent again.
//
// Use Allow to answer at once, Wait to sleep until there is a unit, and Reserve when several
// limits have to agree or the cost is known only afterwards. AllowN asks for several units,
// AllowAtMost for as many of them as there are, Peek for none, and AllowEach makes several
// calls in one round trip.
//
// go-redis also logs each connection that it could not make, to standard error by default
// and for the whole process; Disable of its package logging silences that. It dials
// Options.DialerRetries times, by default 5 in 0.4 s, before it says why. So the error of a
// call with a shorter deadline does not tell the cause, unless DialerRetries is 1.
package loader

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limiter calls the scripts through one client. It may be used by many goroutines
// at once. Its zero value answers every call with an error.
type Limiter struct {
	client               redis.UniversalClient
	prefix               string
	clock                func() time.Time // nil: the server's
	gcra, window, limits *asset
	patience             patience
	spread               bool        // the client is a cluster's or a ring's, of several servers
	hasSlots             atomic.Bool // the client is a cluster's, and has told a master
	results              sync.Pool   // channels for the next call; of another limiter they may be of another bubble of testing/synctest
}

// clusterClient and ringClient are what is used of the two beside what all clients have;
// a wrapper may have it too.
type clusterClient interface {
	MasterForKey(ctx context.Context, key string) (*redis.Client, error)
}

type ringClient interface {
	GetShardClientForKey(key string) (*redis.Client, error)
}

// asset is a script with the argument that names it, which spares an allocation a call.
type asset struct {
	Script
	sha1 any
}

// An Option changes what New returns.
type Option func(*settings) error

type settings struct {
	prefix  string
	clock   func() time.Time
	scripts []string
}

// WithPrefix puts this before every key in place of "rl:". It may be empty, and has no
// '{' or '}', by which a cluster would choose the slot.
func WithPrefix(prefix string) Option {
	return func(s *settings) error {
		if strings.ContainsAny(prefix, "{}") {
			return errors.New("tatami: the prefix has a brace, by which a cluster chooses the slot")
		}
		s.prefix = prefix
		return nil
	}
}

// WithClock sends the time from now with each call, for tests, replays and callers with
// a better clock than the server's. Keys then live a minute longer than they need, so
// that clocks may differ by that much. A time outside of 1970 to 2262 is an ErrClock. The
// scripts end sooner, with ErrBadArg: a window in 2116, gcra_v1 in 2043, both GCRA by
// Burst times Interval before their last instant.
func WithClock(now func() time.Time) Option {
	return func(s *settings) error {
		if now == nil {
			return errors.New("tatami: the clock is nil")
		}
		s.clock = now
		return nil
	}
}

// WithScripts calls the named scripts, at most one of a kind, in place of the newest of
// their kind: WithScripts("gcra_v1") where other callers of the keys use it. Versions
// read each other's state, but callers of gcra_v1 and gcra_v2 on one key at the same time
// may be admitted up to Burst x (1 - interval / interval1) units more, rounded up, where
// interval1 is the interval rounded up to a multiple of 256 ns. So a key's callers switch
// together. Where callers Reserve they are of gcra_v2: gcra_v1 answers ErrBadState at a key
// on which units were given back.
func WithScripts(names ...string) Option {
	return func(s *settings) error {
		s.scripts = append(s.scripts, names...)
		return nil
	}
}

// New returns a limiter on the client, which may be any of go-redis's. It sends nothing,
// so a program starts while Redis is down: the servers get the scripts from the calls, or
// before them by Load. The error is that the client is nil or go-redis has not made
// it, an option is wrong, or the pins do not agree (ErrPin).
func New(client redis.UniversalClient, options ...Option) (*Limiter, error) {
	// A nil pointer of some client's type is an interface that is not nil.
	v := reflect.ValueOf(client)
	if client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("tatami: the client is nil")
	}
	// go-redis's zero clients panic; another's zero value may be of use.
	if v = reflect.Indirect(v); v.Type().PkgPath() == reflect.TypeFor[redis.Client]().PkgPath() && v.IsZero() {
		return nil, errors.New("tatami: the client was not made by go-redis")
	}
	s := settings{prefix: "rl:"}
	for _, option := range options {
		if option == nil {
			return nil, errors.New("tatami: an option is nil")
		}
		if err := option(&s); err != nil {
			return nil, err
		}
	}
	chosen, err := choose(s.scripts)
	if err != nil {
		return nil, err
	}
	_, cluster := client.(clusterClient)
	_, ring := client.(ringClient)
	assetOf := func(kind string) *asset { return &asset{chosen[kind], chosen[kind].SHA1} }
	return &Limiter{
		client: client, prefix: s.prefix, clock: s.clock,
		gcra: assetOf("gcra"), window: assetOf("window"), limits: assetOf("limits"),
		patience: patienceOf(client), spread: cluster || ring,
	}, nil
}

// Key is the Redis key of a limit at key: the prefix, the key in braces, then for a limit
// with a Name ':' and the Name, then for a window ':' and its period in nanoseconds, as
// in rl:{42}, rl:{42}:login and rl:{42}:login:60000000000. So all limits of one key share
// a cluster's slot, and windows of different periods no state. A key that has a '{' itself
// is not put in braces, and chooses its slot by it. So the keys 42 and {42} are one Redis
// key, and {42}:login without a Name is that of 42 with the Name login: who may choose his
// own key could spend another's units, so refuse a '{' in it. Key checks nothing.
func (l *Limiter) Key(key string, limit Limit) string {
	prefix, name, period := "", "", ""
	if l != nil {
		prefix = l.prefix
	}
	if limit.Name != "" {
		name = ":" + limit.Name
	}
	if limit.isWindow() {
		period = ":" + strconv.FormatInt(int64(limit.Period), 10)
	}
	if strings.Contains(key, "{") {
		return prefix + key + name + period
	}
	return prefix + "{" + key + "}" + name + period
}

// Allow asks for one unit of the limit at key. It is AllowN with a cost of 1.
func (l *Limiter) Allow(ctx context.Context, key string, limit Limit) (Result, error) {
	return l.AllowN(ctx, key, limit, 1)
}

// Peek asks for nothing: it tells what remains, writes nothing and also runs on a
// replica. It is AllowN with a cost of 0. Look at Remaining: Allowed is of no unit.
func (l *Limiter) Peek(ctx context.Context, key string, limit Limit) (Result, error) {
	return l.AllowN(ctx, key, limit, 0)
}

// AllowN asks for cost units at once, 0 to 2^52: all of them are spent or none.
//
// A call that surely did not run is sent again after the client's own back-off: one that
// could not connect, or that a server answered with LOADING, CLUSTERDOWN or TRYAGAIN. It
// is sent until the context's deadline, or without one as often as the client's
// MaxRetries says, a cluster client's MaxRedirects. Where that or the back-off is off, a
// deadline adds nothing. Any other call is sent once, but for a cost of 0, which go-redis
// may repeat.
//
// An error is ErrNotSpent or ErrMaybeSpent, and may say more: ErrLimit, ErrCost, ErrKey
// or ErrClock before anything is sent; ErrBadArg, ErrBadState, ErrReadOnly,
// ErrOutOfMemory, ErrReply; context.DeadlineExceeded or context.Canceled when the context
// ended the call, beside why it could not run before, such as syscall.ECONNREFUSED. A
// context's deadline bounds the call whatever the client's options are.
func (l *Limiter) AllowN(ctx context.Context, key string, limit Limit, cost int64) (Result, error) {
	c := &call{}
	if err := l.prepare(ctx, c, key, limit, cost); err != nil {
		return Result{}, err
	}
	l.send(ctx, c)
	return l.result(c, limit)
}
