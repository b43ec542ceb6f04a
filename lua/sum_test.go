package lua_test

import (
	"crypto/sha1"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tatami-rate/tatami/precision/servers"
)

var update = flag.Bool("update", false, "write the candidates of lua.sum anew")

// everReleased repeats the released lines of lua.sum, so that one careless edit
// cannot change them. It is append-only too: who releases an asset adds its line at
// the end, here and there.
var everReleased = []string{}

var errViolation = errors.New("policy violation: a released asset never changes, for its users pin its SHA1; " +
	"restore it, put what is wrong with it into CHANGELOG.md, and mend it in a new version")

// sums holds the lines of lua.sum by part, without comments.
type sums struct {
	released, candidates []string
}

const (
	releasedHeader   = "# released:"
	candidatesHeader = "# candidates:"
)

func parseSum(sum string) (sums, error) {
	var s sums
	var part *[]string
	for line := range strings.Lines(sum) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, releasedHeader) && part == nil:
			part = &s.released
		case strings.HasPrefix(line, candidatesHeader) && part == &s.released:
			part = &s.candidates
		case line == "" || strings.HasPrefix(line, "#") && part == nil:
		case strings.HasPrefix(line, "#"):
			return s, fmt.Errorf("unknown or misplaced section %q: there is released, then candidates", line)
		case part == nil:
			return s, fmt.Errorf("line %q stands before the first section", line)
		default:
			*part = append(*part, line)
		}
	}
	if part != &s.candidates {
		return s, errors.New("a section is missing: there is released, then candidates")
	}
	return s, nil
}

// sumLine returns the line of lua.sum for an asset.
func sumLine(name, source string) string {
	return fmt.Sprintf("%s %x %x", name, sha1.Sum([]byte(source)), sha256.Sum256([]byte(source)))
}

func nameOf(line string) string {
	name, _, _ := strings.Cut(line, " ")
	return name
}

// checkSum holds the text of lua.sum against the assets and the lines ever released.
func checkSum(sum string, assets map[string]string, everReleased []string) error {
	s, err := parseSum(sum)
	if err != nil {
		return err
	}
	errs := []error{checkAppendOnly(everReleased, s.released)}
	if len(s.released) > len(everReleased) {
		errs = append(errs, fmt.Errorf("released line %q is not in everReleased of sum_test.go: add it at the end",
			s.released[len(everReleased)]))
	}
	if !slices.IsSorted(s.candidates) {
		errs = append(errs, errors.New("the candidates are not sorted: run make sum"))
	}
	listed := map[string]bool{}
	for i, line := range slices.Concat(s.released, s.candidates) {
		name := nameOf(line)
		source, ok := assets[name]
		switch {
		case listed[name]:
			errs = append(errs, fmt.Errorf("%s is listed twice", name))
		case !ok && i < len(s.released):
			errs = append(errs, fmt.Errorf("%s.lua is missing: %w", name, errViolation))
		case !ok:
			errs = append(errs, fmt.Errorf("%s.lua is missing: run make sum", name))
		case line != sumLine(name, source) && i < len(s.released):
			errs = append(errs, fmt.Errorf("%s.lua has other sums: %w", name, errViolation))
		case line != sumLine(name, source):
			errs = append(errs, fmt.Errorf("%s.lua has other sums: run make sum if it was changed on purpose, "+
				"then pin the SHA1 in loader/pins.go and README.md and run go generate ./vectors", name))
		}
		listed[name] = true
	}
	for name := range assets {
		if !listed[name] {
			errs = append(errs, fmt.Errorf("%s.lua is not listed: run make sum", name))
		}
	}
	return errors.Join(errs...)
}

// checkAppendOnly tells whether now begins with every line of earlier.
func checkAppendOnly(earlier, now []string) error {
	for i, line := range earlier {
		if i >= len(now) {
			return fmt.Errorf("released line %q was dropped: %w", line, errViolation)
		}
		if now[i] != line {
			return fmt.Errorf("released line %q was changed to %q: %w", line, now[i], errViolation)
		}
	}
	return nil
}

// updateSum returns sum with the candidates written anew. All that stands above
// them, the released lines included, is kept byte for byte.
func updateSum(sum string, assets map[string]string) (string, error) {
	s, err := parseSum(sum)
	if err != nil {
		return "", err
	}
	above, below, _ := strings.Cut(sum, "\n"+candidatesHeader)
	header, _, _ := strings.Cut(below, "\n")
	text := above + "\n" + candidatesHeader + header + "\n"
	for _, name := range slices.Sorted(maps.Keys(assets)) {
		if !slices.ContainsFunc(s.released, func(line string) bool { return nameOf(line) == name }) {
			text += sumLine(name, assets[name]) + "\n"
		}
	}
	return text, nil
}

// committedSums returns every version of lua.sum in dir that git has in the history
// of the present commit.
func committedSums(dir string) ([]string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
		return string(out), err
	}
	commits, err := git("log", "--full-history", "--format=%H", "--", "lua.sum")
	if err != nil {
		return nil, err
	}
	var versions []string
	for _, commit := range strings.Fields(commits) {
		entry, err := git("ls-tree", commit, "lua.sum") // mode, type, object, name
		if err != nil {
			return nil, err
		}
		if entry == "" {
			continue // the commit removed it
		}
		version, err := git("cat-file", "blob", strings.Fields(entry)[2])
		if err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	return versions, nil
}

// checkHistory refuses a sum that does not begin with the released lines of every
// version.
func checkHistory(versions []string, sum string) error {
	now, err := parseSum(sum)
	if err != nil {
		return err
	}
	var errs []error
	for _, version := range versions {
		earlier, err := parseSum(version)
		if err == nil {
			err = checkAppendOnly(earlier.released, now.released)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func readSum(t *testing.T) string {
	t.Helper()
	sum, err := os.ReadFile("lua.sum")
	if err != nil {
		t.Fatal(err)
	}
	return string(sum)
}

func TestSum(t *testing.T) {
	assets := readAssets(t)
	if *update {
		sum, err := updateSum(readSum(t), assets)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("lua.sum", []byte(sum), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := checkSum(readSum(t), assets, everReleased); err != nil {
		t.Error(err)
	}
}

func TestSumHistory(t *testing.T) {
	if err := exec.Command("git", "rev-parse", "HEAD").Run(); err != nil {
		if servers.Required() {
			t.Fatalf("no git history to hold lua.sum against: git rev-parse HEAD: %v", err)
		}
		t.Skipf("skipped: no git history to hold lua.sum against: git rev-parse HEAD: %v", err)
	}
	versions, err := committedSums(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) == 0 {
		t.Skip("skipped: no commit has lua.sum")
	}
	if err := checkHistory(versions, readSum(t)); err != nil {
		t.Error(err)
	}
}

// The rest tests the checks with sums that are wrong.

var (
	testAssets = map[string]string{"a_v1": "return 1", "a_v2": "return 2", "b_v1": "return 3"}
	lineA1     = sumLine("a_v1", "return 1")
	lineA2     = sumLine("a_v2", "return 2")
	lineB1     = sumLine("b_v1", "return 3")
)

func testSum(released, candidates string) string {
	return "# what this is\n# released: rule\n" + released + "\n# candidates: rule\n" + candidates
}

func TestCheckSum(t *testing.T) {
	released := []string{lineA1, lineA2}
	good := testSum(lineA1+"\n"+lineA2+"\n", lineB1+"\n")
	if err := checkSum(good, testAssets, released); err != nil {
		t.Fatalf("a good sum: %v", err)
	}
	changed := maps.Clone(testAssets)
	changed["a_v2"] += " "
	changedCandidate := maps.Clone(testAssets)
	changedCandidate["b_v1"] += " "
	gone := maps.Clone(testAssets)
	delete(gone, "a_v1")
	goneCandidate := maps.Clone(testAssets)
	delete(goneCandidate, "b_v1")

	for _, test := range []struct {
		what, sum string
		assets    map[string]string
		want      string
		violation bool
	}{
		{"released asset changed", good, changed, "a_v2.lua has other sums", true},
		{"released asset removed", good, gone, "a_v1.lua is missing", true},
		{"released asset and its line changed", strings.Replace(good, lineA2, sumLine("a_v2", changed["a_v2"]), 1),
			changed, "was changed to", true},
		{"SHA1 of a released line changed", strings.Replace(good, lineA1[:10], lineA1[:9]+"x", 1), testAssets, "was changed to", true},
		{"released line dropped", strings.Replace(good, lineA1+"\n", "", 1), testAssets, "was changed to", true},
		{"last released line dropped", strings.Replace(good, lineA2+"\n", "", 1), testAssets, "was dropped", true},
		{"released line made a candidate", testSum(lineA1+"\n", lineA2+"\n"+lineB1+"\n"), testAssets, "was dropped", true},
		{"released lines in another order", testSum(lineA2+"\n"+lineA1+"\n", lineB1+"\n"), testAssets, "was changed to", true},
		{"line inserted above", testSum(lineB1+"\n"+lineA1+"\n"+lineA2+"\n", ""), testAssets, "was changed to", true},
		{"released in one place only", testSum(lineA1+"\n"+lineA2+"\n"+lineB1+"\n", ""), testAssets, "is not in everReleased", false},
		{"candidate changed", good, changedCandidate, "b_v1.lua has other sums: run make sum", false},
		{"SHA1 of a candidate changed", strings.Replace(good, lineB1[:10], lineB1[:9]+"x", 1), testAssets, "b_v1.lua has other sums", false},
		{"SHA256 of a candidate changed", good[:len(good)-2] + "x\n", testAssets, "b_v1.lua has other sums", false},
		{"candidate removed", good, goneCandidate, "b_v1.lua is missing: run make sum", false},
		{"asset not listed", strings.Replace(good, lineB1+"\n", "", 1), testAssets, "b_v1.lua is not listed", false},
		{"name listed twice in a part", good + lineB1 + "\n", testAssets, "b_v1 is listed twice", false},
		{"name listed in both parts", good + sumLine("c_v1", "") + "\n" + lineA1 + "\n", testAssets, "a_v1 is listed twice", false},
		{"candidates not sorted", good + sumLine("a_v3", "") + "\n", testAssets, "not sorted", false},
		{"unknown section", good + "# withdrawn: rule\n", testAssets, `section "# withdrawn: rule"`, false},
		{"sections swapped", "# candidates: rule\n\n# released: rule\n", testAssets, "a section is missing", false},
		{"section twice", good + "# candidates: rule\n", testAssets, "misplaced section", false},
		{"section missing", "# released: rule\n" + lineA1 + "\n", testAssets, "a section is missing", false},
		{"line before the sections", lineA1 + "\n" + good, testAssets, "before the first section", false},
	} {
		err := checkSum(test.sum, test.assets, released)
		if err == nil || !strings.Contains(err.Error(), test.want) || errors.Is(err, errViolation) != test.violation {
			t.Errorf("%s:\n got %v\nwant %q, violation %v", test.what, err, test.want, test.violation)
		}
	}
}

func TestUpdateSum(t *testing.T) {
	old := testSum(lineA1+"\n", sumLine("b_v1", "old")+"\n"+sumLine("gone_v1", "")+"\n")
	got, err := updateSum(old, testAssets)
	if want := testSum(lineA1+"\n", lineA2+"\n"+lineB1+"\n"); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	// A released asset that changed keeps its old line, and so is refused after.
	changed := maps.Clone(testAssets)
	changed["a_v1"] += " "
	got, err = updateSum(old, changed)
	if want := testSum(lineA1+"\n", lineA2+"\n"+lineB1+"\n"); err != nil || got != want {
		t.Errorf("released asset changed: got %v\n%s\nwant\n%s", err, got, want)
	}
	if err := checkSum(got, changed, []string{lineA1}); !errors.Is(err, errViolation) {
		t.Errorf("released asset changed: got %v, want %v", err, errViolation)
	}
	if _, err := updateSum("# released:\n", testAssets); err == nil {
		t.Error("a sum without candidates is updated")
	}
}

func TestCheckHistory(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("skipped: %v", err)
	}
	// A git hook that runs the tests names its own repository in these.
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"} {
		t.Setenv(name, "") // restores it after the test
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		command := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	// The first commit releases a_v1, the second a_v2 as well, the third drops both
	// lines and the file, and the fourth brings the first back.
	one, two := testSum(lineA1+"\n", ""), testSum(lineA1+"\n"+lineA2+"\n", "")
	for _, version := range []string{one, two, "", one} {
		path := filepath.Join(dir, "lua.sum")
		if version == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(version), 0o644); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "-q", "-m", "x")
	}
	versions, err := committedSums(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{one, two, one}; !slices.Equal(versions, want) {
		t.Fatalf("got versions %q, want %q", versions, want)
	}
	if err := checkHistory(versions, testSum(lineA1+"\n"+lineA2+"\n"+lineB1+"\n", "")); err != nil {
		t.Errorf("a line added: %v", err)
	}
	if err := checkHistory(versions, one); !errors.Is(err, errViolation) {
		t.Errorf("back to the first version: got %v, want %v", err, errViolation)
	}
	if err := checkHistory([]string{"no sections"}, one); err == nil {
		t.Error("an earlier version that cannot be read is passed over")
	}
}
