package precision

import (
	"testing"
	"time"
)

// By a real server's own clock, and with callers beside it, for some seconds.
func TestServersOwnClock(t *testing.T) { testLive(t, realDriver(t), 6*time.Second) }

func testLive(t *testing.T, real *Real, lasting time.Duration) {
	for _, s := range Scripts {
		for name, callers := range map[string]bool{"alone": false, "with callers": true} {
			t.Run(string(s.Script)+" "+name, func(t *testing.T) {
				t.Parallel()
				tally, err := real.Live(s.Script, 1, lasting, callers)
				if err != nil {
					t.Fatal(err)
				}
				if !tally.Sound() {
					t.Error(tally.Broken)
				}
				if tally.Admitted == 0 || tally.Admitted == tally.Decisions {
					t.Errorf("%d of %d admitted", tally.Admitted, tally.Decisions)
				}
				t.Logf("%d decisions, %d admitted", tally.Decisions, tally.Admitted)
			})
		}
	}
}
