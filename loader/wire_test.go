package loader_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/lua"
)

// words are the words of one command, an array of bulk strings.
func words(t *testing.T, command []byte) (all []string) {
	t.Helper()
	count, rest, _ := bytes.Cut(command, []byte("\r\n"))
	n, err := strconv.Atoi(string(count[1:]))
	must(t, err)
	r := bufio.NewReader(bytes.NewReader(rest))
	for range n {
		word, err := readValue(r)
		must(t, err)
		_, text, _ := strings.Cut(string(word), "\r\n")
		all = append(all, strings.TrimSuffix(text, "\r\n"))
	}
	return all
}

// calls are the EVALSHA and EVAL that the server was sent since the last reset, a line
// each. A script's text or SHA1 stands in them as its name.
func (p *proxy) calls(t *testing.T) (all []string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, command := range p.sent {
		if !isEvalsha(command) && !isCommand(command, "eval") {
			continue
		}
		sent := words(t, command)
		for name, text := range lua.Assets {
			if sent[0] == "evalsha" && sent[1] == sha1Of(t, name) || sent[0] == "eval" && sent[1] == text {
				sent[1] = name
			}
		}
		all = append(all, strings.Join(sent, " "))
	}
	return all
}

// TestOnTheWire reads what each call sends: the SHA1 of the limit's script with the limit
// and the cost, and then, to a server that lacks it, the text of that same script with the
// same words.
func TestOnTheWire(t *testing.T) { eachServer(t, testOnTheWire) }

func testOnTheWire(t *testing.T, server testServer, _ testLimiter) {
	v2, p, _ := through(t, server)
	for gcra, limiter := range map[string]testLimiter{"gcra_v2": v2, "gcra_v1": v2.WithV1(t)} {
		const hour = time.Hour
		for _, test := range []struct {
			limit  loader.Limit
			script string
			words  string // amount, period_ns, burst or mode
		}{
			{loader.Limit{Amount: 300, Period: time.Hour, Burst: 60}, gcra, "300 3600000000000 60"},
			{loader.Limit{Amount: 20, Period: 2 * hour}, gcra, "20 7200000000000 20"},
			{loader.Limit{Amount: 30, Period: 3 * hour, Burst: 9, Algorithm: loader.GCRA}, gcra, "30 10800000000000 9"},
			{loader.Limit{Amount: 40, Period: 4 * hour, Burst: 8, Algorithm: loader.TokenBucket}, gcra, "40 14400000000000 8"},
			{loader.Limit{Amount: 50, Period: 5 * hour, Burst: 7, Algorithm: loader.LeakyBucket}, gcra, "50 18000000000000 7"},
			{loader.Limit{Amount: 60, Period: 6 * hour, Algorithm: loader.FixedWindow}, "window_v1", "60 21600000000000 fixed"},
			{loader.Limit{Amount: 70, Period: 7 * hour, Algorithm: loader.SlidingWindow}, "window_v1", "70 25200000000000 sliding"},
		} {
			for _, ask := range asks {
				if ask.costs == nil {
					continue
				}
				for _, lacks := range []bool{false, true} {
					must(t, server.FlushAll(t.Context()).Err())
					must(t, server.ScriptFlush(t.Context()).Err())
					if !lacks {
						must(t, server.ScriptLoad(t.Context(), lua.Assets[test.script]).Err())
					}
					by, clock := limiter, ""
					if len(ask.costs)%2 == 0 { // some by a caller's clock
						by, clock = limiter.WithClock(t, clockAt(5)), " 1780000000000000005"
					}
					p.resetSent()
					outcomes := ask.do(t.Context(), by.Limiter, "k", test.limit)
					var bySHA, byText []string
					for i, cost := range ask.costs {
						key := by.Key(fmt.Sprint("k", i), test.limit)
						got, left := outcomes[i], test.limit.Quota()-cost
						if got.Err != nil || !got.Allowed || got.Remaining != left || got.Key != key || got.Limit != test.limit {
							t.Errorf("%v, %s of %d, lacks the script %v: %+v, want it allowed at %s with %d remaining",
								test.limit, ask.name, cost, lacks, got, key, left)
						}
						rest := fmt.Sprintf(" %s 1 %s %s %d%s", test.script, key, test.words, cost, clock)
						bySHA, byText = append(bySHA, "evalsha"+rest), append(byText, "eval"+rest)
					}
					want := bySHA
					if lacks {
						want = append(bySHA, byText...)
					}
					if sent := p.calls(t); !slices.Equal(sent, want) {
						t.Errorf("%v, %s, lacks the script %v: sent\n%.300q\nwant\n%.300q", test.limit, ask.name, lacks, sent, want)
					}
				}
			}
		}
	}
}

// ask is a way to call. Its keys are key with 0 behind it, and then 1 and so on.
type ask struct {
	name  string
	costs []int64 // nil: it asks for no units
	do    func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) []loader.Outcome
}

// asks are all of them.
var asks = []ask{
	one("Allow", []int64{1}, func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) (loader.Result, error) {
		return l.Allow(ctx, key, limit)
	}),
	one("AllowN", []int64{3}, func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) (loader.Result, error) {
		return l.AllowN(ctx, key, limit, 3)
	}),
	one("Peek", []int64{0}, func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) (loader.Result, error) {
		return l.Peek(ctx, key, limit)
	}),
	each("AllowEach of one", 2),
	each("AllowEach", 4, 0, 1, 5),
	one("Reset", nil, func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) (loader.Result, error) {
		_, err := l.Reset(ctx, key, limit)
		return loader.Result{}, err
	}),
	one("Delete", nil, func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) (loader.Result, error) {
		_, err := l.Delete(ctx, key, limit)
		return loader.Result{}, err
	}),
}

func one(name string, costs []int64,
	do func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) (loader.Result, error)) ask {
	return ask{name, costs, func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) []loader.Outcome {
		result, err := do(ctx, l, key+"0", limit)
		return []loader.Outcome{{Result: result, Err: err}}
	}}
}

func each(name string, costs ...int64) ask {
	return ask{name, costs, func(ctx context.Context, l *loader.Limiter, key string, limit loader.Limit) []loader.Outcome {
		var calls []loader.Call
		for i, cost := range costs {
			calls = append(calls, loader.Call{Key: fmt.Sprint(key, i), Limit: limit, Cost: cost})
		}
		return l.AllowEach(ctx, calls...)
	}}
}
