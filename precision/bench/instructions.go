package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"golang.org/x/sync/errgroup"

	"github.com/tatami-rate/tatami/precision/servers"
)

const (
	fewCalls  = 300
	manyCalls = 1300
	slowCalls = 20 * time.Second // under valgrind they take less
)

// instructions fills in the instructions of each row, counted on a server of the program
// under valgrind, or the mean of boundSeeds servers where there is a bound on the row. It
// tells of servers as they are done.
func instructions(ctx context.Context, program []string, rows []*row, done func()) error {
	logging.Disable() // a server under valgrind refuses connections for seconds
	defer logging.Enable()
	dir, err := os.MkdirTemp("", "tatami-callgrind-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A dump, and a count from 0, comes with each ECHO. What the server does by itself
	// ten times a second, in serverCron, is no part of a call; the option after that one
	// undoes that nothing is counted before it.
	binary, err := executable(dir, "server", append([]string{"valgrind", "--tool=callgrind",
		"--dump-before=echoCommand", "--toggle-collect=serverCron", "--collect-atstart=yes",
		"--callgrind-out-file=" + filepath.Join(dir, "%p")}, program...))
	if err != nil {
		return err
	}

	var group errgroup.Group
	group.SetLimit(2)
	var mu sync.Mutex // of the rows
	for _, r := range rows {
		for range r.seeds() {
			group.Go(func() error {
				counts, err := countInstructions(ctx, binary, dir, r.candidate)
				mu.Lock()
				defer mu.Unlock()
				for of, count := range counts {
					r.Instructions[of] += count / float64(r.seeds())
				}
				done()
				return err
			})
		}
	}
	return group.Wait()
}

// countInstructions returns a server's instructions a call in each scenario.
func countInstructions(ctx context.Context, binary, dir string, c candidate) (map[scenario]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	// The slow log would note what is slow under valgrind alone.
	server, err := servers.StartBinary(ctx, binary, "--slowlog-log-slower-than", "-1")
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	options, err := connecting(server)
	if err != nil {
		return nil, err
	}
	s, err := newSession(ctx, c, options)
	if err != nil {
		return nil, err
	}
	defer s.client.Close()
	pid, err := info(ctx, s.client, "server", "process_id")
	if err != nil {
		return nil, err
	}
	dumps := 0
	count := func() (float64, error) {
		if err := s.client.Echo(ctx, "").Err(); err != nil {
			return 0, err
		}
		dumps++
		return total(filepath.Join(dir, pid+"."+strconv.Itoa(dumps)))
	}
	counts := map[scenario]float64{}
	for _, of := range c.scenarios() {
		if counts[of], err = s.countCalls(ctx, of, count); err != nil {
			return nil, err
		}
	}
	return counts, nil
}

// countCalls returns the instructions a call of the scenario: those of many calls less
// those of few, over the difference.
func (s *session) countCalls(ctx context.Context, of scenario, count func() (float64, error)) (float64, error) {
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
