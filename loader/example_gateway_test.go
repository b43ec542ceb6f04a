package loader_test

import (
	"context"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/loader"
)

// The limits of a language model's provider, and of the gateway before it: requests and
// tokens a minute for each user, and tokens a day for the organisation.
var gatewayLimits = [3]loader.Limit{
	{Name: "requests", Amount: 30, Period: time.Minute, Burst: 10},
	{Name: "tokens", Amount: 60_000, Period: time.Minute, Burst: 20_000},
	{Name: "day", Amount: 2_000_000, Period: 24 * time.Hour, Burst: 900_000},
}

// served is a call that the gateway let through: when it was admitted, and what each limit
// was asked for and was really used.
type served struct {
	at         time.Time
	keys       [3]string
	cost, used [3]int64
}

// gateway lets 200 calls of three users through, which come in groups of 20. In every other
// group the model is slow, and takes 30 s to a minute a call; else it takes up to 2 s. A call
// asks for its estimate, and settle tells what it has used when it ends, from low to high
// hundredths of the estimate. Who is refused comes again after the wait.
func gateway(low, high int64, settle func(client *redis.Client, r *loader.Reservation, call served) error) []served {
	type event struct {
		at   time.Time
		call int
		held *loader.Reservation // the call ends; nil: it asks
	}
	client := emulator.NewClient()
	defer client.Close()
	var now time.Time
	limiter, err := loader.New(client, loader.WithClock(func() time.Time { return now }))
	if err != nil {
		log.Fatal(err)
	}
	random := rand.New(rand.NewPCG(42, 0))
	calls, events := make([]served, 200), []event{}
	begin := time.Unix(1_780_000_000, 0)
	for i := range calls {
		begin = begin.Add(time.Duration(random.Int64N(1e9)))
		if i%20 == 0 {
			begin = begin.Add(25 * time.Second) // in which what was asked for drains
		}
		user := fmt.Sprint("user", random.IntN(3))
		estimate := 500 + random.Int64N(9500)
		used := estimate * (low + random.Int64N(high-low+1)) / 100
		calls[i] = served{keys: [3]string{user, user, "org"}, cost: [3]int64{1, estimate, estimate}, used: [3]int64{1, used, used}}
		events = append(events, event{at: begin, call: i})
	}
	for len(events) > 0 {
		slices.SortStableFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
		next := events[0]
		events = events[1:]
		call := &calls[next.call]
		now = next.at
		if next.held != nil {
			if err := settle(client, next.held, *call); err != nil {
				log.Fatal(err)
			}
			continue
		}
		var asks []loader.Ask
		for i, limit := range gatewayLimits {
			asks = append(asks, loader.Ask{Key: call.keys[i], Limit: limit, Cost: call.cost[i]})
		}
		r, err := limiter.Reserve(context.Background(), asks...)
		if err != nil {
			log.Fatal(err)
		}
		if r.OK {
			call.at, next.held = now, r
			next.at = now.Add(time.Duration(random.Int64N(2e9)))
			if next.call/20%2 == 0 {
				next.at = now.Add(time.Duration(30e9 + random.Int64N(30e9)))
			}
		} else {
			next.at = now.Add(r.RetryAfter)
		}
		events = append(events, next)
	}
	return calls
}

// upstream is the provider: exact limiters in integers that are fed, at each ask's instant,
// with what was really used. It tells how many calls it refuses, and, letting them all
// through, the most tokens that a limit is over by.
func upstream(calls []served) (refused int, over int64) {
	slices.SortFunc(calls, func(a, b served) int { return a.at.Compare(b.at) })
	full := map[string]int64{} // when a key's bucket is full again, in ns
	for _, call := range calls {
		now, refuses := call.at.UnixNano(), false
		for i, limit := range gatewayLimits {
			key, interval := call.keys[i]+limit.Name, int64(limit.Interval())
			full[key] = max(full[key], now) + call.used[i]*interval
			if above := full[key] - now - limit.Burst*interval; above > 0 {
				refuses = true
				over = max(over, (above+interval-1)/interval)
			}
		}
		if refuses {
			refused++
		}
	}
	return refused, over
}

// Limits whose cost is known only afterwards: each call reserves its estimate and settles
// what it has used. The provider never refuses what the gateway let through. With the usual
// refund, which takes the unused units off the state, it does, since those may have drained
// long ago. Where calls use more than they estimated, by up to 20 % of the use, it is over
// by no more than that.
func Example_gateway() {
	settle := func(_ *redis.Client, r *loader.Reservation, call served) error {
		return r.Settle(context.Background(), call.used[:]...)
	}
	refund := func(client *redis.Client, r *loader.Reservation, call served) error {
		for i, result := range r.Results {
			unused := (call.cost[i] - call.used[i]) * int64(result.Limit.Interval())
			tat, err := client.Get(context.Background(), result.Key).Int64()
			if err == nil {
				err = client.Set(context.Background(), result.Key, tat-unused, redis.KeepTTL).Err()
			}
			if err != nil {
				return err
			}
		}
		return nil
	}

	refused, _ := upstream(gateway(40, 100, settle))
	fmt.Printf("settled: %d of 200 calls refused upstream\n", refused)

	refused, over := upstream(gateway(40, 100, refund))
	fmt.Printf("usual refund: %d refused, up to %d tokens over\n", refused, over)

	calls := gateway(40, 125, settle)
	_, over = upstream(calls)
	for i := range calls {
		for at := range calls[i].used {
			calls[i].used[at] = min(calls[i].used[at], calls[i].cost[at])
		}
	}
	_, rest := upstream(calls)
	fmt.Printf("estimates up to 20 %% too low: up to %d tokens over, and %d without what was used beyond them\n", over, rest)
	// Output:
	// settled: 0 of 200 calls refused upstream
	// usual refund: 4 refused, up to 1858 tokens over
	// estimates up to 20 % too low: up to 2612 tokens over, and 0 without what was used beyond them
}
