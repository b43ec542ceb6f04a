package loader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tatami-rate/tatami/emulator"
)

// How often a call that did not run is sent again.
func TestLasts(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		what    string
		p       patience
		bounded bool
		lasts   int // the first of 0 .. 9 retries after which it does not, 10: after none
	}{
		{"no retries", patience{0, ms, ms, 0}, false, 0},
		{"no retries, with a deadline", patience{0, ms, ms, 0}, true, 0},
		{"go-redis's 3", patience{3, ms, ms, 0}, false, 3},
		{"3 with a deadline", patience{3, ms, ms, 0}, true, 10},
		{"no wait between them, with a deadline", patience{3, 0, ms, 0}, true, 3},
		{"no longest wait, with a deadline", patience{3, ms, 0, 0}, true, 3},
		{"a wait of 1 ns, with a deadline", patience{3, 1, 1, 0}, true, 10},
	} {
		ctx := t.Context()
		if c.bounded {
			with, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			ctx = with
		}
		lasts := 0
		for lasts < 10 && c.p.lasts(ctx, lasts) {
			lasts++
		}
		if lasts != c.lasts {
			t.Errorf("%s: it lasts for %d retries, want %d", c.what, lasts, c.lasts)
		}
	}
}

// The waits between are those of go-redis: at least the shortest, spread over 2^attempt of
// it, at most the longest.
func TestBackoff(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		shortest, longest time.Duration
		attempt           int
		from, to          time.Duration
	}{
		{0, time.Second, 1, 0, 0},
		{1, 1, 1, 1, 1},
		{10 * ms, time.Second, 0, 10 * ms, 20*ms - 1},
		{10 * ms, time.Second, 1, 10 * ms, 30*ms - 1},
		{10 * ms, time.Second, 3, 10 * ms, 90*ms - 1},
		{10 * ms, 15 * ms, 3, 10 * ms, 15 * ms},
		{1, time.Hour, 20, 1, 1 << 20},
		{1, time.Hour, 1000, 1, 1 << 20},
		{1 << 50, 1 << 60, 20, 1 << 60, 1 << 60}, // 2^70 ns do not fit
	} {
		p := patience{minBackoff: c.shortest, maxBackoff: c.longest}
		least, most := p.backoff(c.attempt), time.Duration(0)
		for range 1000 {
			wait := p.backoff(c.attempt)
			least, most = min(least, wait), max(most, wait)
		}
		if least < c.from || most > c.to || most-least < (c.to-c.from)/2 {
			t.Errorf("from %v to %v, attempt %d: waits from %v to %v, want from %v to %v",
				c.shortest, c.longest, c.attempt, least, most, c.from, c.to)
		}
	}
}

// within waits for what it runs until the deadline or, without one, for the wait.
func TestWithin(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		what     string
		deadline time.Duration // 0: none
		wait     time.Duration
		takes    time.Duration
		late     bool
	}{
		{"neither", 0, 0, 20 * time.Millisecond, false},
		{"a wait below 1", 0, -1, 20 * time.Millisecond, false},
		{"the shortest wait", 0, 1, time.Minute, true},
		{"a longer wait than it takes", 0, time.Minute, time.Millisecond, false},
		{"a deadline", 20 * time.Millisecond, 0, time.Minute, true},
		{"a later deadline", time.Minute, 0, time.Millisecond, false},
		{"a deadline after the wait", time.Minute, 1, 20 * time.Millisecond, false},
	} {
		ctx := t.Context()
		if c.deadline > 0 {
			with, cancel := context.WithTimeout(ctx, c.deadline)
			defer cancel()
			ctx = with
		}
		stop := make(chan struct{})
		err, late := new(Limiter).within(ctx, c.wait, runFunc(func(context.Context) error {
			select {
			case <-time.After(c.takes):
			case <-stop:
			}
			return boom
		}))
		close(stop)
		want := boom
		if c.late {
			want = context.DeadlineExceeded
		}
		if late != c.late || !errors.Is(err, want) {
			t.Errorf("%s: %v, late %v, want %v, %v", c.what, err, late, want, c.late)
		}
	}
}

// What a call leaves for the next one stays with its limiter: a channel that is made in one
// bubble of testing/synctest cannot be used in another.
func TestBubbles(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			client := emulator.NewClient()
			defer client.Close()
			limiter, err := New(client)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if _, err := limiter.Allow(ctx, "k", Limit{Amount: 1, Period: time.Second}); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
		})
	}
}
