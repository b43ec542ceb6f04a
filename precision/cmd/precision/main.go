// Command precision holds the scripts against exact integers: on the native port, on
// the asset in the emulator, and on real servers where there are any. It ends with a
// table, and with exit code 1 when a bound breaks.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/servers"
)

// slowShare is the share of the native decisions that the emulator and a server make:
// they are some 300 times slower.
const slowShare = 32

func main() {
	cases := flag.Int("cases", 10_000_000, "native decisions of each script; the emulator and servers make 1/32 of it")
	seed := flag.Uint64("seed", 1, "what the traces are made from")
	flag.Parse()
	if *cases < slowShare || flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "precision: -cases takes a number from %d, and there are no other arguments\n", slowShare)
		os.Exit(2)
	}
	if err := run(*cases, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "precision:", err)
		os.Exit(1)
	}
}

func run(cases int, seed uint64) error {
	drivers, closeAll, err := open()
	defer closeAll()
	if err != nil {
		return err
	}
	options := precision.Options{Seed: seed, Cases: func(d precision.Driver) int {
		if _, fast := d.(*precision.Native); fast {
			return cases
		}
		return cases / slowShare
	}}
	total := 0
	for _, d := range drivers {
		total += options.Total(d)
	}
	bar := progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription("decisions"), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetVisibility(term.IsTerminal(int(os.Stderr.Fd()))))
	options.Made = func(n int) { _ = bar.Add(n) } // a bar that cannot be drawn is no reason to stop
	rows, err := precision.Run(options, drivers)
	_ = bar.Finish()
	if err != nil {
		return err
	}
	if err := precision.WriteTable(os.Stdout, rows); err != nil {
		return err
	}
	for _, row := range rows {
		if !row.Sound() {
			return fmt.Errorf("a claim does not hold; the same run again: make precision CASES=%d SEED=%d", cases, seed)
		}
	}
	fmt.Printf("every claim held (CASES=%d SEED=%d)\n", cases, seed)
	return nil
}

// open returns the drivers: native, emulator, the server of REDIS_URL if there is
// one, and else one of its own from PATH.
func open() (drivers []precision.Driver, closeAll func(), err error) {
	var closers []func()
	closeAll = func() {
		for _, c := range closers {
			c()
		}
	}
	asset, err := precision.NewAsset()
	if err != nil {
		return nil, closeAll, err
	}
	drivers = []precision.Driver{precision.NewNative(), asset}

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	server, err := servers.FromEnv(ctx)
	if server == nil && err == nil {
		server, err = servers.Start(ctx)
	}
	if errors.Is(err, servers.ErrNoServer) && !servers.Required() {
		fmt.Printf("skipped: a real server: %v, and REDIS_URL is not set\n", err)
		return drivers, closeAll, nil
	}
	if err != nil {
		return nil, closeAll, err
	}
	closers = append(closers, server.Stop)
	real, err := precision.NewReal(ctx, server, "tatami:precision:"+rand.Text()+":")
	if err != nil {
		return nil, closeAll, err
	}
	closers = append([]func(){func() { _ = real.Close() }}, closers...)
	return append(drivers, real), closeAll, nil
}
