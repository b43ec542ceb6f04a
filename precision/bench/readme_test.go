package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What the READMEs show of a run agrees with itself; whether it is what a run measures only
// a run can tell.

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// shownRows are the cells of the lines of all tables in a text.
func shownRows(text string) [][]string {
	var shown [][]string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(unpadded(line)); strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| --") {
			shown = append(shown, strings.Split(strings.Trim(line, "| "), " | "))
		}
	}
	return shown
}

// figureOf is a cell's figure, 0 for '-'.
func figureOf(t *testing.T, cell string) float64 {
	t.Helper()
	if cell == "-" {
		return 0
	}
	value, err := strconv.ParseFloat(cell, 64)
	if err != nil {
		t.Errorf("README.md has the figure %q", cell)
	}
	return value
}

// shownFigures are the figures that README.md has of each candidate.
func shownFigures(t *testing.T, readme string) []*row {
	t.Helper()
	rows := newRows()
	shown := shownRows(readme)
	for at, want := range tables(rows, parts{true, true, true}) {
		start := slices.IndexFunc(shown, func(cells []string) bool { return slices.Equal(cells, want.columns) })
		if start < 0 || len(shown) < start+1+len(want.rows) {
			t.Fatalf("README.md lacks the table of %q", want.columns)
		}
		for i, names := range want.rows {
			cells := shown[start+1+i]
			if len(cells) != len(names) || !slices.Equal(cells[:want.names], names[:want.names]) {
				t.Fatalf("README.md has the row %q where %q stands", cells, names[:want.names])
			}
			r := rows[slices.IndexFunc(rows, func(r *row) bool { return r.label() == cells[0] && r.clock == cells[1] })]
			var figures []float64
			for _, cell := range cells[want.names:] {
				figures = append(figures, figureOf(t, cell))
			}
			of := &r.Admitted
			if cells[2] == "refused" {
				of = &r.Refused
			}
			switch at {
			case 0:
				for k, scenario := range []scenario{fresh, busy, slow, refused} {
					r.Instructions[scenario] = figures[k]
				}
			case 1:
				of.Server, r.Bytes = figures[0], max(r.Bytes, figures[len(figures)-1])
				copy(of.Rates[:], figures[1:])
			case 2:
				of.Client, of.Allocations, of.Trips = figures[0], figures[1], figures[2]
			case 3:
				r.Wrong = &wrongs{int(figures[0]), int(figures[1])}
			}
		}
	}
	return rows
}

// README.md shows the tables that the program writes, in its words, and below them the bounds
// of these very figures. All hold.
func TestReadme(t *testing.T) {
	readme := read(t, "README.md")
	rows := shownFigures(t, readme)
	for _, want := range tables(rows, parts{true, true, true}) {
		if !strings.Contains(readme, want.String()) {
			t.Errorf("README.md has not the table as it is written:\n%s", want)
		}
	}
	_, list, _ := strings.Cut(readme, "\n## Bounds\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	lines := strings.Split(list, "\n")
	each := regexp.MustCompile(`^- AllowEach of 100, calls a second over Allow's: ([\d.]+), at least 8: holds$`)
	at := slices.IndexFunc(lines, each.MatchString)
	if at < 0 {
		t.Fatalf("README.md has no bound of AllowEach:\n%s", list)
	}
	ratio := figureOf(t, each.FindStringSubmatch(lines[at])[1])
	all := bounds(boundServer, rows, 1, ratio)
	if len(lines) != len(all) {
		t.Errorf("README.md has %d bounds, the figures have %d", len(lines), len(all))
	}
	for _, b := range all {
		if !slices.Contains(lines, "- "+b.String()) || !b.holds() {
			t.Errorf("README.md has not the bound of its figures, or it does not hold: %s", b)
		}
	}
}

// On other servers gcra_v2 takes no more than redis_rate but at a limit slower than one a
// second, as the text says.
func TestReadmeOfOtherServers(t *testing.T) {
	readme := read(t, "README.md")
	_, others, _ := strings.Cut(readme, "\n## Other servers\n")
	others, _, _ = strings.Cut(others, "\n## ")
	figures := map[string][]float64{}
	servers := map[string]bool{}
	for _, cells := range shownRows(others)[1:] {
		for _, cell := range cells[2:] {
			figures[cells[0]+" "+cells[1]] = append(figures[cells[0]+" "+cells[1]], figureOf(t, cell))
		}
		servers[cells[0]] = true
	}
	if len(servers) != 2 {
		t.Fatalf("README.md has %d other servers", len(servers))
	}
	for server := range servers {
		v2, peer := figures[server+" gcra_v2"], figures[server+" redis_rate v10"]
		if len(v2) != 4 || len(peer) != 4 {
			t.Fatalf("README.md has of %s the figures %v and %v", server, v2, peer)
		}
		for i, scenario := range []scenario{fresh, busy, slow, refused} {
			if scenario == slow && v2[i] < peer[i] || scenario != slow && v2[i] > peer[i] {
				t.Errorf("README.md has of %s, %s: gcra_v2 %v, redis_rate %v", server, scenario, v2[i], peer[i])
			}
		}
	}
}

// The README of the repository has the telling rows as they stand here.
func TestTellingRows(t *testing.T) {
	rows := shownFigures(t, read(t, "README.md"))
	_, cost, _ := strings.Cut(read(t, "../../README.md"), "\n## Cost\n")
	cost, _, _ = strings.Cut(cost, "\n## ")
	shown := shownRows(strings.ReplaceAll(cost, "|---", "| ---"))
	if len(shown) < 2 || !slices.Equal(shown[0], []string{"script", "new key", "busy key", "refused"}) {
		t.Fatalf("../../README.md has no table of costs: %q", shown)
	}
	for _, cells := range shown[1:] {
		label := strings.TrimSuffix(cells[0], " alone")
		i := slices.IndexFunc(rows, func(r *row) bool { return r.label() == label && r.clock == serverClock })
		if i < 0 || len(cells) != 4 {
			t.Errorf("../../README.md has a row of nothing measured: %q", cells)
			continue
		}
		for k, scenario := range []scenario{fresh, busy, refused} {
			if got, want := cells[1+k], figure(rows[i].Instructions[scenario], 0); got != want {
				t.Errorf("../../README.md has of %s, %s: %s, here stands %s", label, scenario, got, want)
			}
		}
	}
}
