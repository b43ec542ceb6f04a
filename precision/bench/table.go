package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// row is what is measured of a candidate. A figure that was not measured is 0.
type row struct {
	candidate
	Instructions      map[scenario]float64 // of the server, a call
	Bytes             float64
	Admitted, Refused calls
	Wrong             *wrongs // nil where there are no decisions to judge
}

// calls are figures of calls that are all admitted, or all refused.
type calls struct {
	Server      float64              // us
	Rates       [len(depths)]float64 // calls a second, by depth of the pipeline
	Client      float64              // ns
	Allocations float64
	Trips       float64
}

func newRows() []*row {
	var rows []*row
	for _, c := range candidates {
		rows = append(rows, &row{candidate: c, Instructions: map[scenario]float64{}})
	}
	return rows
}

// outcomes are how calls of the candidate come out, and where their figures go.
func (r *row) outcomes() []outcome {
	if !r.judged() {
		return []outcome{{fresh, &r.Admitted}}
	}
	return []outcome{{fresh, &r.Admitted}, {refused, &r.Refused}}
}

type outcome struct {
	of scenario // fresh or refused
	*calls
}

func (o outcome) String() string {
	if o.of == refused {
		return "refused"
	}
	return "admitted"
}

// table is one of those that are written: the first columns say what a row is of, the
// others are figures.
type table struct {
	columns []string
	names   int // columns that are no figures
	rows    [][]string
	legend  string
}

const instructionsLegend = `Instructions of the server a call, by callgrind. A call asks for 1 unit of 300 a minute, burst 60,
at a new key each time; at one key that is always busy and has much room, by the same limit and by
one of 10 a minute; and at one key that refuses. limits_v1 does so with each of its asks, and gives
1 unit of 2 back. A key has 16 bytes with what the limiter puts
around it. Where there is a bound on the row a figure is the mean of 4 servers.`

const speedLegend = `Server us is by commandstats. Calls a second come from one connection, one by one and in pipelines
of 16 and 100, on Linux from other CPUs than the server's. Bytes are the MEMORY USAGE of the key k
with what the limiter puts around it.`

const clientLegend = `The time and the allocations of the library itself at an existing key, with the answers played
back to it at once, and how often it waits for an answer.`

const decisionsLegend = `How many of 100000 decisions are wrong by exact integers at every instant between a TIME before
and one after: admitted too early, refused too late. gcra_v1 is late because its interval is
rounded up, by less than 256 ns.`

// tables are those of the parts that were measured.
func tables(rows []*row, p parts) []table {
	instructions := table{columns: []string{"script", "clock", "new key", "busy key", "busy, 10 a minute", "refused"},
		names: 2, legend: instructionsLegend}
	speed := table{columns: []string{"script", "clock", "outcome", "server us", "calls/s", "by 16", "by 100",
		"bytes"}, names: 3, legend: speedLegend}
	client := table{columns: []string{"script", "clock", "outcome", "client ns", "allocations", "trips"},
		names: 3, legend: clientLegend}
	decisions := table{columns: []string{"script", "clock", "early", "late"}, names: 2, legend: decisionsLegend}
	for _, r := range rows {
		cells := []string{r.label(), r.clock}
		for _, of := range []scenario{fresh, busy, slow, refused} {
			cells = append(cells, figure(r.Instructions[of], 0))
		}
		instructions.rows = append(instructions.rows, cells)
		for _, o := range r.outcomes() {
			cells := []string{r.label(), r.clock, o.String(), figure(o.Server, 1)}
			for _, rate := range o.Rates {
				cells = append(cells, figure(rate, 0))
			}
			bytes := r.Bytes
			if o.of == refused {
				bytes = 0 // it leaves none
			}
			speed.rows = append(speed.rows, append(cells, figure(bytes, 0)))
			client.rows = append(client.rows, []string{r.label(), r.clock, o.String(),
				figure(o.Client, 0), figure(o.Allocations, 0), figure(o.Trips, 0)})
		}
		switch {
		case !r.judged():
		case r.Wrong == nil:
			decisions.rows = append(decisions.rows, []string{r.label(), r.clock, "-", "-"})
		default:
			decisions.rows = append(decisions.rows,
				[]string{r.label(), r.clock, fmt.Sprint(r.Wrong.Early), fmt.Sprint(r.Wrong.Late)})
		}
	}
	var measured []table
	if p.instructions {
		measured = append(measured, instructions)
	}
	if p.speed {
		measured = append(measured, speed, client)
	}
	if p.decisions {
		measured = append(measured, decisions)
	}
	return measured
}

func figure(value float64, digits int) string {
	if value == 0 {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, value)
}

// String is the table in Markdown, in columns of even width, and what it says.
func (t table) String() string {
	widths := make([]int, len(t.columns))
	for _, cells := range append(t.rows, t.columns) {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	line := func(cells []string) {
		for i, cell := range cells {
			if i < t.names {
				fmt.Fprintf(&text, "| %-*s ", widths[i], cell)
			} else {
				fmt.Fprintf(&text, "| %*s ", widths[i], cell)
			}
		}
		text.WriteString("|\n")
	}
	line(t.columns)
	for i, width := range widths {
		colon := "-"
		if i >= t.names {
			colon = ":"
		}
		fmt.Fprintf(&text, "| %s%s ", strings.Repeat("-", width-1), colon)
	}
	text.WriteString("|\n")
	for _, cells := range t.rows {
		line(cells)
	}
	return text.String() + "\n" + t.legend + "\n"
}

// writeJSON writes the rows as objects with their figures; what was not measured is
// left out.
func writeJSON(out io.Writer, rows []*row, head map[string]any) error {
	type figures struct {
		ServerUs       float64   `json:"server_us"`
		CallsPerSecond []float64 `json:"calls_per_second"` // pipelines of 1, 16, 100
		ClientNs       float64   `json:"client_ns"`
		Allocations    float64   `json:"allocations"`
		Trips          float64   `json:"trips"`
	}
	type object struct {
		Script       string               `json:"script"`
		Clock        string               `json:"clock"`
		Instructions map[scenario]float64 `json:"instructions,omitempty"`
		Bytes        float64              `json:"bytes,omitempty"`
		Calls        map[string]figures   `json:"calls,omitempty"` // by outcome
		Wrong        *wrongs              `json:"wrong,omitempty"`
	}
	objects := make([]object, len(rows))
	for i, r := range rows {
		objects[i] = object{r.label(), r.clock, r.Instructions, r.Bytes, map[string]figures{}, r.Wrong}
		for _, o := range r.outcomes() {
			if o.Server != 0 {
				objects[i].Calls[o.String()] = figures{o.Server, o.Rates[:], o.Client, o.Allocations, o.Trips}
			}
		}
	}
	head["rows"] = objects
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(head)
}
