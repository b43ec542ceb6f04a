package generate

import (
	"fmt"
	"strings"

	"github.com/tatami-rate/tatami/precision"
)

// windowArgv is a group's arguments, the period in ns.
func windowArgv(amount, periodNs int64, mode string) string {
	return strings.Join([]string{decimal(amount), decimal(periodNs), mode}, " ")
}

// windowed is a call with its own limit.
func windowed(amount, periodNs int64, mode string, cost, nowNs int64) request {
	return by(decimal(amount), decimal(periodNs), mode, decimal(cost), decimal(nowNs))
}

const fixed, sliding = "fixed", "sliding"

const minute = 60 * second

func windowTables() []group {
	const eight = 8 * second
	groups := []group{{
		comment: "10 in a fixed window of 8 s",
		argv:    windowArgv(10, eight, fixed),
		tests: []test{
			{1, "cost 3 at 0, 1, 2, 4, 8, 9 and 10 s: 18 units in ten seconds", "WindowBoundary", none,
				from(epoch, calls(3, 0, 3, second, 3, 2*second, 3, 4*second, 3, 8*second, 3, 9*second, 3, 10*second))},
			{2, "6 in the window before count for nothing", "PreviousWeight",
				holdingCounts(epoch/eight, 6, 6, eight), from(epoch+6*second, calls(3, 0))},
		},
	}, {
		comment: "10 in a sliding window of 8 s",
		argv:    windowArgv(10, eight, sliding),
		tests: []test{
			{3, "6 in the window before, 6 in this one, 6 s into it: cost 3 is refused", "PreviousWeight",
				holdingCounts(epoch/eight, 6, 6, eight), from(epoch+6*second, calls(3, 0, 2, 0))},
			{4, "what the window before had fades to nothing", "PreviousWeight",
				holdingCounts(epoch/eight-1, 0, 10, eight),
				from(epoch, calls(0, 0, 1, 0, 0, 800*ms-1, 0, 800*ms, 0, 4*second, 0, 8*second-1, 0, 8*second))},
			{5, "a call just before a window's end weighs in full after it", "PreviousWeight WindowBoundary", none,
				from(epoch, calls(10, 8*second-1, 1, 8*second, 1, 8800*ms-1, 1, 8800*ms))},
		},
	}}
	for i, mode := range []string{fixed, sliding} {
		id := 20 + 60*i
		limit := windowLimiter(10, second, mode)
		groups = append(groups, group{
			comment: "10 in a " + mode + " window of 1 s",
			argv:    windowArgv(10, second, mode),
			tests: []test{
				{id + 0, "ten at one instant and no unit more", "BurstOffByOne", none, from(epoch, again(11, 1, 0))},
				{id + 1, "20 calls in one microsecond: exactly 10", "BurstOffByOne", none,
					from(epoch, again(20, 1, 999*us))},
				{id + 2, fmt.Sprintf("ten before a boundary and ten after it: %d", []int{20, 10}[i]),
					"PreviousWeight WindowBoundary", none,
					from(epoch, every(10, 1, 900*ms, 10*ms), every(10, 1, 1000*ms, 10*ms))},
				{id + 3, fmt.Sprintf("30 a second for ten seconds: %d", []int{100, 91}[i]),
					"PreviousWeight WindowBoundary", none,
					from(epoch, thin(windowLimiter(10, second, mode), thirty()))},
				{id + 4, fmt.Sprintf("10 a second for ten seconds: %d", []int{100, 91}[i]),
					"PreviousWeight WindowBoundary", none, from(epoch, every(100, 1, 0, 100*ms))},
				{id + 5, fmt.Sprintf("silence to 900 ms, then 500 a second for two seconds: %d", []int{30, 28}[i]),
					"PreviousWeight WindowBoundary", none,
					from(epoch, thin(windowLimiter(10, second, mode), every(1000, 1, 900*ms, 2*ms)))},
				{id + 6, "6 admitted, 5 refused, 4 admitted, 1 refused", "ChargedRefusal", none,
					from(epoch, calls(6, 0, 5, 0, 4, 0, 1, 0))},
				{id + 7, "a refused call leaves value and expiry", "ChargedRefusal",
					holdingCounts(epoch/second, 0, 8, second).expiring(), from(epoch, calls(3, 0, 3, 1, 2, 2))},
				{id + 8, "refused calls do not push the wait away", "ChargedRefusal", none,
					from(epoch, calls(10, 0), every(10, 1, 0, 100*ms), calls(1, second, 1, 1100*ms))},
				{id + 9, "cost 0 on a fresh key creates nothing", "WrittenLook", none, from(epoch, calls(0, 0))},
				{id + 10, "cost 0 on a key that is half used, then empty", "WrittenLook", none,
					from(epoch, calls(5, 0, 0, 0, 5, 0, 0, 0, 1, 0))},
				{id + 11, "cost 0 on a key in use moves no expiry", "WrittenLook",
					holdingCounts(epoch/second, 3, 8, second).expiring(), from(epoch, calls(0, 0, 0, second))},
				{id + 31, "cost 0 is refused where the counts are above the amount, and moves no expiry",
					"WrittenLook", holdingCounts(epoch/second, 0, 12, second).expiring(),
					from(epoch, calls(0, 0, 0, second-1))},
				{id + 12, "cost 0 in the next window does not roll the state", "WrittenLook",
					holdingCounts(epoch/second, 3, 8, second), from(epoch, calls(0, second, 0, 2*second))},
				{id + 13, "amount + 1 on a fresh key can never be admitted, and creates nothing",
					"UnfittableStatus", none, from(epoch, calls(11, 0))},
				{id + 14, "amount + 1 on a used key, and on one that has rested", "UnfittableStatus", none,
					from(epoch, calls(1, 0, 11, 0, 11, 10*second))},
				{id + 15, "the largest cost there is can never be admitted", "UnfittableStatus WideNumbers", none,
					from(epoch, calls(1<<52, 0, 1, 0, 1<<52, 0))},
				{id + 16, "the whole amount with one unit spent is refused, not unfittable", "UnfittableStatus",
					none, from(epoch, calls(1, 0, 10, 0))},
				{id + 17, "a window begins at a multiple of the period", "WindowBoundary", none,
					from(epoch, calls(10, second-1, 1, second-1, 1, second, 1, second+1))},
				{id + 18, "the last nanosecond of a window and the first of the next", "WindowBoundary", none,
					from(epoch, calls(5, 0, 5, second-1, 0, second-1, 0, second, 0, 2*second-1, 0, 2*second))},
				{id + 19, "a window without a call between two", "PreviousWeight", none,
					from(epoch, calls(10, 0, 0, 2*second-1, 0, 2*second, 10, 2*second))},
				{id + 20, "a full key without expiry refuses, recovers, and gets an expiry", "NoExpiry",
					holdingCounts(epoch/second, 0, 10, second), from(epoch, calls(1, 0, 1, second, 1, 2*second))},
				{id + 21, "counts of long ago, without expiry, are over", "NoExpiry LongIdle",
					holdingCounts(epoch/second-5, 10, 10, second), from(epoch, calls(0, 0, 10, 0))},
				{id + 22, "the expiry covers both counters", "ShortTTL TTLWithoutCost", none,
					from(epoch, calls(1, 1, 1, second-1))},
				{id + 23, "the wait named is right to the nanosecond", "CoarseRetry", none,
					from(epoch+1, waiting(limit, epoch+1, 0, 7, 4, 9, 10))},
				{id + 24, "reset_after falls to 0", "WindowBoundary", none,
					from(epoch, calls(1, 0, 0, second-1, 0, second, 0, 2*second-1, 0, 2*second))},
				{id + 25, "a clock 1 ms behind, around a boundary, in turns", "ClockBackwards", none,
					from(epoch, calls(6, ms, 6, -ms, 4, ms, 4, -ms, 1, ms, 1, -ms, 1, 2*ms, 1, -1))},
				{id + 26, "a clock a minute behind, one ns more, and an hour", "ClockBackwards", none,
					from(epoch, calls(10, 0, 0, -minute, 0, -minute-1, 0, -3600*second, 1, -minute, 1, 0))},
				{id + 27, "a clock one window behind, and two", "ClockBackwards", none,
					from(epoch, calls(7, 0, 0, -second, 0, -2*second, 4, -second, 3, -2*second, 1, 0))},
				{id + 28, "a clock 1 ns behind a full window, and the wait until it has passed",
					"ClockBackwards CoarseRetry", none, from(epoch, calls(10, 0, 1, -1, 1, second-1, 1, second))},
				{id + 29, "a clock that goes back to 0 and comes again", "ClockBackwards", none,
					from(0, calls(10, epoch, 0, 0, 1, 0, 1, epoch))},
				{id + 30, "two clocks 5 s apart, in turns", "ClockBackwards", none,
					from(epoch,
						calls(1, 10*second, 1, 5*second, 1, 10*second, 1, 5*second, 8, 10*second, 8, 5*second,
							1, 16*second))},
			},
			streams: []stream{{900 + i, "each call as soon as its wait is over", "WindowBoundary Drift",
				"1780000080123456789", 1000}},
		})
	}
	groups = append(groups, group{
		comment: "10 in a sliding window of 60 s",
		argv:    windowArgv(10, minute, sliding),
		tests: []test{
			{150, "9 at 59 s, one more at 60.5 s and no other", "PreviousWeight", none,
				from(epoch, again(9, 1, 59*second), again(2, 1, 60500*ms))},
			{151, "10 at 1970, one a day later: 9 are left", "LongIdle", none,
				from(0, again(10, 1, 0), calls(1, 1e8*ms))},
			{152, "two gateways a second apart around a boundary, and a wait by the slower clock",
				"ClockBackwards EarliestRetry", none,
				from(epoch, calls(10, minute, 1, 59*second, 1, 126*second-1, 1, 126*second))},
			{153, "a call that is admitted puts off an expiry that comes before its units are back", "ShortTTL",
				holdingCounts(epoch/minute, 0, 3, minute).expiring(), from(epoch, calls(1, 0))},
		},
	}, group{
		comment: "60 in a sliding window of 60 s",
		argv:    windowArgv(60, minute, sliding),
		tests: []test{
			{155, "60 before, 12 now, 12 s into the window: one unit fits a second later", "EarliestRetry",
				holdingCounts(epoch/minute, 60, 12, minute),
				from(epoch, calls(1, 12*second, 1, 13*second-1, 1, 13*second, 1, 60*second))},
			{156, "the window is full by itself: one unit fits a second into the next", "EarliestRetry",
				holdingCounts(epoch/minute, 0, 60, minute),
				from(epoch, calls(1, 12*second, 1, 60*second, 1, 61*second-1, 1, 61*second, 1, 120*second))},
			{157, "60 before: all 60 fit only when the window is over", "EarliestRetry",
				holdingCounts(epoch/minute-1, 0, 60, minute), from(epoch, calls(60, 0, 60, minute-1, 60, minute))},
		},
	}, group{
		comment: "1 in a sliding window of 1 s",
		argv:    windowArgv(1, second, sliding),
		tests: []test{{158, "one is admitted, the next when it has faded", "BurstOffByOne EarliestRetry", none,
			from(epoch, waiting(windowLimiter(1, second, sliding), epoch, 0, 1, 1, 1))}},
	})
	groups = append(groups, windowRanges()...)
	groups = append(groups, windowClocks()...)
	groups = append(groups, windowChanges())
	good := []string{"300", "60000000000", sliding, "1", decimal(epoch)}
	groups = append(groups,
		hostileArguments([]string{"amount", "period_ns", "mode", "cost", "now_ns"}, good,
			holdingCounts(epoch/minute, 5, 7, minute)),
		group{
			comment: "amounts and modes that are refused, and say what to do",
			tests: []test{
				{160, "an amount of 65535", "LooseArgument", none,
					[]request{windowed(65535, minute, fixed, 65535, epoch),
						windowed(65535, minute, fixed, 1, epoch)}},
				{161, "an amount of 65536", "LooseArgument", none, []request{windowed(65536, minute, fixed, 1, epoch)}},
				{162, "an amount of 100000", "LooseArgument", none,
					[]request{windowed(100000, minute, sliding, 1, epoch)}},
				{163, "the mode Fixed", "LooseArgument", none, []request{windowed(10, minute, "Fixed", 1, epoch)}},
				{164, "a mode with a space after it", "LooseArgument", none,
					[]request{windowed(10, minute, "sliding ", 1, epoch)}},
				{165, "a burst in place of the mode", "LooseArgument", none,
					[]request{windowed(10, minute, "60", 1, epoch)}},
			},
		},
		hostileState(precision.WindowV1, "300 60000000000 sliding", 301), group{
			comment: "the server's clock",
			argv:    windowArgv(300, minute, sliding),
			tests: []test{
				{1490, "now_ns is absent", "ServerClock", none, []request{by("0")}},
				{1492, "now_ns is empty", "ServerClock", none, []request{by("0", "")}},
				{1493, "now_ns is absent in a call that never fits", "ServerClock UnfittableStatus", none,
					[]request{by("301")}},
				{1494, "counts of long ago count for nothing", "ServerClock LongIdle",
					holdingCounts(1, 300, 300, minute), []request{by("0"), by("0", "")}},
				{1495, "a call that never fits, without now_ns, moves no expiry", "ServerClock ChargedRefusal",
					holdingCounts(1, 300, 300, minute).expiring(), []request{by("301")}},
			},
		})
	groups = append(groups, windowPeriods()...)
	groups = append(groups, windowExpiry()...)
	groups = append(groups, windowSettings()...)
	return groups
}

// windowRanges are limits at the ends of their ranges, and streams.
func windowRanges() []group {
	one := func(id int, comment, flags string, amount, periodNs int64, mode string, startNs int64,
		lists ...[]call) group {
		return group{comment: comment, argv: windowArgv(amount, periodNs, mode),
			tests: []test{{id, comment, flags, none, from(startNs, lists...)}}}
	}
	wait := func(id int, comment, flags string, amount, periodNs int64, mode string, startNs int64,
		costs ...int64) group {
		return one(id, comment, flags, amount, periodNs, mode, startNs,
			waiting(windowLimiter(amount, periodNs, mode), startNs, 0, costs...))
	}
	const long = 45 * day // epoch lies 18 days into one
	groups := []group{
		wait(200, "a fixed window of 1 ns", "WindowBoundary", 2, 1, fixed, epoch+7, 2, 1, 2, 1),
		wait(201, "a sliding window of 1 ns", "WindowBoundary", 2, 1, sliding, epoch+7, 2, 1, 2, 1),
		wait(202, "a fixed window of 2^52 ns", "WideNumbers", 65535, 1<<52, fixed, epoch, 65535, 1, 65535, 1),
		wait(203, "a sliding window of 2^52 ns", "WideNumbers RoundedProducts EarliestRetry", 65535, 1<<52, sliding,
			epoch, 65535, 1, 2, 3, 65535),
		wait(204, "a sliding window of 2^52 - 1 ns", "WideNumbers RoundedProducts EarliestRetry", 65534, 1<<52-1,
			sliding, epoch+1, 65534, 1, 2, 3, 4, 5),
		wait(205, "a sliding window of a prime of ns", "RoundedProducts EarliestRetry", 997, 7919, sliding, epoch,
			997, 1, 500, 3, 997, 1),
		wait(206, "a sliding window of 2^26 + 1 ns", "RoundedProducts EarliestRetry", 65521, 1<<26+1, sliding,
			epoch, 65521, 1, 1000, 65000, 1),
		wait(207, "a sliding window of 1 us", "RoundedProducts EarliestRetry", 7, 1000, sliding, epoch+999, 7, 1, 2,
			3, 7),
		wait(208, "a fixed window of a day", "WindowBoundary", 1000, day, fixed, epoch, 1000, 1, 999, 2),
		wait(209, "a sliding window of 45 days, one unit below the amount before", "RoundedProducts EarliestRetry",
			60000, long, sliding, epoch,
			59999, 2, 1, 1, 1, 2, 3, 4, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47),
		one(210, "a fixed window of 7919 ns, called each 500 ns", "InexactModulo", 5, 7919, fixed, epoch,
			every(48, 1, 0, 500)),
		one(211, "a sliding window of 7919 ns, called each 1500 ns", "InexactModulo", 5, 7919, sliding, epoch,
			every(24, 1, 0, 1500)),
		one(212, "a fixed window of 1000003 ns, around its boundary", "InexactModulo WindowBoundary", 3, 1000003, fixed,
			(epoch/1000003+1)*1000003, calls(3, -1, 1, -1, 1, 0, 2, 0, 1, 1000002, 1, 1000003)),
		one(213, "a fixed window of 52 days less a prime, around its boundary", "InexactModulo WindowBoundary", 3,
			4503599627370449, fixed,
			396*4503599627370449, calls(3, -1, 1, -1, 1, 0, 2, 0)),
		one(214, "a sliding window around its boundary, to the nanosecond", "WindowBoundary PreviousWeight", 4,
			1000003, sliding,
			(epoch/1000003+1)*1000003, calls(4, -1, 1, -1, 1, 0, 1, 250000, 1, 250001, 0, 500001, 0, 500002)),
	}
	const wide = 2345678901234567 // 8044 of 65535 parts of it are not 8044 in doubles
	groups = append(groups,
		one(215, "an index whose quotient is below it in doubles", "InexactModulo", 5, 1665839744348101, fixed,
			3247211084*second, calls(1, 0)),
		group{comment: "65535 in a sliding window of " + decimal(wide) + " ns", argv: windowArgv(65535, wide, sliding),
			tests: []test{{216, "what is carried is above a whole number, and below it in doubles", "RoundedProducts",
				holdingCounts(epoch/wide-1, 0, 65535, wide), from(epoch/wide*wide, calls(0, wide-287917007423985))}}})
	for i, s := range []struct {
		comment          string
		flags            string
		amount, periodNs int64
		mode             string
		startNs          int64
	}{
		{"a sliding window of 7919 ns", "InexactModulo Drift", 5, 7919, sliding, epoch + 1},
		{"a fixed window of 7919 ns", "InexactModulo Drift", 5, 7919, fixed, epoch + 1},
		{"a sliding window of 1 s across 2^60", "ClockEdge Drift", 97, 1000003, sliding, 1<<60 - 3000000},
		{"a sliding window across 2^61", "ClockEdge Drift", 97, 1000003, sliding, 1<<61 - 3000000},
		{"a sliding window of 45 days", "RoundedProducts Drift", 60000, long, sliding, epoch},
		{"a sliding window whose index comes round", "IndexWrap Drift", 5, 1000003, sliding, 1000003<<32 - 10000000},
	} {
		groups = append(groups, group{comment: s.comment, argv: windowArgv(s.amount, s.periodNs, s.mode),
			streams: []stream{{910 + i, "each call as soon as its wait is over: " + s.comment, s.flags,
				decimal(s.startNs), 1000}}})
	}
	return groups
}

// windowClocks are clocks at the edges of numbers, indexes that come round, and far
// waits.
func windowClocks() []group {
	limits := group{comment: "3 in a sliding window of 1000003 ns", argv: windowArgv(3, 1000003, sliding)}
	for i, c := range []struct {
		comment string
		startNs int64
	}{
		{"0", 0}, {"1", 1}, {"999999999", 999999999}, {"10^9", second}, {"2^53 - 1", 1<<53 - 1},
		{"2^53 + 1", 1<<53 + 1},
		{"2^60 - 1", 1<<60 - 1}, {"2^60 + 1", 1<<60 + 1}, {"2^61 - 1", 1<<61 - 1}, {"2^61 + 1", 1<<61 + 1},
		{"2^61 + 255", 1<<61 + 255}, {"2^62 - 10^9", 1<<62 - second}, {"2^62 - 10^9 + 1", 1<<62 - second + 1},
	} {
		limits.tests = append(limits.tests, test{250 + i, "a clock of " + c.comment, "ClockEdge", none,
			from(c.startNs, waiting(windowLimiter(3, 1000003, sliding), c.startNs, 0, 1, 2, 1, 3, 0))})
	}
	for i, c := range []struct{ comment, now string }{
		{"2^62 - 1", "4611686018427387903"}, {"2^62", "4611686018427387904"}, {"2^62 + 1", "4611686018427387905"},
		{"2^63 - 1", "9223372036854775807"}, {"2^63", "9223372036854775808"}, {"10^19 - 1", "9999999999999999999"},
		{"10^19, of 20 digits", "10000000000000000000"}, {"19 digits with leading zeros", "0000000000000000001"},
		{"20 digits with leading zeros", "00000000000000000001"},
	} {
		limits.tests = append(limits.tests,
			test{270 + i, "a clock of " + c.comment, "ClockLimit", none,
				[]request{by("3", c.now), by("1", c.now), by("0", c.now)}})
	}
	for i, c := range []struct {
		comment string
		startNs int64
	}{{"2^31 s - 1 ns", second<<31 - 1}, {"2^31 s", second << 31}, {"2^32 s - 1 ns", second<<32 - 1},
		{"2^32 s", second << 32}} {
		limits.tests = append(limits.tests, test{290 + i, "a clock of " + c.comment, "Year2038", none,
			from(c.startNs, waiting(windowLimiter(3, 1000003, sliding), c.startNs, 0, 1, 2, 1, 3, 0))})
	}
	for i, at := range []int64{-1, 1, 999999999, 90000000, 9, -second} {
		limits.tests = append(limits.tests,
			test{280 + i, fmt.Sprintf("the first call %d ns after a second's edge", at), "SecondEdge", none,
				from(epoch+at, waiting(windowLimiter(3, 1000003, sliding), epoch+at, 0, 1, 2, 1, 3))})
	}

	wrap := group{comment: "5 in a fixed window of 1000 ns, whose index comes round at 4294967296000 ns",
		argv: windowArgv(5, 1000, fixed)}
	const round = int64(1000) << 32
	wrap.tests = []test{
		{300, "the last window and the first", "IndexWrap", none, from(round, calls(4, -1, 1, -1, 1, -1, 4, 0, 2, 0))},
		{301, "the same index a round later is taken for the same window", "IndexWrap", none,
			from(0, calls(5, 500, 1, 500, 1, round+500))},
		{302, "half a round later the counts are over", "IndexWrap", none,
			from(0, calls(5, 500, 0, round/2-1000, 0, round/2, 5, round/2+1000))},
		{303, "a round later and one window", "IndexWrap", none, from(0, calls(5, 500, 0, round+1500))},
		{304, "a clock behind over the round", "IndexWrap ClockBackwards", none,
			from(round, calls(5, 0, 0, -1, 1, -1, 0, 0))},
	}
	slide := group{comment: "5 in a sliding window of 1000 ns, whose index comes round at 4294967296000 ns",
		argv: windowArgv(5, 1000, sliding)}
	slide.tests = []test{
		{305, "the counts of the last window weigh in the first", "IndexWrap PreviousWeight", none,
			from(round, calls(5, -1, 1, 0, 1, 200, 1, 999))},
		{306, "the largest index there is, held by a key", "IndexWrap", holdingCounts(1<<32-1, 2, 3, 1000),
			from(round, calls(0, -1, 0, 0, 1, 0))},
	}

	short := group{comment: "5 in a fixed window of 20 ns, of which 2^31 are less than a minute",
		argv: windowArgv(5, 20, fixed)}
	const half = int64(20) << 31
	short.tests = []test{
		{307, "a clock 2^31 windows behind", "IndexWrap ClockBackwards", none,
			from(epoch, calls(4, 0, 0, -half, 1, -half, 1, -half))},
		{308, "a clock 1000 windows less than 2^31 ahead", "IndexWrap", none, from(epoch, calls(5, 0, 5, half-20000))},
	}

	seconds := group{comment: "5 in a fixed window of 1 s, whose index is 2^31 in 2038 and comes round in 2106",
		argv: windowArgv(5, second, fixed)}
	seconds.tests = []test{
		{295, "the index passes 2^31", "Year2038", none, from(second<<31, calls(4, -1, 1, -1, 1, -1, 4, 0, 2, 0))},
		{296, "the index comes round", "IndexWrap", none, from(second<<32, calls(4, -1, 1, -1, 1, -1, 4, 0, 2, 0))},
	}

	far := group{comment: "3 in a sliding window of 2^52 ns", argv: windowArgv(3, 1<<52, sliding)}
	const index = epoch >> 52
	far.tests = []test{
		{310, "the stored window begins 52 days from now", "FarWait ClockBackwards",
			holdingCounts(index+1, 1, 3, 1<<52).expiring(), from(index<<52, calls(0, 0, 1, 0, 3, 0))},
		{311, "the stored window begins 1 ns from now", "FarWait ClockBackwards WideNumbers",
			holdingCounts(index+1, 1, 2, 1<<52).expiring(), from((index+1)<<52, calls(0, -1, 3, -1, 1, -1))},
		{312, "the stored window begins 52 days from now, less 3 ns", "FarWait ClockBackwards",
			holdingCounts(index+1, 2, 3, 1<<52).expiring(), from(index<<52+3, calls(0, 0, 1, 0, 2, 0))},
		{313, "the stored window is full", "WideNumbers EarliestRetry", holdingCounts(index, 3, 3, 1<<52),
			from(index<<52+1, calls(1, 0, 2, 0, 3, 0))},
	}
	far.tests = append(far.tests,
		test{314, "the whole amount fits when all of the next window has passed", "FarWait WideNumbers", none,
			from(index<<52, calls(1, 0, 3, 0))})
	near := group{comment: "3 in a sliding window of 2^51 ns", argv: windowArgv(3, 1<<51, sliding)}
	near.tests = []test{{315, "the stored window begins 26 days from now", "FarWait ClockBackwards",
		holdingCounts(epoch>>51+1, 1, 1, 1<<51).expiring(), from(epoch>>51<<51+5, calls(0, 0, 3, 0))}}
	return []group{limits, wrap, slide, short, seconds, far, near}
}

// windowChanges are limits that change on a key in use, and counts that it may hold.
func windowChanges() group {
	const index = epoch / second
	return group{
		comment: "a limit that changes on a key in use: the counts stay",
		tests: []test{
			{320, "50 of 100 used, lowered to 10: nothing is left", "LiveChange", none, []request{
				windowed(100, second, fixed, 50, epoch), windowed(10, second, fixed, 0, epoch),
				windowed(10, second, fixed, 1, epoch),
				windowed(10, second, fixed, 10, epoch+second)}},
			{321, "the same when sliding", "LiveChange", none, []request{
				windowed(100, second, sliding, 50, epoch), windowed(10, second, sliding, 0, epoch),
				windowed(10, second, sliding, 1, epoch+second),
				windowed(10, second, sliding, 1, epoch+1820*ms-1), windowed(10, second, sliding, 1, epoch+1820*ms)}},
			{322, "raised from 10 to 100", "LiveChange", none, []request{
				windowed(10, second, sliding, 10, epoch), windowed(100, second, sliding, 91, epoch),
				windowed(100, second, sliding, 90, epoch)}},
			{323, "from fixed to sliding", "LiveChange", none, []request{
				windowed(10, second, fixed, 6, epoch), windowed(10, second, fixed, 6, epoch+second),
				windowed(10, second, sliding, 0, epoch+1500*ms),
				windowed(10, second, sliding, 2, epoch+1500*ms), windowed(10, second, sliding, 1, epoch+1500*ms)}},
			{324, "from sliding to fixed", "LiveChange", none, []request{
				windowed(10, second, sliding, 10, epoch), windowed(10, second, sliding, 1, epoch+second),
				windowed(10, second, fixed, 10, epoch+second)}},
			{325, "a longer period is refused, and leaves the counts", "LiveChange OtherPeriod", none, []request{
				windowed(10, second, fixed, 10, epoch), windowed(10, minute, fixed, 10, epoch)}},
			{326, "a shorter period is refused, and leaves the counts", "LiveChange OtherPeriod", none, []request{
				windowed(10, minute, fixed, 10, epoch), windowed(10, second, fixed, 10, epoch)}},
			{327, "a longer period is refused, and the one before goes on", "LiveChange OtherPeriod", none, []request{
				windowed(10, minute, fixed, 10, epoch), windowed(10, 3600*second, fixed, 1, epoch),
				windowed(10, minute, fixed, 1, epoch)}},
			{328, "a limit below the cost, and back", "LiveChange UnfittableStatus", none, []request{
				windowed(10, second, sliding, 1, epoch), windowed(5, second, sliding, 6, epoch),
				windowed(10, second, sliding, 6, epoch)}},
			{329, "lowered below what the window before had", "LiveChange EarliestRetry",
				holdingCounts(index-1, 0, 100, second), []request{
					windowed(10, second, sliding, 0, epoch), windowed(10, second, sliding, 1, epoch),
					windowed(10, second, sliding, 1, epoch+910*ms-1),
					windowed(10, second, sliding, 1, epoch+910*ms)}},
			{330, "counts of 65535, the most that a key holds", "LiveChange WideNumbers",
				holdingCounts(index, 65535, 65535, second), []request{
					windowed(10, second, sliding, 0, epoch), windowed(65535, second, sliding, 1, epoch),
					windowed(65535, second, sliding, 1, epoch+second+second/2)}},
			{345, "counts of this window", "StateLayout", holdingCounts(index, 3, 4, second), []request{
				windowed(10, second, sliding, 0, epoch), windowed(10, second, sliding, 3, epoch),
				windowed(10, second, fixed, 3, epoch)}},
			{346, "counts of the window before", "StateLayout", holdingCounts(index-1, 9, 4, second), []request{
				windowed(10, second, sliding, 0, epoch), windowed(10, second, sliding, 6, epoch),
				windowed(10, second, sliding, 1, epoch)}},
			{347, "counts of the window after", "StateLayout ClockBackwards", holdingCounts(index+1, 3, 4, second),
				[]request{
					windowed(10, second, sliding, 0, epoch), windowed(10, second, sliding, 4, epoch),
					windowed(10, second, fixed, 3, epoch)}},
			{349, "counts of the window after, of 256 and more", "StateLayout ClockBackwards",
				holdingCounts(index+1, 513, 770, second), []request{
					windowed(2000, second, sliding, 0, epoch), windowed(2000, second, sliding, 1, epoch),
					windowed(2000, second, fixed, 1, epoch)}},
			{348, "counts of two windows ago", "StateLayout LongIdle", holdingCounts(index-2, 9, 9, second), []request{
				windowed(10, second, sliding, 0, epoch), windowed(10, second, sliding, 10, epoch)}},
		},
	}
}

// windowPeriods are periods that share a key.
func windowPeriods() []group {
	const index, longer = epoch / second, second + 1<<32
	ask := func(periodNs, nowNs int64) []request {
		return []request{
			windowed(10, periodNs, sliding, 0, nowNs), windowed(10, periodNs, fixed, 0, nowNs),
			windowed(10, periodNs, sliding, 1, nowNs), windowed(10, periodNs, fixed, 1, nowNs),
			windowed(10, periodNs, fixed, 11, nowNs),
		}
	}
	return []group{{
		comment: "a key with counts of another period: nothing is admitted, nothing is written",
		tests: []test{
			{350, "1 s, asked by a minute", "OtherPeriod", holdingCounts(index, 3, 4, second).expiring(),
				ask(minute, epoch)},
			{351, "a minute, asked by 1 s", "OtherPeriod", holdingCounts(epoch/minute, 3, 4, minute).expiring(),
				ask(second, epoch)},
			{352, "1 s, asked by 1 ns more", "OtherPeriod", holdingCounts(index, 3, 4, second).expiring(),
				ask(second+1, epoch)},
			{353, "2^52 ns, which is 0 mod 2^32, asked by 1 s", "OtherPeriod",
				holdingCounts(epoch>>52, 3, 4, 1<<52).expiring(), ask(second, epoch)},
			{354, "counts that are over", "OtherPeriod LongIdle", holdingCounts(index-5, 3, 4, second).expiring(),
				ask(minute, epoch)},
			{355, "counts of the window before", "OtherPeriod", holdingCounts(index-1, 3, 4, second).expiring(),
				ask(minute, epoch)},
			{356, "counts of 0", "OtherPeriod", holdingCounts(index, 0, 0, second).expiring(), ask(minute, epoch)},
			{357, "counts without expiry", "OtherPeriod NoExpiry", holdingCounts(index, 3, 4, second),
				ask(minute, epoch)},
			{358, "100 in 1 s and 5 in a minute, in turns", "OtherPeriod", none, []request{
				windowed(100, second, fixed, 60, epoch), windowed(5, minute, fixed, 1, epoch),
				windowed(100, second, fixed, 40, epoch),
				windowed(5, minute, fixed, 1, epoch), windowed(100, second, fixed, 1, epoch),
				windowed(5, minute, fixed, 1, epoch+second),
				windowed(100, second, fixed, 100, epoch+second)}},
			{359, "periods that are equal mod 2^32 look alike", "OtherPeriod",
				holdingCounts(epoch/longer, 3, 4, second), []request{
					windowed(10, longer, fixed, 0, epoch), windowed(10, longer, fixed, 6, epoch),
					windowed(10, longer, fixed, 1, epoch)}},
			{360, "the period of the state is the call's, mod 2^32", "OtherPeriod StateLayout", none, []request{
				windowed(10, longer, fixed, 1, epoch), windowed(10, 1<<52, fixed, 1, epoch),
				windowed(10, longer, sliding, 1, epoch)}},
		},
	}}
}
