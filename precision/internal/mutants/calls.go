package main

import (
	"math/rand/v2"
	"slices"

	"github.com/tatami-rate/tatami/emulator/hostile"
	"github.com/tatami-rate/tatami/emulator/interpreters"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

// callsSeed is not that of the suite's traces, which every survivor has passed.
const callsSeed = 2

// ofArguments are the first trials, those of one hostile argument.
var ofArguments = 5 * len(hostile.Arguments)

// generated are some n calls to tell a survivor from its script, each on a key of its own: half
// of them the suite's trials, those that are unlike any trace all there, a quarter its edges,
// and an eighth each hostile clocks and states beside each other, its stream, and traces.
func (s *suite) generated(n int) []interpreters.Call {
	var calls []interpreters.Call
	rng := rand.New(rand.NewPCG(callsSeed, 0))
	for i := range s.trials {
		if c := &s.trials[i]; i < ofArguments || c.isRare() || rng.IntN(len(s.trials)) < n/2 {
			calls = append(calls, c.plain())
		}
	}
	if len(s.traces) == 0 {
		for range n / 2 {
			calls = append(calls, s.edges[rng.IntN(len(s.edges))].plain())
		}
		return calls
	}
	good, _ := ordinary(s.script.IsWindow())
	for range n / 8 {
		calls = append(calls, s.edges[rng.IntN(len(s.edges))].plain(), s.edges[rng.IntN(len(s.edges))].plain())
		args := slices.Clone(good)
		args[3], args[4] = costs[rng.IntN(len(costs))], hostile.Clocks[rng.IntN(len(hostile.Clocks))]
		state := hostile.States[rng.IntN(len(hostile.States))].Text
		calls = append(calls, interpreters.Call{UnixUs: serverUs, Args: args, Keys: []native.Key{{Exists: true, Text: state}}})
	}
	most := len(calls) + n/4
	for i := range n / 8 {
		calls = append(calls, s.ofTrace(rng, s.traces[0], i%len(s.traces[0].Calls)))
	}
	for index := 0; len(calls) < most; index++ {
		t := precision.NewTrace(s.script, callsSeed, index)
		for i := range max(n/100, 20) {
			calls = append(calls, s.ofTrace(rng, t, i))
		}
	}
	return calls
}

// isRare tells whether the trial is of a server, a key or a command as no trace has them.
func (c *trial) isRare() bool {
	return c.server != "" || c.list || c.readOnly || len(c.keys) != 1 || c.unixUs <= 1e15 || len(c.args) > 5 && len(c.args) != 7
}

// plain is the trial as an interpreter makes it.
func (c *trial) plain() interpreters.Call {
	call := interpreters.Call{UnixUs: c.unixUs, Prelude: c.server, Keys: c.keys, Args: c.args}
	switch {
	case c.list:
		call.Refuses = "GET"
	case c.readOnly:
		call.Refuses = "SET"
	}
	return call
}

// ofTrace is the ith call of a trace on what the call before it left, or on what any of the
// trace's calls did; a window of another period then gets this one's.
func (s *suite) ofTrace(rng *rand.Rand, t *precision.Trace, i int) interpreters.Call {
	c := &t.Calls[i]
	call := interpreters.Call{UnixUs: c.NowNs / 1000, Keys: []native.Key{{}}, Args: c.Args(s.script)}
	left := i - 1
	if rng.IntN(4) == 0 {
		left = rng.IntN(len(t.Native))
	}
	if left < 0 || !t.Native[left].State.Exists {
		return call
	}
	state := t.Native[left].State
	if s.script.IsWindow() && rng.IntN(4) > 0 {
		state.PeriodNs = uint32(c.PeriodNs)
	}
	call.Keys[0] = native.Key{Exists: true, Text: state.Text(s.script)}
	if c.Given != "" {
		call.Keys[0].Text = c.Given
	}
	return call
}
