package generate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/precision"
)

// This file holds what is seen of a call against exact integers, and makes the vector's
// step of it.

// whole reads an argument as the server's tonumber does.
func whole(text string) (int64, bool) {
	for _, a := range hostile.Arguments {
		if a.Text == text && math.Abs(a.Value) < 1<<62 {
			return int64(a.Value), a.Whole
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// truth follows the keys of a test by exact integers.
type truth struct {
	script   precision.Script
	setting  Setting
	serverNs int64 // the server's clock
	keys     []*keyTruth
}

// keyTruth follows one key.
type keyTruth struct {
	script    precision.Script // that reads it
	list      bool
	exists    bool
	state     string // in hex
	expires   bool
	expiresMs int64
	serverNs  int64 // the server's clock
	claims    *precision.Claims
	// earlierNs is how much earlier the claims have all instants of gcra: the exact
	// limiter's are below 2^63, and a TAT of 19 digits may be above it.
	earlierNs int64
}

func newTruth(script precision.Script, setting Setting, keys []Key, serverNs int64) *truth {
	o := &truth{script: script, setting: setting}
	for _, k := range keys {
		o.keys = append(o.keys, newKeyTruth(script, k, serverNs))
	}
	o.set(serverNs)
	return o
}

func newKeyTruth(script precision.Script, k Key, serverNs int64) *keyTruth {
	o := &keyTruth{script: script, list: k.Kind == "list", exists: k.Kind != "none", state: k.Hex,
		claims: precision.NewClaims(script)}
	o.set(serverNs)
	if state, ok := precision.ParseState(script, textOf(o.state)); ok {
		if !script.IsWindow() && state.Value > math.MaxInt64 {
			o.earlierNs = 1 << 62
		}
		o.claims.Hold(o.earlier(state), -1)
	}
	return o
}

// clone is the truth as it stands, but for the claims.
func (o *truth) clone() *truth {
	copied := *o
	copied.keys = nil
	for _, k := range o.keys {
		key := *k
		copied.keys = append(copied.keys, &key)
	}
	return &copied
}

// earlier is a state as the claims have it.
func (o *keyTruth) earlier(s precision.State) precision.State {
	s.Value -= uint64(o.earlierNs)
	return s
}

// set moves the server's clock.
func (o *truth) set(serverNs int64) {
	o.serverNs = serverNs
	for _, k := range o.keys {
		k.set(serverNs)
	}
}

func (o *keyTruth) set(serverNs int64) {
	o.serverNs = serverNs
	o.claims.Set(serverNs)
}

// expire gives the keys expiries, or takes them away.
func (o *truth) expire(list []string) error {
	for i, ms := range list {
		if err := o.keys[i].expire(ms); err != nil {
			return err
		}
	}
	return nil
}

func (o *keyTruth) expire(ms string) error {
	ttlMs := int64(-1)
	switch ms {
	case "":
		return nil
	case noExpiry:
	default:
		var err error
		if ttlMs, err = strconv.ParseInt(ms, 10, 64); err != nil {
			return err
		}
	}
	o.claims.Expire(ttlMs)
	o.expireIn(ttlMs)
	return nil
}

func (o *keyTruth) expireIn(ttlMs int64) {
	o.expires, o.expiresMs = ttlMs >= 0, o.serverNs/ms+ttlMs
}

// ttlMs is what PTTL says.
func (o *keyTruth) ttlMs() int64 {
	switch {
	case !o.exists:
		return -2
	case !o.expires:
		return -1
	}
	return o.expiresMs - o.serverNs/ms
}

// badState tells whether the key holds what the script refuses of this call.
func (o *keyTruth) badState(c *precision.Call) bool {
	state, ok := precision.ParseState(o.script, textOf(o.state))
	return !ok || !o.script.Reads(state, c)
}

// byServer tells whether a call leaves its clock to the server.
func byServer(script precision.Script, argv []string) bool {
	at := 4
	if script == precision.LimitsV1 {
		at = 0
	}
	return at >= len(argv) || argv[at] == ""
}

// read reads a call's arguments; ok is false for those that the script refuses.
func (o *truth) read(argv []string) (c precision.Call, ok bool) {
	if o.setting.Keys != eachKey || len(argv) < 4 || len(argv) > 5 {
		return c, false
	}
	var amountOK, periodOK, thirdOK, costOK bool
	c.Amount, amountOK = whole(argv[0])
	c.PeriodNs, periodOK = whole(argv[1])
	c.Cost, costOK = whole(argv[3])
	if o.script.IsWindow() {
		c.Sliding = argv[2] == sliding
		thirdOK = c.Sliding || argv[2] == fixed
	} else {
		c.Burst, thirdOK = whole(argv[2])
	}
	if !amountOK || !periodOK || !thirdOK || !costOK || c.Check(o.script) != nil {
		return c, false
	}
	now, nowOK := uint64(o.serverNs), true
	if c.ByServer = byServer(o.script, argv); !c.ByServer {
		n, err := strconv.ParseUint(argv[4], 10, 64)
		now, nowOK = n, err == nil && hostile.IsClock(argv[4])
	}
	if !nowOK || now > math.MaxInt64 {
		return c, false
	}
	c.NowNs, c.ServerNs = int64(now), o.serverNs
	return c, precision.NewFed(o.script, o.script.Grid()).Takes(&c)
}

// step holds one call's answer against what may be answered, and returns the vector's
// step. An error is an answer beyond what the script claims. still tells that the port's
// clock stands where set put it: then PTTL is known to the ms.
func (o *truth) step(argv []string, a answer, still bool) (Step, error) {
	if o.script == precision.LimitsV1 {
		return o.limits(argv, a, still)
	}
	s, k := o.unanswered(""), o.keys[0]
	c, ok := o.read(argv)
	switch {
	case !ok:
		s.Error = fmt.Sprintf("BADARG %s: ", o.script)
	case o.setting.Refuses == "TIME" && c.ByServer:
		s.Error = "REFUSED TIME"
	case k.list:
		s.Error = "WRONGTYPE"
	case k.exists && k.badState(&c):
		s.Error = fmt.Sprintf("BADSTATE %s: ", o.script)
	}
	if !s.errorIs(a.refused) {
		return s, fmt.Errorf("error %q, want %q", a.refused, s.Error)
	}
	if s.Error != "WRONGTYPE" { // the server's own text
		s.Error = a.refused
	}
	leastMs := int64(0)
	if s.Error == "" {
		got, exact, err := k.call(&c, a.reply, a.keys[0])
		if err != nil {
			return s, err
		}
		s.Reply, s.Exact = ranges(got), ranges(exact)
		if got.Status == 1 && c.Cost > 0 {
			leastMs = k.written(a.keys[0].state)
		}
	}
	s.State[0], s.TTLMs[0] = k.state, k.ttlRange(leastMs)
	return s, k.holds(a.keys[0], s.TTLMs[0], still)
}

// written takes over a state that the claims found right, and returns the least PTTL that a
// runner may see of it.
func (o *keyTruth) written(state string) (leastMs int64) {
	o.exists, o.state = true, state
	o.expireIn(o.claims.TTLMs())
	return max(o.ttlMs()-slackNs/ms, 0)
}

// holds checks that a key is as it should be.
func (o *keyTruth) holds(key seen, ttlMs Range, still bool) error {
	if !o.list && key.state != o.state {
		return fmt.Errorf("state %s was %s: a call that is not admitted wrote", key.state, o.state)
	}
	if !ttlMs.has(key.ttlMs) || still && key.ttlMs != o.ttlMs() {
		return fmt.Errorf("ttl %d, want %s", key.ttlMs, ttlMs)
	}
	return nil
}

// unanswered is a step that has no reply and leaves the keys as they are.
func (o *truth) unanswered(refused string) Step {
	s := Step{Error: refused, Reply: Reply{}, Exact: Reply{}}
	for _, k := range o.keys {
		s.State, s.TTLMs = append(s.State, k.state), append(s.TTLMs, k.ttlRange(0))
	}
	return s
}

// ttlRange is what PTTL may say, of an expiry at least leastMs.
func (o *keyTruth) ttlRange(leastMs int64) Range {
	ttlMs := o.ttlMs()
	if ttlMs < 0 {
		return newRange(ttlMs, ttlMs)
	}
	return newRange(leastMs, ttlMs)
}

// call holds a reply against the claims, and returns it and the exact one. The claims have
// PTTL as by a clock that runs: step knows it to the ms by one that stands.
func (o *keyTruth) call(c *precision.Call, reply []string, key seen) (got, exact precision.Verdict, err error) {
	if got, err = verdict(reply); err != nil {
		return got, exact, err
	}
	outcome := precision.Outcome{Verdict: got, TTLMs: max(key.ttlMs, -1)}
	if key.ttlMs >= 0 {
		outcome.TTLSlackMs = 1000 // from the call until PTTL is asked
	}
	if key.state == "" {
		outcome.TTLMs = 0
	} else {
		outcome.State, _ = precision.ParseState(o.script, textOf(key.state))
		if text := outcome.State.Text(o.script); text != textOf(key.state) {
			return got, exact, fmt.Errorf("state %q is written as %q", textOf(key.state), text)
		}
		outcome.State = o.earlier(outcome.State)
	}
	earlier := *c
	earlier.NowNs -= o.earlierNs
	exact = o.claims.Exact(&earlier)
	if o.claims.Call(&earlier, &outcome); !o.claims.Sound() {
		return got, exact, fmt.Errorf("%s: %w", o.claims.Broken, errBeyond)
	}
	return got, exact, nil
}

var errBeyond = errors.New("beyond what the script claims")

// verdict reads a reply.
func verdict(reply []string) (v precision.Verdict, err error) {
	fields := []*int64{&v.Status, &v.Remaining, &v.RetryAfterNs, &v.ResetAfterNs}
	if len(reply) != len(fields) {
		return v, fmt.Errorf("reply %q is not four numbers", reply)
	}
	for i, field := range fields {
		if *field, err = strconv.ParseInt(reply[i], 10, 64); err != nil {
			return v, err
		}
	}
	return v, nil
}

func ranges(v precision.Verdict) Reply {
	list := Reply{}
	for _, n := range []int64{v.Status, v.Remaining, v.RetryAfterNs, v.ResetAfterNs} {
		list = append(list, newRange(n, n))
	}
	return list
}

func textOf(state string) string {
	text, _ := hex.DecodeString(state) // of EncodeToString, or the tables' own
	return string(text)
}
