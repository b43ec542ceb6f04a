// Package interpreters runs scripts in plain Luas, without a server: that of Redis, and
// those of servers that have another. Lua 5.4 is in Dragonfly and Garnet, LuaJIT in Kvrocks.
package interpreters

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/tatami-rate/tatami/emulator/native"
)

// Names are the programs, as they are found on PATH.
var Names = []string{"lua5.1", "luajit", "lua5.4"}

//go:embed interpreter.lua
var program string

// Call is one call of a script, and what it finds of a server.
type Call struct {
	UnixUs  int64  // the server's clock
	Prelude string // Lua that stands before the script, to run it as on another server
	Refuses string // GET or SET: the server answers that with an error
	Keys    []native.Key
	Args    []string
}

// Difference is the first call on which a variant's outcome is not the script's.
type Difference struct {
	Call    int
	Outcome string
}

// Run has an interpreter make the calls by a script and by variants of it. An outcome is the
// reply, its tables in brackets, "error" with its text or "raised" with the interpreter's own;
// then for each key that is set its number, a colon, the bytes in hexadecimal, and KEEPTTL or
// EX with its seconds. The differences are by variant, and nil for one that has none.
func Run(ctx context.Context, name, script string, variants []string, calls []Call) ([]string, []*Difference, error) {
	lua := exec.CommandContext(ctx, name, "-e"+program)
	var stderr bytes.Buffer
	lua.Stdin, lua.Stderr = strings.NewReader(input(script, variants, calls)), &stderr
	out, err := lua.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %s", name, err, stderr.Bytes())
	}
	var outcomes []string
	differences := make([]*Difference, len(variants))
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		other, isOther := strings.CutPrefix(lines.Text(), "! ")
		if !isOther {
			outcomes = append(outcomes, lines.Text())
			continue
		}
		number, outcome, _ := strings.Cut(other, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(variants) {
			return nil, nil, fmt.Errorf("%s: it answers %q", name, lines.Text())
		}
		differences[n-1] = &Difference{len(outcomes) - 1, outcome}
	}
	if len(outcomes) != len(calls) {
		return nil, nil, fmt.Errorf("%s: %d outcomes of %d calls: %s", name, len(outcomes), len(calls), stderr.Bytes())
	}
	return outcomes, differences, nil
}

// Outcome is the outcome of a call by the native port, as Run tells it.
func Outcome(r native.Reply, after []native.Key) string {
	if r.Err != "" {
		return "error " + r.Err
	}
	written := []native.Decision{r.Decision}
	line := fmt.Sprintf("%d %d %d %d", r.Status, r.Remaining, r.RetryAfterNs, r.ResetAfterNs)
	if r.Limits != nil {
		written, line = nil, fmt.Sprintf("%d %d", r.Status, r.RetryAfterNs)
		for _, l := range r.Limits {
			written = append(written, l.Decision)
			line += fmt.Sprintf(" [%d %d %d %d %s]", l.Status, l.Remaining, l.RetryAfterNs, l.ResetAfterNs, l.Receipt)
		}
	}
	for i, d := range written {
		switch {
		case d.Written && d.TTLS == 0:
			line += fmt.Sprintf(" %d:%x KEEPTTL", i+1, after[i].Text)
		case d.Written:
			line += fmt.Sprintf(" %d:%x EX %d", i+1, after[i].Text, d.TTLS)
		}
	}
	return line
}

// input is what interpreter.lua reads.
func input(script string, variants []string, calls []Call) string {
	var preludes []string
	prelude := make([]int, len(calls))
	for i, c := range calls {
		at := slices.Index(preludes, c.Prelude)
		if at < 0 {
			at, preludes = len(preludes), append(preludes, c.Prelude)
		}
		prelude[i] = 1 + at
	}
	var text strings.Builder
	fmt.Fprintln(&text, len(preludes), 1+len(variants))
	for _, part := range slices.Concat(preludes, []string{script}, variants) {
		fmt.Fprintf(&text, "%d\n%s", len(part), part)
	}
	for i, c := range calls {
		refuses := "-"
		if c.Refuses != "" {
			refuses = c.Refuses
		}
		fmt.Fprintf(&text, "%d %d %d %s %d", c.UnixUs/1e6, c.UnixUs%1e6, prelude[i], refuses, len(c.Keys))
		for _, key := range c.Keys {
			held := "-"
			if key.Exists {
				held = fmt.Sprintf("=%x", key.Text)
			}
			fmt.Fprintf(&text, " =%x %s", key.Name, held)
		}
		for _, arg := range c.Args {
			fmt.Fprintf(&text, " =%x", arg)
		}
		text.WriteByte('\n')
	}
	return text.String()
}
