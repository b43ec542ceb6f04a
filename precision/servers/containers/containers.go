// Package containers starts the servers of container images, for the tests and the
// suite that run against several versions. It stands apart from precision/servers, as
// what it needs is much, and nobody who uses the loader should be given it.
package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"github.com/tatami-rate/tatami/precision/servers"
)

// ErrNoDocker means that this machine has no Docker daemon to run images with.
var ErrNoDocker = errors.New("no Docker daemon answers")

// testcontainers tells stderr of every step; what goes wrong is in its errors. Its
// helper that removes what a killed test leaves is an image of its own, which may not
// be to be had: each test removes its containers, unless the environment says so.
func init() {
	log.SetDefault(log.NewNoopLogger())
	setDefault("TESTCONTAINERS_RYUK_DISABLED", "true")
}

// setDefault sets a variable of the environment that is not set.
func setDefault(name, value string) {
	if _, ok := os.LookupEnv(name); !ok {
		_ = os.Setenv(name, value) // it fails only for a name that is no name
	}
}

// ErrNone means that the environment leaves the images out.
var ErrNone = errors.New("IMAGES=none")

// Images returns the images of the matrix: those that IMAGES lists, apart by commas
// or spaces, or the default ones when it is unset or empty. With "none" it answers ErrNone.
func Images() ([]string, error) {
	list := strings.FieldsFunc(os.Getenv("IMAGES"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case len(list) == 0:
		return []string{"redis:6.0", "redis:7.0", "redis:8.0", "valkey/valkey:8.1", "valkey/valkey:9.1"}, nil
	case len(list) == 1 && list[0] == "none":
		return nil, ErrNone
	}
	return list, nil
}

// ImagesForTest are the images for a test of each. Where the environment leaves them out
// the test is skipped by name, or fails when REQUIRE_SERVERS is 1.
func ImagesForTest(tb servers.TB) []string {
	tb.Helper()
	images, err := Images()
	if err != nil {
		servers.Lacks(tb, err)
	}
	return images
}

// Start runs a container of an image that serves on port 6379, with nothing
// saved to disk. Stop removes it. An image that the daemon lacks is pulled. It answers
// ErrNoDocker when no daemon answers.
func Start(ctx context.Context, image string) (*servers.Server, error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNoDocker, err)
	}
	defer provider.Close()
	daemon, err := provider.Client().Info(ctx, client.InfoOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNoDocker, err)
	}
	// In a container testcontainers looks for ports at the gateway; those of a daemon
	// on this very machine are here.
	if host, err := os.Hostname(); err == nil && host == daemon.Info.Name {
		setDefault("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	server, err := start(ctx, image)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", image, err)
	}
	server.Name += " (" + image + ")"
	return server, nil
}

// ForTest runs a container of the image for a test and removes it when the test ends.
// Without a Docker daemon the test is skipped by name, or fails when REQUIRE_SERVERS
// is 1; an image that cannot be had is a failure.
func ForTest(tb servers.TB, image string) *servers.Server {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute) // it may be pulled
	defer cancel()
	server, err := Start(ctx, image)
	switch {
	case err == nil:
		tb.Cleanup(server.Stop)
		return server
	case errors.Is(err, ErrNoDocker):
		servers.Lacks(tb, err)
	default:
		tb.Fatalf("a real server: %v", err)
	}
	return nil
}

func start(ctx context.Context, image string) (*servers.Server, error) {
	container, err := testcontainers.Run(ctx, image, testcontainers.WithExposedPorts("6379/tcp"))
	stop := func() {
		// An error means that it has gone already, or that the daemon has.
		_ = testcontainers.TerminateContainer(container, testcontainers.StopTimeout(0))
	}
	var url string
	if err == nil {
		url, err = container.PortEndpoint(ctx, "6379/tcp", "redis")
	}
	var server *servers.Server
	if err == nil {
		server, err = ready(ctx, container, url, stop)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return server, nil
}

// ready waits until the server in the container answers, and turns off its saving:
// a child that saves takes the machine from what is measured, and one that fails
// makes the server refuse writes.
func ready(ctx context.Context, container testcontainers.Container, url string, stop func()) (*servers.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		server, err := servers.At(ctx, url, stop)
		if err == nil {
			client := server.Client()
			defer client.Close()
			return server, client.ConfigSet(ctx, "save", "").Err()
		}
		state, stateErr := container.State(ctx)
		if stateErr != nil {
			return nil, errors.Join(err, stateErr)
		}
		if !state.Running {
			return nil, fmt.Errorf("the container ended with exit code %d: %s", state.ExitCode, output(container))
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// output is what the container has printed.
func output(container testcontainers.Container) string {
	logs, err := container.Logs(context.Background())
	if err != nil {
		return err.Error()
	}
	defer logs.Close()
	text, err := io.ReadAll(logs)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}
