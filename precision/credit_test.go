package precision

import "testing"

// Keys with credit, by callers' clocks and by the server's: each way in which gcra_v2 can
// write one is met, and the claims hold on every driver.
func TestCredit(t *testing.T) {
	asset, err := NewAsset()
	if err != nil {
		t.Fatal(err)
	}
	for _, style := range []int{credited, servedCredited} {
		drivers := []Driver{NewNative(), asset}
		if style == credited {
			drivers = append(drivers, realDriver(t))
		}
		var given, raised, kept, stayed, gone int
		for round := range 4 {
			index := round * len(gcraStyles[GCRAV2])
			for gcraStyles[GCRAV2][index%len(gcraStyles[GCRAV2])] != style {
				index++
			}
			trace := NewTrace(GCRAV2, 1, index)
			for _, d := range drivers {
				outcomes := make([]Outcome, len(trace.Calls))
				if err := d.Play(GCRAV2, trace.String()[:40], trace.Calls, outcomes); err != nil {
					t.Fatal(err)
				}
				if tally := Judge(trace, outcomes); !tally.Sound() {
					t.Errorf("style %d on %s: %s", style, d.Name(), tally.Broken)
				}
			}
			before, endMs := State{}, int64(0)
			for i, o := range trace.Native {
				c := &trace.Calls[i]
				if c.Given != "" {
					given++
					var ttlMs int64
					before, ttlMs = c.given()
					endMs = c.ServerNs/1e6 + ttlMs
				}
				nowEndMs := c.ServerNs/1e6 + o.TTLMs
				switch {
				case before.Credit != "" && !o.State.Exists || before.Credit != "" && o.State.Credit == "":
					gone++
				case o.Status == 1 && c.Cost > 0 && o.State.Credit != "":
					if o.State.Last > before.Last {
						raised++
					} else {
						kept++
					}
					if nowEndMs == endMs {
						stayed++
					}
				}
				before, endMs = o.State, nowEndMs
			}
		}
		t.Logf("style %d: %d given, last raised %d times and kept %d, %d expiries stayed, %d keys gone",
			style, given, raised, kept, stayed, gone)
		if given == 0 || raised == 0 || kept == 0 || style == servedCredited && (stayed == 0 || gone == 0) {
			t.Error("something was not met")
		}
	}
}
