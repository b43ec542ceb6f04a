package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sync/errgroup"

	"github.com/tatami-rate/tatami/precision/servers"
)

const (
	fewCalls  = 300
	manyCalls = 1300
	slowCalls = 15 * time.Second // under valgrind they take less
)

// instructions fills in the instructions of each row, on a server each under
// valgrind. It tells of rows as they are done.
func instructions(ctx context.Context, rows []*row, done func()) error {
	logging.Disable() // a server under valgrind refuses connections for seconds
	defer logging.Enable()
	valgrind, err := exec.LookPath("valgrind")
	if err != nil {
		return err
	}
	server, err := exec.LookPath("redis-server")
	if err != nil {
		return servers.ErrNoServer
	}
	dir, err := os.MkdirTemp("", "tatami-callgrind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// servers.Start takes the redis-server on PATH: this one. A dump, and a count
	// from 0, comes with each ECHO. What the server does by itself ten times a second,
	// in serverCron, is no part of a call; the option after that one undoes that
	// nothing is counted before it.
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' --tool=callgrind --dump-before=echoCommand "+
		"--toggle-collect=serverCron --collect-atstart=yes --callgrind-out-file='%s/%%p' '%s' \"$@\"\n",
		valgrind, dir, server)
	if err := os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o755); err != nil {
		return err
	}
	path := os.Getenv("PATH")
	if err := os.Setenv("PATH", dir+string(os.PathListSeparator)+path); err != nil {
		return err
	}
	defer os.Setenv("PATH", path)

	var group errgroup.Group
	group.SetLimit(2)
	for _, r := range rows {
		for of, into := range r.scenarios() {
			group.Go(func() error {
				var err error
				*into, err = countInstructions(ctx, dir, r.candidate, of)
				done()
				return err
			})
		}
	}
	return group.Wait()
}

// countInstructions returns the server's instructions a call: those of many calls
// less those of few, over the difference.
func countInstructions(ctx context.Context, dir string, c candidate, of scenario) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	server, err := servers.Start(ctx)
	if err != nil {
		return 0, err
	}
	defer server.Stop()
	options, err := connecting(server)
	if err != nil {
		return 0, err
	}
	s, err := newSession(ctx, c, options)
	if err != nil {
		return 0, err
	}
	defer s.client.Close()
	pid, err := info(ctx, s.client, "server", "process_id")
	if err != nil {
		return 0, err
	}
	dumps := 0
	count := func() (float64, error) {
		if err := s.client.Echo(ctx, "").Err(); err != nil {
			return 0, err
		}
		dumps++
		return total(filepath.Join(dir, pid+"."+strconv.Itoa(dumps)))
	}
	made := map[int]float64{}
	for _, calls := range []int{fewCalls, manyCalls} {
		call, err := s.call(ctx, of, slowCalls)
		if err == nil {
			_, err = count()
		}
		for i := 0; i < calls && err == nil; i++ {
			err = call()
		}
		if err != nil {
			return 0, err
		}
		if made[calls], err = count(); err != nil {
			return 0, err
		}
		if err := s.client.FlushDB(ctx).Err(); err != nil {
			return 0, err
		}
	}
	return (made[manyCalls] - made[fewCalls]) / (manyCalls - fewCalls), nil
}

var totals = regexp.MustCompile(`(?m)^totals: (\d+)$`)

// total reads the instructions from a dump.
func total(path string) (float64, error) {
	dump, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("callgrind made no dump at ECHO: %w", err)
	}
	match := totals.FindSubmatch(dump)
	if match == nil {
		return 0, fmt.Errorf("%s has no total", path)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}
