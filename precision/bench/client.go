package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	clientRounds = 21
	clientCalls  = 2000
)

// clientCosts fills in what a call costs the client: its time and allocations, with
// the server's answers played back to it at once, and how often it waits for them.
func clientCosts(ctx context.Context, options redis.Options, rows []*row, done func()) error {
	type play struct {
		call               func() error
		into               *calls
		times, allocations []float64
	}
	var plays []*play
	for _, r := range rows {
		for _, o := range r.outcomes() {
			s, tape, err := newTaped(ctx, r.candidate, options)
			if err != nil {
				return err
			}
			defer s.client.Close()
			of := busy // an existing key is what a client meets most
			if o.of == refused {
				of = refused
			}
			p := &play{into: o.calls}
			if p.call, err = s.call(ctx, of, needed); err != nil {
				return err
			}
			tape.record()
			if err := p.call(); err != nil {
				return err
			}
			o.Trips = float64(len(tape.replies))
			tape.play()
			plays = append(plays, p)
		}
	}
	for range clientRounds {
		for _, p := range plays {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			for range clientCalls {
				if err := p.call(); err != nil {
					return err
				}
			}
			p.times = append(p.times, float64(time.Since(began).Nanoseconds())/clientCalls)
			runtime.ReadMemStats(&after)
			p.allocations = append(p.allocations, float64(after.Mallocs-before.Mallocs)/clientCalls)
		}
		done()
	}
	for _, p := range plays {
		p.into.Client, p.into.Allocations = median(p.times), median(p.allocations)
	}
	return nil
}

// newTaped opens a session whose one connection is a tape.
func newTaped(ctx context.Context, c candidate, options redis.Options) (*session, *tape, error) {
	t := &tape{}
	options.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if t.Conn == nil {
			t.Conn = conn
			return t, nil
		}
		return conn, nil // of another client with these options
	}
	s, err := newSession(ctx, c, options)
	if err == nil && t.Conn == nil {
		err = fmt.Errorf("%s: no connection was taped", c.label())
	}
	return s, t, err
}

// tape is a connection that notes the server's answers, and then gives the same ones
// over and over without asking.
type tape struct {
	net.Conn
	recording, playing bool
	asked              bool     // since the last answer
	replies            [][]byte // one for each time that the client waits
	at                 int
	left               []byte // of the reply being read
}

func (t *tape) record() { t.recording = true }

func (t *tape) play() { t.recording, t.playing, t.asked = false, true, false }

func (t *tape) Write(p []byte) (int, error) {
	if t.playing {
		if !t.asked {
			t.asked, t.left = true, t.replies[t.at]
			t.at = (t.at + 1) % len(t.replies)
		}
		return len(p), nil
	}
	t.asked = true
	return t.Conn.Write(p)
}

func (t *tape) Read(p []byte) (int, error) {
	if t.playing {
		t.asked = false
		if len(t.left) == 0 {
			return 0, io.ErrUnexpectedEOF // the client waits for more than was answered
		}
		n := copy(p, t.left)
		t.left = t.left[n:]
		return n, nil
	}
	n, err := t.Conn.Read(p)
	if t.recording {
		if t.asked {
			t.replies = append(t.replies, nil)
		}
		last := len(t.replies) - 1
		t.replies[last] = append(t.replies[last], p[:n]...)
	}
	t.asked = false
	return n, err
}
