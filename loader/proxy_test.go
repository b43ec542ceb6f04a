package loader_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

// proxy stands between a client and a real server. It hands on one command and its
// whole reply at a time, so that a reply reaches reply only after the server has
// run the command.
type proxy struct {
	// reply returns what the client gets in place of a reply; nil cuts the
	// connection.
	reply atomic.Pointer[func(command, reply []byte) []byte]
	// refusal returns what the client gets for a command that the server is not sent;
	// nil sends it.
	refusal atomic.Pointer[func(command []byte) []byte]
	addr    string

	mu   sync.Mutex
	sent [][]byte // the commands that the server was sent
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { listener.Close() })
	p := &proxy{addr: listener.Addr().String()}
	p.setReply(func(_, reply []byte) []byte { return reply })
	p.refuse(func([]byte) []byte { return nil })
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

func (p *proxy) setReply(reply func(command, reply []byte) []byte) { p.reply.Store(&reply) }

func (p *proxy) refuse(refusal func(command []byte) []byte) { p.refusal.Store(&refusal) }

func (p *proxy) serve(client net.Conn, addr string) {
	defer client.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return // the client sees it
	}
	defer server.Close()
	fromClient, fromServer := bufio.NewReader(client), bufio.NewReader(server)
	for {
		command, err := readValue(fromClient)
		if err != nil {
			return
		}
		if refusal := (*p.refusal.Load())(command); refusal != nil {
			if _, err := client.Write(refusal); err != nil {
				return
			}
			continue
		}
		p.mu.Lock()
		p.sent = append(p.sent, command)
		p.mu.Unlock()
		if _, err := server.Write(command); err != nil {
			return
		}
		reply, err := readValue(fromServer)
		if err != nil {
			return
		}
		if reply = (*p.reply.Load())(command, reply); reply == nil {
			return
		}
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// sentOf counts the commands of this name that the server was sent since the last reset.
func (p *proxy) sentOf(name string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, command := range p.sent {
		if isCommand(command, name) {
			n++
		}
	}
	return n
}

func (p *proxy) resetSent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = nil
}

// readValue reads one value of Redis's protocol, as it stands.
func readValue(r *bufio.Reader) ([]byte, error) {
	value, err := r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	kind := value[0]
	if !strings.ContainsRune("$=!*~>%", rune(kind)) {
		return value, nil
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(value[1:])))
	if err != nil || n < 0 {
		return value, err // a length below 0 is nil
	}
	switch kind {
	case '$', '=', '!':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return append(value, text...), err
	case '%':
		n *= 2
	}
	for range n {
		element, err := readValue(r)
		if err != nil {
			return nil, err
		}
		value = append(value, element...)
	}
	return value, nil
}

// lose cuts the connection in place of the first replies to EVALSHA.
func (p *proxy) lose(replies int32) {
	var lost atomic.Int32
	p.setReply(func(command, reply []byte) []byte {
		if isEvalsha(command) && lost.Add(1) <= replies {
			return nil
		}
		return reply
	})
}

// loseAll cuts the connection in place of every reply to a command of this name.
func (p *proxy) loseAll(name string) {
	p.setReply(func(command, reply []byte) []byte {
		if isCommand(command, name) {
			return nil
		}
		return reply
	})
}

func isEvalsha(command []byte) bool { return isCommand(command, "evalsha") }

func isCommand(command []byte, name string) bool {
	return bytes.Contains(bytes.ToLower(command), []byte("\r\n"+name+"\r\n"))
}

// through returns a limiter whose client, with go-redis's own retries as they are
// by default, goes through a proxy to the server.
func through(t *testing.T, server testServer) (limiter testLimiter, p *proxy, client *redis.Client) {
	t.Helper()
	p = startProxy(t, server.address(t))
	client = redis.NewClient(&redis.Options{Addr: p.addr})
	t.Cleanup(func() { client.Close() })
	if client.Options().MaxRetries != 3 {
		t.Fatalf("go-redis retries %d times by default, this test is about 3", client.Options().MaxRetries)
	}
	return newLimiter(t, client), p, client
}

// TestLostReply cuts the connection after the script has run.
func TestLostReply(t *testing.T) { eachServer(t, testLostReply) }

func testLostReply(t *testing.T, server testServer, _ testLimiter) {
	limiter, p, client := through(t, server)
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	at := limiter.WithClock(t, clockAt(0))
	check := func(key string, wantSent int, wantRemaining int64) {
		t.Helper()
		if sent := p.sentOf("evalsha"); sent != wantSent {
			t.Errorf("%s: sent %d times, want %d", key, sent, wantSent)
		}
		p.lose(0)
		if got := allow(t, at, key, limit, 0); got.Remaining != wantRemaining {
			t.Errorf("%s: %d remaining, want %d", key, got.Remaining, wantRemaining)
		}
		p.resetSent()
	}
	p.resetSent()

	p.lose(1)
	if got, err := at.Allow(t.Context(), "single", limit); !errors.Is(err, io.EOF) || got != (loader.Result{}) {
		t.Errorf("single: %+v, %v, want io.EOF", got, err)
	}
	check("single", 1, 9)

	// The third of four replies in a pipeline is lost: the first two calls have
	// theirs, the fourth was on its way and does not run.
	var seen atomic.Int32
	p.setReply(func(command, reply []byte) []byte {
		if isEvalsha(command) && seen.Add(1) == 3 {
			return nil
		}
		return reply
	})
	calls := make([]loader.Call, 4)
	for i := range calls {
		calls[i] = loader.Call{Key: "batch", Limit: limit, Cost: 1}
	}
	for i, got := range at.AllowEach(t.Context(), calls...) {
		if answered := i < 2; got.Allowed != answered || (got.Err == nil) != answered {
			t.Errorf("batch, call %d: %+v, %v", i, got.Result, got.Err)
		}
		if i >= 2 && (!errors.Is(got.Err, io.EOF) || !errors.Is(got.Err, loader.ErrMaybeSpent)) {
			t.Errorf("batch, call %d: %v, want io.EOF, and an ErrMaybeSpent", i, got.Err)
		}
	}
	check("batch", 3, 7)

	// A call that costs nothing is repeated by go-redis, and may be.
	p.lose(2)
	if got, err := at.Peek(t.Context(), "peek", limit); err != nil || got.Remaining != 10 {
		t.Errorf("peek: %+v, %v, want 10 remaining", got, err)
	}
	check("peek", 3, 10)

	p.loseAll("eval")
	if _, err := at.Reset(t.Context(), "single", limit); !errors.Is(err, io.EOF) {
		t.Errorf("reset: %v, want io.EOF", err)
	}
	if sent := p.sentOf("eval"); sent != 1 {
		t.Errorf("reset: sent %d times, want once", sent)
	}
	if _, err := at.Delete(t.Context(), "other", limit); !errors.Is(err, io.EOF) || !errors.Is(err, loader.ErrMaybeSpent) {
		t.Errorf("delete: %v, want io.EOF, and an ErrMaybeSpent", err)
	}
	if sent := p.sentOf("eval"); sent != 2 {
		t.Errorf("delete: sent %d times with the reset, want 2", sent)
	}
	check("single", 0, 10)

	// What go-redis does to a command that does not forbid it: it is sent again, and
	// counts twice, which admits less and never more.
	p.lose(1)
	reply, err := client.EvalSha(t.Context(), sha1Of(t, "gcra_v2"), []string{at.Key("plain", limit)},
		10, int64(time.Hour), 10, 1, clockAt(0)().UnixNano()).Int64Slice()
	if err != nil || reply[1] != 8 {
		t.Errorf("plain: %v, %v, want 8 remaining", reply, err)
	}
	check("plain", 2, 8)
}

// TestLostReplyAfterLoad loses the reply of the call that is sent again because the
// script was missing.
func TestLostReplyAfterLoad(t *testing.T) { eachServer(t, testLostReplyAfterLoad) }

func testLostReplyAfterLoad(t *testing.T, server testServer, _ testLimiter) {
	limiter, p, _ := through(t, server)
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	at := limiter.WithClock(t, clockAt(0))
	must(t, server.ScriptFlush(t.Context()).Err())
	p.resetSent()
	p.loseAll("eval")
	if got, err := at.Allow(t.Context(), "k", limit); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v, want io.EOF", got, err)
	}
	if sent := p.sentOf("eval"); sent != 1 {
		t.Errorf("eval sent %d times, want once", sent)
	}
	if got := allow(t, at, "k", limit, 0); got.Remaining != 9 {
		t.Errorf("%d remaining, want 9", got.Remaining)
	}
}

func TestUnexpectedReplies(t *testing.T) { eachServer(t, testUnexpectedReplies) }

func testUnexpectedReplies(t *testing.T, server testServer, _ testLimiter) {
	limiter, p, _ := through(t, server)
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	for _, reply := range []string{
		"$-1\r\n", "*-1\r\n", "_\r\n", ":1\r\n", ",1.5\r\n", "+OK\r\n", "$1\r\n1\r\n", "#t\r\n", "*0\r\n",
		"*3\r\n:1\r\n:9\r\n:0\r\n",
		"*4\r\n:1\r\n,9.5\r\n:0\r\n:0\r\n",
		"*4\r\n:1\r\n$1\r\n9\r\n:0\r\n:0\r\n",
		"*4\r\n:1\r\n:9\r\n:0\r\n$-1\r\n",
		"*4\r\n:1\r\n:9\r\n:0\r\n_\r\n",
		"*4\r\n:1\r\n:9\r\n:0\r\n-ERR inside\r\n",
		"*5\r\n:1\r\n:9\r\n:0\r\n:0\r\n:0\r\n",
		"%2\r\n:1\r\n:9\r\n:0\r\n:0\r\n",
	} {
		p.setReply(func(command, real []byte) []byte {
			if isEvalsha(command) {
				return []byte(reply)
			}
			return real
		})
		got, err := limiter.Allow(t.Context(), "k", limit)
		if got != (loader.Result{}) || !errors.Is(err, loader.ErrReply) {
			t.Errorf("%q: %+v, %v, want an ErrReply", reply, got, err)
		}
		calls := []loader.Call{{Key: "k", Limit: limit, Cost: 1}, {Key: "k", Limit: limit, Cost: 1}}
		for _, got := range limiter.AllowEach(t.Context(), calls...) {
			if got.Result != (loader.Result{}) || !errors.Is(got.Err, loader.ErrReply) || !errors.Is(got.Err, loader.ErrMaybeSpent) {
				t.Errorf("batch, %q: %+v, %v, want an ErrReply", reply, got.Result, got.Err)
			}
		}
	}
	p.lose(0)
	allow(t, limiter, "k", limit, 1) // the connection is in step
}

func TestServerAnswersAnotherSHA1(t *testing.T) { eachServer(t, testServerAnswersAnotherSHA1) }

func testServerAnswersAnotherSHA1(t *testing.T, server testServer, _ testLimiter) {
	_, p, client := through(t, server)
	wrong := strings.Repeat("0", 40)
	p.setReply(func(command, reply []byte) []byte {
		if bytes.Contains(command, []byte("\r\nload\r\n")) {
			return fmt.Appendf(nil, "$40\r\n%s\r\n", wrong)
		}
		return reply
	})
	limiter, err := loader.New(client)
	must(t, err)
	found, err := limiter.Load(t.Context())
	if len(found) != 0 || !errors.Is(err, loader.ErrPin) || errors.Is(err, loader.ErrUnreached) ||
		!strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), p.addr) {
		t.Errorf("%v, %v, want an ErrPin that names %s and %s", found, err, wrong, p.addr)
	}
}
