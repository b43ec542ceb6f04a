package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision/servers"
)

// serving runs tatami serve on a free port and returns its address, and what ends it
// as Ctrl-C does and returns its exit code.
func serving(t *testing.T) (address string, interrupt func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		var errs bytes.Buffer
		code <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, in, &errs)
		in.CloseWithError(io.ErrUnexpectedEOF)
		if errs.Len() > 0 {
			t.Errorf("tatami serve: %s", &errs)
		}
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	matches(t, line, `127\.0\.0\.1:\d+\n`) // as a script reads it
	return strings.TrimSpace(line), func() int {
		cancel()
		return <-code
	}
}

// The other commands work on a served emulator as on a server, and Ctrl-C ends it.
func TestServe(t *testing.T) {
	address, interrupt := serving(t)
	t.Setenv("REDIS_URL", "redis://"+address)
	command(t, exitOK, "load")
	command(t, exitOK, "verify")
	out, _ := command(t, exitOK, call("allow", "user:42")...)
	matches(t, out, `admitted, remaining 59, .*\n`)
	out, _ = command(t, exitOK, call("peek", "user:42")...)
	matches(t, out, `.*remaining (59|60), .*\n`)

	taken := "listen tcp " + address + ": bind: address already in use"
	_, errs := command(t, exitServer, "serve", "--listen", address)
	matches(t, errs, `tatami: `+taken+`\n`)
	if code := interrupt(); code != exitOK {
		t.Errorf("Ctrl-C ends it with %d", code)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("the port is open after its end")
	}
}

func TestServeJSON(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--json"}, in, io.Discard) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, err)
	matches(t, line, `\{"address":"127\.0\.0\.1:\d+"\}\n`)
	cancel()
	if got := <-code; got != exitOK {
		t.Errorf("Ctrl-C ends it with %d", got)
	}
}

func TestServeBadAddress(t *testing.T) {
	for _, address := range []string{"nonsense", "1:2:3", ":99999"} {
		out, errs := command(t, exitUsage, "serve", "--listen", address)
		matches(t, out+errs, `tatami: --listen: listen tcp: address .*; the form is host:port, or :port for every interface\n`)
	}
	_, errs := command(t, exitUsage, "serve", "x")
	matches(t, errs, `tatami: serve takes no arguments\n`)
}

// redis-cli meets the served emulator as it meets a server.
func TestServeRedisCLI(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		if servers.Required() {
			t.Fatal("redis-cli is not on PATH")
		}
		t.Skip("skipped: redis-cli is not on PATH")
	}
	address, interrupt := serving(t)
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	cli := func(input string, args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "redis-cli", append([]string{"-p", port}, args...)...)
		command.Stdin = strings.NewReader(input)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("redis-cli %q: %v", args, err)
		}
		return string(out)
	}
	sha := strings.TrimSpace(cli(lua.GCRAV2, "-x", "SCRIPT", "LOAD"))
	evalsha := []string{"EVALSHA", sha, "1", "user:42", "300", "60000000000", "60", "1", "1735689600000000000"}
	for _, test := range []struct {
		input string
		args  []string
		want  string
	}{
		{"", []string{"PING"}, "PONG\n"},
		{"", []string{"SET", "k", "v"}, "OK\n"},
		{"", []string{"GET", "k"}, "v\n"},
		{"", []string{"-3", "GET", "none"}, "\n"},
		{"", []string{"FOO", "a"}, "ERR unknown command 'FOO', with args beginning with: 'a' \n\n"},
		{"", evalsha, "1\n59\n0\n200000000\n"},
		{"", append([]string{"--no-raw"}, evalsha...), "1) (integer) 1\n2) (integer) 58\n3) (integer) 0\n4) (integer) 400000000\n"},
		{"SELECT 1\nMULTI\nGET k\nEXEC\nPING\n", nil, "OK\nOK\nQUEUED\n\nPONG\n"},
	} {
		if got := cli(test.input, test.args...); got != test.want {
			t.Errorf("redis-cli %q, input %q: %q, want %q", test.args, test.input, got, test.want)
		}
	}
	if code := interrupt(); code != exitOK {
		t.Errorf("Ctrl-C ends it with %d", code)
	}
}
