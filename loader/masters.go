package loader

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Presence says whether a server has a script.
type Presence struct {
	Server string // its address, or what go-redis has in its place
	Script string // the script's name
	SHA1   string
	Loaded bool
	// Bits is 32 or 64, of what the server is built for, and 0 where INFO does not tell.
	// The scripts decide alike on both.
	Bits int
}

// Load loads every pinned script on every master that the client knows, or on every shard
// of a ring, and holds the servers' SHA1s against the pins (ErrPin). It tells what the
// servers that answered have, in order of server and script; an error names those that did
// not. When none answers it is an ErrUnreached too. Loading again does no harm.
func (l *Limiter) Load(ctx context.Context) ([]Presence, error) {
	return l.onMasters(ctx, func(ctx context.Context, server redis.Cmdable, found []Presence) error {
		for i := range found {
			sha1, err := server.ScriptLoad(ctx, textOf(found[i].Script)).Result()
			if err != nil {
				return err
			}
			if sha1 != found[i].SHA1 {
				return fmt.Errorf("%w: %s is pinned as %s, the server answers %s",
					ErrPin, found[i].Script, found[i].SHA1, sha1)
			}
			found[i].Loaded = true
		}
		return nil
	})
}

// Verify asks the same servers for each script, and loads nothing. It returns as Load does.
func (l *Limiter) Verify(ctx context.Context) ([]Presence, error) {
	return l.onMasters(ctx, func(ctx context.Context, server redis.Cmdable, found []Presence) error {
		var sha1s []string
		for _, one := range found {
			sha1s = append(sha1s, one.SHA1)
		}
		loaded, err := server.ScriptExists(ctx, sha1s...).Result()
		if err != nil {
			return err
		}
		if len(loaded) != len(found) {
			return fmt.Errorf("%w: SCRIPT EXISTS answers %v to %d SHA1s", ErrReply, loaded, len(found))
		}
		for i := range found {
			found[i].Loaded = loaded[i]
		}
		return nil
	})
}

// bitsOf is what INFO says of the server's build. A server may refuse it and still have the
// scripts, so that is no error.
func bitsOf(ctx context.Context, server redis.Cmdable) int {
	_, rest, _ := strings.Cut(server.Info(ctx, "server").Val(), "\r\narch_bits:")
	digits, _, _ := strings.Cut(rest, "\r\n")
	bits, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return bits
}

func textOf(name string) string {
	i := slices.IndexFunc(pinned, func(s Script) bool { return s.Name == name })
	return pinned[i].text
}

// survey is what the servers have answered so far.
type survey struct {
	mu     sync.Mutex
	found  []Presence
	failed map[string]error // by server; nil while it is asked, or has answered
	heard  bool             // one server at least has answered, be it with an error
}

// onMasters asks all servers at once. do fills in its found, which names all the scripts.
func (l *Limiter) onMasters(ctx context.Context,
	do func(ctx context.Context, server redis.Cmdable, found []Presence) error) ([]Presence, error) {
	if err := l.usable(ctx); err != nil {
		return nil, err
	}
	scripts, err := Scripts()
	if err != nil {
		return nil, err
	}
	s := &survey{failed: map[string]error{}}
	ask := func(ctx context.Context, address string, server redis.Cmdable) error {
		s.mu.Lock()
		s.failed[address] = errNoReply
		s.mu.Unlock()
		found := make([]Presence, len(scripts))
		for i, script := range scripts {
			found[i] = Presence{Server: address, Script: script.Name, SHA1: script.SHA1}
		}
		err := do(ctx, server, found)
		if err == nil {
			bits := bitsOf(ctx, server)
			for i := range found {
				found[i].Bits = bits
			}
		}
		var answer redis.Error
		s.mu.Lock()
		defer s.mu.Unlock()
		s.heard = s.heard || err == nil || errors.As(err, &answer) || errors.Is(err, ErrPin) || errors.Is(err, ErrReply)
		s.failed[address] = err
		if err == nil {
			s.found = append(s.found, found...)
		}
		return nil // one server's error ends nothing
	}
	err, late := l.within(ctx, 0, runFunc(func(ctx context.Context) error { return l.forEachMaster(ctx, ask) }))
	return s.report(ctx, err, late, l.down(s))
}

// forEachMaster runs do on every master of a cluster or every live shard of a ring, at
// once, or else on the client itself.
func (l *Limiter) forEachMaster(ctx context.Context,
	do func(ctx context.Context, address string, server redis.Cmdable) error) error {
	onServer := func(ctx context.Context, server *redis.Client) error {
		return do(ctx, server.Options().Addr, server)
	}
	switch client := l.client.(type) {
	case interface { // a cluster has ForEachShard too, which takes in the replicas
		ForEachMaster(context.Context, func(context.Context, *redis.Client) error) error
	}:
		return client.ForEachMaster(ctx, onServer)
	case interface {
		ForEachShard(context.Context, func(context.Context, *redis.Client) error) error
	}:
		return client.ForEachShard(ctx, onServer)
	case *redis.Client:
		return onServer(ctx, client)
	}
	return do(ctx, "", l.client) // a wrapper
}

// down returns the addresses of a ring's shards that the ring has left out, being dead. A
// ring that was given other addresses since does not tell them, so then there are none.
func (l *Limiter) down(s *survey) []string {
	ring, ok := l.client.(interface{ Options() *redis.RingOptions })
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	configured := slices.Sorted(maps.Values(ring.Options().Addrs))
	for asked := range s.failed {
		if !slices.Contains(configured, asked) {
			return nil
		}
	}
	return slices.DeleteFunc(configured, func(address string) bool {
		_, asked := s.failed[address]
		return asked
	})
}

// report returns a copy of what was found, and one error of all that was not. err is that
// of the client as a whole, which late has not come back.
func (s *survey) report(ctx context.Context, err error, late bool, down []string) ([]Presence, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := slices.Clone(s.found)
	slices.SortStableFunc(found, func(a, b Presence) int { return strings.Compare(a.Server, b.Server) })
	var all failures
	for _, address := range slices.Sorted(maps.Keys(s.failed)) {
		one := s.failed[address]
		if late && one == errNoReply {
			one = err
		}
		if one != nil {
			all = append(all, &failure{server: address, cause: one, ended: ended(ctx)})
		}
	}
	for _, address := range down {
		all = append(all, &failure{server: address, cause: errors.New("the ring's shard is down")})
	}
	if len(all) == 0 && err != nil {
		all = append(all, &failure{cause: err, ended: ended(ctx)})
	}
	switch {
	case !s.heard && len(all) == 0:
		return nil, &failure{kind: ErrUnreached, cause: errors.New("the client knows no master")}
	case !s.heard:
		return nil, &failure{kind: ErrUnreached, cause: all}
	case len(all) > 0:
		return found, all
	}
	return found, nil
}
