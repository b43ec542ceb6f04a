// Command bench measures the scripts beside what others use, in one run on servers of its
// own, and writes tables. It fails when a bound does not hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
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
	server := flag.String("server", "", "count instructions of this `image` of Docker, or of the binary at\nthis absolute path, in place of the redis-server on PATH")
	asJSON := flag.Bool("json", false, "write JSON instead of tables")
	flag.Parse()
	switch {
	case flag.NArg() > 0:
		usage("takes flags alone; without -instructions, -speed or -decisions it measures all")
	case *server != "" && (p.speed || p.decisions):
		usage("-server is for -instructions alone")
	case *server != "":
		p.instructions = true
	case p == parts{}:
		p = parts{true, true, true}
	}
	if err := run(os.Stdout, p, *server, *asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func usage(text string) {
	fmt.Fprintln(os.Stderr, "bench:", text)
	os.Exit(2)
}

func run(out io.Writer, p parts, of string, asJSON bool) error {
	ctx := context.Background()
	_, err := exec.LookPath("valgrind")
	if of != "" && err != nil {
		return err
	}
	skipped := p.instructions && err != nil
	p.instructions = p.instructions && err == nil

	dir, err := os.MkdirTemp("", "tatami-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	program, err := programOf(ctx, of, root)
	if err != nil {
		return err
	}
	binary, err := executable(dir, "server", program)
	if err != nil {
		return err
	}
	server, err := servers.StartBinary(ctx, binary)
	if err != nil {
		return err
	}
	defer server.Stop()
	options, err := connecting(server)
	if err != nil {
		return err
	}

	rows := newRows()
	bar := progressbar.NewOptions(steps(rows, p), progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))))
	done := func() { _ = bar.Add(1) } // a bar that cannot be drawn is no reason to stop

	began := time.Now()
	var allow, each float64
	var shared error // why the server shares its CPU with the calls
	if p.speed {
		// First, while nothing else runs.
		if allow, each, shared, err = speedApart(ctx, options, rows, done); err != nil {
			return err
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
		if err := instructions(ctx, program, rows, done); err != nil {
			return err
		}
	}
	_ = bar.Finish()

	met := bounds(server.Name, rows, allow, each)
	if shared != nil {
		met = bounds(server.Name, rows, 0, 0)
	}
	command := strings.Join(append([]string{"go run ."}, os.Args[1:]...), " ")
	if asJSON {
		err := writeJSON(out, rows, map[string]any{"server": server.Name, "date": began.UTC().Format(time.DateOnly),
			"command": command, "allow_calls_per_second": allow, "allow_each_calls_per_second": each})
		return errors.Join(err, broken(met))
	}
	fmt.Fprintf(out, "%s, %s, `%s` in precision/bench, %.0f s\n\n", server.Name, began.UTC().Format(time.DateOnly),
		command, time.Since(began).Seconds())
	for _, t := range tables(rows, p) {
		fmt.Fprintln(out, t)
	}
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

// steps is how often the parts tell that something is done.
func steps(rows []*row, p parts) int {
	steps := 0
	for _, r := range rows {
		if p.instructions {
			steps += r.seeds()
		}
		if p.decisions && r.judged() {
			steps++
		}
	}
	if p.speed {
		steps += speedRounds + clientRounds
	}
	return steps
}

// speedApart is speed on a CPU apart from the server's, or beside it for the reason that
// shared gives.
func speedApart(ctx context.Context, options redis.Options, rows []*row, done func()) (allow, each float64, shared, err error) {
	pid, err := processOf(ctx, options)
	if err != nil {
		return 0, 0, nil, err
	}
	together, shared := apart(pid)
	allow, each, err = speed(ctx, options, rows, done)
	if err == nil && shared == nil {
		err = together()
	}
	return allow, each, shared, err
}
