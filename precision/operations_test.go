package precision

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/tatami-rate/tatami/lua"
)

// The proofs in proof/ beside the scripts: every operation of a script stands there, and
// nothing else. The form is explained at the top of each.

// operation is one arithmetic operation of a script.
type operation struct {
	line        int    // of the script, from 1
	operator    string // +, -, *, /, % or fmod
	text        string // as the script has it, with no more brackets than it takes
	left, right string // the operands, in the same way
}

// precedence is that of Lua's operators that luaText needs.
var precedence = map[string]int{"+": 1, "-": 1, "*": 2, "/": 2, "%": 2, "^": 4}

// luaText is an expression as Lua, with no more brackets than it takes.
func luaText(e ast.Expr, within int) string {
	switch e := e.(type) {
	case *ast.NumberExpr:
		return e.Value
	case *ast.IdentExpr:
		return e.Value
	case *ast.StringExpr:
		return "'" + e.Value + "'"
	case *ast.UnaryMinusOpExpr:
		return "-" + luaText(e.Expr, 3)
	case *ast.UnaryLenOpExpr:
		return "#" + luaText(e.Expr, 3)
	case *ast.AttrGetExpr:
		if key, ok := e.Key.(*ast.StringExpr); ok {
			return luaText(e.Object, 9) + "." + key.Value
		}
		return luaText(e.Object, 9) + "[" + luaText(e.Key, 0) + "]"
	case *ast.FuncCallExpr:
		var args []string
		for _, arg := range e.Args {
			args = append(args, luaText(arg, 0))
		}
		return luaText(e.Func, 9) + "(" + strings.Join(args, ", ") + ")"
	case *ast.StringConcatOpExpr:
		return "(" + luaText(e.Lhs, 0) + " .. " + luaText(e.Rhs, 0) + ")"
	case *ast.ArithmeticOpExpr:
		p := precedence[e.Operator]
		space := " "
		if e.Operator == "^" {
			space = ""
		}
		text := luaText(e.Lhs, p) + space + e.Operator + space + luaText(e.Rhs, p+1)
		if p < within {
			return "(" + text + ")"
		}
		return text
	}
	return fmt.Sprintf("%T", e)
}

// isNumeral tells a number that is written down, 2^52 too.
func isNumeral(e ast.Expr) bool {
	if power, ok := e.(*ast.ArithmeticOpExpr); ok && power.Operator == "^" {
		return isNumeral(power.Lhs) && isNumeral(power.Rhs)
	}
	_, ok := e.(*ast.NumberExpr)
	return ok
}

// operations are the arithmetic operations of a script, in its order; those of numbers that
// are written down, such as 2^63 - 1024, are none.
func operations(t *testing.T, script Script) []operation {
	t.Helper()
	chunk, err := parse.Parse(strings.NewReader(lua.Assets[string(script)]), string(script))
	if err != nil {
		t.Fatal(err)
	}
	var all []operation
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Interface, reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
			if v.Kind() != reflect.Pointer {
				return
			}
			switch e := v.Interface().(type) {
			case *ast.ArithmeticOpExpr:
				if e.Operator != "^" && !(isNumeral(e.Lhs) && isNumeral(e.Rhs)) {
					all = append(all, operation{e.Line(), e.Operator, luaText(e, 0), luaText(e.Lhs, 0), luaText(e.Rhs, 0)})
				}
			case *ast.FuncCallExpr:
				if name := luaText(e.Func, 9); name == "fmod" || name == "math.fmod" {
					all = append(all, operation{e.Line(), "fmod", strings.TrimPrefix(luaText(e, 0), "math."), luaText(e.Args[0], 0), luaText(e.Args[1], 0)})
				}
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(chunk))
	slices.SortStableFunc(all, func(a, b operation) int { return a.line - b.line })
	return all
}

// statement is one of Gappa's that rounds: a name, and the operation whose result it is. Where
// that is a value which lemmas or branches give, there is no operator.
type statement struct {
	name, left, operator, right string
}

// tied is an operation of a script as a proof has it: by a statement of Gappa's or a lemma.
type tied struct {
	line      string // of the script
	operation string
	statement *statement
	lemma     string
	in        Script // the script in whose proof that is
}

var (
	gappaReal    = regexp.MustCompile(`^([A-Z]\w*) = (.*);$`)
	gappaRounded = regexp.MustCompile(`^(\w+) (?:double= (.*)|= double\((.*)\));$`)
	gappaBinary  = regexp.MustCompile(`^(\w+|\(\w+ [-+*/] \w+\)|0x1p\d+|\d+) ([-+*/]) ([\w.]+)$`)
)

// covers are the operations that a lemma can be the reason of.
var covers = map[string]*regexp.Regexp{
	"Remainder": regexp.MustCompile(` % \w+$`),
	"Split":     regexp.MustCompile(`^ns % 1e9$`),
	"Seconds":   regexp.MustCompile(`^-end_ns % 1e9$`),
	"Powers": regexp.MustCompile(` % (1|256|2\^\d+)$|\* 256$|\* 256 \+ \w\d$|\) / (256|2\^16)$` +
		`|^(index - i_low|w % 2\^32 - w_low|\w+ - [ipcw]\d)$`),
	"Digits":  regexp.MustCompile(` \+ 0(\.0)?$`),
	"Index":   regexp.MustCompile(`^fmod\(|^cycle_ns - began_ns$|^whole - whole % 1$`),
	"Carried": regexp.MustCompile(`^carried - carried % 1$`),
	"Sides":   regexp.MustCompile(`^\(last_s - tat_s\) \* 1e9`),
}

// reading is a proof that is being read: its script's lines, and of the line that was named
// last the operations that nothing is the reason of yet.
type reading struct {
	t      *testing.T
	script Script
	proof  string
	lines  map[string][]operation
	line   string
	open   []operation
	tied   []tied
	reals  map[string]string // Gappa's definitions of real numbers
	// the statements so far, by name, and what they round
	statements map[string]*statement
	bodies     []string
	others     map[Script][]tied // the proofs of other scripts
}

func (r *reading) errorf(format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("%s.g: %s: %s", r.script, r.line, fmt.Sprintf(format, args...))
}

// begin reads on with another line of the script.
func (r *reading) begin(line string) {
	for _, o := range r.open {
		r.errorf("nothing says why it is exact: %s", o.text)
	}
	r.line, r.open = line, slices.Clone(r.lines[line])
	if line != "" && len(r.open) == 0 {
		r.errorf("the script has no such line with an operation")
	}
}

// tie gives the line's next operation, which has to be this one, its reason.
func (r *reading) tie(text, lemma string, s *statement) {
	if len(r.open) == 0 || r.open[0].text != text {
		r.errorf("not the next operation: %s", text)
		return
	}
	if form := covers[lemma]; s == nil && (form == nil || !form.MatchString(text)) {
		r.errorf("the lemma %s is not about %s", lemma, text)
	}
	r.tied, r.open = append(r.tied, tied{r.line, text, s, lemma, r.script}), r.open[1:]
}

// tieIn gives the line's next operation the reason that it has in another script's proof,
// where it stands as theirs: the same text, or another name for the second operand.
func (r *reading) tieIn(script Script, text, theirs string) {
	if r.others[script] == nil {
		r.others[script] = parseProof(r.t, script, readProof(r.t, script))
	}
	i := slices.IndexFunc(r.others[script], func(o tied) bool { return o.operation == theirs })
	if i < 0 {
		r.errorf("not in %s.g: %s", script, theirs)
		return
	}
	o := r.others[script][i]
	if len(r.open) == 0 || r.open[0].text != text {
		r.errorf("not the next operation: %s", text)
		return
	}
	if ours := r.open[0]; theirs != text && !strings.HasPrefix(theirs, ours.left+" "+ours.operator+" ") {
		r.errorf("%s is not as %s", text, theirs)
	}
	r.tied, r.open = append(r.tied, tied{r.line, text, o.statement, o.lemma, o.in}), r.open[1:]
}

// state reads a statement of Gappa's, and ties the next operation to it if that is what it is.
func (r *reading) state(text string) {
	if m := gappaReal.FindStringSubmatch(text); m != nil {
		r.reals[m[1]] = m[2]
		return
	}
	m := gappaRounded.FindStringSubmatch(text)
	if m == nil {
		r.errorf("not a statement: %s", text)
		return
	}
	body := m[2] + m[3]
	if real, ok := r.reals[body]; ok {
		body = real
	}
	s := &statement{name: m[1], left: body}
	if b := gappaBinary.FindStringSubmatch(body); b != nil {
		s.left, s.operator, s.right = b[1], b[2], b[3]
	} else if strings.ContainsAny(body, " ()") {
		r.errorf("not one operation: %s", text)
	}
	if len(r.open) > 0 && s.isOf(r.open[0], r.bodies, r.proof) {
		r.tie(r.open[0].text, "", s)
	}
	r.statements[s.name], r.bodies = s, append(r.bodies, body)
}

// parseProof reads the part of a proof before what is assumed and proved, and ties each
// operation of the script's that it names.
func parseProof(t *testing.T, script Script, proof string) []tied {
	t.Helper()
	definitions, _, _ := strings.Cut(proof, "\n{ ")
	_, definitions, _ = strings.Cut(definitions, "\n@double = float<ieee_64,ne>;\n")
	r := reading{t: t, script: script, proof: proof, lines: scriptLines(t, script),
		reals: map[string]string{}, statements: map[string]*statement{}, others: map[Script][]tied{}}
	for _, text := range strings.Split(definitions, "\n") {
		directive, rest, _ := strings.Cut(text, " ")
		name, operation, _ := strings.Cut(rest, ": ")
		switch {
		case directive == "#=":
			r.begin(rest)
		case directive == "#by" && operation == "*":
			for len(r.open) > 0 {
				r.tie(r.open[0].text, name, nil)
			}
		case directive == "#by":
			r.tie(operation, name, nil)
		case directive == "#in" && operation == "*":
			for n := len(r.open); n > 0 && len(r.open) == n; n-- {
				r.tieIn(Script(name), r.open[0].text, r.open[0].text)
			}
		case directive == "#in":
			text, theirs, isOther := strings.Cut(operation, " as ")
			if !isOther {
				theirs = text
			}
			r.tieIn(Script(name), text, theirs)
		case directive == "#as":
			if s := r.statements[name]; s != nil && len(r.open) > 0 && s.isOf(r.open[0], r.bodies, r.proof) {
				r.tie(operation, "", s)
			} else {
				r.errorf("%s is not as %s", operation, name)
			}
		case directive == "#above":
			i := slices.IndexFunc(r.tied, func(o tied) bool { return o.operation == rest })
			if i < 0 {
				r.errorf("not above: %s", rest)
				continue
			}
			if r.tied[i].in != script {
				r.errorf("it stands in %s.g: %s", r.tied[i].in, rest)
			}
			r.tie(rest, r.tied[i].lemma, r.tied[i].statement)
		case text != "" && !strings.HasPrefix(text, "#"):
			r.state(text)
		}
	}
	r.begin("")
	return r.tied
}

// isOf tells whether the statement is the operation: the same operator, and each operand that
// the script has a name or a number for is that. A name of the script may have _ and more
// after it, brackets hold what a statement above has proved, and a value of no operator is the
// result of a quotient, assumed to be whole.
func (s *statement) isOf(o operation, bodies []string, proof string) bool {
	if s.operator == "" {
		return o.operator == "/" && strings.Contains(proof, "@FIX("+s.left+",0)")
	}
	operand := func(script, gappa string) bool {
		if inside, ok := strings.CutPrefix(gappa, "("); ok {
			return slices.Contains(bodies, strings.TrimSuffix(inside, ")"))
		}
		if number, ok := numeral(script); ok {
			if value, ok := numeral(gappa); ok {
				return value == number
			}
			least, most, ok := assumed(proof, gappa)
			return ok && least <= number && number <= most
		}
		isName := regexp.MustCompile(`^\w+$`).MatchString(script)
		return !isName || gappa == script || strings.HasPrefix(gappa, script+"_")
	}
	return s.operator == o.operator && operand(o.left, s.left) && operand(o.right, s.right)
}

// numeral is the value of a number as Lua or Gappa write it.
func numeral(text string) (float64, bool) {
	if power, ok := strings.CutPrefix(text, "2^"); ok {
		text = "0x1p" + power
	}
	x, err := strconv.ParseFloat(text, 64)
	return x, err == nil
}

// assumed is the range in which a proof takes a name to be.
func assumed(proof, name string) (least, most float64, ok bool) {
	m := regexp.MustCompile(`/\\ ` + name + ` in \[([^,]*),([^\]]*)\]`).FindStringSubmatch(proof)
	if m == nil {
		return 0, 0, false
	}
	least, ok1 := numeral(m[1])
	most, ok2 := numeral(m[2])
	return least, most, ok1 && ok2
}

// scriptLines are the operations of a script by its lines, without comment and indentation. Of
// lines that are the same it has one.
func scriptLines(t *testing.T, script Script) map[string][]operation {
	t.Helper()
	text := strings.Split(lua.Assets[string(script)], "\n")
	lines := map[string][]operation{}
	for _, o := range operations(t, script) {
		code, _, _ := strings.Cut(text[o.line-1], " -- ")
		code = strings.TrimSpace(code)
		if other := lines[code]; len(other) == 0 || other[0].line == o.line {
			lines[code] = append(other, o)
		}
	}
	return lines
}

// goals are the names that a proof proves something about, and those of which they are made.
func goals(proof string) map[string]bool {
	definitions, conclusions, _ := strings.Cut(proof, "\n-> ")
	conclusions, _, _ = strings.Cut(conclusions, "\n}")
	of := map[string]bool{}
	name := regexp.MustCompile(`[A-Za-z]\w*`)
	for _, n := range name.FindAllString(conclusions, -1) {
		of[n] = true
	}
	lines := strings.Split(definitions, "\n")
	slices.Reverse(lines)
	for _, line := range lines {
		m := gappaRounded.FindStringSubmatch(line)
		if m == nil {
			m = gappaReal.FindStringSubmatch(line)
		}
		if m != nil && of[m[1]] {
			for _, n := range name.FindAllString(strings.Join(m[2:], " "), -1) {
				of[n] = true
			}
		}
	}
	return of
}

// Each operation of a script stands in its proof once or more, as the script has it, with what
// proves it: a statement whose name Gappa proves something about, or a lemma that has a test.
func TestProofIsOfTheScript(t *testing.T) {
	tests, err := os.ReadFile("lemmas_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range provedScripts {
		proof := readProof(t, script)
		stands, proved := map[string]bool{}, goals(proof)
		for _, o := range parseProof(t, script, proof) {
			stands[o.line] = true
			switch {
			case o.in != script: // it is held there
			case o.statement != nil && !proved[o.statement.name]:
				t.Errorf("%s.g: %s: nothing is proved of %s", script, o.line, o.statement.name)
			case o.statement == nil && !strings.Contains(string(tests), "\nfunc TestLemma"+o.lemma+"(t *testing.T) {"):
				t.Errorf("%s.g: %s: lemmas_test.go has no TestLemma%s", script, o.line, o.lemma)
			}
		}
		for line, operations := range scriptLines(t, script) {
			if !stands[line] {
				t.Errorf("%s.g lacks the line %d of the script: %s", script, operations[0].line, line)
			}
		}
	}
}
