package loader_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tatami-rate/tatami/loader"
	"github.com/tatami-rate/tatami/precision/servers"
)

// unreached holds Load and Verify against saying that nothing was reached, and naming each
// of the servers.
func unreached(t *testing.T, what string, client redis.UniversalClient, named ...string) {
	t.Helper()
	limiter, err := loader.New(client)
	must(t, err)
	load, loadErr := limiter.Load(t.Context())
	verify, verifyErr := limiter.Verify(t.Context())
	for name, err := range map[string]error{"Load": loadErr, "Verify": verifyErr} {
		if !errors.Is(err, loader.ErrUnreached) || !strings.HasPrefix(err.Error(), "tatami: no server was reached") {
			t.Errorf("%s, %s: %v, want an ErrUnreached", what, name, err)
			continue
		}
		for _, address := range named {
			if !strings.Contains(err.Error(), address) {
				t.Errorf("%s, %s: %v does not name %s", what, name, err, address)
			}
		}
	}
	if load != nil || verify != nil {
		t.Errorf("%s: %v and %v, want no answers", what, load, verify)
	}
	_, err = limiter.Allow(t.Context(), "k", loader.Limit{Amount: 1, Period: time.Second})
	if !isSpent(err, loader.ErrNotSpent) {
		t.Errorf("%s: Allow %v, want an ErrNotSpent", what, err)
	}
}

func TestClusterNodeWithoutSlots(t *testing.T) {
	node := startNode(t)
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{node.Options().Addr}})
	defer cluster.Close()
	unreached(t, "a node without slots", cluster)
}

func TestClusterWithoutPermission(t *testing.T) {
	nodes, _ := startCluster(t)
	for _, node := range nodes {
		must(t, node.ACLSetUser(t.Context(), "outside", "on", "nopass", "~*", "+@all", "-cluster").Err())
	}
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{nodes[0].Options().Addr}, Username: "outside", Password: "any"})
	defer cluster.Close()
	unreached(t, "a user without CLUSTER", cluster, "NOPERM")
}

// A server that refuses INFO has the scripts as others do. Only how many bits it has is not
// known.
func TestWithoutInfo(t *testing.T) {
	admin, _ := start(t)
	must(t, admin.ACLSetUser(t.Context(), "blind", "on", "nopass", "~*", "+@all", "-info").Err())
	options := *admin.Options()
	options.Username, options.Password = "blind", "any"
	client := redis.NewClient(&options)
	defer client.Close()
	limiter := newLimiter(t, client)
	found, err := limiter.Verify(t.Context())
	if err != nil || len(found) != 4 {
		t.Errorf("%v, %v, want the 4 scripts", found, err)
	}
	for _, one := range found {
		if !one.Loaded || one.Bits != 0 {
			t.Errorf("%+v, want it loaded, and bits that are not known", one)
		}
	}
}

func TestDeadRing(t *testing.T) {
	a, b := servers.ForTest(t), servers.ForTest(t)
	addrs := map[string]string{}
	for name, server := range map[string]*servers.Server{"a": a, "b": b} {
		client := server.Client()
		addrs[name] = client.Options().Addr
		client.Close()
	}
	open := func() *redis.Ring {
		ring := redis.NewRing(&redis.RingOptions{Addrs: addrs, HeartbeatFrequency: 10 * time.Millisecond, DialerRetries: 1})
		t.Cleanup(func() { ring.Close() })
		return ring
	}
	ring := open()
	limiter := newLimiter(t, ring)

	b.Stop()
	for _, wait := range []bool{false, true} { // before the ring notices, and after
		if wait {
			until(t, "the ring noticing a dead shard", func() bool { return ring.Len() == 1 })
		}
		for name, ask := range map[string]func() ([]loader.Presence, error){
			"Load":   func() ([]loader.Presence, error) { return limiter.Load(t.Context()) },
			"Verify": func() ([]loader.Presence, error) { return limiter.Verify(t.Context()) },
		} {
			found, err := ask()
			if len(found) != 4 || err == nil || !strings.Contains(err.Error(), addrs["b"]) || errors.Is(err, loader.ErrUnreached) {
				t.Errorf("%s, waited %v: %v, %v, want 4 answers and an error that names %s", name, wait, found, err, addrs["b"])
			}
			for _, one := range found {
				if one.Server != addrs["a"] || !one.Loaded {
					t.Errorf("%s, waited %v: %+v", name, wait, one)
				}
			}
		}
	}

	a.Stop()
	unreached(t, "a ring that dies", open(), addrs["a"], addrs["b"])
	until(t, "the ring noticing that all are dead", func() bool { return ring.Len() == 0 })
	unreached(t, "a dead ring", ring, addrs["a"], addrs["b"])
}
