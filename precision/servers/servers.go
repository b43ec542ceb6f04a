// Package servers finds and starts the real servers that tests and the precision
// suite run against: the one that REDIS_URL names, which is shared and is left as
// it was found, and servers that it starts from PATH, which are its own.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNoServer means that this machine has no server to run against.
var ErrNoServer = errors.New("no redis-server on PATH")

// Server is a running server.
type Server struct {
	// Name says what it is, such as "redis 7.0.15".
	Name string
	// URL is its redis:// address.
	URL string

	stop func()
}

// Client returns a new client of the server; the caller closes it.
func (s *Server) Client() *redis.Client {
	options, err := redis.ParseURL(s.URL)
	if err != nil {
		panic(err) // the URL has been parsed before, in named
	}
	return redis.NewClient(options)
}

// Stop ends a server that this process started and removes its files. It does
// nothing to the one that REDIS_URL names.
func (s *Server) Stop() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// FromEnv returns the server that REDIS_URL names, or nil when the variable is
// unset or empty.
func FromEnv(ctx context.Context) (*Server, error) {
	url := os.Getenv("REDIS_URL")
	if url == "" {
		return nil, nil
	}
	server, err := At(ctx, url, nil)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return server, nil
}

// At returns the server that answers at a redis:// address. Its Stop calls stop, once,
// or does nothing when that is nil.
func At(ctx context.Context, url string, stop func()) (*Server, error) {
	server := &Server{URL: url, stop: stop}
	if _, err := server.named(ctx); err != nil {
		return nil, err
	}
	return server, nil
}

// Start runs the redis-server found on PATH on a free port of the loopback
// interface, with nothing saved to disk and the given further arguments, such as
// "--maxmemory", "1mb". It answers ErrNoServer when there is none on PATH.
func Start(ctx context.Context, args ...string) (*Server, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrNoServer
	}
	return StartBinary(ctx, binary, args...)
}

// StartBinary is Start with the redis-server at a path.
func StartBinary(ctx context.Context, binary string, args ...string) (*Server, error) {
	// Between finding a free port and the server's bind another process may take
	// it; the server then exits, and the next port is tried.
	for range 5 {
		server, err := start(ctx, binary, args)
		if !errors.Is(err, errExited) {
			return server, err
		}
	}
	return nil, fmt.Errorf("%s exits at once with arguments %q", binary, args)
}

var errExited = errors.New("redis-server exited")

func start(ctx context.Context, binary string, args []string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tatami-redis-")
	if err != nil {
		return nil, err
	}
	command := exec.Command(binary, append([]string{
		"--port", port, "--bind", "127.0.0.1", "--dir", dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no",
		"--logfile", filepath.Join(dir, "log"),
	}, args...)...)
	if err := command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	exited := make(chan struct{})
	go func() {
		_ = command.Wait() // how it ended does not matter: Stop kills it
		close(exited)
	}()
	server := &Server{URL: "redis://127.0.0.1:" + port, stop: func() {
		_ = command.Process.Kill() // an error means that it has ended
		<-exited
		_ = os.RemoveAll(dir)
	}}
	for {
		// The answer may come from another server that took the port first; this one
		// then exits.
		pid, err := server.named(ctx)
		if err == nil && pid == strconv.Itoa(command.Process.Pid) {
			return server, nil
		}
		select {
		case <-exited:
			server.Stop()
			return nil, errExited
		case <-ctx.Done():
			server.Stop()
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// named asks the server what it is, and returns its process id.
func (s *Server) named(ctx context.Context) (pid string, err error) {
	options, err := redis.ParseURL(s.URL)
	if err != nil {
		return "", err
	}
	client := redis.NewClient(options)
	defer client.Close()
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	if version, ok := fields["valkey_version"]; ok {
		s.Name = "valkey " + version
	} else {
		s.Name = "redis " + fields["redis_version"]
	}
	return fields["process_id"], nil
}

// freePort finds a port below 55536, since a cluster node also binds the one 10000
// above its own.
func freePort() (string, error) {
	for {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		port := listener.Addr().(*net.TCPAddr).Port
		listener.Close()
		if port < 55536 {
			return strconv.Itoa(port), nil
		}
	}
}

// TB is the part of testing.TB that ForTest needs.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
}

// ForTest starts a server of the test's own and stops it when the test ends.
// Without one the test is skipped by name, or fails when REQUIRE_SERVERS is 1.
func ForTest(tb TB, args ...string) *Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	server, err := Start(ctx, args...)
	switch {
	case err == nil:
		tb.Cleanup(server.Stop)
		return server
	case errors.Is(err, ErrNoServer):
		Lacks(tb, err)
	default:
		tb.Fatalf("a real server: %v", err)
	}
	return nil
}

// Lacks ends a test for which something is not to be had: it is skipped by name, or fails
// when REQUIRE_SERVERS is 1.
func Lacks(tb TB, why error) {
	tb.Helper()
	if Required() {
		tb.Fatalf("REQUIRE_SERVERS=1: %v", why)
	}
	tb.Skipf("skipped: %v", why)
}

// Required tells whether REQUIRE_SERVERS=1 asks that a missing server be a failure.
func Required() bool {
	return os.Getenv("REQUIRE_SERVERS") == "1"
}
