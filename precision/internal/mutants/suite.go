package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

const (
	gcraTraces   = 12
	windowTraces = 24
	traceSeed    = 1
	// openings are played of all traces before any of them is played to its end: most
	// mutants fall there.
	openings = 60
	// streamCalls are enough for errors of a saturated stream to pass the bound, and
	// fades for a quotient to be rounded to the wrong side of a whole number.
	streamCalls = 2000
	fades       = 2000
)

// suite is what every mutant of one asset must fail.
type suite struct {
	script        precision.Script
	trials, edges []trial
	// firstTrials and firstEdges are some of both, where most mutants fall.
	firstTrials, firstEdges []trial
	openings                []*precision.Trace
	traces                  []*precision.Trace
}

func newSuite(script precision.Script) *suite {
	if script == precision.LimitsV1 { // no traces: what they would leave is among the trials' states
		s := &suite{script: script}
		s.trials, s.edges = limitsTrials()
		s.firstTrials, s.firstEdges = some(s.trials), some(s.edges)
		return s
	}
	isWindow := script.IsWindow()
	s := &suite{script: script, trials: trials(script, isWindow), edges: edges(script, isWindow)}
	count := gcraTraces
	if isWindow {
		count = windowTraces
		s.traces = append(s.traces, precision.NewFading(script, 65535, 2_345_678_901_234_567, fades))
	} else {
		s.traces = append(s.traces, opening(precision.NewSaturated(script, 76), streamCalls))
	}
	for i := range count {
		s.traces = append(s.traces, precision.NewTrace(script, traceSeed, i))
	}
	for _, t := range s.traces {
		s.openings = append(s.openings, opening(t, openings))
	}
	return s
}

// some is every 23rd of the trials.
func some(all []trial) (picked []trial) {
	for i := 0; i < len(all); i += 23 {
		picked = append(picked, all[i])
	}
	return picked
}

// held is what keys hold, for a reader.
func held(keys []native.Key) string {
	var texts []string
	for _, key := range keys {
		if key.Exists {
			texts = append(texts, fmt.Sprintf("%.60q", key.Text))
		} else {
			texts = append(texts, "no key")
		}
	}
	return strings.Join(texts, ", ")
}

// opening is the first n calls of a trace.
func opening(t *precision.Trace, n int) *precision.Trace {
	return &precision.Trace{Script: t.Script, Calls: t.Calls[:n], Native: t.Native[:n]}
}

// fall tells which part of the suite a text falls in, and how; both are empty for one
// that passes it all. Cheap parts come first.
func (s *suite) fall(text string) (part, how string, err error) {
	r := emulator.New()
	shas := map[string]string{} // by server
	for _, list := range []struct {
		part   string
		trials []trial
	}{{"arguments", s.firstTrials}, {"edges", s.firstEdges}, {"arguments", s.trials}, {"edges", s.edges}} {
		for i := range list.trials {
			c := &list.trials[i]
			if shas[c.server] == "" {
				if shas[c.server], err = r.ScriptLoad(context.Background(), c.server+text).Result(); err != nil {
					return "", "", fmt.Errorf("%s: %w", s.script, err)
				}
			}
			if got := c.run(r, shas[c.server]); got != c.want {
				return list.part, fmt.Sprintf("%.60q on %s: %.300s, want %.300s", c.args, held(c.keys), got, c.want), nil
			}
		}
	}
	if len(s.traces) == 0 {
		return "", "", nil
	}
	asset, err := precision.NewAsset()
	if err != nil {
		return "", "", err
	}
	if err := asset.Replace(s.script, text); err != nil {
		return "", "", err
	}
	for i, t := range append(s.openings, s.traces...) {
		outcomes := make([]precision.Outcome, len(t.Calls))
		if err := asset.Play(s.script, fmt.Sprint(i), t.Calls, outcomes); err != nil {
			return "traces", err.Error(), nil // such as a state that no script would write
		}
		if tally := precision.Judge(t, outcomes); !tally.Sound() {
			return "traces", tally.Broken, nil
		}
	}
	return "", "", nil
}
