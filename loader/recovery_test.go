package loader_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
)

// fate is what a server answers to one call, and what must become of it.
type fate struct {
	name string
	// answers are given in place of running the call, one each time that it comes. MOVED
	// and ASK send it to the other server.
	answers []string
	err     error // nil: at last it runs
	spent   error
}

const (
	noScript = "NOSCRIPT No matching script."
	loading  = "LOADING Redis is loading the dataset in memory"
)

// fates are all ways back that there are, alone and one after the other.
var fates = []fate{
	{name: "runs"},
	{name: "no script", answers: []string{noScript}},
	{name: "loading", answers: []string{loading}},
	{name: "cluster down, then no script", answers: []string{"CLUSTERDOWN Hash slot not served", noScript}},
	{name: "no script, then loading", answers: []string{noScript, loading}},
	{name: "try again twice", answers: []string{"TRYAGAIN Multiple keys", "TRYAGAIN Multiple keys"}},
	{name: "foreign", answers: []string{"BADSTATE x: "}, err: loader.ErrBadState, spent: loader.ErrNotSpent},
	{name: "no script, then foreign", answers: []string{noScript, "WRONGTYPE "},
		err: loader.ErrBadState, spent: loader.ErrNotSpent},
	{name: "loading, then out of memory", answers: []string{loading, "OOM "},
		err: loader.ErrOutOfMemory, spent: loader.ErrNotSpent},
	{name: "no script, then one again", answers: []string{noScript, "NOSCRIPT "},
		err: loader.ErrNotSpent, spent: loader.ErrNotSpent},
	{name: "unknown", answers: []string{"ERR something "}, err: loader.ErrMaybeSpent, spent: loader.ErrMaybeSpent},
	{name: "no script, then unknown", answers: []string{noScript, "ERR something "},
		err: loader.ErrMaybeSpent, spent: loader.ErrMaybeSpent},
}

// redirects are more of a cluster's.
var redirects = []fate{
	{name: "moved", answers: []string{"MOVED"}},
	{name: "asked for elsewhere", answers: []string{"ASK"}},
	{name: "moved, then no script", answers: []string{"MOVED", noScript}},
	{name: "no script, then moved", answers: []string{noScript, "MOVED"}},
	{name: "asked for elsewhere, then no script, then moved", answers: []string{"ASK", noScript, "MOVED"}},
	{name: "moved, then foreign", answers: []string{"MOVED", "BADSTATE x: "}, err: loader.ErrBadState, spent: loader.ErrNotSpent},
	{name: "asked for elsewhere, then unknown", answers: []string{"ASK", "ERR something "},
		err: loader.ErrMaybeSpent, spent: loader.ErrMaybeSpent},
}

// fated is a call with its fate. Each differs from the others in what it asks for and in
// what must come back.
type fated struct {
	loader.Call
	fate
	stored string // its Redis key
	left   int64  // what must remain
	ok     bool   // it must be admitted
}

// scene is a batch of calls, and how often each has come to a server so far.
type scene struct {
	mu    sync.Mutex
	calls map[string]*fated // by Redis key
	came  map[string]int    // how often each came
}

// follow makes the proxies answer by the fates of the calls.
func (s *scene) follow(f *front) {
	for addr, p := range f.proxies {
		other := addr
		for one := range f.proxies {
			if one != addr {
				other = one
			}
		}
		p.refuse(func(command []byte) []byte {
			if isCommand(command, "asking") { // which the emulator does not know
				return []byte("+OK\r\n")
			}
			if !isEvalsha(command) && !isCommand(command, "eval") {
				return nil
			}
			return s.answer(command, other)
		})
	}
}

func (s *scene) answer(command []byte, other string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, call := range s.calls {
		if !isCommand(command, strings.ToLower(key)) {
			continue
		}
		s.came[key]++
		if s.came[key] > len(call.answers) {
			return nil
		}
		answer := call.answers[s.came[key]-1]
		switch {
		case answer == "MOVED" || answer == "ASK":
			answer += " 1 " + other
		case strings.HasSuffix(answer, " "):
			answer += call.Limit.Period.String() // so that each error is its call's own
		}
		return []byte("-" + answer + "\r\n")
	}
	return nil
}

// batch makes calls of random fates.
func batch(random *rand.Rand, limiter *loader.Limiter, among []fate) *scene {
	s := &scene{calls: map[string]*fated{}, came: map[string]int{}}
	algorithms := []loader.Algorithm{"", loader.FixedWindow, loader.SlidingWindow, loader.TokenBucket}
	for i := range int64(2 + random.IntN(14)) {
		call := &fated{fate: among[random.IntN(len(among))], ok: true}
		call.Key = fmt.Sprint("k", i)
		call.Limit = loader.Limit{Amount: 100 + 10*i, Period: time.Duration(1000+i) * time.Hour}
		call.Limit.Algorithm = algorithms[random.IntN(len(algorithms))]
		call.Cost = random.Int64N(9)
		if call.err != nil {
			call.Cost++ // go-redis may repeat one that costs nothing, past its error
		}
		call.left = call.Limit.Amount - call.Cost
		if random.IntN(8) == 0 {
			call.Cost, call.left, call.ok = call.Limit.Amount+1, call.Limit.Amount, false
		}
		call.stored = limiter.Key(call.Key, call.Limit)
		s.calls[call.stored] = call
	}
	return s
}

// check holds what became of a call against its fate.
func (s *scene) check(t *testing.T, what string, call *fated, got loader.Outcome) {
	t.Helper()
	s.mu.Lock()
	came := s.came[call.stored]
	s.mu.Unlock()
	what = fmt.Sprintf("%s, %v, cost %d, %s, came %d times", what, call.Limit, call.Cost, call.name, came)
	if call.err != nil {
		last := call.answers[len(call.answers)-1]
		if got.Result != (loader.Result{}) || !errors.Is(got.Err, call.err) || !isSpent(got.Err, call.spent) ||
			!strings.Contains(got.Err.Error(), last+call.Limit.Period.String()) || came != len(call.answers) {
			t.Errorf("%s: %+v, want %v with %q, and that it comes %d times", what, got, call.err, last, len(call.answers))
		}
		return
	}
	if got.Err != nil || got.Allowed != call.ok || got.Unfittable == call.ok || got.Remaining != call.left ||
		got.Key != call.stored || got.Limit != call.Limit || came != len(call.answers)+1 && call.Cost > 0 {
		t.Errorf("%s: %+v, want allowed %v and %d remaining, at %s, and that it comes %d times",
			what, got, call.ok, call.left, call.stored, len(call.answers)+1)
	}
}

// TestRecovery has every kind of client make batches whose calls meet different fates. Each
// call gets what is its own, and is sent as often as its fate needs and no more.
func TestRecovery(t *testing.T) {
	for name, start := range map[string]func(*testing.T) backend{
		"single":  backends["single emulator"],
		"ring":    backends["ring emulators"],
		"cluster": emulatedCluster,
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			among := fates
			if name == "cluster" {
				among = append(fates[:len(fates):len(fates)], redirects...)
			}
			f := newFront(t, b.masters...)
			newLimiter(t, b.plain) // the servers have the scripts
			for _, kind := range b.kinds {
				t.Run(kind.name, func(t *testing.T) {
					kind.with(t, f, func(client redis.UniversalClient) { testRecovery(t, b, f, client, among) })
				})
			}
		})
	}
}

func testRecovery(t *testing.T, b backend, f *front, client redis.UniversalClient, among []fate) {
	limiter, err := loader.New(client)
	must(t, err)
	for seed := range uint64(6) {
		for _, single := range []bool{false, true} {
			what := fmt.Sprintf("seed %d, one by one %v", seed, single)
			for _, master := range b.masters {
				must(t, master.FlushAll(t.Context()).Err())
			}
			s := batch(rand.New(rand.NewPCG(seed, 0)), limiter, among)
			s.follow(f)
			var calls []loader.Call
			var order []*fated
			for _, call := range s.calls { // in any order
				calls, order = append(calls, call.Call), append(order, call)
			}
			if single {
				for i, call := range calls {
					result, err := limiter.AllowN(t.Context(), call.Key, call.Limit, call.Cost)
					s.check(t, what, order[i], loader.Outcome{Result: result, Err: err})
				}
				continue
			}
			for i, got := range limiter.AllowEach(t.Context(), calls...) {
				s.check(t, what, order[i], got)
			}
		}
	}
}

// emulatedCluster has a cluster client believe that two emulators have half of the slots
// each.
func emulatedCluster(t *testing.T) backend {
	a, b := onPort(t, true), onPort(t, true)
	slotsOf := func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{
			{Start: 0, End: slots/2 - 1, Nodes: []redis.ClusterNode{{Addr: a.Options().Addr}}},
			{Start: slots / 2, End: slots - 1, Nodes: []redis.ClusterNode{{Addr: b.Options().Addr}}},
		}, nil
	}
	open := func(dial func(context.Context, string, string) (net.Conn, error)) redis.UniversalClient {
		whole := func(ctx context.Context, network, addr string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			return dial(ctx, network, net.JoinHostPort("127.0.0.1", port)) // go-redis takes it off the slots' addresses
		}
		return redis.NewClusterClient(&redis.ClusterOptions{ClusterSlots: slotsOf, Dialer: whole})
	}
	plain := open(new(net.Dialer).DialContext)
	t.Cleanup(func() { plain.Close() })
	through := func(f *front) redis.UniversalClient { return open(f.dial) }
	return backend{[]testServer{a, b}, plain, []kind{
		opened("ClusterClient", through),
		piped("AutoPipeline of a cluster", through, false, false),
		piped("AsyncAutoPipeline of a cluster", through, true, false),
	}}
}
