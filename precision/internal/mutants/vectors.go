package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/vectors"
	"github.com/tatami-rate/tatami/vectors/generate"
)

// vectorSuite is the vectors of one asset, all that a port in another language has: alone
// they must fail every mutant that the suite does.
type vectorSuite struct {
	script precision.Script
	plays  []func(generate.Port) error
}

func newVectorSuite(script precision.Script) (*vectorSuite, error) {
	text, err := vectors.Files.ReadFile(string(script) + ".json")
	if err != nil {
		return nil, err
	}
	file, err := generate.Read(text)
	if err != nil {
		return nil, err
	}
	s := &vectorSuite{script: script}
	var streams []func(generate.Port) error // last, as they are long
	for _, g := range file.Groups {
		for _, test := range g.Tests {
			s.plays = append(s.plays, func(p generate.Port) error { return test.Play(&g, p) })
		}
		for _, stream := range g.Streams {
			streams = append(streams, func(p generate.Port) error { return stream.Play(&g, p) })
		}
	}
	s.plays = append(s.plays, streams...)
	return s, nil
}

// vectorsUs is the server's clock: no whole number of seconds or ms.
const vectorsUs = 1_783_000_000_654_321

// fall tells how a text fails the vectors; both are empty for one that passes them all.
func (s *vectorSuite) fall(text string) (part, how string, err error) {
	r := emulator.New()
	r.SetTime(time.UnixMicro(vectorsUs))
	p, err := generate.NewServerPort(context.Background(), r, text, "vector")
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", s.script, err)
	}
	for _, play := range s.plays {
		if err := play(p); err != nil {
			return "vectors", err.Error(), nil // a difference, or a reply of another form
		}
	}
	return "", "", nil
}

// unseen names the mutants that pass the vectors, though they fall in the part of the suite
// beside them; seen counts the others that fall there.
func (s *vectorSuite) unseen(mutants []mutant, parts []string) (names []string, seen int, err error) {
	byVectors, err := tryAll(s.fall, mutants)
	for i, m := range mutants {
		switch {
		case byVectors[i] == "" && parts[i] != "":
			names = append(names, fmt.Sprintf("passes the vectors, falls by %s: %s", parts[i], m))
		case byVectors[i] != "":
			seen++
		}
	}
	return names, seen, err
}
