package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

// command runs a command line and checks its exit code.
func command(t *testing.T, wantCode int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code != wantCode {
		t.Fatalf("tatami %q exits with %d, want %d\n%s%s", args, code, wantCode, &out, &errs)
	}
	return out.String(), errs.String()
}

// matches checks the whole output.
func matches(t *testing.T, output, pattern string) {
	t.Helper()
	if !regexp.MustCompile(`\A(?:` + pattern + `)\z`).MatchString(output) {
		t.Errorf("got  %q\nwant %q", output, pattern)
	}
}

// fields decodes one line of JSON.
func fields(t *testing.T, output string) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(output))
	decoder.UseNumber()
	var found map[string]any
	if err := decoder.Decode(&found); err != nil || decoder.More() || strings.Count(output, "\n") != 1 {
		t.Fatalf("%q is not one line of JSON: %v", output, err)
	}
	return found
}

// eachServer runs a test on the emulator, and on a real server where there is one; each is
// REDIS_URL, which --redis falls back to.
func eachServer(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Run("emulator", func(t *testing.T) {
		address, interrupt := serving(t)
		t.Setenv("REDIS_URL", "redis://"+address)
		client := redis.NewClient(&redis.Options{Addr: address})
		t.Cleanup(func() { client.Close(); interrupt() })
		test(t, client)
	})
	t.Run("redis-server", func(t *testing.T) { test(t, onServer(t)) })
}

// onServer starts a server and makes it REDIS_URL.
func onServer(t *testing.T, args ...string) *redis.Client {
	t.Helper()
	server := servers.ForTest(t, args...)
	t.Setenv("REDIS_URL", server.URL)
	client := server.Client()
	t.Cleanup(func() { client.Close() })
	return client
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var minute = []string{"--amount", "300", "--period", "1m", "--burst", "60"}

func call(name, key string, more ...string) []string {
	return append(append([]string{name, key}, minute...), more...)
}

func TestList(t *testing.T) {
	scripts, err := loader.Scripts()
	must(t, err)
	out, _ := command(t, exitOK, "list")
	for i, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		matches(t, line, scripts[i].Name+` +\d+ +`+scripts[i].SHA1+` +(candidate|released) +(exact|never early, less than \d+ ns late .*)`)
	}
	if n := strings.Count(out, "\n"); n != len(scripts) {
		t.Errorf("%d lines for %d scripts", n, len(scripts))
	}
	out, _ = command(t, exitOK, "list", "gcra_v1")
	matches(t, out,
		`gcra_v1 +1 +[0-9a-f]{40} +\w+ +never early, less than 256 ns late against its own interval `+
			`\(period/amount, up to a multiple of 256 ns\)\n`)
	out, _ = command(t, exitOK, "list", "gcra_v2", "window_v1")
	matches(t, out, `(\w+_v[12] +[12] +[0-9a-f]{40} +\w+ +exact\n){2}`)
	out, _ = command(t, exitOK, "list", "gcra_v2", "--json")
	matches(t, out, `\[\{"name":"gcra_v2","version":"2","sha1":"[0-9a-f]{40}","status":"\w+","bound_ns":0\}\]\n`)
	out, errs := command(t, exitUsage, "list", "gcra_v0")
	matches(t, out+errs, `tatami: no script is named "gcra_v0"; there are .*\n`)
}

// lines matches the lines of load and verify for one server.
func lines(address, word string) string {
	return `(` + regexp.QuoteMeta(address) + ` +\w+_v\d +[0-9a-f]{40} +` + word + `\n){4}`
}

// jsonLines matches the same in JSON.
func jsonLines(address string, loaded bool, bits int) string {
	const line = `\{"server":"%s","name":"\w+_v[12]","sha1":"[0-9a-f]{40}","loaded":%v,"bits":%d\}`
	one := fmt.Sprintf(line, regexp.QuoteMeta(address), loaded, bits)
	return `\[` + strings.Repeat(one+`,`, 3) + one + `\]\n`
}

func TestLoadAndVerify(t *testing.T) {
	eachServer(t, func(t *testing.T, client *redis.Client) {
		addr := client.Options().Addr
		out, errs := command(t, exitRefused, "verify")
		matches(t, out, lines(addr, "missing"))
		matches(t, errs, "")
		out, _ = command(t, exitOK, "load")
		matches(t, out, lines(addr, "loaded"))
		for line := range strings.Lines(out) {
			sha1 := strings.Fields(line)[2]
			if loaded := client.ScriptExists(t.Context(), sha1).Val(); !loaded[0] {
				t.Errorf("%q is not on the server", line)
			}
		}
		out, _ = command(t, exitOK, "load", "--json")
		matches(t, out, jsonLines(addr, true, 64))
		out, _ = command(t, exitOK, "verify")
		matches(t, out, lines(addr, "loaded"))
		must(t, client.ScriptFlush(t.Context()).Err())
		out, _ = command(t, exitRefused, "verify", "--json")
		matches(t, out, jsonLines(addr, false, 64))
	})
}

// TestLoad32 has real servers of 32 bits.
func TestLoad32(t *testing.T) {
	for _, architecture := range servers.Architectures32 {
		t.Run(architecture, func(t *testing.T) {
			server := servers.ForTest32(t, architecture)
			t.Setenv("REDIS_URL", server.URL)
			address := strings.TrimPrefix(server.URL, "redis://")
			out, _ := command(t, exitRefused, "verify")
			matches(t, out, lines(address, "missing, 32-bit"))
			out, _ = command(t, exitOK, "load")
			matches(t, out, lines(address, "loaded, 32-bit"))
			out, _ = command(t, exitOK, "verify", "--json")
			matches(t, out, jsonLines(address, true, 32))
		})
	}
}

func TestAllowAndPeek(t *testing.T) {
	eachServer(t, func(t *testing.T, client *redis.Client) {
		out, _ := command(t, exitOK, call("peek", "k")...)
		matches(t, out, `remaining 60, reset after 0s, limit 300 per 1m0s burst 60 gcra, key "rl:\{k\}"\n`)
		if n := client.DBSize(t.Context()).Val(); n != 0 {
			t.Error("peek made a key")
		}
		out, _ = command(t, exitOK, call("allow", "k")...)
		matches(t, out, `admitted, remaining 59, reset after 200ms, limit 300 per 1m0s burst 60 gcra, key "rl:\{k\}"\n`)
		out, errs := command(t, exitRefused, call("allow", "k", "--cost", "61")...)
		matches(t, out,
			`unfittable, cost 61 is above the burst 60, remaining \d+, reset after \S+, `+
				`limit 300 per 1m0s burst 60 gcra, key "rl:\{k\}"\n`)
		matches(t, errs, "")

		for _, algorithm := range []string{"gcra", "fixed_window", "sliding_window"} { // without a burst
			out, _ = command(t, exitRefused, "allow", "u", "--amount", "5", "--period", "1m", "--cost", "6", "--algorithm", algorithm)
			matches(t, out, `unfittable, cost 6 is above the amount 5, remaining 5, .*\n`)
		}

		// The last unit comes back after an hour, so the clock cannot disturb this.
		hour := []string{"--amount", "2", "--period", "2h"}
		got := fields(t, first(command(t, exitOK, append([]string{"allow", "h", "--json"}, hour...)...)))
		if len(got) != 5 || got["status"] != json.Number("1") || got["remaining"] != json.Number("1") ||
			got["retry_after_ns"] != json.Number("0") || got["key"] != "rl:{h}" {
			t.Errorf("%v, want status 1, remaining 1, retry_after_ns 0, key rl:{h}", got)
		}
		command(t, exitOK, append([]string{"allow", "h"}, hour...)...)
		out, _ = command(t, exitRefused, append([]string{"allow", "h"}, hour...)...)
		matches(t, out,
			`refused, retry after 59m\S+, remaining 0, reset after 1h59m\S+, limit 2 per 2h0m0s gcra, key "rl:\{h\}"\n`)
		out, _ = command(t, exitRefused, append([]string{"peek", "h"}, hour...)...)
		matches(t, out, `remaining 0, reset after 1h59m\S+, limit 2 per 2h0m0s gcra, key "rl:\{h\}"\n`)
		out, _ = command(t, exitRefused, append([]string{"allow", "h", "--json", "--cost", "3"}, hour...)...)
		got = fields(t, out)
		if got["status"] != json.Number("-1") || got["retry_after_ns"] != json.Number("-1") {
			t.Errorf("%v, want status -1 and retry_after_ns -1", got)
		}

		must(t, client.Set(t.Context(), "rl:{text}", "hello", 0).Err())
		must(t, client.RPush(t.Context(), "rl:{list}", "a").Err())
		for _, name := range []string{"allow", "peek"} {
			_, errs = command(t, exitServer, call(name, "text")...)
			matches(t, errs, `tatami: key "rl:\{text\}": key holds something else: 127\S+: BADSTATE gcra_v2: .*\n`)
			_, errs = command(t, exitServer, call(name, "list")...)
			matches(t, errs, `tatami: key "rl:\{list\}": key holds something else: 127\S+: WRONGTYPE .*\n`)
		}
	})
}

// TestKeys holds the Redis key of each limit against the one that the server has, and
// looks at it, resets it and deletes it by the line that made it.
func TestKeys(t *testing.T) {
	eachServer(t, func(t *testing.T, client *redis.Client) {
		for _, test := range []struct{ flags, key string }{
			{"", "rl:{42}"},
			{"--algorithm token_bucket", "rl:{42}"},
			{"--name login", "rl:{42}:login"},
			{"--name login --prefix app:", "app:{42}:login"},
			{"--algorithm leaky_bucket --prefix=", "{42}"},
			{"--algorithm fixed_window", "rl:{42}:3600000000000"},
			{"--algorithm sliding_window --name login", "rl:{42}:login:3600000000000"},
		} {
			with := func(name string) []string {
				return append([]string{name, "42", "--amount", "5", "--period", "1h"}, strings.Fields(test.flags)...)
			}
			key := `key "` + regexp.QuoteMeta(test.key) + `"\n`
			out, _ := command(t, exitOK, with("allow")...)
			matches(t, out, `admitted, remaining 4, .*, `+key)
			if n := client.DBSize(t.Context()).Val(); n != 1 || client.Exists(t.Context(), test.key).Val() != 1 {
				t.Errorf("%q made %d keys, want the key %q alone", test.flags, n, test.key)
			}
			out, _ = command(t, exitOK, with("inspect")...)
			matches(t, out, `(gcra|window): .*, `+key)
			raw, _ := command(t, exitOK, "inspect", "--raw", test.key)
			matches(t, raw, `(gcra|window): .*, `+key)

			out, _ = command(t, exitOK, with("reset")...)
			matches(t, out, `reset, `+key)
			out, _ = command(t, exitOK, with("peek")...)
			matches(t, out, `remaining 5, .*, `+key)
			if n := client.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("%q: %d keys after the reset", test.flags, n)
			}

			must(t, client.RPush(t.Context(), test.key, "a").Err())
			_, errs := command(t, exitServer, with("reset")...)
			matches(t, errs,
				`tatami: key "`+regexp.QuoteMeta(test.key)+`": key holds something else: 127\S+: WRONGTYPE .*\n`)
			out, _ = command(t, exitOK, append(with("delete"), "--json")...)
			if got := fields(t, out); len(got) != 2 || got["key"] != test.key || got["existed"] != true {
				t.Errorf("%v, want that the key %q existed", got, test.key)
			}
			if n := client.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("%q: %d keys after the delete", test.flags, n)
			}
			for _, name := range []string{"reset", "delete"} {
				out, _ = command(t, exitOK, with(name)...)
				hint := `a window has another key: give --algorithm and --period\n`
				if strings.Contains(test.flags, "window") {
					hint = ""
				}
				matches(t, out, `nothing to `+name+`, no `+key+hint)
				out, _ = command(t, exitOK, append(with(name), "--json")...)
				if got := fields(t, out); len(got) != 2 || got["key"] != test.key || got["existed"] != false {
					t.Errorf("%s: %v, want that there was no key %q", name, got, test.key)
				}
			}
			must(t, client.Set(t.Context(), test.key, "anything", 0).Err())
			out, _ = command(t, exitOK, with("delete")...)
			matches(t, out, `deleted, `+key)
		}

		// Of the limit only what is in the key is needed.
		command(t, exitOK, call("allow", "43", "--name", "login")...)
		command(t, exitOK, "inspect", "43", "--name", "login")
		command(t, exitOK, "reset", "43", "--name", "login")
		_, errs := command(t, exitRefused, "inspect", "43", "--name", "login")
		matches(t, errs, `tatami: no key "rl:\{43\}:login"\n`)
	})
}

// TestScript tells from the answers which script was called.
func TestScript(t *testing.T) {
	eachServer(t, func(t *testing.T, client *redis.Client) {
		// A rested key: 1000 units of 1000 ns, or of 1024 ns on the grid of gcra_v1.
		micros := func(more ...string) []string {
			return append([]string{"allow", "micros", "--amount", "1000000", "--period", "1s", "--cost", "1000"}, more...)
		}
		out, _ := command(t, exitOK, micros()...)
		matches(t, out, `admitted, remaining 999000, reset after 1ms, .*\n`)
		command(t, exitOK, "reset", "micros")
		out, _ = command(t, exitOK, micros("--script", "gcra_v1")...)
		matches(t, out, `admitted, remaining 999000, reset after 1\.024\d*ms, .*\n`)
		command(t, exitOK, "reset", "micros")
		out, _ = command(t, exitOK, micros("--script", "gcra_v2")...)
		matches(t, out, `admitted, remaining 999000, reset after 1ms, .*\n`)

		// Each reads what the other wrote.
		for i, script := range []string{"gcra_v1", "gcra_v2", "gcra_v1"} {
			out, _ = command(t, exitOK, "allow", "k", "--amount", "10", "--period", "1000h", "--script", script)
			matches(t, out, fmt.Sprintf(`admitted, remaining %d, .*\n`, 9-i))
		}
		command(t, exitOK, "allow", "k", "--amount", "10", "--period", "1h", "--algorithm", "fixed_window", "--script", "window_v1")
	})
}

func first(stdout, _ string) string { return stdout }

func TestInspect(t *testing.T) {
	eachServer(t, func(t *testing.T, client *redis.Client) {
		out, errs := command(t, exitRefused, "inspect", "k")
		matches(t, out+errs, `tatami: no key "rl:\{k\}"\n`)

		// A period alone names no window.
		command(t, exitOK, "allow", "p", "--amount", "1", "--period", "1h", "--algorithm", "fixed_window")
		out, errs = command(t, exitRefused, "inspect", "p", "--period", "1h")
		matches(t, out+errs,
			`tatami: no key "rl:\{p\}", as gcra has it; a window's is "rl:\{p\}:3600000000000", see --algorithm\n`)
		out, errs = command(t, exitRefused, "inspect", "p", "--period", "2h", "--algorithm", "fixed_window")
		matches(t, out+errs, `tatami: no key "rl:\{p\}:7200000000000"\n`)

		hour := []string{"--amount", "10", "--period", "1h"}
		command(t, exitOK, append([]string{"allow", "k"}, hour...)...)
		out, _ = command(t, exitOK, "inspect", "k")
		matches(t, out,
			`gcra: TAT 20\d\d-\S+Z, (6m0s|5m\S+) ahead of the server's clock, expires in \S+, key "rl:\{k\}"\n`)
		got := fields(t, first(command(t, exitOK, "inspect", "k", "--json")))
		stored := client.Get(t.Context(), "rl:{k}").Val()
		if got["kind"] != "gcra" || got["key"] != "rl:{k}" || got["tat_ns"] != json.Number(stored) {
			t.Errorf("%v, want kind gcra and the TAT %s", got, stored)
		}
		tat, err := time.Parse(time.RFC3339Nano, got["tat"].(string))
		if err != nil || jsonInt(tat.UnixNano()) != stored {
			t.Errorf("%v: tat and tat_ns differ", got)
		}
		// A TAT of gcra_v2, to the nanosecond, and the last one.
		for value, tat := range map[string]string{
			"1780000000123456789": "2026-05-28T20:26:40.123456789Z",
			"9223372036854775807": "2262-04-11T23:47:16.854775807Z",
			"9999999999999999999": "2286-11-20T17:46:39.999999999Z",
		} {
			must(t, client.Set(t.Context(), "tat", value, 0).Err())
			got := fields(t, first(command(t, exitOK, "inspect", "--raw", "tat", "--json")))
			if got["tat_ns"] != json.Number(value) || got["tat"] != tat || got["credit_ns"] != nil {
				t.Errorf("%v, want tat_ns %s, tat %s and no credit", got, value, tat)
			}
		}
		must(t, client.Set(t.Context(), "rested", "1000000000000000000", 0).Err())
		out, _ = command(t, exitOK, "inspect", "--raw", "rested")
		matches(t, out, `gcra: TAT 2001-09-09T01:46:40Z, rested for \S+, never expires, key "rested"\n`)
		got = fields(t, first(command(t, exitOK, "inspect", "--raw", "rested", "--json")))
		if ahead, err := got["ahead_ns"].(json.Number).Int64(); err != nil || ahead >= 0 || got["ttl_ms"] != json.Number("-1") {
			t.Errorf("%v, want ahead_ns negative and ttl_ms -1", got)
		}

		// A TAT beside which units were given back, more of them than 64 bits hold.
		const credit = "1780000000123456789 100000000000000000000000 1790000000000000001"
		must(t, client.Set(t.Context(), "credit", credit, time.Minute).Err())
		out, _ = command(t, exitOK, "inspect", "--raw", "credit")
		matches(t, out, `gcra: TAT 2026-05-28T20:26:40\.123456789Z, .*, credit 100000000000000000000000 ns, `+
			`last TAT 2026-09-21T14:13:20\.000000001Z, expires in \S+, key "credit"\n`)
		got = fields(t, first(command(t, exitOK, "inspect", "--raw", "credit", "--json")))
		if got["tat_ns"] != json.Number("1780000000123456789") || got["credit_ns"] != json.Number("100000000000000000000000") ||
			got["last_ns"] != json.Number("1790000000000000001") || got["last"] != "2026-09-21T14:13:20.000000001Z" {
			t.Errorf("%v, want TAT, credit and last", got)
		}

		window := []string{"--algorithm", "sliding_window", "--period", "1h"}
		command(t, exitOK, append([]string{"allow", "w", "--cost", "3", "--amount", "10"}, window...)...)
		out, _ = command(t, exitOK, append([]string{"inspect", "w"}, window...)...)
		// 3600 x 10^9 modulo 2^32.
		matches(t, out,
			`window: index \d+, previous 0, current 3, period 817405952 ns modulo 2\^32, `+
				`expires in \S+, key "rl:\{w\}:3600000000000"\n`)
		must(t, client.Set(t.Context(), "w", "\xff\xfe\xfd\xfc\x01\x02\xff\xff\xf8\x47\x58\x00", time.Minute).Err())
		got = fields(t, first(command(t, exitOK, "inspect", "--raw", "w", "--json")))
		delete(got, "ttl_ms")
		text, err := json.Marshal(got)
		must(t, err)
		matches(t, string(text),
			`\{"current":65535,"index":4294901244,"key":"w","kind":"window","period_ns_mod_2_32":4165425152,"previous":258\}`)

		for value, problem := range map[string]string{
			"57":                 `holds a number of 2 digits; a TAT by the server's clock has 19`,
			"0":                  `holds a number of 1 digits; a TAT by the server's clock has 19`,
			"999999999999999999": `holds a number of 18 digits; a TAT by the server's clock has 19`,
			"1780000000123456789 5 178000000012345678": `holds a number of 18 digits; a TAT by the server's clock has 19`,
		} {
			must(t, client.Set(t.Context(), "rl:{counter}", value, 0).Err())
			out, errs = command(t, exitServer, "inspect", "counter")
			matches(t, out+errs, `tatami: key "rl:\{counter\}": `+problem+`\n`)
		}
		for _, value := range []string{
			"", "hello", "-1", "+5", "007", "1.5", "1e3", " 5", "10000000000000000000", "123456789 ",
			"\x00\x00\x00\x01\x00\x02\x00\x03", // the 8 bytes of a window before it had a period
			"1780000000123456789 5", "1780000000123456789 0 1780000000123456789", "1780000000123456789  5 1780000000123456789",
			"1780000000123456789 5 10000000000000000000", "1780000000123456789 5 1780000000123456789 ",
		} {
			must(t, client.Set(t.Context(), "other", value, 0).Err())
			out, errs = command(t, exitServer, "inspect", "--raw", "other")
			matches(t, out+errs, `tatami: key "other": holds \d+ bytes that are neither a TAT nor a window's counts\n`)
		}
		must(t, client.RPush(t.Context(), "list", "a").Err())
		_, errs = command(t, exitServer, "inspect", "--raw", "list", "--json")
		got = fields(t, errs)
		if !strings.HasPrefix(got["error"].(string), `key "list": WRONGTYPE `) || got["exit"] != json.Number("3") {
			t.Errorf("%v, want WRONGTYPE and exit 3", got)
		}
	})
}

// TestInspectBefore2001 has a server whose clock is not set, where a TAT has fewer digits.
func TestInspectBefore2001(t *testing.T) {
	now := time.Unix(86400, 0)
	found, text, err := decode("86460000000001", now)
	if err != nil || found.TATNS != 86460000000001 {
		t.Errorf("%+v, %v, want the TAT", found, err)
	}
	matches(t, text, `gcra: TAT 1970-01-02T00:01:00\.000000001Z, 1m0\.000000001s ahead of the server's clock`)
	if _, _, err := decode("86460000000001", time.Unix(1e9, 0)); err == nil {
		t.Error("a TAT of 14 digits in 2001")
	}
}

func jsonInt(n int64) string {
	text, _ := json.Marshal(n) // an int
	return string(text)
}

func TestUsage(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1") // nobody listens, and nobody is asked
	const form = `the form is redis://host:port, or rediss://host:port for TLS`
	const badURL = `a bad URL; a password has %2F for '/', %3F for '\?', %23 for '#' and %40 for '@'; ` + form
	period := func(text string) []string { return []string{"allow", "k", "--amount", "50", "--period", text} }
	invalid := func(name, flag, text, problem string) string {
		return `invalid argument "` + text + `" for "--` + flag + `" flag: ` + problem + `; see tatami ` + name + ` --help`
	}
	invalidPeriod := func(text, problem string) string { return invalid("allow", "period", text, problem) }
	const notTime = "not a time such as 500ms, 1m or 24h; the units are ms, s, m and h"
	const notWhole = `not a whole number below 2\^63`
	for _, test := range []struct {
		args    []string
		pattern string
	}{
		{[]string{"nope"}, `unknown command "nope" for "tatami"`},
		{[]string{"allow"}, `allow needs a KEY; see tatami allow --help`},
		{[]string{"peek", "--amount", "1"}, `peek needs a KEY; see tatami peek --help`},
		{[]string{"inspect"}, `inspect needs a KEY; see tatami inspect --help`},
		{[]string{"reset"}, `reset needs a KEY; see tatami reset --help`},
		{[]string{"delete", "a", "b"}, `delete takes one KEY, not 2 arguments; see tatami delete --help`},
		{[]string{"allow", "a", "b"}, `allow takes one KEY, not 2 arguments; see tatami allow --help`},
		{call("allow", ""), `allow needs a KEY that is not empty; see tatami allow --help`},
		{call("peek", ""), `peek needs a KEY that is not empty; see tatami peek --help`},
		{[]string{"inspect", ""}, `inspect needs a KEY that is not empty; see tatami inspect --help`},
		{[]string{"reset", "k", "--algorithm", "fixed_window"},
			`reset needs the --period of a window, which is a part of the key; see tatami reset --help`},
		{[]string{"inspect", "k", "--algorithm", "sliding_window"},
			`inspect needs the --period of a window, which is a part of the key; see tatami inspect --help`},
		{[]string{"inspect", "k", "--raw", "--name", "a"},
			`--raw takes the whole Redis key, so --name has no place; see tatami inspect --help`},
		{[]string{"inspect", "k", "--raw", "--prefix", "rl:"},
			`--raw takes the whole Redis key, so --prefix has no place; see tatami inspect --help`},
		{call("allow", "k", "--name", "1st"),
			`bad limit: limit 1st 300 .*: name "1st" is not a letter and then letters, .*`},
		{call("peek", "k", "--prefix", "a{b"), `the prefix has a brace, by which a cluster chooses the slot`},
		{call("delete", "k", "--prefix", "}"), `the prefix has a brace, by which a cluster chooses the slot`},
		{call("allow", "k", "--script", "gcra_v0"),
			`no script is named "gcra_v0"; there are gcra_v1, gcra_v2, window_v1, limits_v1`},
		{call("allow", "k", "--script", "limits_v1"),
			`--script limits_v1 does not keep limit 300 per 1m0s burst 60 gcra`},
		{call("wait", "k", "--script", "limits_v1", "--algorithm", "x"), `bad limit: .*`},
		{[]string{"wait", "k"}, `wait needs --amount and --period; see tatami wait --help`},
		{[]string{"reserve", "k"}, `reserve needs --amount and --period; see tatami reserve --help`},
		{call("reserve", "k", "--and", ""), `--and "": reserve needs a KEY; see reserve --help`},
		{call("reserve", "k", "--and", "l --amount 1"), `--and "l --amount 1": reserve needs --amount and --period; see reserve --help`},
		{call("reserve", "k", "--and", "l --amount 1 --period 1m --prefix x"), `--and ".*": --prefix is one for all limits`},
		{call("reserve", "k", "--and", "l --amount x"), `--and "l --amount x": invalid argument "x" for "--amount" flag: ` + notWhole},
		{[]string{"settle"}, `requires at least 1 arg\(s\), only received 0`},
		{[]string{"settle", "x"}, `USED "x" is ` + notWhole},
		{[]string{"settle", "1", "--from", "/nonexistent"}, `open /nonexistent: .*`},
		{[]string{"settle", "1", "--from", "tatami_test.go"}, `not an output of reserve --json: .*`},
		{call("allow", "k", "--script", "window_v1"),
			`--script window_v1 does not keep limit 300 per 1m0s burst 60 gcra`},
		{[]string{"allow", "k", "--amount", "5", "--period", "1m", "--algorithm", "fixed_window", "--script", "gcra_v1"},
			`--script gcra_v1 does not keep limit 5 per 1m0s fixed_window`},
		{[]string{"load", "extra"}, `load takes no arguments`},
		{[]string{"verify", "extra"}, `verify takes no arguments`},
		{[]string{"allow", "k"}, `allow needs --amount and --period; see tatami allow --help`},
		{[]string{"allow", "k", "--nope"}, `unknown flag: --nope; see tatami allow --help`},
		{period("60"), invalidPeriod("60", "it has no unit; for seconds write 60s")},
		{period("0.5"), invalidPeriod("0.5", "it has no unit; for seconds write 0.5s")},
		{period("0"), invalidPeriod("0", "a period is at least 1ms")},
		{period("1d"), invalidPeriod("1d", "a day is no unit; 1d is 24h")},
		{period("7d"), invalidPeriod("7d", "a day is no unit; 7d is 168h")},
		{period("60ns"), invalidPeriod("60ns", "a period is at least 1ms")},
		{period("999.999us"), invalidPeriod("999.999us", "a period is at least 1ms")},
		{period("-1m"), invalidPeriod("-1m", "a period is at least 1ms")},
		{period("minute"), invalidPeriod("minute", notTime)},
		{period("1d12h"), invalidPeriod("1d12h", notTime)},
		{period(""), invalidPeriod("", notTime)},
		{[]string{"allow", "k", "--amount", "5.5"}, invalid("allow", "amount", "5.5", notWhole)},
		{[]string{"allow", "k", "--cost", "0x10"}, invalid("allow", "cost", "0x10", notWhole)},
		{call("allow", "k", "--burst", "9223372036854775808"),
			invalid("allow", "burst", "9223372036854775808", notWhole)},
		{call("peek", "k", "--burst", "0"),
			invalid("peek", "burst", "0", "a burst is at least 1; leave it out to use the amount")},
		{call("allow", "k", "--algorithm", ""),
			invalid("allow", "algorithm", "", "it is empty; leave it out to use gcra")},
		{[]string{"peek", "k", "--amount", "0", "--period", "1s"},
			`bad limit: limit 0 per 1s gcra: amount 0 is below 1; .*`},
		{[]string{"allow", "k", "--amount", "100000", "--period", "1m", "--algorithm", "sliding_window"},
			`bad limit: limit 100000 per 1m0s sliding_window: amount 100000 exceeds 65535; use gcra`},
		{[]string{"allow", "k", "--amount", "1", "--period", "1m", "--algorithm", "x"},
			`bad limit: .*algorithm "x" is unknown; use gcra, .*`},
		{[]string{"verify", "--redis", "http://localhost"}, `--redis: redis: invalid URL scheme: http; ` + form},
		{[]string{"load", "--redis", "127.0.0.1:28531"}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", "localhost:6379"}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", "redis:6379"}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", ""}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", "redis://user:secret%zz@localhost"}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", "redis://localhost/first"},
			`--redis: redis: invalid database number: "first"; ` + form},
		// The rest of a password that is not escaped is taken for a port and what follows it.
		{[]string{"load", "--redis", "redis://:12/secret@localhost"}, `--redis: ` + badURL},
		{[]string{"load", "--redis", "redis://:12?secret@localhost"}, `--redis: ` + badURL},
		{[]string{"load", "--redis", "redis://:12#secret@localhost"}, `--redis: ` + badURL},
		{[]string{"load", "--redis", "redis://:se/cret@localhost"}, `--redis: not a URL; ` + form},
	} {
		out, errs := command(t, exitUsage, test.args...)
		matches(t, out+errs, `tatami: `+test.pattern+`\n`)
		out, errs = command(t, exitUsage, append(test.args, "--json")...)
		matches(t, out, "")
		got := fields(t, errs)
		matches(t, got["error"].(string), test.pattern)
		if got["exit"] != json.Number("2") {
			t.Errorf("%q: %v, want exit 2", test.args, got)
		}
	}
	t.Setenv("REDIS_URL", "nonsense")
	_, errs := command(t, exitUsage, "load")
	matches(t, errs, `tatami: REDIS_URL: not a URL; `+form+`\n`)
}

func TestServerTrouble(t *testing.T) {
	client := onServer(t)
	_, errs := command(t, exitUsage, call("allow", "k", "--cost", "-1")...)
	matches(t, errs, `tatami: bad cost: .*cost -1 is outside .*\n`)
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, errs = command(t, exitServer, call("allow", "k")...)
	matches(t, errs, `tatami: server is out of memory: 127\S+: OOM .*\n`)

	for _, test := range []struct {
		code int
		args []string
	}{
		{exitRefused, []string{"load"}}, {exitRefused, []string{"verify"}},
		{exitServer, []string{"inspect", "k"}}, {exitServer, []string{"reset", "k"}}, {exitServer, []string{"delete", "k"}},
		{exitServer, call("allow", "k")}, {exitServer, call("peek", "k")},
	} {
		out, errs := command(t, test.code, append(test.args, "--redis", "redis://127.0.0.1:1")...) // nobody listens
		matches(t, out+errs, `tatami: no server was reached: dial tcp 127\S+: connect: connection refused\n`)
	}
}

// TestNoInfo has a user who may not ask whether the server belongs to a cluster. One key
// needs no answer: a node of a cluster sends the caller away. Of all masters none is asked.
func TestNoInfo(t *testing.T) {
	client := onServer(t)
	must(t, client.ACLSetUser(t.Context(), "plain", "on", ">secret", "~*", "+@all", "-info").Err())
	url := "redis://plain:secret@" + client.Options().Addr
	out, _ := command(t, exitOK, call("allow", "k", "--redis", url)...)
	matches(t, out, `admitted, remaining 59, .*\n`)
	must(t, client.ScriptFlush(t.Context()).Err())
	for _, name := range []string{"load", "verify"} {
		out, errs := command(t, exitRefused, name, "--redis", url)
		matches(t, out+errs, `tatami: no server was reached: whether it is a cluster is not known, INFO is refused: `+
			client.Options().Addr+`: NOPERM .*\n`)
	}
	scripts, err := loader.Scripts()
	must(t, err)
	if loaded := client.ScriptExists(t.Context(), scripts[0].SHA1).Val(); loaded[0] {
		t.Error("load has loaded, and says that it has not")
	}
	t.Setenv("REDIS_URL", url)
	out, _ = command(t, exitOK, "allow", "--help")
	if strings.Contains(out, "secret") {
		t.Error("the help shows the password in REDIS_URL")
	}
}

// TestNoSecret has servers that a password does not open, and one that repeats the
// commands that it does not know.
func TestNoSecret(t *testing.T) {
	client := onServer(t)
	must(t, client.ACLSetUser(t.Context(), "plain", "on", ">right", "~*", "+@all", "-script").Err())
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					var words, size int
					if _, err := fmt.Fscanf(in, "*%d\r\n", &words); err != nil {
						return
					}
					all := make([]string, words)
					for i := range all {
						if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
							return
						}
						word := make([]byte, size+2)
						if _, err := io.ReadFull(in, word); err != nil {
							return
						}
						all[i] = "'" + string(word[:size]) + "'"
					}
					fmt.Fprintf(conn, "-ERR unknown command %s, with args beginning with: %s \r\n", all[0], strings.Join(all[1:], " "))
				}
			}()
		}
	}()
	for _, address := range []string{
		"redis://plain:secret@" + client.Options().Addr, // WRONGPASS
		"redis://plain:right@" + client.Options().Addr,  // NOPERM for load and verify
		"redis://plain:secret@" + echo.Addr().String(),
		"redis://:secret@" + echo.Addr().String() + "?protocol=2",
		"redis://plain:secret@127.0.0.1:1",
		"redis://plain:secret@host.invalid",
		"rediss://plain:secret@" + client.Options().Addr + "?dial_timeout=100ms&read_timeout=100ms",
		"http://plain:secret@localhost",
	} {
		for _, args := range [][]string{{"load"}, {"verify"}, call("allow", "k"), {"inspect", "k"}, {"reset", "k"}, {"delete", "k"}} {
			for _, form := range []string{"--json=false", "--json"} {
				var out, errs bytes.Buffer
				code := run(t.Context(), append(args, "--redis", address, form), &out, &errs)
				if all := out.String() + errs.String(); strings.Contains(all, "secret") || strings.Contains(all, "right") {
					t.Errorf("tatami %q at %s shows the password: %s", args, address, all)
				} else if code == exitOK && !strings.Contains(address, "right") {
					t.Errorf("tatami %q at %s succeeds: %s", args, address, all)
				}
			}
		}
	}
	// A server that answers with errors alone is reached.
	out, errs := command(t, exitServer, "load", "--redis", "redis://plain:right@"+client.Options().Addr)
	matches(t, out+errs, `tatami: 127\S+: NOPERM .*\n`)
}

// TestTimeouts holds the times that the help names against the client's, and has a
// server that accepts connections and never answers.
func TestTimeouts(t *testing.T) {
	live := onServer(t)
	help, _ := command(t, exitOK)
	if !strings.Contains(help, "5 s to accept a connection and 5 s to answer a command") {
		t.Errorf("the help does not name the timeouts:\n%s", help)
	}
	options := open(t, "redis://"+live.Options().Addr).(*redis.Client).Options()
	if options.DialTimeout != 5*time.Second || options.ReadTimeout != 5*time.Second {
		t.Errorf("dial timeout %v and read timeout %v, want 5s", options.DialTimeout, options.ReadTimeout)
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	address := silent.Addr().String()
	_, errs := command(t, exitRefused, "load", "--redis", "redis://"+address+"?read_timeout=10ms")
	matches(t, errs, `tatami: no server was reached: `+address+`: i/o timeout\n`)
	_, errs = command(t, exitServer, call("allow", "k", "--redis", "redis://"+address+"?read_timeout=10ms")...)
	matches(t, errs, `tatami: no server was reached: `+address+`: i/o timeout\n`)
}

// open connects as a command does.
func open(t *testing.T, address string) redis.UniversalClient {
	t.Helper()
	options, err := parse(address)
	must(t, err)
	client, err := connect(t.Context(), options, true)
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

// TestCluster has the slots on two masters, so that a client of one server is sent
// away for half of the keys.
func TestCluster(t *testing.T) {
	// The one that is left serves its slots for the timeout, and the test needs them.
	args := []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "600000"}
	nodes := []*redis.Client{onServer(t, args...), onServer(t, args...)}
	for _, name := range []string{"load", "verify"} { // no slots yet, so no master
		out, errs := command(t, exitRefused, name)
		matches(t, out+errs, `tatami: no server was reached: .*\n`)
	}
	for i, node := range nodes {
		must(t, node.ClusterAddSlotsRange(t.Context(), i*8192, i*8192+8191).Err())
		must(t, node.Do(t.Context(), "cluster", "set-config-epoch", i+1).Err())
	}
	host, port, _ := strings.Cut(nodes[0].Options().Addr, ":")
	must(t, nodes[1].ClusterMeet(t.Context(), host, port).Err())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		a, b := nodes[0].ClusterInfo(t.Context()).Val(), nodes[1].ClusterInfo(t.Context()).Val()
		if strings.Contains(a, "cluster_state:ok") && strings.Contains(b, "cluster_state:ok") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no cluster after a minute:\n%s%s", a, b)
		}
	}
	options := open(t, "redis://"+nodes[0].Options().Addr+"?dial_timeout=7s&read_timeout=8s").(*redis.ClusterClient).Options()
	if options.DialTimeout != 7*time.Second || options.DialerRetries != 1 || options.ReadTimeout != 8*time.Second {
		t.Errorf("%d dials of %v each, read timeout %v, want 1 of 7s and 8s", options.DialerRetries, options.DialTimeout, options.ReadTimeout)
	}
	all := func(word string) string {
		a, b := lines(nodes[0].Options().Addr, word), lines(nodes[1].Options().Addr, word)
		return `(` + a + b + `|` + b + a + `)`
	}
	out, _ := command(t, exitRefused, "verify")
	matches(t, out, all("missing"))
	out, _ = command(t, exitOK, "load")
	matches(t, out, all("loaded"))
	out, _ = command(t, exitOK, "verify")
	matches(t, out, all("loaded"))
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		command(t, exitOK, call("allow", key)...)
		out, _ = command(t, exitOK, "inspect", key)
		matches(t, out, `gcra: TAT .*\n`)
	}
	if nodes[0].DBSize(t.Context()).Val() == 0 || nodes[1].DBSize(t.Context()).Val() == 0 {
		t.Error("a node holds no key, so it was not tested")
	}

	// A user without INFO is not told of the other master, but sent to it.
	for _, node := range nodes {
		must(t, node.ACLSetUser(t.Context(), "plain", "on", ">right", "~*", "+@all", "-info").Err())
	}
	url := "redis://plain:right@" + nodes[0].Options().Addr
	command(t, exitOK, call("allow", strings.Trim(nodes[0].RandomKey(t.Context()).Val(), "rl:{}"), "--redis", url)...)
	away := strings.Trim(nodes[1].RandomKey(t.Context()).Val(), "rl:{}")
	for _, args := range [][]string{call("allow", away), {"inspect", away}, {"reset", away}} {
		out, problem := command(t, exitServer, append(args, "--redis", url)...)
		matches(t, out+problem,
			`tatami: .*MOVED .*; this is one node of a cluster, and it refuses INFO, which would tell so\n`)
	}
	out, problem := command(t, exitRefused, "load", "--redis", url)
	matches(t, out+problem, `tatami: no server was reached: .* INFO is refused: .*\n`)

	// With a master down what another one holds goes on.
	key := away
	live, dead := nodes[1].Options().Addr, nodes[0].Options().Addr
	_ = nodes[0].ShutdownNoSave(t.Context()) // it answers by ending
	t.Setenv("REDIS_URL", "redis://"+live)
	command(t, exitOK, call("allow", key)...)
	for _, name := range []string{"verify", "load"} {
		out, problem = command(t, exitServer, name)
		matches(t, out, lines(live, "loaded"))
		matches(t, problem, `tatami: dial tcp `+dead+`: connect: connection refused\n`)
	}
	_ = nodes[1].ShutdownNoSave(t.Context())
	command(t, exitServer, call("allow", key)...)
	command(t, exitRefused, "verify")
}

func TestHelp(t *testing.T) {
	out, _ := command(t, exitOK, "--version")
	matches(t, out, `tatami version (\(devel\)|v\d\S+)\n`)
	for _, name := range []string{"list", "load", "verify", "allow", "peek", "inspect", "reset", "delete", "serve"} {
		out, _ := command(t, exitOK, name, "--help")
		if !strings.Contains(out, "Examples:\n  tatami "+name) {
			t.Errorf("the help of %s has no example:\n%s", name, out)
		}
	}
	for _, name := range []string{"allow", "peek"} {
		out, _ = command(t, exitOK, name, "--help")
		if !strings.Contains(strings.Join(strings.Fields(out), " "), "in any period at most burst + amount units pass") {
			t.Errorf("the help of %s does not say what a burst lets pass:\n%s", name, out)
		}
	}
	out, _ = command(t, exitOK)
	for _, code := range []string{"  0  ", "  1  ", "  2  ", "  3  "} {
		if !strings.Contains(out, code) {
			t.Errorf("the help lacks exit code %s:\n%s", code, out)
		}
	}
}
