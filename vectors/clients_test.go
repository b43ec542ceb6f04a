package vectors_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
	"github.com/tatami-rate/tatami/vectors"
)

// clients are the runners in the folder clients, each an example of how to call the scripts.
var clients = []string{
	"python/redis_py.py", "javascript/node_redis.js", "javascript/ioredis.js", "ruby/redis_rb.rb",
	"php/phpredis.php", "perl/redis_pm.pl", "shell/redis_cli.sh",
}

// TestSamples checks that clients/README.md shows each runner's marked lines as they are.
func TestSamples(t *testing.T) {
	text, err := os.ReadFile("clients/README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	shown := map[string]string{}
	blocks := regexp.MustCompile("(?s)\n\\[[^]]+\\]\\(([^)]+)\\):\n\n```[a-z]+\n(.*?)```\n").FindAllStringSubmatch(readme, -1)
	for _, block := range blocks {
		shown[block[1]] = block[2]
	}
	if fences := strings.Count(readme, "\n```"); fences != 2*len(clients) || len(shown) != len(clients) {
		t.Errorf("clients/README.md has %d fences and names %d files; want a block for each of %q", fences, len(shown), clients)
	}
	marked := regexp.MustCompile(`(?s)\n(?:#|//) sample\n(.*?)(?:#|//) end\n`)
	for _, client := range clients {
		text, err := os.ReadFile(filepath.Join("clients", client))
		if err != nil {
			t.Fatal(err)
		}
		samples := marked.FindAllStringSubmatch(string(text), -1)
		if len(samples) != 1 {
			t.Errorf("%s has %d samples, want 1", client, len(samples))
		} else if shown[client] != samples[0][1] {
			t.Errorf("clients/README.md shows of %s:\n%s\nthe file has:\n%s", client, shown[client], samples[0][1])
		}
	}
}

// TestClientsFail checks that every client fails what is wrong and passes the rest:
// a test and a stream, as they are, with ranges and expiries, and each with one fault.
func TestClientsFail(t *testing.T) {
	need(t, "redis-server", "redis-cli")
	reply := func(i int) func(f *file) {
		return func(f *file) { f.step()["reply"].([]any)[i] = "7" }
	}
	faults := map[string]func(f *file){
		"sha256":       func(f *file) { f.Groups[0].Streams[0]["sha256"] = strings.Repeat("0", 64) },
		"error":        func(f *file) { f.step()["error"] = "BADARG" },
		"error's word": func(f *file) { f.refuse("BADSTATE gcra_v2: takes 1 key") },
		"error's text": func(f *file) { f.refuse("BADARG gcra_v2: takes 1 key or more") },
		"reply, not error": func(f *file) {
			f.refuse("")
			f.step()["reply"] = []any{"1", "59", "0", "200000000"}
		},
		"status":         reply(0),
		"remaining":      reply(1),
		"retry_after_ns": reply(2),
		"reset_after_ns": reply(3),
		"reply above":    func(f *file) { f.step()["reply"].([]any)[3] = "0..199999999" },
		"reply below":    func(f *file) { f.step()["reply"].([]any)[3] = "200000001..9223372036854775807" },
		"state":          func(f *file) { f.step()["state"] = "37" },
		"state's length": func(f *file) { f.step()["state"] = ".." },
		"state's digit":  func(f *file) { f.step()["state"] = strings.Repeat("..", 18) + "3a" },
		"ttl above":      func(f *file) { f.step()["ttl_ms"] = "0..59999" },
		"ttl below":      func(f *file) { f.step()["ttl_ms"] = "9007199254740992..9007199254740993" },
		"no expiry":      func(f *file) { f.step()["ttl_ms"] = "-1" },
		"no key":         func(f *file) { f.step()["ttl_ms"] = "-2" },
		"expiry stays":   func(f *file) { f.look("5000", "60000..61000") },
		"expiry is gone": func(f *file) { f.look("none", "60000..61000") },
	}
	rights := map[string]func(f *file){
		"right": func(*file) {},
		"ranges": func(f *file) {
			f.step()["reply"] = []any{"0..1", "59..60", "0..9223372036854775807", "200000000..200000001"}
			f.step()["state"] = strings.Repeat("3.", 19)
		},
		"expiry":   func(f *file) { f.look("5000", "1..5000") },
		"two keys": func(f *file) { f.refuse("BADARG gcra_v2: takes 1 key") },
		"no key": func(f *file) {
			f.refuse("BADARG gcra_v2: takes 1 key")
			f.Groups[0].Setting["keys"] = 0
		},
		"prelude": func(f *file) {
			f.Groups[0].Setting["prelude"] = "do return {1, 2, 3, 4} end "
			f.step()["reply"], f.step()["state"], f.step()["ttl_ms"] = []any{"1", "2", "3", "4"}, "", "-2"
		},
		"no expiry": func(f *file) { f.look("none", "-1") },
	}
	dir := t.TempDir()
	var paths []string
	checks := 1 // of 64 bits
	write := func(name string, f file) {
		checks += len(f.Groups[0].Tests) + len(f.Groups[0].Streams)
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(dir, name+".json"))
		if err := os.WriteFile(paths[len(paths)-1], text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range rights {
		f := smallest(t)
		change(&f)
		if name != "right" {
			f.Groups[0].Streams = f.Groups[0].Streams[:0]
		}
		write("right "+name, f)
	}
	for name, fault := range faults {
		f := smallest(t)
		fault(&f)
		if name != "sha256" {
			f.Groups[0].Streams = f.Groups[0].Streams[:0] // one is enough
		}
		write(name, f)
	}

	command := exec.Command("clients/run.sh", paths...)
	command.Env = append(os.Environ(), "REDIS_URL=") // a server of its own
	output, err := command.CombinedOutput()
	if err == nil {
		t.Error("run.sh exits with 0")
	}
	t.Logf("%s", output)
	want := [2]int{checks - len(faults), len(faults)}
	played := 0
	for _, client := range clients {
		t.Run(client, func(t *testing.T) {
			_, lines, _ := strings.Cut("\n"+string(output), "\n"+path.Base(client)+":")
			if why, skipped := strings.CutPrefix(lines, " skipped, "); skipped {
				why, _, _ = strings.Cut(why, "\n")
				if servers.Required() {
					t.Fatal(why)
				}
				t.Skip(why)
			}
			played++
			var passed, failed int
			line := regexp.MustCompile(`(?m)^\d+ passed, \d+ failed$`).FindString(lines)
			if _, err := fmt.Sscanf(line, "%d passed, %d failed", &passed, &failed); err != nil {
				t.Fatalf("no counts: %v", err)
			}
			// By one protocol, or by RESP2 and RESP3.
			if got := [2]int{passed, failed}; got != want && got != [2]int{2 * want[0], 2 * want[1]} {
				t.Errorf("%d passed, %d failed; want %d and %d, or twice that", passed, failed, want[0], want[1])
			}
		})
	}
	// A client that exits with 0 would be among those that passed.
	if want := fmt.Sprintf("0 clients passed, %d failed, ", played); !strings.Contains(string(output), want) {
		t.Errorf("run.sh does not say %q", want)
	}
}

// file is a file of vectors; schema.json has its form.
type file struct {
	Script string         `json:"script"`
	SHA1   string         `json:"sha1"`
	Flags  map[string]any `json:"flags"`
	Groups []group        `json:"groups"`
}

type group struct {
	Comment string           `json:"comment"`
	Argv    []string         `json:"argv"`
	Setting map[string]any   `json:"setting"`
	Tests   []map[string]any `json:"tests"`
	Streams []map[string]any `json:"streams"`
}

// step is the first step of the first test.
func (f *file) step() map[string]any {
	return f.Groups[0].Tests[0]["steps"].([]any)[0].(map[string]any)
}

// refuse has the first call name two keys, and be answered by an error.
func (f *file) refuse(text string) {
	f.Groups[0].Setting["keys"] = 2
	f.step()["error"], f.step()["reply"], f.step()["state"], f.step()["ttl_ms"] = text, []any{}, "", "-2"
}

// look adds a step of cost 0 to the first test, before which its key gets an expiry.
func (f *file) look(expire, ttlMs string) {
	argv := slices.Clone(f.step()["argv"].([]any))
	argv[0] = "0"
	steps := f.Groups[0].Tests[0]["steps"].([]any)
	f.Groups[0].Tests[0]["steps"] = append(steps, map[string]any{"expire": expire, "argv": argv, "error": "",
		"reply": f.step()["reply"], "exact": f.step()["exact"], "state": f.step()["state"], "ttl_ms": ttlMs})
}

// smallest is gcra_v2's file cut down to one test, of one admitted call, and one stream.
func smallest(t *testing.T) file {
	text, err := vectors.Files.ReadFile("gcra_v2.json")
	if err != nil {
		t.Fatal(err)
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	f.Groups = slices.DeleteFunc(f.Groups, func(g group) bool { return len(g.Tests) == 0 || len(g.Streams) == 0 })[:1]
	g := &f.Groups[0]
	g.Tests, g.Streams = g.Tests[:1], g.Streams[:1]
	g.Tests[0]["steps"] = g.Tests[0]["steps"].([]any)[:1]
	if status := f.step()["reply"].([]any)[0]; status != "1" {
		t.Fatalf("the first call of the first test has status %v, want 1", status)
	}
	return f
}
