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
		scripts          [2]precision.Script
		sliding          bool
		burst            int64
		worst, published int64
	}{
		{"gcra, burst 10", [2]precision.Script{precision.GCRAV1, precision.GCRAV2}, false, 10, 19, 19},
		{"gcra, burst 1", [2]precision.Script{precision.GCRAV1, precision.GCRAV2}, false, 1, 10, 10},
		{"fixed", [2]precision.Script{precision.WindowV1, precision.WindowV2}, false, 1, 20, 20},
		{"sliding", [2]precision.Script{precision.WindowV1, precision.WindowV2}, true, 1, 19, 18},
	} {
		worst := int64(0)
		for _, s := range streams {
			first, second := s.Peak(limit.scripts[0], limit.sliding, limit.burst), s.Peak(limit.scripts[1], limit.sliding, limit.burst)
			// gcra_v1 gives what falls between two grid points at the next call only
			if first != second && (limit.scripts[0] == precision.WindowV1 || first > second) {
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
