package main

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

const (
	limitSettlements = 12_000
	severalKeys      = 3_000
	// of what the scripts of one limit play, each so many-th is played
	thinnedTrials, thinnedEdges = 3, 8
)

// asLimits is a trial of a script of one limit as limits_v1 has it, an ask of one key.
func (c trial) asLimits() trial {
	now := ""
	if len(c.args) > 4 {
		now = c.args[4]
	}
	a := c.args
	if a[2] == "fixed" || a[2] == "sliding" {
		c.args = []string{now, a[2], a[0], a[1], "", a[3], ""}
	} else {
		c.args = []string{now, "gcra", a[0], a[1], a[2], a[3], ""}
	}
	return c
}

// limitsTrials are first the trials and edges of the scripts of one limit, as asks of one key;
// then calls of which a part is hostile; then settlements, and calls of several keys.
func limitsTrials() (arguments, edgesToo []trial) {
	add := func(c trial) {
		if c.unixUs == 0 {
			c.unixUs = serverUs
		}
		c.expect(precision.LimitsV1)
		arguments = append(arguments, c)
	}
	for _, script := range []precision.Script{precision.GCRAV2, precision.WindowV1} {
		for i, c := range trials(script, script.IsWindow()) {
			if len(c.keys) == 1 && (len(c.args) == 4 || len(c.args) == 5) && (i < ofArguments || c.isRare() || i%thinnedTrials == 0) {
				add(c.asLimits())
			}
		}
	}
	hostileLimits(add)

	all, rng := &arguments, rand.New(rand.NewPCG(4, 4))
	asks := slices.Clone(*all)
	edgesFrom := len(arguments)
	fading := precision.NewFading(precision.WindowV1, 65535, 2_345_678_901_234_567, fades)
	for i := range fading.Calls {
		add(ofOneLimit(fading, i))
	}
	for _, script := range []precision.Script{precision.GCRAV2, precision.WindowV1} {
		for index := range windowTraces {
			t := precision.NewTrace(script, traceSeed, index)
			for i := range openings {
				add(ofOneLimit(t, i))
			}
		}
	}
	nextWindows(add)
	for range limitSettlements {
		add(randomSettlement(rng))
	}
	for range severalKeys {
		add(several(rng, asks))
	}
	for _, script := range []precision.Script{precision.GCRAV2, precision.WindowV1} {
		for i, c := range edges(script, script.IsWindow()) {
			if i%thinnedEdges == 0 {
				add(c.asLimits())
			}
		}
	}
	return arguments[:edgesFrom:edgesFrom], arguments[edgesFrom:]
}

// nextWindows are asks whose clock is some ns before a window that ends about 2^52 or 2^53 ns on.
func nextWindows(add func(trial)) {
	for _, w := range []int64{1 << 52, 1<<52 - 1, 1<<52 - 2, 1<<52 - 3, 1 << 51, 3 << 50} {
		for gap := range int64(6) {
			for _, mode := range []string{"fixed", "sliding"} {
				for _, counts := range [][2]uint16{{5, 5}, {0, 5}, {5, 0}, {5, 3}} {
					for _, cost := range []string{"0", "1", "4", "5"} {
						add(trial{keys: holding(windowText(400, counts[0], counts[1], w)), args: []string{
							strconv.FormatInt(400*w-gap, 10), mode, "5", strconv.FormatInt(w, 10), "", cost, ""}})
					}
				}
			}
		}
	}
}

// ofOneLimit is the ith call of a trace of a script of one limit, on what the one before left.
func ofOneLimit(t *precision.Trace, i int) trial {
	c := &t.Calls[i]
	ask := trial{unixUs: max(c.NowNs/1000, 1), keys: missing, args: c.Args(t.Script)}
	if i > 0 && t.Native[i-1].State.Exists {
		ask.keys = holding(t.Native[i-1].State.Text(t.Script))
	}
	if c.Given != "" {
		ask.keys = holding(c.Given)
	}
	return ask.asLimits()
}

// hostileLimits are calls with a wrong count of keys or arguments, with one hostile text, with a
// key named twice, and on what keys may hold.
func hostileLimits(add func(trial)) {
	for _, kind := range []string{"gcra", "fixed", "sliding"} {
		good, held := ordinary(kind != "gcra")
		args := []string{nowText, kind, good[0], good[1], good[2], "1", ""}
		receipt := "1735689600200000000"
		if kind != "gcra" {
			args[4], receipt = "", strconv.Itoa(serverUs/60_000_000)
		}
		settling := slices.Clone(args)
		settling[5], settling[6] = "-1", receipt
		for _, args := range [][]string{args, settling} {
			with := func(slot int, text string) []string {
				args := slices.Clone(args)
				args[slot] = text
				return args
			}
			for slot := range args {
				for _, a := range hostile.Arguments {
					add(trial{keys: holding(held), args: with(slot, a.Text)})
				}
			}
			for n := range len(args) {
				add(trial{keys: holding(held), args: args[:n]})
			}
			add(trial{keys: holding(held), args: append(slices.Clone(args), "")})
			add(trial{args: args})
			add(trial{args: args[:1]})
			for _, keys := range [][]native.Key{missing, holding(held)} {
				add(trial{keys: keys, args: args, readOnly: true})
				add(trial{keys: keys, args: args, endless: true})
				add(trial{keys: keys, args: with(0, ""), endless: true})
				add(trial{keys: keys, args: args, list: true})
				add(trial{keys: keys, args: args, server: narrowLong})
				add(trial{keys: keys, args: with(0, ""), server: noTime})
			}
			for _, n := range []int{2, 31, 32, 33} {
				keys, all := []native.Key(nil), args[:1:1]
				for i := range n {
					keys = append(keys, native.Key{Name: fmt.Sprint("k", i), Exists: true, Text: held})
					all = append(all, args[1:]...)
				}
				add(trial{keys: keys, args: all})
				add(trial{keys: keys, args: all[:len(all)-1]})
				for _, twice := range [][2]int{{0, 1}, {0, n - 1}, {n - 2, n - 1}} {
					keys := slices.Clone(keys)
					keys[twice[1]] = keys[twice[0]]
					add(trial{keys: keys, args: all})
				}
			}
			for _, cost := range []string{"0", "1", "-1", "-61", "-4503599627370496", "4503599627370496"} {
				args := with(5, cost)
				for _, s := range hostile.States {
					add(trial{keys: holding(s.Text), args: args})
				}
			}
		}
		for _, s := range hostile.States {
			add(trial{keys: holding(s.Text), args: append([]string{""}, settling[1:]...)})
		}
		// what was given back, on both sides of the seconds that a long of 32 bits holds
		for _, s := range []int64{0, 1, 1<<31 - 1, 1 << 31, 1<<31 + 1} {
			for _, sub := range []int64{0, 1, 999_998_999, 999_999_000, 999_999_001} {
				if kind == "gcra" && s*1e9+sub > 0 {
					held := fmt.Sprintf("1735689600800000000 %d 1735689600800000000", s*1e9+sub)
					receipt := fmt.Sprintf("1735689600800000000 %d", s*1e9+sub)
					add(trial{keys: holding(held), server: narrowLong, args: []string{nowText, kind, "1", "1000", "60", "-1", receipt}})
				}
			}
		}
		if kind != "gcra" { // indexes on both sides of what such a long holds, and a period's bytes of 255
			for _, now := range []int64{1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1} {
				add(trial{keys: missing, server: narrowLong, args: []string{strconv.FormatInt(now, 10), kind, "5", "1", "", "1", ""}})
			}
			add(trial{keys: missing, args: []string{nowText, kind, "300", "4294967295", "", "1", ""}})
			// the next window's counts by the whole of the longest period, a product of 2^68
			add(trial{keys: holding(windowText(400, 65535, 0, 1<<52)), server: narrowLong, args: []string{
				strconv.FormatInt(400<<52-1, 10), kind, "65535", "4503599627370496", "", "1", ""}})
		}
		if kind == "gcra" { // last is 1 ns after the new TAT, in the next second
			add(trial{keys: holding("1735689599999999998 5 1735689600000000000"),
				args: []string{"1735689599999999998", kind, "1", "1", "5", "1", ""}})
		}
		// costs of which some are 1, each read from its own place
		for ones := range 8 {
			c := trial{args: []string{"1"}}
			for at := range 12 {
				of := slices.Clone(args[1:])
				if of[4] = "2"; at == ones || ones == 0 && at > 3 {
					of[4] = "1"
				}
				c.keys, c.args = append(c.keys, native.Key{Name: fmt.Sprint("k", at)}), append(c.args, of...)
			}
			add(c)
		}
		texts := slices.Clone(hostile.Receipts)
		for _, s := range hostile.States {
			texts = append(texts, s.Text)
		}
		for _, text := range texts {
			for _, cost := range []string{"0", "1", "-1", "-60"} {
				args := slices.Clone(settling)
				args[5], args[6] = cost, text
				add(trial{keys: holding(held), args: args})
			}
		}
	}
}

// steps are differences of times and sums in ns at which a comparison turns, or an end of a
// number is reached.
var steps = []int64{0, 0, 1, -1, 2, 100, 255, 999, 1000, 1001, 2000, 3000, 999_999_999, 1e9, 1e9 + 1, 2e9, 61e9,
	1<<52 - 1, 1 << 52, 1<<52 + 1, 1<<53 - 1001, 1<<53 - 1000, 1<<53 - 2, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1<<53 + 1000}

func step(rng *rand.Rand) int64 {
	d := steps[rng.IntN(len(steps))]
	if rng.IntN(4) == 0 {
		d += steps[rng.IntN(9)]
	}
	if rng.IntN(6) == 0 {
		d = -d
	}
	return d
}

// randomSettlement is a settlement of one key by either clock, where what decides is a step.
func randomSettlement(rng *rand.Rand) trial {
	if rng.IntN(3) == 0 {
		return windowSettlement(rng)
	}
	us := []int64{serverUs, serverUs + 1, serverUs + 999_999, 1e15, 1_000_000, 1, 9_000_000_000_000_000}[rng.IntN(7)]
	nowNs := us*1000 + []int64{0, 1, 999}[rng.IntN(3)]
	now := strconv.FormatInt(nowNs, 10)
	if rng.IntN(3) == 0 {
		now, nowNs = "", us*1000
	}
	interval := []int64{1, 1000, 200_000_000, 1e9, 1 << 51}[rng.IntN(5)]
	burst := []int64{1, 2, 60, 1 << 52 / interval}[rng.IntN(4)]
	burst = max(min(burst, 1<<52/interval), 1)
	tat := max(nowNs+step(rng), 0)
	if rng.IntN(3) == 0 {
		tat = max(nowNs+interval*rng.Int64N(4)+rng.Int64N(3)-1, 0)
	}
	paid := max(nowNs+step(rng), 0)
	switch rng.IntN(4) {
	case 0:
		paid = max(tat+step(rng), 0)
	case 1:
		paid = max(tat-interval*rng.Int64N(3), 0)
	}
	held, receipt := strconv.FormatInt(tat, 10), strconv.FormatInt(paid, 10)
	base := []string{"", "1", "987", "999999999", "1000000000", "2147483647999999998", "9007199254740991", "20000000000000000000",
		"123456789012345678901234", "999999999999999999999999", "1000000000000000000000000"}[rng.IntN(11)]
	if base != "" || rng.IntN(4) == 0 {
		sum := plus(base, max(rng.Int64N(3), step(rng)/2))
		if sum != "0" && base != "" && rng.IntN(8) > 0 {
			held += " " + sum + " " + strconv.FormatInt(max(tat+step(rng)*rng.Int64N(2), 1), 10)
		}
		before := plus(base, rng.Int64N(3))
		if rng.IntN(3) == 0 {
			before = plus(sum, step(rng))
		}
		if before != "0" && rng.IntN(4) > 0 {
			receipt += " " + before
		}
	}
	cost := []int64{-1, -1, -2, -3, -61, -1 << 52, 0, 1, 1, 2, 60, 1 << 52, (1<<53 - 1) / interval}[rng.IntN(13)]
	c := trial{unixUs: us, keys: holding(held), args: []string{now, "gcra", "1", strconv.FormatInt(interval, 10),
		strconv.FormatInt(burst, 10), strconv.FormatInt(min(cost, 1<<52), 10), receipt}}
	if rng.IntN(8) == 0 {
		c.keys = missing
	}
	if rng.IntN(8) == 0 {
		c.server = narrowLong
	}
	c.endless = rng.IntN(4) == 0
	return c
}

// plus is a sum of decimals, 0 where it would be below.
func plus(text string, n int64) string {
	x, _ := new(big.Int).SetString("0"+text, 10)
	if x.Add(x, big.NewInt(n)).Sign() < 0 {
		return "0"
	}
	return x.String()
}

func windowSettlement(rng *rand.Rand) trial {
	us := []int64{serverUs, serverUs + 30_000_001, serverUs + 59_999_999, 1, 1 << 32 * 1_000_000, 1<<32*1_000_000 - 1}[rng.IntN(6)]
	now := strconv.FormatInt(us*1000+rng.Int64N(2), 10)
	if rng.IntN(3) == 0 {
		now = ""
	}
	periodNs := []int64{60e9, 1e9, 1, 999_999_937, 1 << 52}[rng.IntN(5)]
	amount := []int64{1, 300, 65535}[rng.IntN(3)]
	index := us * 1000 / periodNs
	near := []int64{0, 0, 0, 0, 1, 1, 1, 2, 3, -1, -1, -2, -60, -61, 1 << 31, 1<<31 - 1}
	count := func() uint16 { return []uint16{0, 1, 2, 5, 255, 256, 299, 300, 301, 65533, 65534, 65535}[rng.IntN(12)] }
	stored := index - near[rng.IntN(len(near))]
	receipt := stored - near[rng.IntN(len(near))]
	if rng.IntN(2) == 0 {
		receipt = index - near[rng.IntN(len(near))]
	}
	cost := []int64{-1, -1, -2, -5, -300, -65535, -65536, -1 << 52, 0, 1, 1, 2, 65534, 65535, 1 << 52}[rng.IntN(15)]
	c := trial{unixUs: us, keys: holding(windowText(stored, count(), count(), periodNs)), args: []string{now,
		[]string{"fixed", "sliding"}[rng.IntN(2)], strconv.FormatInt(amount, 10), strconv.FormatInt(periodNs, 10), "",
		strconv.FormatInt(cost, 10), strconv.FormatUint(uint64(uint32(receipt)), 10)}}
	if rng.IntN(8) == 0 {
		c.keys = missing
	}
	c.endless = rng.IntN(4) == 0
	return c
}

// several is a call of two to five keys: asks, some of which are refused, and settlements.
func several(rng *rand.Rand, asks []trial) trial {
	first := randomSettlement(rng)
	for first.server != "" {
		first = randomSettlement(rng)
	}
	c := trial{unixUs: first.unixUs, endless: first.endless, args: first.args[:1]}
	nowNs, err := strconv.ParseInt(c.args[0], 10, 64)
	if err != nil {
		nowNs = c.unixUs * 1000
	}
	settles := rng.IntN(2) == 0
	most := 2 + rng.IntN(4)
	for at := range most {
		key := native.Key{Name: fmt.Sprint("k", at)}
		var of []string
		switch kind := rng.IntN(3); {
		case settles && at == 0:
			key, of = first.keys[0], first.args[1:]
			key.Name = "k0"
		case kind == 0:
			of = []string{"gcra", "300", "60000000000", "60", []string{"1", "0", "5", "60", "61"}[rng.IntN(5)], ""}
			if rng.IntN(3) > 0 {
				key.Exists, key.Text = true, strconv.FormatInt(max(nowNs, 0)+[]int64{0, 200e6, 12e9, 12e9, 13e9, 61e9, 11e9}[rng.IntN(7)], 10)
			}
			if key.Exists && rng.IntN(3) == 0 {
				key.Text += " 5000000000 " + strconv.FormatInt(nowNs+14e9, 10)
			}
		default:
			of = []string{[]string{"fixed", "sliding"}[rng.IntN(2)], "300", "60000000000", "", []string{"1", "0", "5", "300", "301"}[rng.IntN(5)], ""}
			if rng.IntN(3) > 0 {
				key.Exists, key.Text = true, windowText(nowNs/60e9-rng.Int64N(3)+1, uint16(rng.IntN(301)), uint16(295+rng.IntN(8)-rng.IntN(2)*290), 60e9)
			}
		}
		c.keys, c.args = append(c.keys, key), slices.Concat(c.args, of)
	}
	if rng.IntN(16) == 0 { // another's error
		from := 1 + 6*rng.IntN(most)
		c.args = slices.Clone(c.args)
		c.args[from+rng.IntN(6)] = hostile.Arguments[rng.IntN(len(hostile.Arguments))].Text
	}
	if rng.IntN(64) == 0 {
		c.keys[most-1].Exists = false
		c.list = c.goodArguments()
	}
	c.readOnly = rng.IntN(32) == 0
	return c
}

// goodArguments tells whether the call has no error but those of its keys.
func (c *trial) goodArguments() bool {
	_, reply, _ := native.Call(string(precision.LimitsV1), c.keys, c.args, native.ServerClock(c.unixUs))
	return reply.Err == ""
}
