package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/loader"
)

// script is a line of list.
type script struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA1    string `json:"sha1"`
	Status  string `json:"status"`
	BoundNS int64  `json:"bound_ns"`
}

func describe(s loader.Script) script {
	status := "candidate"
	if s.Released {
		status = "released"
	}
	_, version, _ := strings.Cut(s.Name, "_v")
	return script{s.Name, version, s.SHA1, status, s.Bound.Nanoseconds()}
}

// bound is the promise in words.
func (s script) bound() string {
	if s.BoundNS == 0 {
		return "exact"
	}
	return fmt.Sprintf("never early, less than %d ns late against its own interval (period/amount, up to a multiple of %d ns)",
		s.BoundNS, s.BoundNS)
}

func (a *app) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list [NAME...]",
		Short: "List the scripts: name, version, SHA1, status and bound",
		Long: `List the scripts that this program carries, or those named. Needs no server.

The version is the number in the name: allow, peek and wait call the newest of each kind, or
the one that --script names. A candidate may still change, a released script never does.
The bound says how far a script's decisions lie from exact integer arithmetic, over any
number of calls; bound_ns is 0 for an exact one.`,
		Example: `  tatami list
  tatami list gcra_v2 --json`,
		RunE: func(_ *cobra.Command, names []string) error {
			all, err := loader.Scripts()
			if err != nil {
				return &exit{exitServer, err}
			}
			byName := map[string]script{}
			var order []string
			for _, s := range all {
				byName[s.Name] = describe(s)
				order = append(order, s.Name)
			}
			if len(names) == 0 {
				names = order
			}
			listed := []script{}
			var text strings.Builder
			table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
			for _, name := range names {
				s, ok := byName[name]
				if !ok {
					return &exit{exitUsage, fmt.Errorf("no script is named %q; there are %s", name, strings.Join(order, ", "))}
				}
				listed = append(listed, s)
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", s.Name, s.Version, s.SHA1, s.Status, s.bound())
			}
			table.Flush()
			return a.print(listed, text.String())
		},
	}
}

// noArguments is the Args of a command that takes none.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments", command.Name())
	}
	return nil
}

func (a *app) load() *cobra.Command {
	return &cobra.Command{
		Use:   "load",
		Short: "Load the scripts on every master, and say which have them",
		Long: `Load the scripts into the server, or into every master of its cluster, and print a
line for each server and script. The servers' SHA1s are held against the pinned ones.
Loading again does no harm. A call loads what a server lacks, so this is needed only
where callers send EVALSHA alone. A server of 32 bits is named so; the scripts decide
there as elsewhere. In JSON bits is 64, 32, or 0 where the server does not tell.

` + mastersHelp,
		Example: `  tatami load --redis redis://localhost:6379`,
		Args:    noArguments,
		RunE:    a.survey((*loader.Limiter).Load),
	}
}

func (a *app) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that every master has the scripts",
		Long: `Ask the server, or every master of its cluster, for each script by its SHA1, and
load nothing. Exits with 1 when one is missing on any of them.

` + mastersHelp,
		Example: `  tatami verify || tatami load`,
		Args:    noArguments,
		RunE:    a.survey((*loader.Limiter).Verify),
	}
}

const mastersHelp = `Exits with 1 when no server is reached, among them a cluster's node without slots and
a server that refuses INFO, by which a cluster is known. Exits with 3 when a master
does not answer or refuses, after the lines of those that do.`

// survey makes a command's RunE that asks all masters and prints what they have.
func (a *app) survey(ask func(*loader.Limiter, context.Context) ([]loader.Presence, error)) func(*cobra.Command, []string) error {
	type line struct {
		Server string `json:"server"`
		Name   string `json:"name"`
		SHA1   string `json:"sha1"`
		Loaded bool   `json:"loaded"`
		Bits   int    `json:"bits"`
	}
	return a.onMasters(func(ctx context.Context, client redis.UniversalClient, _ []string) error {
		limiter, err := loader.New(client)
		if err != nil {
			return err
		}
		found, failed := ask(limiter, ctx)
		if len(found) == 0 {
			return failed
		}
		missing := false
		var lines []line
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, one := range found {
			word := "loaded"
			if !one.Loaded {
				word, missing = "missing", true
			}
			if one.Bits == 32 {
				word += ", 32-bit"
			}
			lines = append(lines, line{one.Server, one.Script, one.SHA1, one.Loaded, one.Bits})
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", one.Server, one.Script, one.SHA1, word)
		}
		table.Flush()
		if err := a.print(lines, text.String()); err != nil {
			return err
		}
		if missing && failed == nil {
			return &exit{code: exitRefused}
		}
		return failed
	})
}
