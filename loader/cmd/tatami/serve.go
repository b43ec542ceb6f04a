package main

import (
	"errors"
	"net"
	"time"

	"github.com/spf13/cobra"

	"github.com/tatami-rate/tatami/emulator"
)

func (a *app) serve() *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:   "serve",
		Short: "Be a Redis for tests: the emulator behind a port",
		Long: `Serve the emulator to Redis clients of any language, for tests on a machine without
a Redis. It runs the scripts' own text by the number rules of Redis 7.0, keeps its
keys in memory and forgets them at its end, and has the commands that a limiter's
user needs; to others it answers as a Redis that does not know them. It has no
password: whoever reaches the address can use it.

The first line of output is the address, as host:port and nothing else, once it can be
reached; with port 0 the system chooses one. Ctrl-C ends it with exit code 0. Exits with
3 when the address is taken.`,
		Example: `  tatami serve &
  redis-cli -p 6380 PING`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			listener, err := net.Listen("tcp", address)
			var malformed *net.AddrError
			switch {
			case errors.As(err, &malformed):
				return &exit{exitUsage, errors.New("--listen: " + err.Error() + "; the form is host:port, or :port for every interface")}
			case err != nil:
				return &exit{exitServer, err}
			}
			bound := listener.Addr().String()
			if err := a.print(map[string]string{"address": bound}, bound+"\n"); err != nil {
				listener.Close()
				return &exit{exitServer, err}
			}
			server := emulator.New()
			server.SetClock(time.Now)
			if err := server.Serve(command.Context(), listener); err != nil {
				return &exit{exitServer, err}
			}
			return nil
		},
	}
	command.Flags().StringVar(&address, "listen", "127.0.0.1:6380", "`ADDRESS` to serve on, as host:port, or :port for every interface")
	return command
}
