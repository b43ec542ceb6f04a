package generate

import (
	"fmt"
	"math"
	"strings"

	"github.com/tatami-rate/tatami/precision"
)

// gcraArgv is a group's arguments, the period in ns.
func gcraArgv(amount, periodNs, burst int64) string {
	return strings.Join([]string{decimal(amount), decimal(periodNs), decimal(burst)}, " ")
}

// limited is a call with its own limit.
func limited(amount, periodNs, burst, cost, nowNs int64) request {
	return by(decimal(amount), decimal(periodNs), decimal(burst), decimal(cost), decimal(nowNs))
}

func tat(ns int64) held { return holding(decimal(ns)) }

func gcraTables(script precision.Script) []group {
	exact := func(amount, periodNs, burst int64) limiter { return gcraLimiter(script, amount, periodNs, burst) }
	groups := []group{{
		comment: "300 a minute, bursts of 60: one unit each 200 ms",
		argv:    gcraArgv(300, 60*second, 60),
		tests: []test{
			{1, "a rested key admits the whole burst at one instant, and no unit more", "BurstOffByOne", none,
				from(epoch, again(61, 1, 0))},
			{2, "after the burst a unit is due each 200 ms, and not 1 ns earlier", "LateRefill", none,
				from(epoch, calls(60, 0, 1, 0, 1, 200*ms-1, 1, 200*ms, 1, 200*ms, 1, 400*ms-1, 1, 400*ms))},
			{3, "cost 0 on a fresh key creates nothing", "WrittenLook", none, from(epoch, calls(0, 0))},
			{4, "cost 0 on a key that is half used, then empty", "WrittenLook", none,
				from(epoch, calls(30, 0, 0, 0, 30, 0, 0, 0, 1, 0))},
			{5, "cost 0 on a key in use moves no expiry", "WrittenLook", tat(epoch + 2*second).expiring(),
				from(epoch, calls(0, 0, 0, second))},
			{6, "cost 0 gives a key without expiry none", "WrittenLook", tat(epoch + 2*second),
				from(epoch, calls(0, 0))},
			{7, "the whole burst in one call", "BurstOffByOne", none, from(epoch, calls(60, 0, 1, 0))},
			{8, "burst + 1 on a fresh key can never be admitted, and creates nothing", "UnfittableStatus", none,
				from(epoch, calls(61, 0))},
			{9, "burst + 1 on a used key, and on one that has rested", "UnfittableStatus", none,
				from(epoch, calls(1, 0, 61, 0, 61, 10*second))},
			{10, "the largest cost there is can never be admitted", "UnfittableStatus WideNumbers", none,
				from(epoch, calls(1<<52, 0, 1, 0, 1<<52, 0))},
			{11, "a refused call leaves value and expiry", "ChargedRefusal", tat(epoch + 12*second).expiring(),
				from(epoch, calls(1, 0, 60, 0, 1<<52, 0, 1, 1))},
			{12, "refused calls are not charged: what was left still fits", "ChargedRefusal", none,
				from(epoch, calls(1, 0), again(3, 60, 0), calls(59, 0))},
			{13, "a clock that runs back finds the debt and no more", "ClockBackwards", none,
				from(epoch, calls(1, 0, 1, -second, 1, -10*second, 58, 0, 1, -20*second, 1, 200*ms, 1, 400*ms))},
			{14, "ten years later the key is as new", "LongIdle", none,
				from(epoch, calls(60, 0, 1, 0, 60, 3652*day, 1, 3652*day))},
			{15, "reset_after falls to 0 and stays there", "LateRefill", none,
				from(epoch, calls(1, 0, 0, 100*ms, 0, 200*ms-1, 0, 200*ms, 0, 300*ms))},
			{16, "a full key without expiry refuses, recovers, and gets an expiry", "NoExpiry",
				tat(epoch + 12*second), from(epoch, calls(1, 0, 1, 200*ms))},
			{17, "a TAT that is over, without expiry, counts for nothing", "NoExpiry", tat(epoch - 1),
				from(epoch, calls(0, 0, 60, 0))},
			{18, "a state of 19 digits is left as it is by a look", "Digits14", tat(1700000000123456789),
				from(1700000000000000000, calls(0, 0, 0, 123456788, 0, 123456789))},
			{19, "a state of 19 digits is read to its last one", "Digits14", tat(1700000012123456789),
				from(1700000000123456789, calls(1, 0, 1, 199999999, 1, 200*ms))},
			{20, "a mixed sequence of costs", "ChargedRefusal", none,
				from(epoch, calls(7, 0, 13, 10*ms, 40, 20*ms, 41, 30*ms, 40, 40*ms, 1, 50*ms, 3, 700*ms))},
			{21, "cost 0 is refused where the debt is above a burst, and moves no expiry", "WrittenLook",
				tat(epoch + 13*second).expiring(), from(epoch, calls(0, 0, 0, second))},
		},
		streams: []stream{{900, "the first minute: 359 are admitted, the last at 59.8 s", "LateRefill Drift",
			decimal(epoch), 658}},
	}, {
		comment: "300 a minute, bursts of 300",
		argv:    gcraArgv(300, 60*second, 300),
		tests: []test{
			{25, "299 are left after one", "BurstOffByOne", none, from(epoch, calls(1, 0))},
			{26, "all 300 pass at once", "BurstOffByOne", none, from(epoch, calls(299, 0, 1, 0, 1, 0))},
		},
	}}
	for i, limit := range []struct{ amount, periodNs int64 }{{7, 60 * second}, {13, 10 * second}, {17, 30 * second}} {
		g := group{
			comment: fmt.Sprintf("%d a period of %d s, which it does not divide", limit.amount, limit.periodNs/second),
			argv:    gcraArgv(limit.amount, limit.periodNs, limit.amount),
		}
		for j, afterNs := range []int64{0, 3 * second, 123456789, 7*day + 1, 999999999} {
			start := epoch + afterNs
			g.tests = append(g.tests,
				test{30 + 10*i + j,
					fmt.Sprintf("the whole burst at one instant, %d ns into a second", start%second),
					"FloatSeconds", none, from(start, again(int(limit.amount)+1, 1, 0))})
		}
		groups = append(groups, g)
	}
	groups = append(groups, group{
		comment: "10 in 13 s, bursts of 1",
		argv:    gcraArgv(10, 13*second, 1),
		tests: []test{
			{60, "a unit is due at 1300 ms and not 1 ns earlier", "LateRefill FloatSeconds", none,
				from(epoch, calls(1, 0, 1, 1300*ms-1, 1, 1300*ms, 1, 2600*ms-1, 1, 2600*ms))},
			{64, "a burst of 1 is not the cost", "WrittenLook UnfittableStatus", none,
				from(epoch, calls(0, 0, 2, 0, 1, 0))},
			{61, "the wait shrinks with the time", "CoarseRetry", none,
				from(epoch, calls(1, 0, 1, 1, 1, 1299*ms, 1, 1299999*us, 1, 1300*ms-1))},
		},
	}, group{
		comment: "one unit each 100 ms",
		argv:    gcraArgv(10, second, 1),
		tests: []test{{62, "a state that is a multiple of 10^8 is written in digits", "ExponentForm", none,
			from(epoch, calls(1, 0, 1, 100*ms))}},
	}, group{
		comment: "one unit each 10^8 ms less the margin of the expiry",
		argv:    gcraArgv(1, (1e8-61000)*ms, 1),
		tests:   []test{{63, "an expiry of 10^8 ms is set in digits", "ExponentForm", none, from(epoch, calls(1, 0))}},
	}, group{
		comment: "3 a second, bursts of 1",
		argv:    gcraArgv(3, second, 1),
		tests: []test{
			{65, "the expiry covers a third of a second", "ShortTTL", none, from(epoch, calls(1, 0, 1, ms, 1, 334*ms))},
			{66, "state and expiry are whole numbers", "ExponentForm FlooredInterval", none, from(epoch, calls(1, 0))},
		},
	}, group{
		comment: "3 a second, bursts of 20",
		argv:    gcraArgv(3, second, 20),
		tests: []test{{67, "no error from the expiry, whatever is spent", "ExponentForm", none,
			from(epoch, again(21, 1, 0))}},
	}, group{
		comment: "1000 a second, bursts of 1000",
		argv:    gcraArgv(1000, second, 1000),
		tests: []test{
			{70, "the 1001st at one instant is refused", "BurstOffByOne", none, from(epoch, calls(999, 0, 1, 0, 1, 0))},
			{71, "one unit is kept for its ms", "ShortTTL", none, from(epoch, calls(1, 0))},
		},
	}, group{
		comment: "one unit each 10 s",
		argv:    gcraArgv(1, 10*second, 1),
		tests: []test{{75, "the expiry covers the call's own unit", "TTLWithoutCost", none,
			from(epoch, calls(1, 0, 1, ms, 1, 9999*ms, 1, 10*second))}},
	}, group{
		comment: "one unit each minute, bursts of 5",
		argv:    gcraArgv(1, 60*second, 5),
		tests: []test{{77, "a call that is admitted puts off an expiry that comes before its units are back",
			"ShortTTL",
			tat(epoch + 60*second).expiring(), from(epoch, calls(1, 0))}},
	}, group{
		comment: "98000000 a second, bursts of ten seconds' worth",
		argv:    gcraArgv(980_000_000, 10*second, 980_000_000),
		tests: []test{{76, "full and exact after ten years", "LongIdle WideNumbers", none,
			from(epoch, calls(980_000_000, 0, 1, 0, 980_000_000, 3652*day, 1, 3652*day))}},
	}, group{
		comment: "one a second, bursts of 5",
		argv:    gcraArgv(1, second, 5),
		tests: []test{
			{80, "two clocks 5 s apart, in turns: 5 are admitted, and one when the later clock has moved on",
				"ClockBackwards", none,
				from(epoch,
					calls(1, 10*second, 1, 5*second, 1, 10*second, 1, 5*second, 1, 10*second, 1, 5*second,
						1, 10*second, 1, 5*second,
						1, 10*second, 1, 5*second, 1, 10*second, 1, 5*second, 1, 16*second))},
			{81, "cost 5 with 4 left is refused, not unfittable", "UnfittableStatus", none,
				from(epoch, calls(1, 0, 5, 0, 5, second-1, 5, second))},
			{82, "cost 6 of a burst of 5 on a rested key", "UnfittableStatus", none,
				from(epoch, calls(1, 0, 6, 10*second))},
			{83, "a clock that goes back to 0 and comes again", "ClockBackwards FarWait", none,
				from(0, calls(5, epoch, 1, 0, 0, 0, 1, epoch+second))},
		},
	}, group{
		comment: "10 a second, bursts of 10",
		argv:    gcraArgv(10, second, 10),
		tests: []test{
			{85, "6 admitted, 5 refused, 4 admitted, 1 refused", "ChargedRefusal", none,
				from(epoch, calls(6, 0, 5, 0, 4, 0, 1, 0))},
			{86, "20 calls in one microsecond: exactly 10", "BurstOffByOne", none, from(epoch, again(20, 1, 999*us))},
			{87, "ten before a second's edge and ten after it: 11", "LateRefill", none,
				from(epoch, every(10, 1, 900*ms, 10*ms), every(10, 1, 1000*ms, 10*ms))},
			{88, "30 a second for ten seconds: 109", "LostRefill LateRefill", none,
				from(epoch, thin(exact(10, second, 10), thirty()))},
			{89, "10 a second for ten seconds: all 100", "LostRefill LateRefill", none,
				from(epoch, every(100, 1, 0, 100*ms))},
			{90, "silence to 900 ms, then 500 a second for two seconds: 29", "LostRefill LateRefill", none,
				from(epoch, thin(exact(10, second, 10), every(1000, 1, 900*ms, 2*ms)))},
		},
	}, group{
		comment: "10 a second, bursts of 1",
		argv:    gcraArgv(10, second, 1),
		tests: []test{{91, "silence to 900 ms, then 500 a second for two seconds: 20", "LostRefill LateRefill", none,
			from(epoch, thin(exact(10, second, 1), every(1000, 1, 900*ms, 2*ms)))}},
	}, group{
		comment: "5 a second, bursts of 10",
		argv:    gcraArgv(5, second, 10),
		tests: []test{{92, "a client of 50 a second for ten seconds: 59, two refusals before each of the last",
			"LostRefill", none,
			from(epoch, thin(exact(5, second, 10), every(500, 1, 0, 20*ms)))}},
	}, group{
		comment: "100 a second, bursts of 100",
		argv:    gcraArgv(100, second, 100),
		tests: []test{{93, "polled each 10 ms after the burst: one each time", "LostRefill LateRefill", none,
			from(epoch,
				calls(100, 0, 1, 0, 1, 10*ms, 1, 10*ms, 1, 20*ms, 1, 20*ms, 1, 30*ms, 1, 30*ms, 1, 40*ms,
					1, 40*ms))}},
	}, group{
		comment: "7 a second, bursts of 7: an interval of 142857142.86 ns",
		argv:    gcraArgv(7, second, 7),
		tests: []test{
			{95, "the wait is right to the nanosecond", "CoarseRetry", none,
				from(epoch, waiting(exact(7, second, 7), epoch, 0, 7, 1, 2, 7))},
			{96, "each wait is long enough, and not by 1 ns too long", "CoarseRetry", none,
				from(epoch, waiting(exact(7, second, 7), epoch, 0, 5, 3, 1, 7, 1, 1, 6))},
			{97, "the state keeps every digit", "Digits14 FlooredInterval", none, from(epoch, again(3, 1, 256))},
			{98, "polled each 10 ms", "CoarseRetry", none, from(epoch, calls(7, 0), every(15, 1, 10*ms, 10*ms))},
		},
	})
	groups = append(groups, gcraRates(script)...)
	groups = append(groups, gcraClocks(script)...)
	groups = append(groups, gcraChanges()...)
	good := []string{"300", "60000000000", "60", "1", decimal(epoch)}
	groups = append(groups,
		hostileArguments([]string{"amount", "period_ns", "burst", "cost", "now_ns"}, good, tat(epoch+second/2)),
		hostileState(script, "300 60000000000 60", 61), group{
			comment: "the server's clock",
			argv:    "300 60000000000 60",
			tests: []test{
				{1490, "now_ns is absent", "ServerClock", none, []request{by("0")}},
				{1492, "now_ns is empty", "ServerClock", none, []request{by("0", "")}},
				{1493, "now_ns is absent in a call that never fits", "ServerClock UnfittableStatus", none,
					[]request{by("61")}},
			},
		})
	groups = append(groups, gcraServerClock()...)
	groups = append(groups, gcraSeconds(), gcraCredit())
	groups = append(groups, gcraSettings(script)...)
	return groups
}

// gcraRates are limits at the ends of their ranges, and streams.
func gcraRates(script precision.Script) []group {
	one := func(id int, comment, flags string, amount, periodNs, burst, startNs int64, lists ...[]call) group {
		return group{comment: comment, argv: gcraArgv(amount, periodNs, burst),
			tests: []test{{id, comment, flags, none, from(startNs, lists...)}}}
	}
	wait := func(id int, comment, flags string, amount, periodNs, burst int64, costs ...int64) group {
		return one(id, comment, flags, amount, periodNs, burst, epoch,
			waiting(gcraLimiter(script, amount, periodNs, burst), epoch, 0, costs...))
	}
	const most = 1 << 52
	groups := []group{
		wait(100, "1500 a second are a limit", "HighRate", 1500, second, 1, 1, 1, 1),
		wait(101, "2000000 a second are a limit", "HighRate", 2_000_000, second, 1, 1, 1, 1),
		wait(102, "one each nanosecond", "HighRate FlooredInterval", second, second, 1000, 1000, 1, 7),
		wait(103, "the smallest limit there is", "HighRate BurstOffByOne", 1, 1, 1, 1, 1, 1),
		wait(104, "400 million a second: an interval of 2.5 ns is rounded up", "FlooredInterval", 400_000_000,
			second, 10, 10, 1, 3, 10),
		one(105, "400 million a second, asked each nanosecond", "FlooredInterval", 400_000_000, second, 10, epoch,
			calls(10, 0), every(12, 1, 1, 1)),
		wait(106, "the longest period", "WideNumbers", 1, most, 1, 1, 1),
		wait(107, "the longest period, half of it a unit", "WideNumbers", 2, most, 2, 1, 2, 2),
		one(108, "interval x burst one above 2^52 is refused", "WideNumbers", 3, most, 3, epoch, calls(1, 0)),
		wait(109, "a third of 2^52, rounded up, twice", "WideNumbers FlooredInterval", 3, most, 2, 2, 1, 2),
		one(110, "a burst of twice the longest period is refused", "WideNumbers", 1, most, 2, epoch, calls(1, 0)),
		one(111, "the largest amount, burst and cost", "WideNumbers FarWait", most, most, most, epoch,
			calls(1, 0, most-1, 0, 1, 0, 1, 1)),
		one(112, "the largest amount, burst and cost, at a clock of 10^18", "WideNumbers FarWait", most, most, most,
			1e18, calls(1, 0, most-1, 0, 1, 0, 1, 1)),
		wait(113, "a prime of units in a prime of nanoseconds", "FlooredInterval WideNumbers", 999983,
			4503599627370449, 1000, 999, 2, 1000, 1),
		wait(114, "interval 2^40 + 1", "WideNumbers", 1, 1<<40+1, 3, 3, 1, 2, 3),
		wait(115, "interval 255: below the grid of today's doubles", "GridEdge", 1, 255, 3, 3, 1, 2, 3),
		wait(116, "interval 257: above the grid of today's doubles", "GridEdge", 1, 257, 3, 3, 1, 2, 3),
		one(119, "interval 255 2/3: up to 256, and no further", "FlooredInterval GridEdge", 3, 767, 5, epoch,
			calls(1, 0, 5, 0, 4, 0)),
		one(117, "interval 1100, asked each 550 ns", "NearestRounding", 1, 1100, 64, epoch, calls(64, 0),
			every(40, 1, 550, 550)),
		one(118, "interval 100, asked each 50 ns", "NearestRounding", 1, 100, 64, epoch, calls(64, 0),
			every(40, 1, 50, 50)),
	}
	for i, residue := range []int64{1, 76, 127, 128, 182, 255} {
		groups = append(groups, group{
			comment: fmt.Sprintf("interval mod 256 is %d", residue),
			argv:    gcraArgv(1, 1024+residue, 4),
			streams: []stream{{910 + i, "each call as soon as it can be admitted, from an instant off the grid",
				"NearestRounding Drift", "1780000000123456789", 3000}},
		})
	}
	for i, s := range []struct {
		comment, flags          string
		amount, periodNs, burst int64
		startNs                 int64
	}{
		{"an interval of 100 ns", "NearestRounding Drift", 1, 100, 64, epoch + 1},
		{"a third of a second", "FlooredInterval Drift", 3, second, 20, epoch},
		{"a seventh of a minute", "FloatSeconds Drift", 7, 60 * second, 7, epoch + 999999999},
		{"across 2^53", "ClockEdge Drift", 1, 1100, 4, 1<<53 - 500000},
		{"across 2^60", "ClockEdge Drift", 1, 1100, 4, 1<<60 - 500000},
		{"across a second's edge", "SecondEdge Drift", 1, 1100, 4, epoch - 500000},
	} {
		groups = append(groups, group{comment: s.comment, argv: gcraArgv(s.amount, s.periodNs, s.burst),
			streams: []stream{{920 + i, "each call as soon as it can be admitted, " + s.comment, s.flags,
				decimal(s.startNs), 1000}}})
	}
	if script == precision.GCRAV2 {
		groups = append(groups, group{comment: "clocks of gcra_v2 alone", argv: gcraArgv(1, 1100, 4), streams: []stream{
			{930, "each call as soon as it can be admitted, across 2^61", "ClockEdge Drift",
				decimal(1<<61 - 500000), 1000},
			{931, "each call as soon as it can be admitted, across 2^62", "ClockEdge Drift",
				decimal(1<<62 - 500000), 1000},
		}})
	}
	return groups
}

// gcraClocks are clocks at the edges of numbers.
func gcraClocks(script precision.Script) []group {
	limits := group{comment: "10 a second, bursts of 2: interval x burst is 2 x 10^8", argv: gcraArgv(10, second, 2)}
	for i, c := range []struct {
		comment string
		startNs int64
	}{
		{"0", 0}, {"1", 1}, {"255", 255}, {"256", 256}, {"257", 257}, {"10^9 - 1", second - 1}, {"10^9", second},
		{"2^53 - 1", 1<<53 - 1}, {"2^53", 1 << 53}, {"2^53 + 1", 1<<53 + 1},
		{"2^60 - 10^8 - 1", 1<<60 - 1e8 - 1}, {"2^60 - 1", 1<<60 - 1}, {"2^60", 1 << 60}, {"2^60 + 1", 1<<60 + 1},
		{"2^60 + 255", 1<<60 + 255}, {"2^61 - 10^9", 1<<61 - second}, {"2^61 - 10^9 + 1", 1<<61 - second + 1},
		{"2^61 - 1", 1<<61 - 1}, {"2^61", 1 << 61}, {"2^61 + 1", 1<<61 + 1}, {"2^62 - 1", 1<<62 - 1}, {"2^62", 1 << 62},
		{"2^62 + 1", 1<<62 + 1}, {"2^63 - 1 - 10^9", math.MaxInt64 - second},
	} {
		limits.tests = append(limits.tests, test{150 + i, "a clock of " + c.comment, "ClockEdge", none,
			from(c.startNs, calls(1, 0, 1, 0, 1, 0, 1, 1e8-1, 1, 1e8, 0, 1e8+1))})
	}
	for i, c := range []struct{ comment, now string }{
		{"2^61 - interval x burst, the last of gcra_v1", decimal(1<<61 - 2e8)},
		{"2^61 - interval x burst - 255", decimal(1<<61 - 2e8 - 255)},
		{"2^61 - interval x burst + 1", decimal(1<<61 - 2e8 + 1)},
		{"2^63 - 1 - interval x burst, the last of gcra_v2", decimal(math.MaxInt64 - 2e8)},
		{"2^63 - interval x burst", decimal(math.MaxInt64 - 2e8 + 1)},
		{"2^63 - 1", "9223372036854775807"},
		{"2^63", "9223372036854775808"},
		{"10^19 - 1", "9999999999999999999"},
		{"10^19, of 20 digits", "10000000000000000000"},
		{"19 digits with leading zeros", "0000000000000000001"},
		{"20 digits with leading zeros", "00000000000000000001"},
	} {
		limits.tests = append(limits.tests,
			test{180 + i, "a clock of " + c.comment, "ClockLimit", none,
				[]request{by("2", c.now), by("1", c.now), by("0", c.now)}})
	}

	grid := group{comment: "one each 1000 ns, bursts of 3, at instants between two doubles", argv: gcraArgv(1, 1000, 3)}
	for i, off := range []int64{1, 127, 128, 129, 255} {
		grid.tests = append(grid.tests,
			test{200 + i, fmt.Sprintf("%d ns after a multiple of 256", off), "GridEdge", none,
				from(epoch+off, waiting(gcraLimiter(script, 1, 1000, 3), epoch+off, 0, 1, 1, 1, 1, 3, 2, 1))})
	}
	grid.tests = append(grid.tests,
		test{211, "a rested key 1 ns after a multiple of 256", "GridEdge", none, from(epoch+1, calls(0, 0))},
		test{210, "a call at each ns around the refill", "GridEdge LateRefill", none,
			from(epoch, calls(3, 0), every(6, 1, 997, 1), every(6, 1, 1021, 1))})

	seconds := group{comment: "7 a second, bursts of 2, around a second's edge", argv: gcraArgv(7, second, 2)}
	for i, at := range []int64{-1, 0, 1, -142857143, -142857142, 999999999, 90000000, 9, -second} {
		seconds.tests = append(seconds.tests,
			test{220 + i, fmt.Sprintf("the first call %d ns after it", at), "SecondEdge", none,
				from(epoch+at, waiting(gcraLimiter(script, 7, second, 2), epoch+at, 0, 1, 1, 1, 2))})
	}

	far := group{comment: "a TAT that is far ahead of the clock", argv: gcraArgv(10, second, 2)}
	for i, s := range []struct {
		comment    string
		tat, nowNs int64
	}{
		{"2^53 - 1 ns", epoch + 1<<53 - 1, epoch},
		{"2^53 ns", epoch + 1<<53, epoch},
		{"2^53 + 1 ns", epoch + 1<<53 + 1, epoch},
		{"2^54 + 3 ns", epoch + 1<<54 + 3, epoch + 77},
		{"from 1970 to 2026", epoch, 0},
		{"from 1970 to 2026, to the nanosecond", epoch + 123456789, 1},
		{"to 2^61", 1 << 61, epoch},
		{"to 2^61 + 1", 1<<61 + 1, epoch},
		{"to 2^63 - 1", math.MaxInt64, epoch},
		{"from 1970 to 2^63 - 1 - 4096", math.MaxInt64 - 4096, 0},
		{"2^53 + 2 ns", epoch + 1<<53 + 2, epoch},
		{"2^53 ns less 77", epoch + 1<<53, epoch + 77},
		{"2^53 ns more than one unit, less 77", epoch + 1<<53 + 1e8, epoch + 77},
		{"2^52 ns and a second, less 77", epoch + 1<<52 + second, epoch + 77},
		{"from 1970 to 2^63 - 2048, the longest wait", math.MaxInt64 - 2047, 0},
	} {
		far.tests = append(far.tests,
			test{240 + i, s.comment, "FarWait", tat(s.tat).expiring(), from(s.nowNs, calls(0, 0, 1, 0, 3, 0))})
	}
	far.tests = append(far.tests,
		test{255, "to 2^63", "FarWait", holding("9223372036854775808").expiring(),
			from(epoch, calls(0, 0, 1, 0, 3, 0))},
		test{256, "to 10^19 - 1", "FarWait", holding("9999999999999999999").expiring(),
			from(epoch, calls(0, 0, 1, 0, 3, 0))})

	last := group{comment: "one each 2^52 ns, by the last clocks that there are", argv: gcraArgv(1, 1<<52, 1)}
	last.tests = []test{
		{195, "2^63 - 1 - 2^52", "ClockLimit", none, from(math.MaxInt64-1<<52, calls(1, 0, 0, 0))},
		{196, "2^63 - 2^52", "ClockLimit", none, from(math.MaxInt64-1<<52+1, calls(1, 0, 0, 0))},
	}
	return []group{limits, grid, seconds, far, last}
}

// gcraSeconds are clocks and TATs of 2^31 s (2038) and more.
func gcraSeconds() group {
	const s31, s32 = second << 31, second << 32
	g := group{comment: "10 a second, bursts of 2, at seconds of 2^31 and more", argv: gcraArgv(10, second, 2)}
	for i, c := range []struct {
		comment string
		startNs int64
	}{
		{"2^31 s - 1 ns", s31 - 1}, {"2^31 s - 100 ms", s31 - 100*ms}, {"2^31 s", s31},
		{"2^31 s + 1 s - 100 ms", s31 + 900*ms},
		{"2^32 s - 100 ms", s32 - 100*ms}, {"2^32 s", s32},
	} {
		g.tests = append(g.tests, test{400 + i, "a clock of " + c.comment, "Year2038", none,
			from(c.startNs, calls(1, 0, 1, 0, 1, 0, 1, 1e8-1, 1, 1e8, 0, 1e8+1))})
	}
	g.tests = append(g.tests,
		test{410, "a TAT of 2^31 s, read and written", "Year2038", tat(s31),
			from(s31-100*ms, calls(0, 0, 1, 0, 1, 0, 1, 100*ms))},
		test{411, "a TAT of 2^31 s - 1 ns, of which the next is past it", "Year2038 SecondEdge", tat(s31 - 1),
			from(s31-100*ms, calls(0, 0, 1, 0, 1, 0, 1, 100*ms))},
		test{412, "a TAT of 2^31 s that is over", "Year2038", tat(s31), from(s31+second, calls(0, 0, 2, 0, 1, 0))},
	)
	return g
}

// gcraChanges are limits that change on a key in use, and states of the other version.
func gcraChanges() []group {
	const e = epoch
	return []group{{
		comment: "a limit that changes on a key in use: the debt stays, as time",
		tests: []test{
			{300, "the burst is lowered: the debt is above what the new one may owe", "LiveChange", none, []request{
				limited(10, second, 10, 10, e), limited(10, second, 5, 0, e), limited(10, second, 5, 1, e+600*ms)}},
			{301, "the burst is raised: its new part is there at once", "LiveChange", none, []request{
				limited(10, second, 10, 10, e), limited(10, second, 20, 11, e), limited(10, second, 20, 10, e)}},
			{302, "the amount is raised tenfold: the debt is worth ten times the units", "LiveChange", none, []request{
				limited(10, second, 10, 5, e), limited(100, second, 100, 0, e), limited(100, second, 100, 51, e),
				limited(100, second, 100, 50, e)}},
			{303, "the amount is lowered to a tenth: the debt is worth a tenth", "LiveChange", none, []request{
				limited(100, second, 100, 50, e), limited(10, second, 10, 0, e), limited(10, second, 10, 5, e),
				limited(10, second, 10, 1, e)}},
			{304, "the period is made longer", "LiveChange", none, []request{
				limited(10, second, 10, 5, e), limited(10, 60*second, 10, 0, e), limited(10, 60*second, 10, 9, e),
				limited(10, 60*second, 10, 1, e)}},
			{305, "the period is made shorter: the old debt is refused until it is paid", "LiveChange", none, []request{
				limited(10, 60*second, 10, 5, e), limited(10, second, 10, 0, e), limited(10, second, 10, 1, e),
				limited(10, second, 10, 1, e+29100*ms-1), limited(10, second, 10, 1, e+29100*ms)}},
			{306, "to a limit that the cost does not fit, and back", "LiveChange UnfittableStatus", none, []request{
				limited(10, second, 10, 1, e), limited(10, second, 5, 6, e), limited(10, second, 10, 6, e)}},
			{307, "remaining stays within the new burst", "LiveChange", none, []request{
				limited(100, second, 100, 1, e), limited(100, second, 3, 0, e), limited(100, second, 3, 0, e+second)}},
			{308, "a debt of 52 days, then one second's limit", "LiveChange WideNumbers", none, []request{
				limited(1, 1<<52, 1, 1, e), limited(10, second, 10, 1, e), limited(10, second, 10, 0, e)}},
		},
	}, {
		comment: "one each 1100 ns, bursts of 4, on a state that the other version wrote or may have",
		argv:    gcraArgv(1, 1100, 4),
		tests: []test{
			{320, "a TAT on the grid, as gcra_v1 writes", "MixedVersions", tat(e + 3*1280),
				from(e, calls(0, 0, 1, 0, 1, 0, 1, 1100, 1, 1280))},
			{321, "a TAT 1 ns above the grid", "MixedVersions GridEdge", tat(e + 3*1280 + 1),
				from(e, calls(0, 0, 1, 0, 1, 1, 1, 256, 1, 512))},
			{322, "a TAT 1 ns below the grid", "MixedVersions GridEdge", tat(e + 4*1280 - 1),
				from(e, calls(0, 0, 1, 0, 1, 1100, 1, 1279, 1, 1280))},
			{323, "a TAT as gcra_v2 writes", "MixedVersions", tat(e + 3*1100),
				from(e, calls(0, 0, 1, 0, 1, 0, 1, 1100, 1, 1280))},
			{324, "a full debt as gcra_v2 writes, refused to the nanosecond", "MixedVersions", tat(e + 77 + 4*1100),
				from(e+77, calls(0, 0, 1, 0, 1, 1099, 1, 1100, 1, 1280, 4, 6000))},
			{325, "a TAT of the second before, off the grid", "MixedVersions SecondEdge", tat(e - 1),
				from(e, calls(0, -2, 0, -1, 4, 0, 1, 0))},
			{326, "a TAT that rounds up to the next second", "MixedVersions SecondEdge", tat(e - 255),
				from(e-256, calls(0, 0, 4, 0, 1, 0, 1, 256, 1, 1280))},
			{327, "a TAT just below 2^60", "MixedVersions ClockEdge", tat(1<<60 - 1),
				from(1<<60-2048, calls(0, 0, 2, 0, 1, 0, 1, 2048))},
			{328, "a TAT of three digits", "MixedVersions", holding("999"), from(1, calls(0, 0, 3, 0, 1, 0, 1, 1100))},
			{329, "a TAT of ten digits", "MixedVersions SecondEdge", holding("1000000001"),
				from(second-1, calls(0, 0, 3, 0, 1, 0, 1, 1100, 1, 2560))},
		},
	}}
}
