package precision

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	for _, s := range Scripts {
		all := parseProof(t, s.Script, readProof(t, s.Script))
		for _, cells := range tableRows(section(t, text, "### "+string(s.Script))) {
			line, result := cells[0], cells[len(cells)-1]
			isNamed := func(lemma string) bool { return strings.Contains(result, lemma) }
			for _, code := range quotedCode.FindAllStringSubmatch(line, -1) {
				found := operationsOf(code[1], all)
				if len(found) == 0 && !testName.MatchString(result) && !slices.ContainsFunc(lemmas, isNamed) {
					t.Errorf("%s: no operation of the script, no lemma, no test: `%s`", s.Script, code[1])
				}
				for _, o := range found {
					if o.statement == nil && !isNamed(o.lemma) {
						t.Errorf("%s: `%s` is by %s, the row says %q", s.Script, o.operation, o.lemma, result)
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
				t.Errorf("%s: no row is of `%s`, of the line %s", s.Script, o.operation, o.line)
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
