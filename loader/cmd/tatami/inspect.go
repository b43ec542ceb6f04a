package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/loader"
)

// state is what a key holds. Of its two halves the one that kind names is set.
type state struct {
	Kind  string `json:"kind"` // gcra or window
	Key   string `json:"key"`
	TTLMS int64  `json:"ttl_ms"`
	*gcraState
	*windowState
}

type gcraState struct {
	TATNS   uint64 `json:"tat_ns"`
	TAT     string `json:"tat"`
	AheadNS int64  `json:"ahead_ns"`
	*creditState
}

// creditState is there once units were given back.
type creditState struct {
	CreditNS json.Number `json:"credit_ns"` // may be above 2^64
	LastNS   uint64      `json:"last_ns"`
	Last     string      `json:"last"`
}

type windowState struct {
	Index    uint32 `json:"index"`
	Previous uint16 `json:"previous"`
	Current  uint16 `json:"current"`
	PeriodNS uint32 `json:"period_ns_mod_2_32"`
}

func (a *app) inspect() *cobra.Command {
	var r request
	raw, asGCRA := false, false // the latter: a period is named, and no algorithm
	command := &cobra.Command{
		Use:   "inspect KEY",
		Short: "Show what a key holds",
		Long: `Decode what the Redis key of a limit holds. With --raw, KEY is the Redis key itself.

` + lineHelp + `

gcra: the theoretical arrival time (TAT) as a time, and how far it lies ahead of the
server's clock; behind it, the key is rested, and in JSON ahead_ns is negative. Once
units were given back also their sum, the credit, and the last TAT that spending left.
window: the index of the window modulo 2^32, the counts of the previous and of the
current window, and the period in nanoseconds modulo 2^32. The index is the time in
periods since 1970.

The key is that of gcra unless --algorithm names a window, whatever it holds: 12 bytes are
a window. A number of fewer than 19 digits is a TAT only on a server whose clock is before
2001. Exits with 1 when there is no such key, and with 3 when it holds something else.`,
		Example: `  tatami inspect 42 --name login
  tatami inspect 42 --algorithm sliding_window --period 1m
  tatami inspect --raw 'rl:{42}:login'`,
		Args: oneKey,
	}
	r.flags(command)
	command.Flags().BoolVar(&raw, "raw", false, "KEY is the Redis key itself")
	onServer := a.onServer(func(ctx context.Context, client redis.UniversalClient, args []string) error {
		if raw {
			return a.show(ctx, client, args[0], "")
		}
		limiter, err := r.limiter(client)
		if err != nil {
			return err
		}
		hint := ""
		if asGCRA {
			window := r.limit
			window.Algorithm = loader.FixedWindow
			hint = fmt.Sprintf(", as gcra has it; a window's is %q, see --algorithm", limiter.Key(args[0], window))
		}
		return a.show(ctx, client, limiter.Key(args[0], r.limit), hint)
	})
	command.RunE = func(command *cobra.Command, args []string) error {
		for _, name := range []string{"name", "prefix"} {
			if raw && command.Flags().Changed(name) {
				return fmt.Errorf("--raw takes the whole Redis key, so --%s has no place; see %s --help", name, command.CommandPath())
			}
		}
		if !raw {
			if err := r.onlyKey(command); err != nil {
				return err
			}
		}
		asGCRA = command.Flags().Changed("period") && !command.Flags().Changed("algorithm")
		return onServer(command, args)
	}
	return command
}

// show prints what a Redis key holds. hint is what to say beside that there is none.
func (a *app) show(ctx context.Context, client redis.UniversalClient, key, hint string) error {
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
	all, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		value, ttl, now = pipe.Get(ctx, key), pipe.PTTL(ctx, key), pipe.Time(ctx)
		return nil
	})
	for _, one := range all { // of a transaction that is not run, one has the cause
		if redis.HasErrorPrefix(err, "EXECABORT") && one.Err() != nil {
			err = one.Err()
		}
	}
	if err == redis.Nil {
		return &exit{exitRefused, fmt.Errorf("no key %q%s", key, hint)}
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
	found.Key = key
	expiry := fmt.Sprintf("expires in %v", ttl.Val())
	found.TTLMS = ttl.Val().Milliseconds()
	if ttl.Val() < 0 { // go-redis leaves -1 as it is: no expiry
		found.TTLMS, expiry = -1, "never expires"
	}
	return a.print(found, fmt.Sprintf("%s, %s, key %q\n", text, expiry, key))
}

// decode takes the value of a key and the time on its server.
func decode(value string, now time.Time) (state, string, error) {
	if w := native.ParseWindow(value); !math.IsNaN(w.Index) {
		w := windowState{uint32(w.Index), uint16(w.Previous), uint16(w.Current), uint32(w.PeriodNs)}
		return state{Kind: "window", windowState: &w}, fmt.Sprintf("window: index %d, previous %d, current %d, period %d ns modulo 2^32",
			w.Index, w.Previous, w.Current, w.PeriodNS), nil
	}
	parsed := native.ParseGCRA(value)
	if math.IsNaN(parsed.TAT.S) {
		return state{}, "", fmt.Errorf("holds %d bytes that are neither a TAT nor a window's counts", len(value))
	}
	numbers := strings.Fields(value) // TAT, or TAT credit last
	// 19 digits are those of a second from 10^9 on, in 2001.
	for _, i := range []int{0, len(numbers) - 1} {
		if len(numbers[i]) < 19 && now.Unix() >= 1e9 {
			return state{}, "", fmt.Errorf("holds a number of %d digits; a TAT by the server's clock has 19", len(numbers[i]))
		}
	}
	tatNS, tat := instant(numbers[0])
	ahead := tat.Sub(now)
	distance := fmt.Sprintf("%v ahead of the server's clock", ahead)
	if ahead <= 0 {
		distance = fmt.Sprintf("rested for %v", -ahead)
	}
	g := gcraState{TATNS: tatNS, TAT: tat.Format(time.RFC3339Nano), AheadNS: ahead.Nanoseconds()}
	text := fmt.Sprintf("gcra: TAT %s, %s", g.TAT, distance)
	if parsed.Credit != "" {
		lastNS, last := instant(numbers[2])
		g.creditState = &creditState{json.Number(parsed.Credit), lastNS, last.Format(time.RFC3339Nano)}
		text += fmt.Sprintf(", credit %s ns, last TAT %s", g.CreditNS, g.Last)
	}
	return state{Kind: "gcra", gcraState: &g}, text, nil
}

// instant reads at most 19 digits.
func instant(digits string) (ns uint64, at time.Time) {
	ns, _ = strconv.ParseUint(digits, 10, 64) // native.ParseGCRA has read them
	return ns, time.Unix(int64(ns/1e9), int64(ns%1e9)).UTC()
}
