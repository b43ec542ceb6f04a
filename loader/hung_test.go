//go:build unix

package loader_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

// slack is how late after its deadline a call may come back. A busy machine may add to it,
// so the best of many tries counts.
const slack = 50 * time.Millisecond

// hang stops each server, until the returned function lets it go on: the process of a real
// one, and the clock of an emulator, which it asks before each command and for each
// connection.
func hang(t *testing.T, servers ...testServer) (resume func()) {
	t.Helper()
	going := make(chan struct{})
	var pids []int
	for _, server := range servers {
		if server.emulator != nil {
			server.emulator.SetClock(func() time.Time {
				<-going
				return time.Now()
			})
			continue
		}
		pid, err := pidOf(t, server.Client)
		must(t, err)
		must(t, syscall.Kill(pid, syscall.SIGSTOP))
		pids = append(pids, pid)
	}
	resume = sync.OnceFunc(func() {
		close(going)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGCONT) // an error means that it has ended
		}
	})
	t.Cleanup(resume)
	return resume
}

// inTime has do come back within slack of a deadline of 100 ms, with an error that says
// that the context ended it. It tries for 20 s, and three times at least.
func inTime(t *testing.T, what string, do func(ctx context.Context) error) {
	t.Helper()
	const deadline = 100 * time.Millisecond
	best := time.Duration(math.MaxInt64)
	for try, first := 0, time.Now(); try < 3 || time.Since(first) < 20*time.Second && !t.Failed(); try++ {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		began := time.Now()
		err := do(ctx)
		best = min(best, time.Since(began)-deadline)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "tatami: ") {
			t.Errorf("%s: %v, want one that the deadline passed", what, err)
		}
		if best <= slack {
			return
		}
	}
	t.Errorf("%s: back %v after the deadline at best, want %v", what, best, slack)
}

// everyCall makes each call of a limiter, and holds its error against being one of the two.
func everyCall(t *testing.T, what string, limiter *loader.Limiter) {
	t.Helper()
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	both := []loader.Call{{Key: "k", Limit: limit, Cost: 1}, {Key: "l", Limit: limit, Cost: 1}}
	asks := []loader.Ask{{Key: "k", Limit: limit, Cost: 1}, {Key: "l", Limit: limit, Cost: 1}}
	for name, do := range map[string]func(ctx context.Context) error{
		"Allow":  func(ctx context.Context) error { _, err := limiter.Allow(ctx, "k", limit); return err },
		"Peek":   func(ctx context.Context) error { _, err := limiter.Peek(ctx, "k", limit); return err },
		"Reset":  func(ctx context.Context) error { _, err := limiter.Reset(ctx, "k", limit); return err },
		"Delete": func(ctx context.Context) error { _, err := limiter.Delete(ctx, "k", limit); return err },
		"Wait":   func(ctx context.Context) error { return limiter.Wait(ctx, "k", limit, 1) },
		"AllowAtMost": func(ctx context.Context) error {
			_, _, err := limiter.AllowAtMost(ctx, "k", limit, 2)
			return err
		},
		"Reserve": func(ctx context.Context) error {
			r, err := limiter.Reserve(ctx, asks...)
			if r.OK {
				t.Errorf("%s: %+v", what, r)
			}
			return err
		},
		"Cancel": func(ctx context.Context) error {
			r, err := limiter.Reopen([]string{"1", "1"}, asks...)
			must(t, err)
			return r.Cancel(ctx)
		},
		"AllowEach": func(ctx context.Context) error {
			outcomes := limiter.AllowEach(ctx, both...)
			return errors.Join(joined(outcomes[0].Err), joined(outcomes[1].Err))
		},
	} {
		inTime(t, what+", "+name, func(ctx context.Context) error {
			err := do(ctx)
			if !isSpent(err, loader.ErrNotSpent) && !isSpent(err, loader.ErrMaybeSpent) && name != "AllowEach" {
				t.Errorf("%s, %s: %v is not one of the two", what, name, err)
			}
			return err
		})
	}
	for name, ask := range map[string]func(context.Context) ([]loader.Presence, error){"Load": limiter.Load, "Verify": limiter.Verify} {
		inTime(t, what+", "+name, func(ctx context.Context) error {
			found, err := ask(ctx)
			if found != nil || !errors.Is(err, loader.ErrUnreached) {
				t.Errorf("%s, %s: %v, %v, want an ErrUnreached", what, name, found, err)
			}
			return err
		})
	}
}

// joined keeps errors.Join from hiding that one of two is missing.
func joined(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

// TestHungServer stops the servers of each kind of client, whose options are go-redis's
// defaults: a ReadTimeout of 5 s, and no ContextTimeoutEnabled.
func TestHungServer(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			direct := &front{}
			for _, kind := range b.kinds {
				for _, warm := range []bool{false, true} { // with connections and without
					kind.with(t, direct, func(client redis.UniversalClient) {
						limiter, err := loader.New(client)
						must(t, err)
						if warm {
							limit := loader.Limit{Amount: 10, Period: time.Hour}
							_, err := limiter.Peek(t.Context(), "k", limit)
							must(t, err)
							limiter.AllowEach(t.Context(), loader.Call{Key: "k", Limit: limit}, loader.Call{Key: "l", Limit: limit})
						}
						resume := hang(t, b.masters...)
						defer resume()
						everyCall(t, kind.name+" warm="+strconv.FormatBool(warm), limiter)
					})
				}
			}
		})
	}
}

// noticedConn tells of each write once it is done.
type noticedConn struct {
	net.Conn
	wrote func(b []byte)
}

func (c noticedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.wrote(b)
	return n, err
}

// TestWithoutConnection has calls that wait for a connection, of a pool whose one hangs.
// Surely nothing was spent, then and later.
func TestWithoutConnection(t *testing.T) {
	t.Run("emulator", func(t *testing.T) { testWithoutConnection(t, onPort(t, true)) })
	t.Run("redis-server", func(t *testing.T) { testWithoutConnection(t, onPort(t, false)) })
}

func testWithoutConnection(t *testing.T, direct testServer) {
	checker := newLimiter(t, direct.Client)
	limit := loader.Limit{Amount: 10, Period: 1000 * time.Hour}
	sent := newTold(t)
	options := *direct.Options()
	options.PoolSize, options.PipelinePoolSize, options.ReadTimeout = 1, -1, time.Minute
	options.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return noticedConn{conn, func(b []byte) {
			if isEvalsha(b) {
				sent.end()
			}
		}}, err
	}
	client := redis.NewClient(&options)
	defer client.Close()
	limiter := newLimiter(t, client)
	goroutines := runtime.NumGoroutine()

	resume := hang(t, direct)
	_, err := limiter.Allow(sent, "k", limit)
	if !isSpent(err, loader.ErrMaybeSpent) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), options.Addr) {
		t.Errorf("a call that was sent: %v, want an ErrMaybeSpent that names %s", err, options.Addr)
	}
	inTime(t, "pool, batch", func(ctx context.Context) (last error) {
		for _, outcome := range limiter.AllowEach(ctx, loader.Call{Key: "k", Limit: limit, Cost: 1}, loader.Call{Key: "k", Limit: limit, Cost: 1}) {
			if last = outcome.Err; !isSpent(last, loader.ErrNotSpent) {
				t.Errorf("a batch without a connection: %v, want an ErrNotSpent", last)
			}
		}
		return last
	})
	inTime(t, "pool", func(ctx context.Context) error {
		_, err := limiter.Allow(ctx, "k", limit)
		if !isSpent(err, loader.ErrNotSpent) {
			t.Errorf("a call without a connection: %v, want an ErrNotSpent", err)
		}
		return err
	})
	resume()
	// The server may come to the checker's look before to the call.
	until(t, "the end of the first call", func() bool { return allow(t, checker, "k", limit, 0).Remaining < 10 })
	until(t, "the end of what was given up", func() bool { return runtime.NumGoroutine() <= goroutines })
	if got := allow(t, checker, "k", limit, 0); got.Remaining != 9 {
		t.Errorf("%d remaining, want 9: only the first call was sent", got.Remaining)
	}
}

// TestSwallowedDials has a host that answers no dial: surely nothing was spent.
func TestSwallowedDials(t *testing.T) {
	limit := loader.Limit{Amount: 10, Period: 1000 * time.Hour}
	silent := swallow(t)
	for name, client := range map[string]redis.UniversalClient{
		"Client":        redis.NewClient(&redis.Options{Addr: silent}),
		"ClusterClient": redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{silent}}),
		"Ring":          redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": silent}}),
	} {
		defer client.Close()
		limiter, err := loader.New(client)
		must(t, err)
		everyCall(t, name+" of a host that swallows dials", limiter)
		inTime(t, name+" of a host that swallows dials", func(ctx context.Context) error {
			_, err := limiter.Allow(ctx, "k", limit)
			if !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("%s: %v, want an ErrNotSpent", name, err)
			}
			return err
		})
	}
}

// TestHungSlots has cluster clients that have to ask for the slots first, and get no answer:
// from a stopped Sentinel, from a host that answers no dial, by a name that cannot be
// resolved, and from the user's own function, which looks at no context.
func TestHungSlots(t *testing.T) {
	stopped, _ := start(t)
	resume := hang(t, stopped)
	defer resume()
	for name, addr := range map[string]string{"stopped": stopped.Options().Addr, "silent": swallow(t), "unknown": "sentinel.invalid:1"} {
		client := redis.NewFailoverClusterClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{addr}, RouteRandomly: true})
		limiter, err := loader.New(client)
		must(t, err)
		everyCall(t, "a Sentinel that is "+name, limiter)
		client.Close()
	}

	limit := loader.Limit{Amount: 10, Period: time.Hour}
	asked := make(chan struct{})
	client := redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
		<-asked
		return nil, errors.New("no slots")
	}})
	defer client.Close()
	limiter, err := loader.New(client)
	must(t, err)
	everyCall(t, "a ClusterSlots that hangs", limiter)
	many := make([]loader.Call, 40) // which look for their servers' names together
	for i := range many {
		many[i] = loader.Call{Key: "k" + strconv.Itoa(i), Limit: limit, Cost: 1}
	}
	inTime(t, "40 calls, a ClusterSlots that hangs", func(ctx context.Context) error {
		return limiter.AllowEach(ctx, many...)[39].Err
	})
	close(asked)
}

// swallow returns an address of this machine that answers no dial: a socket whose backlog
// is full.
func swallow(t *testing.T) (addr string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	must(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	must(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, syscall.Listen(fd, 0))
	bound, err := syscall.Getsockname(fd)
	must(t, err)
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
	for range 100 {
		conn, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			return addr
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Skip("skipped: this system accepts 100 connections to a socket with a backlog of 0")
	return ""
}

// TestBatchWithoutDeadline has AllowEach wait for hung servers for one ReadTimeout, whether
// it has connections or not; what another server answered is there.
func TestBatchWithoutDeadline(t *testing.T) {
	const readTimeout = 500 * time.Millisecond
	ports := func(emulated bool) func(t *testing.T) {
		return func(t *testing.T) {
			single, a, b := onPort(t, emulated), onPort(t, emulated), onPort(t, emulated)
			batchWithoutDeadline(t, "Client", readTimeout, false, func() redis.UniversalClient {
				return redis.NewClient(&redis.Options{Addr: single.Options().Addr, ReadTimeout: readTimeout})
			}, single)
			batchWithoutDeadline(t, "Ring", readTimeout, true, func() redis.UniversalClient {
				return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Options().Addr, "b": b.Options().Addr},
					ReadTimeout: readTimeout, HeartbeatFrequency: time.Hour})
			}, a)
		}
	}
	t.Run("emulator", ports(true))
	t.Run("redis-server", ports(false))
	t.Run("cluster", func(t *testing.T) {
		nodes, _ := startCluster(t)
		batchWithoutDeadline(t, "ClusterClient", readTimeout, true, func() redis.UniversalClient {
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Options().Addr}, ReadTimeout: readTimeout})
		}, onNodes(nodes[1:])...)
	})
}

// batchWithoutDeadline hangs some servers of a client. part says that others answer.
func batchWithoutDeadline(t *testing.T, name string, readTimeout time.Duration, part bool,
	open func() redis.UniversalClient, hung ...testServer) {
	t.Helper()
	limit := loader.Limit{Amount: 10, Period: 1000 * time.Hour}
	var calls []loader.Call
	for i := range 40 {
		calls = append(calls, loader.Call{Key: "k" + strconv.Itoa(i), Limit: limit, Cost: int64(i % 2)})
	}
	for _, warm := range []bool{false, true} {
		problem := "not tried"
		for first := time.Now(); problem != "" && time.Since(first) < 20*time.Second; { // the best of many tries counts
			problem = func() string {
				client := open()
				defer client.Close()
				limiter, err := loader.New(client)
				must(t, err)
				until(t, "the scripts", func() bool { _, err := limiter.Load(t.Context()); return err == nil })
				if warm {
					for i, outcome := range limiter.AllowEach(t.Context(), calls...) {
						if outcome.Err != nil {
							return fmt.Sprintf("call %d before the servers hang: %v", i, outcome.Err)
						}
					}
				}
				resume := hang(t, hung...)
				defer resume()
				began := time.Now()
				answered, failed := 0, 0
				for i, outcome := range limiter.AllowEach(t.Context(), calls...) {
					if outcome.Err == nil {
						answered++
						continue
					}
					failed++
					if !isSpent(outcome.Err, loader.ErrNotSpent) && !isSpent(outcome.Err, loader.ErrMaybeSpent) ||
						errors.Is(outcome.Err, context.DeadlineExceeded) {
						t.Errorf("%s, warm=%v, call %d: %v", name, warm, i, outcome.Err)
					}
				}
				if took := time.Since(began); took > readTimeout+4*slack || failed == 0 || (answered > 0) != part {
					return fmt.Sprintf("back after %v with %d answers and %d errors", took, answered, failed)
				}
				return ""
			}()
		}
		if problem != "" {
			t.Errorf("%s, warm=%v: %s", name, warm, problem)
		}
	}
}
