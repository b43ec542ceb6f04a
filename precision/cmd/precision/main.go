// Command precision holds the scripts against exact integers: on the native port, on
// the asset in the emulator, on a real server, and on the container images of IMAGES
// where a Docker daemon answers. It ends with a table and with what was left out, and with
// exit code 1 when a bound breaks, or when something that was asked for was not done.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/internal/controls"
	"github.com/tatami-rate/tatami/precision/internal/plots"
	"github.com/tatami-rate/tatami/precision/servers"
	"github.com/tatami-rate/tatami/precision/servers/containers"
)

func main() {
	os.Exit(suite{os.Stdout, os.Stderr, open, controls.Run, precision.Long, plots.Draw}.command(os.Args[1:]))
}

// suite is what the command runs and where it writes.
type suite struct {
	out, err io.Writer
	open     func() (*opened, error)
	controls func() ([]controls.Result, error)
	long     func(seed uint64, decisions int, made func(n int)) ([]precision.Row, uint64)
	draw     func(seed uint64) ([]plots.Plot, error)
}

// opened are the drivers, and by name what this machine or IMAGES=none leaves out.
type opened struct {
	drivers []precision.Driver
	leftOut []string
	closers []func()
}

// command runs with these arguments and returns the exit code.
func (s suite) command(args []string) int {
	flags := flag.NewFlagSet("precision", flag.ContinueOnError)
	flags.SetOutput(s.err)
	cases := flags.Int("cases", 10_000_000, "native decisions of gcra_v1; the other scripts, the emulator and each server make a share of it")
	long := flags.Int("long", 0, "make this many native decisions, of all scripts together, and saturated streams, and nothing else")
	seed := flags.Uint64("seed", 1, "what the traces are made from")
	folder := flags.String("report", "", "write report.md and its plots into this folder")
	controlsOnly := flags.Bool("controls", false, "play only the controls: wrong scripts, which must be rejected")
	replay := flags.String("replay", "", "play one trace, as a broken claim names it, and say what each driver does")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2 // it has said so
	}
	if *cases < 1 || *long < 0 || flags.NArg() > 0 {
		fmt.Fprintln(s.err, "precision: -cases and -long take a number of decisions, and there are no other arguments")
		return 2
	}
	var err error
	switch {
	case *replay != "":
		err = s.replay(*replay)
	case *controlsOnly:
		err = s.playControls()
	case *long > 0:
		err = s.native(*long, *seed)
	default:
		err = s.all(*cases, *seed, *folder)
	}
	if err != nil {
		fmt.Fprintln(s.err, "precision:", err)
		return 1
	}
	return 0
}

// load is how much a driver plays: native all cases of gcra_v1, the script with an
// error that could add up, for some 100 ns a decision; the others, which take 100 times
// longer, so much that the whole run with five containers takes about a minute on two
// cores.
func load(cases int) func(precision.Driver, precision.Script) precision.Load {
	share := func(part int) int { return max(cases/part, 1) }
	return func(d precision.Driver, script precision.Script) precision.Load {
		v1 := script == precision.GCRAV1
		switch d.(type) {
		case *precision.Native:
			switch script {
			case precision.GCRAV1:
				return precision.Load{Decisions: cases, Streams: 6}
			case precision.LimitsV1:
				return precision.Load{Decisions: share(10)}
			}
			return precision.Load{Decisions: share(4), Streams: 1}
		case precision.Restored: // a container
			if v1 {
				return precision.Load{Decisions: share(400), Streams: 1}
			}
			return precision.Load{Decisions: share(400)}
		}
		if v1 {
			return precision.Load{Decisions: share(100), Streams: 2}
		}
		return precision.Load{Decisions: share(400)}
	}
}

// all holds every script on every driver against exact integers, and then the suite
// against the controls.
func (s suite) all(cases int, seed uint64, folder string) error {
	on, err := s.open()
	defer on.close()
	if err != nil {
		return err
	}
	options := precision.Options{Seed: seed, Load: load(cases), Live: 4 * time.Second}
	total := 0
	for _, d := range on.drivers {
		total += options.Total(d)
	}
	bar := s.progress(total)
	options.Made = func(n int) { _ = bar.Add(n) } // a bar that cannot be drawn is no reason to stop
	rows, err := precision.Run(options, on.drivers)
	_ = bar.Finish()
	if err != nil {
		return err
	}
	claims := s.report(rows)
	if folder != "" {
		drawn, err := s.draw(seed)
		if err == nil {
			err = plots.WriteReport(folder, cases, seed, rows, on.leftOut, drawn)
		}
		claims = errors.Join(claims, err)
	}
	if claims == nil {
		fmt.Fprintf(s.out, "every claim held (CASES=%d SEED=%d)\n\n", cases, seed)
		claims = s.playControls()
	} else {
		claims = fmt.Errorf("%w\nthe same run again: make precision CASES=%d SEED=%d", claims, cases, seed)
	}
	for _, name := range on.leftOut {
		fmt.Fprintln(s.out, "left out:", name)
	}
	return claims
}

// playControls plays the controls and fails when the suite passes one.
func (s suite) playControls() error {
	results, err := s.controls()
	if err != nil {
		return err
	}
	if err := controls.WriteTable(s.out, results); err != nil {
		return err
	}
	if err := controls.Check(results); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "every control was rejected, %d of %d\n", len(results), len(results))
	return nil
}

// replay plays one trace on every driver and prints what each call gave.
func (s suite) replay(text string) error {
	trace, err := precision.ReadTrial(text)
	if err != nil {
		return err
	}
	on, err := s.open()
	defer on.close()
	if err != nil {
		return err
	}
	broken := 0
	for _, d := range on.drivers {
		answers, err := trace.Play(d, "replay")
		if err != nil {
			return fmt.Errorf("%s: %w", d.Name(), err)
		}
		fmt.Fprintln(s.out, d.Name())
		for i := range trace.Len() {
			call, outcome := answers.Line(i)
			fmt.Fprintf(s.out, "%4d  %s\n      %s\n", i, call, outcome)
		}
		if tally := answers.Judge(); !tally.Sound() {
			broken++
			fmt.Fprintln(s.out, "BROKEN:", tally.Broken)
		}
	}
	for _, name := range on.leftOut {
		fmt.Fprintln(s.out, "left out:", name)
	}
	if broken > 0 {
		return fmt.Errorf("a claim does not hold on %d of %d drivers", broken, len(on.drivers))
	}
	fmt.Fprintf(s.out, "every claim held on %d drivers\n", len(on.drivers))
	return nil
}

// pinned is the hash of a run of 10^9 decisions with seed 1.
const pinned = 0xa6654aeca8d54731

// native holds the native port alone against exact integers, at length.
func (s suite) native(decisions int, seed uint64) error {
	bar := s.progress(decisions)
	rows, hash := s.long(seed, decisions, func(n int) { _ = bar.Add(n) })
	_ = bar.Finish()
	if err := s.report(rows); err != nil {
		return err
	}
	made := int64(0) // the saturated streams come on top
	for _, row := range rows {
		made += row.Decisions
	}
	fmt.Fprintf(s.out, "every claim held over %d decisions of seed %d; hash %#016x\n", made, seed, hash)
	return checkHash(decisions, seed, hash)
}

// checkHash holds the hash of a run against the pinned one, where it is of the same run.
func checkHash(decisions int, seed, hash uint64) error {
	if decisions == 1e9 && seed == 1 && hash != pinned {
		return fmt.Errorf("the hash is not the pinned %#016x", uint64(pinned))
	}
	return nil
}

func (s suite) progress(total int) *progressbar.ProgressBar {
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(s.err),
		progressbar.OptionSetDescription("decisions"), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(s.err == os.Stderr && term.IsTerminal(int(os.Stderr.Fd()))))
}

// report prints the table. The error names what does not hold, and what was not done.
func (s suite) report(rows []precision.Row) error {
	if err := precision.WriteTable(s.out, rows); err != nil {
		return err
	}
	return precision.Check(rows)
}

// close ends what was opened, the last first.
func (on *opened) close() {
	for _, c := range slices.Backward(on.closers) {
		c()
	}
}

// lacks notes that a server is not to be had, or fails where REQUIRE_SERVERS=1 asks for it.
func (on *opened) lacks(what string, why error) error {
	if servers.Required() {
		return fmt.Errorf("%s: %w", what, why)
	}
	on.leftOut = append(on.leftOut, fmt.Sprintf("%s: %v", what, why))
	return nil
}

// real adds a server's driver, plain or as it is with a key that moves.
func (on *opened) real(ctx context.Context, server *servers.Server, restored bool) error {
	on.closers = append(on.closers, server.Stop)
	real, err := precision.NewReal(ctx, server, "tatami:precision:"+rand.Text()+":")
	if err != nil {
		return err
	}
	on.closers = append(on.closers, func() { _ = real.Close() })
	if restored {
		on.drivers = append(on.drivers, precision.Restored{Real: real})
	} else {
		on.drivers = append(on.drivers, real)
	}
	return nil
}

// open returns the drivers: native, emulator, the server of REDIS_URL if there is
// one and else one of its own from PATH, and a container of each image.
func open() (*opened, error) {
	on := &opened{}
	// What was started is stopped on a signal too, also where the output is cut off: a
	// container would stay.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-signals
		on.close()
		os.Exit(1)
	}()
	asset, err := precision.NewAsset()
	if err != nil {
		return on, err
	}
	on.drivers = []precision.Driver{precision.NewNative(), asset}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // images may be pulled
	defer cancel()
	server, err := servers.FromEnv(ctx)
	if server == nil && err == nil {
		server, err = servers.Start(ctx)
	}
	switch {
	case errors.Is(err, servers.ErrNoServer):
		err = on.lacks("a real server, as REDIS_URL is not set", err)
	case err == nil:
		err = on.real(ctx, server, false)
	}
	if err != nil {
		return on, err
	}

	return on, on.images(ctx, containers.Start)
}

// images adds a container of each image.
func (on *opened) images(ctx context.Context, start func(context.Context, string) (*servers.Server, error)) error {
	images, err := containers.Images()
	if err != nil {
		return on.lacks("the images", err)
	}
	for _, image := range images {
		server, err := start(ctx, image)
		if errors.Is(err, containers.ErrNoDocker) {
			return on.lacks(strings.Join(images, ", "), err)
		}
		if err == nil {
			err = on.real(ctx, server, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
