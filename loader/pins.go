package loader

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tatami-rate/tatami/lua"
)

// ErrPin means that a script's SHA1 differs between this package's source, the
// script's text, lua.sum and the server: something has been altered.
var ErrPin = errors.New("SHA1 differs from the pinned one")

// Script is one of the scripts, as it is pinned here.
type Script struct {
	// Name ends in the script's version, as in "gcra_v1".
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

var (
	gcraV1   = Script{Name: "gcra_v1", SHA1: "4cd9fbccce4edefa0d41ca872e582e78095ca309", Bound: 256, text: lua.GCRAV1}
	gcraV2   = Script{Name: "gcra_v2", SHA1: "29dffebdd879edd9dbc880d0ff804e35815a0b99", text: lua.GCRAV2}
	windowV1 = Script{Name: "window_v1", SHA1: "695a7ff96ed285ae75c01b2a669d37b4c1da1b7f", text: lua.WindowV1}
	windowV2 = Script{Name: "window_v2", SHA1: "82a32a5dc90df756ff6b2bfb8c0cc3c5953a3087", text: lua.WindowV2}
)

// Scripts returns the pinned scripts. The error is an ErrPin when a pin, a text and
// lua.sum do not agree.
func Scripts() ([]Script, error) {
	scripts := []Script{gcraV1, gcraV2, windowV1, windowV2}
	if err := checkPins(scripts, lua.Sum); err != nil {
		return nil, err
	}
	return scripts, nil
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
