package precision

import (
	"errors"
	"fmt"
	"strings"
)

// Trial is a trace as the suite plays it, of a script of one key or of limits_v1.
type Trial interface {
	// String is one argument of the command line, which ReadTrial reads.
	String() string
	// Len is how many calls it has.
	Len() int
	// Play makes the calls on keys of a driver, which are deleted after.
	Play(d Driver, key string) (Answers, error)
	// Shrink returns the fewest of its calls, found by leaving calls out, that still show a
	// claim broken on the driver, and what is broken then. It returns the whole trial where
	// it does not break again.
	Shrink(d Driver) (Trial, string)
}

// Answers are what a driver answered to a trial.
type Answers interface {
	// Judge holds them against the oracle, and against the native port's.
	Judge() Tally
	// Line is a call and what came of it.
	Line(i int) (call, outcome string)
}

// ReadTrial reads what String of a trial writes.
func ReadTrial(text string) (Trial, error) {
	if name, _, _ := strings.Cut(strings.TrimSpace(text), " "); name == string(LimitsV1) {
		return ParseLimitsTrace(text)
	}
	return ParseTrace(text)
}

// Len is how many calls the trace has.
func (t *Trace) Len() int { return len(t.Calls) }

// Play makes the calls on a key of a driver, which is deleted after.
func (t *Trace) Play(d Driver, key string) (Answers, error) {
	outcomes, err := Play(d, t.Script, key, t.Calls)
	return &answers{t, outcomes}, err
}

// Shrink is Shrink of a driver and the trace.
func (t *Trace) Shrink(d Driver) (Trial, string) { return Shrink(d, t) }

type answers struct {
	trace    *Trace
	outcomes []Outcome
}

func (a *answers) Judge() Tally { return Judge(a.trace, a.outcomes) }

func (a *answers) Line(i int) (call, outcome string) {
	return fmt.Sprintf("%+v", a.trace.Calls[i]), fmt.Sprintf("%+v", a.outcomes[i])
}

// Len is how many calls the trace has.
func (t *LimitsTrace) Len() int { return len(t.Calls) }

// Play makes the calls on keys of a driver, which are deleted after.
func (t *LimitsTrace) Play(d Driver, key string) (Answers, error) {
	outcomes, err := PlayLimits(d, key, t.Calls)
	return &limitsAnswers{t, outcomes}, err
}

// PlayLimits makes the calls on keys of a driver, which are deleted after, and returns an
// outcome for each.
func PlayLimits(d Driver, key string, calls []LimitsCall) ([]LimitsOutcome, error) {
	outcomes := make([]LimitsOutcome, len(calls))
	for i := range outcomes {
		outcomes[i].Err = noAnswer
	}
	err := d.PlayLimits(key, calls, outcomes)
	for _, name := range keyNames(key, calls) {
		err = errors.Join(err, d.Forget(name))
	}
	if err != nil {
		return nil, err
	}
	for i := range outcomes {
		if outcomes[i].Err == noAnswer || len(outcomes[i].Keys) != len(calls[i].Asks) {
			return nil, fmt.Errorf("call %d of %d, %s: %s", i, len(calls), &calls[i], noAnswer)
		}
	}
	return outcomes, nil
}

type limitsAnswers struct {
	trace    *LimitsTrace
	outcomes []LimitsOutcome
}

func (a *limitsAnswers) Judge() Tally { return JudgeLimits(a.trace, a.outcomes) }

func (a *limitsAnswers) Line(i int) (call, outcome string) {
	return a.trace.Calls[i].String(), fmt.Sprintf("%+v", a.outcomes[i])
}

// Shrink leaves out calls, and then keys of what is left.
func (t *LimitsTrace) Shrink(d Driver) (Trial, string) {
	smallest, broken, made := t, "", 0
	try := func(calls []LimitsCall) bool {
		less, err := NewLimitsTraceOf(calls)
		if err != nil || len(calls) == 0 {
			return false
		}
		made += len(calls)
		played, err := less.Play(d, "shrink")
		if err != nil {
			return false
		}
		tally := played.Judge()
		if tally.Sound() {
			return false
		}
		calls = without(calls, tally.BrokenAt+1, len(calls))
		if less, err = NewLimitsTraceOf(calls); err == nil {
			smallest, broken = less, tally.Broken
		}
		return err == nil
	}
	if !try(copyCalls(t.Calls)) {
		return t, ""
	}
	for chunk := len(smallest.Calls) / 2; chunk > 0; {
		shorter := false
		for from := 0; from+chunk <= len(smallest.Calls) && made < shrinkCalls; {
			if try(without(smallest.Calls, from, from+chunk)) {
				shorter = true
			} else {
				from += chunk
			}
		}
		if chunk > 1 || !shorter {
			chunk /= 2
		}
	}
	for i := 0; i < len(smallest.Calls); i++ {
		for n := 0; len(smallest.Calls[i].Asks) > 1 && n < len(smallest.Calls[i].Asks) && made < shrinkCalls; {
			less := copyCalls(smallest.Calls)
			less[i].Asks = append(less[i].Asks[:n:n], less[i].Asks[n+1:]...)
			if !try(less) {
				n++
			}
			if i >= len(smallest.Calls) {
				break
			}
		}
	}
	return smallest, broken
}

func copyCalls(calls []LimitsCall) []LimitsCall { return without(calls, 0, 0) }
