package skew

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tatami-rate/tatami/precision"
)

// No stretch of any run is above what is proven, and each proof is met exactly by some
// run, so that none could be a unit less.
func TestSkew(t *testing.T) {
	const runs = 50
	for _, algorithm := range Algorithms {
		for _, clock := range []string{"server", "caller"} {
			name := fmt.Sprintf("%s sliding %v, %s's clock", algorithm.Script, algorithm.Sliding, clock)
			played, met := 0, 0
			for run := range uint64(runs) {
				g, rng := newGateways(run)
				g.Script, g.Limit.Sliding = algorithm.Script, algorithm.Sliding
				if clock == "server" {
					clear(g.OffsetsNs)
				}
				for i, traffic := range traffics {
					played++
					admitted := g.play(traffic.calls(g, rng))
					for _, periods := range []int64{1, 2, 5, 100} {
						lengthNs := periods * g.Limit.PeriodNs
						most, bound := peak(admitted, lengthNs), g.bound(lengthNs)
						if most > bound {
							t.Fatalf("%s: run %d, traffic %d, %d periods: %d units, bound %d; %+v",
								name, run, i, periods, most, bound, *g)
						}
						if most == bound && periods == 1 {
							met++
						}
					}
				}
			}
			t.Logf("%s: bound met in %d of %d runs", name, met, played)
			if met == 0 {
				t.Errorf("%s: no run meets the bound", name)
			}
		}
	}
}

// newGateways returns 2 to 8 gateways with clocks off by up to 2 s, and a limit.
func newGateways(run uint64) (*gateways, *rand.Rand) {
	rng := rand.New(rand.NewPCG(1, run))
	g := &gateways{Limit: precision.Call{Amount: 2 + rng.Int64N(19), PeriodNs: 3e8 + rng.Int64N(3e9), Burst: 1 + rng.Int64N(20)}}
	for range 2 + rng.IntN(7) {
		g.OffsetsNs = append(g.OffsetsNs, rng.Int64N(4e9+1)-2e9)
	}
	slices.Sort(g.OffsetsNs)
	return g, rng
}
