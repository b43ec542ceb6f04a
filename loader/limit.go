package loader

import (
	"cmp"
	"fmt"
	"time"
)

// Algorithm names how a limit is kept. The empty name is GCRA.
type Algorithm string

const (
	// GCRA spaces units evenly and lets a rested key spend a burst at once.
	GCRA Algorithm = "gcra"
	// TokenBucket is another name for GCRA: the bucket holds burst tokens, of which
	// Result.Remaining are left, and gains one each interval.
	TokenBucket Algorithm = "token_bucket"
	// LeakyBucket is another name for GCRA, with which Wait is a queue.
	LeakyBucket Algorithm = "leaky_bucket"
	// FixedWindow counts in windows of one period that start at multiples of the
	// period since 1970. Up to twice the amount may pass around a boundary.
	FixedWindow Algorithm = "fixed_window"
	// SlidingWindow also counts the part of the last window that still lies within
	// one period of now, as if its units had come evenly spread.
	SlidingWindow Algorithm = "sliding_window"
)

const algorithmNames = "gcra, token_bucket, leaky_bucket, fixed_window or sliding_window"

// ParseAlgorithm returns the algorithm of that name; empty is GCRA. The error is
// an ErrLimit.
func ParseAlgorithm(name string) (Algorithm, error) {
	switch a := Algorithm(name); a {
	case "":
		return GCRA, nil
	case GCRA, TokenBucket, LeakyBucket, FixedWindow, SlidingWindow:
		return a, nil
	}
	return "", refuse(ErrLimit, fmt.Sprintf("algorithm %q is unknown; use %s", short(name), algorithmNames))
}

// Limit is so many units a period. Its zero value is no limit that can be used:
// Amount and Period have to be set.
type Limit struct {
	// Amount is the units a period: 1 to the nanoseconds in Period for GCRA, 1 to
	// 65535 for a window.
	Amount int64
	// Period is 1 ms to 2^52 ns (52 days).
	Period time.Duration
	// Burst is the units that a rested key may spend at once: at least 1, and
	// Interval times Burst at most 2^52 ns. After them it gains one each interval, so
	// in any period at most Burst + Amount units pass. 0 is the same as Amount, and
	// then up to twice the amount passes. A window has none.
	Burst int64
	// Algorithm is GCRA when left out.
	Algorithm Algorithm
	// Name keeps limits of one key apart: it is a part of the Redis key. It may be
	// empty; otherwise it is a letter and then letters, digits, '_', '-' and '.', all
	// ASCII, at most 100 bytes. Two limits of GCRA without a name share a state, never
	// admit too much, and hold each other up. Windows of different periods never share
	// one.
	Name string
}

const (
	minPeriod       = time.Millisecond
	maxNS           = 1 << 52 // of a period, and of burst times interval
	maxCost         = 1 << 52
	maxWindowAmount = 65535 // a window's counts have 16 bits
	maxName         = 100   // bytes
)

// String is like "limit login 300 per 1m0s burst 60 gcra".
func (l Limit) String() string {
	text := "limit "
	if l.Name != "" {
		text += short(l.Name) + " "
	}
	text += fmt.Sprintf("%d per %v ", l.Amount, l.Period)
	if l.Burst != 0 {
		text += fmt.Sprintf("burst %d ", l.Burst)
	}
	return text + short(string(cmp.Or(l.Algorithm, GCRA)))
}

// short keeps what is longer than any name out of an error's text.
func short(text string) string {
	if len(text) > maxName {
		return fmt.Sprintf("(%d bytes)", len(text))
	}
	return text
}

// Interval is the time in which GCRA gives back one unit: Period / Amount, rounded
// up to a nanosecond. It is 0 when Amount or Period is below 1.
func (l Limit) Interval() time.Duration {
	if l.Amount < 1 || l.Period < 1 {
		return 0
	}
	return (l.Period-1)/time.Duration(l.Amount) + 1
}

// Quota is the units that a rested key may spend at once: Burst, or the Amount when that
// is left out, as a window's always is. Result.Remaining is never above it.
func (l Limit) Quota() int64 {
	if l.Burst == 0 {
		return l.Amount
	}
	return l.Burst
}

// Validate returns nil when calls take the limit. Otherwise the error is an ErrLimit
// that names the limit, the field, its bound and the way out. Every call validates its
// limit before it sends anything.
func (l Limit) Validate() error {
	switch l.Algorithm {
	case "", GCRA, TokenBucket, LeakyBucket, FixedWindow, SlidingWindow:
	default:
		return l.refuse("algorithm %q is unknown; use %s", short(string(l.Algorithm)), algorithmNames)
	}
	if len(l.Name) > maxName {
		return l.refuse("the name is longer than %d bytes", maxName)
	}
	if !isName(l.Name) {
		return l.refuse("name %q is not a letter and then letters, digits, '_', '-' and '.'", l.Name)
	}
	if l.Period < 1 {
		return l.refuse("period %v is below %v; set a period", l.Period, minPeriod)
	}
	if l.Period < minPeriod {
		return l.refuse("period %v is below %v; were %d seconds meant? Write %d * time.Second",
			l.Period, minPeriod, int64(l.Period), int64(l.Period))
	}
	if l.Period > maxNS {
		return l.refuse("period %v exceeds 2^52 ns (%v); use a shorter period and a smaller amount",
			l.Period, time.Duration(maxNS))
	}
	if l.Amount < 1 {
		return l.refuse("amount %d is below 1; to admit nothing, do not call", l.Amount)
	}
	if l.isWindow() {
		if l.Amount > maxWindowAmount {
			return l.refuse("amount %d exceeds %d; use gcra", l.Amount, maxWindowAmount)
		}
		if l.Burst != 0 {
			return l.refuse("burst %d is set, but a window has none; leave it out or use gcra", l.Burst)
		}
		return nil
	}
	if l.Amount > int64(l.Period) {
		return l.refuse("amount %d exceeds %d, one a nanosecond; count in larger units",
			l.Amount, int64(l.Period))
	}
	if l.Burst < 0 {
		return l.refuse("burst %d is negative; leave it out to use the amount", l.Burst)
	}
	// burst <= 2^52 / interval says burst * interval <= 2^52, and cannot overflow.
	if ceiling := maxNS / int64(l.Interval()); l.Quota() > ceiling {
		if l.Burst == 0 {
			return l.refuse("burst is left out, so it is the amount, %d, and exceeds %d, 2^52 ns / %d ns; set a smaller burst",
				l.Amount, ceiling, int64(l.Interval()))
		}
		return l.refuse("burst %d exceeds %d, 2^52 ns / %d ns; use a smaller burst",
			l.Burst, ceiling, int64(l.Interval()))
	}
	return nil
}

func (l Limit) refuse(format string, args ...any) error {
	return refuse(ErrLimit, l.String()+": "+fmt.Sprintf(format, args...))
}

func (l Limit) isWindow() bool { return l.Algorithm == FixedWindow || l.Algorithm == SlidingWindow }

// isName is true of what can stand as a Name: it looks like no period, and has none of
// the key's separators.
func isName(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')) {
			return false
		}
	}
	return true
}
