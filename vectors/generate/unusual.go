package generate

import (
	"fmt"

	"github.com/tatami-rate/tatami/precision"
)

// Tests in a setting that is not usual: a server's clock that is said, commands that the
// server refuses, another number of keys, a server of 32 bits. The refused SET names the
// expiry that it was asked for, to the second: PTTL does not, as a runner takes its time.

// serverUs is a server's clock a few seconds into windows of a minute and of a day.
const serverUs = 1_780_000_085_123_456

// gcraSettings are those of gcra.
func gcraSettings(script precision.Script) []group {
	const t = serverUs * us
	argv := gcraArgv(10, second, 20)
	said := usual.at(serverUs)
	groups := []group{{
		comment: "10 a second, bursts of 20, by a server's clock of 1780000085.123456 s",
		argv:    argv, setting: said,
		tests: []test{
			{600, "the TAT is that of the clock's seconds and us", "ServerClock", none,
				[]request{by("1"), by("0"), by("19", ""), by("1")}},
			{601, "the TAT lies in the next second", "ServerClock SecondEdge", none, []request{by("10"), by("0")}},
			{602, "the wait is right to the nanosecond", "ServerClock CoarseRetry", tat(t + 2*second + 1),
				[]request{by("1"), by("0"), by("21")}},
		},
	}, {
		comment: "one each 256 ns, bursts of 3, by a server's clock of 1780000085.000001 s",
		argv:    gcraArgv(1, 256, 3), setting: usual.at(1_780_000_085_000_001),
		tests: []test{{603, "the nanoseconds of the TAT begin with zeros", "ServerClock SecondEdge", none,
			[]request{by("1"), by("2"), by("1")}}},
	}, {
		comment: "10 a second, bursts of 20, by a server's clock of 1780000085.123456 s, where SET is refused",
		argv:    argv, setting: said.refusing("SET"),
		tests: []test{
			{610, "the TAT lies in the clock's second", "RefusedWrite ShortTTL", none, []request{by("1")}},
			{611, "the TAT lies in the next second", "RefusedWrite ShortTTL", none, []request{by("10")}},
			{612, "the TAT lies two seconds on", "RefusedWrite ShortTTL", none, []request{by("19")}},
			{613, "the TAT stays in its second", "RefusedWrite KeptExpiry", tat(t + 1).expiring(), []request{by("1")}},
			{614, "the TAT leaves its second", "RefusedWrite KeptExpiry", tat(t + second - 200*ms).expiring(),
				[]request{by("1")}},
		},
	}, {
		comment: "10 a second, bursts of 20, by callers' clocks, where SET is refused",
		argv:    argv, setting: usual.refusing("SET"),
		tests: []test{
			{615, "the TAT lies in the clock's second", "RefusedWrite ShortTTL", none, from(epoch, calls(1, 0))},
			{616, "the TAT lies in the next second", "RefusedWrite ShortTTL", none, from(epoch, calls(10, 0))},
			{617, "the TAT stays in its second", "RefusedWrite KeptExpiry", tat(epoch + 1).expiring(),
				from(epoch, calls(1, 0))},
		},
	}, {
		comment: "10 a second, bursts of 20, by a server's clock of 0.5 s, where SET is refused",
		argv:    argv, setting: usual.at(500000).refusing("SET"),
		tests: []test{{609, "the TAT lies in the clock's second", "RefusedWrite ShortTTL", none, []request{by("1")}}},
	}, {
		comment: "10 a second, bursts of 20, by a server's clock of 1 s, where SET is refused",
		argv:    argv, setting: usual.at(1e6).refusing("SET"),
		tests: []test{{618, "the TAT lies two seconds on", "RefusedWrite ShortTTL", none, []request{by("20")}}},
	}, {
		comment: "10 a second, bursts of 20, by a server's clock of 1000.5 s, where SET is refused",
		argv:    argv, setting: usual.at(1000.5e6).refusing("SET"),
		tests: []test{{619, "a TAT of 13 digits stays in its second", "RefusedWrite KeptExpiry",
			holding("1000500000001").expiring(), []request{by("1")}}},
	}, {
		comment: "10 a second, bursts of 20, where TIME is refused",
		argv:    argv, setting: usual.refusing("TIME"),
		tests: []test{
			{620, "now_ns is absent or empty", "ServerClock", tat(epoch).expiring(),
				[]request{by("1"), by("1", ""), by("0"), by("21"), by("-1")}},
			{621, "a caller's clock needs no TIME", "ServerClock", none, from(epoch, calls(1, 0))},
		},
	}, {
		comment: "10 a second, bursts of 20, by a server's clock 1 us before 10^9 s",
		argv:    argv, setting: usual.at(1e15 - 1),
		tests: []test{{622, "a TAT may have 18 digits", "ForeignNumber", holding("999999999999999999").expiring(),
			[]request{by("0"), by("1")}}},
	}, {
		comment: "10 a second, bursts of 20, by a server's clock of 10^9 s",
		argv:    argv, setting: usual.at(1e15),
		tests: []test{{623, "a TAT has 19 digits", "ForeignNumber", holding("999999999999999999").expiring(),
			[]request{by("0"), by("1")}}},
	}}
	groups = append(groups, otherKeys(argv, tat(epoch).expiring())...)

	narrow := group{comment: "10 a second, bursts of 2, on a server of 32 bits", argv: gcraArgv(10, second, 2),
		setting: usual.on32Bits()}
	for i, c := range []struct {
		comment string
		startNs int64
	}{
		{"today's", epoch}, {"2^31 s - 100 ms", second<<31 - 100*ms}, {"2^31 s", second << 31},
		{"2^32 s - 100 ms", second<<32 - 100*ms}, {"2^31 s and 1 s", second<<31 + second},
	} {
		narrow.tests = append(narrow.tests, test{630 + i, "a clock of " + c.comment, "Year2038", none,
			from(c.startNs, calls(1, 0, 1, 0, 1, 0))})
	}
	groups = append(groups, narrow)

	if script == precision.GCRAV2 {
		credited := func(tatNs, lastNs int64) held { return holding(fmt.Sprintf("%d 5 %d", tatNs, lastNs)).expiring() }
		groups = append(groups, group{
			comment: "10 a second, bursts of 20, by a server's clock of 1000.5 s, where SET is refused, with credit",
			argv:    argv, setting: usual.at(1000.5e6).refusing("SET"),
			tests: []test{
				{640, "last is raised within its second", "RefusedWrite KeptExpiry Credit",
					credited(1000600*ms, 1000650*ms), []request{by("1")}},
				{641, "last is raised to the next second", "RefusedWrite KeptExpiry Credit",
					credited(1000950*ms, 1000960*ms), []request{by("1")}},
				{642, "last stays, ahead of the TAT", "RefusedWrite KeptExpiry Credit",
					credited(1000950*ms, 1002*second), []request{by("1")}},
			},
		})
	}
	return groups
}

// otherKeys are calls that name no key, or two.
func otherKeys(argv string, key held) []group {
	var groups []group
	for i, keys := range []string{noKey, keysAndFirst} {
		groups = append(groups, group{
			comment: []string{"calls that name no key", "calls that name two keys"}[i],
			argv:    argv, setting: &Setting{Keys: keys},
			tests: []test{{650 + i, "the script takes one key", "LooseArgument", key,
				[]request{by("1", decimal(epoch)), by("0", decimal(epoch)), by("1")}}},
		})
	}
	return groups
}

// windowSettings are those of windows. One of 1500000001 ns ends at no whole second.
func windowSettings() []group {
	const odd = 1_500_000_001
	index := func(periodNs int64) int64 { return serverUs * us / periodNs }
	said := usual.at(serverUs)
	groups := []group{{
		comment: "300 in a sliding window of a minute, by a server's clock of 1780000085.123456 s",
		argv:    windowArgv(300, minute, sliding), setting: said,
		tests: []test{
			{600, "the time left is that of the clock's seconds and us", "ServerClock", none,
				[]request{by("300"), by("1"), by("0", ""), by("301")}},
			{601, "counts of the window before", "ServerClock PreviousWeight",
				holdingCounts(index(minute)-1, 7, 200, minute).expiring(), []request{by("120"), by("100")}},
			{602, "the clock is a window behind: the expiry stays", "ServerClock ClockBackwards KeptExpiry",
				holdingCounts(index(minute)+1, 5, 7, minute).expiring(), []request{by("1"), by("293")}},
		},
	}}
	for i, mode := range []string{fixed, sliding} {
		id := 501 + 20*i
		groups = append(groups, group{
			comment: "300 in a " + mode + " window of a day, by a server's clock of 1780000085.123456 s",
			argv:    windowArgv(300, day, mode), setting: said,
			tests: []test{
				{id + 0, "the expiry stays while the window does", "KeptExpiry", none,
					[]request{by("1"), by("1").after("30000"), by("298"), by("1")}},
				{id + 1, "a key without expiry has none until the window changes", "KeptExpiry NoExpiry", none,
					[]request{by("1"), by("1").after(noExpiry)}},
				{id + 3, "a refused call, a look and one that never fits leave value and expiry",
					"ServerClock ChargedRefusal WrittenLook UnfittableStatus", none,
					[]request{by("300"), by("1").after("30000"), by("0"), by("301")}},
			},
		})
	}
	for i, periodNs := range []int64{minute, odd} {
		id, now := 610+10*i, serverUs*us
		argv := windowArgv(300, periodNs, sliding)
		of := fmt.Sprintf("300 in a sliding window of %d ns, where SET is refused, by ", periodNs)
		groups = append(groups, group{
			comment: of + "a server's clock of 1780000085.123456 s",
			argv:    argv, setting: said.refusing("SET"),
			tests: []test{
				{id + 0, "the first call", "RefusedWrite ShortTTL", none, []request{by("1")}},
				{id + 1, "a window goes on", "RefusedWrite KeptExpiry",
					holdingCounts(index(periodNs), 5, 7, periodNs).expiring(), []request{by("1")}},
				{id + 2, "a window comes after another", "RefusedWrite KeptExpiry",
					holdingCounts(index(periodNs)-1, 5, 7, periodNs).expiring(), []request{by("1")}},
				{id + 3, "the clock is a window behind", "RefusedWrite KeptExpiry ClockBackwards",
					holdingCounts(index(periodNs)+1, 5, 7, periodNs).expiring(), []request{by("1")}},
			},
		}, group{
			comment: of + "callers' clocks",
			argv:    argv, setting: usual.refusing("SET"),
			tests: []test{
				{id + 4, "the first call", "RefusedWrite ShortTTL", none, []request{by("1", decimal(now))}},
				{id + 5, "a window goes on", "RefusedWrite KeptExpiry",
					holdingCounts(index(periodNs), 5, 7, periodNs).expiring(), []request{by("1", decimal(now))}},
				{id + 6, "the clock is a window behind", "RefusedWrite ShortTTL ClockBackwards",
					holdingCounts(index(periodNs)+1, 5, 7, periodNs).expiring(), []request{by("1", decimal(now))}},
				{id + 7, "the window begins with the call", "RefusedWrite ShortTTL", none,
					[]request{by("1", decimal(index(periodNs)*periodNs))}},
			},
		})
	}
	argv := windowArgv(300, minute, sliding)
	key := holdingCounts(epoch/minute, 5, 7, minute).expiring()
	groups = append(groups, group{
		comment: "300 in a sliding window of a minute, where TIME is refused",
		argv:    argv, setting: usual.refusing("TIME"),
		tests: []test{
			{630, "now_ns is absent or empty", "ServerClock", key,
				[]request{by("1"), by("1", ""), by("0"), by("301"), by("-1")}},
			{631, "a caller's clock needs no TIME", "ServerClock", none, from(epoch, calls(1, 0))},
		},
	})
	groups = append(groups, otherKeys(argv, key)...)
	return append(groups, group{
		comment: "3 in a fixed window of 2^52 ns, on a server of 32 bits",
		argv:    windowArgv(3, 1<<52, fixed), setting: usual.on32Bits(),
		tests: []test{{635, "an expiry of 104 days", "Year2038 ShortTTL", none, from(epoch, calls(1, 0, 3, 0))}},
	})
}
