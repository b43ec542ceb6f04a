package loader_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/loader"
)

// What a stuckConn does.
const (
	flows       = iota
	losesReads  // what the server answers never comes
	blocksWrite // what the client writes goes nowhere
)

// stuckConn is a connection to a server that runs what it is sent, without deadlines, or
// beside it one to nobody, whose reads and writes wait for theirs.
type stuckConn struct {
	net.Conn
	nobody net.Conn
	does   *atomic.Int32
}

func (c *stuckConn) Read(b []byte) (int, error) {
	if c.does.Load() == losesReads {
		return c.nobody.Read(b)
	}
	return c.Conn.Read(b)
}

func (c *stuckConn) Write(b []byte) (int, error) {
	if c.does.Load() == blocksWrite {
		return c.nobody.Write(b)
	}
	return c.Conn.Write(b)
}

func (c *stuckConn) SetDeadline(at time.Time) error      { return c.nobody.SetDeadline(at) }
func (c *stuckConn) SetReadDeadline(at time.Time) error  { return c.nobody.SetReadDeadline(at) }
func (c *stuckConn) SetWriteDeadline(at time.Time) error { return c.nobody.SetWriteDeadline(at) }

func (c *stuckConn) Close() error { return errors.Join(c.Conn.Close(), c.nobody.Close()) }

// told is a context whose deadline is an hour away, and passes when end is called.
type told struct {
	context.Context
	passed chan struct{}
	end    func()
}

func newTold(t *testing.T) told {
	passed := make(chan struct{})
	return told{t.Context(), passed, sync.OnceFunc(func() { close(passed) })}
}

func (c told) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

func (c told) Done() <-chan struct{} { return c.passed }

func (c told) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestTimeouts has each sort of timeout end each sort of call: it is an error and nothing
// else, and what it says of spending is so by the server's own count.
func TestTimeouts(t *testing.T) {
	const soon = 50 * time.Millisecond
	isTimeout := func(err error) bool {
		var timeout net.Error
		return errors.As(err, &timeout) && timeout.Timeout() ||
			strings.Contains(err.Error(), "no answer within the client's ReadTimeout")
	}
	is := func(wants ...error) func(error) bool {
		return func(err error) bool {
			return slices.ContainsFunc(wants, func(want error) bool { return errors.Is(err, want) })
		}
	}
	algorithms := []loader.Algorithm{loader.GCRA, loader.FixedWindow, loader.SlidingWindow}
	for row, test := range []struct {
		name     string
		options  redis.Options
		does     int32
		cold     bool // it is so before there is a connection
		held     bool // the pool's one connection is another's
		deadline time.Duration
		cancel   time.Duration
		unsent   bool // surely nothing reaches the server
		want     func(error) bool
	}{
		{name: "dial", options: redis.Options{DialTimeout: soon}, cold: true, unsent: true, want: isTimeout},
		{name: "handshake", options: redis.Options{ReadTimeout: soon}, cold: true, does: losesReads, unsent: true,
			want: isTimeout},
		{name: "read", options: redis.Options{ReadTimeout: soon}, does: losesReads, want: isTimeout},
		{name: "write", options: redis.Options{WriteTimeout: soon, ReadTimeout: 10 * soon}, does: blocksWrite,
			want: isTimeout},
		{name: "pool", options: redis.Options{PoolTimeout: soon}, held: true, unsent: true,
			want: is(redis.ErrPoolTimeout)},
		{name: "deadline, dial", cold: true, deadline: soon, unsent: true, want: is(context.DeadlineExceeded)},
		{name: "deadline, read", does: losesReads, deadline: soon, want: is(context.DeadlineExceeded)},
		{name: "deadline, write", does: blocksWrite, deadline: soon, want: is(context.DeadlineExceeded)},
		{name: "deadline, pool", held: true, deadline: soon, unsent: true, want: is(context.DeadlineExceeded)},
		{name: "deadline of go-redis, read", options: redis.Options{ContextTimeoutEnabled: true}, does: losesReads,
			deadline: soon, want: is(context.DeadlineExceeded)},
		{name: "cancel, read", options: redis.Options{ReadTimeout: 10 * soon}, does: losesReads, cancel: soon,
			want: func(err error) bool { return isTimeout(err) || errors.Is(err, context.Canceled) }},
		{name: "cancel, pool", options: redis.Options{PoolTimeout: 10 * soon}, held: true, cancel: soon, unsent: true,
			want: is(redis.ErrPoolTimeout, context.Canceled)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // each waits
			server := emulator.New()
			server.SetClock(time.Now)
			direct := server.Client()
			defer direct.Close()
			checker := newLimiter(t, direct)
			for i, ask := range asks {
				limit := loader.Limit{Amount: 10, Period: 1000 * time.Hour, Algorithm: algorithms[(row+i)%3]}
				does := &atomic.Int32{}
				options := test.options
				options.MaxRetries, options.DialerRetries, options.PoolSize, options.PipelinePoolSize = -1, 1, 1, -1
				options.ReadTimeout = cmp.Or(options.ReadTimeout, time.Minute)
				options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
					if test.cold && test.does == flows { // nobody takes the dial
						<-ctx.Done()
						return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
					}
					conn, err := server.Dial(ctx, network, addr)
					nobody, _ := net.Pipe()
					return &stuckConn{conn, nobody, does}, err
				}
				client := redis.NewClient(&options)
				defer client.Close()
				limiter, err := loader.New(client)
				must(t, err)
				if !test.cold {
					must(t, client.Ping(t.Context()).Err())
				}
				if test.held {
					conn := client.Conn()
					defer conn.Close()
					must(t, conn.Ping(t.Context()).Err())
				}
				does.Store(test.does)
				ctx, cancel := context.WithCancel(t.Context())
				if test.deadline > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), test.deadline)
				}
				defer cancel()
				if test.cancel > 0 {
					time.AfterFunc(test.cancel, cancel)
				}
				for j, got := range ask.do(ctx, limiter, ask.name, limit) {
					left := allow(t, checker, fmt.Sprint(ask.name, j), limit, 0).Remaining
					free := ask.costs != nil && ask.costs[j] == 0
					not, maybe := isSpent(got.Err, loader.ErrNotSpent), isSpent(got.Err, loader.ErrMaybeSpent)
					if got.Result != (loader.Result{}) || not == maybe || !test.want(got.Err) {
						t.Errorf("%s, %v: %+v, want this timeout as an error, and no result", ask.name, limit, got)
					} else if not && left != 10 || maybe && (test.unsent || free) {
						t.Errorf("%s, %v: %v, and by the server %d of 10 remain", ask.name, limit, got.Err, left)
					}
				}
			}
		})
	}
}

// refuses is an address that refuses dials: its port is none that is given out.
const refuses = "127.0.0.1:1"

// TestCauseAtDeadline has the first dial refused and the next one hang: the deadline ends the
// call, and its error still says what was wrong.
func TestCauseAtDeadline(t *testing.T) {
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	for _, ask := range asks {
		if ask.name == "Peek" || ask.name == "AllowEach" {
			continue // go-redis dials again by itself, and says why only at its end
		}
		var dials atomic.Int32
		second := newTold(t)
		client := redis.NewClient(&redis.Options{
			Addr: refuses, DialerRetries: 1, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: time.Millisecond,
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) > 1 {
					second.end()
					<-ctx.Done()
				}
				return new(net.Dialer).DialContext(context.WithoutCancel(ctx), network, addr)
			},
		})
		limiter, err := loader.New(client)
		must(t, err)
		for _, got := range ask.do(second, limiter, ask.name, limit) {
			if !errors.Is(got.Err, context.DeadlineExceeded) || !errors.Is(got.Err, syscall.ECONNREFUSED) ||
				!isSpent(got.Err, loader.ErrNotSpent) || !strings.HasSuffix(got.Err.Error(), ": connection refused: context deadline exceeded") {
				t.Errorf("%s after %d dials: %v, want the deadline, the refused dial and an ErrNotSpent",
					ask.name, dials.Load(), got.Err)
			}
		}
		client.Close()
		if dials.Load() < 2 {
			t.Errorf("%s: dialed %d times, want a second one that hangs", ask.name, dials.Load())
		}
	}
}

// answerHook is called when a server has answered calls, or their connection has ended.
type answerHook func()

func (h answerHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h answerHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			defer h()
		}
		return next(ctx, cmd)
	}
}

func (h answerHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "evalsha" {
			defer h()
		}
		return next(ctx, cmds)
	}
}

// TestRefusedBesideHung has one server refuse its call of a batch, and then the deadline
// pass, while another hangs: the first call says both why it did not run and that the context ended it.
func TestRefusedBesideHung(t *testing.T) {
	b := emulatedCluster(t)
	f := newFront(t, b.masters...)
	newLimiter(t, b.plain)
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	ended := make(chan struct{})
	for i, master := range b.masters {
		f.proxies[master.Options().Addr].refuse(func(command []byte) []byte {
			if isEvalsha(command) && i == 1 {
				<-ended
			}
			return []byte("-LOADING Redis is loading the dataset in memory\r\n")
		})
	}
	defer close(ended)
	b.kinds[0].with(t, f, func(client redis.UniversalClient) {
		limiter, err := loader.New(client)
		must(t, err)
		heard := newTold(t)
		client.(*redis.ClusterClient).OnNewNode(func(node *redis.Client) { node.AddHook(answerHook(heard.end)) })
		var calls []loader.Call
		for i := range 20 { // some of each server
			calls = append(calls, loader.Call{Key: fmt.Sprint("k", i), Limit: limit, Cost: 1})
		}
		refused := 0
		for _, got := range limiter.AllowEach(heard, calls...) {
			if !errors.Is(got.Err, context.DeadlineExceeded) {
				t.Errorf("%v, want one that the deadline passed", got.Err)
			}
			if redis.IsLoadingError(got.Err) {
				refused++
				if !isSpent(got.Err, loader.ErrNotSpent) {
					t.Errorf("%v, want an ErrNotSpent", got.Err)
				}
			}
		}
		if refused == 0 || refused == len(calls) {
			t.Errorf("%d of %d calls say that the server is loading, want those of one server", refused, len(calls))
		}
	})
}
