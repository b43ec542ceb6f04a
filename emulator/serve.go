package emulator

import (
	"context"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/tidwall/redcon"
)

// This file is the server behind its protocol, RESP2 or RESP3.

// NewClient returns a client of a new, empty server whose clock is time.Now. Nothing
// leaves the process, no port is taken, and nothing is left once the client is closed.
// In a bubble of testing/synctest the clock is the bubble's.
func NewClient() *redis.Client {
	r := New()
	r.SetClock(time.Now)
	return r.Client()
}

// Client returns a client of the server. Closing it ends its connections and keeps
// the server's keys. For a client with other options, or of another kind, use Dial.
func (r *Redis) Client() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:   "emulator",
		Dialer: r.Dial,
		// The server has none, and go-redis would resolve Addr to ask for them.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

// Dial returns a connection to the server, whatever the address. It is a Dialer for
// the options of a go-redis client.
func (r *Redis) Dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	go r.serve(server)
	return client, nil
}

// Serve serves the connections that listener accepts, and closes it. It returns nil
// when ctx ends and all connections are closed, or the error of Accept.
func (r *Redis) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	defer connections.Wait()
	defer cancel()
	context.AfterFunc(ctx, func() { listener.Close() })
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		connections.Go(func() {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			r.serve(conn)
		})
	}
}

// serve answers the commands of a connection until it ends, and closes it.
func (r *Redis) serve(conn net.Conn) {
	s := r.connect(conn.RemoteAddr().String())
	defer r.disconnect(s)
	out := newOutbox(conn)
	defer out.close()
	reader := redcon.NewReader(conn)
	for !s.ended {
		command, err := reader.ReadCommand()
		if err != nil {
			if strings.HasPrefix(err.Error(), "Protocol error") {
				out.append(replyError("ERR "+err.Error()), s.resp3)
			}
			return
		}
		words := make([]string, len(command.Args))
		for i, arg := range command.Args {
			words[i] = string(arg)
		}
		out.append(r.execute(s, words), s.resp3)
	}
}

// outbox holds the replies that a client has not read yet, without bound, as a server
// does: a client may write a pipeline of any length before it reads.
type outbox struct {
	mu      sync.Mutex
	wake    *sync.Cond
	pending []byte
	closing bool
	done    chan struct{}
}

func newOutbox(conn net.Conn) *outbox {
	o := &outbox{done: make(chan struct{})}
	o.wake = sync.NewCond(&o.mu)
	go o.send(conn)
	return o
}

// send writes what is pending until the outbox or the connection is closed.
func (o *outbox) send(conn net.Conn) {
	defer close(o.done)
	defer conn.Close()
	var sending []byte
	for {
		o.mu.Lock()
		for len(o.pending) == 0 && !o.closing {
			o.wake.Wait()
		}
		sending, o.pending = o.pending, sending[:0]
		o.mu.Unlock()
		if len(sending) == 0 {
			return
		}
		if _, err := conn.Write(sending); err != nil {
			return
		}
	}
}

func (o *outbox) append(v reply, resp3 bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = appendReply(o.pending, v, resp3)
	o.wake.Signal()
}

// close waits until everything is sent, or cannot be.
func (o *outbox) close() {
	o.mu.Lock()
	o.closing = true
	o.wake.Signal()
	o.mu.Unlock()
	<-o.done
}

// appendReply writes a reply in the protocol.
func appendReply(b []byte, v reply, resp3 bool) []byte {
	switch v := v.(type) {
	case nil, noArray:
		switch {
		case resp3:
			return append(b, "_\r\n"...)
		case v == nil:
			return append(b, "$-1\r\n"...)
		}
		return append(b, "*-1\r\n"...)
	case string:
		return redcon.AppendBulkString(b, v)
	case int64:
		return redcon.AppendInt(b, v)
	case status:
		return redcon.AppendString(b, string(v))
	case replyError:
		return redcon.AppendError(b, string(v))
	case verbatim:
		if !resp3 {
			return redcon.AppendBulkString(b, string(v))
		}
		b = append(b, '=')
		b = strconv.AppendInt(b, int64(len("txt:")+len(v)), 10)
		b = append(b, "\r\ntxt:"...)
		b = append(b, v...)
		return append(b, "\r\n"...)
	case pairs:
		if resp3 {
			b = append(b, '%')
			b = strconv.AppendInt(b, int64(len(v)/2), 10)
			b = append(b, "\r\n"...)
		} else {
			b = redcon.AppendArray(b, len(v))
		}
		return appendAll(b, v, resp3)
	case []any:
		return appendAll(redcon.AppendArray(b, len(v)), v, resp3)
	}
	panic("emulator: a reply of an unknown type")
}

func appendAll(b []byte, elements []any, resp3 bool) []byte {
	for _, element := range elements {
		b = appendReply(b, element, resp3)
	}
	return b
}
