package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// row is what is measured of a candidate whose calls are all admitted, or all
// refused. A figure that was not measured is 0.
type row struct {
	candidate
	of scenario // fresh or refused

	Instructions     float64
	BusyInstructions float64              // the same at one existing key
	Server           float64              // us
	Rates            [len(depths)]float64 // calls a second, by depth of the pipeline
	Bytes            float64
	Client           float64 // ns
	Allocations      float64
	Trips            float64
	Wrong            *int // decisions of this outcome; nil where there are none to judge
}

func newRows() []*row {
	var rows []*row
	for _, c := range candidates {
		rows = append(rows, &row{candidate: c, of: fresh})
		if c.counts != nothing {
			rows = append(rows, &row{candidate: c, of: refused})
		}
	}
	return rows
}

// judged is true of the row for which a candidate's decisions are judged, which fills
// in the next row too.
func (r *row) judged() bool { return r.of == fresh && r.counts != nothing }

// scenarios are those in which instructions are counted, and where they go.
func (r *row) scenarios() map[scenario]*float64 {
	if r.of == refused {
		return map[scenario]*float64{refused: &r.Instructions}
	}
	return map[scenario]*float64{fresh: &r.Instructions, busy: &r.BusyInstructions}
}

func (r *row) outcome() string {
	if r.of == refused {
		return "refused"
	}
	return "admitted"
}

// cells are the row's figures, by column.
func (r *row) cells() []string {
	figure := func(value float64) string {
		if value == 0 {
			return "-"
		}
		return fmt.Sprintf("%.0f", value)
	}
	cells := []string{r.label(), r.clock, r.outcome(), figure(r.Instructions), figure(r.BusyInstructions)}
	if r.Server == 0 {
		cells = append(cells, "-")
	} else {
		cells = append(cells, fmt.Sprintf("%.1f", r.Server))
	}
	for _, rate := range r.Rates {
		cells = append(cells, figure(rate))
	}
	cells = append(cells, figure(r.Bytes), figure(r.Client), figure(r.Allocations), figure(r.Trips))
	if r.Wrong == nil {
		return append(cells, "-")
	}
	return append(cells, fmt.Sprint(*r.Wrong))
}

var columns = []string{"script", "clock", "outcome", "instructions", "busy key", "server us",
	"calls/s", "pipeline 16", "pipeline 100", "bytes", "client ns", "allocations", "trips", "wrong"}

const legend = `A call asks for 1 unit of 300 a minute, burst 60. Instructions are the server's a call, by
callgrind, with a new key of 16 bytes each time, and with one busy key of much room. Server us
is by commandstats. Calls a second come from one connection and, on Linux, from other CPUs than
the server's. Bytes are the MEMORY USAGE of the key k, before which some put a prefix. Client ns
and allocations are the library's own at an existing key, with the answers played back to it at
once; trips are its waits for an answer. Wrong is how many of 100000 decisions differ from exact
integers, admitted too early or refused too late, at every instant between a TIME before and one
after. gcra_v1 refuses more than exact integers do because its interval is rounded up by less
than 256 ns.`

// writeTable writes the rows as a table in Markdown.
func writeTable(out io.Writer, rows []*row) error {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(columns)
	rule := make([]string, len(columns))
	for i := range rule {
		rule[i] = "---"
		if i > 2 {
			rule[i] = "---:"
		}
	}
	line(rule)
	for _, r := range rows {
		line(r.cells())
	}
	fmt.Fprintf(&text, "\n%s\n", legend)
	_, err := io.WriteString(out, text.String())
	return err
}

// writeJSON writes the rows as objects with their figures; what was not measured is
// left out.
func writeJSON(out io.Writer, rows []*row, head map[string]any) error {
	type object struct {
		Script           string    `json:"script"`
		Clock            string    `json:"clock"`
		Outcome          string    `json:"outcome"`
		Instructions     float64   `json:"instructions,omitempty"`
		BusyInstructions float64   `json:"busy_instructions,omitempty"`
		ServerUs         float64   `json:"server_us,omitempty"`
		CallsPerSecond   []float64 `json:"calls_per_second,omitempty"` // pipelines of 1, 16, 100
		Bytes            float64   `json:"bytes,omitempty"`
		ClientNs         float64   `json:"client_ns,omitempty"`
		Allocations      float64   `json:"allocations,omitempty"`
		Trips            float64   `json:"trips,omitempty"`
		Wrong            *int      `json:"wrong,omitempty"`
	}
	objects := make([]object, len(rows))
	for i, r := range rows {
		objects[i] = object{r.label(), r.clock, r.outcome(), r.Instructions, r.BusyInstructions, r.Server,
			nil, r.Bytes, r.Client, r.Allocations, r.Trips, r.Wrong}
		if r.Rates[0] != 0 {
			objects[i].CallsPerSecond = r.Rates[:]
		}
	}
	head["rows"] = objects
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(head)
}

// bound is a figure beside what it has to be.
type bound struct {
	what      string
	got, want float64
	atLeast   bool
}

func (b bound) holds() bool {
	if b.atLeast {
		return b.got >= b.want
	}
	return b.got <= b.want
}

func (b bound) String() string {
	sign, verdict := "at most", "holds"
	if b.atLeast {
		sign = "at least"
	}
	if !b.holds() {
		verdict = "DOES NOT HOLD"
	}
	return fmt.Sprintf("%s: %s, %s %s: %s", b.what, number(b.got), sign, number(b.want), verdict)
}

// number is whole from 100 on, and has two digits after the point below.
func number(value float64) string {
	if value >= 100 {
		return fmt.Sprintf("%.0f", value)
	}
	return strconv.FormatFloat(math.Round(value*100)/100, 'f', -1, 64)
}

// bounds are those whose figures were measured. allow and each are the calls a second
// of the loader, one by one and a hundred together.
func bounds(rows []*row, allow, each float64) []bound {
	find := func(label string, of scenario) *row {
		for _, r := range rows {
			if r.label() == label && r.clock == serverClock && r.of == of {
				return r
			}
		}
		return &row{}
	}
	v2, peer := find("gcra_v2", fresh), find("redis_rate v10", fresh)
	all := []bound{
		{"gcra_v2 instructions, admitted", v2.Instructions, 66_000, false},
		{"gcra_v2 instructions, refused", find("gcra_v2", refused).Instructions, 50_000, false},
		{"gcra_v1 instructions over gcra_v2's, admitted", ratio(find("gcra_v1", fresh).Instructions, v2.Instructions), 1.05, false},
		{"window_v2 sliding instructions, admitted", find("window_v2 sliding", fresh).Instructions, 70_000, false},
		{"gcra_v2 client ns over redis_rate's", ratio(v2.Client, peer.Client), 1, false},
		{"gcra_v2 client allocations over redis_rate's", ratio(v2.Allocations, peer.Allocations), 1, false},
		{"gcra_v2 bytes a key", v2.Bytes, 56, false},
		{"window_v2 bytes a key", find("window_v2 sliding", fresh).Bytes, 72, false},
		{"AllowEach of 100, calls a second over Allow's", ratio(each, allow), 8, true},
	}
	all = slices.DeleteFunc(all, func(b bound) bool { return b.got == 0 })
	if wrong, judged := wrongOfExact(rows); judged {
		all = append(all, bound{"wrong decisions of gcra_v2 and the windows, early ones of gcra_v1", float64(wrong), 0, false})
	}
	return all
}

// broken is an error that names the bounds which do not hold, or nil.
func broken(bounds []bound) error {
	var errs []error
	for _, b := range bounds {
		if !b.holds() {
			errs = append(errs, errors.New(b.String()))
		}
	}
	return errors.Join(errs...)
}

// wrongOfExact counts the decisions that the scripts may not get wrong, when they were
// judged. gcra_v1 may be late, never early.
func wrongOfExact(rows []*row) (wrong int, judged bool) {
	for _, r := range rows {
		switch r.name {
		case "gcra_v1", "gcra_v2", "window_v1", "window_v2":
			if r.Wrong != nil && (r.name != "gcra_v1" || r.of == fresh) {
				wrong, judged = wrong+*r.Wrong, true
			}
		}
	}
	return wrong, judged
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
