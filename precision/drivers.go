package precision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/lua"
)

// Driver makes calls on one implementation of the scripts.
type Driver interface {
	// Name says which implementation it is, such as "redis 7.0.15".
	Name() string
	// Play makes the calls, in order, on the key with this name among the driver's
	// own, and fills outcomes, which is as long as calls.
	Play(script Script, key string, calls []Call, outcomes []Outcome) error
	// PlayLimits makes the calls of limits_v1, in order, on keys whose names begin with
	// this one, and fills outcomes, which is as long as calls.
	PlayLimits(key string, calls []LimitsCall, outcomes []LimitsOutcome) error
	// Forget deletes a key.
	Forget(key string) error
}

// Native plays on the float64 port.
type Native struct {
	keys map[string]*nativeKey
}

// nativeKey is a key with an expiry on the server's clock, which the calls move.
type nativeKey struct {
	gcra      native.GCRAState
	window    native.WindowState
	nowMs     int64
	expires   bool
	expiresMs int64
}

// NewNative returns a driver of the native port, with no keys.
func NewNative() *Native { return &Native{map[string]*nativeKey{}} }

// Name is "native".
func (n *Native) Name() string { return "native" }

// Forget deletes a key.
func (n *Native) Forget(key string) error {
	delete(n.keys, key)
	return nil
}

// Play makes the calls; it allocates only for a new key and never fails.
func (n *Native) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	k := n.keys[key]
	if k == nil {
		k = &nativeKey{}
		n.keys[key] = k
	}
	for i := range calls {
		k.play(script, &calls[i], &outcomes[i])
	}
	return nil
}

// call makes a call.
func (k *nativeKey) call(script Script, c *Call) (o Outcome) {
	k.play(script, c, &o)
	return o
}

// play makes a call and fills its outcome in place, which saves a copy.
func (k *nativeKey) play(script Script, c *Call, o *Outcome) {
	if c.ServerNs > 0 {
		k.nowMs = c.ServerNs / 1e6
	}
	k.expire()
	if c.Given != "" {
		_, ttlMs := c.given()
		k.gcra, k.expires, k.expiresMs = native.ParseGCRA(c.Given), true, k.nowMs+ttlMs
	}
	now := c.nativeClock()
	var d native.Decision
	switch script {
	case GCRAV1:
		d = native.GCRAV1(&k.gcra, c.gcraArgs(), now)
	case GCRAV2:
		d = native.GCRAV2(&k.gcra, c.gcraArgs(), now)
	case WindowV1:
		d = native.WindowV1(&k.window, c.windowArgs(), now)
	}
	k.wrote(&d)
	o.Err = d.Err
	o.Status, o.Remaining, o.RetryAfterNs, o.ResetAfterNs = d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs
	k.state(script, &o.State)
	k.ttl(o)
}

// ttl fills the ttl of an outcome whose state is there.
func (k *nativeKey) ttl(o *Outcome) {
	o.TTLMs, o.TTLSlackMs = 0, 0
	switch {
	case k.expires:
		o.TTLMs = k.expiresMs - k.nowMs
	case o.State.Exists:
		o.TTLMs = -1
	}
}

// expire has the key be gone, as on a server, when its last millisecond is over.
func (k *nativeKey) expire() {
	if k.expires && k.nowMs > k.expiresMs {
		*k = nativeKey{nowMs: k.nowMs}
	}
}

// wrote has the key expire as a decision says.
func (k *nativeKey) wrote(d *native.Decision) {
	if d.Written && d.TTLS > 0 {
		k.expires, k.expiresMs = true, k.nowMs+d.TTLS*1000
	}
}

func (c *Call) nativeClock() native.Clock {
	if c.ByServer {
		return native.ServerClock(c.NowNs / 1000)
	}
	return native.CallerClock(c.NowNs)
}

func (c *Call) gcraArgs() native.GCRAArgs {
	return native.GCRAArgs{Amount: float64(c.Amount), PeriodNs: float64(c.PeriodNs),
		Burst: float64(c.Burst), Cost: float64(c.Cost)}
}

func (c *Call) windowArgs() native.WindowArgs {
	return native.WindowArgs{Amount: float64(c.Amount), PeriodNs: float64(c.PeriodNs),
		Sliding: c.Sliding, Cost: float64(c.Cost)}
}

func (k *nativeKey) state(script Script, s *State) {
	if w := &k.window; script.IsWindow() {
		*s = State{}
		if w.Exists {
			*s = newCounts(Counts{uint32(w.Index), uint16(w.Previous), uint16(w.Current)}, int64(w.PeriodNs))
		}
		return
	}
	g := &k.gcra
	s.Exists, s.PeriodNs, s.Value, s.Credit, s.Last = g.Exists, 0, instantNs(g.TAT), g.Credit, instantNs(g.Last)
}

// instantNs is an instant of at most 19 digits; both parts are whole.
func instantNs(i native.Instant) uint64 { return uint64(int64(i.S))*1e9 + uint64(int64(i.SubNs)) }

// give is the command by which the key comes to hold what is given.
func (c *Call) give(key string) []any {
	_, ttlMs := c.given()
	return []any{"SET", key, c.Given, "PX", ttlMs}
}

// Asset plays on a script's own text in the emulator.
type Asset struct {
	redis *emulator.Redis
	shas  map[Script]string
}

// NewAsset returns a driver of the emulator, with no keys. The emulator's clock stands
// still but where a call sets it.
func NewAsset() (*Asset, error) {
	a := &Asset{emulator.New(), nil}
	var err error
	a.shas, err = load(context.Background(), a.redis)
	return a, err
}

// load loads the scripts and returns their SHA1s.
func load(ctx context.Context, r redis.Scripter) (map[Script]string, error) {
	shas := map[Script]string{}
	for name, text := range lua.Assets {
		sha, err := r.ScriptLoad(ctx, text).Result()
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", name, err)
		}
		shas[Script(name)] = sha
	}
	return shas, nil
}

// Replace has the driver play another text in place of a script's own.
func (a *Asset) Replace(script Script, text string) error {
	return replace(a.redis, a.shas, script, text)
}

// SetTimeNs sets the emulator's clock to an instant of the caller's clock. Where it
// moves, keys expire, and a ttl is read as what is left of it.
func (a *Asset) SetTimeNs(nowNs int64) { a.redis.SetTime(time.Unix(0, nowNs)) }

// replace loads a text and enters it as the script's.
func replace(r redis.Scripter, shas map[Script]string, script Script, text string) error {
	sha, err := r.ScriptLoad(context.Background(), text).Result()
	if err != nil {
		return fmt.Errorf("load a text as %s: %w", script, err)
	}
	shas[Script(script)] = sha
	return nil
}

// Name is "emulator".
func (a *Asset) Name() string { return "emulator" }

// Forget deletes a key.
func (a *Asset) Forget(key string) error {
	return a.redis.Do(context.Background(), "DEL", key).Err()
}

// Play makes the calls.
func (a *Asset) Play(script Script, key string, calls []Call, outcomes []Outcome) error {
	ctx := context.Background()
	keys := []string{key}
	var args []any
	for i := range calls {
		args = calls[i].appendArgs(args[:0], script)
		if calls[i].ServerNs > 0 {
			a.SetTimeNs(calls[i].ServerNs)
		}
		if calls[i].Given != "" {
			if err := a.redis.Do(ctx, calls[i].give(key)...).Err(); err != nil {
				return err
			}
		}
		o := &outcomes[i]
		*o = Outcome{}
		if err := o.reply(a.redis.EvalSha(ctx, a.shas[script], keys, args...)); err != nil {
			return err
		}
		if err := a.look(o, script, key); err != nil {
			return err
		}
	}
	return nil
}

// look reads what a key holds after a call of a script.
func (a *Asset) look(o *Outcome, script Script, key string) error {
	text, err := a.redis.Do(context.Background(), "GET", key).Text()
	if err := o.value(script, text, err); err != nil {
		return err
	}
	ttlMs, err := a.redis.Do(context.Background(), "PTTL", key).Int64()
	if err != nil {
		return err
	}
	o.TTLMs = ttlMs
	if ttlMs == -2 {
		o.TTLMs = 0 // no key
	}
	return nil
}

// reply takes over what a script answered. An error reply is an outcome; a lost
// connection and a reply of another form are errors.
func (o *Outcome) reply(cmd *redis.Cmd) error {
	values, err := replied(cmd, &o.Err)
	if err != nil || o.Err != "" {
		return err
	}
	if len(values) != 4 {
		return fmt.Errorf("reply has %d elements: %v", len(values), values)
	}
	return integers(values, &o.Status, &o.Remaining, &o.RetryAfterNs, &o.ResetAfterNs)
}

// replied is the elements of a reply; an error reply goes into text.
func replied(cmd *redis.Cmd, text *string) ([]any, error) {
	values, err := cmd.Slice()
	var reply redis.Error
	if errors.As(err, &reply) {
		*text = err.Error()
		return nil, nil
	}
	return values, err
}

// integers takes over the first elements of a reply.
func integers(values []any, into ...*int64) error {
	for i, field := range into {
		n, ok := values[i].(int64)
		if !ok {
			return fmt.Errorf("reply's element %d is no integer: %v", i, values)
		}
		*field = n
	}
	return nil
}

// value takes over what GET answered.
func (o *Outcome) value(script Script, text string, err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	state, ok := parseEither(script, text)
	if !ok {
		return fmt.Errorf("%s left %q in its key", script, text)
	}
	o.State = state
	return nil
}
