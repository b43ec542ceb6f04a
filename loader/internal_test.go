package loader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/lua"
)

func TestPinsAgree(t *testing.T) {
	scripts, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]bool{}
	for _, script := range scripts {
		pinned[script.Name] = true
	}
	for line := range strings.Lines(lua.Sum) {
		if name, _, ok := strings.Cut(line, " "); ok && name != "#" && !pinned[name] {
			t.Errorf("lua.sum has %s, which is not pinned", name)
		}
	}
}

func TestAlteredPins(t *testing.T) {
	good, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	v1, v2, last := good[0].SHA1, good[1].SHA1, good[len(good)-1].Name
	for name, alter := range map[string]func(scripts []Script, sum *string){
		"text":     func(scripts []Script, _ *string) { scripts[0].text += " " },
		"literal":  func(scripts []Script, _ *string) { scripts[1].SHA1 = v1 },
		"sum":      func(_ []Script, sum *string) { *sum = strings.ReplaceAll(*sum, v2, v1) },
		"no line":  func(_ []Script, sum *string) { *sum = strings.ReplaceAll(*sum, last+" ", "window_v0 ") },
		"empty":    func(_ []Script, sum *string) { *sum = "" },
		"textless": func(scripts []Script, _ *string) { scripts[0].text = "" },
		"swapped":  func(scripts []Script, _ *string) { scripts[0].text, scripts[1].text = scripts[1].text, scripts[0].text },
	} {
		scripts, sum := append([]Script(nil), good...), lua.Sum
		alter(scripts, &sum)
		if err := checkPins(scripts, sum); !errors.Is(err, ErrPin) {
			t.Errorf("%s: %v, want an ErrPin", name, err)
		}
	}
}

func TestReleased(t *testing.T) {
	all, err := Scripts()
	if err != nil {
		t.Fatal(err)
	}
	scripts := []Script{all[0], all[len(all)-1]}
	sum := fmt.Sprintf("# released: x\n%s %s 0\n# candidates: y\n%s %s 0\n",
		scripts[1].Name, scripts[1].SHA1, scripts[0].Name, scripts[0].SHA1)
	if err := checkPins(scripts, sum); err != nil {
		t.Fatal(err)
	}
	if scripts[0].Released || !scripts[1].Released {
		t.Errorf("released: %s %v, %s %v, want false, true",
			scripts[0].Name, scripts[0].Released, scripts[1].Name, scripts[1].Released)
	}
}

// replied is an error reply, as go-redis has them.
type replied string

func (e replied) Error() string { return string(e) }
func (replied) RedisError()     {}

// sorted judges an error of a call that was written.
func sorted(err error) error {
	limiter, newErr := New(redis.NewClient(&redis.Options{Addr: "server.invalid:1"}))
	if newErr != nil {
		return newErr
	}
	return limiter.judge(context.Background(), &call{key: "rl:{secret}", written: true}, err, time.Now().Add(naming))
}

// An auto pipeline asks for a call's bytes before it has a connection. By these errors
// go-redis had none, so nothing was spent all the same; by the others it may have been.
func TestUnsent(t *testing.T) {
	for _, c := range []struct {
		err   error
		spent error
	}{
		{redis.ErrPoolTimeout, ErrNotSpent},
		{redis.ErrPoolExhausted, ErrNotSpent},
		{redis.ErrClosed, ErrNotSpent},
		{fmt.Errorf("within: %w", redis.ErrPoolTimeout), ErrNotSpent},
		{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, ErrNotSpent},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, ErrMaybeSpent},
		{io.EOF, ErrMaybeSpent},
		{os.ErrDeadlineExceeded, ErrMaybeSpent},
		{context.DeadlineExceeded, ErrMaybeSpent},
	} {
		if err := sorted(c.err); !errors.Is(err, c.spent) {
			t.Errorf("%v: got %v, want %v", c.err, err, c.spent)
		}
	}
}

// cluster is a cluster client that knows one master, or says why not, and counts how often
// it is told to read its slots anew.
type cluster struct {
	redis.UniversalClient
	master    *redis.Client
	masterErr error
	wait      <-chan struct{} // before it tells; nil: not at all
	reloads   int
}

func (c *cluster) MasterForKey(context.Context, string) (*redis.Client, error) {
	if c.wait != nil {
		<-c.wait
	}
	return c.master, c.masterErr
}

func (c *cluster) ReloadState(context.Context) { c.reloads++ }

// A cluster's slots are read anew where its master may have been replaced: after a lost
// reply, and where there was no connection.
func TestReloads(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		err     error
		written bool
		reloads int
	}{
		{io.EOF, true, 1}, {dial, false, 1}, {dial, true, 1}, {redis.ErrPoolTimeout, false, 0}, {replied("LOADING x"), true, 0},
	} {
		client := &cluster{master: redis.NewClient(&redis.Options{Addr: "server.invalid:1"})}
		l := &Limiter{client: client}
		l.judge(t.Context(), &call{key: "k", written: c.written}, c.err, time.Now().Add(time.Minute))
		if client.reloads != c.reloads {
			t.Errorf("%v, written %v: %d reloads, want %d", c.err, c.written, client.reloads, c.reloads)
		}
	}
}

// The key's master is waited for until then. A client that has once told one is asked at
// any time.
func TestMasterOf(t *testing.T) {
	node := redis.NewClient(&redis.Options{Addr: "server.invalid:1"})
	late, soon := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	told := func(l *Limiter, c *cluster, then time.Time, want *redis.Client, hasSlots bool) {
		t.Helper()
		if got := l.masterOf(c, "k", then); got != want || l.hasSlots.Load() != hasSlots {
			t.Errorf("got %v, has slots %v, want %v, %v", got, l.hasSlots.Load(), want, hasSlots)
		}
	}
	l := &Limiter{}
	told(l, &cluster{master: node}, late, nil, false)
	told(l, &cluster{masterErr: errNil}, soon, nil, false)
	told(l, &cluster{master: node}, soon, node, true)
	told(l, &cluster{master: node}, late, node, true)
	// naming is enough for one that remembers it, though not on every run of a busy machine
	for until := time.Now().Add(10 * time.Second); (&Limiter{}).masterOf(&cluster{master: node}, "k", time.Now().Add(naming)) == nil; {
		if time.Now().After(until) {
			t.Fatalf("%v is never enough", naming)
		}
	}
	hung := make(chan struct{})
	defer close(hung)
	told(&Limiter{}, &cluster{master: node, wait: hung}, time.Now().Add(naming), nil, false)
	told(&Limiter{}, &cluster{master: node, wait: hung}, time.Now(), nil, false)
}

// answering is a client that answers every command with this.
type answering struct {
	redis.UniversalClient
	reply any
}

func (a answering) Process(_ context.Context, cmd redis.Cmder) error {
	cmd.(*call).SetVal(a.reply)
	return nil
}

// Reset and Delete take 0 and 1 for how many keys there were, and nothing else.
func TestForgetReplies(t *testing.T) {
	limit := Limit{Amount: 1, Period: time.Second}
	for reply, existed := range map[any]bool{int64(0): false, int64(1): true} {
		l := &Limiter{client: answering{reply: reply}}
		if got, err := l.Delete(t.Context(), "k", limit); got != existed || err != nil {
			t.Errorf("%v: existed %v, %v, want %v", reply, got, err, existed)
		}
	}
	for _, reply := range []any{int64(-1), int64(2), "1", true} {
		l := &Limiter{client: answering{reply: reply}}
		if got, err := l.Reset(t.Context(), "k", limit); got || !errors.Is(err, ErrReply) || !errors.Is(err, ErrMaybeSpent) {
			t.Errorf("%v: existed %v, %v, want an ErrReply", reply, got, err)
		}
	}
}

// An error names its server once.
func TestErrorNamesTheServerOnce(t *testing.T) {
	for want, f := range map[string]*failure{
		"tatami: h:1: boom":           {server: "h:1", cause: errors.New("boom")},
		"tatami: dial h:1: boom":      {server: "h:1", cause: errors.New("dial h:1: boom")},
		"tatami: boom":                {cause: errors.New("boom")},
		"tatami: bad state: h:1":      {kind: errors.New("tatami: bad state"), server: "h:1"},
		"tatami: h:1: boom: canceled": {server: "h:1", cause: errors.New("boom"), ended: errors.New("canceled")},
	} {
		if got := f.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReplies(t *testing.T) {
	for _, test := range []struct {
		text  string
		kind  error // nil: none
		spent error
	}{
		{"BADARG gcra_v2: x", ErrBadArg, ErrNotSpent},
		{"BADSTATE gcra_v2: x", ErrBadState, ErrNotSpent},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", ErrBadState, ErrNotSpent},
		{"READONLY You can't write against a read only replica.", ErrReadOnly, ErrNotSpent},
		{"@user_script: 132: -READONLY You can't write against a read only replica. ", ErrReadOnly, ErrNotSpent}, // 6.0
		{"OOM command not allowed when used memory > 'maxmemory'.", ErrOutOfMemory, ErrNotSpent},
		{"@user_script: 132: -OOM command not allowed when used memory > 'maxmemory'. ", ErrOutOfMemory, ErrNotSpent},
		{"NOSCRIPT No matching script. Please use EVAL.", nil, ErrNotSpent},
		{"LOADING Redis is loading the dataset in memory", nil, ErrNotSpent},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", nil, ErrNotSpent},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", nil, ErrNotSpent},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", nil, ErrNotSpent},
		{"NOREPLICAS Not enough good replicas to write.", nil, ErrNotSpent},
		{"NOAUTH Authentication required.", nil, ErrNotSpent},
		{"NOPERM User app has no permissions to run the 'evalsha' command", nil, ErrNotSpent},
		{"WRONGPASS invalid username-password pair or user is disabled.", nil, ErrNotSpent},
		{"ERR max number of clients reached", nil, ErrNotSpent},
		{"ERR unknown command 'evalsha', with args beginning with: 'a' '1' 'rl:{secret}' ", nil, ErrNotSpent},
		{"CLUSTERDOWN Hash slot not served", nil, ErrNotSpent},
		{"TRYAGAIN Multiple keys request during rehashing of slot", nil, ErrNotSpent},
		{"CROSSSLOT Keys in request don't hash to the same slot", nil, ErrNotSpent},
		{"MOVED 5 127.0.0.1:7000", nil, ErrNotSpent},
		{"ASK 5 127.0.0.1:7000", nil, ErrNotSpent},
		{"ERR Error running script (call to f_0): @user_script:1: Script killed by user with SCRIPT KILL...", nil, ErrNotSpent},
		{"ERR ACL failure in script: User u has no permissions to run the 'time' command", nil, ErrNotSpent},       // 8.0
		{"ERR The user executing the script can't run this command or subcommand", nil, ErrNotSpent},               // 7.0
		{"@user_script: 69: The user executing the script can't run this command or subcommand", nil, ErrNotSpent}, // 6.0
		{"ERR Unknown Redis command called from script", nil, ErrNotSpent},                                         // 7.0
		{"@user_script: 69: Unknown Redis command called from Lua script", nil, ErrNotSpent},                       // 6.0
		{"@user_script:132: WRONGTYPE is not the first word", nil, ErrMaybeSpent},
		{"ERR BADARG is not the first word", nil, ErrMaybeSpent},
		{"ERR Error running script (call to f_0): @user_script:132: @user_script: 132: -READONLY not handed on", nil, ErrMaybeSpent},
		{"ERR something about rl:{secret}", nil, ErrMaybeSpent},
		{"UNKILLABLE Sorry the script already executed write commands against the dataset.", nil, ErrMaybeSpent},
	} {
		err := sorted(replied(test.text))
		checkSpent(t, test.text, err, test.spent)
		for _, sentinel := range []error{ErrBadArg, ErrBadState, ErrReadOnly, ErrOutOfMemory, ErrReply} {
			if is := errors.Is(err, sentinel); is != (sentinel == test.kind) {
				t.Errorf("%q is %v: %v", test.text, sentinel, is)
			}
		}
		if !errors.Is(err, replied(test.text)) {
			t.Errorf("%q became %v", test.text, err)
		}
		if text := err.Error(); !strings.HasPrefix(text, "tatami: ") || strings.Contains(text, "secret") ||
			!strings.Contains(text, "server.invalid:1") {
			t.Errorf("%q: the text is %q", test.text, text)
		}
	}
	if err := sorted(errors.New("BADARG of no server")); errors.Is(err, ErrBadArg) || !errors.Is(err, ErrMaybeSpent) {
		t.Errorf("%v", err)
	}
}

// checkSpent holds an error against the promise that it is one of the two, and which.
func checkSpent(t *testing.T, what string, err, want error) {
	t.Helper()
	not, maybe := errors.Is(err, ErrNotSpent), errors.Is(err, ErrMaybeSpent)
	if not == maybe || not != (want == ErrNotSpent) {
		t.Errorf("%s: %v is ErrNotSpent %v, ErrMaybeSpent %v", what, err, not, maybe)
	}
}

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		reply any
		want  Result
	}{
		{[]any{int64(1), int64(59), int64(0), int64(200)}, Result{Allowed: true, Remaining: 59, ResetAfter: 200}},
		{[]any{int64(0), int64(3), int64(7), int64(9)}, Result{Remaining: 3, RetryAfter: 7, ResetAfter: 9}},
		{[]any{int64(0), int64(0), int64(1), int64(1)}, Result{RetryAfter: 1, ResetAfter: 1}},
		{[]any{int64(-1), int64(0), int64(-1), int64(0)}, Result{Unfittable: true, RetryAfter: -1}},
	} {
		if got, err := decode(test.reply); got != test.want || err != nil {
			t.Errorf("%v: %+v, %v, want %+v", test.reply, got, err, test.want)
		}
	}
	for _, reply := range []any{
		nil, 1.5, "1", int64(1), true, []any{}, []any(nil),
		[]any{int64(1), int64(59), int64(0)},
		[]any{int64(1), int64(59), int64(0), int64(200), int64(0)},
		[]any{int64(1), 59.0, int64(0), int64(200)},
		[]any{int64(1), "59", int64(0), int64(200)},
		[]any{int64(1), nil, int64(0), int64(200)},
		[]any{true, int64(59), int64(0), int64(200)},
		[]any{[]any{int64(1)}, int64(59), int64(0), int64(200)},
		[]any{int64(2), int64(59), int64(0), int64(200)},
		[]any{int64(-2), int64(59), int64(-1), int64(200)},
		[]any{int64(1), int64(-1), int64(0), int64(200)},
		[]any{int64(1), int64(59), int64(1), int64(200)},
		[]any{int64(1), int64(59), int64(0), int64(-1)},
		[]any{int64(0), int64(0), int64(0), int64(200)},
		[]any{int64(0), int64(0), int64(-1), int64(200)},
		[]any{int64(-1), int64(0), int64(0), int64(200)},
		map[any]any{int64(1): int64(59)},
		errors.New("an error in an array"),
	} {
		if got, err := decode(reply); got != (Result{}) || !errors.Is(err, ErrReply) {
			t.Errorf("%v: %+v, %v, want an ErrReply", reply, got, err)
		}
	}
	_, err := decode([]any{int64(1), int64(59), "0", int64(200)})
	if want := "element 3 is string 0, want an integer"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want ... %s", err, want)
	}
}

func TestRetryAfterSeconds(t *testing.T) {
	for _, test := range []struct {
		retry   time.Duration
		seconds int64
		ok      bool
	}{
		{time.Millisecond, 1, true},
		{493 * time.Millisecond, 1, true},
		{999 * time.Millisecond, 1, true},
		{1000 * time.Millisecond, 1, true},
		{1001 * time.Millisecond, 2, true},
		{1, 1, true},
		{time.Second + 1, 2, true},
		{1<<63 - 1, 9223372037, true},
		{0, 0, false},  // allowed
		{-1, 0, false}, // unfittable
	} {
		seconds, ok := Result{RetryAfter: test.retry}.RetryAfterSeconds()
		if seconds != test.seconds || ok != test.ok {
			t.Errorf("%v: %d, %v, want %d, %v", test.retry, seconds, ok, test.seconds, test.ok)
		}
		if reset := (Result{ResetAfter: max(0, test.retry)}).ResetAfterSeconds(); reset != test.seconds {
			t.Errorf("reset %v: %d, want %d", test.retry, reset, test.seconds)
		}
	}
}

func TestWaitExact(t *testing.T) {
	for reset, want := range map[time.Duration]bool{0: true, 1<<53 - 1: true, 1 << 53: false, 1<<63 - 1024: false} {
		if got := (Result{ResetAfter: reset}).WaitExact(); got != want {
			t.Errorf("reset after %v: exact %v, want %v", reset, got, want)
		}
	}
}

// What an error shows of a limit, where its parts are as long or as short as they may be.
func TestErrorOfALimit(t *testing.T) {
	longest := strings.Repeat("a", maxName)
	for _, test := range []struct {
		limit Limit
		want  string
	}{
		{Limit{Amount: 1, Period: time.Minute, Algorithm: Algorithm(longest)},
			"limit 1 per 1m0s " + longest + `: algorithm "` + longest + `" is unknown; use ` + algorithmNames},
		{Limit{Amount: 1, Period: time.Minute, Algorithm: Algorithm(longest + "a")},
			`limit 1 per 1m0s (101 bytes): algorithm "(101 bytes)" is unknown; use ` + algorithmNames},
		{Limit{Amount: 1, Period: 1}, "limit 1 per 1ns gcra: period 1ns is below 1ms; were 1 seconds meant? Write 1 * time.Second"},
		{Limit{Amount: 1, Period: 0}, "limit 1 per 0s gcra: period 0s is below 1ms; set a period"},
	} {
		if err := test.limit.Validate(); err == nil || err.Error() != "tatami: bad limit: "+test.want {
			t.Errorf("got  %v\nwant tatami: bad limit: %s", err, test.want)
		}
	}
}
