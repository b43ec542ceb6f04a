package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestReserveAndSettle(t *testing.T) {
	eachServer(t, func(t *testing.T, client *redis.Client) {
		// A unit comes back after an hour, so the clock cannot disturb this.
		calls := []string{"reserve", "42", "--amount", "10", "--period", "10h", "--name", "calls", "--cost", "2"}
		with := func(tokens string, more ...string) []string {
			return append(append(calls[:len(calls):len(calls)], "--and",
				"42 --amount 100 --period 24h --algorithm sliding_window --name tokens --cost "+tokens), more...)
		}
		peek := func(calls, tokens string) {
			t.Helper()
			out, _ := command(t, exitOK, "peek", "42", "--amount", "10", "--period", "10h", "--name", "calls")
			matches(t, out, "remaining "+calls+`, .*\n`)
			out, _ = command(t, exitOK, "peek", "42", "--amount", "100", "--period", "24h", "--algorithm", "sliding_window", "--name", "tokens")
			matches(t, out, "remaining "+tokens+`, .*\n`)
		}
		out, _ := command(t, exitOK, with("30")...)
		matches(t, out, `reserved\n`+
			`ask 1: cost 2, remaining 8, reset after 2h0m0s, limit calls 10 per 10h0m0s gcra, key "rl:\{42\}:calls"\n`+
			`ask 2: cost 30, remaining 70, reset after .*, limit tokens 100 per 24h0m0s sliding_window, key "rl:\{42\}:tokens:86400000000000"\n`)
		peek("8", "70")

		out, _ = command(t, exitOK, with("30", "--json")...)
		got := fields(t, out)
		asks := got["asks"].([]any)
		first := asks[0].(map[string]any)
		stored := client.Get(t.Context(), "rl:{42}:calls").Val()
		if got["status"] != json.Number("1") || got["prefix"] != "rl:" || len(asks) != 2 || first["key"] != "rl:{42}:calls" ||
			first["receipt"] != stored || first["remaining"] != json.Number("6") {
			t.Errorf("%s: want status 1 and two asks, the first with 6 remaining and the receipt %s", out, stored)
		}
		peek("6", "40")
		file := filepath.Join(t.TempDir(), "r.json")
		must(t, os.WriteFile(file, []byte(out), 0o600))

		_, errs := command(t, exitUsage, "settle", "1", "--from", file)
		matches(t, errs, `tatami: bad asks: 1 numbers of units used for 2 asks\n`)
		text, _ := command(t, exitOK, "settle", "1", "45", "--from", file)
		matches(t, text, `settled\nask 1: 1 used of 2, key "rl:\{42\}:calls"\nask 2: 45 used of 30, key "rl:\{42\}:tokens:86400000000000"\n`)
		peek("7", "25")

		// From standard input, as JSON.
		out, _ = command(t, exitOK, with("5", "--json")...)
		must(t, os.WriteFile(file, []byte(out), 0o600))
		input, err := os.Open(file)
		must(t, err)
		defer input.Close()
		standard := os.Stdin
		os.Stdin = input
		defer func() { os.Stdin = standard }()
		text, _ = command(t, exitOK, "settle", "0", "0", "--json")
		matches(t, text, `\[\{"key":"rl:\{42\}:calls","cost":2,"used":0\},\{"key":"rl:\{42\}:tokens:86400000000000","cost":5,"used":0\}\]\n`)
		peek("7", "25")

		out, _ = command(t, exitRefused, with("26", "--json")...)
		got = fields(t, out)
		if got["status"] != json.Number("0") || got["binding"] != json.Number("1") || got["retry_after_ns"] == json.Number("0") {
			t.Errorf("%s: want it refused by the second", out)
		}
		must(t, os.WriteFile(file, []byte(out), 0o600))
		_, errs = command(t, exitRefused, "settle", "0", "0", "--from", file)
		matches(t, errs, `tatami: the reservation was refused: there is nothing to settle\n`)
		out, _ = command(t, exitRefused, with("26")...)
		matches(t, out, `refused, retry after \S+, by ask 2\nask 1: cost 2, remaining 7, .*\nask 2: cost 26, remaining 25, .*\n`)
		out, _ = command(t, exitRefused, with("101")...)
		matches(t, out, `unfittable, by ask 2\nask 1: .*\nask 2: .*\n`)
		peek("7", "25")

		_, errs = command(t, exitUsage, append(calls, "--and", "42 --amount 9 --period 10h --name calls")...)
		matches(t, errs, `tatami: bad asks: asks 1 and 2 have one Redis key; .*\n`)
		must(t, client.Set(t.Context(), "rl:{42}:tokens:86400000000000", "text", 0).Err())
		_, errs = command(t, exitServer, with("1")...)
		matches(t, errs, `tatami: key holds something else: .*BADSTATE limits_v1: ask 2: .*\n`)
		if stored := client.Get(t.Context(), "rl:{42}:calls").Val(); stored == "" {
			t.Error("no key")
		}
		out, _ = command(t, exitOK, "inspect", "42", "--name", "calls")
		matches(t, out, `gcra: TAT .*, credit \d+ ns, last TAT .*\n`)
	})
}

func TestWait(t *testing.T) {
	eachServer(t, func(t *testing.T, _ *redis.Client) {
		began := time.Now()
		for range 3 {
			out, _ := command(t, exitOK, "wait", "k", "--amount", "1", "--period", "50ms", "--timeout", "1m")
			matches(t, out, `admitted after \S+, limit 1 per 50ms gcra, key "rl:\{k\}"\n`)
		}
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("3 units in %v, want 100ms at least", took)
		}
		got := fields(t, first(command(t, exitOK, "wait", "h", "--amount", "1", "--period", "1h", "--json")))
		if len(got) != 3 || got["status"] != json.Number("1") || got["key"] != "rl:{h}" {
			t.Errorf("%v, want status 1 and the key rl:{h}", got)
		}
		_, errs := command(t, exitRefused, "wait", "h", "--amount", "1", "--period", "1h", "--timeout", "10s")
		matches(t, errs, `tatami: refused: the wait is longer than 10s, key "rl:\{h\}"\n`)
		_, errs = command(t, exitRefused, "wait", "h", "--amount", "1", "--period", "1h", "--cost", "2")
		matches(t, errs, `tatami: bad cost: .*: cost 2 can never be admitted\n`)
		command(t, exitUsage, "wait", "h", "--amount", "1", "--period", "1h", "--cost", "-1")
	})
}
