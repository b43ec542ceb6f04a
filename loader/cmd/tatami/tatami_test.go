package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// onServer starts a server and makes it REDIS_URL, which --redis falls back to.
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
	matches(t, out, `gcra_v1 +1 +[0-9a-f]{40} +\w+ +never early, less than 256 ns late against its own interval \(period/amount, up to a multiple of 256 ns\)\n`)
	out, _ = command(t, exitOK, "list", "gcra_v2", "window_v1", "window_v2")
	matches(t, out, `(\w+_v[12] +[12] +[0-9a-f]{40} +\w+ +exact\n){3}`)
	out, _ = command(t, exitOK, "list", "window_v2", "--json")
	matches(t, out, `\[\{"name":"window_v2","version":"2","sha1":"[0-9a-f]{40}","status":"\w+","bound_ns":0\}\]\n`)
	out, errs := command(t, exitUsage, "list", "gcra_v0")
	matches(t, out+errs, `tatami: no script is named "gcra_v0"; there are .*\n`)
}

func TestLoadAndVerify(t *testing.T) {
	client := onServer(t)
	addr := client.Options().Addr
	out, errs := command(t, exitRefused, "verify")
	matches(t, out, `(`+addr+` +\w+_v\d +[0-9a-f]{40} +missing\n){4}`)
	matches(t, errs, "")
	out, _ = command(t, exitOK, "load")
	matches(t, out, `([0-9a-f]{40} \w+_v\d\n){4}`)
	for line := range strings.Lines(out) {
		if loaded := client.ScriptExists(t.Context(), line[:40]).Val(); !loaded[0] {
			t.Errorf("%q is not on the server", line)
		}
	}
	out, _ = command(t, exitOK, "load", "--json")
	matches(t, out, `\[\{"name":"gcra_v1",.*\},\{"name":"gcra_v2",.*\},\{"name":"window_v1",.*\},\{"name":"window_v2",.*\}\]\n`)
	out, _ = command(t, exitOK, "verify")
	matches(t, out, `(`+addr+` +\w+_v\d +[0-9a-f]{40} +loaded\n){4}`)
	must(t, client.ScriptFlush(t.Context()).Err())
	out, _ = command(t, exitRefused, "verify", "--json")
	matches(t, out, `\[(\{"server":"`+addr+`","name":"\w+_v[12]","sha1":"[0-9a-f]{40}","loaded":false\},?){4}\]\n`)
}

func TestAllowAndPeek(t *testing.T) {
	client := onServer(t)
	out, _ := command(t, exitOK, call("peek", "k")...)
	matches(t, out, `remaining 60, reset after 0s, limit 300 per 1m0s burst 60 gcra\n`)
	if n := client.Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("peek made the key")
	}
	out, _ = command(t, exitOK, call("allow", "k")...)
	matches(t, out, `admitted, remaining 59, reset after 200ms, limit 300 per 1m0s burst 60 gcra\n`)
	out, errs := command(t, exitRefused, call("allow", "k", "--cost", "61")...)
	matches(t, out, `unfittable, remaining \d+, reset after \S+, limit 300 per 1m0s burst 60 gcra\n`)
	matches(t, errs, "")

	// The last unit comes back after an hour, so the clock cannot disturb this.
	hour := []string{"--amount", "2", "--period", "2h"}
	got := fields(t, first(command(t, exitOK, append([]string{"allow", "h", "--json"}, hour...)...)))
	if len(got) != 4 || got["status"] != json.Number("1") || got["remaining"] != json.Number("1") || got["retry_after_ns"] != json.Number("0") {
		t.Errorf("%v, want status 1, remaining 1, retry_after_ns 0", got)
	}
	command(t, exitOK, append([]string{"allow", "h"}, hour...)...)
	out, _ = command(t, exitRefused, append([]string{"allow", "h"}, hour...)...)
	matches(t, out, `refused, retry after 59m\S+, remaining 0, reset after 1h59m\S+, limit 2 per 2h0m0s gcra\n`)
	out, _ = command(t, exitRefused, append([]string{"peek", "h"}, hour...)...)
	matches(t, out, `remaining 0, reset after 1h59m\S+, limit 2 per 2h0m0s gcra\n`)
	got = fields(t, first(command(t, exitRefused, append([]string{"allow", "h", "--json", "--cost", "3"}, hour...)...)))
	if got["status"] != json.Number("-1") || got["retry_after_ns"] != json.Number("-1") {
		t.Errorf("%v, want status -1 and retry_after_ns -1", got)
	}
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window"} {
		out, _ = command(t, exitOK, "allow", algorithm, "--amount", "5", "--period", "1h", "--algorithm", algorithm)
		matches(t, out, `admitted, remaining 4, reset after \S+, limit 5 per 1h0m0s `+algorithm+`\n`)
	}

	must(t, client.Set(t.Context(), "text", "hello", 0).Err())
	_, errs = command(t, exitServer, call("allow", "text")...)
	matches(t, errs, `tatami: key "text": key holds something else: BADSTATE gcra_v2: .*\n`)
	_, errs = command(t, exitServer, call("peek", "text", "--v1")...)
	matches(t, errs, `tatami: key "text": key holds something else: BADSTATE gcra_v1: .*\n`)
	must(t, client.RPush(t.Context(), "list", "a").Err())
	for _, name := range []string{"allow", "peek"} {
		_, errs = command(t, exitServer, call(name, "list")...)
		matches(t, errs, `tatami: key "list": key holds something else: WRONGTYPE .*\n`)
	}
}

// TestV1 tells from the answers which version was called.
func TestV1(t *testing.T) {
	client := onServer(t)
	// A rested key: 1000 units of 1000 ns, or of 1024 ns on the grid of gcra_v1.
	micros := []string{"--amount", "1000000", "--period", "1s", "--cost", "1000"}
	out, _ := command(t, exitOK, append([]string{"allow", "micros"}, micros...)...)
	matches(t, out, `admitted, remaining 999000, reset after 1ms, .*\n`)
	must(t, client.Del(t.Context(), "micros").Err())
	out, _ = command(t, exitOK, append([]string{"allow", "micros", "--v1"}, micros...)...)
	matches(t, out, `admitted, remaining 999000, reset after 1\.024\d*ms, .*\n`)

	must(t, client.Set(t.Context(), "text", "hello", 0).Err())
	for algorithm, asset := range map[string]string{"gcra": "gcra", "fixed_window": "window", "sliding_window": "window"} {
		limit := []string{"--amount", "10", "--period", "1000h", "--algorithm", algorithm}
		for _, name := range []string{"allow", "peek"} {
			_, errs := command(t, exitServer, append([]string{name, "text"}, limit...)...)
			matches(t, errs, `tatami: key "text": key holds something else: BADSTATE `+asset+`_v2: .*\n`)
			_, errs = command(t, exitServer, append([]string{name, "text", "--v1"}, limit...)...)
			matches(t, errs, `tatami: key "text": key holds something else: BADSTATE `+asset+`_v1: .*\n`)
		}

		// Each reads what the other wrote.
		for i, version := range [][]string{{"--v1"}, nil, {"--v1"}} {
			out, _ = command(t, exitOK, append(append([]string{"allow", algorithm}, limit...), version...)...)
			matches(t, out, fmt.Sprintf(`admitted, remaining %d, .*\n`, 9-i))
		}
	}
}

func first(stdout, _ string) string { return stdout }

func TestInspect(t *testing.T) {
	client := onServer(t)
	out, errs := command(t, exitRefused, "inspect", "k")
	matches(t, out+errs, `tatami: no key "k"\n`)

	hour := []string{"--amount", "10", "--period", "1h"}
	command(t, exitOK, append([]string{"allow", "k"}, hour...)...)
	out, _ = command(t, exitOK, "inspect", "k")
	matches(t, out, `gcra: TAT 20\d\d-\S+Z, 5m\S+ ahead of the server's clock, expires in \S+\n`)
	got := fields(t, first(command(t, exitOK, "inspect", "k", "--json")))
	if got["kind"] != "gcra" || string(got["tat_ns"].(json.Number)) != client.Get(t.Context(), "k").Val() {
		t.Errorf("%v, want kind gcra and the TAT %s", got, client.Get(t.Context(), "k").Val())
	}
	if tat, err := time.Parse(time.RFC3339Nano, got["tat"].(string)); err != nil || json.Number(jsonInt(tat.UnixNano())) != got["tat_ns"] {
		t.Errorf("%v: tat and tat_ns differ", got)
	}
	// A TAT of gcra_v2, to the nanosecond, and the last one.
	for value, tat := range map[string]string{
		"1780000000123456789": "2026-05-28T20:26:40.123456789Z",
		"9223372036854775807": "2262-04-11T23:47:16.854775807Z",
		"9999999999999999999": "2286-11-20T17:46:39.999999999Z",
		"1":                   "1970-01-01T00:00:00.000000001Z",
	} {
		must(t, client.Set(t.Context(), "tat", value, 0).Err())
		got := fields(t, first(command(t, exitOK, "inspect", "tat", "--json")))
		if got["tat_ns"] != json.Number(value) || got["tat"] != tat {
			t.Errorf("%v, want tat_ns %s and tat %s", got, value, tat)
		}
	}
	must(t, client.Set(t.Context(), "rested", "1000000000000000000", 0).Err())
	out, _ = command(t, exitOK, "inspect", "rested")
	matches(t, out, `gcra: TAT 2001-09-09T01:46:40Z, rested for \S+, never expires\n`)
	got = fields(t, first(command(t, exitOK, "inspect", "rested", "--json")))
	if ahead, err := got["ahead_ns"].(json.Number).Int64(); err != nil || ahead >= 0 || got["ttl_ms"] != json.Number("-1") {
		t.Errorf("%v, want ahead_ns negative and ttl_ms -1", got)
	}

	command(t, exitOK, append([]string{"allow", "w", "--cost", "3", "--algorithm", "sliding_window"}, hour...)...)
	out, _ = command(t, exitOK, "inspect", "w")
	matches(t, out, `window: index \d+, previous 0, current 3, expires in \S+\n`)
	must(t, client.Set(t.Context(), "w", "\xff\xfe\xfd\xfc\x01\x02\xff\xff", time.Minute).Err())
	got = fields(t, first(command(t, exitOK, "inspect", "w", "--json")))
	delete(got, "ttl_ms")
	text, err := json.Marshal(got)
	must(t, err)
	matches(t, string(text), `\{"current":65535,"index":4294901244,"kind":"window","previous":258\}`)

	for _, value := range []string{"", "hello", "-1", "+5", "007", "1.5", "1e3", " 5", "10000000000000000000", "123456789 "} {
		must(t, client.Set(t.Context(), "other", value, 0).Err())
		out, errs = command(t, exitServer, "inspect", "other")
		matches(t, out+errs, `tatami: key "other": holds \d+ bytes that are neither a TAT nor a window's counts\n`)
	}
	must(t, client.RPush(t.Context(), "list", "a").Err())
	_, errs = command(t, exitServer, "inspect", "list", "--json")
	if got := fields(t, errs); !strings.HasPrefix(got["error"].(string), `key "list": WRONGTYPE `) || got["exit"] != json.Number("3") {
		t.Errorf("%v, want WRONGTYPE and exit 3", got)
	}
}

func jsonInt(n int64) string {
	text, _ := json.Marshal(n) // an int
	return string(text)
}

func TestUsage(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1") // nobody listens, and nobody is asked
	const form = `the form is redis://host:port, or rediss://host:port for TLS`
	for _, test := range []struct {
		args    []string
		pattern string
	}{
		{[]string{"nope"}, `unknown command "nope" for "tatami"`},
		{[]string{"allow"}, `allow needs a KEY; see tatami allow --help`},
		{[]string{"peek", "--amount", "1"}, `peek needs a KEY; see tatami peek --help`},
		{[]string{"inspect"}, `inspect needs a KEY; see tatami inspect --help`},
		{[]string{"allow", "a", "b"}, `allow takes one KEY, not 2 arguments; see tatami allow --help`},
		{call("allow", ""), `allow needs a KEY that is not empty; see tatami allow --help`},
		{call("peek", ""), `peek needs a KEY that is not empty; see tatami peek --help`},
		{[]string{"inspect", ""}, `inspect needs a KEY that is not empty; see tatami inspect --help`},
		{[]string{"load", "extra"}, `load takes no arguments`},
		{[]string{"verify", "extra"}, `verify takes no arguments`},
		{[]string{"allow", "k"}, `allow needs --amount and --period; see tatami allow --help`},
		{[]string{"allow", "k", "--nope"}, `unknown flag: --nope; see tatami allow --help`},
		{[]string{"allow", "k", "--period", "5"}, `invalid argument "5" for "--period" flag: not a period such as .*; see tatami allow --help`},
		{[]string{"allow", "k", "--period", "1d"}, `invalid argument "1d" for "--period" flag: not a period such as 500ms, 1m or 24h, which is a day; see tatami allow --help`},
		{[]string{"allow", "k", "--amount", "5.5"}, `invalid argument "5.5" for "--amount" flag: not a whole number below 2\^63; see tatami allow --help`},
		{[]string{"allow", "k", "--cost", "0x10"}, `invalid argument "0x10" for "--cost" flag: not a whole number below 2\^63; see tatami allow --help`},
		{call("allow", "k", "--burst", "9223372036854775808"), `invalid argument "9223372036854775808" for "--burst" flag: not a whole number below 2\^63; see tatami allow --help`},
		{call("peek", "k", "--burst", "0"), `invalid argument "0" for "--burst" flag: a burst is at least 1; leave it out to use the amount; see tatami peek --help`},
		{call("allow", "k", "--algorithm", ""), `invalid argument "" for "--algorithm" flag: it is empty; leave it out to use gcra; see tatami allow --help`},
		{[]string{"peek", "k", "--amount", "0", "--period", "1s"}, `bad limit: limit 0 per 1s gcra: amount 0 is below 1; .*`},
		{[]string{"allow", "k", "--amount", "100000", "--period", "1m", "--algorithm", "sliding_window"},
			`bad limit: limit 100000 per 1m0s sliding_window: amount 100000 exceeds 65535; use gcra`},
		{[]string{"allow", "k", "--amount", "1", "--period", "1m", "--algorithm", "x"}, `bad limit: .*algorithm "x" is unknown; use gcra, .*`},
		{[]string{"verify", "--redis", "http://localhost"}, `--redis: redis: invalid URL scheme: http; ` + form},
		{[]string{"load", "--redis", "127.0.0.1:28531"}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", "localhost:6379"}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", "redis:6379"}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", ""}, `--redis: not a URL; ` + form},
		{[]string{"load", "--redis", "redis://user:secret%zz@localhost"}, `--redis: not a URL; ` + form},
	} {
		out, errs := command(t, exitUsage, test.args...)
		matches(t, out+errs, `tatami: `+test.pattern+`\n`)
		out, errs = command(t, exitUsage, append(test.args, "--json")...)
		matches(t, out, "")
		if got := fields(t, errs); got["exit"] != json.Number("2") || !regexp.MustCompile(`\A`+test.pattern+`\z`).MatchString(got["error"].(string)) {
			t.Errorf("%q: %v, want exit 2 and %s", test.args, got, test.pattern)
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
	matches(t, errs, `tatami: server is out of memory: OOM .*\n`)

	gone := servers.ForTest(t)
	gone.Stop()
	for _, args := range [][]string{{"load"}, {"verify"}, {"inspect", "k"}, call("allow", "k"), call("peek", "k")} {
		out, errs := command(t, exitServer, append(args, "--redis", gone.URL)...)
		matches(t, out+errs, `tatami: dial tcp .*: connect: connection refused\n`)
	}
}

// TestNoInfo has a user who may not ask whether the server belongs to a cluster.
func TestNoInfo(t *testing.T) {
	client := onServer(t)
	must(t, client.ACLSetUser(t.Context(), "plain", "on", ">secret", "~*", "+@all", "-info").Err())
	url := "redis://plain:secret@" + client.Options().Addr
	out, _ := command(t, exitOK, call("allow", "k", "--redis", url)...)
	matches(t, out, `admitted, remaining 59, .*\n`)
	t.Setenv("REDIS_URL", url)
	out, _ = command(t, exitOK, "allow", "--help")
	if strings.Contains(out, "secret") {
		t.Error("the help shows the password in REDIS_URL")
	}
}

// TestTimeouts holds the times that the help names against the client's, and has a
// server that accepts connections and never answers.
func TestTimeouts(t *testing.T) {
	live := onServer(t)
	help, _ := command(t, exitOK)
	if !strings.Contains(help, "5 s to accept a connection and 5 s to answer a command") {
		t.Errorf("the help does not name the timeouts:\n%s", help)
	}
	client, err := connect(t.Context(), "--redis", "redis://"+live.Options().Addr)
	must(t, err)
	defer client.Close()
	options := client.(*redis.Client).Options()
	if options.DialTimeout != 5*time.Second || options.ReadTimeout != 5*time.Second {
		t.Errorf("dial timeout %v and read timeout %v, want 5s", options.DialTimeout, options.ReadTimeout)
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	_, errs := command(t, exitServer, "load", "--redis", "redis://"+silent.Addr().String()+"?read_timeout=10ms")
	matches(t, errs, `tatami: i/o timeout\n`)
}

// TestCluster has the slots on two masters, so that a client of one server is sent
// away for half of the keys.
func TestCluster(t *testing.T) {
	nodes := []*redis.Client{
		onServer(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"),
		onServer(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"),
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
	client, err := connect(t.Context(), "--redis", "redis://"+nodes[0].Options().Addr+"?dial_timeout=7s&read_timeout=8s")
	must(t, err)
	defer client.Close()
	options := client.(*redis.ClusterClient).Options()
	if options.DialTimeout != 7*time.Second || options.DialerRetries != 1 || options.ReadTimeout != 8*time.Second {
		t.Errorf("%d dials of %v each, read timeout %v, want 1 of 7s and 8s", options.DialerRetries, options.DialTimeout, options.ReadTimeout)
	}
	command(t, exitRefused, "verify")
	out, _ := command(t, exitOK, "load")
	matches(t, out, `([0-9a-f]{40} \w+_v\d\n){4}`)
	out, _ = command(t, exitOK, "verify")
	matches(t, out, `(\S+ +\w+_v[12] +[0-9a-f]{40} +loaded\n){8}`)
	for _, node := range nodes {
		if n := strings.Count(out, node.Options().Addr); n != 4 {
			t.Errorf("%s is named %d times, want 4:\n%s", node.Options().Addr, n, out)
		}
	}
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		command(t, exitOK, call("allow", key)...)
		out, _ = command(t, exitOK, "inspect", key)
		matches(t, out, `gcra: TAT .*\n`)
	}
	if nodes[0].DBSize(t.Context()).Val() == 0 || nodes[1].DBSize(t.Context()).Val() == 0 {
		t.Error("a node holds no key, so it was not tested")
	}

	// With a master down what another one holds goes on.
	key := nodes[1].RandomKey(t.Context()).Val()
	_ = nodes[0].ShutdownNoSave(t.Context()) // it answers by ending
	command(t, exitOK, call("allow", key)...)
	out, problem := command(t, exitServer, "verify")
	matches(t, out, `(\S+ +\w+_v[12] +[0-9a-f]{40} +loaded\n){4}`)
	matches(t, problem, `tatami: .*connection refused\n`)
	out, problem = command(t, exitServer, "load")
	matches(t, out, `([0-9a-f]{40} \w+_v\d\n){4}`)
	matches(t, problem, `tatami: loaded on the masters that answer; of another: .*connection refused\n`)
	_ = nodes[1].ShutdownNoSave(t.Context())
	command(t, exitServer, call("allow", key)...)
}

func TestHelp(t *testing.T) {
	out, _ := command(t, exitOK, "--version")
	matches(t, out, `tatami version (\(devel\)|v\d\S+)\n`)
	for _, name := range []string{"list", "load", "verify", "allow", "peek", "inspect"} {
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
