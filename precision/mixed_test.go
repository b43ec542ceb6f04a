package precision

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// gcra_v1 and gcra_v2 on one key, by the server's clock and by callers up to a minute ahead
// of it, over the seconds in which the key lives and dies. The interval is a multiple of
// 256 ns, so both have the same: no call is admitted before the exact limiter fed with all
// admissions admits it, whoever wrote last and however its expiry was set, and none that is
// refused is named a wait of 256 ns more than the exact one.
func TestMixedWriters(t *testing.T) {
	slow(t)
	asset, err := NewAsset()
	if err != nil {
		t.Fatal(err)
	}
	for d, traces := range map[Driver]int{NewNative(): 400, asset: 8} {
		expired, admitted, refused := 0, 0, 0
		for index := range traces {
			rng := rand.New(rand.NewPCG(1, uint64(index)))
			name := fmt.Sprint(index)
			fed := NewFed(GCRAV2, 1)
			interval := min(magnitude(rng, 1<<24), 20_000_000) * 256
			c := Call{Amount: 1, PeriodNs: interval, Burst: 1 + rng.Int64N(20)}
			server := epoch + rng.Int64N(second)/1000*1000
			endMs := int64(math.MaxInt64)
			for i := range 1000 {
				step := rng.Int64N(2*interval + 1)
				switch rng.IntN(8) {
				case 0: // when the key is gone, or was about to be
					step = fed.tat/second*second + rng.Int64N(4)*second - server
				case 1:
					step = second - server%second
				}
				server += max(step, 0) / 1000 * 1000
				c.Cost, c.ServerNs, c.NowNs, c.ByServer = 1+rng.Int64N(c.Burst), server, server, true
				if rng.IntN(3) == 0 {
					c.ByServer, c.NowNs = false, server+[]int64{0, 60 * second, rng.Int64N(60 * second)}[rng.IntN(3)]
				}
				if server/1e6 > endMs {
					expired++
				}
				script := []Script{GCRAV1, GCRAV2}[rng.IntN(2)]
				o := make([]Outcome, 1)
				if err := d.Play(script, name, []Call{c}, o); err != nil {
					t.Fatal(err)
				}
				exact := fed.Ask(&c)
				fail := func(what string) {
					t.Fatalf("%s, trace %d, call %d, %s %+v: %s: %+v, exact %+v, TAT %d",
						d.Name(), index, i, script, c, what, o[0], exact, fed.tat)
				}
				switch {
				case o[0].Err != "":
					fail("an error")
				case o[0].Status == 1 && exact.Status != 1:
					fail("early")
				case o[0].Status == 1:
					admitted++
					fed.Admit(&c)
				case o[0].RetryAfterNs-exact.RetryAfterNs >= grid: // exact's is 0 where it admits
					fail("late")
				default:
					refused++
				}
				exists := o[0].State.Exists
				endMs = server/1e6 + o[0].TTLMs
				// never over before the second of the TAT is, on the server's clock
				if exists && endMs < (int64(o[0].State.Value)/second+1)*1000 && c.ByServer {
					fail("expires early")
				}
				if o[0].Status == 1 {
					// the scripts' own TAT, which gcra_v1 has rounded up, is what is owed from here on
					if late := int64(o[0].State.Value) - fed.tat; late < 0 || late >= grid {
						fail("state")
					}
				}
			}
			_ = d.Forget(name)
		}
		t.Logf("%s: %d admitted, %d refused, %d found gone", d.Name(), admitted, refused, expired)
		if admitted == 0 || refused == 0 || expired == 0 {
			t.Error("nothing was tried")
		}
	}
}
