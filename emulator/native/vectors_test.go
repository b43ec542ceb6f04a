package native

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/vectors"
)

// serverUs is the server's clock of the vectors that go by it.
const serverUs = 1_780_000_080_000_000

// The port answers, writes and expires as the vectors say. Package generate plays them on
// it too, as on any other port; here they need nothing but the port, so that a change of
// one operator of it is tried within a second.
func TestVectors(t *testing.T) {
	for _, script := range []string{"gcra_v1", "gcra_v2", "window_v1"} {
		text, err := vectors.Files.ReadFile(script + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct {
				Setting struct {
					Keys    int
					TimeUs  string `json:"time_us"`
					Refuses string
				}
				Argv  []string
				Tests []struct {
					ID    int
					Key   struct{ Kind, Hex string }
					Steps []struct {
						Expire string
						Argv   []string
						Error  string
						Reply  []string
						State  string
						TTLMs  string `json:"ttl_ms"`
					}
				}
				Streams []struct {
					ID     int
					NowNs  string `json:"now_ns"`
					Cost   string
					Calls  int
					SHA256 string
				}
			}
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		tests, streams := 0, 0
		for _, g := range file.Groups {
			if g.Setting.Keys != 1 || g.Setting.Refuses != "" {
				continue // which a port has no word for
			}
			clock := ServerClock(serverUs)
			if g.Setting.TimeUs != "" {
				clock = ServerClock(whole(t, g.Setting.TimeUs))
			}
			for _, test := range g.Tests {
				if test.Key.Kind == "list" {
					continue // which a port has no word for
				}
				tests++
				text, err := hex.DecodeString(test.Key.Hex)
				if err != nil {
					t.Fatal(err)
				}
				key, ttlMs := Key{test.Key.Kind == "string", string(text)}, int64(-1)
				for i, s := range test.Steps {
					if s.Expire == "none" {
						ttlMs = -1
					} else if s.Expire != "" {
						ttlMs = whole(t, s.Expire)
					}
					var d Decision
					key, d, _ = Call(script, key, slices.Concat(g.Argv, s.Argv), clock)
					if d.TTLS > 0 {
						ttlMs = d.TTLS * 1000
					}
					reply := []int64{d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs}
					held := ttlMs
					if !key.Exists {
						held = -2
					}
					if d.Err != s.Error || s.Error == "" && !slices.EqualFunc(reply, s.Reply, isIn) ||
						!isLike(hex.EncodeToString([]byte(key.Text)), s.State) || !isIn(held, s.TTLMs) {
						t.Errorf("%s: test %d, step %d, %q: %v %q, holds %q for %d ms, want %s %q, %s, %s", script, test.ID, i,
							s.Argv, reply, d.Err, key.Text, held, s.Reply, s.Error, s.State, s.TTLMs)
						break
					}
				}
			}
			for _, s := range g.Streams {
				streams++
				sum, key, nowNs := sha256.New(), Key{}, whole(t, s.NowNs)
				for range s.Calls {
					var d Decision
					argv := append(slices.Clone(g.Argv), s.Cost, strconv.FormatInt(nowNs, 10))
					key, d, _ = Call(script, key, argv, Clock{})
					fmt.Fprintln(sum, d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs)
					nowNs += d.RetryAfterNs
				}
				if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 {
					t.Errorf("%s: stream %d: sha256 %s, want %s", script, s.ID, got, s.SHA256)
				}
			}
		}
		if tests < 150 || streams == 0 {
			t.Errorf("%s: %d tests and %d streams were played", script, tests, streams)
		}
	}
	if after, d, ok := Call("gcra_v0", Key{}, nil, Clock{}); ok || after != (Key{}) || d != (Decision{}) {
		t.Errorf("a name that is no script's: %v, %v, %v", after, d, ok)
	}
}

func whole(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// isIn tells whether a number is in a range of the vectors: one, or the least and the
// greatest.
func isIn(n int64, limits string) bool {
	least, greatest, isRange := strings.Cut(limits, "..")
	if !isRange {
		return limits == strconv.FormatInt(n, 10)
	}
	from, err := strconv.ParseInt(least, 10, 64)
	to, err2 := strconv.ParseInt(greatest, 10, 64)
	return err == nil && err2 == nil && from <= n && n <= to
}

// isLike tells whether a text is another, in which a dot is any letter.
func isLike(text, pattern string) bool {
	if len(text) != len(pattern) {
		return false
	}
	for i := range len(text) {
		if pattern[i] != '.' && pattern[i] != text[i] {
			return false
		}
	}
	return true
}
