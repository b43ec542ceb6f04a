package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// state is what a key holds. Of its two halves the one that kind names is set.
type state struct {
	Kind  string `json:"kind"` // gcra or window
	TTLMS int64  `json:"ttl_ms"`
	*gcraState
	*windowState
}

type gcraState struct {
	TATNS   uint64 `json:"tat_ns"`
	TAT     string `json:"tat"`
	AheadNS int64  `json:"ahead_ns"`
}

type windowState struct {
	Index    uint32 `json:"index"`
	Previous uint16 `json:"previous"`
	Current  uint16 `json:"current"`
}

func (a *app) inspect() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect KEY",
		Short: "Show what a key holds",
		Long: `Decode what a key holds. The key itself tells which it is; both versions of a script
keep the same state.

gcra: the theoretical arrival time (TAT) as a time, and how far it lies ahead of
the server's clock; behind it, the key is rested. In JSON ahead_ns is negative then.
window: the index of the window modulo 2^32, and the counts of the previous and of
the current window. The index is the time in periods since 1970.

Eight bytes are always a window: as a TAT they would lie in the first tenth of a
second of 1970. Exits with 1 when there is no such key, and with 3 when it holds
something else.`,
		Example: `  tatami inspect user:42`,
		Args:    oneKey,
		RunE: a.onServer(func(ctx context.Context, client redis.UniversalClient, args []string) error {
			key := args[0]
			if cluster, ok := client.(*redis.ClusterClient); ok {
				node, err := cluster.MasterForKey(ctx, key) // the clock is asked there too
				if err != nil {
					return err
				}
				client = node
			}
			var value *redis.StringCmd
			var ttl *redis.DurationCmd
			var now *redis.TimeCmd
			_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				value, ttl, now = pipe.Get(ctx, key), pipe.PTTL(ctx, key), pipe.Time(ctx)
				return nil
			})
			if err == redis.Nil {
				return &exit{exitRefused, fmt.Errorf("no key %q", key)}
			}
			if err != nil && redis.HasErrorPrefix(err, "WRONGTYPE") {
				return fmt.Errorf("key %q: %w", key, err)
			}
			if err != nil {
				return err
			}
			found, text, err := decode(value.Val(), now.Val())
			if err != nil {
				return fmt.Errorf("key %q: %w", key, err)
			}
			found.TTLMS = ttl.Val().Milliseconds()
			expiry := fmt.Sprintf("expires in %v", ttl.Val())
			if ttl.Val() < 0 { // go-redis leaves -1 as it is: no expiry
				found.TTLMS, expiry = -1, "never expires"
			}
			return a.print(found, fmt.Sprintf("%s, %s\n", text, expiry))
		}),
	}
}

// decode takes the value of a key and the time on its server.
func decode(value string, now time.Time) (state, string, error) {
	if len(value) == 8 {
		w := windowState{
			binary.BigEndian.Uint32([]byte(value)),
			binary.BigEndian.Uint16([]byte(value[4:])),
			binary.BigEndian.Uint16([]byte(value[6:])),
		}
		return state{Kind: "window", windowState: &w},
			fmt.Sprintf("window: index %d, previous %d, current %d", w.Index, w.Previous, w.Current), nil
	}
	// The scripts write plain digits and read nothing else.
	tatNS, err := strconv.ParseUint(value, 10, 64)
	if err != nil || strconv.FormatUint(tatNS, 10) != value || len(value) > 19 {
		return state{}, "", fmt.Errorf("holds %d bytes that are neither a TAT nor a window's counts", len(value))
	}
	tat := time.Unix(int64(tatNS/1e9), int64(tatNS%1e9)).UTC()
	ahead := tat.Sub(now)
	distance := fmt.Sprintf("%v ahead of the server's clock", ahead)
	if ahead <= 0 {
		distance = fmt.Sprintf("rested for %v", -ahead)
	}
	g := gcraState{tatNS, tat.Format(time.RFC3339Nano), ahead.Nanoseconds()}
	return state{Kind: "gcra", gcraState: &g}, fmt.Sprintf("gcra: TAT %s, %s", g.TAT, distance), nil
}
