package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/loader"
)

// request is what allow and peek ask for at a key.
type request struct {
	limit loader.Limit
	cost  int64
	v1    bool
}

// requestFlags adds the flags that allow and peek share.
func requestFlags(command *cobra.Command, r *request) {
	flags := command.Flags()
	flags.Func("amount", "`units` a period", whole(&r.limit.Amount))
	flags.Func("period", "the `time` for which the amount is, such as 1s, 1m or 24h", func(text string) (err error) {
		if r.limit.Period, err = time.ParseDuration(text); err != nil {
			return errors.New("not a period such as 500ms, 1m or 24h, which is a day")
		}
		return nil
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
	flags.BoolVar(&r.v1, "v1", false, "call gcra_v1 or window_v1, as the other callers of the key do")
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

// oneKey is the Args of a command on a key. Redis takes an empty key, but in a shell
// it is a variable that is not set.
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

func (a *app) allow() *cobra.Command {
	r := request{cost: 1}
	command := &cobra.Command{
		Use:   "allow KEY",
		Short: "Ask for units of a limit, and spend them",
		Long: `Ask for units of a limit at a key. They are spent when the call is admitted. The
scripts are loaded first, which does no harm where they are.

Exits with 0 when admitted and with 1 when refused. A call is unfittable when its
cost is above the burst, or above a window's amount: it can never be admitted.
In JSON, status is 1 when admitted, 0 when refused, -1 when unfittable; then
retry_after_ns is -1.

It calls gcra_v2 or window_v2. All callers of a key should call the same version;
both keep the same state.`,
		Example: `  tatami allow user:42 --amount 300 --period 1m --burst 60
  tatami allow backup --amount 1 --period 1h && ./backup`,
		Args: oneKey,
		RunE: a.onRequest(&r, func(result loader.Result) bool { return result.Allowed }),
	}
	requestFlags(command, &r)
	command.Flags().Func("cost", "`units` asked for; 0 only looks (default 1)", whole(&r.cost))
	return command
}

func (a *app) peek() *cobra.Command {
	var r request // its cost stays 0, so it only looks
	command := &cobra.Command{
		Use:   "peek KEY",
		Short: "Show what remains of a limit, and spend nothing",
		Long: `Show what remains of a limit at a key. Nothing is written to the key. Exits with 0
when a unit remains and with 1 when none does.

Before a key's callers move from version 1 to 2, look at it with --v1 and without:
each answers from the state that is there.`,
		Example: `  tatami peek user:42 --amount 300 --period 1m --burst 60
  tatami peek user:42 --amount 300 --period 1m --burst 60 --v1`,
		Args: oneKey,
		RunE: a.onRequest(&r, func(result loader.Result) bool { return result.Remaining > 0 }),
	}
	requestFlags(command, &r)
	return command
}

// onRequest makes a command's RunE that checks the limit, connects, loads the scripts,
// asks for the units at the key and prints the result. It exits with 1 unless ok
// accepts the result.
func (a *app) onRequest(r *request, ok func(loader.Result) bool) func(*cobra.Command, []string) error {
	onServer := a.onServer(func(ctx context.Context, client redis.UniversalClient, args []string) error {
		var options []loader.Option
		if r.v1 {
			options = append(options, loader.WithScripts("gcra_v1", "window_v1"))
		}
		limiter, err := loader.New(client, options...)
		if err != nil {
			return err
		}
		result, err := limiter.AllowN(ctx, args[0], r.limit, r.cost)
		if errors.Is(err, loader.ErrBadState) {
			return fmt.Errorf("key %q: %w", args[0], err)
		}
		if err != nil {
			return err
		}
		if err := a.printResult(result, r); err != nil {
			return err
		}
		if !ok(result) {
			return &exit{code: exitRefused}
		}
		return nil
	})
	return func(command *cobra.Command, args []string) error {
		if flags := command.Flags(); !flags.Changed("amount") || !flags.Changed("period") {
			return fmt.Errorf("%s needs --amount and --period; see %s --help", command.Name(), command.CommandPath())
		}
		if err := r.limit.Validate(); err != nil {
			return err
		}
		return onServer(command, args)
	}
}

func (a *app) printResult(result loader.Result, r *request) error {
	status, text := 0, fmt.Sprintf("refused, retry after %v, ", result.RetryAfter)
	switch {
	case result.Allowed:
		status, text = 1, "admitted, "
	case result.Unfittable:
		status, text = -1, "unfittable, "
	}
	if r.cost == 0 {
		text = ""
	}
	return a.print(struct {
		Status       int   `json:"status"`
		Remaining    int64 `json:"remaining"`
		RetryAfterNS int64 `json:"retry_after_ns"`
		ResetAfterNS int64 `json:"reset_after_ns"`
	}{status, result.Remaining, result.RetryAfter.Nanoseconds(), result.ResetAfter.Nanoseconds()},
		fmt.Sprintf("%sremaining %d, reset after %v, %v\n", text, result.Remaining, result.ResetAfter, r.limit))
}
