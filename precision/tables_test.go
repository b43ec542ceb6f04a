package precision

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// section is the text of a README from a heading to the next of its rank or above.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut("\n"+text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	rank := strings.Index(heading, " ")
	end := regexp.MustCompile(`(?m)^#{1,` + string(rune('0'+rank)) + `} `).FindStringIndex(after)
	if end != nil {
		after = after[:end[0]]
	}
	return after
}

// tableRows are the cells of the rows of the tables in a text, without their heads.
func tableRows(text string) [][]string {
	var rows [][]string
	inTable := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inTable = false
		} else if strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| ---") {
			inTable = true
		} else if inTable {
			var cells []string
			for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			rows = append(rows, cells)
		}
	}
	return rows
}

func readReadme(t *testing.T) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(readme)
}

var (
	quotedCode = regexp.MustCompile("`([^`]+)`")
	comparison = regexp.MustCompile(` (?:<=|>=|<|>|~=|=) `)
	testName   = regexp.MustCompile(`Test[A-Z]\w*`)
)

// operationsOf are the operations of a row's code: what it compares or assigns, each with ...
// for any text.
func operationsOf(code string, all []tied) []tied {
	var found []tied
	for _, part := range comparison.Split(code, -1) {
		if part == "..." {
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(part), `\.\.\.`, ".*") + "$")
		for _, o := range all {
			if pattern.MatchString(o.operation) {
				found = append(found, o)
			}
		}
	}
	return found
}

// Each row of the tables of operations is of operations of the script, and names the lemmas by
// which its proof has them. Every operation is in a row, or a part of one that is, proved by
// Gappa or by the same lemma. A row without operations names a lemma or a test for what it says.
func TestOperationTables(t *testing.T) {
	text := section(t, readReadme(t), "## Operations")
	lemmas := lemmasOf(t)
	var covered []tied // a script's tables say what is as in one before
	for _, script := range provedScripts {
		all := parseProof(t, script, readProof(t, script))
		for _, cells := range tableRows(section(t, text, "### "+string(script))) {
			line, result := cells[0], cells[len(cells)-1]
			isNamed := func(lemma string) bool { return strings.Contains(result, lemma) }
			for _, code := range quotedCode.FindAllStringSubmatch(line, -1) {
				found := operationsOf(code[1], all)
				if len(found) == 0 && !testName.MatchString(result) && !slices.ContainsFunc(lemmas, isNamed) {
					t.Errorf("%s: no operation of the script, no lemma, no test: `%s`", script, code[1])
				}
				for _, o := range found {
					if o.statement == nil && !isNamed(o.lemma) {
						t.Errorf("%s: `%s` is by %s, the row says %q", script, o.operation, o.lemma, result)
					}
				}
				covered = append(covered, found...)
			}
		}
		for _, o := range all {
			isIn := func(other tied) bool {
				return other.operation == o.operation ||
					(o.statement != nil || other.lemma == o.lemma) && strings.Contains(other.operation, o.operation)
			}
			if !slices.ContainsFunc(covered, isIn) {
				t.Errorf("%s: no row is of `%s`, of the line %s", script, o.operation, o.line)
			}
		}
	}
}

// lemmasOf are the names of the README's lemmas.
func lemmasOf(t *testing.T) []string {
	t.Helper()
	var names []string
	bold := regexp.MustCompile(`(?m)^- \*\*(\w+)\.\*\*`)
	for _, m := range bold.FindAllStringSubmatch(section(t, readReadme(t), "## Lemmas"), -1) {
		names = append(names, m[1])
	}
	if len(names) == 0 {
		t.Error("README.md has no lemmas")
	}
	return names
}

// Each lemma of the README has a test of its name, and each test that the README names is one.
func TestLemmasHaveTests(t *testing.T) {
	named := testName.FindAllString(readReadme(t), -1)
	for _, lemma := range lemmasOf(t) {
		named = append(named, "TestLemma"+lemma)
	}
	tests := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range named {
		if !tests[name] {
			t.Errorf("README.md names %s, which no package has", name)
		}
	}
}

// grouped is a number in groups of three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// checkObserved holds a row of what was observed beside what is proven against a test's figures.
func checkObserved(t *testing.T, what, proven, observed string) {
	t.Helper()
	for _, cells := range tableRows(section(t, readReadme(t), "## Observed beside proven")) {
		if cells[0] == what {
			if cells[1] != proven || cells[2] != observed {
				t.Errorf("README.md, %s: proven %s, observed %s; here proven %s, observed %s", what, cells[1], cells[2], proven, observed)
			}
			return
		}
	}
	t.Errorf("README.md has no row of what was observed: %s", what)
}

// The README says of each script the bound that the suite judges it by, and how many decisions
// 10^9 are: those of gcra follow from the traces' lengths, a window's traces have some more.
func TestBoundsInTables(t *testing.T) {
	const decisions = 1_000_000_000
	each := (decisions/len(singles) + traceCalls - 1) / traceCalls * traceCalls
	streams := len(saturatedResidues) * (saturatedAdmissions + saturatedAdmissions/16)
	v1 := fmt.Sprint(Scripts[0].BoundNs)
	checkObserved(t, "gcra_v1, early, ns", "0", "0 of "+grouped(each+streams)+" native decisions")
	checkObserved(t, "gcra_v1, late, ns", v1, v1)
	checkObserved(t, "gcra_v2, early and late, ns", "0, 0", "0, 0 of "+grouped(each))
	const windows = "window_v1, wrong decisions, replies, states, ttls"
	text := section(t, readReadme(t), "## Observed beside proven")
	m := regexp.MustCompile(regexp.QuoteMeta("| "+windows+" |") + ` 0 \| 0 of ([\d,]+) \|`).FindStringSubmatch(text)
	if m == nil {
		t.Errorf("README.md has no row of %s", windows)
	} else if n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", "")); n < each || n > each+each/100 {
		t.Errorf("README.md, %s: of %s, want %s or up to 1 %% more", windows, m[1], grouped(each))
	}
	claims := tableRows(section(t, readReadme(t), "## Claims"))
	top, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Scripts {
		want, late := ". = 0", "0 ns"
		if s.BoundNs > 0 {
			want, late = fmt.Sprintf("0 <= . <= %d", s.BoundNs), fmt.Sprintf("less than %d ns", s.BoundNs+1)
		}
		if i := slices.IndexFunc(claims, func(cells []string) bool { return cells[0] == string(s.Script) }); i < 0 || claims[i][2] != want {
			t.Errorf("README.md does not claim of %s: %s", s.Script, want)
		}
		for _, cells := range tableRows(section(t, string(top), "## Scripts")) {
			if cells[0] == "`"+string(s.Script)+"`" && cells[3] != late {
				t.Errorf("../README.md has %s late by %s, want %s", s.Script, cells[3], late)
			}
		}
		if most := s.Script.farMoreNs(); most > 0 && !strings.Contains(section(t, readReadme(t), "## Claims"), fmt.Sprintf("0 to %d more", most)) {
			t.Errorf("README.md does not claim of %s: far waits 0 to %d more", s.Script, most)
		}
	}
}
