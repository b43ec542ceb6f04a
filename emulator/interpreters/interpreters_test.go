package interpreters

import (
	"os/exec"
	"slices"
	"testing"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision/servers"
)

// What a script asks and answers comes back as it is documented, and what a variant does
// otherwise, once.
func TestRun(t *testing.T) {
	const script = `
local time, state = redis.pcall('TIME'), redis.pcall('GET', 'k')
if time.err or #KEYS ~= 1 then
  return redis.error_reply('no')
end
redis.pcall('SET', 'k', (state or 'none') .. ARGV[1], 'EX', '7')
return {time[1] + 0, time[2] + 0, -0.0, 2^62}`
	calls := []Call{
		{UnixUs: 12_000_034, Keys: []native.Key{{Name: "k", Exists: true, Text: "a\x00 "}}, Args: []string{"\n=x"}},
		{UnixUs: 12_000_034, Keys: []native.Key{{Name: "k"}}, Args: []string{""}},
		{UnixUs: 12_000_034, Keys: []native.Key{{Name: "k"}, {Name: "k2"}}, Args: []string{""}},
		{UnixUs: 12_000_034, Keys: []native.Key{{Name: "k"}}, Refuses: "TIME"},
		{UnixUs: 12_000_034, Keys: []native.Key{{Name: "k"}}, Args: []string{"y"}, Prelude: "local ARGV = {unpack({ARGV[1] .. 'z'})}"},
	}
	want := []string{"12 34 0 4611686018427387904 1:6100200a3d78 EX 7", "12 34 0 4611686018427387904 1:6e6f6e65 EX 7",
		"error no", "error no", "12 34 0 4611686018427387904 1:6e6f6e65797a EX 7"}
	variants := []string{
		script,
		`redis.pcall('TIME'); return redis.error_reply('no')`,
		script + " + #KEYS - 1 + nil",
		`if #KEYS == 1 and not redis.pcall('TIME').err then return (function() ` + script + ` end)() end return {1, 2, 3, 4}`,
	}
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				if servers.Required() {
					t.Fatal(err)
				}
				t.Skipf("skipped: %v", err)
			}
			outcomes, differences, err := Run(t.Context(), name, script, variants, calls)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(outcomes, want) {
				t.Errorf("outcomes %q, want %q", outcomes, want)
			}
			if differences[0] != nil {
				t.Errorf("the script differs from itself: %v", *differences[0])
			}
			for i, first := range []int{0, 0, 2} {
				if d := differences[1+i]; d == nil || d.Call != first || d.Outcome == want[first] {
					t.Errorf("variant %d: %v, want a difference at call %d", 1+i, d, first)
				}
			}
			if _, _, err := Run(t.Context(), name, "return (", nil, calls); err == nil {
				t.Error("a script that is not Lua runs")
			}
		})
	}
}
