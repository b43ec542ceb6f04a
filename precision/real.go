package precision

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/precision/servers"
)

// Real plays on a real server, by pipelines.
type Real struct {
	server *servers.Server
	client *redis.Client
	prefix string
	shas   map[Script]string
	last   map[string]bracket // when each key was last written
	held   map[string]State   // what each key of limits_v1 held last
	frozen bool               // whether the clock stands still in a transaction: from 7.2 on
}

// bracket is a span of the server's clock, in ms.
type bracket struct{ from, to int64 }

// pipelined is how many calls go into one pipeline: enough to hide the round trip,
// few enough that the replies fit the socket's buffers.
const pipelined = 256

// NewReal returns a driver of the server, whose keys begin with prefix. Close ends
// its connections.
func NewReal(ctx context.Context, server *servers.Server, prefix string) (*Real, error) {
	client := server.Client()
	shas, err := load(ctx, client)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	var major, minor int
	n, _ := fmt.Sscanf(server.Name, "redis %d.%d", &major, &minor)
	frozen := n != 2 || major > 7 || major == 7 && minor >= 2 // valkey began after it
	return &Real{server, client, prefix, shas, map[string]bracket{}, map[string]State{}, frozen}, nil
}

// Replace has the driver play another text in place of a script's own.
func (r *Real) Replace(script Script, text string) error {
	return replace(r.client, r.shas, script, text)
}

// Close ends the driver's connections.
func (r *Real) Close() error { return r.client.Close() }

// Name is the server's.
func (r *Real) Name() string { return r.server.Name }

// Forget deletes a key.
func (r *Real) Forget(key string) error {
	delete(r.last, r.prefix+key)
	delete(r.held, r.prefix+key)
	return r.client.Del(context.Background(), r.prefix+key).Err()
}

// Play makes the calls. A key's PTTL falls while the clock runs, so the server's clock
// has to be known with it. From 7.2 on it stands still in a transaction, and is then
// what PEXPIRETIME and PTTL differ by: the ttl as it was set is known exactly. TIME
// would not do there, since that of valkey 9 goes back at times, by some 100 us. Before
// 7.2 each call stands between two readings of TIME: the ttl is then known to within
// the time that went by, exactly when no millisecond ended in between.
func (r *Real) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	for len(calls) > 0 {
		n := min(len(calls), pipelined)
		if err := r.play(script, r.prefix+key, calls[:n], outcomes[:n]); err != nil {
			return err
		}
		calls, outcomes = calls[n:], outcomes[n:]
	}
	return nil
}

func (r *Real) play(script Script, key string, calls []Call, outcomes []Outcome) error {
	ctx := context.Background()
	pipe := r.client.Pipeline()
	if r.frozen {
		pipe = r.client.TxPipeline()
	}
	evals := make([]*redis.Cmd, len(calls))
	looks := make([]look, len(calls))
	times := make([]*redis.TimeCmd, len(calls)+1)
	times[0] = pipe.Time(ctx)
	gives := make([]*redis.Cmd, len(calls))
	for i := range calls {
		if calls[i].Given != "" {
			gives[i] = pipe.Do(ctx, calls[i].give(key)...)
		}
		args := append(make([]any, 0, 9), "EVALSHA", r.shas[script], 1, key)
		evals[i] = pipe.Do(ctx, calls[i].appendArgs(args, script)...)
		looks[i] = r.look(pipe, key)
		times[i+1] = pipe.Time(ctx)
	}
	// Exec answers with the first command's error, and a missing key is one; each
	// command's own error is looked at below.
	_, _ = pipe.Exec(ctx)
	for i := range calls {
		now, err := between(times[i], times[i+1])
		if err != nil {
			return err
		}
		if gives[i] != nil && gives[i].Err() != nil {
			return gives[i].Err()
		}
		o := &outcomes[i]
		*o = Outcome{}
		if err := o.reply(evals[i]); err != nil {
			return err
		}
		wrote := o.Status == 1 && calls[i].Cost > 0 || gives[i] != nil
		if err := r.saw(o, script, key, looks[i], now, wrote); err != nil {
			return err
		}
	}
	return nil
}

// look is what is asked of a key after a call.
type look struct {
	get *redis.StringCmd
	ttl *redis.Cmd
	end *redis.Cmd // when the key ends; of a frozen clock
}

func (r *Real) look(pipe redis.Pipeliner, key string) look {
	ctx := context.Background()
	l := look{get: pipe.Get(ctx, key), ttl: pipe.Do(ctx, "PTTL", key)}
	if r.frozen {
		l.end = pipe.Do(ctx, "PEXPIRETIME", key)
	}
	return l
}

// between is the span between two readings of TIME.
func between(before, after *redis.TimeCmd) (bracket, error) {
	if err := errors.Join(before.Err(), after.Err()); err != nil {
		return bracket{}, err
	}
	return bracket{before.Val().UnixMilli(), after.Val().UnixMilli()}, nil
}

// saw takes over what was seen of a key after a call that was made in a span, and may have
// written.
func (r *Real) saw(o *Outcome, script Script, key string, l look, now bracket, wrote bool) error {
	text, err := l.get.Result()
	if err := o.value(script, text, err); err != nil {
		return err
	}
	left, err := l.ttl.Int64()
	if err != nil {
		return err
	}
	if r.frozen {
		end, err := l.end.Int64()
		if err != nil {
			return err
		}
		now = bracket{end - left, end - left}
	}
	if wrote {
		r.last[key] = now
	}
	if left >= 0 {
		// written in r.last, read in now: the time from one to the other went by
		o.TTLMs = left + now.from - r.last[key].to
		if !r.frozen { // of one clock that does not go back
			o.TTLMs = max(o.TTLMs, left)
		}
		o.TTLSlackMs = left + now.to - r.last[key].from - o.TTLMs
	}
	return nil
}
