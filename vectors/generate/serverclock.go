package generate

import (
	"fmt"
	"strings"
)

// Tests by the server's clock, and of the expiry.

// over is a TAT before each clock of a test by the server's clock, and late one after it.
const (
	over = 1_000_000_000_000_000_000 // 2001
	late = 2_300_000_000_000_000_000 // 2042, which gcra_v1 takes too
)

// gcraServerClock are calls without now_ns. An interval of 256 ns is on gcra_v1's grid,
// and a TAT on a whole us, or on the grid point after it, stays in its second by one more.
func gcraServerClock() []group {
	const hour = 3600 * second / 256
	half, whole, nearly, unfittable, oneSecond := decimal(hour/2), decimal(hour), decimal(hour-1), decimal(hour+1),
		decimal(second/256)
	groups := []group{{
		comment: "an hour's worth of units, each 256 ns, by the server's clock",
		argv:    gcraArgv(1, 256, hour),
		tests: []test{
			{500, "the expiry is 2 s more than from the clock's second to that of the TAT",
				"ServerClock ShortTTL TTLWithoutCost", none, []request{by(half)}},
			{501, "the expiry stays while the TAT's second does, and is set when that changes", "KeptExpiry", none,
				[]request{by(half), by("1").after("30000"), by(oneSecond)}},
			{502, "a key without expiry has none until the TAT's second changes", "KeptExpiry NoExpiry", none,
				[]request{by(half), by("1").after(noExpiry), by(oneSecond)}},
			{503, "the least expiry is 2 s", "ServerClock ShortTTL", none, []request{by("1")}},
			{504, "a refused call, a look and one that never fits leave value and expiry",
				"ServerClock ChargedRefusal WrittenLook UnfittableStatus", none,
				[]request{by(nearly), by(whole).after("30000"), by("0"), by(unfittable)}},
			{505, "a TAT that is over, and its expiry, are set anew", "KeptExpiry", tat(over).expiring(),
				[]request{by("0"), by(half)}},
			{506, "a TAT that is over, without expiry, gets one", "NoExpiry", tat(over), []request{by("0"), by(half)}},
			{507, "a TAT of 2042 is refused until then", "ServerClock FarWait", tat(late).expiring(),
				[]request{by("0"), by("1")}},
			{508, "a caller's clock sets the expiry on every write, in the TAT's second too", "KeptExpiry", none,
				[]request{by("1", decimal(epoch)), by("1", decimal(epoch)).after("30000"),
					by("1", decimal(epoch)).after(noExpiry)}},
			{509, "a caller's clock of 2042 after the server's, and the server's again",
				"ServerClock KeptExpiry FarWait", none,
				[]request{by(half), by(half, decimal(late)), by("1").after("30000")}},
		},
	}}

	numbers := group{comment: "a number of less than 19 digits is no TAT of the server's clock",
		argv: "300 60000000000 60"}
	asks := []request{by("0"), by("1"), by("61"), by("1", "")}
	for i, text := range []string{
		"0", "1", "57", "999999999", "1000000000", "178000008050000000", "999999999999999999",
	} {
		numbers.tests = append(numbers.tests,
			test{460 + i, "the key holds " + text, "ForeignNumber", holding(text).expiring(), asks})
	}
	numbers.tests = append(numbers.tests,
		test{470, "a caller's clock may be so early: to it 57 is a TAT", "ForeignNumber MixedVersions",
			holding("57").expiring(),
			[]request{by("1"), by("0", decimal(epoch)), by("1"), by("1", "0")}},
		test{471, "the smallest number of 19 digits is a TAT", "ForeignNumber LongIdle", holding(decimal(over)),
			[]request{by("0"), by("60")}},
		test{472, "20 digits are none", "LooseState", holding("10000000000000000000").expiring(), asks},
		test{473, "19 digits with a leading zero are none", "LooseState", holding("0780000080500000000").expiring(),
			asks},
		test{474, "a text is none", "LooseState", holding("hello").expiring(), asks},
		test{475, "a list is none", "LooseState", list.expiring(), asks},
		test{476, "counts of a window are none", "LooseState", holdingCounts(epoch/minute, 5, 7, minute).expiring(),
			asks},
	)
	return append(groups, numbers)
}

// windowExpiry are calls without now_ns, in windows of a day. They answer alike when midnight
// comes between them; others are in unusual.go, by a clock that is said.
func windowExpiry() []group {
	var groups []group
	for i, mode := range []string{fixed, sliding} {
		id := 500 + 20*i
		now := decimal(epoch)
		groups = append(groups, group{
			comment: "300 in a " + mode + " window of a day, by the server's clock",
			argv:    windowArgv(300, day, mode),
			tests: []test{
				{id + 0, "the expiry is 1 s more than to the end of the next window", "ServerClock ShortTTL", none,
					[]request{by("1")}},
				{id + 3, "counts of long ago, without expiry, get one", "NoExpiry LongIdle",
					holdingCounts(1, 300, 300, day), []request{by("0"), by("300")}},
				{id + 5, "a caller's clock sets the expiry on every write, in the same window too", "KeptExpiry", none,
					[]request{by("1", now), by("1", now).after("30000"), by("1", now).after(noExpiry)}},
				{id + 6, "counts of another period are not the window's", "OtherPeriod",
					holdingCounts(1, 300, 300, minute).expiring(), []request{by("0"), by("1"), by("301")}},
				{id + 7, "a list, a text and a TAT are no counts: a list", "LooseState", list.expiring(),
					[]request{by("0"), by("1"), by("301")}},
				{id + 8, "a list, a text and a TAT are no counts: a TAT", "LooseState", tat(over).expiring(),
					[]request{by("0"), by("1"), by("301")}},
			},
		})
	}
	return groups
}

// gcraCredit are states of limits_v1, which has given units back: gcra_v2 reads them and
// keeps the credit, gcra_v1 refuses them.
func gcraCredit() group {
	const e = epoch
	zeros := func(n int) string { return strings.Repeat("0", n) }
	g := group{
		comment: "a TAT with credit: gcra_v2 decides by the TAT and keeps the credit, gcra_v1 refuses it",
		argv:    "300 60000000000 60",
		tests: []test{
			{420, "an admission raises the TAT and last, and leaves the credit", "Credit", credited(e, "5000", e),
				from(e, calls(0, 0, 1, 0, 60, 0, 59, 0))},
			{421, "last ahead of the TAT stays, and the expiry is that of last", "Credit ShortTTL",
				credited(e, "7", e+12*second).expiring(), from(e, calls(1, 0, 1, 0))},
			{422, "last is the new TAT already", "Credit", credited(e, "7", e+second), from(e, calls(5, 0))},
			{423, "last is 1 ns after the new TAT", "Credit SecondEdge", credited(e, "7", e+second+1),
				from(e, calls(5, 0))},
			{424, "last is 1 ns before the new TAT", "Credit SecondEdge", credited(e, "7", e+second-1),
				from(e, calls(5, 0))},
			{425, "a TAT that is over keeps its credit", "Credit LongIdle",
				credited(e-100*second, "123456789", e-90*second), from(e, calls(0, 0, 60, 0))},
			{426, "last before the TAT is raised", "Credit", credited(e+second, "5", e), from(e, calls(0, 0, 1, 0))},
			{427, "a refused call, a look and one that never fits leave value and expiry",
				"Credit ChargedRefusal WrittenLook UnfittableStatus",
				credited(e+11*second, "5", e+12*second).expiring(), from(e, calls(60, 0, 0, 0, 61, 0))},
			{428, "a TAT of 0", "Credit", credited(0, "5", 1), from(e, calls(0, 0, 1, 0))},
			{429, "the last clock that is a last", "Credit WideNumbers", credited(e, "5", 9223372036854775807),
				from(e, calls(1, 0))},
			{430, "a credit of 24 digits", "Credit WideNumbers", credited(e, "1"+zeros(23), e), from(e, calls(1, 0))},
			{431, "a credit of 25 digits", "Credit WideNumbers", credited(e, "9"+zeros(24), e), from(e, calls(1, 0))},
			{432, "a credit of 100 digits", "Credit WideNumbers", credited(e, "9"+zeros(99), e), from(e, calls(1, 0))},
			{433, "last of 20 digits", "Credit LooseState",
				holding(decimal(e) + " 5 10000000000000000000").expiring(), from(e, calls(0, 0, 1, 0, 61, 0))},
			{434, "a TAT of 20 digits", "Credit LooseState",
				holding("10000000000000000000 5 " + decimal(e)).expiring(), from(e, calls(0, 0, 1, 0, 61, 0))},
			{435, "last of 18 digits", "Credit ShortTTL",
				credited(999_999_990*second, "5", 999_999_999_999_999_999), from(999_999_990*second, calls(1, 0))},
			{436, "last is 150 ms before the new TAT", "Credit SecondEdge", credited(e+5500*ms, "5", e+5550*ms),
				from(e, calls(1, 0))},
			{437, "last is 50 ms after the new TAT", "Credit SecondEdge", credited(e+5700*ms, "5", e+5950*ms),
				from(e, calls(1, 0))},
			{438, "last is 1 ns after the new TAT, in the next second", "Credit SecondEdge",
				credited(e+800*ms-1, "5", e+second), from(e, calls(1, 0))},
			{440, "by the server's clock", "Credit ServerClock", credited(over, "5", over+1),
				[]request{by("0"), by("1")}},
			{441, "by the server's clock the expiry stays while last does", "Credit KeptExpiry",
				credited(over, "5", late).expiring(), []request{by("1"), by("1").after(noExpiry)}},
			{442, "by the server's clock last has 19 digits", "Credit ForeignNumber",
				holding(decimal(over) + " 5 57").expiring(),
				[]request{by("0"), by("1"), by("61"), by("0", decimal(e))}},
			{443, "by the server's clock the TAT has 19 digits", "Credit ForeignNumber",
				holding("57 5 " + decimal(over)).expiring(),
				[]request{by("0"), by("1"), by("61"), by("0", decimal(e))}},
		},
	}
	for i, text := range []string{
		"1 2", "1 2 3 4", "01 2 3", "1 02 3", "1 2 03", "1 0 3", "1 2 0", "1  2 3", "1 2  3", " 1 2 3", "1 2 3 ", "1 2 3\n",
		"1\t2\t3", "-1 2 3", "1 -2 3", "1 2 -3", "1 2 3x", "1 2.0 3", "1 1e3 3", "1 ", "1  ", " ", " 5 7",
	} {
		g.tests = append(g.tests,
			test{700 + i, fmt.Sprintf("the key holds %q", text), "Credit LooseState", holding(text).expiring(),
				from(e, calls(0, 0, 1, 0, 61, 0))})
	}
	return g
}
