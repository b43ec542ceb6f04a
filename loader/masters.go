package loader

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Presence says whether a server has a script.
type Presence struct {
	Server string // its address
	Script string // the script's name
	SHA1   string
	Loaded bool
}

// Verify asks every master that the client knows for each pinned script, and loads
// nothing. The answers come in order of server and script; with an error they are those
// of the masters that answered. A nil client is an error.
func Verify(ctx context.Context, client redis.UniversalClient) ([]Presence, error) {
	scripts, err := Scripts()
	if err != nil {
		return nil, err
	}
	var sha1s []string
	for _, script := range scripts {
		sha1s = append(sha1s, script.SHA1)
	}
	var mu sync.Mutex
	var all []Presence
	err = forEachMaster(ctx, client, func(ctx context.Context, address string, server redis.Cmdable) error {
		loaded, err := server.ScriptExists(ctx, sha1s...).Result()
		if err != nil {
			return err
		}
		if len(loaded) != len(scripts) {
			return fmt.Errorf("%w: SCRIPT EXISTS answers %v to %d SHA1s", ErrReply, loaded, len(scripts))
		}
		mu.Lock()
		defer mu.Unlock()
		for i, script := range scripts {
			all = append(all, Presence{address, script.Name, script.SHA1, loaded[i]})
		}
		return nil
	})
	slices.SortStableFunc(all, func(a, b Presence) int { return strings.Compare(a.Server, b.Server) })
	return all, err
}

// forEachMaster runs do on every master of a cluster or every shard of a ring, at
// once, or else on the client itself. All that take a client come here first, so the
// nil one is refused here.
func forEachMaster(ctx context.Context, client redis.UniversalClient,
	do func(ctx context.Context, address string, server redis.Cmdable) error) error {
	// A nil pointer of some client's type is an interface that is not nil.
	if v := reflect.ValueOf(client); client == nil || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("the client is nil")
	}
	onServer := func(ctx context.Context, server *redis.Client) error {
		return do(ctx, server.Options().Addr, server)
	}
	switch client := client.(type) {
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
	return do(ctx, "", client) // a wrapper
}
