package plots

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tatami-rate/tatami/precision"
)

var update = flag.Bool("update", false, "write the plots anew")

var drawn1 = sync.OnceValues(func() ([]Plot, error) { return Draw(1) })

// The plots that are committed, which the README shows, are those that the code draws.
func TestPlots(t *testing.T) {
	plots, err := drawn1()
	if err != nil {
		t.Fatal(err)
	}
	if len(plots) != 4 {
		t.Errorf("%d plots", len(plots))
	}
	for _, p := range plots {
		t.Logf("%s: %s\n%s", p.File, p.Caption, p.Table)
		if *update {
			if err := os.WriteFile(p.File, p.SVG, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		committed, err := os.ReadFile(p.File)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(committed, p.SVG) {
			t.Errorf("%s is not what the code draws: make plots", p.File)
		}
	}
}

// Both READMEs show each plot, and the first says how far a TAT that is rounded goes.
func TestReadmesShowThePlots(t *testing.T) {
	plots, err := drawn1()
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"../../../README.md": "precision/internal/plots/", "../../README.md": "internal/plots/"} {
		readme, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plots {
			if !strings.Contains(string(readme), "]("+dir+p.File+")") {
				t.Errorf("%s does not show %s", name, p.File)
			}
			_, figure, _ := strings.Cut(p.Caption, "in place of 1100 each time, ")
			figure, _, isOf := strings.Cut(figure, " for ever")
			if isOf && name == "../../../README.md" && !strings.Contains(string(readme), figure) {
				t.Errorf("%s does not say %q", name, figure)
			}
		}
	}
}

func TestReport(t *testing.T) {
	plots, err := drawn1()
	if err != nil {
		t.Fatal(err)
	}
	row := precision.Row{Script: precision.GCRAV1, Driver: "native", BoundNs: 255, Playing: 1}
	row.Decisions, row.Broken = 12345, "call 7 fell short"
	dir := filepath.Join(t.TempDir(), "report")
	if err := WriteReport(dir, 678, 9, []precision.Row{row}, []string{"the images: IMAGES=none"}, plots); err != nil {
		t.Fatal(err)
	}
	md, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"make precision CASES=678 SEED=9", "12345", "BROKEN: gcra_v1 on native: call 7 fell short", "\n- the images: IMAGES=none\n", "\nwindow_v1 "}
	for _, p := range plots {
		want = append(want, "]("+p.File+")", p.Caption, p.Table)
		svg, err := os.ReadFile(filepath.Join(dir, p.File))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(svg, p.SVG) {
			t.Errorf("%s is not the plot", p.File)
		}
	}
	for _, text := range want {
		if !strings.Contains(string(md), text) {
			t.Errorf("report.md lacks %q:\n%s", text, md)
		}
	}
}
