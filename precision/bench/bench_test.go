package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

func connectingTo(t *testing.T) redis.Options {
	t.Helper()
	options, err := connecting(servers.ForTest(t))
	if err != nil {
		t.Fatal(err)
	}
	return options
}

// find returns the candidate with this label and clock.
func find(t *testing.T, label, clock string) candidate {
	t.Helper()
	for _, c := range candidates {
		if c.label() == label && c.clock == clock {
			return c
		}
	}
	t.Fatalf("no candidate %s with the clock %s", label, clock)
	return candidate{}
}

func TestAllocations(t *testing.T) {
	options, ctx := connectingTo(t), context.Background()
	client := redis.NewClient(&options)
	defer client.Close()
	ours, err := loader.New(client)
	if err != nil {
		t.Fatal(err)
	}
	theirs := redis_rate.NewLimiter(client)
	for _, amount := range []int{1_000_000, 1} { // an hour: admitted, then refused
		mine := testing.AllocsPerRun(1000, func() {
			if _, err := ours.Allow(ctx, "ours", loader.Limit{Amount: int64(amount), Period: time.Hour}); err != nil {
				t.Fatal(err)
			}
		})
		peer := testing.AllocsPerRun(1000, func() {
			limit := redis_rate.Limit{Rate: amount, Burst: amount, Period: time.Hour}
			if _, err := theirs.Allow(ctx, "theirs", limit); err != nil {
				t.Fatal(err)
			}
		})
		if mine >= peer {
			t.Errorf("%d an hour: loader.Allow makes %v allocations, redis_rate's %v", amount, mine, peer)
		}
	}
}

// Every candidate comes out of every scenario as it has to, one by one and where it
// can be pipelined.
func TestScenarios(t *testing.T) {
	options, ctx := connectingTo(t), context.Background()
	for _, c := range candidates {
		t.Run(c.label()+" "+c.clock, func(t *testing.T) {
			s, err := newSession(ctx, c, options)
			if err != nil {
				t.Fatal(err)
			}
			defer s.client.Close()
			if pipelined := s.command != nil; pipelined == (c.name == "throttled v2") {
				t.Errorf("pipelined is %v", pipelined)
			}
			for _, of := range []scenario{fresh, busy, refused} {
				if of == refused && c.counts == nothing {
					continue
				}
				call, err := s.call(ctx, of, needed)
				for i := 0; i < 70 && err == nil; i++ { // more than the burst
					err = call()
				}
				if err != nil {
					t.Errorf("%s: %v", of, err)
				}
			}
			if s.command == nil {
				return
			}
			key := s.newKey()
			if err := s.client.Do(ctx, s.command(key)...).Err(); err != nil {
				t.Fatal(err)
			}
			exists, err := s.client.Exists(ctx, s.prefix+key).Result()
			if err != nil || exists == 0 && c.name != "return 1" || len(s.prefix+key) != 16 {
				t.Errorf("the command left %d keys of %d bytes: %v", exists, len(s.prefix+key), err)
			}
		})
	}
}

func TestTape(t *testing.T) {
	server := servers.ForTest(t)
	options, err := connecting(server)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var plays []func() error
	for label, trips := range map[string]int{"gcra_v1": 1, "redis_rate v10": 1, "throttled v2": 2, "ulule/limiter v3": 1} {
		s, tape, err := newTaped(ctx, find(t, label, serverClock), options)
		if err != nil {
			t.Fatal(err)
		}
		defer s.client.Close()
		call, err := s.call(ctx, busy, needed)
		if err != nil {
			t.Fatal(err)
		}
		tape.record()
		if err := call(); err != nil {
			t.Fatal(err)
		}
		if len(tape.replies) != trips {
			t.Errorf("%s waits for %d answers, want %d", label, len(tape.replies), trips)
		}
		tape.play()
		plays = append(plays, call)
	}
	server.Stop()
	for _, play := range plays {
		for range 10 {
			if err := play(); err != nil {
				t.Errorf("played back without the server: %v", err)
			}
		}
	}
}

func TestJudge(t *testing.T) {
	type call struct {
		cost, fromNs, toNs int64
		admitted, wrong    bool
	}
	const ms = int64(time.Millisecond)
	for _, test := range []struct {
		name, counts string
		limit        limit
		calls        []call
	}{
		{"gcra, a unit gained and a unit lost", gcra, limit{1, time.Second, 2}, []call{
			{2, 0, 10, true, false}, {1, 20, 30, false, false},
			{1, 1000*ms - 5, 1000*ms - 1, true, true}, // due at 1 s at the earliest
			{1, 2000*ms + 10, 2000*ms + 20, false, true},
			{1, 2000*ms + 10, 2000*ms + 20, true, false},
		}},
		{"gcra, unknown within the bracket", gcra, limit{1, time.Second, 1}, []call{
			{1, 0, 10, true, false}, {1, 1000*ms - 5, 1000*ms + 5, false, false}, {1, 1000*ms - 5, 1000*ms + 5, true, false},
		}},
		{"gcra, an interval between two ns", gcra, limit{3, time.Second, 1}, []call{
			{1, 0, 0, true, false},
			{1, 333_333_333, 333_333_333, false, false}, // below a third
			{1, 333_333_333, 333_333_333, true, true},
			{1, 666_666_668, 666_666_668, false, true}, // twice the interval rounded up
		}},
		{"fixed", fixedWindow, limit{2, time.Second, 0}, []call{
			{2, 100 * ms, 101 * ms, true, false}, {1, 200 * ms, 201 * ms, true, true}, {1, 999 * ms, 1000*ms - 1, false, false},
			{1, 1000*ms - 1, 1000 * ms, false, false}, {1, 1000 * ms, 1001 * ms, false, true}, {2, 1000 * ms, 1001 * ms, true, false},
		}},
		{"sliding", slidingWindow, limit{2, time.Second, 0}, []call{
			{2, 100 * ms, 101 * ms, true, false}, {1, 1499 * ms, 1499 * ms, true, true}, {1, 1501 * ms, 1501 * ms, false, false},
			{1, 2600 * ms, 2600 * ms, false, true},
		}},
		{"the end of a window within the bracket", fixedWindow, limit{1, time.Second, 0}, []call{
			{1, 1000*ms - 1, 1000 * ms, true, false}, // in either window
			{1, 1001 * ms, 1001 * ms, true, false},   // so it was the first
			{1, 1002 * ms, 1002 * ms, true, true},
		}},
		{"first call", firstWindow, limit{2, time.Second, 0}, []call{
			{1, 500 * ms, 501 * ms, true, false}, {2, 600 * ms, 601 * ms, false, false},
			{1, 700 * ms, 701 * ms, false, true}, // the refused call counted
			{1, 700 * ms, 701 * ms, true, false}, {1, 1499 * ms, 1499 * ms, true, true},
			{1, 1500 * ms, 1501 * ms, false, false}, {1, 1502 * ms, 1502 * ms, false, true}, {2, 1502 * ms, 1502 * ms, true, false},
		}},
	} {
		judge := newJudge(test.counts, 0)
		for i, c := range test.calls {
			if wrong := judge.call("key", test.limit, c.cost, c.fromNs, c.toNs, c.admitted); wrong != c.wrong {
				t.Errorf("%s: call %d %+v: wrong is %v", test.name, i+1, c, wrong)
			}
		}
	}
}

// The exact scripts are right on a part of the trace; a limiter that counts what it
// refuses is not.
func TestDecisions(t *testing.T) {
	options, ctx := connectingTo(t), context.Background()
	trace := newTrace(3000)
	for _, c := range candidates {
		if !strings.HasSuffix(c.name, "_v2") && c.name != "window_v1" && c.counts != firstWindow {
			continue
		}
		wrong, err := decideTrace(ctx, c, options, "test:"+c.label()+c.clock, trace)
		if err != nil {
			t.Error(err)
		}
		if right := wrong == (wrongs{}); right == (c.counts == firstWindow) {
			t.Errorf("%s, %s: %+v are wrong", c.label(), c.clock, wrong)
		}
	}
}

func TestInstructions(t *testing.T) {
	if _, err := exec.LookPath("valgrind"); err != nil {
		if servers.Required() {
			t.Fatal(err)
		}
		t.Skipf("skipped: %v", err)
	}
	servers.ForTest(t) // or skip
	rows := []*row{{candidate: find(t, "return 1", noClock), of: fresh}, {candidate: find(t, "TIME, GET, SET", serverClock), of: fresh}}
	if err := instructions(context.Background(), rows, func() {}); err != nil {
		t.Fatal(err)
	}
	if less, more := rows[0].Instructions, rows[1].Instructions; less < 1000 || more < 2*less {
		t.Errorf("return 1 takes %.0f instructions, three commands take %.0f", less, more)
	}
}

func TestTable(t *testing.T) {
	rows := newRows()
	two := 2
	rows[0].Instructions, rows[0].Wrong = 11_000, &two
	var table, object bytes.Buffer
	if err := writeTable(&table, rows); err != nil {
		t.Fatal(err)
	}
	header, _, _ := strings.Cut(table.String(), "\n")
	for line := range strings.Lines(table.String()) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != strings.Count(header, "|") {
			t.Errorf("%q has not as many cells as the header", line)
		}
	}
	if want := "| return 1 | - | admitted | 11000 | - |"; !strings.Contains(table.String(), want) {
		t.Errorf("the table lacks %q", want)
	}
	if err := writeJSON(&object, rows, map[string]any{"server": "redis"}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Server string
		Rows   []struct {
			Script       string
			Instructions float64
			Wrong        *int
		}
	}
	if err := json.Unmarshal(object.Bytes(), &got); err != nil || got.Server != "redis" || len(got.Rows) != len(rows) ||
		got.Rows[0].Instructions != 11_000 || *got.Rows[0].Wrong != 2 || got.Rows[1].Wrong != nil {
		t.Errorf("JSON: %v\n%s", err, object.String())
	}
}

func TestBounds(t *testing.T) {
	for _, test := range []struct {
		bound bound
		want  string
	}{
		{bound{"a", 2, 1, false}, "a: 2, at most 1: DOES NOT HOLD"},
		{bound{"a", 1, 1, false}, "a: 1, at most 1: holds"},
		{bound{"a", 7, 8, true}, "a: 7, at least 8: DOES NOT HOLD"},
		{bound{"a", 66_001, 66_000, false}, "a: 66001, at most 66000: DOES NOT HOLD"},
	} {
		if got := test.bound.String(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if err := broken([]bound{{"a", 1, 1, false}, {"b", 8, 8, true}}); err != nil {
		t.Errorf("%v, but all hold", err)
	}
	err := broken([]bound{{"a", 2, 1, false}, {"b", 1, 1, false}, {"c", 7, 8, true}})
	if want := "a: 2, at most 1: DOES NOT HOLD\nc: 7, at least 8: DOES NOT HOLD"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got := bounds(newRows(), 0, 0); len(got) != 0 {
		t.Errorf("nothing was measured, but there is %v", got)
	}
	if got := bounds(newRows(), 10, 90); len(got) != 1 || got[0].got != 9 {
		t.Errorf("got %v, want AllowEach alone", got)
	}
	for _, test := range []struct {
		script string
		of     scenario
		want   float64
	}{
		{"gcra_v1", fresh, 5}, {"gcra_v1", refused, 0}, {"gcra_v2", refused, 5},
		{"window_v1", fresh, 10}, {"window_v2", refused, 10}, // fixed and sliding
		{"redis_rate v10", fresh, 0},
	} {
		rows := newRows()
		for _, r := range rows {
			wrong := 0
			if r.name == test.script && r.of == test.of && r.clock == serverClock {
				wrong = 5
			}
			if r.counts != nothing {
				r.Wrong = &wrong
			}
		}
		if got := bounds(rows, 0, 0); len(got) != 1 || got[0].got != test.want || got[0].holds() != (test.want == 0) {
			t.Errorf("5 wrong decisions of %s, %s: %v, want %v", test.script, test.of, got, test.want)
		}
	}
}
