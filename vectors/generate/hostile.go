package generate

import (
	"fmt"
	"slices"
	"strings"
)

// hostileTexts are tried in every argument. Each has a number, which is not given to
// another text: the test's id is the argument's base and this number.
var hostileTexts = []struct {
	number int
	text   string
	flag   string
}{
	{1, "", "LooseArgument"},
	{2, " ", "LooseArgument"},
	{3, "nan", "LooseArgument"},
	{4, "inf", "LooseArgument"},
	{5, "-inf", "LooseArgument"},
	{6, "1e400", "LooseArgument"},
	{7, "1e3", "NumberReading"},
	{8, "0x10", "NumberReading"},
	{9, "010", "NumberReading"},
	{10, " 10 ", "NumberReading"},
	{11, "1_000", "LooseArgument"},
	{12, "10abc", "LooseArgument"},
	{13, "1.5", "LooseArgument"},
	{14, "-0", "NumberReading"},
	{15, "9007199254740993", "LooseArgument"},
	{16, "0", "LooseArgument"},
	{17, "-1", "LooseArgument"},
	{18, "-9007199254740992", "LooseArgument"},
	{19, "4503599627370497", "LooseArgument"},
	{20, "99999999999999999999", "LooseArgument"},
	{21, "1.0", "NumberReading"},
	{22, "0x", "LooseArgument"},
	{23, "1e-1", "LooseArgument"},
	{24, "--1", "LooseArgument"},
	{25, "SLIDING", "LooseArgument"},
	{26, strings.Repeat("9", 400), "LooseArgument"},
}

// hostileArguments tries the texts in each argument of a good call, on a key that is in
// use and has no expiry, so that one which is set shows. The first argument's tests have
// ids from 1000, the second's from 1100, and so on; an argument that is left out has
// the 90th of them, one too many the 91st of the last.
func hostileArguments(names, good []string, key Key) group {
	g := group{comment: "arguments out of range and texts that are no whole numbers, in every place"}
	for slot, name := range names {
		base := 1000 + 100*slot
		for _, h := range hostileTexts {
			if name == "now_ns" && h.text == "" {
				continue // the server's clock
			}
			flags := h.flag
			if name == "now_ns" {
				flags += " " + farWait // of those that are a clock, which is that of 1970
			}
			argv := slices.Clone(good)
			argv[slot] = h.text
			g.tests = append(g.tests, test{base + h.number, fmt.Sprintf("%s is %.20q", name, h.text), flags, key, [][]string{argv}})
		}
		if name != "now_ns" {
			g.tests = append(g.tests, test{base + 90, name + " and what follows is left out", "LooseArgument", key, [][]string{good[:slot]}})
		}
	}
	g.tests = append(g.tests, test{1000 + 100*(len(names)-1) + 91, "an argument too many", "LooseArgument", key,
		[][]string{append(slices.Clone(good), "1")}})
	return g
}

// hostileStates are texts that a key may hold, with numbers as those above.
var hostileStates = []struct {
	number int
	text   string
}{
	{1, "hello"},
	{2, ""},
	{3, "nan"},
	{4, "inf"},
	{5, "-1"},
	{6, "1e400"},
	{7, "0x10"},
	{8, " 5 "},
	{9, "5 "},
	{10, "01"},
	{11, "00"},
	{12, "1.5"},
	{13, "1e18"},
	{14, "5\x00"},
	{15, "17\n"},
	{16, strings.Repeat("1", 400)},
	{17, "10000000000000000000"},
	{18, "\x01\xb9\x6c\xc0\x00\x05\x00\x07"},
	{19, "12345678"},
	{20, "1234567"},
	{21, "123456789"},
	{22, "0"},
	{23, "1780000080500000000"},
	{24, "1780000080500000001"},
	{25, "2305843009213693952"},
	{26, "2305843009213693953"},
	// a text of 19 digits is read in one step
	{27, "0780000080500000000"},
	{28, "178000008050000000x"},
	{29, "x780000080500000000"},
}

// hostileState tries the texts with a look, a call and one that never fits. The ids are
// from 1600 on, and the list's is 1690.
func hostileState(argv string, unfittable int64) group {
	g := group{comment: "keys that hold something else, or another script's state", argv: argv}
	steps := from(epoch, calls(0, 0, 1, 0, unfittable, 0))
	for _, h := range hostileStates {
		flags := "LooseState"
		if h.number == 25 || h.number == 26 {
			flags += " " + farWait // TATs of 2043, to gcra
		}
		g.tests = append(g.tests, test{1600 + h.number, fmt.Sprintf("the key holds %.20q", h.text), flags,
			holding(h.text).expiring(), steps})
	}
	g.tests = append(g.tests, test{1690, "the key holds a list", "LooseState", Key{Kind: "list"}.expiring(), steps})
	return g
}
