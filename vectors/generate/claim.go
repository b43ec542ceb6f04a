package generate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

// This file says by exact integers what a call may answer and leave in its key.

// readings are the texts that are whole numbers to the server's tonumber and not to
// strconv.ParseInt.
var readings = map[string]int64{"1e3": 1000, "0x10": 16, " 10 ": 10, "1.0": 1}

// whole reads an argument.
func whole(text string) (int64, bool) {
	if n, ok := readings[text]; ok {
		return n, true
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// digits reads a clock or a TAT: decimal digits, at most 19.
func digits(text string) (uint64, bool) {
	if text == "" || len(text) > 19 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// serverClockNs stands for the server's clock where a call leaves now_ns out. Such a
// call has to answer the same at any time.
const serverClockNs = 1_780_000_080_000_000_000

const marginMs = 60000 // of a caller's clock

// answer is what is seen of a call.
type answer struct {
	refused string // the error reply
	reply   []string
	state   string
	ttlMs   int64
	still   bool // whether the clock stands still, so that ttlMs is as it was set
}

// truth follows one key by exact integers.
type truth struct {
	script precision.Script
	list   bool
	state  string // in hex
	exists bool
	// greatestMs is the ttl that was set last: -1 without an expiry, -2 without a key.
	greatestMs int64

	// tat is the exact limiter's, and tatGrid that of the one with gcra_v1's interval,
	// both fed with the script's admissions. moved is true with a TAT that was there
	// before, and from the first call with another limit or an earlier clock than the
	// one before: then a limiter with a longer interval may be earlier than the exact one.
	tat, tatGrid int64
	moved        bool
	last         *precision.Call
	counts       precision.Counts
}

func newTruth(script precision.Script, k Key) (*truth, error) {
	o := &truth{script: script, greatestMs: -2}
	if k.Kind == "none" {
		return o, nil
	}
	o.list, o.exists, o.state, o.greatestMs = k.Kind == "list", true, k.Hex, -1
	if k.TTLMs != "" {
		var err error
		if o.greatestMs, err = strconv.ParseInt(k.TTLMs, 10, 64); err != nil {
			return nil, err
		}
	}
	if o.list || o.badState() {
		return o, nil
	}
	text := textOf(o.state)
	if o.isWindow() {
		n := uint64(0)
		for i := range 8 {
			n = n<<8 | uint64(text[i])
		}
		o.counts = precision.Counts{Index: uint32(n >> 32), Previous: uint16(n >> 16), Current: uint16(n)}
		return o, nil
	}
	n, _ := digits(text)
	if n > math.MaxInt64 {
		return nil, fmt.Errorf("the exact limiter has no TAT %s", text)
	}
	o.tat, o.tatGrid, o.moved = int64(n), int64(n), true
	return o, nil
}

func (o *truth) isWindow() bool { return strings.HasPrefix(string(o.script), "window") }

// badState tells whether the key holds what the script refuses.
func (o *truth) badState() bool {
	text := textOf(o.state)
	if o.isWindow() {
		return len(text) != 8
	}
	n, ok := digits(text)
	return !ok || len(text) > 1 && text[0] == '0' || o.script == precision.GCRAV1 && n > 1<<61
}

// read reads a call's arguments; ok is false for those that the script refuses.
func (o *truth) read(argv []string) (a precision.Call, ok bool) {
	if len(argv) < 4 || len(argv) > 5 {
		return a, false
	}
	var amountOK, periodOK, thirdOK, costOK bool
	a.Amount, amountOK = whole(argv[0])
	a.PeriodNs, periodOK = whole(argv[1])
	a.Cost, costOK = whole(argv[3])
	if o.isWindow() {
		a.Sliding = argv[2] == "sliding"
		thirdOK = a.Sliding || argv[2] == "fixed"
	} else {
		a.Burst, thirdOK = whole(argv[2])
	}
	if !amountOK || !periodOK || !thirdOK || !costOK || a.Check(o.script) != nil {
		return a, false
	}
	now, nowOK := uint64(serverClockNs), true
	if len(argv) == 5 && argv[4] != "" {
		now, nowOK = digits(argv[4])
	}
	if !nowOK || now > math.MaxInt64 {
		return a, false
	}
	a.NowNs = int64(now)
	if o.isWindow() {
		return a, a.NowNs < 1<<62
	}
	if o.script == precision.GCRAV1 {
		up := (now + native.Grid - 1) / native.Grid * native.Grid
		return a, up+uint64(limiter(a, native.Grid).Tau()) <= 1<<61
	}
	return a, a.NowNs <= math.MaxInt64-limiter(a, 1).Tau()
}

// limiter is the exact limiter of a call, on a grid of 1 ns or of gcra_v1's.
func limiter(c precision.Call, grid int64) precision.GCRA {
	return precision.NewGCRA(c.Amount, c.PeriodNs, c.Burst, grid)
}

// step holds one call's answer against what may be answered, and returns the vector's
// step. An error is an answer beyond what the script claims.
func (o *truth) step(argv []string, a answer) (Step, error) {
	s := Step{Reply: []string{}, Exact: []string{}, TTLMs: []string{"", ""}}
	args, ok := o.read(argv)
	switch {
	case !ok:
		s.Error = "BADARG"
	case o.list:
		s.Error = "WRONGTYPE"
	case o.exists && o.badState():
		s.Error = "BADSTATE"
	}
	if word, _, _ := strings.Cut(a.refused, " "); word != s.Error {
		return s, fmt.Errorf("error %q, want %q", a.refused, s.Error)
	}
	leastMs := int64(0)
	if s.Error == "" {
		exact, write, err := o.call(args, a.reply)
		if err != nil {
			return s, err
		}
		s.Reply, s.Exact = a.reply, texts(exact)
		if write != nil {
			if !write.fits(textOf(a.state)) {
				return s, fmt.Errorf("state %s: %w", a.state, errBeyond)
			}
			o.exists, o.state = true, a.state
			leastMs = precision.TTLMs(write.resetNs, 0)
			o.greatestMs = precision.TTLMs(write.resetNs, marginMs)
		}
	}
	if !o.list && a.state != o.state {
		return s, fmt.Errorf("state %s was %s: a call that is not admitted wrote", a.state, o.state)
	}
	s.State = a.state
	if o.greatestMs >= 0 {
		s.TTLMs = []string{strconv.FormatInt(leastMs, 10), strconv.FormatInt(o.greatestMs, 10)}
	}
	if !s.ttlIs(a.ttlMs) || a.ttlMs < 0 && a.ttlMs != o.greatestMs || a.still && a.ttlMs != o.greatestMs {
		return s, fmt.Errorf("ttl %d, want %d", a.ttlMs, o.greatestMs)
	}
	return s, nil
}

// write is what an admitted call has to leave in its key.
type write struct {
	fits    func(text string) bool
	resetNs int64 // how long it has to be kept
}

// call holds a reply against the exact one, which it returns, and what has to be
// written, nil when nothing.
func (o *truth) call(a precision.Call, reply []string) (exact precision.Verdict, w *write, err error) {
	v, err := verdict(reply)
	if err != nil {
		return exact, nil, err
	}
	ok := false
	switch {
	case o.isWindow():
		exact, w, ok = o.window(a, v)
	case o.script == precision.GCRAV1:
		exact, w, ok = o.gcraV1(a, v)
	default:
		exact, w, ok = o.gcraV2(a, v)
	}
	if !ok {
		return exact, nil, fmt.Errorf("reply %+v, exact %+v: %w", v, exact, errBeyond)
	}
	return exact, w, nil
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

func texts(v precision.Verdict) []string {
	list := []string{}
	for _, n := range []int64{v.Status, v.Remaining, v.RetryAfterNs, v.ResetAfterNs} {
		list = append(list, strconv.FormatInt(n, 10))
	}
	return list
}

// gcraV2 is exact.
func (o *truth) gcraV2(a precision.Call, v precision.Verdict) (precision.Verdict, *write, bool) {
	exact, tat := limiter(a, 1).Call(o.tat, a.Cost, a.NowNs)
	o.tat = tat
	if exact.Status != 1 || a.Cost == 0 {
		return exact, nil, o.script.MayAnswer(v, exact)
	}
	fits := func(text string) bool { return text == strconv.FormatInt(tat, 10) }
	return exact, &write{fits, exact.ResetAfterNs}, o.script.MayAnswer(v, exact)
}

// gcraV1 is never early, and less than a grid point late in all.
func (o *truth) gcraV1(a precision.Call, v precision.Verdict) (precision.Verdict, *write, bool) {
	const grid = native.Grid
	if o.last != nil {
		before := *o.last
		before.Cost, before.NowNs = a.Cost, a.NowNs
		o.moved = o.moved || before != a || a.NowNs < o.last.NowNs
	}
	o.last = &a
	g := limiter(a, grid)
	onGrid, _ := g.Call(o.tatGrid, a.Cost, a.NowNs)
	exact, _ := limiter(a, 1).Call(o.tat, a.Cost, a.NowNs)
	late := func(gotNs, wantNs int64) bool { // waits
		if gotNs >= precision.FarNs {
			gotNs -= a.NowNs % grid // left in there
		}
		return 0 <= gotNs-wantNs && gotNs-wantNs < grid
	}

	ok := (v.Status == -1) == (a.Cost > a.Burst)
	switch v.Status {
	case 1:
		ok = ok && v.RetryAfterNs == 0 && onGrid.Status == 1 && (o.moved || exact.Status == 1)
	case 0:
		ok = ok && v.RetryAfterNs > 0 && late(v.RetryAfterNs, g.FirstNs(o.tatGrid, a.Cost)-a.NowNs)
	default:
		ok = ok && v.RetryAfterNs == -1
	}
	var w *write
	if v.Status == 1 && a.Cost > 0 {
		// The admissions of both are the script's, whatever they would say themselves.
		o.tatGrid = max(o.tatGrid, a.NowNs) + a.Cost*g.Interval
		o.tat = max(o.tat, a.NowNs) + a.Cost*limiter(a, 1).Interval
		tatGrid := uint64(o.tatGrid)
		w = &write{func(text string) bool {
			n, isDigits := digits(text)
			return isDigits && n%grid == 0 && n-tatGrid < grid
		}, v.ResetAfterNs}
	}
	ok = ok && g.Remaining(o.tatGrid, a.NowNs) <= v.Remaining && v.Remaining <= g.Remaining(o.tatGrid, a.NowNs+grid-1) &&
		late(v.ResetAfterNs, max(o.tatGrid-a.NowNs, 0))
	return exact, w, ok
}

func textOf(state string) string {
	text, _ := hex.DecodeString(state) // of EncodeToString, or the tables' own
	return string(text)
}

// window is exact in both versions.
func (o *truth) window(a precision.Call, v precision.Verdict) (precision.Verdict, *write, bool) {
	w := precision.Window{Amount: a.Amount, PeriodNs: a.PeriodNs, Sliding: a.Sliding, Monotone: o.script == precision.WindowV2}
	exact, counts := w.Call(o.counts, a.Cost, a.NowNs)
	o.counts = counts
	if exact.Status != 1 || a.Cost == 0 {
		return exact, nil, o.script.MayAnswer(v, exact)
	}
	_, leftNs, gapNs := w.At(counts, a.NowNs)
	fits := func(text string) bool { return text == textOf(countsHex(counts)) }
	return exact, &write{fits, gapNs + leftNs + a.PeriodNs}, o.script.MayAnswer(v, exact)
}

// countsHex is a window's state as the key holds it, in hex.
func countsHex(c precision.Counts) string {
	return fmt.Sprintf("%08x%04x%04x", c.Index, c.Previous, c.Current)
}
