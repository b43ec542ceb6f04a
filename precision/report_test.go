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
		if outside > 0 {
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

// The published peaks of a limit of 10 a second, of the worst of the streams and of one.
func TestStreams(t *testing.T) {
	streams := Streams()
	if len(streams) != 600 {
		t.Fatalf("%d streams", len(streams))
	}
	for _, limit := range []struct {
		name             string
		scripts          [2]Script
		sliding          bool
		burst            int64
		worst, published int64
	}{
		{"gcra, burst 10", [2]Script{GCRAV1, GCRAV2}, false, 10, 19, 19},
		{"gcra, burst 1", [2]Script{GCRAV1, GCRAV2}, false, 1, 10, 10},
		{"fixed", [2]Script{WindowV1, WindowV2}, false, 1, 20, 20},
		{"sliding", [2]Script{WindowV1, WindowV2}, true, 1, 19, 18},
	} {
		worst := int64(0)
		for _, s := range streams {
			first, second := s.Peak(limit.scripts[0], limit.sliding, limit.burst), s.Peak(limit.scripts[1], limit.sliding, limit.burst)
			// gcra_v1 gives what falls between two grid points at the next call only
			if first != second && (limit.scripts[0] == WindowV1 || first > second) {
				t.Errorf("%s: %+v: v1 %d, v2 %d", limit.name, s, first, second)
			}
			worst = max(worst, second)
			if s == (Stream{900, 500}) && second != limit.published {
				t.Errorf("%s: %+v: %d, want %d", limit.name, s, second, limit.published)
			}
		}
		if worst != limit.worst {
			t.Errorf("%s: worst %d, want %d", limit.name, worst, limit.worst)
		}
	}
}
