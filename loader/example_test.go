package loader_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	defer client.Close()

	ctx := context.Background()
	limiter, err := loader.New(ctx, client) // any go-redis client, Cluster and Ring too
	if err != nil {
		log.Fatal(err)
	}
	res, err := limiter.Allow(ctx, "user:42", loader.Limit{Amount: 300, Period: time.Minute, Burst: 60})
	if err != nil {
		log.Fatal(err)
	}
	if !res.Allowed {
		if seconds, ok := res.RetryAfterSeconds(); ok {
			fmt.Println("Retry-After:", seconds)
		}
	}
}

func ExampleLimiter_Allow() {
	var limiter *loader.Limiter // from New
	limit := loader.Limit{Amount: 300, Period: time.Minute, Burst: 60}

	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		result, err := limiter.Allow(r.Context(), "user:42", limit)
		if err != nil {
			http.Error(w, "no answer from the rate limiter", http.StatusServiceUnavailable)
			return
		}
		if !result.Allowed {
			if seconds, ok := result.RetryAfterSeconds(); ok {
				w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
			}
			http.Error(w, "too many requests", http.StatusTooManyRequests)
			return
		}
		fmt.Fprintln(w, "hello")
	})
}

func ExampleLimiter_AllowN() {
	var limiter *loader.Limiter // from New
	limit := loader.Limit{Amount: 1 << 20, Period: time.Second}

	// A megabyte a second, spent by the size of each upload in bytes.
	result, err := limiter.AllowN(context.Background(), "upload:42", limit, 150_000)
	if err != nil {
		log.Fatal(err)
	}
	if result.Unfittable {
		fmt.Println("larger than the limit ever allows")
	}
}

func ExampleLimiter_AllowEach() {
	var limiter *loader.Limiter // from New
	user := loader.Limit{Amount: 10, Period: time.Second}
	address := loader.Limit{Amount: 1000, Period: time.Hour, Algorithm: loader.SlidingWindow}

	calls := []loader.Call{
		{Key: "user:42", Limit: user, Cost: 1},
		{Key: "address:192.0.2.7", Limit: address, Cost: 1},
	}
	if err := limiter.AllowEach(context.Background(), calls); err != nil {
		log.Fatal(err)
	}
	for _, call := range calls {
		fmt.Println(call.Key, call.Result.Allowed)
	}
}

func ExampleLimiter_WithClock() {
	var limiter *loader.Limiter // from New
	limit := loader.Limit{Amount: 10, Period: time.Second}

	recorded := []time.Time{time.Unix(1_780_000_000, 0), time.Unix(1_780_000_001, 0)}
	for _, now := range recorded {
		at := limiter.WithClock(func() time.Time { return now })
		if _, err := at.Allow(context.Background(), "replay", limit); err != nil {
			log.Fatal(err)
		}
	}
}

// One setting moves all callers of the keys to version 2 together.
func ExampleLimiter_WithV1() {
	var limiter *loader.Limiter // from New

	if os.Getenv("LIMITS") == "v1" {
		limiter = limiter.WithV1()
	}
	limit := loader.Limit{Amount: 300, Period: time.Minute, Burst: 60}
	if _, err := limiter.Allow(context.Background(), "user:42", limit); err != nil {
		log.Fatal(err)
	}
}

// A leaky bucket as a queue: what is allowed waits for its turn.
func ExampleLimit_Interval() {
	var limiter *loader.Limiter // from New
	limit := loader.Limit{Amount: 5, Period: time.Second, Burst: 20, Algorithm: loader.LeakyBucket}

	const cost = 1
	result, err := limiter.AllowN(context.Background(), "queue", limit, cost)
	if err != nil {
		log.Fatal(err)
	}
	if result.Allowed {
		time.Sleep(result.ResetAfter - cost*limit.Interval())
	}
}
