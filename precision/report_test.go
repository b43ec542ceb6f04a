package precision

import "testing"

func TestLateness(t *testing.T) {
	for _, script := range []Script{GCRAV1, GCRAV2} {
		counts, outside := Lateness(script, 1, 60)
		sum := int64(0)
		for _, n := range counts {
			sum += n
		}
		t.Logf("%s: %d refused, %d of them to the nanosecond, %d at 255", script, sum, counts[0], counts[255])
		if outside != 0 {
			t.Errorf("%s: %d waits are outside 0 .. 255 ns", script, outside)
		}
		if script == GCRAV1 && (counts[255] == 0 || counts[0] == sum) || script == GCRAV2 && (sum == 0 || counts[0] != sum) {
			t.Errorf("%s: %d of %d waits are exact, %d are 255 ns late", script, counts[0], sum, counts[255])
		}
	}
}

func TestSaturation(t *testing.T) {
	s := NewSaturation()
	last := len(s.AtNs) - 1
	// floor((tau + 10^6) / what an admission adds to the TAT)
	for name, got := range map[string][2]int64{
		"exact":   {s.Exact[last], (64*1100 + 1_000_000) / 1100},
		"nearest": {s.Nearest[last], (64*1100 + 1_000_000) / 1024},
		"gcra_v1": {s.V1[last], (64*1280 + 1_000_000) / 1280},
		"gcra_v2": {s.V2[last], (64*1100 + 1_000_000) / 1100},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %d admitted in 1 ms, want %d", name, got[0], got[1])
		}
	}
}
