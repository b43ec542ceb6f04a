package loader_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
)

// use is what was really used of an ask, at its instant by the server's clock.
type use struct{ ns, cost, used int64 }

// TestSpans has 100 callers reserve units of one key and settle them after random times. In
// every span of time what was really used, each unit at its ask's instant, is at most
// burst + span / interval. Where more is used than was asked for it is above that by no more
// than the excess.
func TestSpans(t *testing.T) {
	_, limiter := start(t)
	for name, most := range map[string]float64{"give-backs": 1, "over-use": 1.2} {
		t.Run(name, func(t *testing.T) { testSpans(t, limiter, name, most) })
	}
}

func testSpans(t *testing.T, limiter testLimiter, key string, most float64) {
	const callers, rounds = 100, 20
	limit := loader.Limit{Amount: 500, Period: time.Second, Burst: 100}
	interval := int64(limit.Interval())
	var mu sync.Mutex
	var uses []use
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			random := rand.New(rand.NewPCG(3, uint64(caller)))
			for range rounds {
				cost := 1 + random.Int64N(20)
				r, err := limiter.Reserve(t.Context(), loader.Ask{Key: key, Limit: limit, Cost: cost})
				if err != nil {
					t.Error(err)
					return
				}
				// A wait of up to 300 ms: some settle before their units have drained, some after.
				time.Sleep(time.Duration(random.Int64N(300e6)))
				if !r.OK {
					continue
				}
				used := cost
				if random.IntN(2) == 0 {
					used = int64(float64(cost) * most * random.Float64())
				}
				if err := r.Settle(t.Context(), used); err != nil {
					t.Error(err)
				}
				// The receipt begins with the TAT just after the ask, which ResetAfter leads to.
				tat, _, _ := strings.Cut(r.Receipts[0], " ")
				ns, err := strconv.ParseInt(tat, 10, 64)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				uses = append(uses, use{ns - int64(r.Results[0].ResetAfter), cost, used})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.SortFunc(uses, func(a, b use) int { return int(a.ns - b.ns) })
	worst, over := int64(math.MinInt64), int64(math.MinInt64) // above the bound in ns, the over-use not counted
	for i := range uses {
		units, excess := int64(0), int64(0)
		for j := i; j < len(uses); j++ {
			units += uses[j].used
			excess += max(uses[j].used-uses[j].cost, 0)
			// units <= burst + span / interval
			above := units*interval - limit.Burst*interval - (uses[j].ns - uses[i].ns)
			worst, over = max(worst, above-excess*interval), max(over, above)
		}
	}
	t.Logf("%d of %d admitted; the most is %.2f units above the bound", len(uses), callers*rounds, float64(over)/float64(interval))
	if worst > 0 {
		t.Errorf("%.2f units above burst + span / interval and the over-use", float64(worst)/float64(interval))
	}
	if most == 1 && over > 0 || len(uses) < callers {
		t.Errorf("%d admitted, %d ns above burst + span / interval, want %d at least and 0 at most", len(uses), over, callers)
	}
}
