package vectors_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tatami-rate/tatami/precision/servers"
)

// need skips the test by name when one of these tools is not on PATH, or fails it when
// REQUIRE_SERVERS is 1.
func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil && servers.Required() {
			t.Fatal(err)
		} else if err != nil {
			t.Skipf("skipped: %v", err)
		}
	}
}

// run is a run.sh with a server of its own, whose files are in the folder temp.
func run(t *testing.T, path string) (command *exec.Cmd, temp string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	right := filepath.Join(t.TempDir(), "right.json")
	text, err := json.Marshal(smallest(t))
	if err == nil {
		err = os.WriteFile(right, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	temp = t.TempDir()
	command = exec.CommandContext(ctx, "clients/run.sh", right)
	command.Env = append(os.Environ(), "REDIS_URL=", "TMPDIR="+temp, "PATH="+path)
	// A process that it leaves behind would hold its output open.
	command.WaitDelay = 10 * time.Second
	return command, temp
}

// nothingLeft checks that no file is left in run.sh's folder, its server's among them.
func nothingLeft(t *testing.T, temp string) {
	t.Helper()
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRunNamesTools checks that run.sh names a tool that its server needs when it is not
// on PATH, before it starts anything.
func TestRunNamesTools(t *testing.T) {
	for _, missing := range []string{"redis-server", "redis-cli"} {
		t.Run(missing, func(t *testing.T) {
			path := t.TempDir()
			for _, tool := range []string{"sh", "dirname", "mktemp", "od", "cat", "grep", "rm", "sleep", "redis-server", "redis-cli"} {
				if tool == missing {
					continue
				}
				found, err := exec.LookPath(tool)
				if err == nil {
					err = os.Symlink(found, filepath.Join(path, tool))
				}
				if err != nil && !strings.HasPrefix(tool, "redis-") {
					t.Fatal(err)
				}
			}
			command, temp := run(t, path)
			output, err := command.CombinedOutput()
			want := "run.sh: " + missing + " is not on PATH, and REDIS_URL names no server\n"
			// Without either the first one is named.
			if _, none := exec.LookPath("redis-server"); none != nil {
				want = strings.Replace(want, missing, "redis-server", 1)
			}
			if err == nil || string(output) != want {
				t.Errorf("run.sh: %v, %q; want an error and %q", err, output, want)
			}
			nothingLeft(t, temp)
		})
	}
}

// TestRunStopsItsServer checks that run.sh stops its server when a signal ends it, and
// when nobody reads its output.
func TestRunStopsItsServer(t *testing.T) {
	need(t, "redis-server", "redis-cli")
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			// A signal that is ignored here, as under nohup, would be there too.
			caught := make(chan os.Signal, 1)
			ossignal.Notify(caught, signal)
			defer ossignal.Stop(caught)
			command, temp := run(t, os.Getenv("PATH"))
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			pid := serverPID(t, temp)
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if err := command.Wait(); err == nil {
				t.Error("run.sh exits with 0")
			}
			if err := syscall.Kill(pid, 0); err == nil {
				t.Errorf("its server, process %d, was left behind", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			nothingLeft(t, temp)
		})
	}
}

// serverPID waits until the server of a run.sh is ready, and reads its process id from
// its log.
func serverPID(t *testing.T, temp string) int {
	ready := regexp.MustCompile(`(?m)^(\d+):.*Ready to accept connections`)
	for began := time.Now(); time.Since(began) < 30*time.Second; time.Sleep(time.Millisecond) {
		logs, _ := filepath.Glob(filepath.Join(temp, "*", "log"))
		for _, log := range logs {
			text, _ := os.ReadFile(log) // it may not be there yet
			if found := ready.FindSubmatch(text); found != nil {
				pid, err := strconv.Atoi(string(found[1]))
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatal("no server is ready")
	return 0
}
