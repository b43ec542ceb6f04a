package emulator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/lua"
)

// A test of code that takes a go-redis client needs no Redis.
func ExampleNewClient() {
	client := emulator.NewClient()
	defer client.Close()
	ctx := context.Background()
	client.Set(ctx, "greeting", "hello", time.Minute)
	fmt.Println(client.Get(ctx, "greeting").Val())
	// Output: hello
}

// One call a day: the test does not wait for tomorrow.
func ExampleRedis_Advance() {
	server := emulator.New()
	client := server.Client()
	defer client.Close()
	call := func() {
		reply, err := redis.NewScript(lua.GCRAV2).Run(context.Background(), client, []string{"user:42"},
			1, int64(24*time.Hour), 1, 1).Int64Slice()
		if err != nil {
			panic(err)
		}
		fmt.Println("status", reply[0], "retry after", time.Duration(reply[2]))
	}
	call()
	call()
	server.Advance(24 * time.Hour)
	call()
	// Output:
	// status 1 retry after 0s
	// status 0 retry after 24h0m0s
	// status 1 retry after 0s
}
