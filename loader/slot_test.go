package loader

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
)

// A slot is the one that a server computes, whatever the braces.
func TestSlot(t *testing.T) {
	client := servers.ForTest(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf").Client()
	defer client.Close()
	keys := []string{"", "a", "rl:{42}", "rl:{42}:login", "{", "}", "{}", "a{}b", "a{}{b}", "{{a}}", "a}{b}c", "{a", "{a}{b}", "x{\x00\xff}y"}
	for b := range 256 {
		keys = append(keys, string([]byte{byte(b), byte(b * 7)}), strings.Repeat(string([]byte{byte(b)}), 30))
	}
	slots := map[uint16]bool{}
	for _, key := range keys {
		want, err := client.ClusterKeySlot(context.Background(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		got := slotOf(key)
		if slots[got] = true; int64(got) != want {
			t.Errorf("%q: slot %d, want %d", key, got, want)
		}
	}
	if len(slots) < 400 {
		t.Errorf("%d slots, want 400 different ones at least", len(slots))
	}
	for key, want := range map[string]string{"a": "a", "rl:{42}:login": "42", "a{}b": "a{}b", "{a": "{a", "{a}{b}": "a"} {
		if got := tagOf(key); got != want {
			t.Errorf("%q: tag %q, want %q", key, got, want)
		}
	}
}

func TestDecodeLimits(t *testing.T) {
	one := func(status, remaining, retry, reset int64, receipt any) any {
		return []any{status, remaining, retry, reset, receipt}
	}
	const ok, refused, never = int64(1), int64(0), int64(-1)
	for _, test := range []struct {
		reply []any
		want  limitsReply
	}{
		{[]any{ok, int64(0), one(1, 3, 0, 9, "7 8")},
			limitsReply{0, []Result{{Allowed: true, Remaining: 3, ResetAfter: 9}}, []string{"7 8"}}},
		{[]any{refused, int64(5), one(1, 3, 0, 9, ""), one(0, 1, 5, 9, ""), one(0, 0, 4, 6, "")},
			limitsReply{5, []Result{{Allowed: true, Remaining: 3, ResetAfter: 9}, {Remaining: 1, RetryAfter: 5, ResetAfter: 9}, {RetryAfter: 4, ResetAfter: 6}}, []string{"", "", ""}}},
		{[]any{never, int64(-1), one(0, 1, 5, 9, ""), one(-1, 1, -1, 9, "")},
			limitsReply{-1, []Result{{Remaining: 1, RetryAfter: 5, ResetAfter: 9}, {Unfittable: true, Remaining: 1, RetryAfter: -1, ResetAfter: 9}}, []string{"", ""}}},
	} {
		got, err := decodeLimits(test.reply, len(test.reply)-2)
		if err != nil || got.retry != test.want.retry || !slices.Equal(got.results, test.want.results) || !slices.Equal(got.receipts, test.want.receipts) {
			t.Errorf("%v: %+v, %v, want %+v", test.reply, got, err, test.want)
		}
	}
	for _, reply := range []any{
		nil, int64(1), "1", []any{}, []any{ok, int64(0)},
		[]any{ok, int64(0), one(1, 3, 0, 9, "7"), one(1, 3, 0, 9, "7")},
		[]any{ok, int64(0), int64(1)},
		[]any{ok, int64(0), []any{ok, ok, int64(0), ok}},
		[]any{ok, int64(0), one(1, 3, 0, 9, int64(7))},
		[]any{ok, int64(0), one(1, 3, 0, 9, nil)},
		[]any{ok, int64(0), one(1, -3, 0, 9, "7")},
		[]any{ok, int64(0), one(0, 3, 5, 9, "")},
		[]any{ok, int64(5), one(1, 3, 0, 9, "7")},
		[]any{refused, int64(4), one(0, 3, 5, 9, "")},
		[]any{refused, int64(0), one(1, 3, 0, 9, "7")},
		[]any{refused, int64(-1), one(-1, 3, -1, 9, "")},
		[]any{never, int64(0), one(-1, 3, -1, 9, "")},
		[]any{1.0, int64(0), one(1, 3, 0, 9, "7")},
		[]any{ok, nil, one(1, 3, 0, 9, "7")},
	} {
		if got, err := decodeLimits(reply, 1); !errors.Is(err, ErrReply) || got.results != nil {
			t.Errorf("%v: %+v, %v, want an ErrReply", reply, got, err)
		}
	}
}

func TestTightest(t *testing.T) {
	result := func(remaining, quota int64) Result {
		return Result{Remaining: remaining, Limit: Limit{Amount: quota}}
	}
	for _, test := range []struct {
		results []Result
		want    int
	}{
		{[]Result{result(0, 1)}, 0},
		{[]Result{result(1, 2), result(1, 3), result(2, 3)}, 1},
		{[]Result{result(1, 2), result(2, 4), result(3, 6)}, 0}, // the first of equals
		{[]Result{result(1<<52-1, 1<<52), result(1<<52-2, 1<<52-1)}, 1},
		{[]Result{result(1<<52-2, 1<<52-1), result(1<<52-1, 1<<52)}, 0},
		{[]Result{result(5, 6), result(0, 1<<52)}, 1},
	} {
		if got := tightest(test.results); got != test.want {
			t.Errorf("%+v: %d, want %d", test.results, got, test.want)
		}
	}
}
