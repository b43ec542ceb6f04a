package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/loader"
)

// keyHelp is the rule of loader.Limiter.Key.
const keyHelp = `KEY names who is limited. The Redis key is the prefix, KEY in braces, the name, and of
a window the period in nanoseconds, as in rl:{42}, rl:{42}:login and
rl:{42}:login:60000000000. A KEY with a '{' is not put in braces. The output tells the
Redis key.`

const lineHelp = `A line of allow with this word in place of allow is for the same Redis key. Of the
limit only what is in that key matters: --name, --prefix, and for a window --algorithm
and --period; the others may be left out.`

// request is what a command asks for at a key.
type request struct {
	limit  loader.Limit
	prefix string
	cost   int64
	script string // empty: the newest of its kind
}

// flags adds those of the limit and of its key.
func (r *request) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.Func("amount", "`units` a period", whole(&r.limit.Amount))
	flags.Func("period", "the `time` for which the amount is, such as 1s, 1m or 24h", func(text string) (err error) {
		r.limit.Period, err = period(text)
		return err
	})
	flags.Func("burst", "`units` that a rested key may spend at once; then it gains one each\n"+
		"interval, so in any period at most burst + amount units pass; left out,\n"+
		"it is the amount, so at most twice the amount passes", func(text string) error {
		if err := whole(&r.limit.Burst)(text); err != nil {
			return err
		}
		if r.limit.Burst == 0 { // which means in a Limit that it is left out
			return errors.New("a burst is at least 1; leave it out to use the amount")
		}
		return nil
	})
	flags.Func("algorithm", "`name`, one of gcra, token_bucket, leaky_bucket, fixed_window and\nsliding_window (default gcra)",
		func(name string) error {
			if name == "" { // which means in a Limit that it is left out
				return errors.New("it is empty; leave it out to use gcra")
			}
			r.limit.Algorithm = loader.Algorithm(name)
			return nil
		})
	flags.StringVar(&r.limit.Name, "name", "", "`name` of the limit, which keeps it apart from others of the KEY:\na letter, then letters, digits, '_', '-' and '.', at most 100 bytes")
	flags.StringVar(&r.prefix, "prefix", "rl:", "`text` before every key, without braces")
}

// period reads a period. Its error says what was likely meant.
func period(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	digits, hasDays := strings.CutSuffix(text, "d")
	days, notDays := strconv.ParseInt(digits, 10, 16)
	switch {
	case err != nil && text != "" && strings.Trim(text, "0123456789.") == "":
		return 0, fmt.Errorf("it has no unit; for seconds write %ss", text)
	case hasDays && notDays == nil:
		return 0, fmt.Errorf("a day is no unit; %s is %dh", text, 24*days)
	case err != nil:
		return 0, errors.New("not a time such as 500ms, 1m or 24h; the units are ms, s, m and h")
	case d < time.Millisecond:
		return 0, errors.New("a period is at least 1ms")
	}
	return d, nil
}

// scriptFlag adds the flag that chooses the script.
func (r *request) scriptFlag(command *cobra.Command) {
	command.Flags().StringVar(&r.script, "script", "", "`name` of the script to call, as the key's other callers do, such as\ngcra_v1 (default the newest for the algorithm)")
}

// whole makes a flag's function that takes a whole number, in decimal.
func whole(n *int64) func(string) error {
	return func(text string) (err error) {
		if *n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return errors.New("not a whole number below 2^63")
		}
		return nil
	}
}

// oneKey is the Args of a command on a key. An empty one is in a shell a variable that is
// not set.
func oneKey(command *cobra.Command, args []string) error {
	problem := ""
	switch {
	case len(args) == 0:
		problem = "needs a KEY"
	case len(args) > 1:
		problem = fmt.Sprintf("takes one KEY, not %d arguments", len(args))
	case args[0] == "":
		problem = "needs a KEY that is not empty"
	default:
		return nil
	}
	return fmt.Errorf("%s %s; see %s --help", command.Name(), problem, command.CommandPath())
}

// limiter returns a limiter of the prefix and the script.
func (r *request) limiter(client redis.UniversalClient) (*loader.Limiter, error) {
	options := []loader.Option{loader.WithPrefix(r.prefix)}
	if r.script != "" {
		options = append(options, loader.WithScripts(r.script))
	}
	return loader.New(client, options...)
}

// complete checks the flags of a command to which the whole limit matters.
func (r *request) complete(command *cobra.Command) error {
	if flags := command.Flags(); !flags.Changed("amount") || !flags.Changed("period") {
		return fmt.Errorf("%s needs --amount and --period; see %s --help", command.Name(), command.CommandPath())
	}
	return r.check()
}

// check refuses what is wrong before a server is asked.
func (r *request) check() error {
	if err := r.limit.Validate(); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{}) // nothing is sent by it
	defer client.Close()
	if _, err := r.limiter(client); err != nil {
		return err
	}
	kind := "gcra_"
	if r.isWindow() {
		kind = "window_"
	}
	if r.script != "" && !strings.HasPrefix(r.script, kind) {
		return fmt.Errorf("--script %s does not keep %v", r.script, r.limit)
	}
	return nil
}

func (r *request) isWindow() bool {
	return r.limit.Algorithm == loader.FixedWindow || r.limit.Algorithm == loader.SlidingWindow
}

// onlyKey checks the flags of a command to which the limit matters only as far as the key
// tells it. The others are taken, so that a line of allow serves.
func (r *request) onlyKey(command *cobra.Command) error {
	if !command.Flags().Changed("period") {
		if r.isWindow() {
			return fmt.Errorf("%s needs the --period of a window, which is a part of the key; see %s --help",
				command.Name(), command.CommandPath())
		}
		r.limit.Period = time.Second
	}
	r.limit.Amount, r.limit.Burst = 1, 0
	return r.check()
}

// ofKey names the Redis key in an error of what it holds, where the loader leaves it out.
func ofKey(key string, err error) error {
	if !errors.Is(err, loader.ErrBadState) {
		return err
	}
	return &exit{exitServer, fmt.Errorf("key %q: %s", key, plain(err))}
}
