package precision

import "testing"

// The decisions of a seeded run, pinned, so that two machines can compare.
func TestHashIsPinned(t *testing.T) {
	slow(t)
	rows, hash := Long(1, 800_000, func(int) {})
	for _, row := range rows {
		if !row.Sound() {
			t.Errorf("%s: %s", row.Script, row.Broken)
		}
	}
	const want = 0xf79db258069ccc73
	if hash != want {
		t.Errorf("hash %#016x, want %#016x", hash, uint64(want))
	}
}

func BenchmarkLong(b *testing.B) {
	for b.Loop() {
		Long(1, 4_000_000, func(int) {})
	}
}
