package precision

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/lua"
)

// Small worlds of settlements: every sequence of a few asks, settlements and dropped keys,
// on one key of limits_v1, beside the exact limiter fed with what was really used.

// world is a key after some events, in ns: its state, credit 0 and last 0 where nothing was
// given back, and the asks that it has had. It holds all that its future depends on.
type world struct {
	now, tat, credit, last int8
	n, steps               int8 // how many asks there were, and steps back of the clock
	// old is how many asks there were when the state was lost, and lost what they had used
	// then, and what was settled as more since, in ns.
	old, lost int8
	asks      [7]worldAsk
}

// worldAsk is an ask: its instant, what is settled of it so far in ns, its receipt.
type worldAsk struct{ at, used, s, r, interval int8 }

// exact is T, by its definition in settle.go.
func (w *world) exact() int8 {
	t := int8(0)
	for _, a := range w.asks[:w.n] {
		t = max(t, a.at) + a.used
	}
	return t
}

// early is by how many ns the kept TAT is below T, both read as max(., now).
func (w *world) early() int8 { return max(w.exact(), w.now) - max(w.tat, w.now) }

func (w *world) String() string {
	return fmt.Sprintf("at %d the key holds %q, T is %d, of the asks %+v", w.now, w.text(), w.exact(), w.asks[:w.n])
}

// text is what the key holds, "" when it is gone.
func (w *world) text() string {
	switch {
	case w.credit > 0:
		return fmt.Sprint(w.tat, w.credit, w.last)
	case w.tat > 0:
		return fmt.Sprint(w.tat)
	}
	return ""
}

// end is the instant at and after which a server may drop the key.
func (w *world) end() int8 {
	if w.credit > 0 {
		return w.last
	}
	return w.tat
}

// spend is State.spend.
func (w *world) spend(tat int8) {
	w.tat = tat
	if w.credit > 0 {
		w.last = max(w.last, tat)
	}
}

// event is an ask of units when ask is -1, else a settlement of it: less used for units
// below 0. The key was dropped before it, or not.
type event struct {
	at, ask, units, interval int8
	dropped                  bool
}

// worlds are those that come of these.
type worlds struct {
	intervals []int8
	overUse   int8 // most units at once that were used and not charged
	events    int
	// step is by how much the clock may step back, up to steps times.
	step, steps int8
	lives       bool // the key is never dropped
	loses       bool // the state may be lost at any time, once
	fault       string
}

const (
	// An ask that a burst admits is admitted by a larger one with the same effect, so this
	// stands for all bursts up to it, changed on the key at will. And an ask by gcra_v2 is
	// one that is not settled any more.
	worldBurst   = 4
	worldHorizon = 8 // times are below it
)

// The faults in the rule, by name.
const (
	usualRefund = "TAT = max(TAT - r x interval, now)"
	noWorth     = "c = r x interval, whatever it is worth"
	noSince     = "worth = S - now"
	noBefore    = "worth though credit < R"
	noAhead     = "worth above TAT - now"
	endByTAT    = "expiry by the TAT"
)

// giveBack settles an ask with ns less.
func (e *worlds) giveBack(w *world, a *worldAsk, ns int8) {
	a.used -= ns
	ahead := max(w.tat-w.now, 0)
	paid, since := max(a.s-w.now, 0), w.credit-a.r
	worth := int8(worthNs(int64(paid), int64(since), int64(ahead)))
	switch {
	case e.fault == usualRefund:
		w.tat = w.now + max(ahead-ns, 0)
		return
	case e.fault == noWorth:
		worth = ahead
	case e.fault == noSince:
		worth = int8(worthNs(int64(paid), 0, int64(ahead)))
	case e.fault == noBefore && since < 0 && paid-since <= ahead:
		worth = paid - since
	case e.fault == noAhead && since >= 0:
		worth = paid - since
	}
	c := min(ns, worth)
	if c <= 0 {
		return
	}
	if w.credit == 0 {
		w.last = w.tat
	}
	w.tat -= c
	w.credit += c
}

// next calls visit with each event that may follow, and the world after it. The first is an
// ask at 0.
func (e *worlds) next(w *world, visit func(event, *world)) {
	if w.n == 0 {
		e.act(w, 0, false, visit)
		return
	}
	// at is an event at t, after a clock that stood as high as this
	at := func(t, high, steps int8) {
		v := *w
		v.now, v.steps = t, steps
		e.act(&v, t, false, visit)
		end := v.end()
		if e.fault == endByTAT {
			end = v.tat
		}
		ended, loses := end <= high, e.loses && v.old == 0
		if e.lives || !ended && !loses || v.credit == 0 && v.tat <= t { // the last is as good as dropped
			return
		}
		if !ended {
			v.old = v.n
			for _, a := range v.asks[:v.n] {
				v.lost += a.used
			}
		}
		v.tat, v.credit, v.last = 0, 0, 0
		e.act(&v, t, true, visit)
	}
	for t := w.now; t < worldHorizon; t++ {
		at(t, t, w.steps)
	}
	if w.steps < e.steps {
		for high := max(w.now, e.step); high < worldHorizon; high++ {
			at(high-e.step, high, w.steps+1)
		}
	}
}

// act calls visit with each event at a time.
func (e *worlds) act(w *world, t int8, dropped bool, visit func(event, *world)) {
	ahead := max(w.tat-t, 0)
	for _, interval := range e.intervals {
		for cost := int8(1); ahead+cost*interval <= worldBurst*interval; cost++ {
			v := *w
			v.spend(t + ahead + cost*interval)
			v.asks[v.n] = worldAsk{t, cost * interval, v.tat, v.credit, interval}
			v.n++
			visit(event{t, -1, cost, interval, dropped}, &v)
		}
	}
	for i := range w.n {
		interval := w.asks[i].interval
		for units := int8(1); units*interval <= w.asks[i].used; units++ {
			v := *w
			e.giveBack(&v, &v.asks[i], units*interval)
			visit(event{t, i, -units, interval, dropped}, &v)
		}
		for units := int8(1); units <= e.overUse; units++ {
			v := *w
			v.spend(t + ahead + units*interval)
			v.asks[i].used += units * interval
			if i < w.old {
				v.lost += units * interval
			}
			visit(event{t, i, units, interval, dropped}, &v)
		}
	}
}

// every calls try with each world of up to as many events. Worlds that are the same are
// followed once.
func (e *worlds) every(try func(before *world, last event, after *world)) (tried int) {
	level := []world{{}}
	for n := 1; n <= e.events; n++ {
		next := map[world]struct{}{}
		for i := range level {
			e.next(&level[i], func(last event, w *world) {
				tried++
				try(&level[i], last, w)
				if n < e.events {
					next[*w] = struct{}{}
				}
			})
		}
		level = level[:0]
		for w := range next {
			level = append(level, w)
		}
	}
	return tried
}

// earliest is the most by which the TAT is below T, and a world where it is.
func (e *worlds) earliest() (early int8, where world, tried int) {
	tried = e.every(func(_ *world, _ event, w *world) {
		if by := w.early(); by > early {
			early, where = by, *w
		}
	})
	return early, where, tried
}

var moreWorlds = flag.Bool("worlds", false, "small worlds of more events and units, which take minutes")

// What is kept is never below the exact limiter fed with what was really used.
func TestSmallWorldOfSettlements(t *testing.T) {
	slow(t)
	all := []worlds{{intervals: []int8{1, 2, 3}, overUse: 1, events: 4}}
	for interval := int8(1); interval <= 3; interval++ {
		all = append(all, worlds{intervals: []int8{interval}, overUse: 1, events: 6})
	}
	if *moreWorlds {
		all[0].events++
		for i := range all {
			all[i].overUse = 2
		}
	}
	total := 0
	for _, e := range all {
		early, where, tried := e.earliest()
		if total += tried; early > 0 {
			t.Fatalf("intervals %v: %d ns early: %v", e.intervals, early, &where)
		}
		t.Logf("intervals %v, %d events: %d cases", e.intervals, e.events, tried)
	}
	if !*moreWorlds {
		checkObserved(t, "limits_v1, TAT below the exact one by what was used, every small world", "0", "0 in "+grouped(total)+" cases")
	}
}

// The usual refund, and each part of the rule left out, is below it.
func TestSmallWorldOfWrongSettlements(t *testing.T) {
	slow(t)
	for _, fault := range []string{usualRefund, noWorth, noSince, noBefore, endByTAT} {
		for interval := int8(1); interval <= 3; interval++ {
			e := worlds{intervals: []int8{interval}, overUse: 1, events: 5, fault: fault}
			early, where, _ := e.earliest()
			if early == 0 {
				t.Errorf("%s, interval %d: nothing is early", fault, interval)
			}
			t.Logf("%s, interval %d: %d units too many: %v", fault, interval, early/interval, &where)
			if fault == usualRefund && interval == 1 {
				checkObserved(t, "the usual refund in the small worlds of five events", "not bounded",
					fmt.Sprintf("%d units too many at a burst of %d", early/interval, worldBurst))
			}
		}
	}
}

// After the state was lost what is kept is below T by at most what was charged until then
// and not given back, and over-used by the receipts of before; and a give-back never brings
// the TAT behind the clock.
func TestSmallWorldOfLostStates(t *testing.T) {
	slow(t)
	for _, fault := range []string{"", noAhead} {
		behind, least := 0, int8(0)
		e := worlds{intervals: []int8{2}, overUse: 1, events: 5, loses: true, fault: fault}
		tried := e.every(func(before *world, last event, w *world) {
			if over := w.early() - w.lost; over > 0 {
				t.Fatalf("%q: %d ns early, %d were lost: %v", fault, w.early(), w.lost, w)
			} else if w.lost > 0 {
				least = max(least, w.early())
			}
			if last.units < 0 && w.credit > 0 && w.tat < w.now && w.tat < before.tat {
				behind++
			}
		})
		t.Logf("%q: %d cases, %d ns early at most, the TAT behind the clock %d times", fault, tried, least, behind)
		if least == 0 || (behind > 0) != (fault == noAhead) {
			t.Errorf("%q: the TAT behind the clock %d times, %d ns early at most", fault, behind, least)
		}
	}
}

// Clocks that step back by s: the TAT is below T by at most s while the key lives, and 2 s
// when it expired meanwhile, in worlds of five events; and two steps add up.
func TestSmallWorldOfSteps(t *testing.T) {
	slow(t)
	for step := int8(1); step <= 2; step++ {
		for _, c := range []struct {
			lives         bool
			steps, events int8
			times         int8 // s
		}{{true, 1, 5, 1}, {false, 1, 5, 2}, {true, 2, 4, 2}} {
			e := worlds{intervals: []int8{1}, overUse: 1, events: int(c.events), step: step, steps: c.steps, lives: c.lives}
			early, where, tried := e.earliest()
			if early != c.times*step {
				t.Errorf("steps of %d, %+v: %d ns early, not %d", step, c, early, c.times*step)
			}
			t.Logf("steps of %d, %+v: %d cases, %d ns early: %v", step, c, tried, early, &where)
		}
	}
}

// The worlds are those of settle.go and of the script: random ones, played on the script in
// the emulator, asks by any burst that admits them, and by gcra_v2.
func TestSmallWorldIsTheScript(t *testing.T) {
	ctx, redis := context.Background(), emulator.New()
	sha := map[string]string{}
	for _, script := range []string{"gcra_v2", "limits_v1"} {
		var err error
		if sha[script], err = redis.ScriptLoad(ctx, lua.Assets[script]).Result(); err != nil {
			t.Fatal(err)
		}
	}
	rng := rand.New(rand.NewPCG(24, 24))
	var byV2, dropped, given int
	for range 5_000 {
		redis.Do(ctx, "DEL", "k")
		e := worlds{intervals: []int8{1, 2, 3}, overUse: 2, step: 1 + int8(rng.IntN(3)), steps: int8(rng.IntN(2)), loses: rng.IntN(4) == 0}
		var (
			w        world
			state    State
			used     Used
			receipts []Receipt
			path     []event
		)
		for range 6 {
			type step struct {
				event
				after world
			}
			var steps []step
			e.next(&w, func(last event, after *world) { steps = append(steps, step{last, *after}) })
			s := steps[rng.IntN(len(steps))]
			w, path = s.after, append(path, s.event)
			if s.dropped {
				dropped++
				state = State{}
				redis.Do(ctx, "DEL", "k")
			}
			g := GCRA{int64(s.interval), worldBurst}
			call := []any{s.at, "gcra", 1, s.interval, worldBurst, s.units, ""}
			var receipt Receipt
			if s.ask >= 0 {
				receipt = receipts[s.ask]
				call[6] = receipt.Text()
				var ns int64
				if state, ns = g.Settle(state, receipt, int64(s.units), int64(s.at)); s.units < 0 {
					if ns < 0 {
						given++
					}
					ns = int64(s.units * s.interval)
				}
				used.Settle(int(s.ask), ns)
			} else {
				ahead := aheadNs(state.Value, int64(s.at))
				g.Burst = ceilDiv(ahead+int64(s.units*s.interval), g.Interval)
				g.Burst += rng.Int64N(worldBurst - g.Burst + 1)
				call[4] = g.Burst
				_, state, receipt = g.Ask(state, int64(s.units), int64(s.at))
				receipts = append(receipts, receipt)
				used.Ask(int64(s.at), int64(s.units*s.interval))
			}
			var err error
			if s.ask < 0 && rng.IntN(3) == 0 {
				byV2++
				err = redis.EvalSha(ctx, sha["gcra_v2"], []string{"k"}, 1, s.interval, g.Burst, s.units, s.at).Err()
			} else {
				var reply []any
				reply, err = redis.EvalSha(ctx, sha["limits_v1"], []string{"k"}, call...).Slice()
				if err == nil && reply[2].([]any)[4] != receipt.Text() {
					t.Fatalf("%+v: %v, want the receipt %q", path, reply, receipt.Text())
				}
			}
			text, _ := redis.Do(ctx, "GET", "k").Text()
			held := ""
			if state.Exists {
				held = state.Text(GCRAV2)
			}
			if err != nil || text != w.text() || held != w.text() || used.TAT() != uint64(w.exact()) {
				t.Fatalf("%+v: the script has %q (%v), settle.go %q and T %d, the world %q and T %d",
					path, text, err, held, used.TAT(), w.text(), w.exact())
			}
		}
	}
	t.Logf("%d asks by gcra_v2, %d keys dropped, %d times something given back", byV2, dropped, given)
	if byV2 == 0 || dropped == 0 || given == 0 {
		t.Error("something was not met")
	}
}
