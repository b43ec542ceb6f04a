package loader_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // any go-redis client, Cluster and Ring too
	defer client.Close()
	limiter, err := loader.New(client)
	if err != nil {
		log.Fatal(err)
	}
	limit := loader.Limit{Amount: 300, Period: time.Minute, Burst: 60}
	result, err := limiter.AllowN(context.Background(), "42", limit, 2)
	switch {
	case err != nil:
		log.Fatal(err)
	case result.Allowed:
		fmt.Println("admitted,", result.Remaining, "left")
	case result.Unfittable:
		fmt.Println("more than the burst at once: no wait helps")
	default:
		fmt.Println("refused, try again in", result.RetryAfter)
	}
}
