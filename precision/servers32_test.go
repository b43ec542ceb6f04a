package precision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/precision/servers"
)

// On a 32-bit server '%d' of string.format goes through a C long of 32 bits. A script
// must answer there what it answers elsewhere, or an error: never admit beyond exact
// integers. The servers are those of `make servers-32`, under qemu-user.
func TestServers32(t *testing.T) {
	for _, architecture := range servers.Architectures32 {
		t.Run(architecture, func(t *testing.T) {
			t.Parallel() // a server each
			testEitherClock(t, driver32(t, architecture))
		})
	}
}

// The same calls on the redis-server on PATH.
func TestServers64(t *testing.T) { testEitherClock(t, realDriver(t)) }

func testEitherClock(t *testing.T, real *Real) {
	t.Run(string(LimitsV1), func(t *testing.T) { testLimits32(t, real) })
	for _, s := range singles {
		t.Run(string(s.Script), func(t *testing.T) {
			t.Run("callers' clocks", func(t *testing.T) { testCallersClocks32(t, real, s.Script) })
			t.Run("server's clock", func(t *testing.T) { testServersClock32(t, real, s.Script) })
		})
	}
}

// Every reply of limits_v1 with a caller's clock is that of exact integers: a trace of each
// style.
func testLimits32(t *testing.T, real *Real) {
	admitted := int64(0)
	for index := range limitsServed {
		answers, err := NewLimitsTrace(1, callersIndex(LimitsV1, index)).Play(real, fmt.Sprintf("limits %d", index))
		if err != nil {
			t.Fatal(err)
		}
		tally := answers.Judge()
		if admitted += tally.Admitted; !tally.Sound() {
			t.Errorf("trace %d: %s", index, tally.Broken)
		}
	}
	t.Logf("%d of %d admitted", admitted, limitsServed*traceCalls)
	if admitted == 0 {
		t.Error("nothing was admitted")
	}
}

// driver32 is a driver of the 32-bit server of an architecture.
func driver32(t *testing.T, architecture string) *Real {
	server := servers.ForTest32(t, architecture)
	real, err := NewReal(t.Context(), server, "test:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = real.Close() })
	if info := real.client.Info(t.Context(), "server").Val(); !strings.Contains(info, "arch_bits:32\r\n") {
		t.Fatalf("%s of %s is no 32-bit server:\n%s", server.Name, architecture, info)
	}
	t.Log(server.Name)
	return real
}

// tally32 counts the answers of a 32-bit server.
type tally32 struct {
	admitted, refused, errors int
	began                     time.Time
}

func (n *tally32) add(status int64, err bool) {
	switch {
	case err:
		n.errors++
	case status == 1:
		n.admitted++
	default:
		n.refused++
	}
}

// close logs the counts: 10^4 calls, not all of them with one outcome.
func (n *tally32) close(t *testing.T) {
	calls := n.admitted + n.refused + n.errors
	t.Logf("%d admitted, %d refused, %d errors; %.0f calls/s", n.admitted, n.refused, n.errors,
		float64(calls)/time.Since(n.began).Seconds())
	if calls < 1e4 || n.admitted == 0 || n.refused == 0 {
		t.Errorf("%d calls, %d admitted, %d refused: want 10^4, some of each", calls, n.admitted, n.refused)
	}
}

// Every reply with a caller's clock is that of a 64-bit server and of exact integers,
// state and ttl too, as if the calls that were answered by an error had not been made.
func testCallersClocks32(t *testing.T, real *Real, script Script) {
	n := tally32{began: time.Now()}
	var judged Tally
	unread, first := 0, ""
	for i, calls := range calls32(script) {
		key := fmt.Sprintf("caller %s %d", script, i)
		outcomes := make([]Outcome, len(calls))
		if err := real.Play(script, key, calls, outcomes); err != nil {
			unread++ // a state of another form than the script's
			first = cmp.Or(first, fmt.Sprintf("%+v, and then: %v", calls[0], err))
			continue
		}
		var answered []Call
		var answers []Outcome
		var before State
		for j, o := range outcomes {
			n.add(o.Status, o.Err != "")
			if o.Err == "" {
				answered, answers = append(answered, calls[j]), append(answers, o)
			} else if o.State != before {
				t.Errorf("%+v: %s, and the state %+v became %+v", calls[j], o.Err, before, o.State)
			}
			before = o.State
		}
		tally := Judge(NewTraceOf(script, answered), answers)
		judged.Add(&tally)
	}
	if !judged.Sound() || unread > 0 {
		t.Errorf("%d early; wrong: %d replies, %d states, %d ttls; %d keys with a state of another form\n%s\n%s",
			judged.Early, judged.WrongReplies, judged.WrongStates, judged.WrongTTLs, unread, judged.Broken, first)
	}
	n.close(t)
}

// limits32 serve every script: amount, period and burst. The long ones need ttls above
// 2^31 ms, 24.8 days, and those of amount 1 and the last one intervals above that.
var limits32 = []Call{
	{Amount: 1, PeriodNs: 60e9, Burst: 1},
	{Amount: 300, PeriodNs: 60e9, Burst: 60},
	{Amount: 1000, PeriodNs: 1e9, Burst: 10},
	{Amount: 3, PeriodNs: 5e6, Burst: 3},
	{Amount: 1, PeriodNs: 30 * 86400e9, Burst: 1},
	{Amount: 5000, PeriodNs: 50 * 86400e9, Burst: 5000},
	{Amount: 65535, PeriodNs: 1 << 52, Burst: 65000},
	{Amount: 1, PeriodNs: 1 << 52, Burst: 1},
}

// costs32 are costs of a call, 0 for the limit's most and -1 for one that never fits.
var costs32 = []int64{1, 1, 2, 1, 0, 1, -1, 1}

// cost is the cost with this number in a row of calls.
func (c *Call) cost(script Script, i int) int64 {
	most := c.Burst
	if script.IsWindow() {
		most = c.Amount
	}
	switch cost := costs32[i%len(costs32)]; cost {
	case 0:
		return most
	case -1:
		return most + 1
	default:
		return cost
	}
}

// clocks32 are instants in s about which a C long of 32 bits, or a clock that is cut to
// one, turns: 0, today, 2038, 2106, and far from all.
var clocks32 = []int64{0, 1, 1_780_000_000, 1<<31 - 1, 1<<31 + 1, 2_250_000_000, 1 << 32, 4_500_000_000, 9_000_000_000}

// calls32 are the calls of 10^4 and some, a row for each key: generated ones, and each of
// limits32 at each of clocks32, most of them at one instant.
func calls32(script Script) [][]Call {
	const traces, length = 200, 40
	var rows [][]Call
	for index := 0; len(rows) < traces; index++ {
		calls := NewTrace(script, 32, index).Calls[:length]
		if !slices.ContainsFunc(calls, func(c Call) bool { return c.ByServer || c.Given != "" }) {
			rows = append(rows, calls)
		}
	}
	for i, limit := range limits32 {
		for j, clock := range clocks32 {
			limit.Sliding = (i+j)%2 == 0
			limit.NowNs = clock * 1e9
			var row []Call
			for k := range length {
				limit.Cost = limit.cost(script, k)
				if k%10 == 9 {
					limit.NowNs += limit.PeriodNs / 3
				}
				row = append(row, limit)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// With the server's clock the instant of a call is only known to lie between a TIME
// before it and one after: its answer is wrong when it is wrong at every such instant.
func testServersClock32(t *testing.T, real *Real, script Script) {
	const length = 40
	n := tally32{began: time.Now()}
	for round := 0; round*length < 1e4; round++ {
		limit := limits32[round%len(limits32)]
		limit.Sliding = round/len(limits32)%2 == 0
		judge := newJudge32(script, limit)
		key := fmt.Sprintf("%sserver %s %d", real.prefix, script, round)

		pipe := real.client.Pipeline()
		var evals, ttls []*redis.Cmd
		times := []*redis.TimeCmd{pipe.Time(t.Context())}
		for i := range length {
			limit.Cost = limit.cost(script, i)
			args := append([]any{"EVALSHA", real.shas[script], 1, key}, limit.appendArgs(nil, script)[:clockSlot]...)
			evals = append(evals, pipe.Do(t.Context(), args...))
			ttls = append(ttls, pipe.Do(t.Context(), "PTTL", key))
			times = append(times, pipe.Time(t.Context()))
		}
		_, _ = pipe.Exec(t.Context()) // the first command's error; each is looked at below
		for i := range length {
			var o Outcome
			if err := o.reply(evals[i]); err != nil {
				t.Fatal(err)
			}
			n.add(o.Status, o.Err != "")
			if o.Err != "" {
				continue
			}
			ttlMs, err := ttls[i].Int64()
			if err != nil {
				t.Fatal(err)
			}
			from, to := times[i].Val().UnixNano(), times[i+1].Val().UnixNano()
			limit.Cost = limit.cost(script, i)
			if wrong := judge.call(limit.Cost, from, to, o.Status, ttlMs); wrong != "" {
				t.Errorf("%+v, call %d at %d .. %d, reply %+v, PTTL %d: %s", limit, i, from, to, o.Verdict, ttlMs, wrong)
				break // what follows on this key is judged by another state than its own
			}
		}
		if t.Failed() {
			break
		}
	}
	n.close(t)
}

// judge32 holds the answers about one key, made by the server's clock, against the
// oracle, fed with what was admitted.
type judge32 interface {
	// call says what is wrong with an answer that was made between two instants.
	call(cost, fromNs, toNs, status, ttlMs int64) string
}

func newJudge32(script Script, limit Call) judge32 {
	if script.IsWindow() {
		w := Window{Amount: limit.Amount, PeriodNs: limit.PeriodNs, Sliding: limit.Sliding}
		return &windowJudge32{w, []Counts{{}}}
	}
	return &gcraJudge32{limit: limit, earliest: NewFed(script, 1), latest: NewFed(script, script.Grid())}
}

// diesWithin tells whether a key with this PTTL, cut to whole ms, -1 for none and -2
// without a key, ends before these ns are over.
func diesWithin(ttlMs, ns int64) bool {
	return ttlMs != -1 && (max(ttlMs, -1)+1)*1e6 < ns
}

// gcraJudge32 keeps two exact limiters: one of the exact interval that was fed as early as can
// be, and one of the script's own as late. A script is later than that by less than its grid.
type gcraJudge32 struct {
	limit            Call
	earliest, latest *Fed
}

func (j *gcraJudge32) call(cost, fromNs, toNs, status, ttlMs int64) string {
	first, last := j.limit, j.limit
	first.Cost, first.NowNs = cost, fromNs
	last.Cost, last.NowNs = cost, toNs
	switch early, late := j.earliest.Ask(&last), j.latest.GCRA(&first).FirstNs(j.latest.tat, cost)+j.latest.grid-1; {
	case (status == -1) != (early.Status == -1):
		return "wrong status"
	case status == 1 && early.Status == 0:
		return fmt.Sprintf("admitted %d ns early", early.RetryAfterNs)
	case status == 0 && fromNs >= late:
		return "refused what fits"
	case status == 1:
		j.earliest.Admit(&first)
		j.latest.Admit(&last)
	}
	if diesWithin(ttlMs, j.earliest.tat-toNs) {
		return fmt.Sprintf("the key dies before its TAT, %d at the earliest", j.earliest.tat)
	}
	return ""
}

// windowJudge32 keeps every state that the key may be in.
type windowJudge32 struct {
	window Window
	states []Counts
}

func (j *windowJudge32) call(cost, fromNs, toNs, status, ttlMs int64) string {
	// Inside a window a call fits the better the later it comes, so the ends decide.
	instants := []int64{fromNs, toNs}
	for start := (fromNs/j.window.PeriodNs + 1) * j.window.PeriodNs; start <= toNs; start += j.window.PeriodNs {
		instants = append(instants, start-1, start)
	}
	var states []Counts
	leastNs := int64(1 << 62) // until the key is as good as new
	for _, before := range j.states {
		for _, now := range instants {
			v, after := j.window.Call(before, cost, now)
			if v.Status != status {
				continue
			}
			if !slices.Contains(states, after) {
				states = append(states, after)
			}
			look, _ := j.window.Call(after, 0, toNs)
			leastNs = min(leastNs, look.ResetAfterNs)
		}
	}
	switch {
	case len(states) == 0:
		return fmt.Sprintf("no instant has this status; the key holds one of %+v", j.states)
	case diesWithin(ttlMs, leastNs):
		return fmt.Sprintf("the key dies before it is as good as new, in %d ns at the earliest", leastNs)
	}
	j.states = states
	return ""
}
