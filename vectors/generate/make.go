package generate

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
)

// The tables. An id stands beside its test and is never given to another one.
type (
	group struct {
		comment string
		argv    string   // apart by spaces; empty where the steps give all
		setting *Setting // nil for the usual one
		tests   []test
		streams []stream
	}
	test struct {
		id      int
		comment string
		flags   string // apart by spaces
		key     held
		steps   []request
	}
	// request is a call: its argv after the group's.
	request struct {
		argv   []string
		expire []string // what the keys' expiries are set to before it; none to leave them
	}
	// held is what the key holds before a test, and its expiry; and that of the keys after
	// it.
	held struct {
		key    Key
		expire string
		more   []held
	}
	stream struct {
		id      int
		comment string
		flags   string
		nowNs   string
		calls   int
	}
)

// Scripts are those that have a file, in the order of the generator.
var Scripts = []precision.Script{precision.GCRAV1, precision.GCRAV2, precision.WindowV1, precision.LimitsV1}

// noExpiry takes a key's expiry away.
const noExpiry = "none"

// none is a key that is not there.
var none = held{key: Key{Kind: "none"}}

// list is a key with a list.
var list = held{key: Key{Kind: "list"}}

// holding is a key with this text and no expiry.
func holding(text string) held {
	return held{key: Key{Kind: "string", Hex: hex.EncodeToString([]byte(text))}}
}

// expiring is the key with half a minute to live: more than a test takes, and less than
// any caller's clock sets, so that a call which sets the expiry shows.
func (h held) expiring() held {
	h.expire = "30000"
	return h
}

// and is the key, and others after it.
func (h held) and(more ...held) held {
	h.more = append(slices.Clone(h.more), more...)
	return h
}

// keys are all of them.
func (h held) keys() []held { return append([]held{h}, h.more...) }

// by is a call with these arguments.
func by(argv ...string) request { return request{append([]string{}, argv...), nil} }

// after is the call after the keys' expiries were set to so many ms, or taken away, or left
// where the text is empty.
func (r request) after(expire ...string) request { return request{r.argv, expire} }

// Make plays the tables of a script on a port and writes down what it answers, each
// answer held against exact integers. still tells that the port's clock stands still.
func Make(script precision.Script, p Port, still bool) (*File, error) {
	return makeFile(script, tables(script), retired[script], p, still)
}

func makeFile(script precision.Script, groups []group, retired []int, p Port, still bool) (*File, error) {
	f := &File{Script: string(script), SHA1: fmt.Sprintf("%x", sha1.Sum([]byte(lua.Assets[string(script)]))), Flags: map[string]Flag{}}
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
			if f.Flags[flag] = descriptions[flag]; f.Flags[flag].Fault == "" {
				return fmt.Errorf("%s %d: the flag %s is not described", script, id, flag)
			}
		}
		return nil
	}
	for _, g := range groups {
		setting := usual
		if g.setting != nil {
			setting = *g.setting
		}
		made := Group{g.comment, strings.Fields(g.argv), setting.complete(), []Test{}, []Stream{}}
		for _, t := range g.tests {
			if err := use(t.id, t.comment, t.flags); err != nil {
				return nil, err
			}
			m := Test{ID: t.id, Comment: t.comment, Flags: strings.Fields(t.flags)}
			asks := slices.Clone(t.steps)
			expire := make([]string, len(t.key.keys()))
			for i, k := range t.key.keys() {
				m.Keys = append(m.Keys, k.key)
				expire[i] = k.expire
			}
			for i := range asks {
				if i == 0 && strings.Join(expire, "") != "" {
					asks[i].expire = expire
				} else if asks[i].expire == nil {
					asks[i].expire = make([]string, len(expire))
				}
			}
			if err := m.make(script, &made, asks, p, still); err != nil {
				return nil, fmt.Errorf("%s: test %d, %s: %w", script, t.id, t.comment, err)
			}
			made.Tests = append(made.Tests, m)
		}
		for _, s := range g.streams {
			if err := use(s.id, s.comment, s.flags); err != nil {
				return nil, err
			}
			m := Stream{s.id, s.comment, strings.Fields(s.flags), s.nowNs, "1", s.calls, ""}
			if err := m.make(script, &made, p); err != nil {
				return nil, fmt.Errorf("%s: stream %d, %s: %w", script, s.id, s.comment, err)
			}
			made.Streams = append(made.Streams, m)
		}
		f.Groups = append(f.Groups, made)
	}
	return f, nil
}

// make makes the test's steps from the calls.
func (t *Test) make(script precision.Script, g *Group, asks []request, p Port, still bool) (err error) {
	if slices.ContainsFunc(asks, func(r request) bool { return g.Setting.byItsClock(script, slices.Concat(g.Argv, r.argv)) }) {
		if t.Steps, err = t.overClocks(script, g, asks); err != nil {
			return err
		}
		return t.Play(g, p)
	}
	o, err := t.start(script, g, p, epoch)
	if err != nil {
		return err
	}
	for i, r := range asks {
		if err := t.step(o, g, r, p, still); err != nil {
			return fmt.Errorf("step %d, %.100q: %w", i, r.argv, err)
		}
	}
	return nil
}

// start has the port hold the test's key, in its group's setting, and returns what follows
// that by exact integers from this clock of the server on, unless the setting says another.
func (t *Test) start(script precision.Script, g *Group, p Port, serverNs int64) (*truth, error) {
	if g.Setting.TimeUs != "" {
		serverNs = g.Setting.unixUs() * us
	}
	if err := p.Arrange(g.Setting); err != nil {
		return nil, err
	}
	if err := p.Hold(t.Keys); err != nil {
		return nil, err
	}
	return newTruth(script, g.Setting, t.Keys, serverNs), nil
}

// run makes the test's calls on the native port, each at its server's clock.
func (t *Test) run(script precision.Script, g *Group, asks []request, p *NativePort, at clocks) ([]Step, error) {
	made := Test{Flags: t.Flags, Keys: t.Keys}
	p.Set(at[0])
	o, err := made.start(script, g, p, at[0])
	if err != nil {
		return nil, err
	}
	for i, r := range asks {
		p.Set(at[i])
		o.set(at[i])
		if err := made.step(o, g, r, p, true); err != nil {
			return nil, fmt.Errorf("step %d, %.100q: %w", i, r.argv, err)
		}
		for j, k := range o.keys {
			if k.expires {
				made.Steps[i].TTLMs[j] = newRange(max(k.ttlMs()-(slackNs-(at[i]-at[0]))/ms, 0), k.ttlMs())
			}
		}
	}
	return made.Steps, nil
}

// step makes one call, and the step of it.
func (t *Test) step(o *truth, g *Group, r request, p Port, still bool) error {
	if err := o.expire(r.expire); err != nil {
		return err
	}
	argv := slices.Concat(g.Argv, r.argv)
	var s Step
	var err error
	if g.Setting.refusedSet() > 0 {
		s, err = t.refused(o, g, r, p, still)
	} else {
		var a answer
		if a, err = ask(p, r.expire, argv); err == nil {
			s, err = o.step(argv, a, still)
		}
	}
	if err != nil {
		return err
	}
	if mayDiffer(o.script, s) && !slices.Contains(t.Flags, farWait) {
		return fmt.Errorf("reply %q needs the flag %s", s.Reply, farWait)
	}
	s.Argv, s.Expire = r.argv, r.expire
	t.Steps = append(t.Steps, s)
	return nil
}

// refused makes a test's one call, a SET of which the server refuses. What SET has to be
// asked for is seen when it is made first without that.
func (t *Test) refused(o *truth, g *Group, r request, p Port, still bool) (s Step, err error) {
	argv := slices.Concat(g.Argv, r.argv)
	before := o.clone()
	granted := g.Setting.refusing("")
	granted.Prelude = ""
	if err := p.Arrange(granted.complete()); err != nil {
		return s, err
	}
	a, err := ask(p, r.expire, argv)
	if err != nil {
		return s, err
	}
	if s, err = o.step(argv, a, still); err != nil {
		return s, err
	}
	var written []int
	for i, k := range o.keys {
		if k.state != before.keys[i].state {
			written = append(written, i)
		}
	}
	sets := g.Setting.refusedSet()
	if len(written) < sets {
		return s, errors.New("a SET is refused that is not asked for")
	}
	done := s
	at := written[sets-1]
	ttlMs := o.keys[at].ttlMs()
	s = before.unanswered("REFUSED SET EX " + decimal(ttlMs/1000))
	if byServer(o.script, argv) && ttlMs == before.keys[at].ttlMs() {
		s.Error = "REFUSED SET KEEPTTL"
	}
	for _, i := range written[:sets-1] {
		s.State[i], s.TTLMs[i] = done.State[i], done.TTLMs[i]
	}
	if err := p.Arrange(g.Setting); err != nil {
		return s, err
	}
	if err := p.Hold(t.Keys); err != nil {
		return s, err
	}
	if a, err = ask(p, r.expire, argv); err == nil && (a.refused != s.Error || !s.keysAre(a.keys)) {
		err = fmt.Errorf("error %q, want %q; keys %v, want %s, %s", a.refused, s.Error, a.keys, s.State, s.TTLMs)
	}
	return s, err
}

// farWait is the flag of tests that a port in integers may answer otherwise.
const farWait = "FarWait"

// mayDiffer tells whether a wait is so long that the script rounds it.
func mayDiffer(script precision.Script, s Step) bool {
	if script != precision.GCRAV1 {
		return !slices.Equal(s.Reply, s.Exact)
	}
	return slices.ContainsFunc(s.Reply, func(r Range) bool { return !r.below(precision.FarNs) })
}

// make makes the stream's hash.
func (s *Stream) make(script precision.Script, g *Group, p Port) (err error) {
	if err := p.Arrange(g.Setting); err != nil {
		return err
	}
	o := newTruth(script, g.Setting, []Key{none.key}, epoch)
	s.SHA256, err = s.digest(g.Argv, p, func(argv []string, reply []string) error {
		keys, err := p.Look()
		if err != nil {
			return err
		}
		c, ok := o.read(argv)
		if !ok {
			return fmt.Errorf("%q has to be refused", argv)
		}
		_, _, err = o.keys[0].call(&c, reply, keys[0])
		return err
	})
	return err
}

// tables are all groups of a script.
func tables(script precision.Script) []group {
	switch {
	case script == precision.LimitsV1:
		return limitsTables()
	case script.IsWindow():
		return windowTables()
	}
	return gcraTables(script)
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
