package loader_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

// front dials a proxy in place of each of the servers, so that replies can be lost on
// clients of any kind.
type front struct {
	mu      sync.Mutex
	proxies map[string]*proxy // by server
}

func newFront(t *testing.T, nodes ...testServer) *front {
	t.Helper()
	f := &front{proxies: map[string]*proxy{}}
	for _, node := range nodes {
		f.proxies[node.Options().Addr] = startProxy(t, node.Options().Addr)
	}
	return f
}

func (f *front) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	f.mu.Lock()
	if p := f.proxies[addr]; p != nil {
		addr = p.addr
	}
	f.mu.Unlock()
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, addr)
}

// loseCalls cuts the connection in place of every reply to a call, after the server has
// run it, or passes all on.
func (f *front) loseCalls(lose bool) {
	for _, p := range f.proxies {
		p.setReply(func(command, reply []byte) []byte {
			if lose && (isEvalsha(command) || isCommand(command, "eval")) {
				return nil
			}
			return reply
		})
	}
}

// onConn and onTx call through one connection of the client.
type onConn struct {
	*redis.Client
	conn *redis.Conn
}

func (c onConn) Process(ctx context.Context, cmd redis.Cmder) error { return c.conn.Process(ctx, cmd) }
func (c onConn) Pipeline() redis.Pipeliner                          { return c.conn.Pipeline() }

type onTx struct {
	*redis.Client
	tx *redis.Tx
}

func (c onTx) Process(ctx context.Context, cmd redis.Cmder) error { return c.tx.Process(ctx, cmd) }
func (c onTx) Pipeline() redis.Pipeliner                          { return c.tx.Pipeline() }

// pidOf is the process of a server.
func pidOf(t *testing.T, server *redis.Client) (int, error) {
	info, err := server.Info(t.Context(), "server").Result()
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(info, "process_id:")
	digits, _, _ := strings.Cut(rest, "\r\n")
	return strconv.Atoi(digits)
}

// startSentinel starts a sentinel that watches the master as "tatami".
func startSentinel(t *testing.T, master *redis.Client) (addr string) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	must(t, err)
	host, masterPort := address(master)
	for range 5 { // another process may take the port first, and the sentinel then exits
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		addr = listener.Addr().String()
		listener.Close()
		_, port, _ := net.SplitHostPort(addr)
		config := filepath.Join(t.TempDir(), "sentinel.conf")
		must(t, os.WriteFile(config, fmt.Appendf(nil, "port %s\nbind 127.0.0.1\nsentinel monitor tatami %s %s 1\n", port, host, masterPort), 0o600))
		command := exec.Command(binary, config, "--sentinel")
		command.Dir = filepath.Dir(config)
		must(t, command.Start())
		exited := make(chan struct{})
		go func() {
			_ = command.Wait() // how it ended does not matter
			close(exited)
		}()
		t.Cleanup(func() {
			_ = command.Process.Kill() // an error means that it has ended
			<-exited
		})
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		up := false
		until(t, "an answer of the sentinel", func() bool {
			select {
			case <-exited:
				return true
			default:
			}
			pid, err := pidOf(t, client)
			up = err == nil && pid == command.Process.Pid
			return up
		})
		if up {
			return addr
		}
	}
	t.Fatal("the sentinel exits at once")
	return ""
}

// backend is a set of servers, and the kinds of clients that reach it.
type backend struct {
	masters []testServer
	plain   redis.UniversalClient // goes to the servers directly
	kinds   []kind
}

type kind struct {
	name string
	with func(t *testing.T, f *front, do func(redis.UniversalClient))
}

// opened is a kind whose client only has to be made.
func opened(name string, open func(f *front) redis.UniversalClient) kind {
	return kind{name, func(t *testing.T, f *front, do func(redis.UniversalClient)) {
		client := open(f)
		defer client.Close()
		do(client)
	}}
}

// piped is an auto pipeline of a client.
func piped(name string, open func(f *front) redis.UniversalClient, async, duplex bool) kind {
	return kind{name, func(t *testing.T, f *front, do func(redis.UniversalClient)) {
		client := open(f)
		defer client.Close()
		options := redis.DefaultBlockingAutoPipelineOptions()
		options.FullDuplex = duplex
		make := client.AutoPipelineWithOptions
		if async {
			make = client.AsyncAutoPipelineWithOptions
		}
		pipeline, err := make(options)
		must(t, err)
		defer pipeline.Close()
		do(pipeline)
	}}
}

// onPort returns a real server, or an emulator that listens, with a client of its port.
func onPort(t *testing.T, emulated bool) testServer {
	t.Helper()
	if !emulated {
		server, _ := start(t)
		return server
	}
	server, _ := startEmulator(t)
	client := redis.NewClient(&redis.Options{Addr: server.address(t)})
	t.Cleanup(func() { client.Close() })
	return testServer{Client: client, emulator: server.emulator}
}

func singleBackend(t *testing.T, emulated bool) backend {
	direct := onPort(t, emulated)
	addr := direct.Options().Addr
	open := func(f *front) redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: addr, Dialer: f.dial})
	}
	kinds := []kind{
		opened("Client", open),
		opened("UniversalClient", func(f *front) redis.UniversalClient {
			return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}, Dialer: f.dial})
		}),
		{"Conn", func(t *testing.T, f *front, do func(redis.UniversalClient)) {
			client := open(f).(*redis.Client)
			defer client.Close()
			conn := client.Conn()
			defer conn.Close()
			do(onConn{client, conn})
		}},
		{"Tx", func(t *testing.T, f *front, do func(redis.UniversalClient)) {
			client := open(f).(*redis.Client)
			defer client.Close()
			_ = client.Watch(t.Context(), func(tx *redis.Tx) error { // UNWATCH fails after a lost reply
				do(onTx{client, tx})
				return nil
			}, "other")
		}},
	}
	if !emulated { // which watches itself by no sentinel
		sentinel := startSentinel(t, direct.Client)
		kinds = append(kinds, opened("FailoverClient", func(f *front) redis.UniversalClient {
			return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "tatami", SentinelAddrs: []string{sentinel}, Dialer: f.dial})
		}))
	}
	for _, async := range []bool{false, true} {
		for _, duplex := range []bool{false, true} {
			kinds = append(kinds, piped(fmt.Sprintf("AutoPipeline async=%v duplex=%v", async, duplex), open, async, duplex))
		}
	}
	return backend{[]testServer{direct}, direct.Client, kinds}
}

func onNodes(nodes []*redis.Client) (all []testServer) {
	for _, node := range nodes {
		all = append(all, testServer{Client: node})
	}
	return all
}

func clusterBackend(t *testing.T) backend {
	nodes, plain := startCluster(t)
	addr := nodes[0].Options().Addr
	open := func(f *front) redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{addr}, Dialer: f.dial})
	}
	return backend{onNodes(nodes), plain, []kind{
		opened("ClusterClient", open),
		opened("UniversalClient of a cluster", func(f *front) redis.UniversalClient {
			return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: []string{addr}, Dialer: f.dial, IsClusterMode: true})
		}),
		piped("AutoPipeline of a cluster", open, false, false),
		piped("AsyncAutoPipeline of a cluster", open, true, false),
		piped("AsyncAutoPipeline of a cluster, duplex", open, true, true),
	}}
}

func ringBackend(t *testing.T, emulated bool) backend {
	a, b := onPort(t, emulated), onPort(t, emulated)
	open := func(dial func(context.Context, string, string) (net.Conn, error)) redis.UniversalClient {
		return redis.NewRing(&redis.RingOptions{
			Addrs:  map[string]string{"a": a.Options().Addr, "b": b.Options().Addr},
			Dialer: dial,
		})
	}
	plain := open(nil)
	t.Cleanup(func() { plain.Close() })
	return backend{[]testServer{a, b}, plain, []kind{
		opened("Ring", func(f *front) redis.UniversalClient { return open(f.dial) }),
	}}
}

var backends = map[string]func(*testing.T) backend{
	"single emulator": func(t *testing.T) backend { return singleBackend(t, true) },
	"ring emulators":  func(t *testing.T) backend { return ringBackend(t, true) },
	"single":          func(t *testing.T) backend { return singleBackend(t, false) },
	"ring":            func(t *testing.T) backend { return ringBackend(t, false) },
	"cluster":         clusterBackend,
}

// TestClients makes each kind of client meet an error reply, a missing script and a lost
// reply, with a deadline and without. On an auto pipeline each of them once left the
// caller waiting for ever.
func TestClients(t *testing.T) {
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			f := newFront(t, b.masters...)
			checker := newLimiter(t, b.plain)
			for _, kind := range b.kinds {
				for _, bounded := range []bool{false, true} {
					t.Run(kind.name+" bounded="+strconv.FormatBool(bounded), func(t *testing.T) {
						testClient(t, b, f, kind, checker, bounded)
					})
				}
			}
		})
	}
}

func testClient(t *testing.T, b backend, f *front, kind kind, checker testLimiter, bounded bool) {
	limit := loader.Limit{Amount: 10, Period: 1000 * time.Hour}
	ctx := t.Context()
	if bounded {
		limited, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		ctx = limited
	}
	for _, part := range []struct {
		name string
		do   func(t *testing.T, limiter *loader.Limiter)
	}{
		{"error reply", func(t *testing.T, limiter *loader.Limiter) {
			must(t, b.plain.Set(t.Context(), limiter.Key("text", limit), "hello", 0).Err())
			got, err := limiter.Allow(ctx, "text", limit)
			if got != (loader.Result{}) || !errors.Is(err, loader.ErrBadState) || !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("Allow: %+v, %v, want an ErrBadState and ErrNotSpent", got, err)
			}
			each := limiter.AllowEach(ctx, loader.Call{Key: "text", Limit: limit, Cost: 1}, loader.Call{Key: "good", Limit: limit, Cost: 1})
			if !errors.Is(each[0].Err, loader.ErrBadState) || !isSpent(each[0].Err, loader.ErrNotSpent) || each[1].Err != nil || !each[1].Allowed {
				t.Errorf("AllowEach: %+v, want an ErrBadState and a unit", each)
			}
		}},
		{"missing script", func(t *testing.T, limiter *loader.Limiter) {
			flush := func() {
				for _, master := range b.masters {
					must(t, master.ScriptFlush(t.Context()).Err())
				}
			}
			flush()
			if got, err := limiter.Allow(ctx, "a", limit); err != nil || got.Remaining != 9 {
				t.Errorf("Allow: %+v, %v, want 9 remaining", got, err)
			}
			flush()
			for i, got := range limiter.AllowEach(ctx, loader.Call{Key: "a", Limit: limit, Cost: 1}, loader.Call{Key: "b", Limit: limit, Cost: 2}) {
				if got.Err != nil || got.Remaining != 8 {
					t.Errorf("AllowEach, call %d: %+v, want 8 remaining", i, got)
				}
			}
			flush()
			r, err := limiter.Reserve(ctx, loader.Ask{Key: "a", Limit: limit, Cost: 2}, loader.Ask{Key: "c", Limit: limit, Cost: 3})
			if err != nil || !r.OK || r.Results[0].Remaining != 6 || r.Results[1].Remaining != 7 {
				t.Errorf("Reserve: %+v, %v, want 6 and 7 remaining", r, err)
			}
			flush()
			if err := r.Settle(ctx, 1, 5); err != nil {
				t.Errorf("Settle: %v", err)
			}
			if a, c := allow(t, checker, "a", limit, 0).Remaining, allow(t, checker, "c", limit, 0).Remaining; a != 7 || c != 5 {
				t.Errorf("Settle: %d and %d remaining, want 7 and 5", a, c)
			}
			if _, err := limiter.Reset(ctx, "a", limit); err != nil {
				t.Errorf("Reset: %v", err)
			}
			if _, err := limiter.Delete(ctx, "b", limit); err != nil {
				t.Errorf("Delete: %v", err)
			}
		}},
		{"lost reply", func(t *testing.T, limiter *loader.Limiter) {
			_, err := limiter.Allow(ctx, "warm", limit) // the connection is made, the script there
			must(t, err)
			f.loseCalls(true)
			defer f.loseCalls(false)
			if got, err := limiter.Allow(ctx, "a", limit); got != (loader.Result{}) || !isSpent(err, loader.ErrMaybeSpent) {
				t.Errorf("Allow: %+v, %v, want an ErrMaybeSpent", got, err)
			}
		}},
		{"lost reply of a reservation", func(t *testing.T, limiter *loader.Limiter) {
			_, err := limiter.Allow(ctx, "warm", limit)
			must(t, err)
			f.loseCalls(true)
			defer f.loseCalls(false)
			if r, err := limiter.Reserve(ctx, loader.Ask{Key: "a", Limit: limit, Cost: 2}); r.OK || !isSpent(err, loader.ErrMaybeSpent) {
				t.Errorf("Reserve: %+v, %v, want an ErrMaybeSpent", r, err)
			}
		}},
		{"lost reply of a settlement", func(t *testing.T, limiter *loader.Limiter) {
			r, err := limiter.Reserve(ctx, loader.Ask{Key: "a", Limit: limit, Cost: 2})
			must(t, err)
			f.loseCalls(true)
			defer f.loseCalls(false)
			if err := r.Settle(ctx, 1); !isSpent(err, loader.ErrMaybeSpent) {
				t.Errorf("Settle: %v, want an ErrMaybeSpent", err)
			}
			must(t, r.Settle(ctx, 1))
		}},
		{"lost reply of a batch", func(t *testing.T, limiter *loader.Limiter) {
			f.loseCalls(true)
			defer f.loseCalls(false)
			for i, got := range limiter.AllowEach(ctx, loader.Call{Key: "a", Limit: limit, Cost: 1}, loader.Call{Key: "a", Limit: limit, Cost: 1}) {
				if got.Result != (loader.Result{}) || !isSpent(got.Err, loader.ErrMaybeSpent) {
					t.Errorf("AllowEach, call %d: %+v, want an ErrMaybeSpent", i, got)
				}
			}
		}},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, master := range b.masters {
				must(t, master.FlushAll(t.Context()).Err())
			}
			if part.name != "missing script" {
				_, err := checker.Load(t.Context())
				must(t, err)
			}
			done := make(chan bool)
			go func() {
				defer close(done)
				kind.with(t, f, func(client redis.UniversalClient) {
					limiter, err := loader.New(client)
					if err != nil {
						t.Error(err)
						return
					}
					part.do(t, limiter)
				})
			}()
			select {
			case <-done:
			case <-time.After(2 * time.Minute):
				t.Fatal("the call has not come back in 2 minutes")
			}
			// A batch's second call runs only if it was read before the connection ended.
			wanted := map[string][]int64{"lost reply": {9}, "lost reply of a reservation": {8}, "lost reply of a settlement": {9}, "lost reply of a batch": {9, 8}}[part.name]
			if left := allow(t, checker, "a", limit, 0).Remaining; wanted != nil && !slices.Contains(wanted, left) {
				t.Errorf("%d remaining, want one of %v: no call counts twice", left, wanted)
			}
		})
	}
}

// isSpent is true of an error that is the one and not the other.
func isSpent(err, want error) bool {
	not, maybe := errors.Is(err, loader.ErrNotSpent), errors.Is(err, loader.ErrMaybeSpent)
	return not != maybe && not == (want == loader.ErrNotSpent)
}
