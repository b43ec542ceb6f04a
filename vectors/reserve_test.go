package vectors_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/precision/servers"
)

// Limits as a runner reads them: kind, amount, period_ns, burst, name. No unit comes back
// while the test runs.
const (
	calls   = "gcra,60,4500000000000000,60,calls"
	tokens  = "gcra,10000,4500000000000000,10000,tokens"
	callNs  = 4500000000000000 / 60
	tokenNs = 4500000000000000 / 10000
)

// TestReserve makes reservations by each client on a real server, and looks at the keys.
func TestReserve(t *testing.T) {
	need(t, "redis-server")
	for _, client := range clients {
		t.Run(client, func(t *testing.T) { reserveBy(t, client) })
	}
}

func reserveBy(t *testing.T, client string) {
	server := servers.ForTest(t)
	p := startProxy(t, strings.TrimPrefix(server.URL, "redis://"))
	r := startRunner(t, client, p.url)
	db := server.Client()
	t.Cleanup(func() { db.Close() })
	ctx := t.Context()
	state := func(key string) string {
		text, err := db.Get(ctx, key).Result()
		if err != nil && err != redis.Nil {
			t.Fatal(err)
		}
		return text
	}

	// Both limits are charged. The server knows no script yet.
	got := r.reserve("42", calls, "1", "42", tokens, "4000")
	got.is(t, "1", "0", "", "59", "6000")
	charged := state("rl:{42}:calls")
	if receipts := []string{got.asks[0].receipt, got.asks[1].receipt}; receipts[0] != charged || receipts[1] != state("rl:{42}:tokens") {
		t.Errorf("receipts are %q; the keys hold %q and %q", receipts, charged, state("rl:{42}:tokens"))
	}

	// 500 tokens were used. The server has forgotten the script; what did not change is not sent.
	if err := db.ScriptFlush(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	r.settles("1", "500")
	paid := number(t, got.asks[1].receipt)
	settled := fmt.Sprintf("%d %d %d", paid-3500*tokenNs, 3500*tokenNs, paid)
	if tokens, calls := state("rl:{42}:tokens"), state("rl:{42}:calls"); tokens != settled || calls != charged {
		t.Errorf("after the settlement the keys hold %q and %q, want %q and %q", tokens, calls, settled, charged)
	}
	// A second settlement sends nothing, whatever it says.
	for _, used := range [][]string{{"1", "500"}, {"0", "0"}, {"1", "9000"}} {
		sent := p.sent.Load()
		r.settles(used...)
		if now := p.sent.Load(); now != sent || state("rl:{42}:tokens") != settled {
			t.Errorf("a second settlement sent %d calls, and the key holds %q", now-sent, state("rl:{42}:tokens"))
		}
	}
	got = r.reserve("42", tokens, "0")
	got.is(t, "1", "0", "", "9500")
	if got.asks[0].receipt != "" {
		t.Errorf("a look has the receipt %q", got.asks[0].receipt)
	}

	// Used more than the burst: the key is in debt, and what was used is owed.
	got = r.reserve("debt", tokens, "4000")
	paid = number(t, got.asks[0].receipt)
	r.settles("14000")
	if owed, want := state("rl:{debt}:tokens"), strconv.Itoa(paid+10000*tokenNs); owed != want {
		t.Errorf("after an over-use the key holds %q, want %q", owed, want)
	}
	got = r.reserve("debt", tokens, "1")
	if got.status != "0" || got.binds != "0" || got.asks[0].remaining != 0 || got.retryAfterNs <= 3990*tokenNs {
		t.Errorf("in debt by 4000 tokens one is answered %+v", got)
	}

	// The second limit refuses, so nothing is charged on the first.
	r.reserve("43", tokens, "10000")
	got = r.reserve("43", calls, "1", "43", tokens, "1", "43", "gcra,10,60000000000,10,others", "1")
	got.is(t, "0", "", "1", "60", "0", "10")
	if wait := got.asks[1].retryAfterNs; wait != got.retryAfterNs || wait <= 0 || wait > tokenNs {
		t.Errorf("the waits are %d and %d, want one of up to %d", got.retryAfterNs, wait, tokenNs)
	}
	if ask := got.asks[0]; ask.status != "1" || ask.retryAfterNs != 0 || ask.receipt != "" {
		t.Errorf("the limit that does not refuse answers %+v", ask)
	}
	if state("rl:{43}:calls") != "" || state("rl:{43}:others") != "" {
		t.Error("a refused reservation was charged")
	}
	r.fails("used more than 0 of what was not charged", "settle", "1", "1", "1")
	r.settles("0", "0", "0")

	// What never fits binds, whatever another has to wait.
	got = r.reserve("43", tokens, "1", "43", calls, "61")
	got.is(t, "-1", "-1", "1", "0", "60")

	// A cancelled reservation gives back what time has not.
	got = r.reserve("45", calls, "5")
	paid = number(t, got.asks[0].receipt)
	r.settles("0")
	words := strings.Fields(state("rl:{45}:calls"))
	if len(words) != 3 {
		t.Fatalf("after a cancellation the key holds %q", words)
	}
	if tat, credit, last := number(t, words[0]), number(t, words[1]), number(t, words[2]); tat+credit != paid || last != paid || credit > 5*callNs || credit <= 4*callNs {
		t.Errorf("after a cancellation of %d ns the key holds %q, before it %d", 5*callNs, words, paid)
	}
	// Its key has credit now, and so has the next receipt.
	got = r.reserve("45", calls, "5")
	if paid, credit, _ := strings.Cut(got.asks[0].receipt, " "); len(paid) != 19 || credit == "" {
		t.Errorf("the receipt is %q, want a TAT and a credit", got.asks[0].receipt)
	}
	r.settles("2")
	r.reserve("45", calls, "0").is(t, "1", "0", "", "58")

	// A window of 52 days, whose key names its period. The present one may end between the calls, once in 52 days.
	daily := "fixed,5,4503599627370496,,daily"
	got = r.reserve("44", daily, "3")
	got.is(t, "1", "0", "", "2")
	r.settles("1")
	r.reserve("44", daily, "0").is(t, "1", "0", "", "4")
	r.reserve("{a}b", "gcra,10,3600000000000,10,", "1", "x{a}", "sliding,5,4503599627370496,,", "1")
	for _, key := range []string{"rl:{44}:daily:4503599627370496", "rl:{a}b", "rl:x{a}:4503599627370496"} {
		if state(key) == "" {
			t.Errorf("no key %s", key)
		}
	}

	// The reply of a settlement is lost: it was applied once, and is never sent again.
	r.reserve("46", tokens, "4000")
	got = r.reserve("46", tokens, "4000")
	sent := p.sent.Load()
	p.cut.Store(true)
	r.fails("", "settle", "500")
	if p.cut.Load() {
		t.Error("no call was cut")
	}
	lost := state("rl:{46}:tokens")
	if !strings.Contains(lost, fmt.Sprintf(" %d ", 3500*tokenNs)) {
		t.Errorf("after a settlement of 3500 tokens whose reply was lost the key holds %q", lost)
	}
	r.settles("500")
	if now := p.sent.Load(); now != sent+1 || state("rl:{46}:tokens") != lost {
		t.Errorf("a settlement was sent %d times, and the key holds %q", now-sent, state("rl:{46}:tokens"))
	}
	if got := r.reserve("46", tokens, "1"); got.status != "1" {
		t.Errorf("after a lost reply a reservation answers %+v", got)
	}

	// What a call needs.
	if err := db.RPush(ctx, "rl:{list}", "a").Err(); err != nil {
		t.Fatal(err)
	}
	sent = p.sent.Load()
	r.fails("no key, or a bad name", "reserve", "", calls, "1")
	r.fails("no key, or a bad name", "reserve", "42", "gcra,60,3600000000000,60,6", "1")
	r.fails("no key, or a bad name", "reserve", "42", calls, "1", "42", "gcra,60,3600000000000,60,a:b", "1")
	got = r.reserve("47", calls, "3")
	if now := p.sent.Load(); now != sent+1 {
		t.Errorf("%d calls without a key or with a bad name were sent", now-sent-1)
	}
	for _, used := range [][]string{{}, {"1", "1"}, {"-1"}} {
		r.fails("used must be a number from 0 for each ask", append([]string{"settle"}, used...)...)
	}
	if now := p.sent.Load(); now != sent+1 {
		t.Errorf("%d bad settlements were sent", now-sent-1)
	}
	r.settles("2")
	r.fails("BADARG limits_v1: key 1: amount", "reserve", "47", "gcra,10000,3600,100,seconds", "1")
	r.fails("BADARG limits_v1: key 2: it is named before", "reserve", "47", calls, "1", "47", calls, "1")
	r.fails("WRONGTYPE", "reserve", "list", "gcra,60,3600000000000,60,", "1")
}

// reservation is what a runner prints of one.
type reservation struct {
	status       string
	retryAfterNs int
	binds        string
	asks         []askResult
}

type askResult struct {
	status                                string
	remaining, retryAfterNs, resetAfterNs int
	receipt                               string
}

// is checks status, retry_after_ns unless it is empty, which ask binds, and what remains of each.
func (r reservation) is(t *testing.T, status, retryAfterNs, binds string, remaining ...string) {
	t.Helper()
	var left []string
	for _, ask := range r.asks {
		left = append(left, strconv.Itoa(ask.remaining))
	}
	wait := strconv.Itoa(r.retryAfterNs)
	if r.status != status || retryAfterNs != "" && wait != retryAfterNs || r.binds != binds || strings.Join(left, " ") != strings.Join(remaining, " ") {
		t.Errorf("status %s, retry %s, binds %q, remaining %q; want %s, %s, %q, %q", r.status, wait, r.binds, left, status, retryAfterNs, binds, remaining)
	}
}

// runner is a client's runner that makes reservations.
type runner struct {
	t     *testing.T
	stdin io.Writer
	lines *bufio.Scanner
}

// startRunner starts one on the server at url, and skips the test when its client is not installed.
func startRunner(t *testing.T, client, url string) *runner {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, "clients/run.sh", "-")
	command.Env = append(os.Environ(), "REDIS_URL="+url, "CLIENT="+client)
	command.WaitDelay = 10 * time.Second
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // before the context ends
		stdin.Close()
		_, _ = io.Copy(io.Discard, stdout)
		if err := command.Wait(); err != nil && !t.Skipped() {
			t.Errorf("run.sh: %v", err)
		}
	})
	r := &runner{t, stdin, bufio.NewScanner(stdout)}
	line := r.line()
	skipUninstalled(t, client, line)
	return r
}

func (r *runner) line() string {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatalf("the runner ended: %v", r.lines.Err())
	}
	return r.lines.Text()
}

func (r *runner) call(words ...string) string {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.stdin, strings.Join(words, ",")); err != nil {
		r.t.Fatal(err)
	}
	return r.line()
}

// reserve makes a reservation of key, limit, cost, key, ...
func (r *runner) reserve(words ...string) reservation {
	r.t.Helper()
	said := r.call(append([]string{"reserve"}, words...)...)
	fields := strings.Split(said, "|")
	if len(fields) != 3+5*(len(words)/3) {
		r.t.Fatalf("reserve %q: %q", words, said)
	}
	number := func(text string) int { return number(r.t, text) }
	held := reservation{fields[0], number(fields[1]), fields[2], nil}
	for f := fields[3:]; len(f) > 0; f = f[5:] {
		held.asks = append(held.asks, askResult{f[0], number(f[1]), number(f[2]), number(f[3]), f[4]})
	}
	return held
}

// settles settles the last reservation by what was used of each ask.
func (r *runner) settles(used ...string) {
	r.t.Helper()
	if said := r.call(append([]string{"settle"}, used...)...); said != "settled" {
		r.t.Errorf("settle %q: %q", used, said)
	}
}

// fails makes a call that ends in an error which begins with a text.
func (r *runner) fails(text string, words ...string) {
	r.t.Helper()
	if said := r.call(words...); !strings.HasPrefix(said, "error "+text) {
		r.t.Errorf("%q: %q, want an error %q", words, said, text)
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// proxy stands between a client and a server. It counts the calls of scripts, and can lose a reply.
type proxy struct {
	url  string
	sent atomic.Int64 // calls of limits_v1, by EVALSHA or EVAL, that the server was sent
	cut  atomic.Bool  // loses the reply of the next one, with its connection
}

func startProxy(t *testing.T, server string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	p := &proxy{url: "redis://" + listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed by the cleanup
			}
			go p.serve(client, server)
		}
	}()
	return p
}

// serve hands bytes on both ways. A client sends a call when it has the reply to the last one.
func (p *proxy) serve(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return // the client sees it
	}
	defer server.Close()
	var called atomic.Bool
	go func() {
		defer server.Close()
		bytesOf(client, func(chunk []byte) bool {
			if is := bytes.Contains(bytes.ToLower(chunk), []byte("\r\nevalsha\r\n")); is {
				called.Store(true)
				p.sent.Add(1)
			}
			_, err := server.Write(chunk)
			return err == nil
		})
	}()
	bytesOf(server, func(chunk []byte) bool {
		if called.Swap(false) && p.cut.CompareAndSwap(true, false) {
			return false
		}
		_, err := client.Write(chunk)
		return err == nil
	})
}

// bytesOf gives what comes to use, until that says false or nothing more comes.
func bytesOf(from io.Reader, use func(chunk []byte) bool) {
	chunk := make([]byte, 1<<16)
	for {
		n, err := from.Read(chunk)
		if n > 0 && !use(chunk[:n]) || err != nil {
			return
		}
	}
}
