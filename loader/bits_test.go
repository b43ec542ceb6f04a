package loader_test

import (
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

// TestServers32 has real servers of 32 bits. Load and Verify name them so, and each
// algorithm of each version counts there to the last unit, from an empty script cache too.
func TestServers32(t *testing.T) {
	for _, architecture := range servers.Architectures32 {
		t.Run(architecture, func(t *testing.T) {
			client := servers.ForTest32(t, architecture).Client()
			t.Cleanup(func() { client.Close() })
			v2 := newLimiter(t, client)
			for name, ask := range map[string]func() ([]loader.Presence, error){
				"Load":   func() ([]loader.Presence, error) { return v2.Load(t.Context()) },
				"Verify": func() ([]loader.Presence, error) { return v2.Verify(t.Context()) },
			} {
				found, err := ask()
				if err != nil || len(found) != 4 {
					t.Errorf("%s: %v, %v, want 4 scripts", name, found, err)
				}
				for _, one := range found {
					if !one.Loaded || one.Bits != 32 {
						t.Errorf("%s: %+v, want it loaded and 32 bits", name, one)
					}
				}
			}
			for name, version := range versions {
				limiter := version(t, v2)
				for _, algorithm := range []loader.Algorithm{loader.GCRA, loader.FixedWindow, loader.SlidingWindow} {
					limit := loader.Limit{Amount: 3, Period: 1000 * time.Hour, Algorithm: algorithm}
					must(t, client.ScriptFlush(t.Context()).Err())
					for left := int64(2); left >= 0; left-- {
						if got := allow(t, limiter, name, limit, 1); !got.Allowed || got.Remaining != left {
							t.Errorf("%s, %v: %+v, want it allowed with %d remaining", name, limit, got, left)
						}
					}
					if got := allow(t, limiter, name, limit, 1); got.Allowed || got.Remaining != 0 || got.RetryAfter <= 0 {
						t.Errorf("%s, %v: %+v, want it refused", name, limit, got)
					}
					forgotten(t)(limiter.Reset(t.Context(), name, limit))
				}
			}
		})
	}
}
