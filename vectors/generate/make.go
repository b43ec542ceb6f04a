package generate

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// The tables. An id stands beside its test and is never given to another one.
type (
	group struct {
		comment string
		argv    string // apart by spaces; empty where the steps give all
		tests   []test
		streams []stream
	}
	test struct {
		id      int
		comment string
		flags   string // apart by spaces
		key     Key
		steps   [][]string // each the argv of a call
	}
	stream struct {
		id      int
		comment string
		flags   string
		nowNs   string
		calls   int
	}
)

// none is a key that is not there.
var none = Key{Kind: "none"}

// holding is a key with this text and no expiry.
func holding(text string) Key {
	return Key{Kind: "string", Hex: hex.EncodeToString([]byte(text))}
}

// expiring is the key with half a minute to live: more than a test takes, and less than
// any script sets, so that a call which sets the expiry shows.
func (k Key) expiring() Key {
	k.TTLMs = "30000"
	return k
}

// Make plays the tables of a script on a port and writes down what it answers, each
// answer held against exact integers. still tells that the port's clock stands still.
func Make(script precision.Script, p Port, still bool) (*File, error) {
	return makeFile(script, tables(script), retired[script], p, still)
}

func makeFile(script precision.Script, groups []group, retired []int, p Port, still bool) (*File, error) {
	f := &File{Script: string(script), SHA1: fmt.Sprintf("%x", sha1.Sum([]byte(lua.Assets[string(script)]))), Flags: map[string]string{}}
	ids := map[int]bool{}
	for _, id := range retired {
		ids[id] = true
	}
	use := func(id int, comment, flags string) error {
		if ids[id] {
			return fmt.Errorf("%s: the id %d of %q is another's, or retired", script, id, comment)
		}
		ids[id] = true
		for _, flag := range strings.Fields(flags) {
			if f.Flags[flag] = descriptions[flag]; f.Flags[flag] == "" {
				return fmt.Errorf("%s %d: the flag %s is not described", script, id, flag)
			}
		}
		return nil
	}
	for _, g := range groups {
		made := Group{g.comment, strings.Fields(g.argv), []Test{}, []Stream{}}
		for _, t := range g.tests {
			if err := use(t.id, t.comment, t.flags); err != nil {
				return nil, err
			}
			m := Test{t.id, t.comment, strings.Fields(t.flags), t.key, nil}
			if err := m.make(script, made.Argv, t.steps, p, still); err != nil {
				return nil, fmt.Errorf("%s: test %d, %s: %w", script, t.id, t.comment, err)
			}
			made.Tests = append(made.Tests, m)
		}
		for _, s := range g.streams {
			if err := use(s.id, s.comment, s.flags); err != nil {
				return nil, err
			}
			m := Stream{s.id, s.comment, strings.Fields(s.flags), s.nowNs, "1", s.calls, ""}
			if err := m.make(script, made.Argv, p); err != nil {
				return nil, fmt.Errorf("%s: stream %d, %s: %w", script, s.id, s.comment, err)
			}
			made.Streams = append(made.Streams, m)
		}
		f.Groups = append(f.Groups, made)
	}
	return f, nil
}

// make makes the test's steps from the calls.
func (t *Test) make(script precision.Script, groupArgv []string, calls [][]string, p Port, still bool) error {
	o, err := newTruth(script, t.Key)
	if err != nil {
		return err
	}
	if err := p.Hold(t.Key); err != nil {
		return err
	}
	for i, call := range calls {
		argv := slices.Concat(groupArgv, call)
		a := answer{still: still}
		if a.reply, a.refused, err = p.Call(argv); err != nil {
			return err
		}
		if a.state, a.ttlMs, err = p.Look(); err != nil {
			return err
		}
		s, err := o.step(argv, a)
		if err != nil {
			return fmt.Errorf("step %d, %.100q: %w", i, argv, err)
		}
		if mayDiffer(script, s) && !slices.Contains(t.Flags, farWait) {
			return fmt.Errorf("step %d, %.100q: reply %q needs the flag %s", i, argv, s.Reply, farWait)
		}
		s.Argv = call
		t.Steps = append(t.Steps, s)
	}
	return nil
}

// farWait is the flag of tests that a port in integers may answer otherwise.
const farWait = "FarWait"

// mayDiffer tells whether a wait is so long that the script rounds it.
func mayDiffer(script precision.Script, s Step) bool {
	if script != precision.GCRAV1 {
		return !slices.Equal(s.Reply, s.Exact)
	}
	return slices.ContainsFunc(s.Reply, func(text string) bool {
		n, err := strconv.ParseInt(text, 10, 64)
		return err != nil || n >= precision.FarNs
	})
}

// make makes the stream's hash.
func (s *Stream) make(script precision.Script, groupArgv []string, p Port) error {
	o, err := newTruth(script, none)
	if err != nil {
		return err
	}
	s.SHA256, err = s.digest(groupArgv, p, func(argv, reply []string) error {
		args, ok := o.read(argv)
		if !ok {
			return fmt.Errorf("%q has to be refused", argv)
		}
		_, _, err := o.call(args, reply)
		return err
	})
	return err
}

// tables are all groups of a script.
func tables(script precision.Script) []group {
	switch script {
	case precision.GCRAV1:
		return gcraTables(1)
	case precision.GCRAV2:
		return gcraTables(2)
	case precision.WindowV1:
		return windowTables(1)
	default:
		return windowTables(2)
	}
}

// Unused returns the descriptions of flags that no file uses.
func Unused(files []*File) []string {
	unused := maps.Clone(descriptions)
	for _, f := range files {
		for flag := range f.Flags {
			delete(unused, flag)
		}
	}
	return slices.Sorted(maps.Keys(unused))
}
