package native

import (
	"math"
	"slices"

	"github.com/tatami-rate/tatami/emulator/number"
)

// Key is a key that a call names, and what it holds: nothing, or a text.
type Key struct {
	Name   string
	Exists bool
	Text   string
}

// Reply is what a script answers and does. Of limits_v1 its Decision has Err, Status and
// RetryAfterNs alone, and Limits is a decision for each key.
type Reply struct {
	Decision
	Limits []LimitReply
}

// LimitReply is what limits_v1 answers and does of one key.
type LimitReply struct {
	Decision
	Receipt string
}

// Call is one call of the script with this name, on texts as the server has them: the
// keys, and ARGV, whose now_ns may be left out, but not of limits_v1, or be empty; then the
// clock is server. It returns what the keys hold after it. ok is false for a name that is no
// script's.
//
// It is for whole replies and states in tests and tools; a limiter calls the functions of
// the scripts, which allocate nothing.
func Call(script string, keys []Key, argv []string, server Clock) (after []Key, r Reply, ok bool) {
	if script == "limits_v1" {
		after, r = callLimits(keys, argv, server)
		return after, r, true
	}
	third := map[string]string{"gcra_v1": "burst", "gcra_v2": "burst", "window_v1": "mode"}[script]
	if third == "" {
		return keys, Reply{}, false
	}
	if len(keys) != 1 || len(argv) > 5 {
		r.Err = "BADARG " + script + ": takes 1 key, then amount period_ns " + third + " cost [now_ns]"
		return keys, r, true
	}
	argument := func(i int) string {
		if i < len(argv) {
			return argv[i]
		}
		return ""
	}
	value := func(i int) float64 { return toNumber(argument(i)) }
	now := clock(argument(4), server)
	key := keys[0]
	if third == "mode" {
		mode := argument(2)
		args := WindowArgs{value(0), value(1), mode == "sliding", mode != "sliding" && mode != "fixed", value(3)}
		state := key.window()
		if r.Decision = WindowV1(&state, args, now); r.Written {
			key = key.holdingWindow(state)
		}
		return []Key{key}, r, true
	}
	call := GCRAV2
	if script == "gcra_v1" {
		call = GCRAV1
	}
	state := key.gcra()
	if r.Decision = call(&state, GCRAArgs{value(0), value(1), value(2), value(3)}, now); r.Written {
		key = key.holdingGCRA(state)
	}
	return []Key{key}, r, true
}

func callLimits(keys []Key, argv []string, server Clock) (after []Key, r Reply) {
	var limits []LimitsKey // none, which is refused, when ARGV has another length
	now := server
	if len(argv) == 6*len(keys)+1 {
		limits, now = make([]LimitsKey, len(keys)), clock(argv[0], server)
	}
	for i := range limits {
		of := argv[1+6*i:]
		limits[i] = LimitsKey{
			Repeated: slices.ContainsFunc(keys[:i], func(k Key) bool { return k.Name == keys[i].Name }),
			Kind:     of[0], Amount: toNumber(of[1]), PeriodNs: toNumber(of[2]), Burst: toNumber(of[3]), Cost: toNumber(of[4]),
			BurstGiven: of[3] != "", Receipt: of[5],
		}
		if limits[i].Kind == "gcra" {
			limits[i].GCRA = keys[i].gcra()
		} else {
			limits[i].Window = keys[i].window()
		}
	}
	d := LimitsV1(limits, now)
	r.Err, r.Status, r.RetryAfterNs = d.Err, d.Status, d.RetryAfterNs
	if d.Err != "" {
		return keys, r
	}
	after = slices.Clone(keys)
	for i := range limits {
		l := &limits[i]
		r.Limits = append(r.Limits, LimitReply{l.Answer, l.Answered()})
		switch {
		case !l.Answer.Written:
		case l.Kind == "gcra":
			after[i] = keys[i].holdingGCRA(l.GCRA)
		default:
			after[i] = keys[i].holdingWindow(l.Window)
		}
	}
	return after, r
}

// toNumber is tonumber(text), NaN for none.
func toNumber(text string) float64 {
	if x, ok := number.ToNumber(text); ok {
		return x
	}
	return math.NaN()
}

// clock reads the argument now_ns.
func clock(now string, server Clock) Clock {
	if now == "" {
		return server
	}
	return ParseClock(now)
}

func (k Key) gcra() GCRAState {
	if !k.Exists {
		return GCRAState{}
	}
	return ParseGCRA(k.Text)
}

func (k Key) window() WindowState {
	if !k.Exists {
		return WindowState{}
	}
	return ParseWindow(k.Text)
}

func (k Key) holdingGCRA(s GCRAState) Key { return Key{k.Name, true, s.String()} }

func (k Key) holdingWindow(s WindowState) Key {
	bytes := s.Bytes()
	return Key{k.Name, true, string(bytes[:])}
}
