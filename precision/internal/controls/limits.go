package controls

import (
	"fmt"

	"github.com/tatami-rate/tatami/precision"
)

// measureLimits is measure of a trace of limits_v1: units count as what was really used of
// what was admitted.
func (r *Result) measureLimits(calls []precision.LimitsCall, outcomes []precision.LimitsOutcome) error {
	own, fed := precision.NewLimitsClaims(), precision.NewLimitsClaims()
	for i := range calls {
		c, o := &calls[i], &outcomes[i]
		if o.Err != "" {
			return fmt.Errorf("call %d, %s: %s", i, c, o.Err)
		}
		r.Calls++
		right, _ := own.Pass(c)
		status, retryNs := fed.Call(c, o)
		for n := range c.Asks {
			a, k := &c.Asks[n], &o.Keys[n]
			if a.Of > 0 || right == 1 {
				r.Right += a.Cost
			}
			if a.Of > 0 || o.Status == 1 {
				r.Admitted += a.Cost
			}
			if k.State.Exists {
				r.TTLShortMs = max(r.TTLShortMs, (k.ResetAfterNs+1e6-1)/1e6-k.TTLMs)
			}
		}
		switch {
		case o.Status == 1 && status == 0:
			r.EarlyNs = max(r.EarlyNs, retryNs)
		case o.Status == 0 && status == 1:
			r.LateNs = max(r.LateNs, o.RetryAfterNs)
		case o.Status == 0:
			r.RetryShortNs = max(r.RetryShortNs, retryNs-o.RetryAfterNs)
		}
	}
	return nil
}
