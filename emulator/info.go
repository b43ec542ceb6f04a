package emulator

import (
	"fmt"
	"os"
	"strings"
)

// This file is what the server tells of itself.

// redisVersion is the version whose rules are emulated.
const redisVersion = "7.0.15"

// info is INFO: the sections named, or all.
func (r *Redis) info(args []string) reply {
	wanted := map[string]bool{}
	for _, name := range args {
		wanted[strings.ToLower(name)] = true
	}
	all := len(args) == 0 || wanted["default"] || wanted["all"] || wanted["everything"]
	keyspace := ""
	for db, keys := range r.dbs {
		expires := 0
		for _, v := range keys {
			if v.expires {
				expires++
			}
		}
		if len(keys) > 0 {
			keyspace += fmt.Sprintf("db%d:keys=%d,expires=%d,avg_ttl=0\r\n", db, len(keys), expires)
		}
	}
	var sections []string
	for _, section := range []struct{ name, fields string }{
		{"Server", "redis_version:" + redisVersion + "\r\nemulator:tatami\r\nredis_mode:standalone\r\narch_bits:64\r\n" +
			fmt.Sprintf("process_id:%d\r\n", os.Getpid())},
		{"Clients", fmt.Sprintf("connected_clients:%d\r\n", len(r.sessions))},
		{"Persistence", "loading:0\r\n"}, // clients wait until it is 0
		{"Replication", "role:master\r\nconnected_slaves:0\r\n"},
		{"Cluster", "cluster_enabled:0\r\n"},
		{"Keyspace", keyspace},
	} {
		if all || wanted[strings.ToLower(section.name)] {
			sections = append(sections, "# "+section.name+"\r\n"+section.fields)
		}
	}
	return verbatim(strings.Join(sections, "\r\n"))
}

// command is COMMAND: of each its name, arity, flags and keys. What Redis 7 adds, ACL
// categories, tips, key specifications and subcommands, is empty.
func (r *Redis) command([]string) reply {
	var all []any
	for _, name := range names() {
		c := commands[name]
		words := []any{}
		for _, flag := range []struct {
			flag flags
			word string
		}{{reads, "readonly"}, {writes, "write"}, {noScript, "noscript"}} {
			if c.flags&flag.flag != 0 {
				words = append(words, status(flag.word))
			}
		}
		all = append(all, []any{strings.ToLower(name), int64(c.arity), words,
			int64(c.keys[0]), int64(c.keys[1]), int64(c.keys[2]), []any{}, []any{}, []any{}, []any{}})
	}
	return all
}
