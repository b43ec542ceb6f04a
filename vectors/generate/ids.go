package generate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tatami-rate/tatami/precision"
)

// Keeps checks that each id of an older version of the file stands for what it stood for,
// a test or a stream of the same comment or of the same calls, or is retired.
func (f *File) Keeps(older *File) error {
	return f.keeps(older, retired[precision.Script(f.Script)])
}

func (f *File) keeps(older *File, retired []int) error {
	now := f.purposes()
	for id, was := range older.purposes() {
		is, ok := now[id]
		switch {
		case !ok && !slices.Contains(retired, id):
			return fmt.Errorf("%s: the id %d of %q is gone and not retired", f.Script, id, was.comment)
		case ok && is.comment != was.comment && is.calls != was.calls:
			return fmt.Errorf("%s: the id %d of %q is now that of %q", f.Script, id, was.comment, is.comment)
		}
	}
	return nil
}

// purpose is what an id stands for.
type purpose struct {
	comment, calls string
}

func (f *File) purposes() map[int]purpose {
	all := map[int]purpose{}
	for _, g := range f.Groups {
		for _, t := range g.Tests {
			calls := []string{fmt.Sprint(g.Argv, t.Keys)}
			for _, s := range t.Steps {
				calls = append(calls, fmt.Sprint(s.Argv))
			}
			all[t.ID] = purpose{t.Comment, strings.Join(calls, "\n")}
		}
		for _, s := range g.Streams {
			all[s.ID] = purpose{s.Comment, fmt.Sprint(g.Argv, s.NowNs, s.Cost, s.Calls)}
		}
	}
	return all
}
