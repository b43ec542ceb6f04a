package vectors_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
)

// TestAllow plays the shell's allow with redis-cli in each of its forms of output:
// allow succeeds when the call is admitted and only then, and prints the same in all.
func TestAllow(t *testing.T) {
	need(t, "redis-server", "redis-cli", "sh", "sha1sum")
	text, err := os.ReadFile("clients/shell/redis_cli.sh")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "allow.sh")
	if err := os.WriteFile(program, append(text, allowProgram...), 0o644); err != nil {
		t.Fatal(err)
	}
	port := servers.ForTest(t).URL[len("redis://127.0.0.1:"):]

	terminal := []string{"script", "-qec", "sh " + program, "/dev/null"}
	for _, mode := range []struct {
		name, options string
		command       []string
		needs         string // what `redis-cli --help` or `script --version` has to say
	}{
		{"raw", "", []string{"sh", program}, ""},
		{"no-raw", "--no-raw", []string{"sh", program}, ""},
		{"csv", "--csv", []string{"sh", program}, ""},
		{"json", "--json", []string{"sh", program}, "--json"},
		{"RESP3", "-3", []string{"sh", program}, ""},
		{"RESP3 no-raw", "-3 --no-raw", []string{"sh", program}, ""},
		{"as to a terminal", "", []string{"env", "FAKETTY=1", "sh", program}, ""}, // redis-cli's own
		{"terminal", "", terminal, "util-linux"},
		{"terminal RESP3", "-3", terminal, "util-linux"},
	} {
		t.Run(mode.name, func(t *testing.T) {
			help, _ := exec.Command("redis-cli", "--help").CombinedOutput()
			if version, err := exec.Command("script", "--version").Output(); err == nil {
				help = append(help, version...)
			}
			if !bytes.Contains(help, []byte(mode.needs)) && !servers.Required() {
				t.Skipf("skipped: neither redis-cli nor script knows %q", mode.needs)
			}
			command := exec.Command(mode.command[0], mode.command[1:]...)
			command.Env = append(os.Environ(), "redis=redis-cli -p "+port+" "+mode.options, "script=../lua/gcra_v2.lua")
			output, err := command.CombinedOutput()
			got := strings.ReplaceAll(string(output), "\r\n", "\n")
			got = regexp.MustCompile(`(?m)^([A-Z]+) .*$`).ReplaceAllString(got, "$1") // an error's first word
			if err != nil || got != allowOutput {
				t.Errorf("%v, allow prints\n%s\nwant\n%s", err, got, allowOutput)
			}
		})
	}
}

// allowProgram makes calls of which one is admitted, after NOSCRIPT, and one refused; then
// one whose cost never fits, one that only looks, errors of the script and of the server,
// a script that cannot be loaded, and no server.
const allowProgram = `
sha=$(sha1sum <"$script" | cut -d ' ' -f 1)
$redis FLUSHALL >/dev/null
$redis SCRIPT FLUSH >/dev/null
$redis RPUSH list a >/dev/null
try() { if allow "$@"; then echo "admitted"; else echo "not admitted"; fi; }
now=1700000000000000000
try key 1 60000000000 1 1 $now
try key 1 60000000000 1 1 $now
try key 1 60000000000 1 2 $now
try key 1 60000000000 1 0 $now
try key 1 60000000000 1 1 1$now
try list 1 60000000000 1 1 $now
sha=1111111111111111111111111111111111111111
try key 1 60000000000 1 1 $now
redis='redis-cli -p 1'
try key 1 60000000000 1 1 $now 2>/dev/null
`

const allowOutput = `1
0
0
60000000000
admitted
0
0
60000000000
60000000000
not admitted
-1
0
-1
60000000000
not admitted
1
0
0
60000000000
admitted
BADARG
not admitted
WRONGTYPE
not admitted
NOSCRIPT
not admitted

not admitted
`
