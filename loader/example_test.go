package loader_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/loader"
)

// A test needs no Redis: the same scripts run in the process.
func ExampleNew() {
	client := emulator.NewClient()
	defer client.Close() // nothing is left of it
	limiter, err := loader.New(client)
	if err != nil {
		log.Fatal(err)
	}
	result, err := limiter.Allow(context.Background(), "42", loader.Limit{Amount: 300, Period: time.Minute, Burst: 60})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Allowed, result.Remaining)
	// Output: true 59
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
		{Key: "42", Limit: user, Cost: 1},
		{Key: "192.0.2.7", Limit: address, Cost: 1},
	}
	for i, outcome := range limiter.AllowEach(context.Background(), calls...) {
		if outcome.Err != nil {
			log.Fatal(outcome.Err)
		}
		fmt.Println(calls[i].Key, outcome.Allowed)
	}
}

func ExampleWithClock() {
	var client *redis.Client
	var now time.Time
	limiter, err := loader.New(client, loader.WithClock(func() time.Time { return now }))
	if err != nil {
		log.Fatal(err)
	}
	limit := loader.Limit{Amount: 10, Period: time.Second}

	for _, now = range []time.Time{time.Unix(1_780_000_000, 0), time.Unix(1_780_000_001, 0)} {
		if _, err := limiter.Allow(context.Background(), "replay", limit); err != nil {
			log.Fatal(err)
		}
	}
}

// A call that surely spent nothing may be made again; of another one cannot tell.
func ExampleLimiter_Allow_errors() {
	var limiter *loader.Limiter // from New
	limit := loader.Limit{Amount: 300, Period: time.Minute, Name: "login"}

	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	result, err := limiter.Allow(ctx, "user:42", limit)
	switch {
	case errors.Is(err, loader.ErrNotSpent):
		fmt.Println("nothing was spent:", err)
	case err != nil:
		fmt.Println("one unit may have been spent:", err)
	default:
		fmt.Println(result.Limit.Quota(), result.Remaining, result.ResetAfterSeconds())
	}
}

// A leaky bucket is a queue: five jobs a second, evenly, however many come at once.
func ExampleLimiter_Wait() {
	var limiter *loader.Limiter // from New
	limit := loader.Limit{Amount: 5, Period: time.Second, Burst: 20, Algorithm: loader.LeakyBucket}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	switch err := limiter.Wait(ctx, "jobs", limit, 1); {
	case errors.Is(err, loader.ErrWait):
		fmt.Println("the queue is longer than 10 s")
	case err != nil:
		log.Fatal(err)
	}
}

// A call of a language model: its tokens are estimated before and known after it.
func ExampleLimiter_Reserve() {
	var limiter *loader.Limiter // from New
	requests := loader.Limit{Name: "requests", Amount: 60, Period: time.Minute}
	tokens := loader.Limit{Name: "tokens", Amount: 90_000, Period: time.Minute}

	http.HandleFunc("/chat", func(w http.ResponseWriter, r *http.Request) {
		held, err := limiter.Reserve(r.Context(),
			loader.Ask{Key: "user:42", Limit: requests, Cost: 1},
			loader.Ask{Key: "user:42", Limit: tokens, Cost: 1200})
		after := context.WithoutCancel(r.Context()) // the client may be gone by then
		if err != nil {
			_ = held.Cancel(after) // what is known to be charged, if anything is
			http.Error(w, "no answer from the rate limiter", http.StatusServiceUnavailable)
			return
		}
		if !held.OK {
			binding := held.Results[held.Binding]
			http.Error(w, "too many "+binding.Limit.Name, http.StatusTooManyRequests)
			return
		}
		used := int64(800) // which the model says
		if err := held.Settle(after, 1, used); err != nil {
			log.Print(err)
		}
	})
}
