package precision

import "testing"

// Calls in corners that random traces seldom reach.
func TestCorners(t *testing.T) {
	eachDriver(t, func(t *testing.T, d versioned) {
		for _, text := range []string{
			// a ttl whose quotient rounds down to a whole ms
			"gcra_v1 1,1,4503599627370496,4375000000011719,0",
			// a rested key asked for more than its burst
			"gcra_v1 1,1000,2,1,1780000000000000000 1,1000,2,3,1790000000000000000",
			"gcra_v2 1,1000,2,1,1780000000000000000 1,1000,2,3,1790000000000000000",
			// a TAT 2^53 ns ahead of a clock that ran back
			"gcra_v1 1,1000,2,1,1709007199254740992 1,1000,2,1,1700000000000000012",
			"gcra_v2 2,4503599627370496,2,1,1709007199254740992 2,4503599627370496,2,1,1700000000000000000",
		} {
			trace, err := ParseTrace(text)
			if err != nil {
				t.Fatal(err)
			}
			outcomes := make([]Outcome, len(trace.Calls))
			if err := d.Play(trace.Script, text, trace.Calls, outcomes); err != nil {
				t.Fatal(err)
			}
			if tally := Judge(trace, outcomes); !tally.Sound() {
				t.Errorf("%s: %s", text, tally.Broken)
			}
		}
	})
}
