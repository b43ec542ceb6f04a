package loader

import "context"

// Call is one call of AllowEach.
type Call struct {
	// Key names who is limited, and is not empty. Limiter.Key tells the Redis key.
	Key   string
	Limit Limit
	// Cost is the units asked for, 0 to 2^52; 0 only looks.
	Cost int64
}

// Outcome is what AllowN would return for a call: a Result, or with an Err its zero value,
// which allows nothing.
type Outcome struct {
	Result
	Err error
}

// AllowEach makes all the calls in one pipeline, which on a cluster or ring is one a
// server, and returns their outcomes in their order. The calls are independent of each
// other: this is no transaction, and a call that fails leaves the others as they are.
// Without a deadline it waits for the servers, at the same time, for the client's
// ReadTimeout. A cancelled context without a deadline ends the wait at once on a Client, a
// ClusterClient and a Ring, and on an AutoPipeliner only after its client's ReadTimeout.
// Close a Ring after its calls have come back: one that is closed beside them can panic
// inside go-redis.
func (l *Limiter) AllowEach(ctx context.Context, calls ...Call) []Outcome {
	outcomes := make([]Outcome, len(calls))
	all := make([]call, len(calls))
	sent := make([]*call, 0, len(calls))
	for i, in := range calls {
		if err := l.prepare(ctx, &all[i], in.Key, in.Limit, in.Cost); err != nil {
			outcomes[i].Err = err
			continue
		}
		sent = append(sent, &all[i])
	}
	if len(sent) > 0 {
		l.sendEach(ctx, sent)
	}
	for i := range calls {
		if outcomes[i].Err == nil {
			outcomes[i].Result, outcomes[i].Err = l.result(&all[i], calls[i].Limit)
		}
	}
	return outcomes
}
