package emulator

import (
	"context"
	"testing"
	"time"
)

func BenchmarkAssets(b *testing.B) {
	for _, a := range assets {
		b.Run(a.name, func(b *testing.B) { benchmark(b, a) })
	}
}

func benchmark(b *testing.B, a asset) {
	ctx, r := context.Background(), New()
	sha := r.ScriptLoad(ctx, a.script).Val()
	b.ReportAllocs()
	for b.Loop() {
		r.Advance(time.Millisecond)
		if err := r.EvalSha(ctx, sha, []string{"user:42"}, a.args...).Err(); err != nil {
			b.Fatal(err)
		}
	}
}
