package containers

import (
	"errors"
	"slices"
	"testing"
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
