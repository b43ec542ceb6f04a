package loader_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

func TestOptions(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "server.invalid:1"}) // nothing is sent
	defer client.Close()
	for _, test := range []struct {
		options []loader.Option
		want    string // empty: good
	}{
		{nil, ""},
		{[]loader.Option{loader.WithPrefix(""), loader.WithClock(time.Now), loader.WithScripts()}, ""},
		{[]loader.Option{loader.WithScripts("gcra_v1")}, ""},
		{[]loader.Option{loader.WithScripts("gcra_v1"), loader.WithScripts("window_v1")}, ""},
		{[]loader.Option{nil}, "tatami: an option is nil"},
		{[]loader.Option{loader.WithClock(nil)}, "tatami: the clock is nil"},
		{[]loader.Option{loader.WithPrefix("a{b")}, "tatami: the prefix has a brace"},
		{[]loader.Option{loader.WithPrefix("a}b")}, "tatami: the prefix has a brace"},
		{[]loader.Option{loader.WithScripts("gcra_v0")}, `tatami: no script is named "gcra_v0"; there are gcra_v1, gcra_v2, window_v1, limits_v1`},
		{[]loader.Option{loader.WithScripts("")}, `tatami: no script is named ""`},
		{[]loader.Option{loader.WithScripts("gcra_v1", "gcra_v2")}, "tatami: gcra_v1 and gcra_v2 are of one kind"},
		{[]loader.Option{loader.WithScripts("gcra_v1"), loader.WithScripts("gcra_v1")}, "tatami: gcra_v1 and gcra_v1 are of one kind"},
	} {
		limiter, err := loader.New(client, test.options...)
		switch {
		case test.want == "" && (err != nil || limiter == nil):
			t.Errorf("%v, want it good", err)
		case test.want != "" && (limiter != nil || err == nil || !strings.HasPrefix(err.Error(), test.want)):
			t.Errorf("%v, %v, want %s", limiter, err, test.want)
		}
	}
}

// TestMisuse has a nil context, and limiters that New has not made.
func TestMisuse(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "server.invalid:1"})
	defer client.Close()
	good, err := loader.New(client)
	must(t, err)
	limit := loader.Limit{Amount: 1, Period: time.Second}
	for _, test := range []struct {
		name    string
		limiter *loader.Limiter
		ctx     context.Context
		want    string
	}{
		{"nil context", good, nil, "tatami: the context is nil"},
		{"nil limiter", nil, t.Context(), "tatami: the limiter was not made by New"},
		{"zero limiter", &loader.Limiter{}, t.Context(), "tatami: the limiter was not made by New"},
	} {
		errs := map[string]error{}
		_, errs["Allow"] = test.limiter.Allow(test.ctx, "k", limit)
		_, errs["AllowN"] = test.limiter.AllowN(test.ctx, "k", limit, 2)
		_, errs["Peek"] = test.limiter.Peek(test.ctx, "k", limit)
		errs["AllowEach"] = test.limiter.AllowEach(test.ctx, loader.Call{Key: "k", Limit: limit, Cost: 1})[0].Err
		_, errs["Reset"] = test.limiter.Reset(test.ctx, "k", limit)
		_, errs["Delete"] = test.limiter.Delete(test.ctx, "k", limit)
		_, errs["Load"] = test.limiter.Load(test.ctx)
		_, errs["Verify"] = test.limiter.Verify(test.ctx)
		for method, err := range errs {
			if !isSpent(err, loader.ErrNotSpent) || err.Error() != test.want {
				t.Errorf("%s, %s: %v, want %s, an ErrNotSpent", test.name, method, err, test.want)
			}
		}
		if key := test.limiter.Key("k", limit); !strings.Contains(key, "{k}") {
			t.Errorf("%s: the key is %q", test.name, key)
		}
	}
}
