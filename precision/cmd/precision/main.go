// Command precision holds the scripts against exact integers: on the native port, on
// the asset in the emulator, on a real server, and on the container images of IMAGES
// where a Docker daemon answers. It ends with a table, and with exit code 1 when a bound
// breaks.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
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
	cases := flag.Int("cases", 10_000_000, "native decisions of gcra_v1; the other scripts, the emulator and each server make a share of it")
	long := flag.Int("long", 0, "make this many native decisions, of all scripts together, and saturated streams, and nothing else")
	seed := flag.Uint64("seed", 1, "what the traces are made from")
	folder := flag.String("report", "", "write report.md and its plots into this folder")
	controlsOnly := flag.Bool("controls", false, "play only the controls: wrong scripts, which must be rejected")
	replay := flag.String("replay", "", "play one trace, as a broken claim names it, and say what each driver does")
	flag.Parse()
	if *cases < 1 || *long < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "precision: -cases and -long take a number of decisions, and there are no other arguments")
		os.Exit(2)
	}
	run := func() error { return run(*cases, *seed, *folder) }
	if *long > 0 {
		run = func() error { return runLong(*long, *seed) }
	}
	if *controlsOnly {
		run = runControls
	}
	if *replay != "" {
		run = func() error { return runReplay(*replay) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "precision:", err)
		os.Exit(1)
	}
}

// load is how much a driver plays: native all cases of gcra_v1, the script with an
// error that could add up, for some 100 ns a decision; the others, which take 100 times
// longer, so much that the whole run with five containers takes about a minute on two
// cores.
func load(cases int) func(precision.Driver, precision.Script) precision.Load {
	return func(d precision.Driver, script precision.Script) precision.Load {
		v1 := script == precision.GCRAV1
		switch d.(type) {
		case *precision.Native:
			if v1 {
				return precision.Load{Decisions: cases, Streams: 6}
			}
			return precision.Load{Decisions: cases / 4, Streams: 1}
		case precision.Restored: // a container
			if v1 {
				return precision.Load{Decisions: cases / 400, Streams: 1}
			}
			return precision.Load{Decisions: cases / 400}
		}
		if v1 {
			return precision.Load{Decisions: cases / 100, Streams: 2}
		}
		return precision.Load{Decisions: cases / 400}
	}
}

func run(cases int, seed uint64, folder string) error {
	drivers, closeAll, err := open()
	defer closeAll()
	if err != nil {
		return err
	}
	options := precision.Options{Seed: seed, Load: load(cases), Live: 4 * time.Second}
	total := 0
	for _, d := range drivers {
		total += options.Total(d)
	}
	bar := progress(total)
	options.Made = func(n int) { _ = bar.Add(n) } // a bar that cannot be drawn is no reason to stop
	rows, err := precision.Run(options, drivers)
	_ = bar.Finish()
	if err != nil {
		return err
	}
	claims := report(rows)
	if folder != "" {
		drawn, err := plots.Draw(seed)
		if err == nil {
			err = plots.WriteReport(folder, cases, seed, rows, drawn)
		}
		claims = errors.Join(claims, err)
	}
	if claims != nil {
		return fmt.Errorf("%w; the same run again: make precision CASES=%d SEED=%d", claims, cases, seed)
	}
	fmt.Printf("every claim held (CASES=%d SEED=%d)\n\n", cases, seed)
	return runControls()
}

// runControls plays the controls and fails when the suite passes one.
func runControls() error {
	results, err := controls.Run()
	if err != nil {
		return err
	}
	if err := controls.WriteTable(os.Stdout, results); err != nil {
		return err
	}
	for _, r := range results {
		if !r.Rejected() {
			return fmt.Errorf("the control %q is not rejected", r.Fault)
		}
	}
	fmt.Printf("every control was rejected, %d of %d\n", len(results), len(results))
	return nil
}

// runReplay plays one trace on every driver and prints what each call gave.
func runReplay(text string) error {
	trace, err := precision.ParseTrace(text)
	if err != nil {
		return err
	}
	drivers, closeAll, err := open()
	defer closeAll()
	if err != nil {
		return err
	}
	broken := 0
	for _, d := range drivers {
		outcomes := make([]precision.Outcome, len(trace.Calls))
		if err := errors.Join(d.Play(trace.Script, "replay", trace.Calls, outcomes), d.Forget("replay")); err != nil {
			return fmt.Errorf("%s: %w", d.Name(), err)
		}
		fmt.Println(d.Name())
		for i, o := range outcomes {
			fmt.Printf("%4d  %+v\n      %+v\n", i, trace.Calls[i], o)
		}
		if tally := precision.Judge(trace, outcomes); !tally.Sound() {
			broken++
			fmt.Println("BROKEN:", tally.Broken)
		}
	}
	if broken > 0 {
		return fmt.Errorf("a claim does not hold on %d of %d drivers", broken, len(drivers))
	}
	fmt.Println("every claim held")
	return nil
}

// pinned is the hash of a run of 10^9 decisions with seed 1.
const pinned = 0x0a8ba2da262e9401

func runLong(decisions int, seed uint64) error {
	bar := progress(decisions)
	rows, hash := precision.Long(seed, decisions, func(n int) { _ = bar.Add(n) })
	_ = bar.Finish()
	if err := report(rows); err != nil {
		return err
	}
	made := int64(0) // the saturated streams come on top
	for _, row := range rows {
		made += row.Decisions
	}
	fmt.Printf("every claim held over %d decisions of seed %d; hash %#016x\n", made, seed, hash)
	if decisions == 1e9 && seed == 1 && hash != pinned {
		return fmt.Errorf("the hash is not the pinned %#016x", uint64(pinned))
	}
	return nil
}

func progress(total int) *progressbar.ProgressBar {
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription("decisions"), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))))
}

// report prints the table. The error says that a claim does not hold.
func report(rows []precision.Row) error {
	if err := precision.WriteTable(os.Stdout, rows); err != nil {
		return err
	}
	for _, row := range rows {
		if !row.Sound() {
			return errors.New("a claim does not hold")
		}
	}
	return nil
}

// open returns the drivers: native, emulator, the server of REDIS_URL if there is
// one and else one of its own from PATH, and a container of each image.
func open() (drivers []precision.Driver, closeAll func(), err error) {
	var closers []func()
	closeAll = func() {
		for _, c := range slices.Backward(closers) {
			c()
		}
	}
	// What was started is stopped on a signal too, also where the output is cut off: a
	// container would stay.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		<-signals
		closeAll()
		os.Exit(1)
	}()
	asset, err := precision.NewAsset()
	if err != nil {
		return nil, closeAll, err
	}
	drivers = []precision.Driver{precision.NewNative(), asset}
	play := func(ctx context.Context, server *servers.Server) (*precision.Real, error) {
		closers = append(closers, server.Stop)
		real, err := precision.NewReal(ctx, server, "tatami:precision:"+rand.Text()+":")
		if err == nil {
			closers = append(closers, func() { _ = real.Close() })
		}
		return real, err
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // images may be pulled
	defer cancel()
	server, err := servers.FromEnv(ctx)
	if server == nil && err == nil {
		server, err = servers.Start(ctx)
	}
	if errors.Is(err, servers.ErrNoServer) && !servers.Required() {
		fmt.Printf("skipped: a real server: %v, and REDIS_URL is not set\n", err)
	} else {
		if err != nil {
			return nil, closeAll, err
		}
		real, err := play(ctx, server)
		if err != nil {
			return nil, closeAll, err
		}
		drivers = append(drivers, real)
	}

	images := containers.Images()
	for _, image := range images {
		server, err := containers.Start(ctx, image)
		if errors.Is(err, containers.ErrNoDocker) && !servers.Required() {
			fmt.Printf("skipped: %s: %v\n", strings.Join(images, ", "), err)
			break
		}
		if err != nil {
			return nil, closeAll, err
		}
		real, err := play(ctx, server)
		if err != nil {
			return nil, closeAll, err
		}
		drivers = append(drivers, precision.Restored{Real: real})
	}
	return drivers, closeAll, nil
}
