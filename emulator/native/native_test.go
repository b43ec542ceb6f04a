package native

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// A program that decides in memory brings in this package, and nothing that others wrote.
func TestNoThirdParty(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(list))
	if len(packages) == 0 {
		t.Fatal("go list names no package, not even this one")
	}
	for _, name := range packages {
		if !strings.HasPrefix(name, "github.com/tatami-rate/tatami/") {
			t.Errorf("it depends on %s", name)
		}
	}
}

func TestNoAllocation(t *testing.T) {
	for name, call := range decisions() {
		if n := testing.AllocsPerRun(1000, call); n != 0 {
			t.Errorf("%s: %v allocations a decision", name, n)
		}
	}
}

func BenchmarkDecisions(b *testing.B) {
	for name, call := range decisions() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				call()
			}
		})
	}
}

// decisions are decisions of each kind, 10 us after the one before.
func decisions() map[string]func() {
	const start = int64(1_780_000_000_000_000_000)
	calls := map[string]func(){}
	for name, burst := range map[string]float64{"admitted": 1e6, "refused": 1} {
		args := GCRAArgs{300, 60e9, burst, 1}
		for script, gcra := range map[string]func(*GCRAState, GCRAArgs, Clock) Decision{
			"gcra_v1": GCRAV1, "gcra_v2": GCRAV2,
		} {
			now, state := start, GCRAState{}
			calls[script+" "+name] = func() {
				gcra(&state, args, CallerClock(now))
				now += 10_000
			}
		}
	}
	for _, sliding := range []bool{false, true} {
		args := WindowArgs{Amount: 300, PeriodNs: 1e6, Sliding: sliding, Cost: 1}
		now, state := start, WindowState{}
		calls[fmt.Sprintf("window_v1 sliding=%v", sliding)] = func() {
			WindowV1(&state, args, CallerClock(now))
			now += 10_000
		}
	}
	for name, keys := range map[string][]LimitsKey{
		"one": {{Kind: "gcra", Amount: 300, PeriodNs: 60e9, Burst: 1e6, Cost: 1}},
		"two": {{Kind: "gcra", Amount: 300, PeriodNs: 60e9, Burst: 1e6, Cost: 1},
			{Kind: "sliding", Amount: 300, PeriodNs: 1e6, Cost: 1}},
		"over-use": {{Kind: "gcra", Amount: 300, PeriodNs: 60e9, Burst: 1e6, Cost: 1, Receipt: "1"}},
	} {
		now := start
		calls["limits_v1 "+name] = func() {
			LimitsV1(keys, CallerClock(now))
			now += 10_000
		}
	}
	return calls
}
