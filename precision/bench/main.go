// Command bench measures the scripts beside what others use, in one run on one server
// of its own, and writes a table. It fails when a bound does not hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tatami-rate/tatami/precision/servers"
)

// parts are what to measure.
type parts struct {
	instructions, speed, decisions bool
}

func main() {
	var p parts
	flag.BoolVar(&p.instructions, "instructions", false, "count instructions, under valgrind")
	flag.BoolVar(&p.speed, "speed", false, "measure times, bytes, allocations and round trips")
	flag.BoolVar(&p.decisions, "decisions", false, "hold decisions against exact integers")
	asJSON := flag.Bool("json", false, "write JSON instead of a table")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bench: takes flags alone; without -instructions, -speed or -decisions it measures all")
		os.Exit(2)
	}
	if p == (parts{}) {
		p = parts{true, true, true}
	}
	if err := run(os.Stdout, p, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, p parts, asJSON bool) error {
	ctx := context.Background()
	server, err := servers.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	options, err := connecting(server)
	if err != nil {
		return err
	}
	_, err = exec.LookPath("valgrind")
	skipped := p.instructions && err != nil
	p.instructions = p.instructions && err == nil

	rows := newRows()
	steps := 0
	for _, r := range rows {
		if p.instructions {
			steps += len(r.scenarios())
		}
		if p.decisions && r.judged() {
			steps++
		}
	}
	if p.speed {
		steps += speedRounds + clientRounds
	}
	bar := progressbar.NewOptions(steps, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))))
	done := func() { _ = bar.Add(1) } // a bar that cannot be drawn is no reason to stop

	began := time.Now()
	var allow, each float64
	var shared error // why the server shares its CPU with the calls
	if p.speed {
		// First, while nothing else runs.
		pid, err := processOf(ctx, options)
		if err != nil {
			return err
		}
		var together func() error
		together, shared = apart(pid)
		if allow, each, err = speed(ctx, options, rows, done); err != nil {
			return err
		}
		if shared == nil {
			if err := together(); err != nil {
				return err
			}
		}
		if err := clientCosts(ctx, options, rows, done); err != nil {
			return err
		}
	}
	if p.decisions {
		if err := decide(ctx, options, rows, done); err != nil {
			return err
		}
	}
	if p.instructions {
		if err := instructions(ctx, rows, done); err != nil {
			return err
		}
	}
	_ = bar.Finish()

	met := bounds(rows, allow, each)
	if shared != nil {
		met = bounds(rows, 0, 0)
	}
	command := strings.Join(append([]string{"go run ."}, os.Args[1:]...), " ")
	if asJSON {
		err := writeJSON(out, rows, map[string]any{"server": server.Name, "date": began.UTC().Format(time.DateOnly),
			"command": command, "allow_calls_per_second": allow, "allow_each_calls_per_second": each})
		return errors.Join(err, broken(met))
	}
	fmt.Fprintf(out, "%s, %s, `%s` in precision/bench, %.0f s\n\n", server.Name, began.UTC().Format(time.DateOnly),
		command, time.Since(began).Seconds())
	if err := writeTable(out, rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, b := range met {
		fmt.Fprintln(out, "-", b)
	}
	if skipped {
		fmt.Fprintln(out, "- skipped: instructions: valgrind is not on PATH")
	}
	if shared != nil {
		fmt.Fprintln(out, "- skipped: AllowEach beside Allow: the server shares its CPU with the calls:", shared)
	}
	return broken(met)
}
