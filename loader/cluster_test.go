package loader_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

const slots = 16384

// nodeArgs make a cluster node, which gives up no other one that only does not answer.
var nodeArgs = []string{"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", "600000"}

// startNode starts an empty cluster node.
func startNode(t *testing.T) *redis.Client {
	t.Helper()
	client := servers.ForTest(t, nodeArgs...).Client()
	t.Cleanup(func() { client.Close() })
	return client
}

// until waits for what the nodes tell each other in their own time.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a minute has passed without %s", what)
		}
	}
}

func address(client *redis.Client) (host, port string) {
	host, port, _ = strings.Cut(client.Options().Addr, ":")
	return host, port
}

func nodeID(t *testing.T, node *redis.Client) string {
	t.Helper()
	id, err := node.Do(t.Context(), "cluster", "myid").Text()
	must(t, err)
	return id
}

// knowEachOther tells whether every node knows all of them and their slots.
func knowEachOther(t *testing.T, nodes []*redis.Client) func() bool {
	return func() bool {
		for _, node := range nodes {
			info, err := node.ClusterInfo(t.Context()).Result()
			must(t, err)
			if !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, fmt.Sprintf("cluster_slots_ok:%d\r\n", slots)) ||
				!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r\n", len(nodes))) {
				return false
			}
		}
		return true
	}
}

// startCluster starts three masters that share the slots, and a client of them.
func startCluster(t *testing.T) ([]*redis.Client, *redis.ClusterClient) {
	t.Helper()
	var nodes []*redis.Client
	for i := range 3 {
		node := startNode(t)
		must(t, node.ClusterAddSlotsRange(t.Context(), i*slots/3, (i+1)*slots/3-1).Err())
		must(t, node.Do(t.Context(), "cluster", "set-config-epoch", i+1).Err())
		nodes = append(nodes, node)
	}
	host, port := address(nodes[0])
	for _, node := range nodes[1:] {
		must(t, node.ClusterMeet(t.Context(), host, port).Err())
	}
	until(t, "a whole cluster", knowEachOther(t, nodes))
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Options().Addr}})
	t.Cleanup(func() { cluster.Close() })
	return nodes, cluster
}

func TestCluster(t *testing.T) {
	nodes, cluster := startCluster(t)
	limiter := newLimiter(t, cluster)
	found, err := limiter.Verify(t.Context())
	must(t, err)
	if len(found) != 12 {
		t.Errorf("%d answers of 3 masters for 4 scripts: %v", len(found), found)
	}
	for _, one := range found {
		if !one.Loaded {
			t.Errorf("%+v is not loaded", one)
		}
	}

	// Keys in many slots, one at a time and in one batch, before and after a flush
	// of one node.
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	at := limiter.WithClock(t, clockAt(0))
	calls := make([]loader.Call, 60)
	for i := range calls {
		calls[i] = loader.Call{Key: fmt.Sprint("k", i), Limit: limit, Cost: 1}
		if i%2 == 1 {
			calls[i].Limit.Algorithm = loader.SlidingWindow
		}
	}
	for spent := int64(1); spent <= 4; spent += 2 {
		for _, call := range calls {
			if got := allow(t, at, call.Key, call.Limit, 1); got.Remaining != 10-spent {
				t.Errorf("%s: %d remaining, want %d", call.Key, got.Remaining, 10-spent)
			}
		}
		must(t, nodes[1].ScriptFlush(t.Context()).Err())
		for i, got := range allowEach(t, at, calls) {
			if got.Remaining != 10-spent-1 {
				t.Errorf("batch, %s: %d remaining, want %d", calls[i].Key, got.Remaining, 10-spent-1)
			}
		}
		must(t, nodes[2].ScriptFlush(t.Context()).Err())
	}
	for _, node := range nodes {
		if n := node.DBSize(t.Context()).Val(); n == 0 {
			t.Errorf("%v holds no key, so it was not tested", node)
		}
	}

	// A fourth master joins, without the scripts, and takes over a slot.
	added := startNode(t)
	host, port := address(nodes[0])
	must(t, added.ClusterMeet(t.Context(), host, port).Err())
	id := nodeID(t, added)
	all := append(slices.Clone(nodes), added)
	until(t, "four nodes that know each other", knowEachOther(t, all))
	key := "moved"
	slot := cluster.ClusterKeySlot(t.Context(), limiter.Key(key, limit)).Val()
	owner := ownerOf(t, all, slot)
	ownerID := nodeID(t, owner)

	// While the slot moves its owner sends keys that it has not to the new node by
	// ASK, one at a time and in a batch.
	must(t, added.Do(t.Context(), "cluster", "setslot", slot, "importing", ownerID).Err())
	must(t, owner.Do(t.Context(), "cluster", "setslot", slot, "migrating", id).Err())
	if got := allow(t, at, key, limit, 1); got.Remaining != 9 {
		t.Errorf("by ASK: %+v, want 9 remaining", got)
	}
	must(t, added.ScriptFlush(t.Context()).Err())
	batch := []loader.Call{{Key: key, Limit: limit, Cost: 1}, {Key: "k0", Limit: limit}}
	got := allowEach(t, at, batch)
	if got[0].Remaining != 8 || got[1].Remaining != 6 {
		t.Errorf("by ASK in a batch: %+v, want 8 and 6 remaining", got)
	}
	must(t, added.ScriptFlush(t.Context()).Err())

	// Then it has moved, and they are sent there by MOVED.
	for _, node := range append([]*redis.Client{added}, nodes...) {
		must(t, node.Do(t.Context(), "cluster", "setslot", slot, "node", id).Err())
	}
	if got := allow(t, at, key, limit, 1); got.Remaining != 7 {
		t.Errorf("on the added master: %+v, want 7 remaining", got)
	}
	if n := added.Exists(t.Context(), limiter.Key(key, limit)).Val(); n != 1 {
		t.Error("the added master does not hold the key")
	}
	if loaded := added.ScriptExists(t.Context(), sha1Of(t, "gcra_v2")).Val(); !loaded[0] {
		t.Error("the added master lacks the script after a call")
	}
	until(t, "the added master in Verify", func() bool {
		found, err := limiter.Verify(t.Context())
		must(t, err)
		return len(found) == 16
	})
}

// ownerOf returns the node that has the slot.
func ownerOf(t *testing.T, nodes []*redis.Client, slot int64) *redis.Client {
	t.Helper()
	shards, err := nodes[0].ClusterShards(t.Context()).Result()
	must(t, err)
	for _, shard := range shards {
		for _, r := range shard.Slots {
			for _, node := range nodes {
				if r.Start <= slot && slot <= r.End && shard.Nodes[0].ID == nodeID(t, node) {
					return node
				}
			}
		}
	}
	t.Fatalf("no node has slot %d", slot)
	return nil
}

func TestRing(t *testing.T) {
	t.Run("emulator", func(t *testing.T) { testRing(t, onPort(t, true), onPort(t, true)) })
	t.Run("redis-server", func(t *testing.T) { testRing(t, onPort(t, false), onPort(t, false)) })
}

func testRing(t *testing.T, a, b testServer) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": a.Options().Addr, "b": b.Options().Addr}})
	t.Cleanup(func() { ring.Close() })
	limiter := newLimiter(t, ring)
	for _, shard := range []testServer{a, b} {
		found, err := newLimiter(t, shard.Client).Verify(t.Context())
		must(t, err)
		for _, one := range found {
			if !one.Loaded {
				t.Errorf("%+v is not loaded", one)
			}
		}
	}
	limit := loader.Limit{Amount: 10, Period: time.Hour}
	must(t, b.ScriptFlush(t.Context()).Err())
	calls := make([]loader.Call, 20)
	for i := range calls {
		calls[i] = loader.Call{Key: fmt.Sprint("k", i), Limit: limit, Cost: 2}
	}
	at := limiter.WithClock(t, clockAt(0))
	for i, first := range allowEach(t, at, calls) {
		if got := allow(t, at, calls[i].Key, limit, 1); first.Remaining != 8 || got.Remaining != 7 {
			t.Errorf("%s: %d, then %d remaining, want 8, 7", calls[i].Key, first.Remaining, got.Remaining)
		}
	}
	if a.DBSize(t.Context()).Val() == 0 || b.DBSize(t.Context()).Val() == 0 {
		t.Error("a shard holds no key, so it was not tested")
	}
}

// Load tells what a part of a cluster has while another is busy, will not load, or is
// down, and names that one.
func TestLoadOnAPartOfACluster(t *testing.T) {
	nodes, cluster := startCluster(t)
	limiter, err := loader.New(cluster)
	must(t, err)
	beside := func(what, prefix string) {
		t.Helper()
		address := nodes[1].Options().Addr
		found, err := limiter.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), address) || errors.Is(err, loader.ErrUnreached) ||
			prefix != "" && !redis.HasErrorPrefix(err, prefix) {
			t.Errorf("beside a master that %s: %v, want an error that names %s, and %s", what, err, address, prefix)
		}
		if len(found) != 8 {
			t.Errorf("beside a master that %s: %v, want the 4 scripts of 2 others", what, found)
		}
		for _, one := range found {
			if one.Server == address || !one.Loaded {
				t.Errorf("beside a master that %s: %+v", what, one)
			}
		}
	}
	must(t, nodes[1].ConfigSet(t.Context(), "lua-time-limit", "10").Err())
	looping := make(chan error, 1)
	go func() {
		// Neither a deadline of go-redis's nor its retries may end or repeat the loop.
		client := redis.NewClient(&redis.Options{Addr: nodes[1].Options().Addr, ReadTimeout: -1, MaxRetries: -1})
		defer client.Close()
		looping <- client.Eval(context.Background(), "while true do end", nil).Err()
	}()
	until(t, "the script being slow", func() bool {
		return redis.HasErrorPrefix(nodes[1].Ping(t.Context()).Err(), "BUSY")
	})
	beside("is busy", "BUSY")
	must(t, nodes[1].ScriptKill(t.Context()).Err())
	if err := <-looping; err == nil {
		t.Error("the loop ended by itself")
	}

	must(t, nodes[1].Do(t.Context(), "acl", "setuser", "default", "-script").Err())
	beside("refuses", "NOPERM")
	_ = nodes[1].ShutdownNoSave(t.Context()) // it answers by ending
	beside("is down", "")
}
