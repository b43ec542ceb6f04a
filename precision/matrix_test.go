package precision

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision/servers/containers"
)

// Each image of the matrix answers what the native port and the emulator answer, to
// the last digit and letter.
func TestMatrix(t *testing.T) {
	for _, image := range containers.ImagesForTest(t) {
		t.Run(image, func(t *testing.T) {
			real := imageDriver(t, image)
			t.Run("sums", func(t *testing.T) { testSums(t, real) })
			t.Run("traces", func(t *testing.T) { testTraces(t, real) })
			if isFrom7(real) {
				t.Run("read-only", func(t *testing.T) { testReadOnly(t, real) })
			}
			t.Run("errors", func(t *testing.T) { testErrors(t, real) })
			t.Run("server clock", func(t *testing.T) { testServerClock(t, real) })
			t.Run("server's own clock", func(t *testing.T) { testLive(t, real, 4*time.Second) })
			t.Run("replica", func(t *testing.T) { testReplica(t, real) })
		})
	}
}

// imageDriver returns a driver of a container of the test's own.
func imageDriver(t *testing.T, image string) *Real {
	server := containers.ForTest(t, image)
	t.Log(server.Name)
	real, err := NewReal(t.Context(), server, "test:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	return real
}

// The server names each script as lua.sum does.
func testSums(t *testing.T, real *Real) {
	for _, s := range Scripts {
		line := fmt.Sprintf("\n%s %s ", s.Script, real.shas[s.Script])
		if !strings.Contains(lua.Sum, line) {
			t.Errorf("SCRIPT LOAD answers%sand lua.sum has no such line", line)
		}
	}
}

// Every trace is played on a key that stays, and on one that is moved by DUMP and
// RESTORE; the judge compares both with the native port, and with the oracle.
func testTraces(t *testing.T, real *Real) {
	const traces = 10 // each style of callers' clocks
	for _, s := range Scripts {
		for index := range traces {
			trace := NewTrial(s.Script, 1, callersIndex(s.Script, index))
			for _, driver := range []Driver{real, Restored{real}} {
				key := fmt.Sprintf("%T %s %d", driver, s.Script, index)
				answers, err := trace.Play(driver, key)
				if err != nil {
					t.Fatalf("%s: %v", key, err)
				}
				if tally := answers.Judge(); !tally.Sound() {
					t.Errorf("%s: %s", key, tally.Broken)
				}
			}
		}
	}
}

// matrixLimit serves every script: 10 a second, a burst of 10.
func matrixLimit(cost, nowNs int64) Call {
	return Call{Amount: 10, PeriodNs: second, Burst: 10, Sliding: true, Cost: cost, NowNs: nowNs}
}

// A call of cost 0 answers the same through EVALSHA_RO; another is refused there and
// writes nothing.
func testReadOnly(t *testing.T, real *Real) {
	ctx := t.Context()
	asset, err := NewAsset()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range singles {
		key := real.prefix + "read-only " + string(s.Script)
		for used := range int64(11) {
			nowNs := epoch + used*ms + 123
			args := matrixLimit(0, nowNs).appendArgs(nil, s.Script)
			sha := real.shas[s.Script]
			got := show(real.client.EvalShaRO(ctx, sha, []string{key}, args...))
			want := show(asset.redis.EvalShaRO(ctx, sha, []string{key}, args...))
			if same := show(real.client.EvalSha(ctx, sha, []string{key}, args...)); got != want || got != same {
				t.Errorf("%s after %d: EVALSHA_RO %s, EVALSHA %s, emulator %s", s.Script, used, got, same, want)
			}

			args = matrixLimit(1, nowNs).appendArgs(nil, s.Script)
			before := show(real.client.Dump(ctx, key))
			err := real.client.EvalShaRO(ctx, sha, []string{key}, args...).Err()
			if used < 10 && (err == nil || !strings.HasPrefix(err.Error(), "ERR Write commands are not allowed from read-only scripts")) {
				t.Errorf("%s with cost 1 through EVALSHA_RO: %v", s.Script, err)
			}
			if after := show(real.client.Dump(ctx, key)); after != before {
				t.Errorf("%s wrote through EVALSHA_RO: %q became %q", s.Script, before, after)
			}
			for _, r := range []redis.Scripter{real.client, asset.redis} {
				if err := r.EvalSha(ctx, sha, []string{key}, args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// isFrom7 tells whether a server has what Redis 7.0 brought: EVALSHA_RO, and in
// scripts the errors of commands as a client sees them.
func isFrom7(real *Real) bool {
	major := 0
	n, _ := fmt.Sscanf(real.Name(), "redis %d.", &major)
	return n == 0 || major >= 7 // valkey began after it
}

// clockSlot is where now_ns stands in ARGV.
const clockSlot = 4

// A hostile argument or state gets the emulator's answer to the letter, and a call
// that is not admitted leaves the key as it was. The key starts without an expiry, so
// that one which is set or moved shows, whatever the time.
func testErrors(t *testing.T, real *Real) {
	asset, err := NewAsset()
	if err != nil {
		t.Fatal(err)
	}
	key := real.prefix + "hostile"
	errorReplies := 0
	try := func(script Script, prepare []any, args []any) {
		t.Helper()
		var seen []string
		for _, r := range []scripter{real.client, asset.redis} {
			ctx := t.Context()
			for _, command := range [][]any{{"DEL", key}, prepare} {
				if err := r.Do(ctx, command...).Err(); err != nil {
					t.Fatalf("%q: %v", command, err)
				}
			}
			before := keyText(r, key)
			cmd := r.EvalSha(ctx, real.shas[script], []string{key}, args...)
			after := keyText(r, key)
			if reply, err := cmd.Int64Slice(); after != before && (err != nil || reply[0] != 1) {
				t.Errorf("%s %.60q on %.60q: %s, and the key became %.60q", script, args, before, show(cmd), after)
			}
			if cmd.Err() != nil {
				errorReplies++
			}
			seen = append(seen, show(cmd)+" "+after)
		}
		if seen[0] != seen[1] {
			t.Errorf("%s %.60q after %.60q:\n  server %.300s\nemulator %.300s", script, args, prepare, seen[0], seen[1])
		}
	}
	for _, s := range singles {
		good := matrixLimit(1, epoch).appendArgs(nil, s.Script)
		absent := []any{"DEL", key}
		used := []any{"SET", key, "1780000080500000000"}
		if s.Script.IsWindow() {
			used[2] = "\x00\x00\x00\x00\x00\x05\x00\x07\x3b\x9a\xca\x00" // of 1 s
		}
		for slot := range good {
			for _, h := range hostile.Arguments {
				if slot == clockSlot && h.Text == "" {
					continue // the server's clock: testServerClock
				}
				args := slices.Clone(good)
				args[slot] = h.Text
				try(s.Script, absent, args)
				try(s.Script, used, args)
			}
			if slot < clockSlot {
				try(s.Script, used, good[:slot])
			}
		}
		try(s.Script, used, append(slices.Clone(good), "1"))
		for _, cost := range []int64{0, 1, 11} {
			args := matrixLimit(cost, epoch).appendArgs(nil, s.Script)
			for _, h := range hostile.States {
				try(s.Script, []any{"SET", key, h.Text}, args)
			}
			try(s.Script, []any{"RPUSH", key, "a"}, args)
		}
	}
	if errorReplies == 0 {
		t.Error("no error reply among them")
	}
}

type scripter interface {
	redis.Scripter
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// keyText is the key's type, its text, and whether it has an expiry.
func keyText(r scripter, key string) string {
	ctx := context.Background()
	ttl := "expires"
	if left, err := r.Do(ctx, "PTTL", key).Int64(); err != nil || left < 0 {
		ttl = fmt.Sprint(left, err)
	}
	return show(r.Do(ctx, "TYPE", key)) + " " + show(r.Do(ctx, "GET", key)) + " " + ttl
}

// show is a reply as text.
func show(cmd redis.Cmder) string {
	if err := cmd.Err(); err != nil {
		return "error " + err.Error()
	}
	switch cmd := cmd.(type) {
	case *redis.Cmd:
		return fmt.Sprintf("%q", fmt.Sprint(cmd.Val()))
	case *redis.StringCmd:
		return fmt.Sprintf("%q", cmd.Val())
	}
	return cmd.String()
}

// Without now_ns, or with an empty one, the server's own clock counts: a new key is
// admitted, and its state is of the server's now.
func testServerClock(t *testing.T, real *Real) {
	// Until each has met a TIME whose microseconds have fewer than six digits, the first
	// tenth of a second.
	met := map[string]bool{}
	for round := 0; len(met) < 2*len(singles); round++ {
		for _, s := range singles {
			args := matrixLimit(1, 0).appendArgs(nil, s.Script)
			for i, args := range [][]any{args[:clockSlot], append(args[:clockSlot:clockSlot], "")} {
				name := fmt.Sprintf("clock %s %d", s.Script, i)
				before, after := callByServerClock(t, real, s.Script, fmt.Sprintf("%s%s %d", real.prefix, name, round), args)
				if after.Nanosecond() < int(100*ms) && before.Unix() == after.Unix() {
					met[name] = true
				}
			}
		}
	}
}

// callByServerClock makes the first call of matrixLimit on a key, without now_ns, and
// returns two instants of the server that surround it.
func callByServerClock(t *testing.T, real *Real, script Script, key string, args []any) (before, after time.Time) {
	t.Helper()
	ctx := t.Context()
	// In a transaction, where no server's TIME goes back.
	pipe := real.client.TxPipeline()
	began := pipe.Time(ctx)
	eval := pipe.EvalSha(ctx, real.shas[script], []string{key}, args...)
	get := pipe.Get(ctx, key)
	ended := pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	reply, err := eval.Int64Slice()
	if err != nil || !slices.Equal(reply[:3], []int64{1, 9, 0}) {
		t.Fatalf("%s: %v, %v", script, reply, err)
	}
	// The same call with the clock as a caller's falls between two that surround it.
	before, after = began.Val(), ended.Val()
	state, ok := ParseState(script, get.Val())
	low, high := clockState(script, before.UnixNano()), clockState(script, after.UnixNano())
	if !ok || state.Value < low.Value || state.Value > high.Value || state.PeriodNs != low.PeriodNs {
		t.Errorf("%s: state %q at %v .. %v, want %+v .. %+v", script, get.Val(), before, after, low, high)
	}
	return before, after
}

// clockState is the state that the first call of matrixLimit leaves at nowNs, by the
// oracle.
func clockState(script Script, nowNs int64) State {
	call := matrixLimit(1, nowNs)
	fed := NewFed(script, script.Grid())
	fed.Admit(&call)
	if script.IsWindow() {
		return newCounts(fed.counts, call.PeriodNs)
	}
	return State{Exists: true, Value: uint64(upTo(fed.grid, fed.tat))}
}

// On a replica a look is answered, and a call that would write gets the server's
// READONLY and writes nothing.
func testReplica(t *testing.T, real *Real) {
	ctx := t.Context()
	for _, s := range singles {
		args := matrixLimit(1, epoch).appendArgs(nil, s.Script)
		if err := real.client.EvalSha(ctx, real.shas[s.Script], []string{string(s.Script)}, args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	// The master does not exist: the server keeps its data and is a replica at once.
	if err := real.client.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err(); err != nil {
		t.Fatal(err)
	}
	defer real.client.Do(context.Background(), "REPLICAOF", "NO", "ONE")
	for _, s := range singles {
		key := string(s.Script)
		before := show(real.client.Dump(ctx, key))
		look, err := real.client.EvalSha(ctx, real.shas[s.Script], []string{key}, matrixLimit(0, epoch).appendArgs(nil, s.Script)...).Int64Slice()
		if err != nil || look[0] != 1 || look[1] != 9 {
			t.Errorf("%s with cost 0: %v, %v", s.Script, look, err)
		}
		got := show(real.client.EvalSha(ctx, real.shas[s.Script], []string{key}, matrixLimit(1, epoch).appendArgs(nil, s.Script)...))
		want := "error READONLY You can't write against a read only replica."
		if !isFrom7(real) { // it says where in the script, and ends with a line break
			want = regexp.MustCompile(`^error @user_script: \d+: -`).FindString(got) + strings.TrimPrefix(want, "error ") + "  "
		}
		if got != want {
			t.Errorf("%s with cost 1: %q, want %q", s.Script, got, want)
		}
		if after := show(real.client.Dump(ctx, key)); after != before {
			t.Errorf("%s: the key was %s and is %s", s.Script, before, after)
		}
	}
}
