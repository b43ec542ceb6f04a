package emulator

import (
	"context"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/lua"
)

func BenchmarkGCRAV1(b *testing.B) {
	benchmark(b, lua.GCRAV1, "300", "60000000000", "60", "1", "1735689600000000000")
}

func BenchmarkWindowV1(b *testing.B) {
	benchmark(b, lua.WindowV1, "300", "60000000000", "sliding", "1", "1735689600000000000")
}

func benchmark(b *testing.B, script string, args ...any) {
	ctx, r := context.Background(), New()
	sha := r.ScriptLoad(ctx, script).Val()
	b.ReportAllocs()
	for b.Loop() {
		r.Advance(time.Millisecond)
		if err := r.EvalSha(ctx, sha, []string{"user:42"}, args...).Err(); err != nil {
			b.Fatal(err)
		}
	}
}
