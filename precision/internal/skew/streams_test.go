package skew

import (
	"testing"

	"github.com/tatami-rate/tatami/precision"
)

// The published peaks of a limit of 10 a second, of the worst of the streams and of one.
func TestStreams(t *testing.T) {
	streams := Streams()
	if len(streams) != 600 {
		t.Fatalf("%d streams", len(streams))
	}
	for _, limit := range []struct {
		name             string
		script           precision.Script
		sliding          bool
		burst            int64
		worst, published int64
	}{
		{"gcra, burst 10", precision.GCRAV2, false, 10, 19, 19},
		{"gcra, burst 1", precision.GCRAV2, false, 1, 10, 10},
		{"fixed", precision.WindowV1, false, 1, 20, 20},
		{"sliding", precision.WindowV1, true, 1, 19, 18},
	} {
		worst := int64(0)
		for _, s := range streams {
			most := s.Peak(limit.script, limit.sliding, limit.burst)
			// gcra_v1 gives what falls between two grid points at the next call only
			if v1 := s.Peak(precision.GCRAV1, false, limit.burst); limit.script == precision.GCRAV2 && v1 > most {
				t.Errorf("%s: %+v: v1 %d, v2 %d", limit.name, s, v1, most)
			}
			worst = max(worst, most)
			if s == (Stream{900, 500}) && most != limit.published {
				t.Errorf("%s: %+v: %d, want %d", limit.name, s, most, limit.published)
			}
		}
		if worst != limit.worst {
			t.Errorf("%s: worst %d, want %d", limit.name, worst, limit.worst)
		}
	}
}
