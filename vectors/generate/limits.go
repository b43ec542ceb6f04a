package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/precision"
)

// The tables of limits_v1. A key's arguments are written as one text.
const (
	bucket   = "gcra 300 60000000000 60 " // a unit each 200 ms, 12 s in all
	window10 = "sliding 10 1000000000 "
	fixed10  = "fixed 10 1000000000 "
	unit     = 200 * ms // of bucket
)

// limitArgs are the arguments of a key: kind amount period_ns burst cost receipt, of which a
// window has no burst, and an ask no receipt.
func limitArgs(text string) []string {
	fields := strings.SplitN(text, " ", 6)
	if fields[0] != "gcra" {
		fields = strings.SplitN(text, " ", 5)
		fields = slices.Insert(fields, 3, "")
	}
	if len(fields) == 5 {
		fields = append(fields, "")
	}
	return fields
}

// at is a call of limits_v1 by a caller's clock, so many ns after epoch.
func at(afterNs int64, keys ...string) request { return atClock(decimal(epoch+afterNs), keys...) }

// atServer is a call of limits_v1 by the server's clock.
func atServer(keys ...string) request { return atClock("", keys...) }

func atClock(now string, keys ...string) request {
	argv := []string{now}
	for _, key := range keys {
		argv = append(argv, limitArgs(key)...)
	}
	return by(argv...)
}

// paid is the receipt of an ask that left the TAT so many ns after epoch.
func paid(afterNs int64) string { return decimal(epoch + afterNs) }

// credited is a key with a TAT, the sum of what was given back, and the last TAT.
func credited(tatNs int64, credit string, lastNs int64) held {
	return holding(fmt.Sprintf("%d %s %d", tatNs, credit, lastNs))
}

func limitsTables() []group {
	return slices.Concat(limitsTogether(), limitsSettled(), limitsSettledWindows(), limitsSettings(), limitsHostile(),
		alone(precision.GCRAV2, 10_000, gcraTables(precision.GCRAV2)), alone(precision.WindowV1, 20_000, windowTables()))
}

// alone are the tests of a script of one key, asked as one limit: the id is that of the
// script's file and base. Long ones are left out, and those by a clock that nobody says, which
// have no receipt that is known.
func alone(script precision.Script, base int, groups []group) []group {
	const longestSteps = 30
	var all []group
	for _, g := range groups {
		setting := usual
		if g.setting != nil {
			setting = *g.setting
		}
		made := group{comment: fmt.Sprintf("as %s alone: %s", script, g.comment), setting: g.setting}
		for _, t := range g.tests {
			var steps []request
			for _, r := range t.steps {
				argv := slices.Concat(strings.Fields(g.argv), r.argv)
				if n := len(argv); n < 4 || n > 5 || setting.byItsClock(script, argv) {
					break
				}
				now := ""
				if len(argv) == 5 {
					now = argv[4]
				}
				kind, burst := "gcra", argv[2]
				if script.IsWindow() {
					kind, burst = argv[2], ""
				}
				steps = append(steps, request{[]string{now, kind, argv[0], argv[1], burst, argv[3], ""}, r.expire})
			}
			if len(steps) == len(t.steps) && len(steps) <= longestSteps {
				made.tests = append(made.tests, test{base + t.id, t.comment, t.flags, t.key, steps})
			}
		}
		if made.tests != nil {
			all = append(all, made)
		}
	}
	return all
}

// limitsTogether are asks of several keys.
func limitsTogether() []group {
	one := group{
		comment: "one limit, 300 a minute with bursts of 60",
		tests: []test{
			{1, "an ask is answered as gcra_v2 answers it, and has a receipt", "Receipt BurstOffByOne", none,
				[]request{at(0, bucket+"1"), at(0, bucket+"60"), at(0, bucket+"59"), at(0, bucket+"0"), at(0, bucket+"61")}},
			{2, "what was not used is given back, once", "Settlement", none,
				[]request{at(0, bucket+"50"), at(second, bucket+"-20 "+paid(10*second)), at(second, bucket+"31"),
					at(second, bucket+"30")}},
		},
	}

	const small = "gcra 10 1000000000 10 "
	kinds := []string{small, fixed10, window10}
	pairs := group{comment: "two limits of 10 a second, of each two kinds"}
	for i, a := range kinds {
		for j, b := range kinds {
			names := strings.Fields(a)[0] + " and " + strings.Fields(b)[0]
			pairs.tests = append(pairs.tests,
				test{100 + 3*i + j, names + ": each refuses in turn, both, and neither", "AllOrNothing ChargedRefusal", none.and(none),
					[]request{
						at(0, a+"4", b+"1"), at(0, a+"7", b+"2"), at(0, a+"2", b+"10"), at(0, a+"8", b+"10"), at(0, a+"6", b+"9"),
						at(0, a+"0", b+"0"), at(0, a+"1", b+"0"), at(0, a+"0", b+"1"), at(950*ms, a+"1", b+"1"), at(2*second, a+"10", b+"10"),
					}},
				test{120 + 3*i + j, names + ": one never fits, beside one that fits, is refused, or never fits", "UnfittableStatus AllOrNothing",
					none.and(none),
					[]request{
						at(0, a+"3", b+"4"), at(0, a+"11", b+"1"), at(0, a+"1", b+"11"), at(0, a+"11", b+"10"), at(0, a+"10", b+"11"),
						at(0, a+"11", b+"12"), at(0, a+"7", b+"6"),
					}},
				test{140 + 3*i + j, names + ": a refusal leaves values and expiries", "ChargedRefusal KeptExpiry", none.and(none),
					[]request{
						at(0, a+"10", b+"5"), at(0, a+"1", b+"1").after("30000", "40000"), at(0, a+"0", b+"6"), at(0, a+"0", b+"0"),
						at(0, a+"11", b+"1"),
					}},
			)
		}
	}

	triples := group{comment: "three limits of 10 a second, of each three kinds"}
	for i := range 27 {
		a, b, c := kinds[i/9], kinds[i/3%3], kinds[i%3]
		triples.tests = append(triples.tests, test{160 + i, fmt.Sprintf("the first one binds, then the second, then the third: %s, %s, %s",
			strings.Fields(a)[0], strings.Fields(b)[0], strings.Fields(c)[0]), "AllOrNothing", none.and(none, none),
			[]request{at(0, a+"8", b+"7", c+"6"), at(0, a+"3", b+"1", c+"1"), at(0, a+"1", b+"4", c+"1"), at(0, a+"1", b+"1", c+"5"),
				at(0, a+"3", b+"5", c+"5"), at(0, a+"2", b+"3", c+"4")}})
	}

	waits := group{comment: "limits of several kinds and periods",
		tests: []test{
			{3, "all or nothing: the one that refuses keeps the other from being charged", "AllOrNothing ChargedRefusal", none.and(none),
				[]request{at(0, bucket+"60", "sliding 1000 60000000000 1"), at(0, bucket+"1", "sliding 1000 60000000000 2"),
					at(0, bucket+"0", "sliding 1000 60000000000 2")}},
			{30, "the wait is the longest one, wherever it stands", "AllOrNothing EarliestRetry",
				tat(epoch+12*second).and(tat(epoch+20*second), tat(epoch+15*second)),
				[]request{at(0, bucket+"1", bucket+"1", bucket+"1"), at(0, bucket+"1", bucket+"0", bucket+"2"),
					at(3199*ms, bucket+"1", bucket+"0", bucket+"1"), at(8200*ms-1, bucket+"1", bucket+"1", bucket+"1"),
					at(8200*ms, bucket+"1", bucket+"1", bucket+"1")}},
			{31, "a look at a key in debt refuses the call", "AllOrNothing WrittenLook", tat(epoch + 13*second).and(none),
				[]request{at(0, bucket+"0", window10+"1"), at(second-1, bucket+"0", window10+"1"), at(second, bucket+"0", window10+"1")}},
			{32, "looks alone write nothing", "WrittenLook", tat(epoch+5*second).expiring().and(none, holdingCounts(epoch/second, 5, 7, second)),
				[]request{at(0, bucket+"0", bucket+"0", window10+"0")}},
			{33, "keys that hold something else: the first one is named", "LooseState AllOrNothing",
				none.and(holding("hello").expiring(), list.expiring(), none),
				[]request{at(0, bucket+"1", bucket+"1", bucket+"1", bucket+"1"), at(0, bucket+"1", window10+"1", bucket+"1", bucket+"x")}},
			{34, "a list is named by the server, before what follows it", "LooseState AllOrNothing", none.and(list.expiring(), holding("hello").expiring()),
				[]request{at(0, bucket+"1", bucket+"1", bucket+"1"), at(0, bucket+"1", fixed10+"1", bucket+"1"),
					at(0, bucket+"1", bucket+"1", bucket+"-1"), at(0, bucket+"-1", bucket+"1", bucket+"1")}},
			{35, "counts of another period, and another kind's state", "OtherPeriod LooseState",
				holdingCounts(epoch/minute, 3, 4, minute).expiring().and(tat(epoch + second).expiring()),
				[]request{at(0, window10+"1", bucket+"1"), at(0, bucket+"1", bucket+"1"), at(0, "fixed 10 60000000000 1", fixed10+"1"),
					at(0, "fixed 10 60000000000 1", bucket+"1")}},
			{36, "an argument that is wrong is named before what the keys after it hold", "LooseArgument", none.and(holding("hello")),
				[]request{at(0, "gcra 0 60000000000 60 1", bucket+"1"), at(0, bucket+"1", bucket+"1")}},
			{37, "twelve bytes are a TAT of 1970 to one kind, and no counts to the other", "LooseState", holding("123456789012"),
				[]request{at(0, window10+"1"), at(0, bucket+"1")}},
			{38, "a clock that is too late for one kind", "ClockLimit", none.and(none),
				[]request{atClock("4611686018427387904", bucket+"1", window10+"1"), atClock("4611686018427387904", window10+"1", bucket+"1"),
					atClock("4611686018427387903", bucket+"1", window10+"1"), atClock("9223372036854775807", bucket+"1", bucket+"1"),
					atClock("9223372024854775807", bucket+"60", bucket+"1")}},
			{39, "clocks behind", "ClockBackwards", none.and(none),
				[]request{at(second, bucket+"50", window10+"5"), at(0, bucket+"5", window10+"5"), at(0, bucket+"5", window10+"1"),
					at(-second, bucket+"1", window10+"1"), at(-second, bucket+"0", window10+"0"), at(3*second, bucket+"0", window10+"10")}},
			{40, "far waits", "FarWait ClockBackwards", tat(epoch).and(holdingCounts(epoch>>52+1, 1, 3, 1<<52)),
				[]request{atClock("0", bucket+"1", bucket+"0").after("", ""), at(0, bucket+"1", "sliding 3 4503599627370496 1"),
					atClock(decimal(epoch>>52<<52), bucket+"1", "sliding 3 4503599627370496 3")}},
		},
	}

	waits.tests = append(waits.tests,
		test{42, "a clock of 1 is not the sixth key's cost", "LooseArgument", none.and(none, none, none, none, none),
			[]request{atClock("1", bucket+"2", bucket+"2", bucket+"2", bucket+"2", bucket+"2", bucket+"2")}},
		test{41, "an amount of 1 is not the next key's cost", "LooseArgument AllOrNothing", none.and(none),
			[]request{at(0, "gcra 1 60000000000 60 1", bucket+"5"), at(0, "gcra 1 60000000000 60 0", bucket+"55")}})

	many := group{comment: "many limits"}
	for i, n := range []int{2, 3, 5, 8, 16, 31, 32} {
		var asks, last, first []string
		for j := range n {
			asks = append(asks, kinds[j%3]+decimal(int64(1+j%5)))
			last, first = append(last, kinds[j%3]+"1"), append(first, kinds[j%3]+"1")
		}
		last[n-1], first[0] = kinds[(n-1)%3]+"10", kinds[0]+"10"
		never := slices.Clone(first)
		never[n-1] = kinds[(n-1)%3] + "11"
		many.tests = append(many.tests, test{50 + i, fmt.Sprintf("%d keys: admitted, refused by the last, by the first, never fitting", n),
			"AllOrNothing", none.and(slices.Repeat([]held{none}, n-1)...),
			[]request{at(0, asks...), at(0, last...), at(0, first...), at(0, never...), at(2*second, asks...)}})
	}
	tooMany := slices.Repeat([]string{bucket + "1"}, 33)
	short := at(0, bucket+"1", bucket+"1")
	short.argv = short.argv[:len(short.argv)-1]
	long := at(0, bucket+"1")
	long.argv = append(long.argv, "")
	many.tests = append(many.tests,
		test{60, "33 keys", "LooseArgument", none.and(slices.Repeat([]held{none}, 32)...), []request{at(0, tooMany...)}},
		test{61, "arguments of fewer keys, or of more", "LooseArgument", none.and(none),
			[]request{at(0, bucket+"1"), at(0, tooMany[:3]...), short, by(), by(decimal(epoch))}},
		test{62, "an argument too many of one key", "LooseArgument", none, []request{long, by(), by(decimal(epoch))}},
	)

	again := group{comment: "calls that name the first key twice", setting: &Setting{Keys: keysAndFirst},
		tests: []test{
			{70, "one key", "LooseArgument", tat(epoch).expiring(), []request{at(0, bucket+"1", bucket+"1"), at(0, bucket+"0", window10+"0"),
				at(0, "gcra 0 1 1 1", bucket+"1"), at(0, bucket+"1")}},
			{71, "two keys, and the first", "LooseArgument", tat(epoch).expiring().and(none),
				[]request{at(0, bucket+"1", bucket+"1", bucket+"1"), at(0, bucket+"1", window10+"1", window10+"x"),
					at(0, bucket+"-1 "+paid(0), bucket+"1", bucket+"-1 "+paid(0))}},
			{72, "a key that holds something else is named before", "LooseArgument LooseState", none.and(holding("hello").expiring()),
				[]request{at(0, bucket+"1", bucket+"1", bucket+"1")}},
			{73, "the period of the second naming is not read", "LooseArgument", none.and(none, none),
				[]request{at(0, bucket+"1", bucket+"1", bucket+"1", "gcra 1 x 1 1")}},
		}}
	no := group{comment: "calls that name no key", setting: &Setting{Keys: noKey},
		tests: []test{{75, "there is none", "LooseArgument", tat(epoch).expiring(), []request{by(decimal(epoch)), at(0, bucket+"1"), by()}}}}
	return []group{one, pairs, triples, waits, many, again, no}
}

// limitsSettled are settlements of gcra.
func limitsSettled() []group {
	const s = second
	give := func(units int64, receipt string) string { return bucket + decimal(-units) + " " + receipt }
	more := func(units int64, receipt string) string { return bucket + decimal(units) + " " + receipt }
	zeros := func(n int) string { return strings.Repeat("0", n) }
	early := group{comment: "300 a minute, bursts of 60: what was asked for and not used is given back",
		tests: []test{
			{200, "at once, all of it", "Settlement", none, []request{at(0, bucket+"60"), at(0, give(60, paid(12*s))), at(0, bucket+"60"), at(0, bucket+"1")}},
			{201, "in two parts", "Settlement", none, []request{at(0, bucket+"60"), at(s, give(10, paid(12*s))), at(2*s, give(20, paid(12*s))),
				at(2*s, bucket+"41"), at(2*s, bucket+"40")}},
			{202, "late: what has drained meanwhile is not there any more", "Settlement UsualRefund", none,
				[]request{at(0, bucket+"20"), at(3*s, give(20, paid(4*s))), at(3*s, bucket+"60"), at(3*s, bucket+"1")}},
			{203, "1 ns before it has drained, when it has, and after it", "Settlement UsualRefund", none.and(none, none),
				[]request{at(0, bucket+"20", bucket+"20", bucket+"20"), at(4*s-1, give(20, paid(4*s)), bucket+"0", bucket+"0"),
					at(4*s, bucket+"0", give(20, paid(4*s)), bucket+"0"), at(4*s+1, bucket+"0", bucket+"0", give(20, paid(4*s)))}},
			{204, "late on a busy key: units that drained are not spent twice", "Settlement UsualRefund", none,
				[]request{at(0, bucket+"30"), at(6*s, bucket+"60"), at(6*s, give(30, paid(6*s))), at(6*s, bucket+"1")}},
			{205, "after another's give-back", "Settlement UsualRefund", none,
				[]request{at(0, bucket+"20"), at(0, bucket+"20"), at(s, give(20, paid(8*s))), at(s, give(20, paid(4*s))), at(s, bucket+"59"),
					at(s, bucket+"1"), at(s, give(3, paid(8*s)))}},
			{206, "the other way round", "Settlement", none,
				[]request{at(0, bucket+"20"), at(0, bucket+"20"), at(s, give(20, paid(4*s))), at(s, give(20, paid(8*s))), at(s, bucket+"60")}},
			{207, "asks after a give-back have the credit in their receipts", "Receipt Settlement", none,
				[]request{at(0, bucket+"20"), at(0, give(5, paid(4*s))), at(0, bucket+"20"), at(s, give(20, paid(7*s)+" 1000000000")),
					at(s, give(10, paid(4*s))), at(s, bucket+"1")}},
			{208, "more than was charged is the caller's fault, and ends at what the receipt is worth", "Settlement", none,
				[]request{at(0, bucket+"10"), at(0, bucket+"10"), at(s, give(60, paid(2*s))), at(s, give(1<<52, paid(4*s))), at(s, bucket+"0")}},
			{209, "a settlement of 0 changes nothing", "WrittenLook Settlement", tat(epoch + 5*s).expiring(),
				[]request{at(0, bucket+"0 "+paid(5*s)), at(0, bucket+"-0 "+paid(5*s)), at(0, bucket+"0 0")}},
			{210, "nothing to give back on a key that is gone, or rested", "Settlement", none.and(tat(epoch).expiring()),
				[]request{at(0, give(5, paid(s)), give(5, paid(0))), at(s, give(5, paid(2*s)), give(5, paid(2*s)))}},
			{211, "the state was lost and made again: the old receipt is worth more than there is", "LostState Settlement", none,
				[]request{at(0, bucket+"5"), at(0, give(5, paid(12*s))), at(0, bucket+"0")}},
			{212, "the key expired and was made again: the old receipt has drained", "LostState Settlement", none,
				[]request{at(80*s, bucket+"30"), at(80*s, give(30, paid(12*s))), at(80*s, bucket+"31")}},
			{213, "the state was lost: a receipt with credit, a key without, and with less", "LostState Settlement",
				tat(epoch+10*s).and(credited(epoch+10*s, "999999999", epoch+10*s), credited(epoch+10*s, "1000000000", epoch+10*s)),
				[]request{at(0, give(5, paid(5*s)+" 1000000000"), give(5, paid(5*s)+" 1000000000"), give(5, paid(5*s)+" 1000000000"))}},
			{214, "with another burst in between", "LiveChange Settlement", none,
				[]request{at(0, bucket+"50"), at(s, "gcra 300 60000000000 1 0"), at(10*s, "gcra 300 60000000000 1 1"),
					at(10*s-1, give(20, paid(10*s))), at(10*s, bucket+"60"), at(10*s, bucket+"59")}},
			{215, "with another burst, the key lives until last", "LiveChange ShortTTL Settlement", none,
				[]request{at(0, "gcra 300 60000000000 300 300"), at(30*s, "gcra 300 60000000000 300 -150 "+paid(60*s)),
					at(31*s, "gcra 300 60000000000 1 1"), at(31*s, "gcra 300 60000000000 300 -150 "+paid(60*s))}},
			{216, "the burst of a settlement says what remains", "LiveChange Settlement", none,
				[]request{at(0, bucket+"60"), at(0, "gcra 300 60000000000 30 -40 "+paid(12*s)), at(0, "gcra 300 60000000000 30 -5 "+paid(12*s))}},
			{217, "with another interval: asks of two on one key", "LiveChange Settlement", none,
				[]request{at(0, bucket+"10"), at(0, "gcra 60 60000000000 60 10"), at(s, give(10, paid(2*s))),
					at(s, "gcra 60 60000000000 60 -10 "+paid(12*s)), at(s, bucket+"60")}},
			{218, "applied beside an ask that is refused, and one that never fits", "Settlement AllOrNothing", none.and(none),
				[]request{at(0, bucket+"60", bucket+"60"), at(s, give(30, paid(12*s)), bucket+"6"), at(s, bucket+"60", give(30, paid(12*s))),
					at(s, give(5, paid(12*s)), bucket+"61"), at(s, bucket+"61", give(5, paid(12*s))), at(s, bucket+"40", bucket+"40")}},
			{219, "applied beside an ask that is admitted", "Settlement", none.and(none),
				[]request{at(0, bucket+"60", window10+"10"), at(0, give(30, paid(12*s)), window10+"0"), at(0, bucket+"30", window10+"-5 1780000080"),
					at(0, give(5, paid(12*s)), window10+"5")}},
			{220, "a settlement is 1 where a look is refused", "Settlement", tat(epoch + 13*s).and(tat(epoch + 20*s)),
				[]request{at(0, give(1, paid(0)), bucket+"0 0"), at(0, bucket+"0", give(1, paid(20*s)))}},
			{221, "settlements alone", "Settlement AllOrNothing", tat(epoch+10*s).and(tat(epoch+10*s), tat(epoch+10*s)),
				[]request{at(0, give(5, paid(10*s)), more(5, paid(10*s)), bucket+"0 "+paid(10*s))}},
			{222, "an ask leaves the credit, and raises last", "Credit Settlement", credited(epoch+5*s, "7", epoch+6*s),
				[]request{at(0, bucket+"4"), at(0, bucket+"1"), at(0, bucket+"1"), at(0, give(1, paid(6200*ms)+" 7"))}},
			{223, "last is 1 ns before the new TAT, that, or 1 ns after it", "Credit SecondEdge",
				credited(epoch, "7", epoch+s-1).and(credited(epoch, "7", epoch+s), credited(epoch, "7", epoch+s+1)),
				[]request{at(0, bucket+"5", bucket+"5", bucket+"5"), at(0, more(1, "0"), more(1, "0"), more(1, "0"))}},
			{224, "gcra_v1's and gcra_v2's keys have no credit until something is given back", "Credit MixedVersions", tat(epoch + 3*s).expiring(),
				[]request{at(0, bucket+"1"), at(0, give(1, paid(0))), at(0, give(1, paid(3200*ms))), at(0, bucket+"1")}},
			{225, "a clock that stepped back", "ClockBackwards Settlement", none,
				[]request{at(10*s, bucket+"30"), at(5*s, give(10, paid(16*s))), at(0, give(10, paid(16*s))), at(0, bucket+"1"), at(14*s, bucket+"50")}},
			{226, "a give-back of less than a unit is left, and what remains is whole units", "Settlement", none,
				[]request{at(0, bucket+"1"), at(150*ms, give(1, paid(200*ms))), at(150*ms, bucket+"60"), at(150*ms, bucket+"1")}},
			{227, "one unit each nanosecond", "Settlement HighRate", none,
				[]request{at(0, "gcra 1000000000 1000000000 1000 1000"), at(1, "gcra 1000000000 1000000000 1000 -1 "+paid(1000)),
					at(2, "gcra 1000000000 1000000000 1000 -999 "+paid(1000)), at(2, "gcra 1000000000 1000000000 1000 999")}},
			{228, "a TAT of a clock near 1970", "Settlement SecondEdge", none,
				[]request{atClock("0", bucket+"1"), atClock("0", bucket+"-1 200000000"), atClock("1", bucket+"1"), atClock("2", bucket+"-1 200000001 200000000"),
					atClock("999999999", bucket+"3"), atClock("1000000000", bucket+"-2 1599999999 399999999"), atClock("1000000001", bucket+"-1 1599999999"),
					atClock("1000000001", bucket+"1")}},
			{229, "a receipt of few digits", "Receipt", tat(1_000_000_005).and(tat(5), tat(999_999_999)),
				[]request{atClock("1", bucket+"-1 1000000004", bucket+"-1 4", bucket+"-1 999999999")}},
		},
	}

	over := group{comment: "300 a minute, bursts of 60: what was used beyond what was asked for is charged",
		tests: []test{
			{240, "within the limit", "Settlement", none, []request{at(0, bucket+"10"), at(0, more(5, paid(2*s))), at(0, bucket+"46"), at(0, bucket+"45")}},
			{241, "into debt: the key refuses until it is paid", "Debt", none,
				[]request{at(0, bucket+"60"), at(0, more(60, paid(12*s))), at(0, bucket+"1"), at(0, bucket+"0"), at(12*s-1, bucket+"0"), at(12*s, bucket+"0"),
					at(12200*ms, bucket+"1")}},
			{242, "on a key that rests, or is gone", "Debt Settlement", none.and(tat(epoch - 5*s)), []request{at(0, more(3, paid(0)), more(3, "0")), at(0, bucket+"0", bucket+"0")}},
			{243, "a debt is given back", "Debt Settlement", none, []request{at(0, bucket+"60"), at(0, more(60, paid(12*s))), at(s, give(60, paid(12*s))), at(s, bucket+"0"),
				at(13*s, bucket+"1")}},
			{244, "after a give-back it raises last, and the expiry", "Debt Credit ShortTTL", none,
				[]request{at(0, bucket+"10"), at(0, give(5, paid(2*s))), at(0, more(3, paid(2*s))), at(0, more(10, paid(2*s))), at(0, give(10, paid(2*s)))}},
			{245, "a settlement of 0 in debt", "Debt WrittenLook", tat(epoch + 100*s).expiring(), []request{at(0, bucket+"0 0"), at(0, more(0, paid(s)))}},
			{246, "the debt is cut at 2^53 - 1 ns ahead of the clock", "Debt WideNumbers", none.and(none, tat(epoch+1<<53-2), tat(epoch+1<<53-1)),
				[]request{at(0, more(45035996273, "0"), more(45035996274, "0"), more(1, "0"), more(1, "0")),
					at(0, more(1, "0"), more(1, "0"), more(1, "0"), more(1<<52, "0"))}},
			{247, "a TAT that is further ahead is not lowered", "Debt WideNumbers FarWait", tat(epoch+1<<53).expiring().and(tat(epoch+1<<53+1).expiring(), tat(4_000_000_000*s).expiring()),
				[]request{at(0, more(1, "0"), more(1<<52, "0"), more(1, "0")), at(0, give(1, paid(1<<53)), give(1, paid(1<<53+1)), give(1, "4000000000000000000"))}},
			{248, "the largest use of the longest interval", "Debt WideNumbers", none,
				[]request{at(0, "gcra 1 4503599627370496 1 1"), at(0, "gcra 1 4503599627370496 1 4503599627370496 "+paid(1<<52)), at(0, "gcra 1 4503599627370496 1 0"),
					at(0, "gcra 1 4503599627370496 1 -1 "+paid(1<<52)), at(0, "gcra 1 4503599627370496 1 -4503599627370496 "+paid(1<<52))}},
			{249, "a debt of 2^52 ns and around it, from the last nanosecond of a second", "Debt SecondEdge WideNumbers",
				tat(epoch+1<<52-1).and(tat(epoch+1<<52-1), tat(epoch+1<<52-1), tat(epoch+999_999_999+1<<53-1000)),
				[]request{at(999_999_999, "gcra 1 1 1 1 0", "gcra 1 1 1 1000000000 0", "gcra 1 1 1 1000000001 0", "gcra 1 1 1 999 0"),
					at(999_999_999, "gcra 1 1 1 1 0", "gcra 1 1 1 1 0", "gcra 1 1 1 1 0", "gcra 1 1 1 1 0")}},
			{250, "the same at the last clock that is taken", "Debt ClockLimit", none,
				[]request{atClock("9223372024854775807", more(60, "0")), atClock("9223372024854775807", more(1, "0")), atClock("9223372024854775807", bucket+"0")}},
			{251, "a debt in a settlement that never fits as an ask", "Debt UnfittableStatus", none.and(none),
				[]request{at(0, more(61, "0"), bucket+"1"), at(0, more(1000, "0"), bucket+"61"), at(0, bucket+"0", bucket+"0")}},
		},
	}

	edges := group{comment: "300 a minute, bursts of 60: credit, receipts and TATs at the edges of numbers",
		tests: []test{
			{260, "credit carries into a second", "Credit SecondEdge", credited(epoch+5*s, "1999999999", epoch+5*s).and(
				credited(epoch+5*s, "1799999999", epoch+5*s), credited(epoch+5*s, "1800000000", epoch+5*s), credited(epoch+5*s, "799999999", epoch+5*s),
				credited(epoch+5*s, "800000000", epoch+5*s)),
				[]request{at(0, give(1, paid(5*s)+" 1999999999"), give(1, paid(5*s)+" 1799999999"), give(1, paid(5*s)+" 1800000000"),
					give(1, paid(5*s)+" 799999999"), give(1, paid(5*s)+" 800000000"))}},
			{261, "credit below a second", "Credit SecondEdge", tat(epoch+s).and(credited(epoch+s, "1", epoch+s), credited(epoch+s, "999999998", epoch+s)),
				[]request{at(0, "gcra 1 1 1000 -1 "+paid(s), "gcra 1 1 1000 -1 "+paid(s)+" 1", "gcra 1 1 1000 -1 "+paid(s)+" 999999998"),
					at(0, "gcra 1 1 1000 -999999998 "+paid(s), "gcra 1 1 1000 -999999998 "+paid(s)+" 1", "gcra 1 1 1000 -1 "+paid(s)+" 999999998")}},
			{262, "the nanoseconds of credit, TAT and last begin with zeros", "Credit SecondEdge", credited(epoch+5*s+7, "3000000005", epoch+6*s+9),
				[]request{at(0, give(1, paid(5*s+7)+" 3000000005")), at(0, give(4, paid(5*s+7)+" 3000000005")), at(0, bucket+"1"), at(0, bucket+"20")}},
			{263, "a credit of 2^31 s, and of more", "Credit Year2038", credited(epoch+5*s, "2147483647900000000", epoch+5*s).and(
				credited(epoch+5*s, "2147483648000000000", epoch+5*s), credited(epoch+5*s, "4294967295900000000", epoch+5*s)),
				[]request{at(0, give(1, paid(5*s)+" 2147483647900000000"), give(1, paid(5*s)+" 2147483648000000000"), give(1, paid(5*s)+" 4294967295900000000"))}},
			{264, "a credit of 24 digits, and of 25", "Credit WideNumbers", credited(epoch+5*s, "1"+zeros(23), epoch+5*s).and(
				credited(epoch+5*s, "999999999999999900000000", epoch+5*s), credited(epoch+5*s, "1"+zeros(24), epoch+5*s), credited(epoch+5*s, "1"+zeros(24), epoch+5*s)),
				[]request{at(0, give(1, paid(5*s)+" 1"+zeros(23)), give(1, paid(5*s)+" 999999999999999900000000"), give(1, paid(5*s)+" 1"+zeros(24)), give(1, paid(5*s))),
					at(0, bucket+"1", bucket+"1", bucket+"1", bucket+"1")}},
			{265, "a receipt's credit of 24 digits, 25 and 100", "Receipt WideNumbers", credited(epoch+5*s, "1"+zeros(23), epoch+5*s).and(
				credited(epoch+5*s, "5", epoch+5*s), credited(epoch+5*s, "1"+zeros(99), epoch+5*s)),
				[]request{at(0, give(1, paid(5*s)+" 9"+zeros(23)), give(1, paid(5*s)+" 1"+zeros(24)), give(1, paid(5*s)+" 1"+zeros(99)))}},
			{266, "credit less the receipt's is 2^53 - 1, and 2^53", "Credit WideNumbers", credited(epoch+5*s, "9007199254740991", epoch+5*s).and(
				credited(epoch+5*s, "9007199254740992", epoch+5*s), credited(epoch+5*s, "9007199254740993", epoch+5*s)),
				[]request{at(0, give(1, paid(5*s)), give(1, paid(5*s)+" 1"), give(1, paid(5*s)+" 2")), at(0, give(1, paid(5*s)), give(1, paid(5*s)), give(1, paid(5*s)))}},
			{267, "what a receipt is worth is 2^53 - 1, and 2^53", "Receipt WideNumbers FarWait", tat(epoch+1<<53-1).and(tat(epoch+1<<53), tat(epoch+1<<53+2)),
				[]request{at(0, give(1, paid(1<<53-1)), give(1, paid(1<<53)), give(1, paid(1<<53-1)))}},
			{268, "a difference of 2^53 from which credit is taken", "Receipt WideNumbers FarWait", credited(epoch+1<<53-1, "5", epoch+1<<53).and(
				credited(epoch+1<<53-1, "5", epoch+1<<53)), []request{at(0, give(1, paid(1<<53)), give(1, paid(1<<53)+" 5"))}},
			{269, "worth is what there is, 1 ns less, and 1 ns more", "LostState Receipt", tat(epoch+5*s).and(tat(epoch+5*s), tat(epoch+5*s)),
				[]request{at(0, give(60, paid(5*s)), give(60, paid(5*s-1)), give(60, paid(5*s+1)))}},
			{270, "worth is 1 ns, and nothing, after what was given back", "Settlement Credit", credited(epoch+5*s, "4999999999", epoch+9*s).and(
				credited(epoch+5*s, "5000000000", epoch+9*s), credited(epoch+5*s, "5000000001", epoch+9*s)),
				[]request{at(0, give(60, paid(5*s)), give(60, paid(5*s)), give(60, paid(5*s)))}},
			{271, "TAT, last and receipt beyond 2^31 s", "Year2038", none, []request{
				atClock(decimal(s<<31-100*ms), bucket+"5"), atClock(decimal(s<<31-100*ms), bucket+"-2 "+decimal(s<<31+900*ms)),
				atClock(decimal(s<<31), bucket+"1"), atClock(decimal(s<<31+s), bucket+"20 "+decimal(s<<31+900*ms))}},
			{272, "the largest last and the largest receipt", "WideNumbers", credited(epoch+5*s, "5", 9223372036854775807).and(tat(epoch + 5*s)),
				[]request{at(0, give(1, paid(5*s)+" 5"), bucket+"-1 9999999999999999999"), at(0, bucket+"1", bucket+"-1 9223372036854775807")}},
			{273, "a TAT whose nanoseconds are below what is given back", "SecondEdge Settlement", tat(epoch+5*s+100*ms).and(tat(epoch+5*s+200*ms), tat(epoch+5*s+200*ms-1)),
				[]request{at(0, give(1, paid(5*s+100*ms)), give(1, paid(5*s+200*ms)), give(1, paid(5*s+200*ms-1)))}},
			{274, "all of a TAT below 10^9 ns is given back", "SecondEdge Settlement", none,
				[]request{atClock("5", bucket+"4"), atClock("5", bucket+"-4 800000005"), atClock("5", bucket+"1")}},
			{275, "a state with credit, by a clock near 1970", "Credit SecondEdge", holding("200000000 5 1200000000").and(holding("1200000000 5 1200000001"), holding("0 5 7")),
				[]request{atClock("1", bucket+"-1 200000000 5", bucket+"-1 1200000000 5", bucket+"1"), atClock("2", bucket+"1", bucket+"1", bucket+"-1 200000001 5"),
					atClock("2", bucket+"9 0", bucket+"9 0", bucket+"9 0")}},
		},
	}

	// A reservation of weeks, settled when the key has given back more than 2^53 ns since.
	weeks := test{280, "a reservation of weeks on a busy key, whose credit passes 2^53 ns", "Settlement Credit WideNumbers", none, nil}
	const month = 30 * 24 * 3600 * s
	const monthly = "gcra 1 1 4503599627370496 "
	weeks.steps = append(weeks.steps, at(0, monthly+decimal(month)))
	credit, tatNs := int64(0), int64(month)
	for i := range int64(5) {
		receipt := paid(tatNs + 3*month/5)
		if credit > 0 {
			receipt += " " + decimal(credit)
		}
		weeks.steps = append(weeks.steps, at(i*s, monthly+decimal(3*month/5)), at(i*s, monthly+decimal(-3*month/5)+" "+receipt))
		credit += 3 * month / 5
	}
	weeks.steps = append(weeks.steps, at(5*s, monthly+"-1000000000 "+paid(month)), at(6*s, monthly+"1 "+paid(month)), at(7*s, monthly+"0"))
	edges.tests = append(edges.tests, weeks, cancelled(),
		test{282, "a credit of 25 digits, 1 ns more than the receipt's of 24", "Credit WideNumbers", credited(epoch+5*s, "1"+zeros(24), epoch+5*s),
			[]request{at(0, give(1, paid(5*s)+" "+strings.Repeat("9", 24)))}},
		test{283, "credit less the receipt's is above 2^52, and there is more to give back", "Credit WideNumbers",
			credited(epoch+1<<52, decimal(1<<52+5), epoch+1<<53), []request{at(0, give(1, paid(1<<53-1)))}},
		test{284, "a credit above 2^31 s, whose nanoseconds begin with zeros", "Credit Year2038", credited(epoch+5*s, "2147483647800000007", epoch+5*s),
			[]request{at(0, give(1, paid(5*s)+" 2147483647800000007")), at(0, give(1, paid(5*s)+" 2147483647800000007"))}})

	rates := group{comment: "intervals that are rounded up",
		tests: []test{
			{285, "7 a second: a unit is 142857143 ns", "Settlement FlooredInterval", none,
				[]request{at(0, "gcra 7 1000000000 7 7"), at(0, "gcra 7 1000000000 7 -3 1780000081000000001"), at(1, "gcra 7 1000000000 7 3"),
					at(1, "gcra 7 1000000000 7 2 1780000081000000001"), at(1, "gcra 7 1000000000 7 -2 1780000081000000002 428571429")}},
			{286, "a third of 2^52", "Settlement WideNumbers FlooredInterval", none,
				[]request{at(0, "gcra 3 4503599627370496 2 2"), at(1, "gcra 3 4503599627370496 2 -1 "+paid(3002399751580332)), at(2, "gcra 3 4503599627370496 2 1"),
					at(3, "gcra 3 4503599627370496 2 1 "+paid(3002399751580332))}},
			{287, "the smallest limit there is", "Settlement", none, []request{at(0, "gcra 1 1 1 1"), at(0, "gcra 1 1 1 -1 "+paid(1)), at(0, "gcra 1 1 1 1"),
				at(0, "gcra 1 1 1 1 "+paid(1)+" 1"), at(1, "gcra 1 1 1 -1 "+paid(1)+" 1")}},
		}}
	return []group{early, over, edges, rates}
}

// cancelled are reservations that are all given back: nothing is left of them but credit.
func cancelled() test {
	t := test{281, "ten reservations, each cancelled", "Settlement Credit", none, nil}
	receipt := paid(12 * second)
	for i := range int64(10) {
		t.steps = append(t.steps, at(0, bucket+"60"), at(0, bucket+"-60 "+receipt))
		receipt = paid(12*second) + " " + decimal((i+1)*12*second)
	}
	return t
}

// limitsSettledWindows are settlements of windows.
func limitsSettledWindows() []group {
	const index, s = epoch / second, second
	at0 := func(behind int64) string { return " " + decimal(index-behind) }
	var groups []group
	for i, w := range []string{fixed10, window10} {
		id, kind := 300+60*i, strings.Fields(w)[0]
		long := strings.Replace(w, "1000000000", "4503599627370496", 1)
		groups = append(groups, group{
			comment: "10 in a " + kind + " window of a second: what was not used is given back, and what was used beyond it is charged",
			tests: []test{
				{id, "in the window of the ask", "Settlement Receipt", none, []request{at(0, w+"8"), at(1, w+"-5"+at0(0)), at(2, w+"8"), at(2, w+"7")}},
				{id + 1, "in the next window, and in the one after it", "Settlement PreviousWeight", none,
					[]request{at(0, w+"8"), at(s, w+"-3"+at0(0)), at(s+s/2, w+"7"), at(2*s, w+"-3"+at0(0)), at(2*s, w+"0"), at(3*s, w+"-5"+at0(1)), at(3*s, w+"-1"+at0(-1))}},
				{id + 2, "in two parts, in two windows", "Settlement", none,
					[]request{at(0, w+"8"), at(1, w+"-3"+at0(0)), at(s, w+"2"), at(s, w+"-3"+at0(0)), at(s, w+"-1"+at0(-1)), at(s, w+"0")}},
				{id + 3, "more than was charged ends at 0", "Settlement", none,
					[]request{at(0, w+"5"), at(0, w+"-6"+at0(0)), at(0, w+"0"), at(0, w+"-1"+at0(0)), at(0, w+"10")}},
				{id + 4, "more than was charged in the window before", "Settlement", holdingCounts(index, 5, 4, s).expiring(),
					[]request{at(0, w+"-4503599627370496"+at0(1)), at(0, w+"-1"+at0(1)), at(0, w+"6"), at(0, w+"0")}},
				{id + 5, "counts of 0 are kept, and are a key", "Settlement StateLayout", holdingCounts(index, 0, 5, s).expiring(),
					[]request{at(0, w+"-5"+at0(0)), at(0, w+"0"), at(-s, w+"0"), at(-s, w+"3"), at(0, w+"8"), at(0, w+"7")}},
				{id + 6, "a receipt of no window that counts", "Settlement Receipt", holdingCounts(index, 5, 4, s).expiring(),
					[]request{at(0, w+"-1"+at0(2)), at(0, w+"-1"+at0(-1)), at(0, w+"-1 0"), at(0, w+"-1 4294967295"), at(0, w+"0"+at0(0))}},
				{id + 7, "on a key that is gone", "LostState Settlement", none, []request{at(0, w+"-1"+at0(0)), at(0, w+"-1"+at0(1)), at(0, w+"0"+at0(0)), at(0, w+"3"+at0(0)), at(0, w+"8")}},
				{id + 8, "on counts that are over", "Settlement LongIdle", holdingCounts(index-2, 3, 4, s).expiring(),
					[]request{at(0, w+"-1"+at0(2)), at(0, w+"-1"+at0(1)), at(0, w+"-1"+at0(0)), at(0, w+"1"+at0(2)), at(0, w+"0")}},
				{id + 9, "within the amount, and beyond it", "Debt", none, []request{at(0, w+"8"), at(0, w+"2"+at0(0)), at(0, w+"0"), at(0, w+"7"+at0(0)), at(0, w+"0"), at(0, w+"1"),
					at(s, w+"0"), at(s, w+"1"), at(s+s/2, w+"1"), at(2*s, w+"1")}},
				{id + 10, "what is used beyond is charged to the current window, whatever the receipt's", "Debt", holdingCounts(index-1, 2, 4, s),
					[]request{at(0, w+"3"+at0(1)), at(0, w+"3"+at0(5)), at(0, w+"0")}},
				{id + 11, "the count is cut at 65535", "Debt WideNumbers", holdingCounts(index, 7, 65530, s).and(holdingCounts(index, 7, 65530, s), holdingCounts(index, 65535, 65534, s)),
					[]request{at(0, w+"4"+at0(0), w+"5"+at0(0), w+"4503599627370496"+at0(0)), at(0, w+"1"+at0(0), w+"1"+at0(0), w+"1"+at0(0)), at(0, w+"-1"+at0(0), w+"-1"+at0(0), w+"-1"+at0(0))}},
				{id + 12, "a count of 65535 is never lowered, one of 65534 is", "Debt Settlement", holdingCounts(index, 65535, 65535, s).expiring().and(
					holdingCounts(index, 65534, 65534, s).expiring(), holdingCounts(index-1, 3, 65535, s).expiring()),
					[]request{at(0, w+"-1"+at0(0), w+"-1"+at0(0), w+"-1"+at0(0)), at(0, w+"-65535"+at0(1), w+"-65535"+at0(1), w+"-65535"+at0(1))}},
				{id + 13, "an ask up to 65535 counts as one that may have been cut", "Debt WideNumbers", none,
					[]request{at(0, kind+" 65535 1000000000 65535"), at(0, kind+" 65535 1000000000 -1"+at0(0)), at(0, kind+" 65535 1000000000 0"), at(0, kind+" 65535 1000000000 1"+at0(0))}},
				{id + 14, "a clock a window behind: what it finds is the stored window", "ClockBackwards Settlement", holdingCounts(index+1, 5, 7, s).expiring(),
					[]request{at(0, w+"-2"+at0(-1)), at(0, w+"-2"+at0(0)), at(0, w+"-2"+at0(1)), at(0, w+"1"+at0(0)), at(0, w+"0")}},
				{id + 15, "a clock a minute behind, and more", "ClockBackwards Settlement", holdingCounts(index+60, 5, 7, s).and(holdingCounts(index+61, 5, 7, s)),
					[]request{at(0, w+"-2"+at0(-60), w+"-2"+at0(-61)), at(0, w+"-2"+at0(-59), w+"-2"+at0(-60)), at(0, w+"1"+at0(0), w+"1"+at0(0))}},
				{id + 16, "an over-use leaves no room: remaining is 0, not less", "Debt", holdingCounts(index, 9, 9, s), []request{at(s/2, w+"9"+at0(0)), at(s/2, w+"0"+at0(0)), at(s/2, w+"0")}},
				{id + 17, "applied beside asks that are refused and that never fit", "AllOrNothing Settlement", none.and(none),
					[]request{at(0, w+"8", w+"8"), at(0, w+"-4"+at0(0), w+"3"), at(0, w+"5", w+"-4"+at0(0)), at(0, w+"-1"+at0(0), w+"11"), at(0, w+"11", w+"1"+at0(0)), at(0, w+"7", w+"5")}},
				{id + 18, "the index comes round", "IndexWrap Settlement Receipt", none.and(none), []request{
					atClock("4294967296999", kind+" 5 1000 4", kind+" 5 1000 4"), atClock("4294967297000", kind+" 5 1000 0", kind+" 5 1000 0"),
				}},
				{id + 19, "a give-back over the index that comes round", "IndexWrap Settlement Receipt", none, []request{
					atClock("4294967295999", kind+" 5 1000 4"), atClock("4294967296000", kind+" 5 1000 -1 4294967295"), atClock("4294967296001", kind+" 5 1000 1"),
					atClock("4294967297000", kind+" 5 1000 -1 0"), atClock("4294967297000", kind+" 5 1000 -1 4294967295"), atClock("4294967297000", kind+" 5 1000 0")}},
				{id + 20, "an index of 2^31 - 1, 2^31, and the last", "Year2038 Receipt", none.and(none, none), []request{
					atClock("2147483647500", kind+" 5 1000 1", kind+" 5 1000 1", kind+" 5 1000 1"), atClock("2147483648500", kind+" 5 1000 -1 2147483647", kind+" 5 1000 1", kind+" 5 1000 0"),
					atClock("2147483648500", kind+" 5 1000 1", kind+" 5 1000 -1 2147483648", kind+" 5 1000 0")}},
				{id + 21, "counts of 256 and more, byte for byte", "StateLayout Settlement", holdingCounts(index, 513, 770, s), []request{
					at(0, kind+" 2000 1000000000 -257"+at0(0)), at(0, kind+" 2000 1000000000 -256"+at0(1)), at(0, kind+" 2000 1000000000 300"+at0(0)), at(0, kind+" 2000 1000000000 255"), at(0, kind+" 2000 1000000000 -1"+at0(0))}},
				{id + 22, "a window of 2^52 ns", "Settlement WideNumbers", none, []request{
					at(0, long+"5"), at(1, long+"-3 395"), at(2, long+"-1 394"), at(2, long+"3 395"), at(2, long+"0")}},
				{id + 23, "a period of more than 32 bits", "StateLayout Settlement", none, []request{
					at(0, kind+" 10 86400000000000 5"), at(0, kind+" 10 86400000000000 -2 20601"), at(0, kind+" 10 86400000000000 0"), at(0, kind+" 10 86400000000001 -2 20601")}},
				{id + 24, "counts of another period, and a TAT", "OtherPeriod Settlement LooseState", holdingCounts(index, 3, 4, s).expiring().and(tat(epoch + s).expiring()),
					[]request{at(0, kind+" 10 60000000000 -1 29666668", bucket+"1"), at(0, w+"-1"+at0(0), w+"-1"+at0(0)), at(0, bucket+"-1 "+paid(s), bucket+"-1 "+paid(s))}},
				{id + 27, "a receipt 2^31 windows away", "Receipt IndexWrap", holdingCounts(index, 3, 4, s).expiring(),
					[]request{at(0, w+"-1"+at0(-1<<31)), at(0, w+"-1"+at0(1-1<<31))}},
				{id + 25, "a settlement of 0 moves no expiry and gives none", "WrittenLook Settlement", holdingCounts(index, 3, 4, s).expiring().and(holdingCounts(index, 3, 4, s)),
					[]request{at(0, w+"0"+at0(0), w+"0"+at0(0)), at(0, w+"-0"+at0(1), w+"-0"+at0(1))}},
				{id + 26, "give-backs and over-uses set the expiry", "ShortTTL Settlement", holdingCounts(index, 3, 4, s).expiring().and(holdingCounts(index, 3, 4, s), holdingCounts(index-1, 3, 4, s)),
					[]request{at(1, w+"-1"+at0(0), w+"-1"+at0(1), w+"-1"+at0(1)), at(s-1, w+"1"+at0(0), w+"1"+at0(0), w+"1"+at0(0)).after(noExpiry, "30000", "")}},
			},
		})
	}
	return groups
}

// limitsSettings are calls in a setting that is not usual.
func limitsSettings() []group {
	const t, s = serverUs * us, second
	index := t / s
	of := func(ns int64) string { return decimal(t + ns) }
	said := usual.at(serverUs)
	week := "sliding 300 60000000000 "
	minuteIndex := decimal(t / minute)
	groups := []group{{
		comment: "by a server's clock of 1780000085.123456 s",
		setting: said,
		tests: []test{
			{400, "TAT and receipt are those of the clock's seconds and us", "ServerClock Receipt", none.and(none),
				[]request{atServer(bucket+"1", week+"1"), atServer(bucket+"59", week+"299"), atServer(bucket+"0", week+"0"), atServer(bucket+"1", week+"1")}},
			{401, "one reading of the clock for all keys", "ServerClock", none.and(none, none), []request{atServer(bucket+"5", bucket+"5", "fixed 10 1000000000 5")}},
			{402, "a give-back leaves the expiry, and last", "KeptExpiry Settlement", none,
				[]request{atServer(bucket + "50"), atServer(bucket + "-20 " + of(10*s)).after("30000"), atServer(bucket + "-1 " + of(10*s)).after(noExpiry), atServer(bucket + "5")}},
			{403, "an over-use leaves the expiry while the TAT's second stays, and sets it when that changes", "KeptExpiry Debt", tat(t + 100*ms).expiring(),
				[]request{atServer(bucket + "1 0"), atServer(bucket + "1 0"), atServer(bucket + "1 0"), atServer(bucket + "5 0"), atServer(bucket + "1 0").after(noExpiry), atServer(bucket + "4 0")}},
			{404, "with credit it is last's second", "KeptExpiry Credit", credited(t+100*ms, "5", t+3*s).expiring(),
				[]request{atServer(bucket + "1 0"), atServer(bucket + "12 0"), atServer(bucket + "1"), atServer(bucket + "1"), atServer(bucket + "5"), atServer(bucket + "-1 " + of(4100*ms) + " 5").after("30000")}},
			{405, "a window's expiry stays while the window does", "KeptExpiry Settlement", holdingCounts(t/minute, 5, 7, minute).expiring().and(holdingCounts(t/minute-1, 5, 7, minute).expiring(), none),
				[]request{atServer(week+"-1 "+minuteIndex, week+"1 "+minuteIndex, week+"1 "+minuteIndex), atServer(week+"-1 "+minuteIndex, week+"1 "+minuteIndex, week+"-1 "+minuteIndex).after(noExpiry, "40000", "50000")}},
			{406, "a clock a window behind", "KeptExpiry ClockBackwards Settlement", holdingCounts(t/minute+1, 5, 7, minute).expiring(),
				[]request{atServer(week + "-1 " + minuteIndex), atServer(week + "2 " + minuteIndex), atServer(week + "1")}},
			{407, "a number of less than 19 digits is no TAT", "ForeignNumber", holding("57").expiring().and(holding("57 5 "+of(0)).expiring(), holding(of(0)+" 5 57").expiring()),
				[]request{atServer(bucket+"-1 57", bucket+"0", bucket+"0"), atServer(bucket+"1", bucket+"0", bucket+"0")}},
			{408, "of the second key too", "ForeignNumber", none.and(holding("57 5 " + of(0)).expiring()), []request{atServer(bucket+"1", bucket+"0"), at(0, bucket+"0", bucket+"0")}},
			{409, "and last", "ForeignNumber", none.and(holding(of(0) + " 5 57").expiring()), []request{atServer(bucket+"1", bucket+"0"), at(0, bucket+"0", bucket+"0")}},
			{410, "a refusal leaves values and expiries", "ServerClock ChargedRefusal", tat(t+12*s).expiring().and(holdingCounts(index, 3, 10, s).expiring(), none),
				[]request{atServer(bucket+"1", fixed10+"1", bucket+"5"), atServer(bucket+"61", fixed10+"0", bucket+"5")}},
			{411, "a receipt of few digits is one", "Receipt ServerClock", tat(t + s), []request{atServer(bucket + "-1 57"), atServer(bucket + "-1 0"), atServer(bucket + "-1 " + of(s))}},
			{412, "the debt is cut at 2^53 - 1 ns ahead of the clock", "Debt ServerClock", none, []request{atServer(bucket + "4503599627370496 0"), atServer(bucket + "1 0")}},
		},
	}, {
		comment: "by a server's clock of 1780000085.000001 s",
		setting: usual.at(1_780_000_085_000_001),
		tests: []test{{415, "the nanoseconds of TAT and credit begin with zeros", "ServerClock SecondEdge", none,
			[]request{atServer("gcra 1 256 3 1"), atServer("gcra 1 256 3 -1 1780000085000001256"), atServer("gcra 1 256 3 2"), atServer("gcra 1 256 3 -1 1780000085000001512 256")}}},
	}, {
		comment: "by a server's clock of 0.5 s",
		setting: usual.at(500_000),
		tests: []test{{416, "a board without a battery: TATs have few digits", "ServerClock ForeignNumber", none.and(holding("57")),
			[]request{atServer(bucket+"1", bucket+"1"), atServer(bucket+"-1 700000000", bucket+"3 0"), atServer(bucket+"1", bucket+"-1 700000000"), atServer(bucket+"5", bucket+"0")}}},
	}, {
		comment: "by a server's clock 1 us before 10^9 s",
		setting: usual.at(1e15 - 1),
		tests:   []test{{417, "a TAT may have 18 digits", "ForeignNumber", holding("999999999999999999").expiring(), []request{atServer(bucket + "0"), atServer(bucket + "1"), atServer(bucket + "-1 1000000000199999000")}}},
	}, {
		comment: "where TIME is refused",
		setting: usual.refusing("TIME"),
		tests: []test{
			{420, "now_ns is empty: nothing is read or written, and no argument", "ServerClock", tat(epoch).expiring().and(list),
				[]request{atServer(bucket+"1", bucket+"1"), atServer(bucket+"-1 "+paid(0), bucket+"x"), atServer(bucket + "1"), atServer("x x x x x x", bucket+"1")}},
			{421, "a caller's clock needs no TIME", "ServerClock", none.and(none), []request{at(0, bucket+"1", window10+"1"), at(0, bucket+"-1 "+paid(unit), window10+"-1 1780000080")}},
		},
	}}

	refused := func(id int, comment, flags string, key held, r request) test {
		return test{id, comment, "RefusedWrite " + flags, key, []request{r}}
	}
	groups = append(groups, group{
		comment: "by a server's clock of 1780000085.123456 s, where SET is refused",
		setting: said.refusing("SET"),
		tests: []test{
			refused(430, "an ask in the clock's second", "ShortTTL", none, atServer(bucket+"1")),
			refused(431, "an ask to the next second", "ShortTTL", none, atServer(bucket+"5")),
			refused(432, "an ask to two seconds on", "ShortTTL", none, atServer(bucket+"10")),
			refused(433, "an ask within the TAT's second", "KeptExpiry", tat(t+1).expiring(), atServer(bucket+"1")),
			refused(434, "a give-back keeps the expiry", "KeptExpiry Settlement", tat(t+5*s).expiring(), atServer(bucket+"-10 "+of(5*s))),
			refused(435, "a give-back on a key with credit keeps it", "KeptExpiry Settlement Credit", credited(t+5*s, "7", t+9*s).expiring(), atServer(bucket+"-10 "+of(5*s))),
			refused(436, "an over-use within last's second", "KeptExpiry Debt Credit", credited(t+100*ms, "5", t+150*ms).expiring(), atServer(bucket+"1 0")),
			refused(437, "an over-use to the next second", "ShortTTL Debt Credit", credited(t+700*ms, "5", t+750*ms).expiring(), atServer(bucket+"1 0")),
			refused(438, "an over-use below last", "KeptExpiry Debt Credit", credited(t+700*ms, "5", t+2*s).expiring(), atServer(bucket+"1 0")),
			refused(439, "an over-use of a rested key", "ShortTTL Debt", tat(t-5*s).expiring(), atServer(bucket+"1 0")),
			refused(440, "an over-use of 104 days", "ShortTTL Debt", none, atServer(bucket+"4503599627370496 0")),
			refused(441, "the first key is named of two", "AllOrNothing", none.and(none), atServer(bucket+"10", week+"1")),
			refused(442, "the settlement beside a refused ask", "AllOrNothing Settlement", tat(t+12*s).expiring().and(tat(t+5*s).expiring()), atServer(bucket+"1", bucket+"-1 "+of(5*s))),
			refused(443, "a window's settlement within its window", "KeptExpiry Settlement", holdingCounts(t/minute, 5, 7, minute).expiring(), atServer(week+"-1 "+minuteIndex)),
			refused(444, "a window's settlement when another began", "ShortTTL Settlement", holdingCounts(t/minute-1, 5, 7, minute).expiring(), atServer(week+"1 "+minuteIndex)),
			refused(445, "a window's settlement of the window before, when another began", "ShortTTL Settlement", holdingCounts(t/minute-1, 5, 7, minute).expiring(),
				atServer(week+"-1 "+decimal(t/minute-1))),
			refused(446, "a window's settlement by a clock behind", "KeptExpiry Settlement ClockBackwards", holdingCounts(t/minute+1, 5, 7, minute).expiring(), atServer(week+"-1 "+decimal(t/minute+1))),
			refused(447, "a window's first count is an over-use", "ShortTTL Debt", none, atServer(week+"1 0")),
		},
	}, group{
		comment: "by a server's clock of 1780000085.123456 s, where the second SET is refused",
		setting: said.refusing(secondSet),
		tests: []test{
			refused(425, "the key before it is written, the one after it is not", "AllOrNothing", none.and(none, none), atServer(bucket+"10", week+"1", bucket+"1")),
			refused(426, "looks ask for no SET", "AllOrNothing", none.and(none, none), atServer(bucket+"10", week+"0", bucket+"1")),
			refused(427, "settlements beside a refused ask", "AllOrNothing Settlement", tat(t+5*s).expiring().and(tat(t+12*s), tat(t+5*s).expiring()),
				atServer(bucket+"-10 "+of(5*s), bucket+"1", bucket+"-10 "+of(5*s))),
		},
	}, group{
		comment: "by callers' clocks, where SET is refused",
		setting: usual.refusing("SET"),
		tests: []test{
			refused(450, "an ask in the clock's second", "ShortTTL", none, at(0, bucket+"1")),
			refused(451, "an ask to the next second", "ShortTTL", none, at(0, bucket+"5")),
			refused(452, "a give-back: the expiry is that of last", "ShortTTL Settlement", tat(epoch+5*s).expiring(), at(0, bucket+"-10 "+paid(5*s))),
			refused(453, "a give-back on a key with credit: the expiry is that of last", "ShortTTL Settlement Credit", credited(epoch+5*s, "7", epoch+9*s).expiring(), at(0, bucket+"-10 "+paid(5*s))),
			refused(454, "an over-use", "ShortTTL Debt", tat(epoch+100*ms).expiring(), at(0, bucket+"1 0")),
			refused(455, "a window's settlement", "ShortTTL Settlement", holdingCounts(epoch/s, 5, 7, s).expiring(), at(1, window10+"-1 1780000080")),
			refused(456, "a window's settlement at the window's first instant", "ShortTTL Settlement", holdingCounts(epoch/s, 5, 7, s).expiring(), at(0, window10+"-1 1780000080")),
			refused(457, "a window's settlement by a clock behind", "ShortTTL Settlement ClockBackwards", holdingCounts(epoch/s+1, 5, 7, s).expiring(), at(1, window10+"-1 1780000081")),
			refused(458, "the second key's, when the first one only looks", "AllOrNothing", none.and(none), at(0, bucket+"0", bucket+"7")),
		},
	})

	narrow := group{comment: "on a server of 32 bits", setting: usual.on32Bits()}
	for i, startNs := range []int64{epoch, s<<31 - 100*ms, s << 31, s<<32 - 100*ms, s<<31 + s} {
		now := func(ns int64) string { return decimal(startNs + ns) }
		narrow.tests = append(narrow.tests, test{460 + i, fmt.Sprintf("a clock of %d ns", startNs), "Year2038", none, []request{
			atClock(now(0), bucket+"30"), atClock(now(0), bucket+"-10 "+now(6*s)), atClock(now(0), bucket+"1"), atClock(now(0), bucket+"60 "+now(6*s))}})
	}
	narrow.tests = append(narrow.tests,
		test{466, "credit of 2^31 s and more", "Year2038 Credit", credited(epoch+5*s, "2147483647900000000", epoch+5*s).and(
			credited(epoch+5*s, "2147483646900000000", epoch+5*s), credited(epoch+5*s, "9999999999900000000", epoch+5*s)),
			[]request{at(0, bucket+"-1 "+paid(5*s)+" 2147483647900000000", bucket+"-1 "+paid(5*s)+" 2147483646900000000", bucket+"-1 "+paid(5*s)+" 9999999999900000000")}},
		test{467, "an index of 2^31 and more", "Year2038 Receipt", none.and(none), []request{
			atClock("2147483648500", "fixed 5 1000 1", "sliding 5 1000 1"), atClock("2147483648500", "fixed 5 1000 -1 2147483648", "sliding 5 1000 1"), atClock("4294967295500", "fixed 5 1000 1", "sliding 5 1000 1")}},
		test{468, "a debt of 104 days", "Year2038 Debt ShortTTL", none, []request{at(0, bucket+"4503599627370496 0")}},
		test{469, "a window of 104 days", "Year2038 ShortTTL", none, []request{at(0, "fixed 3 4503599627370496 1"), at(0, "fixed 3 4503599627370496 1 395")}},
	)
	groups = append(groups, narrow, group{
		comment: "by the server's own clock",
		tests: []test{
			{480, "looks at keys that are not there", "ServerClock WrittenLook", none.and(none), []request{atServer(bucket+"0", window10+"0"), atServer(bucket + "0")}},
			{481, "an ask that never fits beside one that does", "ServerClock UnfittableStatus AllOrNothing", none.and(none), []request{atServer(bucket+"61", window10+"1"), atServer(bucket+"1", window10+"11")}},
			{482, "an over-use: its receipt is the one that was given", "ServerClock Debt Receipt", none, []request{atServer(bucket + "30 0")}},
			{483, "arguments and states that are refused", "ServerClock LooseArgument LooseState", holding("hello").expiring().and(holding("57").expiring()),
				[]request{atServer(bucket+"1", bucket+"1"), atServer(window10+"1", bucket+"1"), atServer(bucket+"-1", bucket+"1")}},
			{485, "a list, and what is named before it", "ServerClock LooseState", list.expiring().and(holding("57").expiring()),
				[]request{atServer(bucket+"1", bucket+"1"), atServer(bucket+"x", bucket+"1")}},
			{484, "a TAT of 2042 refuses, and keeps the others from being charged", "ServerClock FarWait AllOrNothing", tat(late).expiring().and(none), []request{atServer(bucket+"1", bucket+"5")}},
		},
	})
	return groups
}

// limitsHostile tries texts in the places that no other script has. The ids are a base and the
// text's number.
func limitsHostile() []group {
	key := tat(epoch + second/2)
	counts := holdingCounts(epoch/second, 3, 4, second)
	in := func(base int, name string, good request, slot int, key held) (tests []test) {
		for _, h := range hostile.Arguments {
			if len(h.Text) > longest || strings.Contains(h.Text, "\x00") {
				continue
			}
			argv := slices.Clone(good.argv)
			argv[slot] = h.Text
			flags := "LooseArgument"
			if h.Whole && !canonical(h.Text) {
				flags = "NumberReading"
			}
			tests = append(tests, test{base + h.Number, fmt.Sprintf("%s is %.20q", name, h.Text), flags, key, []request{by(argv...)}})
		}
		return tests
	}
	give, giveCounts := at(0, bucket+"-1 "+paid(second/2)), at(0, window10+"-1 1780000080")
	places := group{comment: "texts in the kind, in a window's burst, and in what a settlement has"}
	places.tests = slices.Concat(
		in(1000, "the kind", at(0, bucket+"1"), 1, key),
		in(1100, "a window's burst", at(0, window10+"1"), 4, counts),
		in(1200, "the cost of a settlement", give, 5, key),
		in(1300, "the receipt", give, 6, key),
		in(1400, "the cost of a window's settlement", giveCounts, 5, counts),
		in(1500, "a window's receipt", giveCounts, 6, counts),
		in(1600, "the second key's cost", at(0, bucket+"1", bucket+"1"), 11, key.and(key)),
	)

	receipts := group{comment: "texts that are no receipt, and some that are"}
	for i, receipt := range []string{
		"0", "00", "01", "1", "9999999999999999999", "10000000000000000000", "01780000080500000000", paid(second/2) + " ", " " + paid(second/2), paid(second/2) + "  5",
		paid(second/2) + " 0", paid(second/2) + " 05", paid(second/2) + " 5", paid(second/2) + " 5 ", paid(second/2) + " 5 5", paid(second/2) + " x", paid(second/2) + "\t5",
		paid(second/2) + "\n", paid(second/2) + " 5\n", paid(second/2) + "x", "-1", "+1", "1.0", "1e3", "0 5", "00 5", "01 5", "x 5", " 5", " ", "10000000000000000000 5", "9999999999999999999 5",
		"01780000080500000000 5", paid(second/2) + " 1" + strings.Repeat("0", 23), paid(second/2) + " 1" + strings.Repeat("0", 24), paid(second/2) + " " + strings.Repeat("9", 200), "0x10", "178000008050000000x", "x780000080500000000",
	} {
		r := at(0, bucket+"-1")
		r.argv[6] = receipt
		receipts.tests = append(receipts.tests, test{500 + i, fmt.Sprintf("the receipt is %.40q", receipt), "Receipt", key.and(none), []request{withKey(r, bucket+"1")}})
	}
	for i, receipt := range []string{
		"0", "00", "01780000080", "1780000080", "4294967295", "4294967296", "4294967297", "10000000000", "99999999999", "17800000801", "1780000080 ", " 1780000080", "1780000080 5", "1780000080\n",
		"-1", "+1", "1.0", "1e3", "0x10", "x", " ", strings.Repeat("9", 200), "6074967376", paid(0), "0000000001", "178000008x",
	} {
		r := at(0, window10+"-1")
		r.argv[6] = receipt
		receipts.tests = append(receipts.tests, test{550 + i, fmt.Sprintf("a window's receipt is %.40q", receipt), "Receipt", counts.and(none), []request{withKey(r, fixed10+"1")}})
	}
	receipts.tests = append(receipts.tests,
		test{580, "a cost below 0 needs a receipt", "LooseArgument Receipt", key.and(counts), []request{at(0, bucket+"-1", window10+"0"), at(0, bucket+"0", window10+"-1")}},
		test{581, "costs at the ends of their range", "LooseArgument Receipt WideNumbers", tat(epoch + 12*second).and(holdingCounts(epoch/second, 3, 4, second)), []request{
			at(0, bucket+"-4503599627370496 "+paid(0), window10+"-4503599627370496 0"), at(0, bucket+"-4503599627370497 "+paid(0), window10+"0"), at(0, bucket+"0", window10+"-4503599627370497 0"),
			at(0, bucket+"4503599627370497 "+paid(0), window10+"0"), at(0, bucket+"0", window10+"4503599627370497 0"), at(0, bucket+"-0.5 "+paid(0), window10+"0"), at(0, bucket+"0.5 "+paid(0), window10+"0"),
			at(0, bucket+"4503599627370496", window10+"0"), at(0, bucket+"4503599627370497", window10+"0"), at(0, bucket+"0", window10+"4503599627370496"), at(0, bucket+"0", window10+"4503599627370497")}},
		test{582, "a receipt of the other kind", "Receipt", key.and(counts), []request{at(0, bucket+"-1 1780000080", window10+"0"), at(0, bucket+"0", window10+"-1 "+paid(0))}},
	)

	states := group{comment: "settlements on keys that hold something else, or another script's state"}
	for _, h := range hostile.States {
		if len(h.Text) > longest {
			continue
		}
		flags := "LooseState Settlement"
		for _, script := range []precision.Script{precision.GCRAV2, precision.WindowV1} {
			if s, ok := precision.ParseState(script, h.Text); ok && !script.IsWindow() && s.Value >= uint64(epoch+precision.FarNs) {
				flags += " " + farWait
			}
		}
		of := "1735689600000000000"
		const atMinute = "29666668"
		states.tests = append(states.tests, test{1700 + h.Number, fmt.Sprintf("the key holds %.20q", h.Text), flags, holding(h.Text).expiring(), []request{
			at(0, bucket+"-1 "+of), at(0, bucket+"1 "+of), at(0, "sliding 10 60000000000 -1 "+atMinute), at(0, "sliding 10 60000000000 1 "+atMinute)}})
	}
	states.tests = append(states.tests, test{1690, "the key holds a list", "LooseState Settlement", list.expiring(),
		[]request{at(0, bucket+"-1 "+paid(0)), at(0, bucket+"0 0"), at(0, window10+"-1 0"), at(0, window10+"0 0")}})
	return []group{places, receipts, states}
}

// withKey is a call with another key after its own.
func withKey(r request, text string) request {
	return request{slices.Concat(r.argv, limitArgs(text)), r.expire}
}
