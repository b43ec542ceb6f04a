package servers_test

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
	"github.com/tatami-rate/tatami/precision/servers/containers"
)

// recorder is a test that notes how it ends.
type recorder struct{ ended string }

func (*recorder) Helper()        {}
func (*recorder) Cleanup(func()) {}

func (r *recorder) Skipf(format string, args ...any) {
	r.ended = "skip: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.ended = "fail: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ends runs a test, and tells how it ends.
func ends(test func(tb servers.TB)) string {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.ended
}

// luacheck that is not on PATH is named by make check, and a failure when REQUIRE_SERVERS is 1.
func TestLacksLuacheck(t *testing.T) {
	make, err := exec.LookPath("make")
	if err != nil {
		servers.Lacks(t, err)
	}
	for required, want := range map[string]string{
		"": "skipped: luacheck is not on PATH\n", "1": "REQUIRE_SERVERS=1: luacheck is not on PATH\n",
	} {
		command := exec.Command(make, "-s", "-C", "../..", "luacheck")
		command.Env = []string{"PATH=", "REQUIRE_SERVERS=" + required}
		output, err := command.CombinedOutput()
		if (err != nil) != (required == "1") || !strings.Contains(string(output), want) {
			t.Errorf("REQUIRE_SERVERS=%s: %v, %q, want %q", required, err, output, want)
		}
	}
}

// What is not to be had is named, and a failure when REQUIRE_SERVERS is 1.
func TestLacks(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("IMAGES", "none")
	for name, test := range map[string]func(tb servers.TB){
		"no gappa":                func(tb servers.TB) { servers.Lacks(tb, errors.New("no gappa")) },
		"no redis-server on PATH": func(tb servers.TB) { servers.ForTest(tb) },
		"IMAGES=none":             func(tb servers.TB) { containers.ImagesForTest(tb) },
	} {
		for required, want := range map[string]string{
			"": "skip: skipped: " + name, "0": "skip: skipped: " + name, "1": "fail: REQUIRE_SERVERS=1: " + name,
		} {
			t.Setenv("REQUIRE_SERVERS", required)
			if got := ends(test); got != want {
				t.Errorf("REQUIRE_SERVERS=%s: %q, want %q", required, got, want)
			}
		}
	}
}
