package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/precision"
)

// longest is the longest text that the files hold, to stay readable; and no argument has
// a NUL, which a shell cannot pass.
const longest = 400

// hostileArguments tries the texts in each argument of a good call, on a key that is in
// use and has no expiry, so that one which is set shows. The first argument's tests have
// ids from 1000, the second's from 1100, and so on, each with its text's number; an
// argument that is left out has the 90th of them, one too many the 91st of the last.
func hostileArguments(names, good []string, key held) group {
	g := group{comment: "arguments out of range and texts that are no whole numbers, in every place"}
	for slot, name := range names {
		base := 1000 + 100*slot
		for _, h := range hostile.Arguments {
			if len(h.Text) > longest || strings.Contains(h.Text, "\x00") || name == "now_ns" && h.Text == "" {
				continue // the last is the server's clock
			}
			flags := "LooseArgument"
			if h.Whole && !canonical(h.Text) {
				flags = "NumberReading"
			}
			if name == "now_ns" {
				flags += " " + farWait // of those that are a clock, which is that of 1970
			}
			argv := slices.Clone(good)
			argv[slot] = h.Text
			g.tests = append(g.tests, test{base + h.Number, fmt.Sprintf("%s is %.20q", name, h.Text), flags, key,
				[]request{by(argv...)}})
		}
		if name != "now_ns" {
			g.tests = append(g.tests, test{base + 90, name + " and what follows is left out", "LooseArgument", key,
				[]request{by(good[:slot]...)}})
		}
	}
	g.tests = append(g.tests, test{1000 + 100*(len(names)-1) + 91, "an argument too many", "LooseArgument", key,
		[]request{by(append(slices.Clone(good), "1")...)}})
	return g
}

// canonical tells whether a text is a whole number as it is usually written.
func canonical(text string) bool {
	text = strings.TrimPrefix(text, "-")
	return text == "0" || strings.Trim(text, "0123456789") == "" && !strings.HasPrefix(text, "0")
}

// hostileState tries the texts with a look, a call and one that never fits. The ids are
// 1600 and the text's number, from number 90 on 1700 and it; the list's is 1690.
func hostileState(script precision.Script, argv string, unfittable int64) group {
	g := group{comment: "keys that hold something else, or another script's state", argv: argv}
	steps := from(epoch, calls(0, 0, 1, 0, unfittable, 0))
	for _, h := range hostile.States {
		flags, id := "LooseState", 1600+h.Number
		if h.Number >= 90 {
			id = 1700 + h.Number
		}
		s, ok := precision.ParseState(script, h.Text)
		if len(h.Text) > longest {
			continue
		}
		if ok && !script.IsWindow() && s.Value >= uint64(epoch+precision.FarNs) {
			flags += " " + farWait
		}
		g.tests = append(g.tests, test{id, fmt.Sprintf("the key holds %.20q", h.Text), flags,
			holding(h.Text).expiring(), steps})
	}
	g.tests = append(g.tests, test{1690, "the key holds a list", "LooseState", list.expiring(), steps})
	return g
}
