package emulator

import (
	"os/exec"
	"testing"

	"github.com/tatami-rate/tatami/emulator/interpreters"
	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision/servers"
)

// Each asset answers and writes in other interpreters as it does in the emulator.
func TestInterpreters(t *testing.T) {
	n := 100_000 // of each asset
	if testing.Short() {
		n = 500
	}
	recorded := map[string][]recorded{"limits_v1": recordLimits(t, n)}
	for _, a := range assets {
		recorded[a.name] = record(t, a, n)
	}
	for _, name := range interpreters.Names {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				if servers.Required() {
					t.Fatal(err)
				}
				t.Skipf("skipped: %v", err)
			}
			for script := range recorded {
				var calls []interpreters.Call
				for _, c := range recorded[script] {
					calls = append(calls, interpreters.Call{UnixUs: c.unixUs, Keys: c.keys, Args: c.args})
				}
				outcomes, _, err := interpreters.Run(t.Context(), name, lua.Assets[script], nil, calls)
				if err != nil {
					t.Fatal(err)
				}
				different := 0
				for i, c := range recorded[script] {
					if outcomes[i] != c.outcome {
						different++
						if different <= 10 {
							t.Errorf("%s %q, keys %q, server's clock %d us: %s, emulator %s",
								script, c.args, held(c.keys), c.unixUs, outcomes[i], c.outcome)
						}
					}
				}
				t.Logf("%s: %d calls, %d different", script, len(calls), different)
			}
		})
	}
}
