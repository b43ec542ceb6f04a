package generate

import (
	"fmt"
	"slices"

	"github.com/tatami-rate/tatami/precision"
)

// A call by the server's clock answers what depends on that clock. So a test with such
// calls is played on the native port by many clocks, each answer held against exact
// integers, and its steps are the ranges of what was answered.

// slackNs is the time that a runner may take for a test with the server's clock, and from
// a write to PTTL.
const slackNs = 10 * second

// clocks are the server's clocks of a test's calls.
type clocks []int64

// manyClocks are those that a test of so many calls is made with: at a second's edges,
// before 2^31 s, at it and after it, all within a moment or with a wait before one of the
// calls. A window's are at the edges of one of its windows too, and so across them.
func manyClocks(script precision.Script, calls int, periodNs int64) []clocks {
	var starts []int64
	for _, unixUs := range []int64{1_000_000_001_000_000, 1_111_111_111_111_111, 1_357_913_579_864_208, 1_780_000_080_000_000,
		1_999_999_999_999_999, 2_147_483_637_999_999, 2_147_483_648_000_000, 2_222_222_222_222_222, 2_246_802_468_975_319} {
		starts = append(starts, unixUs*us)
	}
	if script == precision.GCRAV1 { // each distance of a whole us from its grid
		for i := range int64(32) {
			starts = append(starts, (1_357_913_579_864_208+i)*us)
		}
	}
	if script.IsWindow() {
		for _, at := range slices.Clone(starts) {
			began := at / periodNs * periodNs
			end := began + periodNs
			starts = append(starts, began+(us-began%us)%us, (end-1)/us*us) // the first whole us in it, and the last
		}
	}
	var all []clocks
	for _, at := range starts {
		for _, waitNs := range []int64{us, slackNs - second + us, slackNs} { // over a second's edge, or not
			for waits := range calls { // the wait comes before this call; before the first is another start
				c := make(clocks, calls)
				for i := range c {
					c[i] = at
					if waits > 0 && i >= waits {
						c[i] += waitNs
					}
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// overClocks makes the steps of a test with the server's clock.
func (t *Test) overClocks(script precision.Script, g *Group, asks []request) ([]Step, error) {
	first := slices.IndexFunc(asks, func(r request) bool { return byServer(script, slices.Concat(g.Argv, r.argv)) })
	periodNs := second
	if argv := slices.Concat(g.Argv, asks[first].argv); len(argv) > 1 {
		n, _ := whole(argv[1])
		periodNs = max(n, 1)
	}
	var merged []Step
	for _, at := range manyClocks(script, len(asks), periodNs) {
		p := NewNativePort(script)
		steps, err := t.run(script, g, asks, p, at)
		if err != nil {
			return nil, fmt.Errorf("by the server's clocks %d: %w", at, err)
		}
		if merged == nil {
			merged = steps
			continue
		}
		for i := range steps {
			if err := merged[i].widen(&steps[i]); err != nil {
				return nil, fmt.Errorf("step %d, by the server's clocks %d: %w", i, at, err)
			}
		}
	}
	return merged, nil
}

// widen makes the step one that another, by another clock, is too.
func (s *Step) widen(other *Step) (err error) {
	if s.Error != other.Error {
		return fmt.Errorf("error %q, by another clock %q", other.Error, s.Error)
	}
	for i := range s.State {
		if len(s.State[i]) != len(other.State[i]) {
			return fmt.Errorf("state %s, by another clock %s", other.State[i], s.State[i])
		}
		state := []byte(s.State[i])
		for j := range state {
			if state[j] != other.State[i][j] {
				state[j] = '.'
			}
		}
		s.State[i] = string(state)
	}
	widen := func(r *Range, other Range) {
		if err == nil {
			*r, err = around(*r, other)
		}
	}
	for i := range s.Reply {
		if isReceipt(i, len(s.Reply)) {
			if s.Reply[i] != other.Reply[i] {
				return fmt.Errorf("receipt %s, by another clock %s", other.Reply[i], s.Reply[i])
			}
			continue
		}
		widen(&s.Reply[i], other.Reply[i])
		widen(&s.Exact[i], other.Exact[i])
	}
	if s.Error == "" && (s.Reply[0] != other.Reply[0] || s.Exact[0] != other.Exact[0]) {
		return fmt.Errorf("status %s, by another clock %s", other.Reply[0], s.Reply[0])
	}
	for i := range s.TTLMs {
		widen(&s.TTLMs[i], other.TTLMs[i])
	}
	return err
}
