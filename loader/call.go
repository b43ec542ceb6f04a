package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// call is one EVALSHA or EVAL, and what became of it. go-redis calls NoRetry, SetErr and,
// through an argument, MarshalBinary, from other goroutines too.
type call struct {
	*redis.Cmd
	client redis.UniversalClient
	script *asset   // nil for an EVAL
	key    string   // the Redis key, which chooses the server
	asks   []int    // of limits_v1: the indices of the asks that the keys are of
	others []string // the Redis keys after it
	count  []byte   // how many keys there are
	period time.Duration
	args   []any
	own    [9]any // where the arguments of one key stand, which spares an allocation
	free   bool   // it writes nothing, so it may be repeated
	piped  bool   // it is in a pipeline to several servers

	mu       sync.Mutex
	written  bool  // its bytes were asked for, and no server has refused them since
	broken   bool  // its reply was lost: an error reply after that is another command's, ASKING's
	answered bool  // a reply was read
	given    any   // the reply, when piped, so that it is there if another server hangs
	refused  error // a server's error reply
	lost     error // what go-redis said after the reply
	moved    string
	gaveUp   error // the context's end, before go-redis came back

	reply  any      // the outcome: this
	failed *failure // or that

	earlier error // why an attempt before this one did not run
}

var (
	errNilContext = errors.New("the context is nil")
	errNoLimiter  = errors.New("the limiter was not made by New")
	errNoReply    = errors.New("go-redis gave neither a reply nor an error")
	errNil        = errors.New("nil, want integers")
	errSlow       = errors.New("no answer within the client's ReadTimeout")
)

// usable refuses what would panic later.
func (l *Limiter) usable(ctx context.Context) error {
	if l == nil || l.client == nil {
		return &failure{spent: ErrNotSpent, cause: errNoLimiter}
	}
	if ctx == nil {
		return &failure{spent: ErrNotSpent, cause: errNilContext}
	}
	if err := ctx.Err(); err != nil {
		return &failure{spent: ErrNotSpent, cause: err}
	}
	return nil
}

// check refuses a limit, a key and a cost that calls do not take.
func check(key string, limit Limit, cost int64) error {
	if err := limit.Validate(); err != nil {
		return err
	}
	if key == "" {
		return refuse(ErrKey, "the key is empty")
	}
	if cost < 0 || cost > maxCost {
		return refuse(ErrCost, fmt.Sprintf("%v: cost %d is outside 0 .. %d", limit, cost, int64(maxCost)))
	}
	return nil
}

// prepare checks the arguments and makes c the EVALSHA for them.
func (l *Limiter) prepare(ctx context.Context, c *call, key string, limit Limit, cost int64) error {
	if err := l.usable(ctx); err != nil {
		return err
	}
	if err := check(key, limit, cost); err != nil {
		return err
	}
	c.script, c.free, c.count, c.args = l.gcra, cost == 0, oneKey, c.own[:8]
	c.args[4] = limit.Amount
	switch {
	case limit.Algorithm == FixedWindow:
		c.script, c.args[6] = l.window, "fixed"
	case limit.Algorithm == SlidingWindow:
		c.script, c.args[6] = l.window, "sliding"
	case limit.Burst == 0:
		c.args[6] = c.args[4] // the amount, without another allocation
	default:
		c.args[6] = limit.Burst
	}
	c.key = l.Key(key, limit)
	c.args[0], c.args[1], c.args[2], c.args[3] = "evalsha", c.script.sha1, (*numKeys)(c), c.key
	c.period = limit.Period
	c.args[5], c.args[7] = &c.period, cost // a pointer spares an allocation; it is sent in nanoseconds
	if l.clock != nil {
		now, err := l.nowNS()
		if err != nil {
			return err
		}
		c.args = append(c.args, now)
	}
	return nil
}

// nowNS is the caller's clock.
func (l *Limiter) nowNS() (int64, error) {
	now := l.clock()
	if now.Before(time.Unix(0, 0)) || now.After(time.Unix(0, 1<<63-1)) {
		return 0, refuse(ErrClock, fmt.Sprintf("%v is outside 1970 .. 2262", now))
	}
	return now.UnixNano(), nil
}

// keys are the Redis keys.
func (c *call) keys() []string { return append([]string{c.key}, c.others...) }

// ready makes c a new command of its arguments.
func (c *call) ready(ctx context.Context, piped bool) {
	c.Cmd = redis.NewCmd(ctx, c.args...)
	c.SetFirstKeyPos(3) // by which a cluster client finds the slot, a ring the shard
	c.piped = piped
	c.written, c.broken, c.answered = false, false, false
	c.given, c.refused, c.lost, c.failed = nil, nil, nil, nil
}

// byText makes c send the script's text, which loads it and runs it in one step, so that a
// flush cannot come between.
func (c *call) byText() { c.args[0], c.args[1] = "eval", c.script.text }

// NoRetry keeps go-redis, whose MaxRetries is 3 by default, from sending the call
// again after a lost reply: it may have been counted. One that costs nothing writes
// nothing and may be repeated.
func (c *call) NoRetry() bool { return !c.free }

// numKeys is the argument that says how many keys follow. go-redis asks for its bytes when
// it writes the command, which is the one sign of whether anything was sent: a server runs
// nothing that it has not got to the end. (An auto pipeline asks for them before, so there
// a call may seem to have been sent.) It is a call, so that it needs no allocation.
type numKeys call

var (
	oneKey = []byte("1")
	noKeys = []byte("given up") // which EVAL and EVALSHA refuse before they run anything
)

// MarshalBinary is never an error: that would fail other commands of the pipeline.
func (k *numKeys) MarshalBinary() ([]byte, error) {
	c := (*call)(k)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gaveUp != nil && !c.written {
		return noKeys, nil
	}
	c.written, c.broken, c.refused = true, false, nil
	return c.count, nil
}

// String is for hooks that print commands.
func (k *numKeys) String() string { return string(k.count) }

// SetErr keeps a reply that is there: go-redis puts a lost connection's error on every
// call of a pipeline, also on those whose reply came before. It must not wait: on an auto
// pipeline Err and Val wait for the batch, which waits for SetErr. A cluster's and a
// ring's own pipelines have no such batch.
func (c *call) SetErr(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.answered = true
		if c.piped {
			c.given = c.Val()
		}
	} else if c.answered || c.broken && errors.As(err, new(redis.Error)) {
		c.lost = err
		return
	} else {
		c.note(err)
	}
	c.Cmd.SetErr(err)
}

// note remembers what a server said, and where it sends the call next.
func (c *call) note(err error) {
	var answer redis.Error
	if !errors.As(err, &answer) {
		c.broken = c.written
		return
	}
	c.refused = err
	if _, ok := known(answer); ok {
		c.written = false
	}
	if addr, ok := redis.IsMovedError(err); ok {
		c.moved = addr
	} else if addr, ok := redis.IsAskError(err); ok {
		c.moved = addr
	}
}

// giveUp ends the wait for the call. What was not sent by now never is.
func (c *call) giveUp(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaveUp = err
}

// outcome is the reply, or the error that came in its place. sent is the error of the
// command or pipeline that carried the call, which a hook may have kept from the call
// itself.
func (c *call) outcome(sent error) (any, error) {
	if c.gaveUp == nil {
		err, val := c.Err(), c.Val()
		if err == nil && val == nil {
			err = cmp.Or(c.lost, sent, errNoReply)
		}
		return val, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given != nil {
		return c.given, nil
	}
	if c.refused != nil {
		return nil, c.refused
	}
	return nil, c.gaveUp
}

// conclude keeps what came of one attempt. ctx is the caller's; the server's name is looked
// for until then.
func (l *Limiter) conclude(ctx context.Context, c *call, sent error, then time.Time) {
	reply, err := c.outcome(sent)
	if err == nil {
		c.reply = reply
		return
	}
	c.failed = l.judge(ctx, c, err, then)
}

// judge says what an error means for the call. It looks for the server's name until then.
func (l *Limiter) judge(ctx context.Context, c *call, err error, then time.Time) *failure {
	c.mu.Lock()
	written, moved := c.written, c.moved
	c.mu.Unlock()
	f := &failure{spent: ErrMaybeSpent, cause: err, keys: c.keys(), asks: c.asks}
	if c.free || !written || isUnsent(err) {
		f.spent = ErrNotSpent
	}
	var answer redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		f.kind, f.cause = ErrReply, errNil
	case errors.As(err, &answer):
		if what, ok := known(answer); ok {
			f.spent, f.kind, f.again = ErrNotSpent, what.kind, what.again
		}
	default:
		f.ended = ended(ctx)
		_, bounded := ctx.Deadline()
		// Without a deadline a host that does not answer is not waited for again.
		f.again = isDial(err) && f.ended == nil && (bounded || !isTimeout(err))
		if f.ended == nil && !isDial(err) && errors.Is(err, context.DeadlineExceeded) {
			f.cause = errSlow
		}
		if c.earlier != nil && !written && !isDial(err) {
			f.cause = c.earlier // which says more than that time ran out
		}
		if cluster, ok := l.client.(interface{ ReloadState(context.Context) }); ok && (written || isDial(err)) {
			cluster.ReloadState(ctx) // its master may have been replaced; this only starts it
		}
	}
	if f.again {
		c.earlier = f.cause
	}
	if f.again && c.gaveUp != nil { // go-redis still has it
		f.again, f.ended = false, ended(ctx)
	}
	f.server = l.serverOf(c.key, moved, err, then)
	return f
}

// ended is the context's error, also in the moment in which its deadline has passed and
// its timer has not run.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// naming is how long an attempt may look for the names of its servers.
const naming = 10 * time.Millisecond

// serverOf is the address of the server that an error came from, or empty. It looks in
// what the client remembers, and until then.
func (l *Limiter) serverOf(key, moved string, err error, then time.Time) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Addr != nil {
		return op.Addr.String()
	}
	_, isMoved := redis.IsMovedError(err)
	if moved != "" && !isMoved {
		return moved
	}
	var node *redis.Client
	switch client := l.client.(type) {
	case clusterClient:
		node = l.masterOf(client, key, then)
	case ringClient:
		node, _ = client.GetShardClientForKey(key)
	case interface{ Options() *redis.Options }:
		return addressOf(client.Options())
	}
	if node == nil {
		return ""
	}
	return addressOf(node.Options())
}

// masterOf is the key's master in a cluster, or nil when the client cannot tell by then. A
// client that has read no slots yet begins to read them, and a ClusterSlots function, such
// as a failover cluster client's, may look at no context: so it is waited for from outside,
// until the client has once told a master. It forgets no slots after that.
func (l *Limiter) masterOf(client clusterClient, key string, then time.Time) *redis.Client {
	if l.hasSlots.Load() {
		node, _ := client.MasterForKey(over, key)
		return node
	}
	left := time.Until(then)
	if left <= 0 {
		return nil
	}
	told := make(chan *redis.Client, 1)
	go func() {
		node, err := client.MasterForKey(over, key)
		if err == nil {
			l.hasSlots.Store(true)
		}
		told <- node
	}()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case node := <-told:
		return node
	case <-timer.C:
		return nil
	}
}

// addressOf is empty where go-redis has a name in place of an address: a failover client
// does not tell which master it uses.
func addressOf(options *redis.Options) string {
	if options.Addr == "FailoverClient" {
		return ""
	}
	return options.Addr
}

// result decodes the reply.
func (l *Limiter) result(c *call, limit Limit) (Result, error) {
	if c.failed != nil {
		return Result{}, c.failed
	}
	result, err := decode(c.reply)
	if err != nil {
		return Result{}, l.unexpected(c, err)
	}
	result.Limit, result.Key = limit, c.key
	return result, nil
}

// unexpected is the error of a reply that no script makes.
func (l *Limiter) unexpected(c *call, err error) error {
	f := &failure{spent: ErrMaybeSpent, cause: err, keys: c.keys(), asks: c.asks, server: l.serverOf(c.key, c.moved, err, time.Now().Add(naming))}
	if c.free {
		f.spent = ErrNotSpent
	}
	return f
}
