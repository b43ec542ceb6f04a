package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"regexp"
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
			if pipelined := s.command != nil; pipelined == (c.name == "throttled v2" || c.counts == settled) {
				t.Errorf("pipelined is %v", pipelined)
			}
			for _, of := range c.scenarios() {
				// Long enough that a stall does not see the end of a window.
				call, err := s.call(ctx, of, 5*needed)
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
			key = s.redisKey(key)
			exists, err := s.client.Exists(ctx, key).Result()
			if err != nil || exists == 0 && c.name != "return 1" || len(key) != 16 {
				t.Errorf("the command left %d keys of %d bytes: %v", exists, len(key), err)
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
			{1, 666_666_667, 666_666_667, false, false}, // twice the third, rounded up
			{1, 666_666_668, 666_666_668, false, true},  // twice the interval rounded up
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
		if c.name != "gcra_v2" && c.name != "window_v1" && !strings.HasPrefix(c.name, "limits_v1, asks") && c.counts != firstWindow {
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
	need(t, exec.Command("valgrind", "--version"))
	ctx := context.Background()
	program, err := programOf(ctx, "", "")
	if err != nil {
		servers.ForTest(t) // skips, or fails
	}
	rows := newRows()[:2] // return 1; TIME, GET, SET
	if err := instructions(ctx, program, rows, func() {}); err != nil {
		t.Fatal(err)
	}
	for _, of := range []scenario{fresh, busy} {
		if less, more := rows[0].Instructions[of], rows[1].Instructions[of]; less < 1000 || more < 2*less {
			t.Errorf("%s: return 1 takes %.0f instructions, three commands take %.0f", of, less, more)
		}
	}
}

// need skips a test, or fails it when servers are required, when the command does not
// succeed.
func need(t *testing.T, command *exec.Cmd) {
	t.Helper()
	if err := command.Run(); err != nil {
		if servers.Required() {
			t.Fatalf("%v: %v", command, err)
		}
		t.Skipf("skipped: %v: %v", command, err)
	}
}

// The binary of an image runs here, by its own libraries.
func TestImage(t *testing.T) {
	ctx := context.Background()
	for image, want := range map[string]string{"redis:8.0": "redis 8.0.", "valkey/valkey:9.1": "valkey 9.1."} {
		t.Run(image, func(t *testing.T) {
			need(t, exec.Command("docker", "image", "inspect", image))
			dir := t.TempDir()
			program, err := programOf(ctx, image, dir)
			if err != nil {
				t.Fatal(err)
			}
			binary, err := executable(t.TempDir(), "server", program)
			if err != nil {
				t.Fatal(err)
			}
			server, err := servers.StartBinary(ctx, binary)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Stop()
			if !strings.HasPrefix(server.Name, want) {
				t.Errorf("it is %s", server.Name)
			}
		})
	}
}

func TestProgram(t *testing.T) {
	ctx := context.Background()
	if got, err := programOf(ctx, "/a server", ""); err != nil || len(got) != 1 || got[0] != "/a server" {
		t.Errorf("a path: %q, %v", got, err)
	}
	if got, err := programIn(t.TempDir()); err == nil {
		t.Errorf("a root without a server: %q", got)
	}
	echo, err := executable(t.TempDir(), "echo", []string{"printf", "%s.", "it's", "a b"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := exec.Command(echo, "c").Output(); err != nil || string(got) != "it's.a b.c." {
		t.Errorf("the words are %q, %v", got, err)
	}
}

func TestTables(t *testing.T) {
	rows := newRows()
	first, v2 := rows[0], rows[3]
	first.Instructions[fresh] = 11_000
	v2.Wrong = &wrongs{2, 3}
	v2.Refused = calls{Server: 1.25, Client: 1000}
	text := ""
	for _, part := range tables(rows, parts{true, true, true}) {
		for _, cells := range part.rows {
			if len(cells) != len(part.columns) {
				t.Errorf("%q has not as many cells as %q", cells, part.columns)
			}
		}
		for line := range strings.Lines(part.String()) {
			if len(line) > 100 {
				t.Errorf("%d columns: %s", len(line), line)
			}
		}
		text += part.String()
	}
	for _, want := range []string{
		"| return 1 | - | 11000 | - | - | - |", "| gcra_v2 | server | refused | 1.2 | - | - | - | - |",
		"| gcra_v2 | server | refused | 1000 | - | - |",
		"| gcra_v2 | server | 2 | 3 |", "| gcra_v1 | server | - | - |",
	} {
		if !strings.Contains(unpadded(text), want) {
			t.Errorf("the tables lack %q", want)
		}
	}
	if got := tables(rows, parts{decisions: true}); len(got) != 1 || got[0].columns[2] != "early" {
		t.Errorf("the tables of decisions are %v", got)
	}

	var object bytes.Buffer
	if err := writeJSON(&object, rows, map[string]any{"server": "redis"}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Server string
		Rows   []struct {
			Script       string
			Instructions map[string]float64
			Calls        map[string]struct {
				ServerUs float64 `json:"server_us"`
			}
			Wrong *wrongs
		}
	}
	if err := json.Unmarshal(object.Bytes(), &got); err != nil || got.Server != "redis" || len(got.Rows) != len(rows) ||
		got.Rows[0].Instructions["new key"] != 11_000 || got.Rows[0].Wrong != nil ||
		len(got.Rows[3].Calls) != 1 || got.Rows[3].Calls["refused"].ServerUs != 1.25 || *got.Rows[3].Wrong != *v2.Wrong {
		t.Errorf("JSON: %v\n%s", err, object.String())
	}
}

// unpadded has one space at most between two words.
func unpadded(text string) string { return regexp.MustCompile(` +`).ReplaceAllString(text, " ") }

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
	if got := bounds(boundServer, newRows(), 0, 0); len(got) != 0 {
		t.Errorf("nothing was measured, but there is %v", got)
	}
	if got := bounds(boundServer, newRows(), 10, 90); len(got) != 1 || got[0].got != 9 {
		t.Errorf("got %v, want AllowEach alone", got)
	}
	for _, test := range []struct {
		script      string
		early, late int
		want        float64
	}{
		{"gcra_v1", 5, 0, 5}, {"gcra_v1", 0, 5, 0}, {"gcra_v2", 0, 5, 5},
		{"window_v1", 5, 0, 10}, {"window_v1", 0, 5, 10}, // fixed and sliding
		{"redis_rate v10", 5, 5, 0},
	} {
		rows := newRows()
		for _, r := range rows {
			r.Wrong = &wrongs{}
			if r.name == test.script && r.clock == serverClock {
				r.Wrong = &wrongs{test.early, test.late}
			}
		}
		if got := bounds(boundServer, rows, 0, 0); len(got) != 1 || got[0].got != test.want || got[0].holds() != (test.want == 0) {
			t.Errorf("%d early and %d late decisions of %s: %v, want %v", test.early, test.late, test.script, got, test.want)
		}
	}
}

// Each bound on instructions breaks by one, and those in numbers are for one server.
func TestInstructionBounds(t *testing.T) {
	figures := map[string]map[scenario]float64{
		"gcra_v1":           {fresh: 63_345},
		"gcra_v2":           {fresh: 61_500, busy: 62_500, refused: 50_300},
		"window_v1 fixed":   {fresh: 61_500, busy: 58_500, refused: 49_500},
		"window_v1 sliding": {fresh: 61_500, busy: 58_500, refused: 49_500},
		"redis_rate v10":    {fresh: 61_501, busy: 62_501, refused: 50_301},
	}
	brokenOf := func(server, label string, of scenario, more float64) int {
		rows := newRows()
		for _, r := range rows {
			for scenario, figure := range figures[r.label()] {
				if r.label() == label && scenario == of {
					figure += more
				}
				r.Instructions[scenario] = figure
			}
		}
		n := 0
		for _, b := range bounds(server, rows, 0, 0) {
			if !b.holds() {
				n++
			}
		}
		return n
	}
	if n := brokenOf(boundServer, "", fresh, 0); n != 0 {
		t.Errorf("%d bounds are broken by the figures themselves", n)
	}
	for label := range figures {
		for of := range figures[label] {
			more, want, elsewhere := 1.0, 1, 0
			switch label {
			case "gcra_v2":
				more, want, elsewhere = 2, 2, 1
			case "redis_rate v10":
				more, elsewhere = -2, 1
			}
			if n := brokenOf(boundServer, label, of, more); n != want {
				t.Errorf("%s, %s, %+.0f: %d bounds are broken, want %d", label, of, more, n, want)
			}
			if n := brokenOf("redis 8.0.6", label, of, more); n != elsewhere {
				t.Errorf("%s, %s, %+.0f on another server: %d bounds are broken, want %d", label, of, more, n, elsewhere)
			}
		}
	}
}
