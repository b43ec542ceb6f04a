package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/loader"
)

// Exit codes.
const (
	exitOK      = 0
	exitRefused = 1
	exitUsage   = 2
	exitServer  = 3
)

const exitHelp = `Exit codes:
  0  done; a call was admitted; every script is there
  1  a call was refused, or would wait too long; a script or a key is missing; load or verify reached no server
  2  wrong usage, or a bad limit
  3  the server cannot be reached or answers with an error
`

// exit is an error with the exit code that it leads to. Its err is nil when the
// answer has been printed and is no error, such as a refusal.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return e.err.Error() }

// app is what the flags of every command set.
type app struct {
	url  string
	json bool
	out  io.Writer
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	logging.Disable() // go-redis logs the errors that it also returns
	a := &app{out: stdout}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	// An error that no command has given a code is one of the command line's own.
	found := &exit{code: exitUsage, err: err}
	errors.As(err, &found)
	if found.err == nil {
		return found.code
	}
	if a.json || slices.Contains(args, "--json") { // a bad flag before it ends the parsing
		text, _ := json.Marshal(map[string]any{"error": plain(found), "exit": found.code}) // a string and an int
		fmt.Fprintf(stderr, "%s\n", text)
	} else {
		fmt.Fprintf(stderr, "tatami: %s\n", plain(found))
	}
	return found.code
}

// plain is an error's text without the loader's prefix, and without what a server repeats
// of a command that it does not know: of a HELLO or AUTH, the password.
func plain(err error) string {
	text, _, _ := strings.Cut(err.Error(), ", with args beginning with")
	return strings.TrimPrefix(text, "tatami: ")
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "tatami",
		Short: "Exact rate limits inside a Redis: load the scripts, check them, call them",
		Long: "tatami loads versioned rate-limiting scripts into a Redis or a Redis cluster,\n" +
			"checks that they are there, calls them, and shows or clears what a key holds.\n\n" +
			"A server has 5 s to accept a connection and 5 s to answer a command; the URL may\n" +
			"set others: redis://host:port?dial_timeout=1s&read_timeout=1s\n\n" + exitHelp,
		Example: `  tatami load
  tatami allow 42 --amount 300 --period 1m --burst 60 --name login
  tatami wait 42 --amount 300 --period 1m --timeout 30s && ./work`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, command.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVar(&a.url, "redis", "",
		"`URL` of the server or of any node of a cluster, as redis://host:port,\n"+
			"rediss:// for TLS (default $REDIS_URL, else redis://localhost:6379)")
	root.PersistentFlags().BoolVar(&a.json, "json", false, "print JSON, errors on standard error too")
	root.AddCommand(a.list(), a.load(), a.verify(), a.allow(), a.peek(),
		a.wait(), a.reserve(), a.settle(), a.inspect(), a.reset(), a.delete(), a.serve())
	return root
}

// version is the module's, which a build outside of version control lacks.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// task is what a command does on a server, or on the cluster that it is a node of.
type task func(ctx context.Context, client redis.UniversalClient, args []string) error

// onServer makes a command's RunE of a task on one key.
func (a *app) onServer(do task) func(*cobra.Command, []string) error { return a.connected(false, do) }

// onMasters makes a command's RunE of a task on every master of a cluster.
func (a *app) onMasters(do task) func(*cobra.Command, []string) error { return a.connected(true, do) }

func (a *app) connected(all bool, do task) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		ctx := command.Context()
		source, address := "--redis", a.url
		if !command.Flags().Changed("redis") {
			source, address = "REDIS_URL", cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379")
		}
		options, err := parse(address)
		if err != nil {
			return &exit{exitUsage, fmt.Errorf("%s: %w; the form is redis://host:port, or rediss://host:port for TLS", source, err)}
		}
		client, err := connect(ctx, options, all)
		if err == nil {
			defer client.Close()
			err = do(ctx, client, args)
		}
		var known *exit
		switch {
		case err == nil || errors.As(err, &known):
			return err
		case errors.Is(err, loader.ErrLimit), errors.Is(err, loader.ErrCost), errors.Is(err, loader.ErrAsks):
			return &exit{exitUsage, err}
		case all && errors.Is(err, loader.ErrUnreached):
			return &exit{exitRefused, err}
		}
		_, moved := redis.IsMovedError(err)
		if _, single := client.(*redis.Client); moved && single {
			err = fmt.Errorf("%s; this is one node of a cluster, and it refuses INFO, which would tell so", plain(err))
		}
		return &exit{exitServer, err}
	}
}

// parse reads a URL. Its error has nothing of what may be a password: an unescaped '/', '?'
// or '#' in one ends the host there, and moves the rest to the database, the options or
// nowhere.
func parse(address string) (*redis.Options, error) {
	options, err := redis.ParseURL(address)
	var malformed *url.Error
	switch {
	case !strings.Contains(address, "://"), errors.As(err, &malformed): // ParseURL takes redis:6379 for localhost
		return nil, errors.New("not a URL")
	case strings.Contains(address, "@") && (err != nil || options.Username == "" && options.Password == ""):
		return nil, errors.New("a bad URL; a password has %2F for '/', %3F for '?', %23 for '#' and %40 for '@'")
	case err != nil:
		return nil, err
	}
	// A person waits: an error at once is better than a connection after a minute.
	options.MaxRetries = cmp.Or(options.MaxRetries, -1)
	options.DialerRetries = 1
	return options, nil
}

// connect asks the server whether it is a node of a cluster, and returns a client of the
// whole cluster then. When the server refuses to tell, the client is of it alone, which is
// an error for who needs all masters. For one key it is enough: a node answers MOVED to a
// key of another.
func connect(ctx context.Context, options *redis.Options, all bool) (redis.UniversalClient, error) {
	client := redis.NewClient(options)
	info, err := client.Info(ctx, "cluster").Result()
	var refused redis.Error
	switch isRefused := errors.As(err, &refused); {
	case err != nil && !isRefused:
		client.Close()
		return nil, fmt.Errorf("%w: %w", loader.ErrUnreached, atServer(options, err))
	case isRefused && all:
		client.Close()
		return nil, fmt.Errorf("%w: whether it is a cluster is not known, INFO is refused: %w",
			loader.ErrUnreached, atServer(options, err))
	case !strings.Contains(info, "cluster_enabled:1"):
		return client, nil
	}
	client.Close()
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:         []string{options.Addr},
		Username:      options.Username,
		Password:      options.Password,
		TLSConfig:     options.TLSConfig,
		DialTimeout:   options.DialTimeout,
		DialerRetries: options.DialerRetries,
		ReadTimeout:   options.ReadTimeout,
	}), nil
}

// atServer names the server in an error that does not.
func atServer(options *redis.Options, err error) error {
	if strings.Contains(err.Error(), options.Addr) {
		return err
	}
	return fmt.Errorf("%s: %w", options.Addr, err)
}

// print writes v as JSON when asked to, and text otherwise.
func (a *app) print(v any, text string) error {
	if a.json {
		encoded, err := json.Marshal(v)
		if err != nil {
			return err
		}
		text = string(encoded) + "\n"
	}
	_, err := io.WriteString(a.out, text)
	return err
}
