package loader

import "context"

// Call is one call of AllowEach, and its outcome.
type Call struct {
	Key   string
	Limit Limit
	// Cost is the units asked for, as in AllowN; 0 only looks.
	Cost int64

	// Result and Err are set by AllowEach, as AllowN would return them.
	Result Result
	Err    error
}

// AllowEach makes all the calls in one pipeline, which on a cluster or ring is one a
// server, and fills in their results. The calls are independent of each other: this
// is no transaction, and a call that fails leaves the others as they are. It returns
// the first call's error in their order, or nil.
func (l *Limiter) AllowEach(ctx context.Context, calls []Call) error {
	sent := make([]call, len(calls)) // the zero value is one that was not sent
	pipe := l.client.Pipeline()
	for i := range calls {
		in := &calls[i]
		in.Result, in.Err = Result{}, l.prepare(ctx, &sent[i], in.Key, in.Limit, in.Cost)
		if in.Err == nil {
			_ = pipe.Process(ctx, &sent[i]) // it only queues
		}
	}
	_, err := pipe.Exec(ctx)
	var missing []*call
	for i := range sent {
		if calls[i].Err == nil && sent[i].notRun() {
			missing = append(missing, &sent[i])
		}
	}
	if len(missing) > 0 {
		err = l.eval(ctx, missing)
	}
	var first error
	for i := range calls {
		if calls[i].Err == nil {
			calls[i].Result, calls[i].Err = sent[i].result(err)
		}
		if first == nil {
			first = calls[i].Err
		}
	}
	return first
}
