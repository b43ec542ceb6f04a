package emulator

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision/servers"
)

// dialogue is what one connection sends, on an empty server. A word is between spaces;
// ~ stands for a space in it, and $ for a script's SHA1.
var dialogue = strings.Split(`PING
PING hi
PING a b
ECHO ping~pong
ECHO
FOO
FOO a b~c
foo `+strings.Repeat("x", 100)+` `+strings.Repeat("y", 100)+` z
`+strings.Repeat("F", 200)+` a
FOO a
b
HGETALLX k
AUTH x
AUTH default x
AUTH other x
AUTH a b c
AUTH
HELLO 4
HELLO 1
HELLO x
HELLO 2 FOO
HELLO 2 SETNAME
HELLO 2 SETNAME a~b
HELLO 2 AUTH default
HELLO 2 AUTH other x
SELECT 16
SELECT -1
SELECT x
SELECT 99999999999
SELECT 15
SELECT
CLIENT
CLIENT FOO
CLIENT SETINFO lib-name x
CLIENT MAINT_NOTIFICATIONS ON
CLIENT GETNAME
CLIENT SETNAME a~b
CLIENT SETNAME tester
CLIENT GETNAME
CLIENT GETNAME x
CLIENT ID x
CLIENT SETNAME
CLUSTER
CLUSTER FOO
CLUSTER INFO
CLUSTER SLOTS
CLUSTER SHARDS
CLUSTER NODES
CLUSTER SLOTS x
COMMAND FOO
COMMAND COUNT x
INFO cluster
INFO CLUSTER
INFO nothing
TIME x
DBSIZE
DBSIZE x
GET k
GET
GET a b
SET k
SET k v
SET k v~w NX
SET k v FOO
SET k w XX GET
SET k w GET NX
SET new w GET NX
GET new
SET k v NX XX
SET k v EX
SET k v EX 0
SET k v EX x
SET k v EX 100
TTL k
SET k w KEEPTTL
TTL k
SET k w KEEPTTL EX 5
SET k w EX 5 PX 5
SET k w PX 100000
TTL k
SET k w EXAT 4000000000
EXPIRETIME k
PEXPIRETIME k
SET k w PXAT 4000000000123
EXPIRETIME k
SET k w PXAT 4000000000500
EXPIRETIME k
PEXPIRETIME k
PERSIST k
PERSIST k
EXPIRETIME k
PEXPIRETIME none
TTL none
PTTL none
PTTL k
EXPIRE k 100
TTL k
EXPIRE k x
EXPIRE k 100 FOO
EXPIRE k x FOO
EXPIRE k 100 NX XX
EXPIRE k 100 GT LT
EXPIRE k 200 NX
EXPIRE k 50 GT
TTL k
EXPIRE k 200 GT
EXPIRE k 300 LT
TTL k
EXPIRE k 250 xx gt
TTL k
EXPIRE none 100
EXPIRE none x
EXPIRE k 9223372036854775
EXPIRE k 9223372036854776
EXPIRE k -9223372036854776
PEXPIRE k 9223372036854775807
PERSIST k
EXPIRE k 100 XX
EXPIRE k 100 GT
EXPIRE k 100 LT
PEXPIREAT k 4000000000123
PEXPIRETIME k
EXPIREAT k 4000000001
PEXPIRETIME k
EXPIREAT k 1
EXISTS k
SET k v
PEXPIRE k -9223372036854775808
GET k
SET k v EXAT 1
GET k
EXISTS
EXISTS k new new
DEL
DEL k new
UNLINK
UNLINK k new
TYPE k
INCR n
INCRBY n 9223372036854775806
INCR n
INCRBY n -9223372036854775807
INCRBY n -9223372036854775808
INCRBY n -1
INCRBY n 1.5
INCR n x
EXPIREAT n 4000000000
INCRBY n 01
INCRBY n 5
GET n
EXPIRETIME n
SET n 1x
INCR n
WATCH n
SET n 07
INCR n
SET n 7
INCR n
MULTI
GET n
EXEC
DEL n
RPUSH l a b
TYPE l
INCR l
GET l
SET l x GET
TYPE l
SET l x XX
TYPE l
EVAL return~1
EVAL return~1 x
EVAL return~1 2 a
EVAL return~1 -1
EVAL return~1 01
EVAL return~nil 0
EVAL return~false 0
EVAL return~true 0
EVAL return~3.99 0
EVAL return~{1,'a',false,{ok='fine'},{err='X~y'},{}} 0
EVAL return~{ok='fine'} 0
EVAL return~{err='X~y'} 0
EVAL return~redis.status_reply('fine') 0
EVAL return~redis.call('PING') 0
EVAL return~redis.call('TYPE',KEYS[1]) 1 l
EVAL return~{KEYS[1],ARGV[1],#KEYS,#ARGV} 1 k a
EVAL error('x') 0
EVAL return~redis.call('EVAL','return~1','0') 0
EVAL return~redis.pcall('MULTI') 0
EVAL return~redis.pcall('SCRIPT','LOAD','x') 0
EVAL return~redis.pcall('CLUSTER','INFO') 0
EVAL return~redis.pcall('INFO','cluster') 0
EVAL return~redis.pcall('DBSIZE') 0
EVAL return~redis.pcall('PING','a','b') 0
EVAL redis.call('SELECT','1')~return~redis.call('SET','one','v') 0
GET one
SELECT 1
GET one
SELECT 15
EVAL_RO return~redis.call('SET','k','v') 0
EVAL_RO return~redis.call('GET','l') 0
EVALSHA abc 0
EVALSHA abc x
EVALSHA `+strings.Repeat("f", 40)+` x
EVALSHA `+strings.Repeat("f", 40)+` 0
EVALSHA_RO `+strings.Repeat("f", 40)+` 0
SCRIPT
SCRIPT FOO
SCRIPT LOAD
SCRIPT LOAD return~7
EVALSHA $ 0
EVALSHA_RO $ 0
SCRIPT EXISTS
SCRIPT EXISTS $ x $
SCRIPT FLUSH FOO
SCRIPT FLUSH ASYNC x
SCRIPT FLUSH SYNC
SCRIPT EXISTS $
EXEC
DISCARD
MULTI x
MULTI
MULTI
WATCH k
GET l
SET k 1
EXEC
MULTI
EXEC
MULTI
GET l
DISCARD
EXEC
MULTI
FOO a
GET l
EXEC
MULTI
GET
DISCARD
MULTI
SCRIPT FOO
EXEC
MULTI
GET l
EVAL return~1 x
EVAL return~{1,false} 0
SELECT 99
SELECT 3
SET three 3
CLIENT GETNAME
PING
EXEC
GET three
SELECT 15
MULTI
SET k 2
WATCH k
EXEC
GET k
WATCH
UNWATCH x
WATCH k
UNWATCH
WATCH k other
SET other 1
MULTI
SET k 3
EXEC
GET k
MULTI
SET k 4
EXEC
WATCH k
GET k
MULTI
SET k 5
EXEC
WATCH k
EXPIRE k 100
MULTI
PING
EXEC
WATCH k
PERSIST k
MULTI
PING
EXEC
WATCH k
DEL k none
MULTI
PING
EXEC
WATCH k
DEL k
MULTI
PING
EXEC
WATCH k
SET k v
UNWATCH
MULTI
PING
EXEC
WATCH k
SET k v
DISCARD
MULTI
DISCARD
MULTI
PING
EXEC
WATCH k
FLUSHALL
MULTI
PING
EXEC
WATCH k
FLUSHALL
MULTI
PING
EXEC
SET k v
WATCH k
SELECT 2
SET k v
MULTI
PING
EXEC
WATCH k
RPUSH list a
MULTI
PING
EXEC
DBSIZE
FLUSHDB FOO
FLUSHALL FOO
FLUSHDB ASYNC
DBSIZE
SELECT 15
DBSIZE
FLUSHALL SYNC
DBSIZE
MULTI
RESET
GET k
CLIENT GETNAME
EXEC
HELLO
HELLO 3 AUTH default any SETNAME tester
GET k
CLIENT GETNAME
INFO cluster
EVAL return~{1,false} 0
EVAL return~nil 0
SCRIPT EXISTS $
WATCH k
SET k v
MULTI
EXEC
MULTI
GET k
GET none
EXEC
HELLO
HELLO 2
GET none
RESET x
QUIT x
GET k`, "\n")

// Emulator and server answer each line with the same bytes, whether the connection
// speaks RESP2 or, from its first line on, RESP3.
func TestDialogue(t *testing.T) {
	server := servers.ForTest(t).Client()
	defer server.Close()
	sha := server.ScriptLoad(t.Context(), "return 7").Val()
	for _, first := range []string{"PING", "HELLO 3"} {
		if err := errors.Join(server.FlushAll(t.Context()).Err(), server.ScriptFlush(t.Context()).Err()); err != nil {
			t.Fatal(err)
		}
		real, err := net.Dial("tcp", server.Options().Addr)
		if err != nil {
			t.Fatal(err)
		}
		defer real.Close()
		r := New()
		r.SetClock(time.Now)
		emulated, _ := r.Dial(t.Context(), "", "")
		defer emulated.Close()
		theirs, ours := bufio.NewReader(real), bufio.NewReader(emulated)
		began := time.Now()
		for i, line := range append([]string{first}, dialogue...) {
			words := strings.Fields(line)
			for i := range words {
				words[i] = strings.ReplaceAll(strings.ReplaceAll(words[i], "~", " "), "$", sha)
			}
			want, wantErr := exchange(real, theirs, words)
			got, gotErr := exchange(emulated, ours, words)
			if a, b := seconds(got), seconds(want); words[0] == "TTL" && a > 0 && b > 0 {
				// Rounded to seconds they differ once half of one has gone by.
				if passed := time.Since(began) + time.Second/2; max(a-b, b-a) <= int(passed/time.Second) {
					continue
				}
			}
			if got != want {
				t.Errorf("after %s, %.60s:\n got %q\nwant %q", first, line, got, want)
			}
			if i == len(dialogue) { // after QUIT
				if gotErr == nil || wantErr == nil {
					t.Errorf("after QUIT: %v, on the server %v", gotErr, wantErr)
				}
			} else if err := errors.Join(gotErr, wantErr); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
}

// seconds is the number in a reply to TTL that tells of an expiry, or -1.
func seconds(reply string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(reply, ":"), "\r\n"))
	if err != nil {
		return -1
	}
	return n
}

var connectionID = regexp.MustCompile(`(\$2\r\nid\r\n):\d+`)

// exchange sends a command and returns the bytes of its reply, without the connection's
// number.
func exchange(conn net.Conn, in *bufio.Reader, words []string) (string, error) {
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	reply, err := readReply(in)
	return connectionID.ReplaceAllString(reply, "$1:N"), err
}

// readReply reads one reply of RESP2 or RESP3.
func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return line, err
	}
	n, _ := strconv.Atoi(strings.TrimSpace(line[1:])) // not a number where it is not used
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return line, nil
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(in, text)
		return line + string(text), err
	case '%':
		n *= 2
		fallthrough
	case '*', '~':
		for range n {
			element, err := readReply(in)
			if line += element; err != nil {
				return line, err
			}
		}
	}
	return line, nil
}

// Of each command COMMAND says what the server says: its arity, whether it reads or
// writes, whether scripts may call it, and which words are keys.
func TestCommands(t *testing.T) {
	client := New().Client()
	defer client.Close()
	ours, err := client.Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if n := client.Do(t.Context(), "COMMAND", "COUNT").Val(); n != int64(len(ours)) || len(ours) < 40 {
		t.Errorf("COMMAND COUNT = %v, of %d", n, len(ours))
	}
	theirs, err := serverClient(t).Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range ours {
		want := theirs[name]
		if want == nil {
			t.Errorf("the server has no %s", name)
			continue
		}
		if got.Arity != want.Arity || got.FirstKeyPos != want.FirstKeyPos || got.LastKeyPos != want.LastKeyPos ||
			got.StepCount != want.StepCount || got.ReadOnly != want.ReadOnly {
			t.Errorf("%s: %+v, the server %+v", name, *got, *want)
		}
		for _, flag := range []string{"write", "noscript"} {
			if slices.Contains(got.Flags, flag) != slices.Contains(want.Flags, flag) {
				t.Errorf("%s: flags %v, the server's %v", name, got.Flags, want.Flags)
			}
		}
	}
}

// The server says in fields of their own what it emulates and that it does.
func TestInfo(t *testing.T) {
	client := NewClient()
	defer client.Close()
	info := client.InfoMap(t.Context()).Val()
	for _, want := range [][3]string{
		{"Server", "redis_version", "7.0.15"}, {"Server", "emulator", "tatami"}, {"Server", "redis_mode", "standalone"},
		{"Persistence", "loading", "0"}, {"Replication", "role", "master"}, {"Cluster", "cluster_enabled", "0"},
	} {
		if got := info[want[0]][want[1]]; got != want[2] {
			t.Errorf("%s of %s is %q, want %q", want[1], want[0], got, want[2])
		}
	}
	one, err := client.ClientInfo(t.Context()).Result()
	if err != nil || one.ID != client.ClientID(t.Context()).Val() || one.DB != 0 || one.Resp != 3 {
		t.Errorf("CLIENT INFO: %+v, %v", one, err)
	}
}

// A client's connections, and what serves them, end with it.
func TestClientEnds(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		client := NewClient()
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if err := client.HLen(t.Context(), "k").Err(); err == nil || !strings.HasPrefix(err.Error(), "ERR unknown command 'hlen'") {
					t.Error(err)
				}
				if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}

// Callers of one server meet on its keys, be it by its methods or by connections; closing a
// client leaves them to the others.
func TestConcurrent(t *testing.T) {
	methods := func(r *Redis) redis.Scripter { return r }
	client := func(r *Redis) redis.Scripter { return r.Client() }
	other := func(r *Redis) redis.Scripter {
		return redis.NewClient(&redis.Options{Dialer: r.Dial, Protocol: 2, PoolSize: 1, ClientName: "seven", Username: "default", Password: "any"})
	}
	for name, callers := range map[string][]func(r *Redis) redis.Scripter{
		"methods": {methods}, "clients": {client, client, other}, "both": {methods, client},
	} {
		t.Run(name, func(t *testing.T) {
			r := New()
			var group sync.WaitGroup
			var admitted atomic.Int64
			for i := range 8 {
				caller := callers[i%len(callers)](r)
				group.Go(func() {
					for range 50 {
						reply, err := redis.NewScript(lua.GCRAV2).Run(t.Context(), caller, []string{"k"}, 1, int64(1e9), 100, 1).Int64Slice()
						if err != nil {
							t.Error(err)
							break
						}
						admitted.Add(reply[0])
					}
					if client, ok := caller.(*redis.Client); ok {
						client.Close()
					}
				})
			}
			group.Wait()
			if got := admitted.Load(); got != 100 {
				t.Errorf("%d admitted of a burst of 100", got)
			}
			if got := outcome(r.Do(t.Context(), "EXISTS", "k")); got != "int64 1" {
				t.Errorf("EXISTS = %s", got)
			}
		})
	}
}

// A pipeline may be written whole before a reply is read.
func TestLongPipeline(t *testing.T) {
	onServed(t, func(t *testing.T, client *redis.Client) {
		value := strings.Repeat("\x00\r\n\xff", 25_000)
		if err := client.Set(t.Context(), "k", value, 0).Err(); err != nil {
			t.Fatal(err)
		}
		replies, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			for range 150 { // 15 MB of replies, more than sockets hold
				p.Get(t.Context(), "k")
				p.Set(t.Context(), "other", value[:1000], 0)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, reply := range replies {
			if get, ok := reply.(*redis.StringCmd); ok && get.Val() != value {
				t.Fatalf("reply %d has %d bytes", i, len(get.Val()))
			}
		}
	})
}

// patient gives a busy machine, under the race detector, a minute for each pipeline.
func patient(options redis.Options) *redis.Options {
	options.ReadTimeout, options.WriteTimeout, options.MaxRetries = time.Minute, time.Minute, -1
	return &options
}

// onServed runs test on the emulator in the process and behind a port.
func onServed(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Run("in the process", func(t *testing.T) {
		client := redis.NewClient(patient(redis.Options{Dialer: New().Dial}))
		defer client.Close()
		test(t, client)
	})
	t.Run("behind a port", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- New().Serve(ctx, listener) }()
		client := redis.NewClient(patient(redis.Options{Addr: listener.Addr().String()}))
		defer client.Close()
		test(t, client)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if conn, err := net.Dial("tcp", listener.Addr().String()); err == nil {
			conn.Close()
			t.Error("the port is open after its end")
		}
	})
}

// Optimistic transactions of many clients lose no update.
func TestWatch(t *testing.T) {
	onServed(t, func(t *testing.T, client *redis.Client) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for done := 0; done < 25; {
					err := client.Watch(t.Context(), func(tx *redis.Tx) error {
						n, err := tx.Get(t.Context(), "n").Int()
						if err != nil && !errors.Is(err, redis.Nil) {
							return err
						}
						_, err = tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
							p.Set(t.Context(), "n", n+1, 0)
							return nil
						})
						return err
					}, "n")
					switch {
					case err == nil:
						done++
					case !errors.Is(err, redis.TxFailedErr):
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		if n := client.Get(t.Context(), "n").Val(); n != "200" {
			t.Errorf("%s updates of 200", n)
		}
	})
}

// A watched key that expires before EXEC has changed.
func TestWatchedKeyExpires(t *testing.T) {
	r := New()
	client := r.Client()
	defer client.Close()
	client.Set(t.Context(), "k", "v", time.Second)
	err := client.Watch(t.Context(), func(tx *redis.Tx) error {
		r.Advance(2 * time.Second)
		_, err := tx.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Ping(t.Context()).Err() })
		return err
	}, "k")
	if !errors.Is(err, redis.TxFailedErr) {
		t.Errorf("EXEC: %v", err)
	}
}

// A client's clock is the machine's, New's stands until it is moved, and Advance moves
// either.
func TestClocks(t *testing.T) {
	client := NewClient()
	defer client.Close()
	before := time.Now().Truncate(time.Microsecond)
	now := client.Time(t.Context()).Val()
	if now.Before(before) || now.After(time.Now()) {
		t.Errorf("TIME = %v, not from %v on", now, before)
	}
	if err := client.Set(t.Context(), "k", "v", 20*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	for client.Exists(t.Context(), "k").Val() == 1 {
		if time.Since(before) > 10*time.Second {
			t.Fatal("the key does not expire")
		}
		time.Sleep(time.Millisecond)
	}
	if gone := time.Since(before); gone < 20*time.Millisecond {
		t.Errorf("the key lived %v", gone)
	}

	r := New()
	standing := r.Client()
	defer standing.Close()
	standing.Set(t.Context(), "k", "v", time.Hour)
	time.Sleep(2 * time.Millisecond)
	if ttl := standing.PTTL(t.Context(), "k").Val(); ttl != time.Hour {
		t.Errorf("PTTL = %v by a standing clock", ttl)
	}
	r.SetClock(func() time.Time { return time.Unix(1_800_000_000, 5) })
	r.Advance(time.Minute)
	r.Advance(-time.Second + 7*time.Microsecond)
	if got, want := standing.Time(t.Context()).Val(), time.Unix(1_800_000_059, 7000); !got.Equal(want) {
		t.Errorf("TIME = %v, want %v", got, want)
	}
}

// A script has one instant, however often it reads TIME.
func TestOneInstant(t *testing.T) {
	r := New()
	at := time.Unix(1, 0)
	r.SetClock(func() time.Time { at = at.Add(time.Second); return at })
	got := outcome(r.Eval(t.Context(), `local a, b = redis.call('TIME'), redis.call('TIME') return {a[1], b[1]}`, nil))
	if got != "{2, 2}" {
		t.Errorf("TIMEs %s, want {2, 2}", got)
	}
}

// In a bubble of testing/synctest a day passes at once, and keys expire in it.
func TestBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := NewClient()
		defer client.Close()
		call := func() int64 {
			reply, err := redis.NewScript(lua.GCRAV2).Run(t.Context(), client, []string{"k"}, 1, int64(24*time.Hour), 1, 1).Int64Slice()
			if err != nil {
				t.Fatal(err)
			}
			return reply[0]
		}
		got := []int64{call(), call()}
		time.Sleep(24*time.Hour - time.Microsecond)
		got = append(got, call())
		time.Sleep(time.Microsecond)
		got = append(got, call())
		time.Sleep(25 * time.Hour)
		if n := client.DBSize(t.Context()).Val(); n != 0 || fmt.Sprint(got) != "[1 0 0 1]" {
			t.Errorf("calls answer %v, want [1 0 0 1]; %d keys left, want 0", got, n)
		}
	})
}

// Keys that expire and are never looked at again do not stay.
func TestSweep(t *testing.T) {
	r := New()
	for i := range 10 * minSweep {
		r.Do(t.Context(), "SET", i, "v", "PX", 10)
		r.Advance(time.Millisecond)
	}
	if n := len(r.keys); n > minSweep {
		t.Errorf("%d keys are held, all but 10 of them expired", n)
	}
}

// What is no command ends its connection with the server's word, and no other.
func TestProtocolErrors(t *testing.T) {
	r := New()
	for request, want := range map[string]string{
		"*1\r\n#4\r\nPING\r\n":                "-ERR Protocol error: expected '$', got '#'\r\n",
		"*x\r\nPING\r\n":                      "-ERR Protocol error: invalid multibulk length\r\n",
		"*1\r\n$x\r\nPING\r\n":                "-ERR Protocol error: invalid bulk length\r\n",
		"SET 'k v\r\n":                        "-ERR Protocol error: unbalanced quotes in request\r\n",
		"PING\r\nECHO hi\r\nQUIT\r\nPING\r\n": "+PONG\r\n$2\r\nhi\r\n+OK\r\n",
	} {
		conn, _ := r.Dial(t.Context(), "", "")
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if string(got) != want || err != nil {
			t.Errorf("%q answers %q, %v, want %q", request, got, err, want)
		}
		conn.Close()
	}
	if got := outcome(r.Do(t.Context(), "PING")); got != "PONG" {
		t.Errorf("PING = %s", got)
	}
}
