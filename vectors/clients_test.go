package vectors_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
	"github.com/tatami-rate/tatami/vectors"
)

// clients are the files to copy in the folder clients. Beside each stand its runner, play_ before its name, and an
// example of how to call it.
var clients = []string{
	"python/redis_py.py", "javascript/node_redis.js", "javascript/ioredis.js", "ruby/redis_rb.rb",
	"php/phpredis.php", "perl/redis_pm.pl", "shell/redis_cli.sh",
}

// example is the path of a client's example.
func example(client string) string {
	dir, name := path.Split(client)
	return path.Join("clients", dir, "example_"+name)
}

// TestExamples checks that clients/README.md shows each client's example as it is, and that
// it does what it says.
func TestExamples(t *testing.T) {
	need(t, "redis-server")
	text, err := os.ReadFile("clients/README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(text)
	shown := map[string]string{}
	blocks := regexp.MustCompile("(?s)\n\\[[^]]+\\]\\(([^)]+)\\)[^\n]*:\n\n```[a-z]+\n(.*?)```\n").FindAllStringSubmatch(readme, -1)
	for _, block := range blocks {
		shown[block[1]] = block[2]
	}
	if fences := strings.Count(readme, "\n```"); fences != 2*len(clients) || len(shown) != len(clients) {
		t.Errorf("clients/README.md has %d fences and names %d files; want a block for each of %q", fences, len(shown), clients)
	}
	for _, client := range clients {
		t.Run(client, func(t *testing.T) {
			text, err := os.ReadFile(example(client))
			if err != nil {
				t.Fatal(err)
			}
			if shown[client] != string(text) {
				t.Errorf("clients/README.md shows:\n%s\n%s has:\n%s", shown[client], example(client), text)
			}
			server := servers.ForTest(t)
			command := exec.Command("vectors/clients/run.sh")
			command.Dir = ".."
			command.Env = append(os.Environ(), "REDIS_URL="+server.URL, "CLIENT="+client, "DO=example")
			output, err := command.CombinedOutput()
			skipUninstalled(t, client, string(output))
			if err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			db := server.Client()
			defer db.Close()
			for key, form := range map[string]string{
				"rl:{42}": "^[0-9]{19}$", "rl:{42}:calls": "^[0-9]{19}$",
				"rl:{42}:tokens": "^[0-9]{19} 302400000000 [0-9]{19}$", // 3500 of a million a day
			} {
				if state := db.Get(t.Context(), key).Val(); !regexp.MustCompile(form).MatchString(state) {
					t.Errorf("%s holds %q, want %s", key, state, form)
				}
			}
		})
	}
}

// skipUninstalled skips the test, or fails it when REQUIRE_SERVERS is 1, when run.sh says that a client is
// not installed.
func skipUninstalled(t *testing.T, client, output string) {
	t.Helper()
	_, why, skipped := strings.Cut("\n"+output, "\n"+path.Base(client)+": skipped, ")
	why, _, _ = strings.Cut(why, "\n")
	if skipped && servers.Required() {
		t.Fatal(why)
	}
	if skipped {
		t.Skip(why)
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
		"state":          func(f *file) { f.key(0, "state", "37") },
		"state's length": func(f *file) { f.key(0, "state", "..") },
		"state's digit":  func(f *file) { f.key(0, "state", strings.Repeat("..", 18)+"3a") },
		"ttl above":      func(f *file) { f.key(0, "ttl_ms", "0..59999") },
		"ttl below":      func(f *file) { f.key(0, "ttl_ms", "9007199254740992..9007199254740993") },
		"no expiry":      func(f *file) { f.key(0, "ttl_ms", "-1") },
		"no key":         func(f *file) { f.key(0, "ttl_ms", "-2") },
		"expiry stays":   func(f *file) { f.look("5000", "60000..61000") },
		"expiry is gone": func(f *file) { f.look("none", "60000..61000") },
	}
	// On two keys, of which the second is the faulty one.
	of := func(i int, text string) func(f *file) {
		return func(f *file) { f.step()["reply"].([]any)[3].([]any)[i] = text }
	}
	severalFaults := map[string]func(f *file){
		"status": of(0, "7"), "remaining": of(1, "7"), "retry_after_ns": of(2, "7"), "reset_after_ns": of(3, "7"),
		"receipt": of(4, "7"), "range": of(3, "0..7"),
		"state":         func(f *file) { f.key(1, "state", "37") },
		"ttl_ms":        func(f *file) { f.key(1, "ttl_ms", "-1") },
		"a key's reply": func(f *file) { f.step()["reply"] = f.step()["reply"].([]any)[:3] },
		"key before":    func(f *file) { f.Groups[0].Tests[0]["keys"].([]any)[1] = map[string]any{"kind": "list", "hex": ""} },
	}
	rights := map[string]func(f *file){
		"right": func(*file) {},
		"ranges": func(f *file) {
			f.step()["reply"] = []any{"0..1", "59..60", "0..9223372036854775807", "200000000..200000001"}
			f.key(0, "state", strings.Repeat("3.", 19))
		},
		"expiry":   func(f *file) { f.look("5000", "1..5000") },
		"two keys": func(f *file) { f.refuse("BADARG gcra_v2: takes 1 key") },
		"no key": func(f *file) {
			f.refuse("BADARG gcra_v2: takes 1 key")
			f.Groups[0].Setting["keys"] = "none"
		},
		"prelude": func(f *file) {
			f.Groups[0].Setting["prelude"] = "do return {1, 2, 3, 4} end "
			f.step()["reply"] = []any{"1", "2", "3", "4"}
			f.key(0, "state", "")
			f.key(0, "ttl_ms", "-2")
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
	write("limits", several(t))
	for name, fault := range severalFaults {
		f := several(t)
		fault(&f)
		write("limits "+name, f)
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
	want := [2]int{checks - len(faults) - len(severalFaults), len(faults) + len(severalFaults)}
	played := 0
	for _, client := range clients {
		t.Run(client, func(t *testing.T) {
			skipUninstalled(t, client, string(output))
			_, lines, _ := strings.Cut("\n"+string(output), "\n"+path.Base(client)+":")
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

// key sets what the first step says of a key.
func (f *file) key(i int, field, text string) { f.step()[field].([]any)[i] = text }

// refuse has the first call name two keys, and be answered by an error.
func (f *file) refuse(text string) {
	f.Groups[0].Setting["keys"] = "again"
	f.step()["error"], f.step()["reply"] = text, []any{}
	f.key(0, "state", "")
	f.key(0, "ttl_ms", "-2")
}

// look adds a step of cost 0 to the first test, before which its key gets an expiry.
func (f *file) look(expire, ttlMs string) {
	argv := slices.Clone(f.step()["argv"].([]any))
	argv[0] = "0"
	steps := f.Groups[0].Tests[0]["steps"].([]any)
	f.Groups[0].Tests[0]["steps"] = append(steps, map[string]any{"expire": []any{expire}, "argv": argv, "error": "",
		"reply": f.step()["reply"], "exact": f.step()["exact"], "state": f.step()["state"], "ttl_ms": []any{ttlMs}})
}

// several is limits_v1's file cut down to one test, whose first call is admitted on two fresh keys.
func several(t *testing.T) file {
	f := read(t, "limits_v1.json")
	for _, g := range f.Groups {
		for _, test := range g.Tests {
			first := test["steps"].([]any)[0].(map[string]any)
			fresh := map[string]any{"kind": "none", "hex": ""}
			if reply := first["reply"].([]any); len(reply) == 4 && reply[0] == "1" && reply[3].([]any)[4] != "" && g.Setting["prelude"] == "" &&
				reflect.DeepEqual(test["keys"], []any{fresh, fresh}) {
				g.Tests, g.Streams = []map[string]any{test}, []map[string]any{}
				f.Groups = []group{g}
				return f
			}
		}
	}
	t.Fatal("limits_v1.json has no test that begins with an admitted call on two fresh keys")
	return f
}

// read reads a file of vectors.
func read(t *testing.T, name string) (f file) {
	text, err := vectors.Files.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// smallest is gcra_v2's file cut down to one test, of one admitted call, and one stream.
func smallest(t *testing.T) file {
	f := read(t, "gcra_v2.json")
	f.Groups = slices.DeleteFunc(f.Groups, func(g group) bool { return len(g.Tests) == 0 || len(g.Streams) == 0 })[:1]
	g := &f.Groups[0]
	g.Tests, g.Streams = g.Tests[:1], g.Streams[:1]
	g.Tests[0]["steps"] = g.Tests[0]["steps"].([]any)[:1]
	if status := f.step()["reply"].([]any)[0]; status != "1" {
		t.Fatalf("the first call of the first test has status %v, want 1", status)
	}
	return f
}
