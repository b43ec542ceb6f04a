package generate

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	rand2 "math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tatami-rate/tatami/emulator"
	"github.com/tatami-rate/tatami/lua"
	"github.com/tatami-rate/tatami/precision"
	"github.com/tatami-rate/tatami/precision/servers"
	"github.com/tatami-rate/tatami/precision/servers/containers"
	"github.com/tatami-rate/tatami/vectors"
)

// files are the vectors as they are committed, in the order of Scripts.
func files(t *testing.T) (parsed []*File, texts [][]byte) {
	t.Helper()
	for _, script := range Scripts {
		text, err := vectors.Files.ReadFile(string(script) + ".json")
		if err != nil {
			t.Fatal(err)
		}
		f, err := Read(text)
		if err != nil {
			t.Fatalf("%s.json: %v", script, err)
		}
		parsed, texts = append(parsed, f), append(texts, text)
	}
	return parsed, texts
}

func emulatorPort(t *testing.T, script precision.Script) Port {
	t.Helper()
	p, err := NewServerPort(t.Context(), emulator.New(), lua.Assets[string(script)], "vector")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The files are what the generator writes, with the emulator in the server's place. What
// differs is named.
func TestFilesAreUpToDate(t *testing.T) {
	committed, texts := files(t)
	for i, script := range Scripts {
		f, err := Make(script, emulatorPort(t, script), true)
		if err != nil {
			t.Fatal(err)
		}
		text, err := f.Text()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(text, texts[i]) {
			continue
		}
		t.Errorf("%s.json is not what go generate ./vectors writes", script)
		for _, difference := range differences(t, committed[i], f) {
			t.Errorf("%s.json: %s", script, difference)
		}
	}
	if unused := Unused(committed); unused != nil {
		t.Errorf("flags that no test has: %q", unused)
	}
}

// differences names what of a file differs from the one wanted, down to the field of a
// step, and not where in it a test stands.
func differences(t *testing.T, got, want *File) []string {
	t.Helper()
	parts := func(f *File) map[string]any {
		parts := map[string]any{"script": f.Script, "sha1": f.SHA1}
		for name, flag := range f.Flags {
			parts["flag "+name] = flag
		}
		for _, g := range f.Groups {
			group := Group{g.Comment, g.Argv, g.Setting, []Test{}, []Stream{}}
			for _, test := range g.Tests {
				parts[fmt.Sprintf("id %d", test.ID)] = map[string]any{"group": group, "test": test}
			}
			for _, s := range g.Streams {
				parts[fmt.Sprintf("id %d", s.ID)] = map[string]any{"group": group, "stream": s}
			}
		}
		return parts
	}
	var trees [2]any
	for i, f := range []*File{got, want} {
		text, err := json.Marshal(parts(f))
		if err == nil {
			err = json.Unmarshal(text, &trees[i])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return between("", trees[0], trees[1])
}

// between names what differs of two values of JSON, each by its path.
func between(path string, got, want any) (all []string) {
	fields := func(value any) map[string]any {
		switch value := value.(type) {
		case map[string]any:
			return value
		case []any:
			fields := map[string]any{}
			for i, element := range value {
				fields[fmt.Sprint(i)] = element
			}
			return fields
		}
		return nil
	}
	gotFields, wantFields := fields(got), fields(want)
	if gotFields == nil || wantFields == nil {
		if !reflect.DeepEqual(got, want) {
			all = append(all, fmt.Sprintf("%s: %v, want %v", strings.TrimPrefix(path, ", "), got, want))
		}
		return all
	}
	both := maps.Clone(gotFields)
	maps.Copy(both, wantFields)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		path := path + ", " + name
		got, isThere := gotFields[name]
		want, isWanted := wantFields[name]
		switch {
		case !isThere:
			all = append(all, fmt.Sprintf("%s: is missing", strings.TrimPrefix(path, ", ")))
		case !isWanted:
			all = append(all, fmt.Sprintf("%s: %.100v, want none", strings.TrimPrefix(path, ", "), got))
		default:
			all = append(all, between(path, got, want)...)
		}
	}
	return all
}

// Whatever is changed in a file is named: a text, a number, something that is left out.
func TestChangesAreNamed(t *testing.T) {
	const changes = 10 // of each file
	rng := rand2.New(rand2.NewPCG(3, 3))
	parsed, texts := files(t)
	for i, f := range parsed {
		for n := 0; n < changes; {
			var tree any
			if err := json.Unmarshal(texts[i], &tree); err != nil {
				t.Fatal(err)
			}
			tree, what := changed(tree, rng)
			if strings.HasSuffix(what, nothing) {
				continue
			}
			n++
			text, err := json.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			var wrong File // not by Read, which refuses some changes
			if err := json.Unmarshal(text, &wrong); err != nil {
				t.Fatal(err)
			}
			named := differences(t, &wrong, f)
			if len(named) == 0 {
				t.Errorf("%s.json: change %d, of %s, is not named", f.Script, n, what)
			}
			t.Logf("%s: %.200q", what, named)
		}
	}
}

// changed changes one thing of a value of JSON, and says which.
func changed(value any, rng *rand2.Rand) (any, string) {
	switch value := value.(type) {
	case string:
		return value + "1", "a text"
	case float64:
		return value + 1, "a number"
	case map[string]any:
		names := slices.Sorted(maps.Keys(value))
		if slices.Contains(names, "groups") && rng.IntN(4) > 0 {
			names = []string{"groups"} // where most of a file is
		}
		name := names[rng.IntN(len(names))]
		var what string
		value[name], what = changed(value[name], rng)
		return value, name + ", " + what
	case []any:
		if len(value) == 0 {
			return value, nothing
		}
		i := rng.IntN(len(value))
		if rng.IntN(8) == 0 {
			return slices.Delete(value, i, i+1), "an element less"
		}
		var what string
		value[i], what = changed(value[i], rng)
		return value, fmt.Sprint(i) + ", " + what
	}
	return value, nothing
}

const nothing = "nothing"

// A file has enough tests, each id once, and a description for each flag that it uses
// and for no other.
func TestIDsAndFlags(t *testing.T) {
	parsed, _ := files(t)
	for _, f := range parsed {
		ids, used, tests := map[int]bool{}, map[string]bool{}, 0
		see := func(id int, flags []string) {
			if ids[id] {
				t.Errorf("%s: the id %d is there twice", f.Script, id)
			}
			ids[id] = true
			for _, flag := range flags {
				used[flag] = true
			}
		}
		for _, g := range f.Groups {
			for _, test := range g.Tests {
				see(test.ID, test.Flags)
				tests++
			}
			for _, s := range g.Streams {
				see(s.ID, s.Flags)
			}
		}
		if tests < 150 {
			t.Errorf("%s: %d tests, want 150", f.Script, tests)
		}
		if got, want := slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(f.Flags)); !slices.Equal(got, want) {
			t.Errorf("%s: flags used %q, described %q", f.Script, got, want)
		}
	}
}

// The figures that are published of the algorithms: the tests by id, and how many units
// each admits.
func TestFigures(t *testing.T) {
	gcra := map[int]int{87: 11, 88: 109, 89: 100, 90: 29, 91: 20, 92: 59}
	window := map[int]int{1: 18, 22: 20, 23: 100, 24: 100, 25: 30, 82: 10, 83: 91, 84: 91, 85: 28}
	parsed, _ := files(t)
	for i, figures := range []map[int]int{gcra, gcra, window} {
		seen := 0
		for _, g := range parsed[i].Groups {
			for _, test := range g.Tests {
				want, ok := figures[test.ID]
				if !ok {
					continue
				}
				seen++
				admitted := 0
				for _, s := range test.Steps {
					if cost, _ := whole(s.Argv[0]); s.Reply[0] == "1" {
						admitted += int(cost)
					}
				}
				if admitted != want || test.ID > 1 && !strings.Contains(test.Comment, fmt.Sprint(want)) {
					t.Errorf("%s: test %d, %s: %d admitted, want %d", parsed[i].Script, test.ID, test.Comment, admitted, want)
				}
			}
		}
		if seen != len(figures) {
			t.Errorf("%s: %d of %d figures are tests", parsed[i].Script, seen, len(figures))
		}
	}
}

// An id that is taken, one that is retired, and a flag without a description are
// refused.
func TestMakeRefuses(t *testing.T) {
	good := test{1, "a", "BurstOffByOne", none, from(epoch, calls(1, 0))}
	for _, c := range []struct {
		tests   []test
		retired []int
		want    string
	}{
		{[]test{good, good}, nil, "the id 1"},
		{[]test{good}, []int{1}, "the id 1"},
		{[]test{{1, "a", "NoSuchFlag", none, good.steps}}, nil, "NoSuchFlag is not described"},
		{[]test{{1, "a", "BurstOffByOne", tat(epoch), from(0, calls(1, 0))}}, nil, "needs the flag FarWait"},
	} {
		groups := []group{{argv: "300 60000000000 60", tests: c.tests}}
		_, err := makeFile(precision.GCRAV2, groups, c.retired, emulatorPort(t, precision.GCRAV2), true)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// An id stays with its test: a comment may be put better, or calls be changed, not both.
func TestKeeps(t *testing.T) {
	make := func(tests ...test) *File {
		t.Helper()
		groups := []group{{argv: "300 60000000000 60", tests: tests}}
		f, err := makeFile(precision.GCRAV2, groups, nil, emulatorPort(t, precision.GCRAV2), true)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one, two := from(epoch, calls(1, 0)), from(epoch, calls(2, 0))
	a := test{1, "a", "BurstOffByOne", none, one}
	b := test{2, "b", "BurstOffByOne", none, two}
	older := make(a, b)
	for _, c := range []struct {
		newer   *File
		retired []int
		want    string
	}{
		{make(b, a), nil, ""},
		{make(test{1, "better", "BurstOffByOne", none, one}, b), nil, ""},
		{make(test{1, "a", "BurstOffByOne", none, two}, b), nil, ""},
		{make(a), []int{2}, ""},
		{make(a), nil, `the id 2 of "b" is gone`},
		{make(test{1, "other", "BurstOffByOne", tat(epoch), one}, b), nil, `the id 1 of "a" is now that of "other"`},
		{make(test{2, "a", "BurstOffByOne", none, one}, test{1, "b", "BurstOffByOne", none, two}), nil, "is now that of"},
	} {
		err := c.newer.keeps(older, c.retired)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// An answer that is beyond the claim is not written down: here those of another script, of a
// window that rounds what it carries down, and of the usual refund.
func TestMakeRefusesWrongAnswers(t *testing.T) {
	rounded := strings.Replace(lua.WindowV1, "carried = carried + 1", "carried = carried + 0", 1)
	refund := strings.Replace(lua.LimitsV1, "c = worth\n", "c = math.min(c, ahead)\n", 1)
	if rounded == lua.WindowV1 || refund == lua.LimitsV1 {
		t.Fatal("a script has another text")
	}
	for script, other := range map[precision.Script]string{
		precision.GCRAV1: lua.GCRAV2, precision.GCRAV2: lua.GCRAV1, precision.WindowV1: rounded, precision.LimitsV1: refund,
	} {
		p, err := NewServerPort(t.Context(), emulator.New(), other, "vector")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Make(script, p, true); !errors.Is(err, errBeyond) {
			t.Errorf("%s that answers otherwise: %v", script, err)
		}
	}
}

// Nor is the hash of a stream whose answers are wrong.
func TestMakeRefusesWrongStreams(t *testing.T) {
	for _, c := range []struct{ text, nowNs, want string }{
		{lua.GCRAV2, decimal(epoch), ""},
		{strings.Replace(lua.GCRAV2, "local tau = interval * burst", "local tau = interval * (burst - 1)", 1), decimal(epoch), "beyond"},
		{strings.Replace(lua.GCRAV2, "expiry_s - now_s + 61)", "expiry_s - now_s + 59)", 1), decimal(epoch), "beyond"},
	} {
		p, err := NewServerPort(t.Context(), emulator.New(), c.text, "vector")
		if err != nil {
			t.Fatal(err)
		}
		_, err = makeFile(precision.GCRAV2, []group{{argv: "300 60000000000 60",
			streams: []stream{{1, "a", "Drift", c.nowNs, 100}}}}, nil, p, true)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// A step has what another clock makes of it as well, but never another error or status, or a
// state of another length.
func TestWiden(t *testing.T) {
	step := func() *Step {
		return &Step{State: []string{"3132"}, Reply: Reply{"1", "2", "0", "7"}, Exact: Reply{"1", "2", "0", "6"}, TTLMs: []Range{"10"}}
	}
	for _, c := range []struct {
		what   string
		change func(s *Step)
		want   *Step // nil: an error
	}{
		{"nothing", func(*Step) {}, step()},
		{"digit, waits and ttl", func(s *Step) { s.State[0], s.Reply[3], s.Exact[3], s.TTLMs[0] = "3142", "9", "5", "8" },
			&Step{State: []string{"31.2"}, Reply: Reply{"1", "2", "0", "7..9"}, Exact: Reply{"1", "2", "0", "5..6"}, TTLMs: []Range{"8..10"}}},
		{"error", func(s *Step) { s.Error = "BADARG" }, nil},
		{"length of the state", func(s *Step) { s.State[0] = "313233" }, nil},
		{"status", func(s *Step) { s.Reply[0] = "0" }, nil},
		{"exact status", func(s *Step) { s.Exact[0] = "0" }, nil},
		{"wait that is none", func(s *Step) { s.Reply[2] = "x" }, nil},
		{"ttl that is none", func(s *Step) { s.TTLMs[0] = "x" }, nil},
	} {
		got, other := step(), step()
		c.change(other)
		if err := got.widen(other); (err == nil) != (c.want != nil) || c.want != nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("another %s: %v, %+v, want %+v", c.what, err, got, c.want)
		}
	}
}

// Which ranges are below a number: those whose end is, and no text that is none.
func TestBelow(t *testing.T) {
	for r, want := range map[Range]bool{"6": true, "7": false, "8": false, "5..6": true, "5..7": false, "5..8": false, "x": false, "": false} {
		if r.below(7) != want {
			t.Errorf("%q is below 7: %v", r, !want)
		}
	}
}

// What a setting says of the commands stands in the prelude beside what it says of a %d.
func TestPreludeHasAll(t *testing.T) {
	s := usual.at(serverUs).on32Bits().complete()
	for _, part := range []string{"name == 'TIME'", narrowLong} {
		if !strings.Contains(s.Prelude, part) {
			t.Errorf("the prelude lacks %q: %s", part, s.Prelude)
		}
	}
}

// The first value that is none of JSON is the error, whatever comes after it.
func TestWriterKeepsTheFirstError(t *testing.T) {
	w := &writer{}
	w.add("%s %s", 1, make(chan int))
	first := w.err
	w.fail(errors.New("another"))
	w.fail(nil)
	if first == nil || w.err != first {
		t.Errorf("got %v, and then %v", first, w.err)
	}
}

// A key of the native port lives through the millisecond in which it expires, as a server's.
func TestNativeKeyExpires(t *testing.T) {
	for afterMs, want := range map[int64]string{0: "BADSTATE", 1000: "BADSTATE", 1001: ""} {
		p := NewNativePort(precision.GCRAV2)
		if err := errors.Join(p.Hold([]Key{holding("hello").key}), p.Expire([]string{"1000"})); err != nil {
			t.Fatal(err)
		}
		p.Set(epoch + afterMs*ms)
		_, refused, err := p.Call([]string{"300", "60000000000", "60", "1", decimal(epoch)})
		if word, _, _ := strings.Cut(refused, " "); err != nil || word != want {
			t.Errorf("after %d ms of 1000: %q, want %q: %v", afterMs, refused, want, err)
		}
	}
}

// Errors that no script may answer, and a refused SET that asks for another expiry, are not
// written down; nor is a SET refused that is not asked for.
func TestMakeRefusesWrongErrors(t *testing.T) {
	one := from(epoch, calls(1, 0))
	for _, c := range []struct {
		was, is string // of the script
		setting *Setting
		key     held
		steps   []request
		want    string
	}{
		{"BADARG gcra_v2: cost", "BADARG gcra_v1: cost", nil, none, from(epoch, calls(-1, 0)), `want "BADARG gcra_v2: "`},
		{"BADSTATE gcra_v2: the", "BADSTATE: the", nil, holding("a"), one, `want "BADSTATE gcra_v2: "`},
		{"#KEYS ~= 1", "#KEYS == 0", &Setting{Keys: keysAndFirst}, none, one, `want "BADARG gcra_v2: "`},
		{"return time --", "return {1, 2, 3, 4} --", usual.at(serverUs).refusing("TIME"), none, []request{by("1")}, `want "REFUSED TIME"`},
		{"now_s + 61", "now_s + 60", usual.refusing("SET"), none, one, `error "REFUSED SET EX 60", want "REFUSED SET EX 61"`},
		{"'KEEPTTL'", "'XX', 'KEEPTTL'", usual.at(serverUs).refusing("SET"), tat(serverUs * us).expiring(),
			[]request{by("1")}, `want "REFUSED SET KEEPTTL"`},
		{"return done\n", "\n", usual.refusing("SET"), none, one, `error "", want "REFUSED SET EX 61"`},
		{"", "", usual.refusing("SET"), none, from(epoch, calls(0, 0)), "a SET is refused"},
	} {
		text := strings.Replace(lua.GCRAV2, c.was, c.is, 1)
		if c.was != "" && text == lua.GCRAV2 {
			t.Fatalf("gcra_v2 has no %q", c.was)
		}
		p, err := NewServerPort(t.Context(), emulator.New(), text, "vector")
		if err != nil {
			t.Fatal(err)
		}
		groups := []group{{argv: "300 60000000000 60", setting: c.setting, tests: []test{{1, "a", "Drift", c.key, c.steps}}}}
		if _, err := makeFile(precision.GCRAV2, groups, nil, p, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: got %v, want %q", c.is, c.was, err, c.want)
		}
	}
}

// What depends on the server's clock and is not said to is not written down.
func TestMakeRefusesWhatTheClockDecides(t *testing.T) {
	for _, c := range []struct {
		test test
		want string
	}{
		{test{1, "rested after 5 s", "Drift", none, []request{by("60"), by("25")}}, "by another clock"},
		{test{1, "a TAT of 2026", "Drift FarWait", tat(epoch), []request{by("1")}}, "by another clock"},
	} {
		groups := []group{{argv: "300 60000000000 60", tests: []test{c.test}}}
		_, err := makeFile(precision.GCRAV2, groups, nil, emulatorPort(t, precision.GCRAV2), true)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.test.comment, err, c.want)
		}
	}
}

func TestSchema(t *testing.T) {
	text, err := vectors.Files.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	closed(t, "schema.json", parsed)
	validate := func(text []byte) error {
		file, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return schema.Validate(file)
	}
	parsedFiles, texts := files(t)
	for i, text := range texts {
		if err := validate(text); err != nil {
			t.Errorf("%s: %v", Scripts[i], err)
		}
	}

	// The schema and Read refuse a key more, and one less, anywhere.
	small := parsedFiles[0]
	small.Groups = small.Groups[:1]
	small.Groups[0].Tests = small.Groups[0].Tests[:1]
	good, err := small.Text()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(good); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{`"script":`, `"sha1":`, `"flags":`, `"kind":`, `"fault":`, `"source":`, `"groups":`, `"comment":`, `"argv":`,
		`"tests":`, `"streams":`, `"id":`, `"keys":"`, `"keys": [`, `{"kind":`, `"hex":`, `"steps":`, `"expire":`, `"error":`, `"reply":`, `"exact":`, `"state":`,
		`"ttl_ms":`, `"now_ns":`, `"cost":`, `"calls":`, `"sha256":`} {
		name := field[strings.Index(field, `"`):]
		for _, other := range []string{`"other": 1, ` + name, `"other":` + name[strings.Index(name, ":")+1:]} {
			other = strings.TrimSuffix(field, name) + other
			if !bytes.Contains(good, []byte(field)) {
				t.Fatalf("no %s in the file", field)
			}
			wrong := bytes.Replace(good, []byte(field), []byte(other), 1)
			if validate(wrong) == nil {
				t.Errorf("the schema takes %s in place of %s", other, field)
			}
			if _, err := Read(wrong); err == nil {
				t.Errorf("Read takes %s in place of %s", other, field)
			}
		}
	}
}

// closed checks that every object of a schema with properties requires all of them and
// takes no other.
func closed(t *testing.T, path string, schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		if properties, ok := schema["properties"].(map[string]any); ok && schema["type"] == "object" {
			var required []string
			names, _ := schema["required"].([]any)
			for _, name := range names {
				required = append(required, fmt.Sprint(name))
			}
			slices.Sort(required)
			if !slices.Equal(required, slices.Sorted(maps.Keys(properties))) || schema["additionalProperties"] != false {
				t.Errorf("%s: requires %q and has additionalProperties %v", path, required, schema["additionalProperties"])
			}
		}
		for name, value := range schema {
			closed(t, path+"/"+name, value)
		}
	case []any:
		for _, value := range schema {
			closed(t, path, value)
		}
	}
}

// The sample in the README is of the file.
func TestReadmeSample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```json\n")
	sample, _, found := strings.Cut(rest, "\n```")
	_, texts := files(t)
	if !found || !strings.Contains(string(texts[1]), sample) {
		t.Errorf("not in gcra_v2.json:\n%s", sample)
	}
}

// The README describes each flag in the words of the files.
func TestReadmeDescribesFlags(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(descriptions)) {
		d := descriptions[flag]
		want = append(want, fmt.Sprintf("| `%s` | %s | %s | %s |", flag, d.Kind, d.Fault, d.Source))
	}
	for i, line := range want {
		if i >= len(got) || got[i] != line {
			t.Fatalf("the table of flags lacks, at its place:\n%s", line)
		}
	}
	if len(got) > len(want) {
		t.Errorf("the table of flags has more:\n%s", got[len(want)])
	}
}

func TestReadRefusesTextAfterTheEnd(t *testing.T) {
	_, texts := files(t)
	if _, err := Read(append(slices.Clone(texts[0]), "{}"...)); err == nil {
		t.Error("a second value is passed over")
	}
}

// A reply of a server is of one of two forms, and a file's too.
func TestReplyForms(t *testing.T) {
	key := []any{int64(1), int64(2), int64(3), int64(4), "5 6"}
	for _, c := range []struct {
		values []any
		want   []string
	}{
		{[]any{int64(1), int64(2), int64(3), int64(4)}, []string{"1", "2", "3", "4"}},
		{[]any{int64(1), int64(2), key}, []string{"1", "2", "1", "2", "3", "4", "5 6"}},
		{[]any{int64(1), key}, nil},
		{[]any{int64(1), "2", int64(3), int64(4)}, nil},
		{[]any{int64(1), int64(2), key[:4]}, nil},
		{[]any{int64(1), int64(2), []any{int64(1), int64(2), int64(3), int64(4), int64(5)}}, nil},
		{[]any{int64(1), int64(2), []any{"1", int64(2), int64(3), int64(4), "5"}}, nil},
		{[]any{int64(1), nil}, nil},
	} {
		got, ok := inARow(c.values)
		if ok != (c.want != nil) || ok && !slices.Equal(got, c.want) {
			t.Errorf("%v is read as %q, %v; want %q", c.values, got, ok, c.want)
		}
	}
	for _, text := range []string{`["1", ["1"]]`, `["1", "2", ["1", "2", "3", "4"]]`, `["1", "2", "3"]`, `[1, "2", "3", "4"]`, `{}`} {
		var r Reply
		if err := json.Unmarshal([]byte(text), &r); err == nil {
			t.Errorf("%s is read as %q", text, r)
		}
	}
}

// What is written is what was made, whatever is in it.
func TestTextReadsBack(t *testing.T) {
	f := &File{"gcra_v1", "00", map[string]Flag{"A": {"state", `a "quoted" <text> & more`, "b"}}, []Group{
		{"one", []string{"1", "\"\\\u00e9\n"}, Setting{"again", "1", "SET", "32", "local 'a'"}, []Test{
			{1, "c", []string{"A"}, []Key{{"string", "00ff"}}, []Step{
				{[]string{"5"}, []string{"1"}, "", Reply{"1", "2", "3", "4..7"}, Reply{"1", "2", "3", "5"}, []string{"3.30"}, []Range{"1..2"}},
				{[]string{"none"}, []string{}, "BADARG", Reply{}, Reply{}, []string{""}, []Range{"-2"}}}},
			{2, "d", []string{"A"}, []Key{none.key, list.key}, []Step{{[]string{"", "5"}, []string{"1"}, "",
				Reply{"1", "0", "1", "2", "3", "4", "", "1", "2", "3", "4..7", "5 6"}, Reply{"0", "7", "1", "2", "3", "4", "8"},
				[]string{"", ""}, []Range{"-2", "-1"}}}},
		}, []Stream{{3, "e", []string{"A"}, "1", "1", 2, "ab"}, {4, "f", []string{"A"}, "1", "1", 2, "ab"}}},
		{"two", []string{}, usual, []Test{}, []Stream{}},
	}}
	text, err := f.Text()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !reflect.DeepEqual(got, f) {
		t.Errorf("got %+v\nwant %+v", got, f)
	}
}

// play plays all vectors of all scripts.
func play(t *testing.T, port func(t *testing.T, script precision.Script) Port) {
	parsed, _ := files(t)
	for i, script := range Scripts {
		t.Run(string(script), func(t *testing.T) {
			t.Parallel()
			p := port(t, script)
			played := 0
			for _, g := range parsed[i].Groups {
				for _, test := range g.Tests {
					played++
					if err := test.Play(&g, p); err != nil {
						t.Error(err)
					}
				}
				for _, stream := range g.Streams {
					played++
					if err := stream.Play(&g, p); err != nil {
						t.Error(err)
					}
				}
			}
			t.Logf("%d vectors", played)
		})
	}
}

func TestNative(t *testing.T) {
	play(t, func(_ *testing.T, script precision.Script) Port { return NewNativePort(script) })
}

// The tests by the server's own clock hold at any time from 2001 to 2040, across the end of
// a window too, and if a runner takes up to slackNs for one.
func TestServerClockAtAnyTime(t *testing.T) {
	const times = 2000
	rng := rand2.New(rand2.NewPCG(1, 2))
	parsed, _ := files(t)
	for i, script := range Scripts {
		played := 0
		for _, g := range parsed[i].Groups {
			for _, test := range g.Tests {
				if !slices.ContainsFunc(test.Steps, func(s Step) bool { return g.Setting.byItsClock(script, slices.Concat(g.Argv, s.Argv)) }) {
					continue
				}
				late := int64(slackNs)
				for _, s := range test.Steps {
					if ttl := s.TTLMs[0]; ttl.below(slackNs/ms) && ttl[0] != '-' {
						late = second // the key lives no longer than 2 s
					}
				}
				for range times {
					p := &lateRunner{NewNativePort(script), 0, rng}
					startUs := (over+second)/us + rng.Int64N((2_246_000_000*second-over)/us)
					switch rng.IntN(3) {
					case 0: // the last us of a second
						startUs = startUs/1e6*1e6 + 999_999 - rng.Int64N(3)
					case 1: // or the last seconds of a day, and so of every window of these tests
						startUs = startUs/(day/us)*(day/us) + day/us - 1 - rng.Int64N(10e6)
					}
					p.Set(startUs * us)
					p.end = startUs*us + late
					if err := test.Play(&g, p); err != nil {
						t.Fatalf("%s by the server's clock %d us: %v", script, startUs, err)
					}
					played++
				}
			}
		}
		if played < 10*times {
			t.Errorf("%s: %d plays, want %d", script, played, 10*times)
		}
	}
}

// lateRunner takes its time before calls, until end.
type lateRunner struct {
	*NativePort
	end int64
	rng *rand2.Rand
}

func (p *lateRunner) Call(argv []string) ([]string, string, error) {
	reply, refused, err := p.NativePort.Call(argv)
	if p.rng.IntN(2) == 0 {
		p.Set(p.serverNs + p.rng.Int64N((p.end-p.serverNs)/us+1)*us)
	}
	return reply, refused, err
}

func TestEmulator(t *testing.T) {
	play(t, emulatorPort)
}

func TestServer(t *testing.T) {
	playServer(t, servers.ForTest(t))
}

// Each image of the matrix.
func TestImages(t *testing.T) {
	for _, image := range containers.ImagesForTest(t) {
		t.Run(image, func(t *testing.T) {
			playServer(t, containers.ForTest(t, image))
		})
	}
}

// playServer plays all vectors by both protocols.
func playServer(t *testing.T, server *servers.Server) {
	t.Log(server.Name)
	for protocol := 2; protocol <= 3; protocol++ {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			options, err := redis.ParseURL(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			options.Protocol = protocol
			client := redis.NewClient(options)
			t.Cleanup(func() { _ = client.Close() })
			// A hash is a map in RESP3 and a list in RESP2; an empty one does.
			hash, err := client.Do(t.Context(), "HGETALL", "vector:none").Result()
			if err != nil {
				t.Fatal(err)
			}
			if _, isMap := hash.(map[any]any); isMap != (protocol == 3) {
				t.Fatalf("the server answers RESP%d with %T", protocol, hash)
			}
			play(t, func(t *testing.T, script precision.Script) Port {
				p, err := NewServerPort(t.Context(), client, lua.Assets[string(script)], "vector:"+rand.Text())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = p.Hold(nil) })
				return p
			})
		})
	}
}

// A player that passes what is wrong proves nothing: each field that is changed is seen.
func TestPlaySeesEachDifference(t *testing.T) {
	p := emulatorPort(t, precision.GCRAV2)
	argv := []string{"300", "60000000000", "60"}
	made, err := makeFile(precision.GCRAV2, []group{{argv: strings.Join(argv, " "),
		tests:   []test{{1, "a", "BurstOffByOne", none, from(epoch, calls(1, 0, 61, 0, -1, 0))}},
		streams: []stream{{2, "b", "Drift", decimal(epoch), 100}}}}, nil, p, true)
	if err != nil {
		t.Fatal(err)
	}
	g := &made.Groups[0]
	good := g.Tests[0]
	if err := good.Play(g, p); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*Test){
		func(t *Test) { t.Steps[0].Reply[0] = "0" },
		func(t *Test) { t.Steps[0].Reply[1] = "60" },
		func(t *Test) { t.Steps[0].Reply[2] = "1" },
		func(t *Test) { t.Steps[1].Reply[3] = "200000001" },
		func(t *Test) { t.Steps[0].State[0] += "30" },
		func(t *Test) { t.Steps[0].State[0] = "" },
		func(t *Test) { t.Steps[0].State[0] = strings.Replace(t.Steps[0].State[0], "0", "1", 1) },
		func(t *Test) { t.Steps[0].TTLMs[0] = "61001..70000" },
		func(t *Test) { t.Steps[0].TTLMs[0] = "51000..60999" },
		func(t *Test) { t.Steps[0].TTLMs[0] = "-2" },
		func(t *Test) { t.Steps[0].TTLMs[0] = "-1" },
		func(t *Test) { t.Steps[1].Expire[0] = "70000" },
		func(t *Test) { t.Steps[1].Expire[0] = "none" },
		func(t *Test) { t.Steps[0].Reply[3] = "200000001..200000002" },
		func(t *Test) { t.Steps[0].Reply[3] = "199999998..199999999" },
		func(t *Test) { t.Steps[0].Error = "BADARG" },
		func(t *Test) { t.Steps[2].Error = "BADSTATE" },
		func(t *Test) { t.Steps[2].Error += "." },
		func(t *Test) { t.Steps[2].Error = "" },
		func(t *Test) { t.Keys[0] = tat(epoch + second).key },
	} {
		text, err := json.Marshal(good)
		if err != nil {
			t.Fatal(err)
		}
		var wrong Test
		if err := json.Unmarshal(text, &wrong); err != nil {
			t.Fatal(err)
		}
		change(&wrong)
		if err := wrong.Play(g, p); !errors.Is(err, ErrDiffers) {
			t.Errorf("change %d: %v", i, err)
		}
	}
	for _, setting := range []*Setting{{Keys: keysAndFirst}, usual.at(serverUs).refusing("SET")} {
		other := *g
		other.Setting = setting.complete()
		if err := good.Play(&other, p); !errors.Is(err, ErrDiffers) {
			t.Errorf("setting %+v: %v", setting, err)
		}
	}
	p = emulatorPort(t, precision.LimitsV1)
	made, err = makeFile(precision.LimitsV1, []group{{tests: []test{{1, "a", "Receipt", none.and(none), []request{at(0, bucket+"1", fixed10+"1")}}}}}, nil, p, true)
	if err != nil {
		t.Fatal(err)
	}
	two := made.Groups[0].Tests[0]
	if err := two.Play(&made.Groups[0], p); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*Step){
		func(s *Step) { s.Reply[6] = "1780000080200000001" },
		func(s *Step) { s.Reply[6] = "" },
		func(s *Step) { s.Reply[6] = "1780000080000000000..1780000080300000000" },
		func(s *Step) { s.Reply[10] = "1" },
		func(s *Step) { s.Reply = s.Reply[:7] },
		func(s *Step) { s.State[1] = "" },
		func(s *Step) { s.State = s.State[:1] },
		func(s *Step) { s.TTLMs[1] = "0..60000" },
		func(s *Step) { s.Expire[1], s.Argv[11] = noExpiry, "0" },
	} {
		wrong := two
		wrong.Steps = []Step{two.Steps[0]}
		s := &wrong.Steps[0]
		s.Expire, s.Argv, s.Reply = slices.Clone(s.Expire), slices.Clone(s.Argv), slices.Clone(s.Reply)
		s.State, s.TTLMs = slices.Clone(s.State), slices.Clone(s.TTLMs)
		change(s)
		if err := wrong.Play(&made.Groups[0], p); !errors.Is(err, ErrDiffers) {
			t.Errorf("two keys, change %d: %v", i, err)
		}
	}
	p = emulatorPort(t, precision.GCRAV2)
	stream := g.Streams[0]
	stream.Calls--
	if err := stream.Play(g, p); !errors.Is(err, ErrDiffers) {
		t.Errorf("a stream that is one call shorter: %v", err)
	}
}
