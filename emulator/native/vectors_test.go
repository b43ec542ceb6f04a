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
	for _, script := range []string{"gcra_v1", "gcra_v2", "window_v1", "limits_v1"} {
		text, err := vectors.Files.ReadFile(script + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct {
				Setting struct {
					Keys    string
					TimeUs  string `json:"time_us"`
					Refuses string
				}
				Argv  []string
				Tests []struct {
					ID    int
					Keys  []struct{ Kind, Hex string }
					Steps []struct {
						Expire []string
						Argv   []string
						Error  string
						Reply  []any
						State  []string
						TTLMs  []string `json:"ttl_ms"`
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
			if g.Setting.Keys != "each" || g.Setting.Refuses != "" {
				continue // which a port has no word for
			}
			clock := ServerClock(serverUs)
			if g.Setting.TimeUs != "" {
				clock = ServerClock(whole(t, g.Setting.TimeUs))
			}
			for _, test := range g.Tests {
				lists := false
				var keys []Key
				var ttlsMs []int64
				for i, k := range test.Keys {
					text, err := hex.DecodeString(k.Hex)
					if err != nil {
						t.Fatal(err)
					}
					keys = append(keys, Key{fmt.Sprint(i), k.Kind == "string", string(text)})
					ttlsMs = append(ttlsMs, -1)
					lists = lists || k.Kind == "list"
				}
				if lists {
					continue // which a port has no word for
				}
				tests++
				for i, s := range test.Steps {
					for i, ms := range s.Expire {
						if ms == "none" {
							ttlsMs[i] = -1
						} else if ms != "" {
							ttlsMs[i] = whole(t, ms)
						}
					}
					var r Reply
					keys, r, _ = Call(script, keys, slices.Concat(g.Argv, s.Argv), clock)
					writes := []Decision{r.Decision}
					reply := []any{r.Status, r.Remaining, r.RetryAfterNs, r.ResetAfterNs}
					if script == "limits_v1" {
						writes, reply = nil, []any{r.Status, r.RetryAfterNs}
						for _, l := range r.Limits {
							writes = append(writes, l.Decision)
							reply = append(reply, []any{l.Status, l.Remaining, l.RetryAfterNs, l.ResetAfterNs, l.Receipt})
						}
					}
					if r.Err != "" {
						writes, reply = nil, []any{}
					}
					for i, d := range writes {
						if d.TTLS > 0 {
							ttlsMs[i] = d.TTLS * 1000
						}
					}
					right := r.Err == s.Error && isReply(reply, s.Reply)
					for i, key := range keys {
						held := ttlsMs[i]
						if !key.Exists {
							held = -2
						}
						right = right && isLike(hex.EncodeToString([]byte(key.Text)), s.State[i]) && isIn(held, s.TTLMs[i])
					}
					if !right {
						t.Errorf("%s: test %d, step %d, %q: %v %q, holds %v for %d ms, want %s %q, %q, %s", script, test.ID, i,
							s.Argv, reply, r.Err, keys, ttlsMs, s.Reply, s.Error, s.State, s.TTLMs)
						break
					}
				}
			}
			for _, s := range g.Streams {
				streams++
				sum, keys, nowNs := sha256.New(), []Key{{}}, whole(t, s.NowNs)
				for range s.Calls {
					var d Reply
					argv := append(slices.Clone(g.Argv), s.Cost, strconv.FormatInt(nowNs, 10))
					keys, d, _ = Call(script, keys, argv, Clock{})
					fmt.Fprintln(sum, d.Status, d.Remaining, d.RetryAfterNs, d.ResetAfterNs)
					nowNs += d.RetryAfterNs
				}
				if got := hex.EncodeToString(sum.Sum(nil)); got != s.SHA256 {
					t.Errorf("%s: stream %d: sha256 %s, want %s", script, s.ID, got, s.SHA256)
				}
			}
		}
		if tests < 150 || (streams == 0) != (script == "limits_v1") {
			t.Errorf("%s: %d tests and %d streams were played", script, tests, streams)
		}
	}
	if after, d, ok := Call("gcra_v0", nil, nil, Clock{}); ok || after != nil || d.Decision != (Decision{}) || d.Limits != nil {
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

// isReply tells whether a reply is one of the vectors: a list of them of limits_v1, a receipt a
// text, and all else numbers.
func isReply(reply, want []any) bool {
	return slices.EqualFunc(reply, want, func(got, want any) bool {
		switch got := got.(type) {
		case []any:
			list, ok := want.([]any)
			return ok && isReply(got, list)
		case int64:
			limits, ok := want.(string)
			return ok && isIn(got, limits)
		default:
			return got == want
		}
	})
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
