package containers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

// TestEviction runs so many other scripts that a server from Redis 7.4 on drops those
// that EVAL has loaded, those of the loader's second attempt among them.
// Redis 8 evicts scripts, and it runs in a container; the server on PATH may not. The
// loader's own tests start no containers, so this one stands here.
func TestEviction(t *testing.T) {
	t.Run("server", func(t *testing.T) { testEviction(t, servers.ForTest(t)) })
	t.Run("redis:8.0", func(t *testing.T) { testEviction(t, ForTest(t, "redis:8.0")) })
}

func testEviction(t *testing.T, server *servers.Server) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	client := server.Client()
	t.Cleanup(func() { client.Close() })
	info, err := client.Info(t.Context(), "stats").Result()
	must(err)
	evicts := strings.Contains(info, "evicted_scripts:")
	limiter, err := loader.New(client, loader.WithClock(func() time.Time { return time.Unix(1_780_000_000, 0) }))
	must(err)
	for _, limit := range []loader.Limit{
		{Amount: 10, Period: time.Hour},
		{Amount: 10, Period: time.Hour, Algorithm: loader.SlidingWindow},
	} {
		key, sha1 := "gcra", sha1Of(t, "gcra_v2")
		if limit.Algorithm != "" {
			key, sha1 = "window", sha1Of(t, "window_v1")
		}
		must(client.ScriptFlush(t.Context()).Err())
		_, err := limiter.Allow(t.Context(), key, limit) // loads the script by EVAL
		must(err)
		for round := range int64(3) {
			pipe := client.Pipeline()
			for i := range 600 {
				pipe.Eval(t.Context(), fmt.Sprintf("return %d", round*600+int64(i)), nil)
			}
			_, err := pipe.Exec(t.Context())
			must(err)
			if loaded := client.ScriptExists(t.Context(), sha1).Val(); loaded[0] == evicts {
				t.Errorf("%s, round %d: loaded is %v on a server that evicts scripts: %v", key, round, loaded[0], evicts)
			}
			got, err := limiter.Allow(t.Context(), key, limit)
			must(err)
			if !got.Allowed || got.Remaining != 8-round {
				t.Errorf("%s, round %d: %+v, want %d remaining", key, round, got, 8-round)
			}
		}
	}
}

// sha1Of returns the pinned SHA1 of a script.
func sha1Of(t *testing.T, name string) string {
	t.Helper()
	scripts, err := loader.Scripts()
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		if script.Name == name {
			return script.SHA1
		}
	}
	t.Fatalf("%s is not pinned", name)
	return ""
}
