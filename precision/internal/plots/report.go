package plots

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// WriteReport writes report.md and the plots into dir, which it makes if need be. The
// rows are those of a run with this number of cases and this seed, the plots drawn with
// the same seed; leftOut names what was not played.
func WriteReport(dir string, cases int, seed uint64, rows []precision.Row, leftOut []string, plots []Plot) error {
	command := fmt.Sprintf("make precision CASES=%d SEED=%d", cases, seed)
	var md bytes.Buffer
	fmt.Fprintf(&md, "# Precision report\n\nMade by `%s` with %s on %s/%s. Why the bounds hold stands in precision/README.md, for skewed clocks in precision/internal/skew.\n\n```\n",
		command, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := precision.WriteTable(&md, rows); err != nil {
		return err
	}
	md.WriteString("```\n\nLeft out:\n\n")
	for _, name := range leftOut {
		fmt.Fprintf(&md, "- %s\n", name)
	}
	if len(leftOut) == 0 {
		md.WriteString("- nothing\n")
	}
	md.WriteString("\nThe scripts, by name, SHA1 and SHA256:\n\n```\n")
	for line := range strings.Lines(lua.Sum) {
		if !strings.HasPrefix(line, "#") && line != "\n" {
			md.WriteString(line)
		}
	}
	md.WriteString("```\n")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, p := range plots {
		fmt.Fprintf(&md, "\n![%s](%s)\n\n%s\n`%s`\n", strings.TrimSuffix(p.File, ".svg"), p.File, p.Caption, command)
		if p.Table != "" {
			fmt.Fprintf(&md, "\n%s", p.Table)
		}
		if err := os.WriteFile(filepath.Join(dir, p.File), p.SVG, 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "report.md"), md.Bytes(), 0o666)
}
