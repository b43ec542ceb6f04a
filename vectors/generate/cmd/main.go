// This command writes the files vectors/<script>.json, from a run on a redis-server
// that it starts, with every answer held against exact integers. `go generate ./vectors`
// runs it. It writes nothing when an answer is beyond what its script claims, when the
// emulator answers otherwise, or when an id would stand for another test than before.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/servers"
	"github.com/tatami-rate/tatami/vectors/generate"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := servers.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Stop()
	client := server.Client()
	defer client.Close()
	texts := map[string][]byte{}
	var files []*generate.File
	for _, script := range generate.Scripts {
		file, text, err := write(ctx, script, client, false)
		if err != nil {
			return fmt.Errorf("%s: %w", server.Name, err)
		}
		_, emulated, err := write(ctx, script, emulator.New(), true)
		if err != nil {
			return fmt.Errorf("emulator: %w", err)
		}
		if !bytes.Equal(text, emulated) {
			return fmt.Errorf("%s: the emulator answers otherwise than %s", script, server.Name)
		}
		name := file.Script + ".json"
		if err := keeps(file, name); err != nil {
			return err
		}
		texts[name] = text
		files = append(files, file)
	}
	if unused := generate.Unused(files); unused != nil {
		return fmt.Errorf("flags that no test has: %q", unused)
	}
	for name, text := range texts {
		err = errors.Join(err, os.WriteFile(name, text, 0o644))
	}
	return err
}

// keeps checks that the file gives no id of the one that it replaces to another test.
func keeps(file *generate.File, name string) error {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	older, err := generate.Read(text)
	if err != nil {
		return err
	}
	return file.Keeps(older)
}

// write makes the file of a script and its text.
func write(ctx context.Context, script precision.Script, server generate.Server, still bool) (*generate.File, []byte, error) {
	port, err := generate.NewServerPort(ctx, server, lua.Assets[string(script)], "vector")
	if err != nil {
		return nil, nil, err
	}
	file, err := generate.Make(script, port, still)
	if err != nil {
		return nil, nil, err
	}
	text, err := file.Text()
	return file, text, err
}
