package precision

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/lua"
)

// Small worlds: numbers so small that every limit, state, cost and clock can be tried.
// For gcra_v1 the grid is 4 ns in place of 256; nothing else of the code changes.

const smallGrid = 4

// smallGCRA calls try with every case: intervals to 24, bursts to 5, costs to one above
// the burst, a TAT and a clock to 144 ns each.
func smallGCRA(grid int64, try func(c Call, tat int64)) {
	for interval := int64(1); interval <= 24; interval++ {
		for burst := int64(1); burst <= 5; burst++ {
			for cost := range burst + 2 {
				for now := range int64(144) {
					for tat := int64(0); tat <= 144; tat += grid {
						try(Call{Amount: 1, PeriodNs: interval, Burst: burst, Cost: cost, NowNs: now}, tat)
					}
				}
			}
		}
	}
}

// judgeOne holds one outcome, on a key that held the state with a ttl of 7 ms, against
// the oracle. exactTAT is what exact arithmetic has where the script has its state.
func judgeOne(script Script, grid int64, c Call, o Outcome, state State, exactTAT int64) string {
	j := Claims{script: script, fed: NewFed(script, grid), exact: NewFed(script, grid)}
	j.Hold(state, 7)
	if !script.IsWindow() {
		j.fed.tat, j.exact.tat = exactTAT, exactTAT
	}
	j.Call(&c, &o)
	return j.Broken
}

// smallV1 is the native port of gcra_v1 on the small grid.
func smallV1(c Call, tat int64) Outcome {
	state := gcraState(tat)
	d := native.GCRAV1OnGrid(smallGrid, &state, c.gcraArgs(), native.CallerClock(c.NowNs))
	o := Outcome{Err: d.Err, Verdict: Verdict{d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs},
		State: State{Exists: true, Value: instantNs(state.TAT)}, TTLMs: 7}
	if d.Written {
		o.TTLMs = d.TTLS * 1000
	}
	return o
}

// gcraState is what a gcra key holds, of a TAT below 1 s.
func gcraState(tat int64) native.GCRAState {
	return native.GCRAState{Exists: true, TAT: native.Instant{SubNs: float64(tat)}}
}

func TestSmallWorldOfGCRAV1(t *testing.T) {
	slow(t)
	tried := 0
	smallGCRA(smallGrid, func(c Call, tat int64) {
		o := smallV1(c, tat)
		// every exact TAT that the script rounds up to its own
		for below := range int64(smallGrid) {
			tried++
			if broken := judgeOne(GCRAV1, smallGrid, c, o, State{Exists: true, Value: uint64(tat)}, max(tat-below, 0)); broken != "" {
				t.Fatalf("tat %d, exact %d: %s", tat, max(tat-below, 0), broken)
			}
		}
	})
	checkObserved(t, "gcra_v1 on a grid of 4, every case", fmt.Sprintf("late %d", smallGrid-1), "nothing beyond in "+grouped(tried)+" cases")
}

// The asset itself, with 4 written in place of 256, against the native port.
func TestSmallWorldOfTheAsset(t *testing.T) {
	slow(t)
	if n := strings.Count(lua.GCRAV1, "256"); n == 0 {
		t.Fatal("gcra_v1 does not name its grid")
	}
	small := strings.ReplaceAll(lua.GCRAV1, "256", strconv.Itoa(smallGrid))
	ctx, redis := context.Background(), emulator.New()
	sha, err := redis.ScriptLoad(ctx, small).Result()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	smallGCRA(smallGrid, func(c Call, tat int64) {
		// 23 is prime to all the loops' lengths, so every value of each comes up
		if n++; n%23 != 0 {
			return
		}
		redis.Do(ctx, "SET", "k", tat)
		var o Outcome
		if err := o.reply(redis.EvalSha(ctx, sha, []string{"k"}, c.appendArgs(nil, GCRAV1)...)); err != nil {
			t.Fatal(err)
		}
		text, err := redis.Do(ctx, "GET", "k").Text()
		if err := o.value(GCRAV1, text, err); err != nil {
			t.Fatal(err)
		}
		if want := smallV1(c, tat); o.Err != want.Err || o.Verdict != want.Verdict || o.State != want.State {
			t.Fatalf("tat %d %+v: %+v, native %+v", tat, c, o, want)
		}
	})
	t.Logf("%d cases", n/23)
}

func TestSmallWorldOfGCRAV2(t *testing.T) {
	slow(t)
	tried := 0
	smallGCRA(1, func(c Call, tat int64) {
		tried++
		k := nativeKey{gcra: gcraState(tat), expires: true, expiresMs: 7}
		if broken := judgeOne(GCRAV2, 1, c, k.call(GCRAV2, &c), State{Exists: true, Value: uint64(tat)}, tat); broken != "" {
			t.Fatalf("tat %d: %s", tat, broken)
		}
	})
	t.Logf("%d cases", tried)
}

// Every count of both windows to 9, every elapsed time and cost, for windows to 16 ns and
// amounts to 8; the stored window from two before the clock's to two after it.
func TestSmallWorldOfWindows(t *testing.T) {
	slow(t)
	for _, script := range []Script{WindowV1} {
		tried := 0
		for period := int64(1); period <= 16; period++ {
			for amount := int64(1); amount <= 8; amount++ {
				for counts := uint16(1); counts < 100; counts++ { // none at all is never written
					for now := 10 * period; now < 11*period; now++ {
						for index := uint32(8); index <= 12; index++ {
							for cost := range amount + 2 {
								for _, sliding := range []bool{false, true} {
									tried++
									s := Counts{index, counts % 10, counts / 10}
									c := Call{Amount: amount, PeriodNs: period, Sliding: sliding, Cost: cost, NowNs: now}
									k := nativeKey{expires: true, expiresMs: 7, window: native.WindowState{Exists: true, PeriodNs: float64(period),
										Index: float64(index), Previous: float64(s.Previous), Current: float64(s.Current)}}
									if broken := judgeOne(script, 1, c, k.call(script, &c), newCounts(s, period), 0); broken != "" {
										t.Fatalf("%s: stored %+v: %s", script, s, broken)
									}
								}
							}
						}
					}
				}
			}
		}
		t.Logf("%s: %d cases", script, tried)
	}
}
