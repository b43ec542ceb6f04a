package loader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

func reserve(t *testing.T, limiter testLimiter, asks ...loader.Ask) *loader.Reservation {
	t.Helper()
	r, err := limiter.Reserve(t.Context(), asks...)
	must(t, err)
	if len(r.Results) != len(asks) || len(r.Receipts) != len(asks) {
		t.Fatalf("%d results and %d receipts of %d asks", len(r.Results), len(r.Receipts), len(asks))
	}
	for i, ask := range asks {
		if got, key := r.Results[i], limiter.Key(ask.Key, ask.Limit); got.Limit != ask.Limit || got.Key != key {
			t.Fatalf("ask %d: the result says %v at %s, want %v at %s", i, got.Limit, got.Key, ask.Limit, key)
		}
		if charged := r.OK && ask.Cost > 0; charged != (r.Receipts[i] != "") {
			t.Fatalf("ask %d: OK %v, cost %d and the receipt %q", i, r.OK, ask.Cost, r.Receipts[i])
		}
	}
	return r
}

// remaining is what Peek tells of each ask's limit.
func remaining(t *testing.T, limiter testLimiter, asks ...loader.Ask) (all []int64) {
	t.Helper()
	for _, ask := range asks {
		all = append(all, allow(t, limiter, ask.Key, ask.Limit, 0).Remaining)
	}
	return all
}

func holds(t *testing.T, what string, limiter testLimiter, asks []loader.Ask, want ...int64) {
	t.Helper()
	if got := remaining(t, limiter, asks...); !slices.Equal(got, want) {
		t.Errorf("%s: %v remaining, want %v", what, got, want)
	}
}

// stillCharged holds an error against naming these asks and no others.
func stillCharged(t *testing.T, what string, err, spent error, asks ...int) {
	t.Helper()
	var charged *loader.ChargedError
	if !isSpent(err, spent) || !strings.HasPrefix(err.Error(), "tatami: ") || strings.Count(err.Error(), "tatami: ") != 1 {
		t.Errorf("%s: %v, want %v", what, err, spent)
	}
	if errors.As(err, &charged); charged == nil && len(asks) > 0 || charged != nil && !slices.Equal(charged.Asks, asks) {
		t.Errorf("%s: %v, want that it names the asks %v", what, err, asks)
	}
}

var (
	perMinute = loader.Limit{Amount: 60, Period: time.Minute, Burst: 10}
	perHour   = loader.Limit{Amount: 3600, Period: time.Hour, Burst: 100, Name: "hour"}
	perDay    = loader.Limit{Amount: 1000, Period: 24 * time.Hour, Algorithm: loader.SlidingWindow}
)

// One limit answers as Allow does, whatever it is, and so does each of several.
func TestReserveAsAllow(t *testing.T) {
	eachServer(t, func(t *testing.T, _ testServer, limiter testLimiter) {
		var limits []loader.Limit
		for _, algorithm := range []loader.Algorithm{"", loader.TokenBucket, loader.LeakyBucket, loader.FixedWindow, loader.SlidingWindow} {
			limits = append(limits, loader.Limit{Amount: 7, Period: 10 * time.Second, Algorithm: algorithm})
		}
		limits = append(limits, perMinute, perHour)
		random := rand.New(rand.NewPCG(1, 1))
		for ns := int64(0); ns < 30e9; ns += random.Int64N(1e9) {
			at := limiter.WithClock(t, clockAt(ns))
			var together []loader.Ask
			for i, limit := range limits {
				cost := random.Int64N(9) // 8 is above the amount
				want := allow(t, at, fmt.Sprint("allow", i), limit, cost)
				r := reserve(t, at, loader.Ask{Key: fmt.Sprint("reserve", i), Limit: limit, Cost: cost})
				got := r.Results[0]
				got.Limit, got.Key = loader.Limit{}, ""
				if got != want || r.OK != want.Allowed || r.RetryAfter != want.RetryAfter || r.InTurn || r.Binding != 0 {
					t.Fatalf("%v, cost %d: %+v of %+v, want %+v", limit, cost, got, r, want)
				}
				together = append(together, loader.Ask{Key: fmt.Sprint("reserve", i), Limit: limit})
			}
			for i, got := range reserve(t, at, together...).Results {
				if want := allow(t, at, fmt.Sprint("allow", i), limits[i], 0); got.Remaining != want.Remaining || got.ResetAfter != want.ResetAfter {
					t.Fatalf("%v of several: %+v, want %+v", limits[i], got, want)
				}
			}
		}
	})
}

func TestReserve(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, limiter testLimiter) {
		at := limiter.WithClock(t, clockAt(0))
		asks := []loader.Ask{{"u", perMinute, 4}, {"u", perHour, 90}, {"org", perDay, 100}}
		with := func(costs ...int64) (all []loader.Ask) {
			for i, cost := range costs {
				ask := asks[i]
				ask.Cost = cost
				all = append(all, ask)
			}
			return all
		}
		// Shares of 6/10, 10/100 and 900/1000 are left.
		first := reserve(t, at, asks...)
		if !first.OK || first.RetryAfter != 0 || first.InTurn || first.Binding != 1 {
			t.Errorf("%+v, want it OK, and the second as the tightest", first)
		}
		holds(t, "charged", at, asks, 6, 10, 900)

		// Waits of 1 s for the first and of 5 s for the second, which has the longest.
		for _, costs := range [][]int64{{7, 15, 1}, {7, 15, 0}, {0, 15, 900}} {
			r := reserve(t, at, with(costs...)...)
			if r.OK || r.RetryAfter != 5*time.Second || r.Binding != 1 || r.Results[1].RetryAfter != r.RetryAfter || !r.Results[2].Allowed {
				t.Errorf("%v: %+v, want it refused for 5 s by the second", costs, r)
			}
			holds(t, "refused", at, asks, 6, 10, 900)
			must(t, r.Settle(t.Context(), 1, 1, 1))
			must(t, r.Cancel(t.Context()))
			holds(t, "a refused one settled", at, asks, 6, 10, 900)
		}
		early := reserve(t, limiter.WithClock(t, clockAt(5e9-1)), with(7, 15, 1)...)
		if early.OK || early.RetryAfter != 1 {
			t.Errorf("1 ns early: %+v, want it refused for 1 ns", early)
		}

		// The second can never get 101, though the third would have to wait.
		never := reserve(t, at, with(1, 101, 950)...)
		if never.OK || never.RetryAfter != -1 || never.Binding != 1 || !never.Results[1].Unfittable || never.Results[2].RetryAfter < 1 {
			t.Errorf("%+v, want one that is never admitted, by the second", never)
		}

		late := limiter.WithClock(t, clockAt(5e9))
		second := reserve(t, late, with(7, 15, 1)...)
		if !second.OK {
			t.Errorf("at its wait's end: %+v, want it OK", second)
		}
		holds(t, "charged again", late, asks, 3, 0, 899) // 6 + 4 (full) - 7; 10 + 5 - 15
		must(t, second.Settle(t.Context(), 2, 15, 3))
		holds(t, "settled", late, asks, 8, 0, 897)
		must(t, first.Cancel(t.Context())) // by its own clock, at 0
		must(t, second.Settle(t.Context(), 0, 0, 0))
		must(t, second.Cancel(t.Context()))
		if n := server.Exists(t.Context(), late.Key("u", perMinute)).Val(); n != 1 {
			t.Error("no key")
		}
	})
}

// What is given back, and when it is worth nothing.
func TestSettle(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, limiter testLimiter) {
		var ns int64
		clocked := limiter.WithClock(t, func() time.Time { return clockAt(ns)() })
		ctx := t.Context()
		ask := func(cost int64) []loader.Ask { return []loader.Ask{{"k", perMinute, cost}} }

		r := reserve(t, clocked, ask(10)...)
		ns = 4e9
		must(t, r.Settle(ctx, 7))
		holds(t, "3 of 10 back after 4 s", clocked, ask(0), 7)
		for _, used := range []int64{0, 7, 10, 20} {
			must(t, r.Settle(ctx, used))
		}
		must(t, r.Cancel(ctx))
		holds(t, "settled again", clocked, ask(0), 7)

		// After 60 s all has drained, and nothing is there to give back.
		ns = 64e9
		r = reserve(t, clocked, ask(5)...)
		ns = 124e9
		other := reserve(t, clocked, ask(5)...)
		must(t, r.Cancel(ctx))
		holds(t, "given back after it has drained", clocked, ask(0), 5)
		must(t, other.Cancel(ctx))
		holds(t, "cancelled at once", clocked, ask(0), 10)

		// 15 more than asked for are a debt of 5 s, in which nothing passes, and no look.
		ns = 200e9
		r = reserve(t, clocked, ask(10)...)
		must(t, r.Settle(ctx, 15))
		for _, cost := range []int64{0, 1} {
			want := time.Duration(cost+5) * time.Second
			if got := reserve(t, clocked, ask(cost)...); got.OK || got.RetryAfter != want {
				t.Errorf("in debt, cost %d: %+v, want it refused for %v", cost, got, want)
			}
		}
		ns = 206e9
		if got := reserve(t, clocked, ask(1)...); !got.OK || got.Results[0].Remaining != 0 {
			t.Errorf("after the debt: %+v, want one unit", got)
		}

		// A limit that is only charged afterwards.
		ns = 300e9
		after := []loader.Ask{{"after", perMinute, 0}, {"after", perDay, 0}}
		r = reserve(t, clocked, after...)
		must(t, r.Settle(ctx, 3, 40))
		holds(t, "charged afterwards", clocked, after, 7, 960)
		must(t, r.Settle(ctx, 3, 40))
		holds(t, "charged afterwards, twice", clocked, after, 7, 960)

		// What was used as asked for is settled by no call.
		asks := []loader.Ask{{"same", perMinute, 4}, {"same", perHour, 4}}
		r = reserve(t, clocked, asks...)
		server.resetStats(t)
		must(t, r.Settle(ctx, 4, 4))
		must(t, r.Settle(ctx, 0, 0))
		if n, _ := server.stats(t, "evalsha"); n != 0 {
			t.Errorf("%d calls to settle nothing", n)
		}
		holds(t, "used as asked for", clocked, asks, 6, 96)

		// By its receipts another process settles it.
		asks = []loader.Ask{{"moved", perMinute, 4}, {"moved", perDay, 7}}
		r = reserve(t, clocked, asks...)
		reopened, err := limiter.WithClock(t, clockAt(ns)).Reopen(r.Receipts, asks...)
		must(t, err)
		must(t, reopened.Settle(ctx, 1, 9))
		must(t, reopened.Cancel(ctx))
		holds(t, "reopened", clocked, asks, 9, 991)

		// 32 limits, in one call.
		var many []loader.Ask
		for i := range 32 {
			limit := perMinute
			limit.Name = fmt.Sprint("n", i)
			many = append(many, loader.Ask{Key: "many", Limit: limit, Cost: int64(i % 11)})
		}
		server.resetStats(t)
		r = reserve(t, clocked, many...)
		must(t, r.Cancel(ctx))
		if n, _ := server.stats(t, "evalsha"); n != 2 {
			t.Errorf("32 limits: %d calls to reserve and cancel, want 2", n)
		}
		holds(t, "32 cancelled", clocked, many, slices.Repeat([]int64{10}, 32)...)
	})
}

// TestReserveRefusedUnsent counts what reaches the server: nothing.
func TestReserveRefusedUnsent(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, limiter testLimiter) {
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		good := loader.Ask{Key: "k", Limit: perMinute, Cost: 1}
		renamed := perMinute
		renamed.Name = "a"
		open := reserve(t, limiter, good)
		server.resetStats(t)
		for _, test := range []struct {
			ctx  context.Context
			asks []loader.Ask
			want error
			text string
		}{
			{nil, nil, loader.ErrAsks, "there are 0, want 1 to 32"},
			{nil, slices.Repeat([]loader.Ask{good}, 33), loader.ErrAsks, "there are 33, want 1 to 32"},
			{nil, []loader.Ask{good, {"k", perHour, 1}, good}, loader.ErrAsks, "asks 1 and 3 have one Redis key; a Name keeps limits apart"},
			{nil, []loader.Ask{{"{k}:a", perMinute, 1}, {"k", renamed, 1}}, loader.ErrAsks, "asks 1 and 2 have one Redis key; .*"},
			{nil, []loader.Ask{good, {"", perHour, 1}}, loader.ErrKey, "ask 2: the key is empty"},
			{nil, []loader.Ask{good, {"l", perHour, -1}}, loader.ErrCost, "ask 2: .*cost -1 is outside.*"},
			{nil, []loader.Ask{{"l", perHour, 1<<52 + 1}}, loader.ErrCost, "ask 1: .*is outside.*"},
			{nil, []loader.Ask{{"l", loader.Limit{}, 1}}, loader.ErrLimit, "ask 1: limit 0 per 0s gcra: period.*"},
			{cancelled, []loader.Ask{good}, context.Canceled, "context canceled"},
		} {
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			r, err := limiter.Reserve(ctx, test.asks...)
			if r == nil || r.OK || !errors.Is(err, test.want) || !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("%v: %+v, %v, want %v", test.asks, r, err, test.want)
				continue
			}
			if !matchesText(strings.TrimPrefix(err.Error(), test.want.Error()+": "), test.text) && !strings.HasSuffix(err.Error(), test.text) {
				t.Errorf("%v: %v, want ... %s", test.asks, err, test.text)
			}
			must(t, r.Settle(t.Context(), make([]int64, len(test.asks))...))
			must(t, r.Cancel(t.Context()))
		}
		for _, test := range []struct {
			used []int64
			want error
		}{{nil, loader.ErrAsks}, {[]int64{1, 1}, loader.ErrAsks}, {[]int64{-1}, loader.ErrCost}, {[]int64{1<<52 + 1}, loader.ErrCost}} {
			if err := open.Settle(t.Context(), test.used...); !errors.Is(err, test.want) || !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("Settle %v: %v, want %v", test.used, err, test.want)
			}
		}
		if _, err := limiter.Reopen(nil, good); !errors.Is(err, loader.ErrAsks) {
			t.Errorf("Reopen without receipts: %v, want an ErrAsks", err)
		}
		if _, err := limiter.Reopen(nil); !errors.Is(err, loader.ErrAsks) {
			t.Errorf("Reopen of nothing: %v, want an ErrAsks", err)
		}
		if r, err := limiter.WithClock(t, func() time.Time { return time.Unix(-1, 0) }).Reserve(t.Context(), good); r.OK || !errors.Is(err, loader.ErrClock) {
			t.Errorf("a clock before 1970: %+v, %v, want an ErrClock", r, err)
		}
		stillCharged(t, "Cancel, cancelled", open.Cancel(cancelled), loader.ErrNotSpent, 0)
		if n, _ := server.stats(t, "evalsha"); n != 0 {
			t.Errorf("%d calls were sent", n)
		}
		must(t, open.Cancel(t.Context()))
		if got := allow(t, limiter, "k", perMinute, 0).Remaining; got != 10 {
			t.Errorf("%d remaining after the Cancel that was sent, want 10", got)
		}
		var none *loader.Limiter
		for _, l := range []*loader.Limiter{none, new(loader.Limiter)} {
			if r, err := l.Reserve(t.Context(), good); r.OK || !isSpent(err, loader.ErrNotSpent) {
				t.Errorf("a limiter that New did not make: %+v, %v", r, err)
			}
		}
		var nothing *loader.Reservation
		must(t, nothing.Cancel(t.Context()))
		must(t, new(loader.Reservation).Settle(t.Context()))
	})
}

// Each fault of a server, of an ask and of a settlement.
func TestReserveFaults(t *testing.T) {
	eachServer(t, func(t *testing.T, server testServer, _ testLimiter) {
		limiter, p, _ := through(t, server)
		at := limiter.WithClock(t, clockAt(0))
		asks := []loader.Ask{{"k", perMinute, 4}, {"k", perDay, 40}}
		fresh := func() {
			t.Helper()
			p.setReply(func(_, reply []byte) []byte { return reply })
			p.refuse(func([]byte) []byte { return nil })
			must(t, server.FlushAll(t.Context()).Err())
			_, err := limiter.Load(t.Context())
			must(t, err)
			p.resetSent()
		}

		// NOSCRIPT: nothing ran, so the text is sent.
		fresh()
		must(t, server.ScriptFlush(t.Context()).Err())
		r := reserve(t, at, asks...)
		must(t, server.ScriptFlush(t.Context()).Err())
		must(t, r.Settle(t.Context(), 1, 50))
		if sha, text := p.sentOf("evalsha"), p.sentOf("eval"); sha != 2 || text != 2 {
			t.Errorf("NOSCRIPT: %d by SHA1 and %d by text, want 2 and 2", sha, text)
		}
		holds(t, "NOSCRIPT", at, asks, 9, 950)

		// A lost reply: it ran, and is sent once.
		fresh()
		p.lose(1)
		r, err := at.Reserve(t.Context(), asks...)
		stillCharged(t, "a lost reply", err, loader.ErrMaybeSpent, 0, 1)
		if !errors.Is(err, io.EOF) || r.OK {
			t.Errorf("a lost reply: %+v, %v, want io.EOF", r, err)
		}
		must(t, r.Cancel(t.Context())) // there is no receipt
		if n := p.sentOf("evalsha"); n != 1 {
			t.Errorf("a lost reply: sent %d times", n)
		}
		holds(t, "a lost reply", at, asks, 6, 960)

		fresh()
		r = reserve(t, at, asks...)
		p.resetSent()
		p.lose(1)
		stillCharged(t, "a lost settlement", r.Settle(t.Context(), 0, 10), loader.ErrMaybeSpent, 0, 1)
		must(t, r.Settle(t.Context(), 0, 10))
		must(t, r.Cancel(t.Context()))
		if n := p.sentOf("evalsha"); n != 1 {
			t.Errorf("a lost settlement: sent %d times", n)
		}
		holds(t, "a lost settlement", at, asks, 10, 990)

		// A look changes nothing, so it is repeated.
		fresh()
		p.lose(2)
		looks := []loader.Ask{{"k", perMinute, 0}, {"k", perDay, 0}}
		reserve(t, at, looks...)
		if n := p.sentOf("evalsha"); n != 3 {
			t.Errorf("a look: sent %d times, want 3", n)
		}

		for _, test := range []struct {
			reply string
			kind  error
			again bool
		}{
			{"READONLY You can't write against a read only replica.", loader.ErrReadOnly, false},
			{"OOM command not allowed when used memory > 'maxmemory'.", loader.ErrOutOfMemory, false},
			{"LOADING Redis is loading the dataset in memory", nil, true},
		} {
			fresh()
			refuse := func(n int) {
				p.refuse(func(command []byte) []byte {
					if n--; isEvalsha(command) && n >= 0 {
						return []byte("-" + test.reply + "\r\n")
					}
					return nil
				})
			}
			if test.again {
				refuse(2)
				r = reserve(t, at, asks...)
				refuse(2)
				must(t, r.Settle(t.Context(), 1, 1))
				holds(t, test.reply, at, asks, 9, 999)
				continue
			}
			refuse(1)
			r, err := at.Reserve(t.Context(), asks...)
			stillCharged(t, test.reply, err, loader.ErrNotSpent)
			if !errors.Is(err, test.kind) || r.OK {
				t.Errorf("%s: %+v, %v", test.reply, r, err)
			}
			r = reserve(t, at, asks...)
			refuse(1)
			err = r.Settle(t.Context(), 1, 1)
			stillCharged(t, test.reply, err, loader.ErrNotSpent, 0, 1)
			if !errors.Is(err, test.kind) || !strings.HasPrefix(err.Error(), "tatami: asks 1, 2 may be charged still: ") {
				t.Errorf("%s: %v", test.reply, err)
			}
			holds(t, test.reply, at, asks, 6, 960)
			must(t, r.Settle(t.Context(), 2, 2)) // nothing ran, so this does
			must(t, r.Cancel(t.Context()))
			holds(t, test.reply, at, asks, 8, 998)
		}

		// An error of one limit is that of all, and names the ask.
		fresh()
		must(t, server.Set(t.Context(), at.Key("k", perDay), "text", 0).Err())
		_, err = at.Reserve(t.Context(), asks...)
		stillCharged(t, "text", err, loader.ErrNotSpent)
		if !errors.Is(err, loader.ErrBadState) || !strings.Contains(err.Error(), "BADSTATE limits_v1: ask 2: ") {
			t.Errorf("text: %v, want an ErrBadState of ask 2", err)
		}
		if n := server.Exists(t.Context(), at.Key("k", perMinute)).Val(); n != 0 {
			t.Error("text: the other limit was charged")
		}

		// Replies that the script does not make.
		fresh()
		for _, reply := range []string{":1\r\n", "*0\r\n", "*4\r\n:1\r\n:0\r\n:1\r\n:1\r\n", "$-1\r\n",
			"*3\r\n:1\r\n:0\r\n*5\r\n:1\r\n:1\r\n:0\r\n:1\r\n$1\r\n1\r\n"} {
			p.setReply(func(command, real []byte) []byte {
				if isEvalsha(command) {
					return []byte(reply)
				}
				return real
			})
			r, err := at.Reserve(t.Context(), asks...)
			stillCharged(t, reply, err, loader.ErrMaybeSpent, 0, 1)
			if r.OK || !errors.Is(err, loader.ErrReply) {
				t.Errorf("%q: %+v, %v, want an ErrReply", reply, r, err)
			}
		}
	})
}

// A replica refuses to charge, and looks.
func TestReserveOnReplica(t *testing.T) {
	master, _ := start(t)
	replica, limiter := start(t)
	host, port := address(master.Client)
	must(t, replica.ReplicaOf(t.Context(), host, port).Err())
	asks := []loader.Ask{{"k", perMinute, 1}, {"k", perDay, 1}}
	until(t, "a replica", func() bool {
		return strings.Contains(replica.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	_, err := limiter.Reserve(t.Context(), asks...)
	stillCharged(t, "a replica", err, loader.ErrNotSpent)
	if !errors.Is(err, loader.ErrReadOnly) {
		t.Errorf("a replica: %v, want an ErrReadOnly", err)
	}
	asks[0].Cost, asks[1].Cost = 0, 0
	if r := reserve(t, limiter, asks...); !r.OK || r.Results[0].Remaining != 10 || r.Results[1].Remaining != 1000 {
		t.Errorf("a look at a replica: %+v, want 10 and 1000 remaining", r)
	}
}

// keyOf returns a key of which the limit's Redis key is on that server.
func keyOf(t *testing.T, addressOf func(redisKey string) string, limiter testLimiter, limit loader.Limit, address string) string {
	t.Helper()
	for i := range 1000 {
		if key := fmt.Sprint("k", i); addressOf(limiter.Key(key, limit)) == address {
			return key
		}
	}
	t.Fatalf("no key of %s", address)
	return ""
}

// TestReserveOnCluster counts what callers get who ask for limits on three masters, each in an
// order of his own, and use less. The clock stands still, so each unit is counted.
func TestReserveOnCluster(t *testing.T) {
	nodes, cluster := startCluster(t)
	limiter := newLimiter(t, cluster).WithClock(t, clockAt(0))
	testInTurn(t, limiter, onNodes(nodes), func(key string) string {
		node, err := cluster.MasterForKey(t.Context(), key)
		must(t, err)
		return node.Options().Addr
	})
}

func TestReserveOnRing(t *testing.T) {
	for _, emulated := range []bool{true, false} {
		t.Run(fmt.Sprint("emulated=", emulated), func(t *testing.T) {
			shards := []testServer{onPort(t, emulated), onPort(t, emulated), onPort(t, emulated)}
			addrs := map[string]string{}
			for i, shard := range shards {
				addrs[fmt.Sprint(i)] = shard.Options().Addr
			}
			ring := redis.NewRing(&redis.RingOptions{Addrs: addrs})
			defer ring.Close()
			testInTurn(t, newLimiter(t, ring).WithClock(t, clockAt(0)), shards, func(key string) string {
				shard, err := ring.GetShardClientForKey(key)
				must(t, err)
				return shard.Options().Addr
			})
		})
	}
}

func testInTurn(t *testing.T, limiter testLimiter, masters []testServer, addressOf func(string) string) {
	limit := loader.Limit{Amount: 1000, Period: 1000 * time.Hour}
	var asks []loader.Ask
	for _, master := range masters {
		asks = append(asks, loader.Ask{Key: keyOf(t, addressOf, limiter, limit, master.Options().Addr), Limit: limit})
	}
	// With a second limit of the first key, which comes in the same call.
	second := limit
	second.Name, second.Amount = "second", 2000
	asks = append(asks, loader.Ask{Key: asks[0].Key, Limit: second})

	var mu sync.Mutex
	used, admitted, refused := make([]int64, len(asks)), 0, 0
	var callers sync.WaitGroup
	for caller := range 16 {
		callers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(caller)))
			for range 40 {
				order, mine := random.Perm(len(asks)), make([]loader.Ask, len(asks))
				units := make([]int64, len(asks))
				for at, i := range order {
					mine[at] = asks[i]
					mine[at].Cost = 1 + random.Int64N(20)
					units[at] = random.Int64N(mine[at].Cost + 1)
				}
				r, err := limiter.Reserve(t.Context(), mine...)
				if err == nil && r.OK {
					err = r.Settle(t.Context(), units...)
				}
				if err != nil || !r.InTurn {
					t.Errorf("%+v, %v, want it asked in turn", r, err)
					return
				}
				mu.Lock()
				if r.OK {
					admitted++
					for at, i := range order {
						used[i] += units[at]
					}
				} else {
					refused++
					if binding := r.Results[r.Binding]; r.RetryAfter < 1 || binding.RetryAfter != r.RetryAfter {
						t.Errorf("%+v, want it refused for as long as the binding limit says", r)
					}
				}
				mu.Unlock()
			}
		})
	}
	callers.Wait()
	// A give-back may be worth less than what it gives back when others gave back meanwhile.
	left := remaining(t, limiter, asks...)
	for i, got := range left {
		if most := asks[i].Limit.Amount - used[i]; got > most {
			t.Errorf("limit %d: %d remaining after %d were used, want %d at most", i, got, used[i], most)
		}
	}
	t.Logf("%d admitted, %d refused, %v used, %v left", admitted, refused, used, left)
	// On average 5 of 10 are used, so 1000 are not more than about 200 of 640 calls.
	if admitted < 100 || refused < 100 {
		t.Errorf("%d admitted and %d refused, want 100 of each at least", admitted, refused)
	}

	// Of one caller each unit is counted, also those of the calls before the one that refuses.
	random := rand.New(rand.NewPCG(2, 1))
	for range 100 {
		mine, units := slices.Clone(asks), make([]int64, len(asks))
		for i := range mine {
			mine[i].Cost = 1 + random.Int64N(max(left[i], 1)+20)
			units[i] = random.Int64N(min(mine[i].Cost, 3))
		}
		r := reserve(t, limiter, mine...)
		must(t, r.Settle(t.Context(), units...))
		for i := range mine {
			if r.OK {
				left[i] -= units[i]
			}
		}
		holds(t, fmt.Sprintf("OK %v", r.OK), limiter, asks, left...)
	}

	// What can never be admitted charges nothing, wherever it is asked.
	for i := range asks {
		before := remaining(t, limiter, asks...)
		mine := slices.Clone(asks)
		mine[i].Cost = 2001
		if r, err := limiter.Reserve(t.Context(), mine...); err != nil || r.OK || r.RetryAfter != -1 || r.Binding != i {
			t.Errorf("%+v, %v, want that ask %d is never admitted", r, err, i)
		}
		holds(t, "never admitted", limiter, asks, before...)
	}

	// A common tag makes one call of them.
	common := []loader.Ask{{"{tag}a", limit, 3}, {"{tag}b", limit, 4}, {"tag", limit, 5}}
	r := reserve(t, limiter, common...)
	if !r.OK || r.InTurn {
		t.Errorf("a common tag: %+v, want one call", r)
	}
	must(t, r.Settle(t.Context(), 1, 2, 3))
	holds(t, "a common tag", limiter, common, 999, 998, 997)
}

// A plain client of a node that has all slots: it sends one call, which the node refuses.
func TestReserveCrossSlot(t *testing.T) {
	node := startNode(t)
	must(t, node.ClusterAddSlotsRange(t.Context(), 0, slots-1).Err())
	until(t, "a whole cluster", knowEachOther(t, []*redis.Client{node}))
	limiter := newLimiter(t, node).WithClock(t, clockAt(0))
	asks := []loader.Ask{{"b", perMinute, 4}, {"a", perMinute, 4}, {"a", perDay, 40}}
	r := reserve(t, limiter, asks...)
	if !r.OK || !r.InTurn {
		t.Errorf("%+v, want it asked in turn", r)
	}
	must(t, r.Settle(t.Context(), 1, 2, 50))
	holds(t, "settled", limiter, asks, 9, 8, 950)
	r = reserve(t, limiter, loader.Ask{Key: "b", Limit: perMinute, Cost: 9}, loader.Ask{Key: "a", Limit: perMinute, Cost: 9})
	if r.OK || r.RetryAfter != time.Second {
		t.Errorf("%+v, want it refused for 1 s", r)
	}
	holds(t, "refused", limiter, asks, 9, 8, 950)

	first := reserve(t, limiter, asks...)
	reopened, err := limiter.Reopen(first.Receipts, asks...)
	must(t, err)
	must(t, reopened.Cancel(t.Context()))
	must(t, reopened.Cancel(t.Context()))
	holds(t, "reopened and cancelled", limiter, asks, 9, 8, 950)
}

// TestReserveInTurnFaults has each of three calls fail, and then the give-back too.
func TestReserveInTurnFaults(t *testing.T) {
	nodes, direct := startCluster(t)
	f := newFront(t, onNodes(nodes)...)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Options().Addr}, Dialer: f.dial})
	defer cluster.Close()
	checker := newLimiter(t, direct).WithClock(t, clockAt(0))
	limiter := newLimiter(t, cluster).WithClock(t, clockAt(0))
	// In the order of their slots, which is that of the masters.
	var asks []loader.Ask
	for _, node := range nodes {
		key := keyOf(t, func(key string) string {
			master, err := direct.MasterForKey(t.Context(), key)
			must(t, err)
			return master.Options().Addr
		}, checker, perMinute, node.Options().Addr)
		asks = append(asks, loader.Ask{Key: key, Limit: perMinute, Cost: 4})
	}
	readOnly := []byte("-READONLY You can't write against a read only replica.\r\n")
	for failing := range asks {
		for _, lost := range []bool{true, false} {
			for _, keeps := range []bool{false, true} { // the first master refuses to take back
				what := fmt.Sprintf("call %d, lost %v, give-back refused %v", failing, lost, keeps)
				for _, node := range nodes {
					must(t, node.FlushAll(t.Context()).Err())
				}
				pass := func() {
					for _, p := range f.proxies {
						p.setReply(func(_, reply []byte) []byte { return reply })
						p.refuse(func([]byte) []byte { return nil })
					}
				}
				pass()
				var mu sync.Mutex
				firstCalls := 0
				f.proxies[nodes[0].Options().Addr].refuse(func(command []byte) []byte {
					mu.Lock()
					defer mu.Unlock()
					if isEvalsha(command) {
						firstCalls++
						if keeps && firstCalls > 1 {
							return readOnly
						}
						if failing == 0 && !lost {
							return readOnly
						}
					}
					return nil
				})
				at := f.proxies[nodes[failing].Options().Addr]
				if lost {
					at.loseAll("evalsha")
				} else if failing > 0 {
					at.refuse(func(command []byte) []byte {
						if isEvalsha(command) {
							return readOnly
						}
						return nil
					})
				}
				r, err := limiter.Reserve(t.Context(), asks...)
				if r.OK {
					t.Errorf("%s: %+v is OK", what, r)
				}
				var want []int
				left := []int64{10, 10, 10}
				if keeps && failing > 0 {
					want, left[0] = append(want, 0), 6
				}
				if lost {
					want, left[failing] = append(want, failing), 6
				}
				spent := loader.ErrNotSpent
				if want != nil {
					spent = loader.ErrMaybeSpent
				}
				stillCharged(t, what, err, spent, want...)
				pass()
				holds(t, what, checker, asks, left...)
				must(t, r.Cancel(t.Context())) // what is known to be charged
				if left[0] = 10; lost && failing == 0 {
					left[0] = 6
				}
				holds(t, what+", cancelled", checker, asks, left...)
			}
		}
	}

	// Settled on two of three: what the third refused is all that goes again.
	r := reserve(t, limiter, asks...)
	f.proxies[nodes[1].Options().Addr].refuse(func(command []byte) []byte {
		if isEvalsha(command) {
			return readOnly
		}
		return nil
	})
	before := remaining(t, checker, asks...)
	stillCharged(t, "settled in part", r.Settle(t.Context(), 1, 1, 1), loader.ErrNotSpent, 1)
	f.proxies[nodes[1].Options().Addr].refuse(func([]byte) []byte { return nil })
	holds(t, "settled in part", checker, asks, before[0]+3, before[1], before[2]+3)
	must(t, r.Settle(t.Context(), 2, 2, 2))
	holds(t, "and then the rest", checker, asks, before[0]+3, before[1]+2, before[2]+3)
}

func matchesText(text, pattern string) bool {
	return regexp.MustCompile(`\A(?:` + pattern + `)\z`).MatchString(text)
}
