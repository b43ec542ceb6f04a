package loader_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

// TestSentAgain has a server refuse the first calls, with each reply after which a call
// surely has not run. Those that may soon pass are sent again; no other is.
func TestSentAgain(t *testing.T) { eachServer(t, testSentAgain) }

func testSentAgain(t *testing.T, server testServer, _ testLimiter) {
	limiter, p, client := through(t, server)
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	for _, test := range []struct {
		reply string
		again bool
	}{
		{"LOADING Redis is loading the dataset in memory", true},
		{"CLUSTERDOWN Hash slot not served", true},
		{"TRYAGAIN Multiple keys request during rehashing of slot", true},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", false},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", false},
		{"NOREPLICAS Not enough good replicas to write.", false},
		{"MOVED 5 127.0.0.1:1", false}, // which only a cluster client follows
		{"OOM command not allowed when used memory > 'maxmemory'.", false},
		{"ERR whatever", false},
	} {
		var seen atomic.Int32
		refuseFirst := func(n int32) {
			seen.Store(0)
			p.refuse(func(command []byte) []byte {
				if isEvalsha(command) && seen.Add(1) <= n {
					return []byte("-" + test.reply + "\r\n")
				}
				return nil
			})
		}
		at := limiter.WithClock(t, clockAt(0))
		retries := int32(client.Options().MaxRetries)
		refuseFirst(retries)
		got, err := at.Allow(t.Context(), "k", limit)
		sent := seen.Load()
		if test.again && (err != nil || got.Remaining != 9 || sent != retries+1) {
			t.Errorf("%s: sent %d times: %+v, %v, want 9 remaining at the last", test.reply, sent, got, err)
		}
		if !test.again && (err == nil || sent != 1) {
			t.Errorf("%s: sent %d times: %+v, %v, want an error and once", test.reply, sent, got, err)
		}

		refuseFirst(1 << 30)
		_, err = at.Allow(t.Context(), "k", limit)
		want := loader.ErrNotSpent
		if strings.HasPrefix(test.reply, "ERR") {
			want = loader.ErrMaybeSpent
		}
		if sent := seen.Load(); !isSpent(err, want) || test.again && sent != retries+1 || !strings.Contains(err.Error(), p.addr) {
			t.Errorf("%s for ever: sent %d times: %v, want %v, and %s", test.reply, sent, err, want, p.addr)
		}
		for _, outcome := range at.AllowEach(t.Context(), loader.Call{Key: "k", Limit: limit, Cost: 1}, loader.Call{Key: "l", Limit: limit, Cost: 1}) {
			if !isSpent(outcome.Err, want) {
				t.Errorf("%s for ever, batch: %v, want %v", test.reply, outcome.Err, want)
			}
		}

		// With a deadline of a minute for more than 3 retries, which are not enough without one.
		refuseFirst(retries + 4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		got, err = at.Allow(ctx, "deadline", limit)
		cancel()
		if sent := seen.Load(); test.again && (err != nil || got.Remaining != 9 || sent != retries+5) || !test.again && sent != 1 {
			t.Errorf("%s, in a minute: sent %d times: %+v, %v, want 9 remaining at the last", test.reply, sent, got, err)
		}

		refuseFirst(1) // of two: only that one goes again
		each := at.AllowEach(t.Context(), loader.Call{Key: "x", Limit: limit, Cost: 1}, loader.Call{Key: "y", Limit: limit, Cost: 1})
		sent = seen.Load()
		if test.again && (each[0].Remaining != 9 || each[1].Remaining != 9 || sent != 3) {
			t.Errorf("%s, batch: sent %d: %+v, want both with 9 remaining and 3 sent", test.reply, sent, each)
		}
		if !test.again && (each[0].Err == nil || each[1].Remaining != 9 || sent != 2) {
			t.Errorf("%s, batch: sent %d: %+v, want an error and 9 remaining, and 2 sent", test.reply, sent, each)
		}

		refuseFirst(1 << 30)
		options := *client.Options()
		options.MinRetryBackoff, options.MaxRetryBackoff = 20*time.Second, 20*time.Second
		waiting := redis.NewClient(&options)
		heard := newTold(t) // whose deadline passes within the first back-off
		waiting.AddHook(answerHook(func() { time.AfterFunc(10*time.Millisecond, heard.end) }))
		limiter, err := loader.New(waiting)
		must(t, err)
		began := time.Now()
		_, err = limiter.Allow(heard, "k", limit)
		waiting.Close()
		if took := time.Since(began); !isSpent(err, want) || test.again && !errors.Is(err, context.DeadlineExceeded) || took > 20*time.Second {
			t.Errorf("%s, a deadline in the back-off: %v after %v, want %v that the context ended", test.reply, err, took, want)
		}
		p.refuse(func([]byte) []byte { return nil })
		for _, key := range []string{"k", "x", "y", "deadline"} {
			forgotten(t)(at.Reset(t.Context(), key, limit))
		}
	}
}

// TestLoading has a real server load its data, until it is told to make haste. It answers
// between any two keys, which uncompressed have a kilobyte each.
func TestLoading(t *testing.T) {
	direct, _ := start(t, "--enable-debug-command", "yes", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no")
	pipe := direct.Pipeline()
	for i := range 6000 {
		pipe.Set(t.Context(), fmt.Sprint("filler:", i), strings.Repeat("y", 1000), 0)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	must(t, direct.ConfigSet(t.Context(), "key-load-delay", "10000").Err()) // microseconds: a minute in all
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	limiter := newLimiter(t, direct.Client).WithClock(t, clockAt(0))

	reloaded := make(chan error, 1)
	go func() {
		client := redis.NewClient(&redis.Options{Addr: direct.Options().Addr, ReadTimeout: -1, MaxRetries: -1})
		defer client.Close()
		reloaded <- client.Do(context.Background(), "debug", "reload").Err()
	}()
	until(t, "LOADING", func() bool { return redis.IsLoadingError(direct.Get(t.Context(), "k").Err()) })
	if _, err := limiter.Allow(t.Context(), "k", limit); !redis.IsLoadingError(err) || !isSpent(err, loader.ErrNotSpent) {
		t.Errorf("3 retries: %v, want LOADING and ErrNotSpent", err)
	}
	var calls atomic.Int32
	direct.AddHook(answerHook(func() {
		if calls.Add(1) == 5 {
			if err := direct.ConfigSet(context.Background(), "key-load-delay", "0").Err(); err != nil {
				t.Error(err)
			}
		}
	}))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if got, err := limiter.Allow(ctx, "k", limit); err != nil || got.Remaining != 9 || calls.Load() < 6 {
		t.Errorf("a deadline of a minute, sent %d times: %+v, %v, want 9 remaining at the sixth or later", calls.Load(), got, err)
	}
	must(t, <-reloaded)
}

// TestClusterDown has a real node that serves its slots only after a while.
func TestClusterDown(t *testing.T) {
	node := startNode(t)
	options := *node.Options() // whose retries go on for a minute and more
	options.MaxRetries, options.MinRetryBackoff, options.MaxRetryBackoff = 2000, 10*time.Millisecond, 50*time.Millisecond
	client := redis.NewClient(&options)
	defer client.Close()
	limiter, err := loader.New(client)
	must(t, err)
	hasty, err := loader.New(node)
	must(t, err)
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	if _, err := hasty.Allow(t.Context(), "k", limit); !redis.IsClusterDownError(err) || !isSpent(err, loader.ErrNotSpent) {
		t.Errorf("3 retries: %v, want CLUSTERDOWN and ErrNotSpent", err)
	}
	time.AfterFunc(200*time.Millisecond, func() { node.ClusterAddSlotsRange(context.Background(), 0, slots-1) })
	if got, err := limiter.Allow(t.Context(), "k", limit); err != nil || got.Remaining != 9 {
		t.Errorf("2000 retries: %+v, %v, want 9 remaining", got, err)
	}
}

// TestDialedAgain has the first dials refused by a port where nothing listens.
func TestDialedAgain(t *testing.T) { eachServer(t, testDialedAgain) }

func testDialedAgain(t *testing.T, server testServer, _ testLimiter) {
	open := server.address(t)
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	const none = -1 // of MaxRetries and MinRetryBackoff
	for i, test := range []struct {
		retries  int
		backoff  time.Duration
		deadline time.Duration // 0: none
		refused  int32
		want     bool
	}{
		{3, 0, 0, 3, true}, {3, 0, 0, 4, false}, {none, 0, 0, 1, false},
		{3, 0, time.Minute, 8, true}, {none, 0, time.Minute, 1, false}, {3, none, time.Minute, 4, false},
	} {
		var dials atomic.Int32
		client := redis.NewClient(&redis.Options{
			Addr: open, MaxRetries: test.retries, MinRetryBackoff: test.backoff, DialerRetries: 1,
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if dials.Add(1) <= test.refused {
					addr = refuses
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		})
		defer client.Close()
		limiter, err := loader.New(client)
		must(t, err)
		ctx := t.Context()
		if test.deadline > 0 {
			with, cancel := context.WithTimeout(ctx, test.deadline)
			defer cancel()
			ctx = with
		}
		got, err := limiter.Allow(ctx, fmt.Sprint("k", i), limit)
		if test.want && (err != nil || got.Remaining != 9) {
			t.Errorf("%+v: %+v, %v, want 9 remaining", test, got, err)
		}
		if !test.want && (!isSpent(err, loader.ErrNotSpent) || !strings.Contains(err.Error(), refuses)) {
			t.Errorf("%+v: %v, want an ErrNotSpent that names %s", test, err, refuses)
		}
	}
}

// TestFailover kills a master of a cluster. Its keys are served again as soon as its
// replica has taken over, not when the client next reads the slots by itself, 60 s later.
func TestFailover(t *testing.T) {
	nodes, cluster := startCluster(t)
	doomed := servers.ForTest(t, nodeArgs...)
	replica := doomed.Client()
	defer replica.Close()
	host, port := address(nodes[0])
	must(t, replica.ClusterMeet(t.Context(), host, port).Err())
	all := append(nodes[:3:3], replica)
	until(t, "four nodes that know each other", knowEachOther(t, all))
	// The fourth node takes over the place of a master, and that master becomes its
	// replica: so the one to kill is a server that the test can stop.
	must(t, replica.ClusterReplicate(t.Context(), nodeID(t, nodes[1])).Err())
	linked := func(node *redis.Client) func() bool {
		return func() bool {
			info, err := node.Info(t.Context(), "replication").Result()
			must(t, err)
			return strings.Contains(info, "master_link_status:up")
		}
	}
	until(t, "a replica", linked(replica))
	until(t, "a manual failover", func() bool {
		_ = replica.ClusterFailover(t.Context()).Err() // refused while the nodes do not know the replica yet
		return linked(nodes[1])()
	})
	until(t, "agreement", knowEachOther(t, all))
	cluster.ReloadState(t.Context())

	limit := loader.Limit{Amount: 1000, Period: time.Hour}
	limiter := newLimiter(t, cluster)
	key := ""
	until(t, "a key of the master", func() bool {
		key += "x"
		node, err := cluster.MasterForKey(t.Context(), limiter.Key(key, limit))
		must(t, err)
		return node.Options().Addr == replica.Options().Addr
	})
	allow(t, limiter, key, limit, 1)
	doomed.Stop()
	call := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := limiter.Allow(ctx, key, limit)
		if err != nil && !isSpent(err, loader.ErrNotSpent) && !isSpent(err, loader.ErrMaybeSpent) {
			t.Errorf("%v is not one of the two", err)
		}
		return err
	}
	until(t, "an error that names the dead server", func() bool {
		err := call()
		return err != nil && strings.Contains(err.Error(), replica.Options().Addr)
	})
	must(t, nodes[1].ConfigSet(t.Context(), "cluster-replica-validity-factor", "0").Err()) // however old its data are by now
	for _, node := range nodes {
		must(t, node.ConfigSet(t.Context(), "cluster-node-timeout", "1000").Err())
	}
	var promoted time.Time
	until(t, "an answer", func() bool {
		answered := call() == nil
		if info := nodes[1].Info(t.Context(), "replication").Val(); promoted.IsZero() && strings.Contains(info, "role:master") {
			promoted = time.Now()
		}
		return answered
	})
	took := time.Since(promoted)
	t.Logf("answered again %v after the replica had taken over", took)
	if took > 20*time.Second {
		t.Errorf("answered again %v after the replica had taken over, want 20 s at most", took)
	}
}
