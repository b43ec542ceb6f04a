// Package plots draws what the precision suite measures, and writes its report.
package plots

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/internal/skew"
)

// Plot is one figure of the report.
type Plot struct {
	File    string // such as "lateness.svg"
	Caption string // what it shows, with the figures
	Table   string // the same in Markdown, "" where the caption says it all
	SVG     []byte
}

// Draw measures and draws the plots. Their bytes depend on the seed alone.
func Draw(seed uint64) ([]Plot, error) {
	var plots []Plot
	for _, draw := range []func(uint64) (Plot, error){lateness, saturation, streams, skews} {
		p, err := draw(seed)
		if err != nil {
			return nil, err
		}
		plots = append(plots, p)
	}
	return plots, nil
}

// The colours are told apart by those who see fewer of them, too.
var (
	blue   = color.RGBA{0, 114, 178, 255}
	orange = color.RGBA{213, 94, 0, 255}
	green  = color.RGBA{0, 158, 115, 255}
	pink   = color.RGBA{204, 121, 167, 255}
	sky    = color.RGBA{86, 180, 233, 255}
	grey   = color.RGBA{90, 90, 90, 255}
)

// latenessTraces are the traces of each script that make the histogram.
const latenessTraces = 600

func lateness(seed uint64) (Plot, error) {
	v1, outside1 := precision.Lateness(precision.GCRAV1, seed, latenessTraces)
	v2, outside2 := precision.Lateness(precision.GCRAV2, seed, latenessTraces)
	if outside1+outside2 > 0 {
		return Plot{}, fmt.Errorf("lateness: %d waits are outside 0 .. 255 ns", outside1+outside2)
	}
	f := newFigure("When the wait of a refused call ends", "ns after the first instant of exact GCRA", "waits, %")
	f.leastY = 0.01
	f.xAxis(0, 255, 0, 32, 64, 96, 128, 160, 192, 224, 255)
	f.yAxis(0.01, 1000, 0.01, 0.1, 1, 10, 100)
	f.add("gcra_v1: 0 to 255 ns", f.bars(blue, shares(v1)))
	f.add("gcra_v2: all of them 0 ns", f.points(orange, shares(v2)[:1])) // a bar of one ns is hardly seen
	sum1, latest1 := total(v1[:])
	sum2, latest2 := total(v2[:])
	return newPlot("lateness.svg", fmt.Sprintf("Of %d waits that gcra_v1 named, %.1f %% end at the very nanosecond of the exact "+
		"first instant, the latest %d ns after it, none before it. gcra_v2: %d waits, the latest %d ns after it, none before it.",
		sum1, 100*float64(v1[0])/float64(sum1), latest1, sum2, latest2), "", f)
}

// shares are the counts in per cent of their sum.
func shares(counts [256]int64) plotter.XYs {
	sum, _ := total(counts[:])
	var points plotter.XYs
	for i, n := range counts {
		points = append(points, plotter.XY{X: float64(i), Y: 100 * float64(n) / float64(sum)})
	}
	return points
}

// total is the sum of the counts, and the last index that has any.
func total(counts []int64) (sum int64, last int) {
	for i, n := range counts {
		sum += n
		if n > 0 {
			last = i
		}
	}
	return sum, last
}

func saturation(uint64) (Plot, error) {
	s := precision.NewSaturation()
	f := newFigure("One unit in 1100 ns, burst 64, asked for every 10 ns", "time since the first call, ms", "units admitted")
	f.xAxis(0, 1, 0, 0.2, 0.4, 0.6, 0.8, 1)
	f.yAxis(0, 1200, 0, 200, 400, 600, 800, 1000, 1200)
	series := func(units []int64) plotter.XYs {
		var points plotter.XYs
		for i, n := range units {
			points = append(points, plotter.XY{X: float64(s.AtNs[i]) / 1e6, Y: float64(n)})
		}
		return points
	}
	f.add("TAT in one double, rounded to nearest", f.line(orange, solid, series(s.Nearest)))
	f.add("gcra_v2", f.line(sky, solid, series(s.V2)))
	f.add("exact GCRA", f.line(grey, dashed, series(s.Exact)))
	f.add("gcra_v1", f.line(blue, solid, series(s.V1)))
	end := len(s.AtNs) - 1
	return newPlot("saturation.svg", fmt.Sprintf("After 1 ms exact GCRA has admitted %d units. A TAT in one double, rounded to nearest, admits %d: "+
		"it adds 1024 ns in place of 1100 each time, %.1f %% too many for ever. gcra_v2 admits %d, and gcra_v1, whose interval is 1280 ns, %d.",
		s.Exact[end], s.Nearest[end], 100*(1100./1024-1), s.V2[end], s.V1[end]), "", f)
}

func streams(uint64) (Plot, error) {
	f := newFigure("A silence, then an even rate, with a limit of 10 a second", "silence, ms", "most admitted in any second, of six rates")
	f.xAxis(0, 990, 0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 990)
	f.yAxis(0, 32, 0, 5, 10, 15, 20, 25, 30)
	var said []string
	for _, limit := range []struct {
		name    string
		script  precision.Script
		sliding bool
		burst   int64
		color   color.Color
	}{
		{"fixed window", precision.WindowV1, false, 0, orange},
		{"GCRA of burst 10", precision.GCRAV2, false, 10, blue},
		{"sliding window", precision.WindowV1, true, 0, green},
		{"GCRA of burst 1", precision.GCRAV2, false, 1, pink},
	} {
		var points plotter.XYs
		var worst skew.Stream
		most := int64(0)
		for _, s := range skew.Streams() {
			peak := s.Peak(limit.script, limit.sliding, limit.burst)
			if len(points) == 0 || points[len(points)-1].X != float64(s.SilenceMs) {
				points = append(points, plotter.XY{X: float64(s.SilenceMs)})
			}
			last := &points[len(points)-1]
			last.Y = max(last.Y, float64(peak))
			if peak > most {
				most, worst = peak, s
			}
		}
		f.add(limit.name, f.line(limit.color, solid, points))
		said = append(said, fmt.Sprintf("%s: %d, after %d ms at %d a second", limit.name, most, worst.SilenceMs, worst.PerSecond))
	}
	f.add("the limit", f.line(grey, dashed, plotter.XYs{{X: 0, Y: 10}, {X: 990, Y: 10}}))
	return newPlot("streams.svg", "The most that is admitted in any second of 600 streams, silences of 0 to 990 ms by 10 before 1000, 500, 200, "+
		"100, 50 or 20 calls a second: "+strings.Join(said, "; ")+".", "", f)
}

func skews(seed uint64) (Plot, error) {
	const widest, step = 4e9, 25e7 // clocks off by up to 2 s either way
	var spans []int64
	for span := int64(0); span <= widest; span += step {
		spans = append(spans, span)
	}
	rows := skew.Measure(seed, spans)

	bounded := newFigure("10 a second, clocks that disagree", "slowest to fastest clock, s", "admitted in any second: dots; bound: lines")
	bounded.yAxis(0, 90, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90)
	var table strings.Builder
	table.WriteString("| script | the server's clock | its bound | clocks off by up to 2 s | its bound | reached by |\n|---|---|---|---|---|---|\n")
	var gcra string
	for i, algorithm := range skew.Algorithms {
		name := string(algorithm.Script)
		switch {
		case algorithm.Sliding:
			name += " sliding"
		case algorithm.Script == precision.WindowV1:
			name += " fixed"
		}
		rows := rows[i*len(spans) : (i+1)*len(spans)]
		first, last := rows[0], rows[len(rows)-1]
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d gateways |\n",
			name, first.Most, first.Bound, last.Most, last.Bound, last.Gateways)

		var most, proven plotter.XYs
		for _, r := range rows {
			x := float64(r.SpanNs) / 1e9
			most = append(most, plotter.XY{X: x, Y: float64(r.Most)})
			proven = append(proven, plotter.XY{X: x, Y: float64(r.Bound)})
		}
		both := func(c color.Color) { bounded.add(name, bounded.line(c, solid, proven), bounded.points(c, most)) }
		switch {
		case algorithm.Script == precision.GCRAV2: // gcra_v1 lies under it
			name, gcra = "gcra_v1, gcra_v2", fmt.Sprintf("gcra goes from %d to %d: 4 s / interval more, and those once", first.Most, last.Most)
			both(blue)
		case algorithm.Script == precision.WindowV1 && algorithm.Sliding:
			both(green)
		case algorithm.Script == precision.WindowV1:
			both(orange)
		}
	}
	bounded.xAxis(0, widest/1e9, 0, 1, 2, 3, 4)
	bounded.add("the limit", bounded.line(grey, dashed, plotter.XYs{{X: 0, Y: 10}, {X: widest / 1e9, Y: 10}}))
	return newPlot("skew.svg", "2 to 8 gateways that pass their own clocks, against a limit of 10 a second (gcra: burst 10): dots are the most "+
		"that was admitted in any second, lines the proven bound. "+gcra+". At 0, and for calls that leave the clock to the server, "+
		"stands what one clock gives.", table.String(), bounded)
}

// figure is a plot in the making.
type figure struct {
	p *plot.Plot
	// leastY is where a logarithmic y axis starts; all below stands there, too. 0: the
	// axis is linear.
	leastY float64
}

var (
	solid  []vg.Length
	dashed = []vg.Length{5, 4}
)

func newFigure(title, x, y string) *figure {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 8
	// text right of the line, so that one in a wider font does not run over it
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding, p.Legend.ThumbnailWidth = 2, 28
	p.Legend.XOffs, p.Legend.YOffs = 12, -4
	for style, size := range map[*draw.TextStyle]vg.Length{
		&p.Title.TextStyle: 14, &p.Legend.TextStyle: 11,
		&p.X.Label.TextStyle: 12, &p.Y.Label.TextStyle: 12, &p.X.Tick.Label: 11, &p.Y.Tick.Label: 11,
	} {
		style.Font.Variant, style.Font.Size = "Sans", size
	}
	net := plotter.NewGrid()
	net.Vertical.Color, net.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(net)
	return &figure{p: p}
}

// drawn is what a plot takes and its legend shows.
type drawn interface {
	plot.Plotter
	plot.Thumbnailer
}

// add draws what has one entry in the legend.
func (f *figure) add(name string, parts ...drawn) {
	var thumbs []plot.Thumbnailer
	for _, part := range parts {
		f.p.Add(part)
		thumbs = append(thumbs, part)
	}
	f.p.Legend.Add(name, thumbs...)
}

// line is a line through points.
func (f *figure) line(c color.Color, dashes []vg.Length, points plotter.XYs) *plotter.Line {
	return &plotter.Line{XYs: f.scaled(points), LineStyle: draw.LineStyle{Color: c, Width: 1.8, Dashes: dashes}}
}

// bars are a line with an area below it, one step for each point.
func (f *figure) bars(c color.RGBA, points plotter.XYs) *plotter.Line {
	l := f.line(c, solid, points)
	l.Width, l.StepStyle, l.FillColor = 0.8, plotter.MidStep, color.RGBA{c.R/2 + 127, c.G/2 + 127, c.B/2 + 127, 255}
	return l
}

// points are dots.
func (f *figure) points(c color.Color, points plotter.XYs) *plotter.Scatter {
	return &plotter.Scatter{XYs: f.scaled(points), GlyphStyle: draw.GlyphStyle{Color: c, Radius: 3, Shape: draw.CircleGlyph{}}}
}

// xAxis makes the x axis one from min to max, with these ticks.
func (f *figure) xAxis(min, max float64, at ...float64) {
	f.p.X.Min, f.p.X.Max = min, max
	f.p.X.Tick.Marker = ticks(at, func(x float64) float64 { return x })
}

// yAxis makes the y axis one from min to max, with these ticks.
func (f *figure) yAxis(min, max float64, at ...float64) {
	f.p.Y.Min, f.p.Y.Max = f.y(min), f.y(max)
	f.p.Y.Tick.Marker = ticks(at, f.y)
}

// y is where a value stands. The library's own logarithmic scale leaves room for a
// label in a place where it is not.
func (f *figure) y(value float64) float64 {
	if f.leastY > 0 {
		return math.Log10(max(value, f.leastY))
	}
	return value
}

// scaled is where points stand.
func (f *figure) scaled(points plotter.XYs) plotter.XYs {
	points = slices.Clone(points)
	for i := range points {
		points[i].Y = f.y(points[i].Y)
	}
	return points
}

func ticks(at []float64, place func(float64) float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for _, value := range at {
		ticks = append(ticks, plot.Tick{Value: place(value), Label: fmt.Sprint(value)})
	}
	return ticks
}

// newPlot draws figures side by side.
func newPlot(file, caption, table string, figures ...*figure) (Plot, error) {
	const width, height, margin = vg.Length(640), vg.Length(380), vg.Length(10)
	canvas := vgsvg.New(width, height)
	share := width / vg.Length(len(figures))
	for i, f := range figures {
		from := share * vg.Length(i)
		f.p.Draw(draw.Crop(draw.New(canvas), from+margin, from+share-width-margin, margin, -margin))
	}
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return Plot{}, fmt.Errorf("%s: %w", file, err)
	}
	// fonts of the same widths, for a reader without this one
	return Plot{file, caption, table, bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;"))}, nil
}
