package loader

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/tatami-rate/tatami/lua"
)

// Script is one of the scripts, as it is pinned here.
type Script struct {
	// Name is its kind and its version, as in "gcra_v1".
	Name string
	// SHA1 is 40 lower-case hex digits, which EVALSHA takes.
	SHA1 string
	// Bound says how late the script may be: never early, and less than Bound after
	// exact integer arithmetic, over any number of calls. 0 is exact.
	Bound time.Duration
	// Released is false for a candidate, whose text and SHA1 may still change.
	Released bool

	text string
}

// pinned is every script; defaults are the names that a limiter calls unless WithScripts
// names another of their kind.
var (
	pinned = []Script{
		{Name: "gcra_v1", SHA1: "43f6bfe7674ab36e1467d858e094ae8c42260185", Bound: 256, text: lua.GCRAV1},
		{Name: "gcra_v2", SHA1: "938f3d1bd252b15372369a3b21f21c7f23afdd96", text: lua.GCRAV2},
		{Name: "window_v1", SHA1: "10a8b60f589832f3a853533bcfdac0816ffcb7cb", text: lua.WindowV1},
		{Name: "limits_v1", SHA1: "359b4c3276f3820097aa1fb55ae74cdae4e7d024", text: lua.LimitsV1},
	}
	defaults = []string{"gcra_v2", "window_v1", "limits_v1"}
)

// kind is the name without the version.
func (s Script) kind() string {
	kind, _, _ := strings.Cut(s.Name, "_v")
	return kind
}

// Scripts returns the pinned scripts. The error is an ErrPin when a pin, a text and
// lua.sum do not agree.
func Scripts() ([]Script, error) {
	scripts := append([]Script(nil), pinned...)
	if err := checkPins(scripts, lua.Sum); err != nil {
		return nil, err
	}
	return scripts, nil
}

// choose returns the default scripts by kind, and in place of them those that are named.
func choose(names []string) (map[string]Script, error) {
	scripts, err := Scripts()
	if err != nil {
		return nil, err
	}
	byName := map[string]Script{}
	var known []string
	for _, script := range scripts {
		byName[script.Name] = script
		known = append(known, script.Name)
	}
	chosen := map[string]Script{}
	for _, name := range defaults {
		chosen[byName[name].kind()] = byName[name]
	}
	named := map[string]string{}
	for _, name := range names {
		script, ok := byName[name]
		if !ok {
			return nil, fmt.Errorf("tatami: no script is named %q; there are %s", name, strings.Join(known, ", "))
		}
		if other, twice := named[script.kind()]; twice {
			return nil, fmt.Errorf("tatami: %s and %s are of one kind; name one of them", other, name)
		}
		named[script.kind()], chosen[script.kind()] = name, script
	}
	return chosen, nil
}

// checkPins holds each script's SHA1 against its text and against its line in sum,
// and takes from sum whether the script is released.
func checkPins(scripts []Script, sum string) error {
	sums := map[string]string{}
	isReleased := map[string]bool{}
	released := false
	for line := range strings.Lines(sum) {
		fields := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# released:"):
			released = true
		case strings.HasPrefix(line, "# candidates:"):
			released = false
		case len(fields) == 3:
			sums[fields[0]], isReleased[fields[0]] = fields[1], released
		}
	}
	for i, script := range scripts {
		digest := sha1.Sum([]byte(script.text))
		if got := hex.EncodeToString(digest[:]); got != script.SHA1 {
			return fmt.Errorf("%w: %s is pinned as %s, its text has %s", ErrPin, script.Name, script.SHA1, got)
		}
		if got, ok := sums[script.Name]; !ok {
			return fmt.Errorf("%w: %s is pinned as %s, lua.sum lacks it", ErrPin, script.Name, script.SHA1)
		} else if got != script.SHA1 {
			return fmt.Errorf("%w: %s is pinned as %s, lua.sum has %s", ErrPin, script.Name, script.SHA1, got)
		}
		scripts[i].Released = isReleased[script.Name]
	}
	return nil
}
