package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/loader"
)

func (a *app) wait() *cobra.Command {
	r := request{cost: 1}
	timeout := time.Duration(0)
	command := &cobra.Command{
		Use:   "wait KEY",
		Short: "Wait until units of a limit are there, and spend them",
		Long: `Wait until a limit at a key admits the units, and spend them. After a refusal it sleeps
as long as the script says and asks again. A leaky_bucket is a queue that lets out one
unit each interval: what is admitted is held until its turn.

Exits with 0 when admitted. Exits with 1 at once, and spends nothing, when the wait would
be longer than --timeout, or when the cost can never be admitted.

` + keyHelp,
		Example: `  tatami wait 42 --amount 300 --period 1m --burst 60 --name login --timeout 30s
  tatami wait jobs --amount 5 --period 1s --algorithm leaky_bucket && ./job`,
		Args: oneKey,
	}
	r.flags(command)
	r.scriptFlag(command)
	command.Flags().Func("cost", "`units` asked for (default 1)", whole(&r.cost))
	command.Flags().DurationVar(&timeout, "timeout", 0, "the longest `time` to wait (default for ever)")
	onServer := a.onServer(func(ctx context.Context, client redis.UniversalClient, args []string) error {
		limiter, err := r.limiter(client)
		if err != nil {
			return err
		}
		if timeout > 0 {
			limited, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			ctx = limited
		}
		key, began := limiter.Key(args[0], r.limit), time.Now()
		err = limiter.Wait(ctx, args[0], r.limit, r.cost)
		switch {
		case errors.Is(err, loader.ErrWait):
			return &exit{exitRefused, fmt.Errorf("refused: the wait is longer than %v, key %q", timeout, key)}
		case errors.Is(err, loader.ErrCost) && r.cost > r.limit.Quota():
			return &exit{exitRefused, err}
		case err != nil:
			return ofKey(key, err)
		}
		waited := time.Since(began)
		return a.print(struct {
			Status   int    `json:"status"`
			WaitedNS int64  `json:"waited_ns"`
			Key      string `json:"key"`
		}{1, waited.Nanoseconds(), key}, fmt.Sprintf("admitted after %v, %v, key %q\n", waited, r.limit, key))
	})
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := r.complete(command); err != nil {
			return err
		}
		return onServer(command, args)
	}
	return command
}

// reservation is the output of reserve in JSON, and the input of settle.
type reservation struct {
	Status       int        `json:"status"`
	RetryAfterNS int64      `json:"retry_after_ns"`
	InTurn       bool       `json:"in_turn"`
	Binding      int        `json:"binding"`
	Prefix       string     `json:"prefix"`
	Asks         []askedFor `json:"asks"`
}

// askedFor is one ask with its answer and what settles it.
type askedFor struct {
	answer
	Of        string `json:"of"` // KEY as it was given
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Amount    int64  `json:"amount"`
	PeriodNS  int64  `json:"period_ns"`
	Burst     int64  `json:"burst"` // 0: left out
	Cost      int64  `json:"cost"`
	Receipt   string `json:"receipt"`
}

func (a *app) reserve() *cobra.Command {
	first := request{cost: 1}
	var others []string
	command := &cobra.Command{
		Use:   "reserve KEY",
		Short: "Ask for units of one or several limits at once, to be settled later",
		Long: `Ask for units of a limit at a key, and by --and of others: all are charged or none is.
settle tells later what was really used, from the output of reserve --json.

Exits with 0 when all are admitted and with 1 when one refuses. In JSON, status is 1, 0,
or -1 when an ask can never be admitted; binding is the index, from 0, of the limit that
refuses or is the tightest. When in_turn is true the keys have no common slot or server;
then retry_after_ns may be too short.

` + keyHelp,
		Example: `  tatami reserve 42 --amount 60 --period 1m --name calls \
    --and '42 --amount 90000 --period 1m --name tokens --cost 1200' --json > r.json
  tatami settle 1 800 < r.json`,
		Args: oneKey,
	}
	first.flags(command)
	command.Flags().Func("cost", "`units` asked for; 0 only looks (default 1)", whole(&first.cost))
	command.Flags().StringArrayVar(&others, "and", nil, "`'KEY FLAGS'` of one more limit, as they would stand here; may be repeated")
	var asks []loader.Ask
	onServer := a.onServer(func(ctx context.Context, client redis.UniversalClient, _ []string) error {
		limiter, err := first.limiter(client)
		if err != nil {
			return err
		}
		r, err := limiter.Reserve(ctx, asks...)
		if err != nil {
			return err
		}
		return a.printReservation(r, first.prefix, asks)
	})
	command.RunE = func(command *cobra.Command, args []string) error {
		if err := first.complete(command); err != nil {
			return err
		}
		asks = []loader.Ask{{Key: args[0], Limit: first.limit, Cost: first.cost}}
		for _, text := range others {
			ask, err := parseAsk(text)
			if err != nil {
				return fmt.Errorf("--and %q: %w", text, err)
			}
			asks = append(asks, ask)
		}
		return onServer(command, args)
	}
	return command
}

// parseAsk reads a KEY and the flags of its limit.
func parseAsk(text string) (loader.Ask, error) {
	r := request{cost: 1}
	line := &cobra.Command{Use: "reserve"}
	r.flags(line)
	line.Flags().Func("cost", "", whole(&r.cost))
	line.Flags().SetOutput(io.Discard)
	if err := line.ParseFlags(strings.Fields(text)); err != nil {
		return loader.Ask{}, err
	}
	if line.Flags().Changed("prefix") {
		return loader.Ask{}, errors.New("--prefix is one for all limits")
	}
	args := line.Flags().Args()
	if err := oneKey(line, args); err != nil {
		return loader.Ask{}, err
	}
	return loader.Ask{Key: args[0], Limit: r.limit, Cost: r.cost}, r.complete(line)
}

func (a *app) printReservation(r *loader.Reservation, prefix string, asks []loader.Ask) error {
	found := reservation{RetryAfterNS: r.RetryAfter.Nanoseconds(), InTurn: r.InTurn, Binding: r.Binding, Prefix: prefix}
	text := fmt.Sprintf("refused, retry after %v, by ask %d\n", r.RetryAfter, r.Binding+1)
	switch {
	case r.OK:
		found.Status, text = 1, "reserved\n"
	case r.RetryAfter < 0:
		found.Status, text = -1, fmt.Sprintf("unfittable, by ask %d\n", r.Binding+1)
	}
	for i, ask := range asks {
		found.Asks = append(found.Asks, askedFor{
			answerOf(r.Results[i]), ask.Key, ask.Limit.Name, string(ask.Limit.Algorithm), ask.Limit.Amount,
			ask.Limit.Period.Nanoseconds(), ask.Limit.Burst, ask.Cost, r.Receipts[i],
		})
		text += fmt.Sprintf("ask %d: cost %d, %s", i+1, ask.Cost, describeState(r.Results[i]))
	}
	if err := a.print(found, text); err != nil || r.OK {
		return err
	}
	return &exit{code: exitRefused}
}

func (a *app) settle() *cobra.Command {
	from := ""
	command := &cobra.Command{
		Use:   "settle USED...",
		Short: "Tell what was really used of a reservation",
		Long: `Tell what was really used of each ask of a reservation, in their order. It reads the
output of reserve --json from standard input or a file. What was charged beyond the use
is given back, as far as it has not drained yet; a use beyond what was charged is charged
now. 0 for each cancels.

Settle a reservation once: twice gives back twice. After exit code 3 it may have run,
unless the error says that the server could not be reached or refused it.`,
		Example: `  tatami settle 1 800 < r.json
  tatami settle 0 0 --from r.json`,
		Args: cobra.MinimumNArgs(1),
	}
	command.Flags().StringVar(&from, "from", "-", "`file` with the output of reserve --json; - is standard input")
	used := []int64{}
	var settled reservation
	onServer := a.onServer(func(ctx context.Context, client redis.UniversalClient, _ []string) error {
		limiter, err := loader.New(client, loader.WithPrefix(settled.Prefix))
		if err != nil {
			return &exit{exitUsage, err}
		}
		var asks []loader.Ask
		var receipts []string
		for _, ask := range settled.Asks {
			asks = append(asks, loader.Ask{Key: ask.Of, Cost: ask.Cost, Limit: loader.Limit{
				Amount: ask.Amount, Period: time.Duration(ask.PeriodNS), Burst: ask.Burst,
				Algorithm: loader.Algorithm(ask.Algorithm), Name: ask.Name,
			}})
			receipts = append(receipts, ask.Receipt)
		}
		r, err := limiter.Reopen(receipts, asks...)
		if err != nil {
			return &exit{exitUsage, err}
		}
		if err := r.Settle(ctx, used...); err != nil {
			return err
		}
		type line struct {
			Key  string `json:"key"`
			Cost int64  `json:"cost"`
			Used int64  `json:"used"`
		}
		var lines []line
		text := "settled\n"
		for i, result := range r.Results {
			lines = append(lines, line{result.Key, asks[i].Cost, used[i]})
			text += fmt.Sprintf("ask %d: %d used of %d, key %q\n", i+1, used[i], asks[i].Cost, result.Key)
		}
		return a.print(lines, text)
	})
	command.RunE = func(command *cobra.Command, args []string) error {
		for _, text := range args {
			var units int64
			if err := whole(&units)(text); err != nil {
				return fmt.Errorf("USED %q is %w", text, err)
			}
			used = append(used, units)
		}
		in := os.Stdin
		if from != "-" {
			file, err := os.Open(from)
			if err != nil {
				return err
			}
			defer file.Close()
			in = file
		}
		decoder := json.NewDecoder(in)
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&settled); err != nil {
			return fmt.Errorf("not an output of reserve --json: %w", err)
		}
		if settled.Status != 1 {
			return &exit{exitRefused, errors.New("the reservation was refused: there is nothing to settle")}
		}
		return onServer(command, args)
	}
	return command
}
