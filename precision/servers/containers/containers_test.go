package containers

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
)

func TestImages(t *testing.T) {
	for text, want := range map[string][]string{
		"":                     {"redis:6.0", "redis:7.0", "redis:8.0", "valkey/valkey:8.1", "valkey/valkey:9.1"},
		"redis:7.0":            {"redis:7.0"},
		"redis:7.0, redis:8.0": {"redis:7.0", "redis:8.0"},
		"none redis:7.0":       {"none", "redis:7.0"},
		"none":                 nil,
	} {
		t.Setenv("IMAGES", text)
		images, err := Images()
		if !slices.Equal(images, want) || errors.Is(err, ErrNone) != (want == nil) {
			t.Errorf("IMAGES=%q: %q, %v", text, images, err)
		}
		if want != nil && !slices.Equal(ImagesForTest(t), want) {
			t.Errorf("IMAGES=%q: a test has %q", text, ImagesForTest(t))
		}
	}
}

// recorder is a test that notes how it ends.
type recorder struct {
	servers.TB
	ended string
}

func (*recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.ended = "skip: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.ended = "fail: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// A test of the images is skipped by name where they are left out, and fails when
// REQUIRE_SERVERS is 1.
func TestImagesLeftOut(t *testing.T) {
	t.Setenv("IMAGES", "none")
	for required, want := range map[string]string{
		"": "skip: skipped: IMAGES=none", "1": "fail: REQUIRE_SERVERS=1: IMAGES=none",
	} {
		t.Setenv("REQUIRE_SERVERS", required)
		r := &recorder{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			ImagesForTest(r)
		}()
		<-done
		if r.ended != want {
			t.Errorf("REQUIRE_SERVERS=%s: %q, want %q", required, r.ended, want)
		}
	}
}
