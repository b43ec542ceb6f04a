package emulator

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
)

// Other servers have other Luas: Lua 5.4 in Dragonfly and Garnet, LuaJIT in Kvrocks.
// Each asset answers and writes there as it does in the emulator.
func TestInterpreters(t *testing.T) {
	n := 100_000 // of each asset
	if testing.Short() {
		n = 500
	}
	var calls []recorded
	var lines bytes.Buffer
	args := []string{"testdata/interpreter.lua"}
	for i, a := range assets {
		args = append(args, "../lua/"+a.name+".lua")
		for _, c := range record(t, a, n) {
			calls = append(calls, c)
			fmt.Fprintf(&lines, "%d %d %d ", i+1, c.unixUs/1e6, c.unixUs%1e6)
			if c.key.Exists {
				fmt.Fprintf(&lines, "=%x", c.key.Text)
			} else {
				lines.WriteByte('-')
			}
			for _, arg := range c.args {
				lines.WriteString(" =" + arg)
			}
			lines.WriteByte('\n')
		}
	}
	for _, name := range []string{"lua5.1", "lua5.4", "luajit"} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				if servers.Required() {
					t.Fatal(err)
				}
				t.Skipf("skipped: %v", err)
			}
			lua := exec.CommandContext(t.Context(), name, args...)
			var stderr bytes.Buffer
			lua.Stdin, lua.Stderr = bytes.NewReader(lines.Bytes()), &stderr
			out, err := lua.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			outcomes := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
			if len(outcomes) != len(calls) {
				t.Fatalf("%d outcomes of %d calls", len(outcomes), len(calls))
			}
			different := 0
			for i, got := range outcomes {
				if c := calls[i]; got != c.outcome {
					different++
					if different <= 10 {
						t.Errorf("%s %q, key %q, server's clock %d us: %s, emulator %s",
							assets[i/n].name, c.args, c.key.Text, c.unixUs, got, c.outcome)
					}
				}
			}
			t.Logf("%d calls, %d different", len(calls), different)
		})
	}
}
