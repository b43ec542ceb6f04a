package precision

import (
	"fmt"
	"strconv"
	"strings"
)

// shrinkCalls is how many calls Shrink makes before it is content with what it has.
const shrinkCalls = 500_000

// Shrink returns the fewest calls of a trace, found by leaving calls out, that still
// show a claim broken on the driver, and what is broken then. It returns the whole
// trace where it does not break again.
func Shrink(d Driver, t *Trace) (*Trace, string) {
	broken, at := playOnce(d, t.Script, t.Calls)
	if at < 0 {
		return t, ""
	}
	calls, made := t.Calls[:at+1], 0
	for chunk := len(calls) / 2; chunk > 0; {
		shorter := false
		for from := 0; from+chunk <= len(calls); {
			less := append(append([]Call(nil), calls[:from]...), calls[from+chunk:]...)
			if made += len(less); made > shrinkCalls {
				return NewTraceOf(t.Script, calls), broken
			}
			if b, at := playOnce(d, t.Script, less); at >= 0 {
				calls, broken, shorter = less[:at+1], b, true
			} else {
				from += chunk
			}
		}
		if chunk > 1 || !shorter {
			chunk /= 2
		}
	}
	return NewTraceOf(t.Script, calls), broken
}

// playOnce judges the calls on a fresh key. at is the first call that falls short, -1
// when none does or the driver cannot go on.
func playOnce(d Driver, script Script, calls []Call) (broken string, at int) {
	outcomes, err := Play(d, script, "shrink", calls)
	if err != nil {
		return "", -1
	}
	tally := Judge(NewTraceOf(script, calls), outcomes)
	if tally.Sound() {
		return "", -1
	}
	return tally.Broken, tally.BrokenAt
}

// String is the trace as one argument of the command line, which ParseTrace reads:
// the script's name, then amount,period_ns,burst,cost,now_ns for each call, with the
// mode in place of burst for a window. Where the call sets the server's clock that comes
// last, in ns, and now_ns is empty where it is left out. What is given follows an @, with :
// in place of spaces.
func (t *Trace) String() string {
	words := []string{string(t.Script)}
	for _, c := range t.Calls {
		words = append(words, c.text(t.Script))
	}
	return strings.Join(words, " ")
}

func (c *Call) text(script Script) string {
	fields := c.Args(script)
	if c.ByServer {
		fields = append(fields, "")
	}
	if c.ServerNs > 0 {
		fields = append(fields, strconv.FormatInt(c.ServerNs, 10))
	}
	word := strings.Join(fields, ",")
	if c.Given != "" {
		word += "@" + strings.ReplaceAll(c.Given, " ", ":")
	}
	return word
}

// ParseTrace reads what String writes.
func ParseTrace(text string) (*Trace, error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return nil, fmt.Errorf("a trace is a script's name and calls, as gcra_v2 300,60000000000,60,1,0, not %q", text)
	}
	script, known := Script(words[0]), false
	for _, s := range Scripts {
		known = known || s.Script == script
	}
	if !known {
		return nil, fmt.Errorf("no script %q", words[0])
	}
	var calls []Call
	for _, word := range words[1:] {
		c, err := parseCall(script, word)
		if err == nil {
			err = c.Check(script) // the oracle is for such calls alone
		}
		if err != nil {
			return nil, fmt.Errorf("call %q: %w", word, err)
		}
		calls = append(calls, c)
	}
	return NewTraceOf(script, calls), nil
}

func parseCall(script Script, word string) (c Call, err error) {
	word, given, _ := strings.Cut(word, "@")
	c.Given = strings.ReplaceAll(given, ":", " ")
	fields := strings.Split(word, ",")
	if len(fields) != 5 && len(fields) != 6 {
		return c, fmt.Errorf("%d values, want amount, period_ns, burst or mode, cost, now_ns, and perhaps the server's clock",
			len(fields))
	}
	if len(fields) == 6 && fields[4] == "" {
		c.ByServer, fields[4] = true, fields[5]
	}
	into := []*int64{&c.Amount, &c.PeriodNs, &c.Burst, &c.Cost, &c.NowNs, &c.ServerNs}
	for i, into := range into[:len(fields)] {
		if i == 2 && script.IsWindow() {
			c.Sliding = fields[2] == "sliding"
			if !c.Sliding && fields[2] != "fixed" {
				return c, fmt.Errorf("mode %q is neither fixed nor sliding", fields[2])
			}
			continue
		}
		if *into, err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return c, err
		}
	}
	return c, nil
}
