package main

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/loader"
)

func (a *app) allow() *cobra.Command {
	r := request{cost: 1}
	command := &cobra.Command{
		Use:   "allow KEY",
		Short: "Ask for units of a limit, and spend them",
		Long: `Ask for units of a limit at a key. They are spent when the call is admitted.

Exits with 0 when admitted and with 1 when refused. A call is unfittable when its
cost is above the burst, or above a window's amount: it can never be admitted.
In JSON, status is 1 when admitted, 0 when refused, -1 when unfittable; then
retry_after_ns is -1.

` + keyHelp,
		Example: `  tatami allow 42 --amount 300 --period 1m --burst 60 --name login
  tatami allow backup --amount 1 --period 1h && ./backup`,
		Args: oneKey,
		RunE: a.onRequest(&r, func(result loader.Result) bool { return result.Allowed }),
	}
	r.flags(command)
	r.scriptFlag(command)
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

Before a key's callers move from gcra_v1 to gcra_v2, look at it by both: each
answers from the state that is there.

` + keyHelp,
		Example: `  tatami peek 42 --amount 300 --period 1m --burst 60 --name login
  tatami peek 42 --amount 300 --period 1m --burst 60 --name login --script gcra_v1`,
		Args: oneKey,
		RunE: a.onRequest(&r, func(result loader.Result) bool { return result.Remaining > 0 }),
	}
	r.flags(command)
	r.scriptFlag(command)
	return command
}

// onRequest makes a command's RunE that checks the request, connects, asks for the units
// and prints the result. It exits with 1 unless ok accepts the result.
func (a *app) onRequest(r *request, ok func(loader.Result) bool) func(*cobra.Command, []string) error {
	onServer := a.onServer(func(ctx context.Context, client redis.UniversalClient, args []string) error {
		limiter, err := r.limiter(client)
		if err != nil {
			return err
		}
		result, err := limiter.AllowN(ctx, args[0], r.limit, r.cost)
		if err != nil {
			return ofKey(limiter.Key(args[0], r.limit), err)
		}
		if err := a.printResult(result, r.cost); err != nil {
			return err
		}
		if !ok(result) {
			return &exit{code: exitRefused}
		}
		return nil
	})
	return func(command *cobra.Command, args []string) error {
		if err := r.complete(command); err != nil {
			return err
		}
		return onServer(command, args)
	}
}

// answer is a result in JSON.
type answer struct {
	Status       int    `json:"status"`
	Remaining    int64  `json:"remaining"`
	RetryAfterNS int64  `json:"retry_after_ns"`
	ResetAfterNS int64  `json:"reset_after_ns"`
	Key          string `json:"key"`
}

func answerOf(result loader.Result) answer {
	status := 0
	switch {
	case result.Allowed:
		status = 1
	case result.Unfittable:
		status = -1
	}
	return answer{status, result.Remaining, result.RetryAfter.Nanoseconds(), result.ResetAfter.Nanoseconds(), result.Key}
}

func (a *app) printResult(result loader.Result, cost int64) error {
	text := fmt.Sprintf("refused, retry after %v, ", result.RetryAfter)
	switch {
	case result.Allowed:
		text = "admitted, "
	case result.Unfittable:
		bound := "burst"
		if result.Limit.Burst == 0 { // it is left out, or a window has none
			bound = "amount"
		}
		text = fmt.Sprintf("unfittable, cost %d is above the %s %d, ", cost, bound, result.Limit.Quota())
	}
	if cost == 0 {
		text = ""
	}
	return a.print(answerOf(result), text+describeState(result))
}

func describeState(result loader.Result) string {
	return fmt.Sprintf("remaining %d, reset after %v, %v, key %q\n", result.Remaining, result.ResetAfter, result.Limit, result.Key)
}

func (a *app) reset() *cobra.Command {
	return a.clear("reset", &cobra.Command{
		Use:   "reset KEY",
		Short: "Forget what was spent of a limit",
		Long: `Forget what was spent of a limit at a key, as after a limit was set wrongly, or after
the server's clock was. Exits with 0 also when there is no such key, and says so, and
with 3 when the key holds something else than the limit's state, which is then left
alone.

` + lineHelp + `

` + keyHelp,
		Example: `  tatami reset 42 --name login
  tatami reset 42 --algorithm sliding_window --period 1m`,
	}, (*loader.Limiter).Reset)
}

func (a *app) delete() *cobra.Command {
	return a.clear("deleted", &cobra.Command{
		Use:   "delete KEY",
		Short: "Delete a limit's key, whatever it holds",
		Long: `Delete the Redis key of a limit, whatever it holds. Exits with 0 also when there is
none, and says so. To forget only what was spent of a limit, use reset.

` + lineHelp + `

` + keyHelp,
		Example: `  tatami delete 42 --name login`,
	}, (*loader.Limiter).Delete)
}

// clear completes a command that does this to a limit's key, and then prints done and the
// key, or that there was none.
func (a *app) clear(done string, command *cobra.Command,
	do func(l *loader.Limiter, ctx context.Context, key string, limit loader.Limit) (existed bool, err error)) *cobra.Command {
	var r request
	r.flags(command)
	command.Args = oneKey
	onServer := a.onServer(func(ctx context.Context, client redis.UniversalClient, args []string) error {
		limiter, err := r.limiter(client)
		if err != nil {
			return err
		}
		key := limiter.Key(args[0], r.limit)
		existed, err := do(limiter, ctx, args[0], r.limit)
		if err != nil {
			return ofKey(key, err)
		}
		text := fmt.Sprintf("%s, key %q\n", done, key)
		if !existed {
			text = fmt.Sprintf("nothing to %s, no key %q\n", command.Name(), key)
			if !r.isWindow() {
				text += "a window has another key: give --algorithm and --period\n"
			}
		}
		return a.print(struct {
			Key     string `json:"key"`
			Existed bool   `json:"existed"`
		}{key, existed}, text)
	})
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := r.onlyKey(command); err != nil {
			return err
		}
		return onServer(command, args)
	}
	return command
}
