package emulator

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// These tests hold the expiry of each script, by the server's clock, against the state
// that the key holds: it comes 1 to 2 s after the end of the second that the state
// reaches, and is left alone while the state reaches the same.

// reach is what the state of a key reaches, seen from the clock now: mark tells two of
// them apart, the TAT's second or the window's index, and end is the second at whose
// start nothing of the state counts any more.
func (a asset) reach(state string, now time.Time, periodNs int64) (mark, end int64) {
	if a.isWindow() {
		index := now.UnixNano() / periodNs
		index += int64(int32(binary.BigEndian.Uint32([]byte(state)) - uint32(index)))
		return index, ((index+2)*periodNs + 1e9 - 1) / 1e9
	}
	fields := strings.Fields(state) // the TAT, or TAT, credit and last
	last, err := strconv.ParseInt(fields[len(fields)-1], 10, 64)
	if err != nil {
		panic(err)
	}
	return last / 1e9, last/1e9 + 1
}

// A walk of the clock, call by call, over keys whose expiry others shorten or take away.
func TestExpiryByServerClock(t *testing.T) {
	limits := map[string][][]string{
		"burst": {{"300", "60000000000", "60"}, {"1", "1000000000", "5"}, {"1000", "1000000000", "100"},
			{"1", "86400000000000", "3"}, {"7", "3000000001", "11"}},
		"mode": {{"300", "60000000000", "sliding"}, {"5", "1000000000", "fixed"}, {"5", "1500000000", "sliding"},
			{"30", "999999937", "fixed"}, {"30", "86400000000000", "sliding"}, {"3", "1000000", "fixed"}},
	}
	for _, a := range assets {
		t.Run(a.name, func(t *testing.T) {
			kept, set := 0, 0
			for i, limit := range limits[a.slots[2]] {
				k, s := walkExpiry(t, a, limit, rand.New(rand.NewPCG(3, uint64(i))))
				kept, set = kept+k, set+s
			}
			t.Logf("%d calls left the expiry, %d set it", kept, set)
			if kept < 500 || set < 500 {
				t.Error("too few of one kind")
			}
		})
	}
}

// walkExpiry makes calls of one limit and returns how many left the expiry and set it.
func walkExpiry(t *testing.T, a asset, limit []string, rng *rand.Rand) (kept, set int) {
	periodNs, err := strconv.ParseInt(limit[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	r := New()
	now := time.UnixMicro(1_780_000_000_000_000 + rng.Int64N(1e9))
	at := func(when time.Time, command ...any) any {
		r.SetTime(when)
		return do(r, command...).Val()
	}
	theirs := false // whether the expiry is not the script's
	for range 2000 {
		switch rng.IntN(8) {
		case 0, 1, 2:
			now = now.Add(time.Duration(rng.Int64N(2_000)) * time.Microsecond)
		case 3:
			now = now.Add(time.Duration(rng.Int64N(1_000_000)) * time.Microsecond)
		case 4:
			now = now.Add(time.Duration(rng.Int64N(periodNs/1000*2)) * time.Microsecond)
		case 5:
			now = now.Add(-time.Duration(rng.Int64N(2_000_000)) * time.Microsecond)
		}
		before := at(now, "GET", "k")
		if before != nil {
			switch rng.IntN(8) {
			case 0:
				theirs = true
				at(now, "PERSIST", "k")
			case 1:
				theirs = true
				at(now, "PEXPIRE", "k", 1+rng.Int64N(3000))
			case 2: // as limits_v1 gives units back: last stays where the TAT was
				if tat, err := strconv.ParseInt(before.(string), 10, 64); err == nil && a.name == "gcra_v2" {
					before = fmt.Sprintf("%d 5 %d", tat-rng.Int64N(1e9), tat)
					at(now, "SET", "k", before, "KEEPTTL")
				}
			}
		}
		ttlBefore := at(now, "PTTL", "k")
		cost := []int64{0, 1, 1, 2, 3}[rng.IntN(5)]
		reply, err := r.Eval(t.Context(), a.script, []string{"k"}, limit[0], limit[1], limit[2], cost).Int64Slice()
		if err != nil {
			t.Fatalf("%s %q, key %q: %v", a.name, limit, before, err)
		}
		ttl, after := at(now, "PTTL", "k"), at(now, "GET", "k")
		asked := fmt.Sprintf("%s %q, cost %d, clock %d us, key %q with PTTL %d, which then holds %q with PTTL %d",
			a.name, limit, cost, now.UnixMicro(), before, ttlBefore, after, ttl)
		if reply[0] != 1 || cost == 0 {
			if ttl != ttlBefore {
				t.Fatalf("%s: a call that writes nothing moved the expiry", asked)
			}
			continue
		}
		mark, end := a.reach(after.(string), now, periodNs)
		stays := false
		if before != nil {
			markBefore, _ := a.reach(before.(string), now, periodNs)
			stays = markBefore == mark
		}
		if stays {
			kept++
			if ttl != ttlBefore {
				t.Fatalf("%s: it reaches the same, and the expiry moved", asked)
			}
		} else {
			set++
			theirs = false
		}
		if theirs {
			continue
		}
		expiresMs := now.UnixMilli() + ttl.(int64)
		if ttl == int64(-1) || expiresMs < (end+1)*1000 || expiresMs >= (end+2)*1000 {
			t.Fatalf("%s: it expires %d ms after second %d", asked, expiresMs-end*1000, end)
		}
		if at(time.Unix(end+1, 0), "EXISTS", "k") != int64(1) {
			t.Fatalf("%s: it is gone 1 s after second %d", asked, end)
		}
		if rng.IntN(20) == 0 {
			now = time.Unix(end+2, 0)
			if at(now, "EXISTS", "k") != int64(0) {
				t.Fatalf("%s: it is there 2 s after second %d", asked, end)
			}
		}
	}
	return kept, set
}

// What a call makes of an expiry that somebody else shortened or took away.
func TestExpiryOfUsedKeys(t *testing.T) {
	const week = 1 << 52 // ns, a window that no test sees the end of
	state := func(format string, ahead ...float64) func(nowS int64) string {
		return func(nowS int64) string {
			args := make([]any, len(ahead))
			for i, s := range ahead {
				args[i] = nowS*1e9 + int64(s*1e9)
			}
			return fmt.Sprintf(format, args...)
		}
	}
	window := func(ahead int64) func(nowS int64) string {
		return func(nowS int64) string { return counts(uint32(nowS*1e9/week+ahead), 1, 2, week) }
	}
	type used struct {
		assets []asset
		name   string
		state  func(nowS int64) string
		cost   int64 // ms for gcra
		keeps  bool
	}
	gcra, gcraV2, windows := assets[:2], assets[1:2], assets[2:]
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for _, c := range []used{
			{gcra, "the TAT's second stays", state("%d", 100.5), 1, true},
			{gcra, "the TAT's second stays, to its end", state("%d", 100.5), 499, true},
			{gcra, "the TAT's second changes", state("%d", 100.5), 600, false},
			{gcra, "the TAT was over", state("%d", -100.5), 600, false},
			{gcraV2, "last is further", state("%d 7 %d", 100.5, 150.5), 600, true},
			{gcraV2, "the TAT passes last in its second", state("%d 7 %d", 100.5, 100.6), 400, true},
			{gcraV2, "the TAT passes last", state("%d 7 %d", 100.5, 100.6), 600, false},
			{gcraV2, "last was over", state("%d 7 %d", -150.5, -100.5), 600, false},
			{windows, "the index stays", window(0), 1, true},
			{windows, "the window is the next", window(1), 1, true},
			{windows, "the index changes", window(-1), 1, false},
			{windows, "the window was over", window(-2), 1, false},
		} {
			for _, a := range c.assets {
				for _, ttlMs := range []int64{0, 60_000} {
					second := func() int64 {
						nowS, err := strconv.ParseInt(s.Eval(t.Context(), `return redis.call('TIME')[1]`, nil).Val().(string), 10, 64)
						if err != nil {
							t.Fatal(err)
						}
						return nowS
					}
					nowS := second()
					do(s, "SET", "k", c.state(nowS))
					if ttlMs > 0 {
						do(s, "PEXPIRE", "k", ttlMs)
					}
					limit, periodNs := []any{"1000", "1000000000", "200000"}, int64(1e9)
					if a.isWindow() {
						limit, periodNs = []any{"1000", strconv.Itoa(week), "sliding"}, week
					}
					reply, err := s.Eval(t.Context(), a.script, []string{"k"}, append(limit, c.cost)...).Int64Slice()
					if err != nil || reply[0] != 1 {
						t.Fatalf("%s, %s: %v, %v", a.name, c.name, reply, err)
					}
					got := do(s, "PTTL", "k").Val().(int64)
					passedS := second() - nowS + 1 // at most, since the clock was first read
					low, high := ttlMs, ttlMs
					if ttlMs == 0 {
						low, high = -1, -1
					}
					if !c.keeps {
						_, end := a.reach(do(s, "GET", "k").Val().(string), time.Unix(nowS, 0), periodNs)
						low, high = (end-nowS+1-passedS)*1000, (end-nowS+2)*1000
					} else if ttlMs > 0 {
						low -= passedS * 1000
					}
					if got < low || got > high {
						t.Errorf("%s, %s, PTTL %d before: %d after, want %d to %d", a.name, c.name, ttlMs, got, low, high)
					}
				}
			}
		}
	})
}

// A key of a server lives until then: each is watched from its call to its end.
func TestExpiryWatchedOnServer(t *testing.T) {
	client := serverClient(t)
	const slackUs = 500_000 // a server may read its clock for EX before TIME
	type watched struct {
		asset
		end            int64
		seenUs, goneUs int64
	}
	var keys []*watched
	for _, a := range assets {
		limit := []any{"1", "1000000000", "5", "1"}
		if a.isWindow() {
			limit[2] = "fixed"
		}
		var now time.Time
		for took := time.Duration(slackUs * 1000); took >= slackUs*1000; { // until no more went by within the call
			pipe := client.Pipeline()
			pipe.Del(t.Context(), a.name)
			began := pipe.Time(t.Context())
			pipe.Eval(t.Context(), a.script, []string{a.name}, limit...)
			ended := pipe.Time(t.Context())
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			now = ended.Val()
			took = now.Sub(began.Val())
		}
		_, end := a.reach(client.Get(t.Context(), a.name).Val(), now, 1e9)
		keys = append(keys, &watched{asset: a, end: end})
	}
	for left := len(keys); left > 0; time.Sleep(5 * time.Millisecond) {
		for _, k := range keys {
			if k.goneUs > 0 {
				continue
			}
			pipe := client.Pipeline()
			before, exists, after := pipe.Time(t.Context()), pipe.Exists(t.Context(), k.name), pipe.Time(t.Context())
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
			if exists.Val() == 1 {
				k.seenUs = before.Val().UnixMicro()
			} else {
				k.goneUs = after.Val().UnixMicro()
				left--
			}
		}
	}
	for _, k := range keys {
		t.Logf("%s: there until %.3f s after second %d, gone at %.3f s", k.name, float64(k.seenUs-k.end*1e6)/1e6, k.end, float64(k.goneUs-k.end*1e6)/1e6)
		if k.goneUs < (k.end+1)*1e6-slackUs || k.seenUs > (k.end+2)*1e6+slackUs {
			t.Errorf("%s: want 1 to 2 s after second %d", k.name, k.end)
		}
	}
}
