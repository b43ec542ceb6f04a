package loader_test

import (
	"context"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

// testServer is a server of a test's own, with a client of it.
type testServer struct {
	*redis.Client
	emulator *emulator.Redis // nil: a real server
	counted  *counter        // on the emulator, in place of the server's own figures
}

// start starts a real server, and returns a limiter on it.
func start(t *testing.T, args ...string) (testServer, testLimiter) {
	t.Helper()
	client := servers.ForTest(t, args...).Client()
	t.Cleanup(func() { client.Close() })
	return testServer{Client: client}, newLimiter(t, client)
}

// startEmulator does as emulator.NewClient, and keeps hold of the server behind it.
func startEmulator(t *testing.T) (testServer, testLimiter) {
	t.Helper()
	server := emulator.New()
	server.SetClock(time.Now)
	client := server.Client()
	t.Cleanup(func() { client.Close() })
	counted := &counter{}
	counted.reset()
	client.AddHook(counted)
	return testServer{client, server, counted}, newLimiter(t, client)
}

// eachServer runs a test on the emulator, and on a real server where there is one. What
// a test needs of a server's faults, the emulator has not: such a test starts its own.
func eachServer(t *testing.T, test func(t *testing.T, server testServer, limiter testLimiter)) {
	t.Run("emulator", func(t *testing.T) {
		server, limiter := startEmulator(t)
		test(t, server, limiter)
	})
	t.Run("redis-server", func(t *testing.T) {
		server, limiter := start(t)
		test(t, server, limiter)
	})
}

// versions are the limiter as New returns it, and one that calls version 1.
var versions = map[string]func(t *testing.T, limiter testLimiter) testLimiter{
	"v2": func(_ *testing.T, limiter testLimiter) testLimiter { return limiter },
	"v1": func(t *testing.T, limiter testLimiter) testLimiter { return limiter.WithV1(t) },
}

// eachVersion runs a test for each version, on each server.
func eachVersion(t *testing.T, test func(t *testing.T, server testServer, limiter testLimiter)) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, server testServer, limiter testLimiter) {
				test(t, server, version(t, limiter))
			})
		})
	}
}

// eachVersionOn runs a test for each version, on real servers with these arguments.
func eachVersionOn(t *testing.T, args []string, test func(t *testing.T, server testServer, limiter testLimiter)) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			server, limiter := start(t, args...)
			test(t, server, version(t, limiter))
		})
	}
}

// address is where the server listens; the emulator does only once it is asked.
func (s testServer) address(t *testing.T) string {
	t.Helper()
	if s.emulator == nil {
		return s.Options().Addr
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.emulator.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// held is what a key holds: on a real server to the last byte, on the emulator its type,
// and the value of a string. It is empty for no key.
func (s testServer) held(t *testing.T, key string) string {
	t.Helper()
	if s.emulator == nil {
		dump, err := s.Dump(t.Context(), key).Result()
		if err == redis.Nil {
			return ""
		}
		must(t, err)
		return dump
	}
	kind, err := s.Type(t.Context(), key).Result()
	must(t, err)
	switch kind {
	case "none":
		return ""
	case "string":
		return "string " + s.Get(t.Context(), key).Val()
	}
	return kind
}

// resetStats makes stats begin anew.
func (s testServer) resetStats(t *testing.T) {
	t.Helper()
	if s.emulator != nil {
		s.counted.reset()
		return
	}
	must(t, s.ConfigResetStat(t.Context()).Err())
}

// stats counts the calls of a command since resetStats, and the failed ones among them:
// those that reached a real server, or that the client of the emulator was given.
func (s testServer) stats(t *testing.T, command string) (calls, failed int) {
	t.Helper()
	if s.emulator != nil {
		return s.counted.of(command)
	}
	info, err := s.Info(t.Context(), "commandstats").Result()
	must(t, err)
	line := regexp.MustCompile(`(?m)^cmdstat_` + regexp.QuoteMeta(command) + `:calls=(\d+),.*failed_calls=(\d+)`)
	match := line.FindStringSubmatch(info)
	if match == nil {
		return 0, 0
	}
	calls, _ = strconv.Atoi(match[1])
	failed, _ = strconv.Atoi(match[2])
	return calls, failed
}

// counter is a hook that counts commands by their name.
type counter struct {
	mu            sync.Mutex
	calls, failed map[string]int
}

func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.failed = map[string]int{}, map[string]int{}
}

func (c *counter) of(command string) (calls, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[command], c.failed[command]
}

func (c *counter) add(cmd redis.Cmder, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := cmd.Name()
	if name == "script" {
		name = fmt.Sprintf("script|%v", cmd.Args()[1])
	}
	c.calls[name]++
	if err != nil {
		c.failed[name]++
	}
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		c.add(cmd, err)
		return err
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			c.add(cmd, cmd.Err())
		}
		return err
	}
}

// newLimiter returns a limiter whose servers have the scripts.
func newLimiter(t *testing.T, client redis.UniversalClient) testLimiter {
	t.Helper()
	limiter, err := loader.New(client)
	must(t, err)
	if found, err := limiter.Load(t.Context()); err != nil || len(found) == 0 {
		t.Fatalf("%v, %v", found, err)
	}
	return testLimiter{limiter, client, nil}
}
