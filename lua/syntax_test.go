package lua_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/tatami-rate/tatami/lua"
)

// kind is what is known of a value before the script runs. Kinds are followed
// because Lua turns numbers into strings and back without being asked, and each
// server has its own way of doing it. A function or library has its name as its kind.
type kind string

const (
	number  kind = "number"
	digits  kind = "text of digits"         // or empty; arithmetic reads it alike everywhere
	numeral kind = "number or digits"       // depends on the branch taken; for arithmetic only
	text    kind = "text"                   // any bytes
	quoted  kind = "literal of digits"      // a text; beside digits, digits; where a branch prints it, printed
	printed kind = "text of string.format"  // whole numbers in digits; for SET and .. only
	bytes   kind = "text of string.char"    // for SET only
	state   kind = "text to store"          // printed or bytes; for SET only
	key     kind = "key"                    // for commands and a set of keys only
	present kind = "key that may be absent" // for conditions only
	clock   kind = "reply to TIME"          // a table
	answer  kind = "reply of the server"    // a string, false or a table
	message kind = "field err"              // for conditions only
	counter kind = "number of a key"        // of a loop: whole, so .. prints it alike everywhere
	keySet  kind = "set of keys"            // a table: what keys were met
	answers kind = "reply of several keys"  // a table: numbers, and a table for each key
	each    kind = "reply of one key"       // a table in it: four numbers and a text
	boolean kind = "boolean"
	unset   kind = "nil"
	mixed   kind = "value of two kinds"
	faulty  kind = "fault" // reported already
)

// functions lists what a script may call, with the kinds of the arguments, all of
// which but the first may be left out.
var functions = map[kind]struct {
	result kind
	args   []kind
}{
	"tonumber":          {number, []kind{text}},
	"type":              {text, []kind{answer}},
	"math.fmod":         {number, []kind{number, number}},
	"math.min":          {number, []kind{number, number}},
	"math.max":          {number, []kind{number, number}},
	"string.byte":       {number, []kind{text, number, number}},
	"string.char":       {bytes, slices.Repeat([]kind{number}, 12)},
	"string.find":       {number, []kind{text, text}},
	"string.match":      {digits, []kind{text, text}},
	"string.format":     {printed, []kind{text, number, number}},
	"string.sub":        {text, []kind{text, number, number}}, // digits of digits
	"redis.call":        {answer, nil},                        // its arguments: commands
	"redis.pcall":       {answer, nil},
	"redis.error_reply": {answer, []kind{text}},
}

// formats are the forms of string.format. Each prints a whole number: alone, with the
// nine digits of the nanoseconds below a second, or as such digits. %d goes through an
// integer, C's long on a server, so its numbers are below 2^31: below31. %.0f prints any
// double in full, a whole one exactly. Lua 5.4 wants a whole number for %d, which may be a
// double, and takes an integer for %.0f too. %s takes over digits as they are.
var formats = []string{"%d", "%09d", "%d%09d", "%s%09d", "%.0f", "%.0f%09d"}

// digitPatterns are the patterns of string.find that tell digits, with whether
// digits are what is found.
var digitPatterns = map[string]bool{`%D`: false, `^[1-9]%d*$`: true}

// captures is the form of string.match's patterns, which capture nothing but digits,
// side by side or with a space between. One that finds nothing gives nil for each.
var captures = regexp.MustCompile(`^\^\((\[1-9\])?(%d)+[+*]?\)( ?\((\[1-9\])?(%d)+[+*]?\))*\$$`)

// joints are the literals that .. may put beside digits: 0 in front of what may be empty,
// and the space of a state of several numbers.
var joints = []string{"0", " "}

// commands lists the commands that a script may send, argument by argument: a
// literal in quotes, %d for string.format(...), bytes for string.char(...). All are
// strings: servers print numbers in different ways.
var commands = []string{
	`"TIME"`,
	`"GET" KEYS[1]`,
	`"SET" KEYS[1] %d "EX" %d`,
	`"SET" KEYS[1] %d "KEEPTTL"`,
	`"SET" KEYS[1] bytes "EX" %d`,
	`"SET" KEYS[1] bytes "KEEPTTL"`,
	`"GET" KEYS[i]`,
	`"SET" KEYS[i] state "EX" %d`,
	`"SET" KEYS[i] state "KEEPTTL"`,
}

// inText is how often each command stands in a script: SET once with an expiry and once
// with KEEPTTL, in two branches of which one runs; GET in limits_v1 for each kind of limit.
func inText(asset string) map[string]int {
	gets := 1
	if asset == "limits_v1" {
		gets = 2
	}
	return map[string]int{`"TIME"`: 1, `"GET"`: gets, `"SET"`: 2}
}

var globals = []string{"redis", "KEYS", "ARGV", "math", "string", "tonumber", "type"}

// checker walks the syntax tree of one asset. It allows by list: what is not known
// to mean the same in Lua 5.1, 5.4, LuaJIT and gopher-lua is a fault.
//
// It follows the kinds of locals through branches. Two names that hold the same value
// point to the same kind, so that a check of one says something of the other.
type checker struct {
	asset  string
	scopes []map[string]*kind // the innermost last
	shown  []*kind            // of numbers that a condition around shows to be below 2^31
	sent   []string           // commands that have run where the walk stands
	fields map[string]kind    // what was put in place of arguments, by their sources
	loop   int                // how many scopes stand around the loop that the walk is in; 0: none
	text   map[string]int     // commands in the whole text
	small  map[string]string  // the asset's part of below53
	low    map[string]string  // the asset's part of below31
	used   map[string]bool    // what of the two was needed
	faults []string
}

// checkSyntax returns what the asset's text does that an asset must not do, each
// as "asset:line: rule", and how often each command stands in it. small and low are its
// parts of below53 and below31.
func checkSyntax(asset, source string, small, low map[string]string) (faults []string, commands map[string]int) {
	statements, err := parse.Parse(strings.NewReader(source), asset)
	if err != nil {
		return []string{err.Error()}, nil
	}
	c := &checker{asset: asset, small: small, low: low, used: map[string]bool{}, text: map[string]int{}, fields: map[string]kind{}}
	c.block(statements)
	for list, names := range map[string]map[string]string{"below53": small, "below31": low} {
		for name := range names {
			if !c.used[list+" "+name] {
				c.faults = append(c.faults, fmt.Sprintf("%s: %s lists %s in vain", asset, list, name))
			}
		}
	}
	return c.faults, c.text
}

func (c *checker) fault(at ast.PositionHolder, format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf("%s:%d: ", c.asset, at.Line())+fmt.Sprintf(format, args...))
}

// scope returns the scope that holds the local of that name, or nil.
func (c *checker) scope(name string) map[string]*kind {
	for _, scope := range slices.Backward(c.scopes) {
		if _, ok := scope[name]; ok {
			return scope
		}
	}
	return nil
}

func (c *checker) block(statements []ast.Stmt) {
	c.scopes = append(c.scopes, map[string]*kind{})
	for _, statement := range statements {
		c.statement(statement)
	}
	c.scopes = c.scopes[:len(c.scopes)-1]
}

func (c *checker) statement(statement ast.Stmt) {
	switch s := statement.(type) {
	case *ast.LocalAssignStmt:
		for i, value := range c.values(s.Exprs, len(s.Names)) {
			if name := s.Names[i]; slices.Contains(globals, name) && *value != kind(name) {
				c.fault(s, "the local %s hides a global", name)
			}
			c.scopes[len(c.scopes)-1][s.Names[i]] = value
		}
	case *ast.AssignStmt:
		for i, value := range c.values(s.Rhs, len(s.Lhs)) {
			c.assign(s.Lhs[i], value)
		}
	case *ast.IfStmt:
		c.branches(s)
	case *ast.NumberForStmt:
		c.keys(s)
	case *ast.ReturnStmt:
		if len(s.Exprs) != 1 {
			c.fault(s, "return with %d values", len(s.Exprs))
		} else if table, ok := s.Exprs[0].(*ast.TableExpr); ok {
			c.reply(table)
		} else {
			c.want(s.Exprs[0], answer, "what is returned")
		}
	default:
		c.fault(s, "%s: an asset has no statement but local, assignment, if, for and return", nodeName(s))
	}
}

// keys walks a loop over the keys once: it assigns no local from outside, so that each
// turn finds what the first one does. A turn has a key of its own to read and to write.
func (c *checker) keys(s *ast.NumberForStmt) {
	if from, ok := literal(s.Init); !ok || from != 1 || s.Step != nil || c.loop > 0 {
		c.fault(s, "a loop other than one from 1 by 1, and in no other")
	}
	c.want(s.Limit, number, "the limit of a loop")
	before := len(c.sent)
	c.scopes = append(c.scopes, map[string]*kind{s.Name: new(counter)})
	c.loop = len(c.scopes)
	c.block(s.Stmts)
	c.scopes, c.loop = c.scopes[:len(c.scopes)-1], 0
	in := c.sent[before:]
	if slices.Contains(in, `"TIME"`) || slices.Contains(in, `"SET"`) && slices.ContainsFunc(in, func(name string) bool { return name != `"SET"` }) {
		c.fault(s, "a loop sends %s: it reads the keys, or writes them", strings.Join(in, " and "))
	}
}

// branches walks both branches of an if from the same kinds and joins what they
// leave. One that returns leaves nothing.
func (c *checker) branches(s *ast.IfStmt) {
	c.expression(s.Condition)
	sent, shown := c.sent, c.shown
	var run []string // what either branch sends
	branch := func(statements []ast.Stmt, truth bool) []map[string]*kind {
		before := c.scopes
		c.sent = slices.Clone(sent)
		if name := below31If(s.Condition, truth); c.scope(name) != nil {
			c.shown = append(slices.Clone(shown), c.scope(name)[name])
		}
		c.scopes = nil
		for _, scope := range before {
			c.scopes = append(c.scopes, maps.Clone(scope))
		}
		for _, name := range c.digitsIf(s.Condition, truth) {
			c.setDigits(name)
		}
		c.block(statements)
		after := c.scopes
		c.scopes, c.shown = before, shown
		if !returns(statements) {
			run = append(run, c.sent[len(sent):]...)
		}
		return after
	}
	then, otherwise := branch(s.Then, true), branch(s.Else, false)
	c.sent = append(slices.Clone(sent), run...)
	switch {
	case returns(s.Else):
		c.scopes = then
	case returns(s.Then):
		c.scopes = otherwise
	default:
		for i, scope := range then {
			for name, value := range scope {
				if other := otherwise[i][name]; value != other {
					scope[name] = new(join(*value, *other))
				}
			}
		}
		c.scopes = then
	}
}

// below31If returns the local that a condition, name < 2^31 or name >= 2^31, shows to be
// below 2^31 when it comes out as truth.
func below31If(condition ast.Expr, truth bool) string {
	shows := ">="
	if truth {
		shows = "<"
	}
	e, ok := condition.(*ast.RelationalOpExpr)
	if !ok || e.Operator != shows {
		return ""
	}
	if bound, ok := literal(e.Rhs); !ok || bound != 1<<31 {
		return ""
	}
	if ident, ok := e.Lhs.(*ast.IdentExpr); ok {
		return ident.Value
	}
	return ""
}

func returns(block []ast.Stmt) bool {
	if len(block) == 0 {
		return false
	}
	switch last := block[len(block)-1].(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.IfStmt:
		return returns(last.Then) && returns(last.Else)
	}
	return false
}

// join returns the kind of what is of one kind or of the other. What may be nil keeps
// its kind: to compute with nil is an error in every Lua, and converts nothing.
func join(a, b kind) kind {
	numerals := []kind{number, digits, numeral}
	texts, bare, stored := []kind{text, digits, quoted}, []kind{printed, digits, quoted}, []kind{printed, bytes, state}
	switch {
	case a == digits && b == quoted, a == quoted && b == digits:
		return digits
	case a == b || b == unset:
		return a
	case a == unset:
		return b
	case a == faulty || b == faulty:
		return faulty
	case slices.Contains(numerals, a) && slices.Contains(numerals, b):
		return numeral
	case slices.Contains(texts, a) && slices.Contains(texts, b):
		return text
	case slices.Contains(bare, a) && slices.Contains(bare, b): // one of them is printed
		return printed
	case a == answer && slices.Contains(texts, b), b == answer && slices.Contains(texts, a):
		return answer // which may be text, and is taken for no more
	case slices.Contains(stored, a) && slices.Contains(stored, b):
		return state
	case a == printed && b == text, a == text && b == printed:
		return text
	}
	return mixed
}

// digitsIf returns the locals that a condition shows to be digits when it comes out
// as truth.
func (c *checker) digitsIf(condition ast.Expr, truth bool) []string {
	var name, literal ast.Expr
	switch e := condition.(type) {
	case *ast.UnaryNotOpExpr:
		return c.digitsIf(e.Expr, !truth)
	case *ast.LogicalOpExpr:
		left, right := c.digitsIf(e.Lhs, truth), c.digitsIf(e.Rhs, truth)
		if (e.Operator == "and") == truth { // both sides come out as truth
			return append(left, right...)
		}
		return slices.DeleteFunc(left, func(name string) bool { return !slices.Contains(right, name) })
	case *ast.RelationalOpExpr:
		if truth && e.Operator == "==" || !truth && e.Operator == "~=" {
			name, literal = e.Lhs, e.Rhs
		}
	case *ast.FuncCallExpr:
		if c.name(e.Func) == "string.find" && len(e.Args) == 2 {
			name, literal = e.Args[0], e.Args[1]
		}
	}
	ident, isName := name.(*ast.IdentExpr)
	value, isLiteral := literal.(*ast.StringExpr)
	if !isName || !isLiteral || c.scope(ident.Value) == nil {
		return nil
	}
	found, isPattern := digitPatterns[value.Value]
	_, isCall := condition.(*ast.FuncCallExpr)
	if isCall && isPattern && found == truth || !isCall && value.Value == "0" {
		return []string{ident.Value}
	}
	return nil
}

// setDigits makes digits of a local's text, under all names of it.
func (c *checker) setDigits(name string) {
	old := c.scope(name)[name]
	if *old != text && *old != answer {
		return
	}
	value := new(digits)
	for _, scope := range c.scopes {
		for name := range scope {
			if scope[name] == old {
				scope[name] = value
			}
		}
	}
}

// values returns the n values that a list of expressions gives.
func (c *checker) values(expressions []ast.Expr, n int) []*kind {
	values := make([]*kind, n)
	for i := range values {
		values[i] = new(unset)
	}
	for i, e := range expressions {
		value := new(c.expression(e))
		if ident, ok := e.(*ast.IdentExpr); ok && c.scope(ident.Value) != nil {
			value = c.scope(ident.Value)[ident.Value]
		}
		_, isCall := e.(*ast.FuncCallExpr)
		for j := i; j < n && (j == i || isCall && i == len(expressions)-1); j++ {
			values[j] = new(*value)
			if j == i {
				values[j] = value
			}
		}
	}
	return values
}

func (c *checker) assign(target ast.Expr, value *kind) {
	if field, ok := target.(*ast.AttrGetExpr); ok {
		c.assignField(field, *value)
		return
	}
	ident := target.(*ast.IdentExpr)
	if scope := c.scope(ident.Value); scope == nil {
		c.fault(target, "assignment to the global %s", ident.Value)
	} else if slices.IndexFunc(c.scopes, func(s map[string]*kind) bool { _, ok := s[ident.Value]; return ok }) < c.loop-1 {
		c.fault(target, "a loop assigns %s, a local from outside", ident.Value)
	} else {
		scope[ident.Value] = value
	}
}

// assignField allows a value in place of an argument that was read, by the number of its
// key; a key in a set of keys; and the values of a reply.
func (c *checker) assignField(field *ast.AttrGetExpr, value kind) {
	index, isNumber := literal(field.Key)
	switch object := c.expression(field.Object); {
	case object == "ARGV" && c.ofKey(field.Key):
		if put, ok := c.fields[sourceOf(field.Key)]; ok { // in another branch, or of another key
			value = join(put, value)
		}
		c.fields[sourceOf(field.Key)] = value
	case object == keySet && c.expression(field.Key) == key && value == boolean:
	case object == answers && isNumber && index <= 2, object == each && isNumber && index <= 4:
		if value != number {
			c.fault(field, "value %.0f of a reply is a %s where a number is due", index, value)
		}
	case object == answers && c.ofKey(field.Key) && value == each:
	case object == each && isNumber && index == 5 && slices.Contains([]kind{text, digits, quoted, printed}, value):
	default:
		c.fault(field, "assignment to a field of a %s", object)
	}
}

// ofKey tells whether an expression is arithmetic on the number of a key and literals.
func (c *checker) ofKey(expression ast.Expr) bool {
	switch e := expression.(type) {
	case *ast.IdentExpr:
		return c.name(e) == counter
	case *ast.ArithmeticOpExpr:
		_, left := literal(e.Lhs)
		_, right := literal(e.Rhs)
		return (left || c.ofKey(e.Lhs)) && (right || c.ofKey(e.Rhs)) && !(left && right)
	}
	return false
}

func (c *checker) reply(table *ast.TableExpr) {
	if len(table.Fields) != 4 {
		c.fault(table, "the reply is four numbers, not %d values", len(table.Fields))
	}
	c.replyValues(table, 4)
}

// replyValues wants numbers, the first of the values of a table, and texts after them.
func (c *checker) replyValues(table *ast.TableExpr, numbers int) {
	for i, field := range table.Fields {
		if field.Key != nil {
			c.fault(table, "the reply is values without keys")
		}
		due := number
		if i >= numbers {
			due = text
		}
		c.want(field.Value, due, fmt.Sprintf("value %d of the reply", i+1))
	}
}

// table allows an empty one, a set of keys; two numbers, the reply of several keys before
// theirs; and the reply of one of them.
func (c *checker) table(table *ast.TableExpr) kind {
	switch len(table.Fields) {
	case 0:
		return keySet
	case 2:
		c.replyValues(table, 2)
		return answers
	case 5:
		c.replyValues(table, 4)
		return each
	}
	c.fault(table, "a table of %d values", len(table.Fields))
	return faulty
}

// want walks an expression and refuses it when it is of none of the kinds that will do.
func (c *checker) want(e ast.Expr, k kind, what string) {
	will := []kind{k}
	switch k {
	case text:
		will = []kind{text, digits, quoted, answer, printed}
	case number:
		will = []kind{number, counter}
	case numeral:
		will = []kind{number, digits, numeral, counter}
	case answer:
		will = []kind{answer, clock, answers}
	}
	if got := c.expression(e); got != faulty && !slices.Contains(will, got) {
		c.fault(e, "%s is a %s where a %s is due: no implicit conversion", what, got, k)
	}
}

func (c *checker) expression(expression ast.Expr) kind {
	switch e := expression.(type) {
	case *ast.NumberExpr:
		return number
	case *ast.StringExpr:
		if strings.Trim(e.Value, "0123456789") == "" && e.Value != "" {
			return quoted
		}
		return text
	case *ast.TrueExpr, *ast.FalseExpr:
		return boolean
	case *ast.NilExpr:
		return unset
	case *ast.IdentExpr:
		name := c.name(e)
		if name == "" {
			c.fault(e, "the global %s: only %s are read", e.Value, strings.Join(globals, ", "))
			return faulty
		}
		return name
	case *ast.AttrGetExpr:
		return c.element(e)
	case *ast.TableExpr:
		return c.table(e)
	case *ast.FuncCallExpr:
		return c.call(e)
	case *ast.LogicalOpExpr:
		left, right := c.expression(e.Lhs), c.expression(e.Rhs)
		if e.Operator == "or" {
			return join(left, right)
		}
		return right
	case *ast.RelationalOpExpr:
		if e.Operator == "==" || e.Operator == "~=" {
			c.expression(e.Lhs)
			c.expression(e.Rhs)
		} else {
			c.want(e.Lhs, number, "the left side of "+e.Operator)
			c.want(e.Rhs, number, "the right side of "+e.Operator)
		}
		return boolean
	case *ast.StringConcatOpExpr:
		return c.concat(e)
	case *ast.ArithmeticOpExpr:
		c.arithmetic(e)
		return number
	case *ast.UnaryMinusOpExpr:
		c.want(e.Expr, numeral, "the operand of -")
		if value, ok := literal(e.Expr); ok && value == 0 {
			c.fault(e, "the literal -0")
		}
		return number
	case *ast.UnaryNotOpExpr:
		c.expression(e.Expr)
		return boolean
	case *ast.UnaryLenOpExpr:
		if name := c.name(e.Expr); name != "KEYS" && name != "ARGV" {
			c.want(e.Expr, text, "the operand of #")
		}
		return number
	default:
		c.fault(e, "%s: an asset has no such expression", nodeName(e))
		return faulty
	}
}

// name returns the kind that an expression names without computing it: that of a
// local, a global, a function of a library. It is "" for all else.
func (c *checker) name(expression ast.Expr) kind {
	switch e := expression.(type) {
	case *ast.IdentExpr:
		if scope := c.scope(e.Value); scope != nil {
			return *scope[e.Value]
		}
		if slices.Contains(globals, e.Value) {
			return kind(e.Value)
		}
	case *ast.AttrGetExpr:
		if field, ok := e.Key.(*ast.StringExpr); ok {
			if name := c.name(e.Object) + "." + kind(field.Value); functions[name].result != "" {
				return name
			}
		}
	}
	return ""
}

// element allows a function of a library; KEYS[1], and KEYS[2] to ask whether there
// is one; ARGV[n]; both by the number of a key; the elements of TIME, and of replies; a
// key in a set of keys; and the field err of an answer.
func (c *checker) element(e *ast.AttrGetExpr) kind {
	if name := c.name(e); name != "" {
		return name
	}
	index, isNumber := literal(e.Key)
	field := ""
	if literal, ok := e.Key.(*ast.StringExpr); ok {
		field = literal.Value
	}
	switch object := c.expression(e.Object); {
	case object == faulty:
	case object == "KEYS" && isNumber && index == 1:
		return key
	case object == "KEYS" && isNumber && index == 2:
		return present
	case object == "KEYS" && c.name(e.Key) == counter:
		return key
	case object == "ARGV" && c.ofKey(e.Key):
		if put, ok := c.fields[sourceOf(e.Key)]; ok {
			return put
		}
		return text
	case object == keySet && c.expression(e.Key) == key:
		return boolean
	case object == answers && isNumber && index <= 2, object == each && isNumber && index <= 4:
		return number
	case object == answers && c.ofKey(e.Key):
		return each
	case object == "KEYS":
		c.fault(e, "KEYS is read as KEYS[1], KEYS[2] and #KEYS only")
	case object == "ARGV" && isNumber:
		return text
	case object == "ARGV":
		c.fault(e, "ARGV is read by literal numbers only")
	case object == clock && isNumber:
		return digits
	case (object == clock || object == answer) && field == "err":
		return message
	case object == "redis" || object == "math" || object == "string":
		c.fault(e, "the function %s.%s: only %s are called", object, field, functionNames())
	default:
		c.fault(e, "a field of a %s that scripts do not read", object)
	}
	return faulty
}

func functionNames() string {
	return fmt.Sprintf("%v", slices.Sorted(maps.Keys(functions)))
}

func (c *checker) call(call *ast.FuncCallExpr) kind {
	name := faulty
	if call.Func == nil {
		c.fault(call, "a call of a method")
	} else {
		name = c.expression(call.Func)
	}
	function, ok := functions[name]
	switch {
	case name == faulty:
		return faulty
	case !ok:
		c.fault(call, "a call of a %s", name)
		return faulty
	case function.args == nil:
		return c.command(call)
	case len(call.Args) < 1 || len(call.Args) > len(function.args) || name == "string.match" && len(call.Args) != 2:
		c.fault(call, "%s with %d arguments: it takes 1 to %d", name, len(call.Args), len(function.args))
		return function.result
	}
	before := len(c.faults)
	for i, arg := range call.Args {
		due := function.args[i]
		if form, ok := call.Args[0].(*ast.StringExpr); ok && name == "string.format" && i == 1 && strings.HasPrefix(form.Value, "%s") {
			due = digits
		}
		c.want(arg, due, fmt.Sprintf("argument %d of %s", i+1, name))
	}
	switch name {
	case "string.sub":
		if c.name(call.Args[0]) == digits {
			return digits
		}
	case "string.match":
		if pattern, ok := call.Args[1].(*ast.StringExpr); !ok || !captures.MatchString(pattern.Value) {
			c.fault(call, "string.match with a pattern other than digits in captures")
		}
	case "string.format":
		if len(c.faults) == before {
			c.format(call)
		}
	case "redis.error_reply":
		c.errorReply(call)
	}
	return function.result
}

// format wants one of the formats, and below 2^31 what %d prints.
func (c *checker) format(call *ast.FuncCallExpr) {
	format, ok := call.Args[0].(*ast.StringExpr)
	if !ok || !slices.Contains(formats, format.Value) {
		c.fault(call, "string.format with a format other than %q", formats)
		return
	}
	conversions := strings.Split(format.Value, "%")[1:]
	if len(conversions) != len(call.Args)-1 {
		c.fault(call, "string.format of %q with %d numbers", format.Value, len(call.Args)-1)
		return
	}
	for i, conversion := range conversions {
		arg := call.Args[i+1]
		written := sourceOf(arg)
		if !strings.HasSuffix(conversion, "d") {
			continue
		}
		if value, ok := literal(arg); ok && value < 1<<31 {
			continue
		}
		if scope := c.scope(written); scope != nil && slices.Contains(c.shown, scope[written]) {
			continue
		}
		if c.low[written] == "" {
			c.fault(call, "%%d of %s, which may be 2^31 or more", written)
		}
		c.used["below31 "+written] = true
	}
}

// sourceOf is arithmetic on names and numbers as below31 has it, with a bracket around
// each operation but the outermost.
func sourceOf(expression ast.Expr) string {
	operand := func(e ast.Expr) string {
		if _, ok := e.(*ast.ArithmeticOpExpr); ok {
			return "(" + sourceOf(e) + ")"
		}
		return sourceOf(e)
	}
	switch e := expression.(type) {
	case *ast.IdentExpr:
		return e.Value
	case *ast.NumberExpr:
		return e.Value
	case *ast.UnaryMinusOpExpr:
		return "-" + operand(e.Expr)
	case *ast.ArithmeticOpExpr:
		return operand(e.Lhs) + " " + e.Operator + " " + operand(e.Rhs)
	}
	return nodeName(expression)
}

func (c *checker) errorReply(call *ast.FuncCallExpr) {
	message := call.Args[0]
	if concat, ok := message.(*ast.StringConcatOpExpr); ok {
		message = concat.Lhs // .. groups from the right, so this is the first part
	}
	literal, ok := message.(*ast.StringExpr)
	if !ok || !strings.HasPrefix(literal.Value, "BADARG "+c.asset+": ") &&
		!strings.HasPrefix(literal.Value, "BADSTATE "+c.asset+": ") {
		c.fault(call, "an error that does not start with 'BADARG %s: ' or 'BADSTATE %s: '", c.asset, c.asset)
	}
}

func (c *checker) command(call *ast.FuncCallExpr) kind {
	var words []string
	for i, arg := range call.Args {
		word := map[kind]string{key: "KEYS[1]", printed: "%d", bytes: "bytes", state: "state"}[c.expression(arg)]
		if c.loop > 0 && word == "KEYS[1]" {
			word = "KEYS[i]"
		}
		if literal, ok := arg.(*ast.StringExpr); ok {
			word = strconv.Quote(literal.Value)
		}
		if word == "" {
			c.fault(call, "argument %d of a command is not a literal, a key, string.format(...) or string.char(...)", i+1)
			return answer
		}
		words = append(words, word)
	}
	sent := strings.Join(words, " ")
	if !slices.Contains(commands, sent) {
		c.fault(call, "the command %s: only %s are sent", sent, strings.Join(commands, ", "))
		return answer
	}
	// There are no functions, so each call in the text runs once at most, in a loop for a key.
	name := words[0]
	c.text[name]++
	if slices.Contains(c.sent, name) {
		c.fault(call, "%s is sent twice", name)
	} else if slices.Contains(c.sent, `"SET"`) {
		c.fault(call, "%s is sent after SET, which is the last command", name)
	}
	c.sent = append(c.sent, name)
	if name == `"TIME"` {
		return clock
	}
	return answer
}

// concat allows .. of literals, for an error reply; and of digits, of what string.format
// printed and of joints, for a number or a state. Strings are joined alike everywhere;
// numbers would be printed first.
func (c *checker) concat(e *ast.StringConcatOpExpr) kind {
	parts := []ast.Expr{e.Lhs} // .. groups from the right
	rest := e.Rhs
	for {
		next, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		parts, rest = append(parts, next.Lhs), next.Rhs
	}
	parts = append(parts, rest)
	literals, bare, counters, result := 0, 0, 0, digits
	for _, part := range parts {
		got := c.expression(part)
		literal, isLiteral := part.(*ast.StringExpr)
		if isLiteral {
			literals++
			if slices.Contains(joints, literal.Value) {
				bare++
				if literal.Value == " " {
					result = printed
				}
			}
			continue
		}
		switch got {
		case faulty:
			return faulty
		case printed:
			result = printed
			bare++
		case digits:
			bare++
		case counter:
			counters++
		}
	}
	switch len(parts) {
	case literals + counters:
		return text
	case bare:
		return result
	}
	c.fault(e, ".. of something else than string literals, or digits and %q", joints)
	return faulty
}

// below53 are, by asset, the names whose values are whole and below 2^53 in magnitude
// wherever % is taken of them, and why. A unit of 2^n changes nothing but exponents, so
// values that are multiples of one are counted in it.
var below53 = map[string]map[string]string{
	"gcra_v1": {
		"period_ns": "checked to be at most 2^52",
		"ns":        "it and 1e9 are multiples of 256, and it is less than 2^53 of them",
		"left":      "it and interval are multiples of 256, and it is less than 2^53 of them",
	},
	"gcra_v2": {
		"period_ns": "checked to be at most 2^52",
		"ns":        "below 10^9 and at most tau together, where tau is at most 2^52",
		"left":      "at most tau; from interval on",
	},
	"limits_v1": {
		"period_ns": "checked to be at most 2^52",
		"c":         "at most worth, below 2^53",
		"ns": "below 10^9 and at most tau together; or with a debt of at most 2^53 - 1, less 4 * 10^15 from 2^52 on; " +
			"or below 10^9, less c",
		"left":     "at most tau; from interval on",
		"w":        "period_ns",
		"since_ns": "below w and below 10^9 together",
		"part":     "two factors below 2^16 each",
		"end_ns":   "as in window_v1",
	},
	"window_v1": {
		"w":        "period_ns, checked to be at most 2^52",
		"since_ns": "below w and below 10^9 together",
		"part":     "two factors below 2^16 each",
		"end_ns": "or below 2^54 (three windows) and even; then end_ns / 10^9 is whole or at least 2 * 10^-9 off that, " +
			"more than it rounds, and what is floored times 10^9 is a multiple of 2^9, so exact",
	},
}

// below31 are, by asset, what is below 2^31 and above -2^31 wherever %d prints it, and
// why, with a bracket around each operation. Where a branch asks for name < 2^31, the
// name need not be here.
var below31 = map[string]map[string]string{
	"gcra_v1": {
		"tat_sub_ns":   "below 10^9",
		"ahead_s + 61": "ahead is at most tau, 2^60 ns, which is 1.2 * 10^9 s",
		"ahead_s + 2":  "the same",
	},
	"gcra_v2": {
		"tat_sub_ns": "below 10^9",
		"(expiry_s - now_s) + 61": "tau, 2^52 ns, is 52 days; last lies no further ahead, unless a clock that is " +
			"68 years ahead wrote it, or a hand: then a server of 32 bits answers an error, or lets the key live 68 years",
		"(expiry_s - now_s) + 2": "the same",
	},
	"limits_v1": {
		"tat_sub_ns":              "below 10^9",
		"sum_sub_ns":              "below 10^9",
		"(expiry_s - now_s) + 61": "as in gcra_v2; a debt of 2^53 ns is 104 days",
		"(expiry_s - now_s) + 2":  "the same",
		"((end_ns + (-end_ns % 1e9)) / 1e9) + margin_s": "as in window_v1",
	},
	"window_v1": {
		"((end_ns + (-end_ns % 1e9)) / 1e9) + margin_s": "three windows, 3 * 2^52 ns, are 157 days, and a minute",
	},
}

// arithmetic wants numbers or digits on both sides. Lua 5.1 computes a % b as
// a - floor(a / b) * b. From 2^53 on that is wrong for most b, so a % b wants either
// a power of two written out as b, which moves nothing but the exponent, so that every
// step is exact whatever a is, or one of the names below53 as a or -a. For all else
// there is math.fmod, exact everywhere.
func (c *checker) arithmetic(e *ast.ArithmeticOpExpr) {
	c.want(e.Lhs, numeral, "the left side of "+e.Operator)
	c.want(e.Rhs, numeral, "the right side of "+e.Operator)
	switch e.Operator {
	case "%":
		value, ok := literal(e.Rhs)
		if fraction, _ := math.Frexp(value); ok && value >= 1 && fraction == 0.5 {
			return
		}
		left := e.Lhs
		if minus, ok := left.(*ast.UnaryMinusOpExpr); ok {
			left = minus.Expr
		}
		if name, ok := left.(*ast.IdentExpr); ok && c.small[name.Value] != "" {
			c.used["below53 "+name.Value] = true
			return
		}
		c.fault(e, "%% by something else than a literal power of two, of what may be above 2^53: use math.fmod")
	case "^":
		if _, ok := literal(e); !ok {
			c.fault(e, "^ of something else than 2 and a literal")
		}
	}
}

// literal returns the value of a number or of 2^number.
func literal(expression ast.Expr) (float64, bool) {
	switch e := expression.(type) {
	case *ast.NumberExpr:
		if whole, err := strconv.ParseInt(e.Value, 0, 64); err == nil && strings.HasPrefix(e.Value, "0x") {
			return float64(whole), true
		}
		value, err := strconv.ParseFloat(e.Value, 64)
		return value, err == nil
	case *ast.ArithmeticOpExpr:
		_, isNumber := e.Rhs.(*ast.NumberExpr)
		base, ok := literal(e.Lhs)
		exponent, _ := literal(e.Rhs)
		return math.Exp2(exponent), e.Operator == "^" && ok && base == 2 && isNumber
	}
	return 0, false
}

func nodeName(node any) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", node), "*ast.")
}

// checkHeader returns what the asset's first comment block lacks.
func checkHeader(asset, source string) []string {
	var header []string
	for line := range strings.Lines(source) {
		if !strings.HasPrefix(line, "--") {
			break
		}
		header = append(header, line)
	}
	keys := "-- KEYS[1] "
	if asset == "limits_v1" {
		keys = "-- KEYS "
	}
	starts := []string{"-- " + asset + ": ", "-- SPDX-License-Identifier: MIT", "-- https://github.com/tatami-rate/tatami",
		keys, "-- ARGV ", "-- reply ", "-- errors ", "-- expiry "}
	for _, line := range header {
		if arguments, ok := strings.CutPrefix(line, "-- ARGV "); ok {
			arguments, _, _ = strings.Cut(arguments, "}") // what stands behind says of how many keys
			for _, name := range strings.Fields(strings.Replace(arguments, "{", "", 1)) {
				starts = append(starts, "--   "+strings.Trim(name, "[]")+" ")
			}
		}
	}
	for _, output := range []string{"status", "remaining", "retry_after_ns", "reset_after_ns"} {
		starts = append(starts, "--   "+output+" ")
	}
	var faults []string
	for _, start := range starts {
		if !slices.ContainsFunc(header, func(line string) bool { return strings.HasPrefix(line, start) }) {
			faults = append(faults, fmt.Sprintf("%s: no line of the header starts with %q", asset, start))
		}
	}
	for _, clock := range []string{"with the server's clock", "with a caller's clock"} {
		margin := regexp.MustCompile(`^--   \d+ s more +` + clock)
		if !slices.ContainsFunc(header, margin.MatchString) {
			faults = append(faults, fmt.Sprintf("%s: no line of the header says how many s more an expiry has %s", asset, clock))
		}
	}
	return faults
}

// readAssets returns the text of every asset in this folder by name.
func readAssets(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("*.lua")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no assets found: %v", err)
	}
	assets := map[string]string{}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		assets[strings.TrimSuffix(path, ".lua")] = string(source)
	}
	return assets
}

func TestAssets(t *testing.T) {
	assets := readAssets(t)
	if !maps.Equal(lua.Assets, assets) {
		t.Errorf("lua.Assets has %q, and not each as in its file; the files are %q",
			slices.Sorted(maps.Keys(lua.Assets)), slices.Sorted(maps.Keys(assets)))
	}
	for asset, source := range assets {
		faults, commands := checkSyntax(asset, source, below53[asset], below31[asset])
		for _, fault := range slices.Concat(faults, checkHeader(asset, source)) {
			t.Error(fault)
		}
		if want := inText(asset); !maps.Equal(commands, want) {
			t.Errorf("%s sends %v, want %v", asset, commands, want)
		}
	}
}

// Each snippet stands on line 2 and has one fault, which must be named.
func TestSyntaxRefuses(t *testing.T) {
	const (
		set    = "redis.pcall('SET', KEYS[1], string.format('%d', 1), 'EX', string.format('%d', 1))"
		keep   = "redis.pcall('SET', KEYS[1], string.format('%d', 1), 'KEEPTTL')"
		stored = "ARGV[i] = string.format('%d', 1) if ARGV[i + 1] == '' then ARGV[i] = string.char(1) end "
		setOf  = "redis.pcall('SET', KEYS[i], ARGV[i], 'KEEPTTL')"
		tat    = "local x, y, z = string.match(ARGV[1], '^(%d+) ([1-9]%d*) ([1-9]%d*)$') "
	)
	for _, test := range []struct{ snippet, want string }{
		{"local x = tostring(1)", "the global tostring"},
		{"local x = unpack(KEYS)", "the global unpack"},
		{"local x = table.maxn(KEYS)", "the global table"},
		{"local x = bit.band(1, 2)", "the global bit"},
		{"local x = struct.pack('>I4', 1)", "the global struct"},
		{"local x = cjson.encode(1)", "the global cjson"},
		{"local x = cmsgpack.pack(1)", "the global cmsgpack"},
		{"local x = math.random(9)", "the function math.random"},
		{"local x = pcall(tonumber, '1')", "the global pcall"},
		{"local x = ('1'):rep(2)", "a call of a method"},
		{"local x = ('a').rep('a', 2)", "a field of a text"},
		{"local x = 'a' local y = x()", "a call of a text"},
		{"local x = redis()", "a call of a redis"},
		{"local x = tonumber('10', 16)", "tonumber with 2 arguments"},
		{"local x = tonumber()", "tonumber with 0 arguments"},

		{"local x = '1' .. 2", ".. of something else"},
		{"local x = tonumber('1') local y = x .. 'ns'", ".. of something else"},
		{"local x = 'a' .. ARGV[1]", ".. of something else"},
		{"local x = 'a' .. 'b' .. 3", ".. of something else"},
		{"local x = 'a' .. KEYS[1].err", "a field of a key"},
		{"local x = 'a' .. redis.pcall('TIME').err", ".. of something else"},
		{tat + "local z = 'a' .. x", ".. of something else"},
		{tat + "local z = x .. '1'", ".. of something else"},
		{tat + "local z = x .. ' ' .. 1", ".. of something else"},
		{tat + "local z = x .. string.char(1)", ".. of something else"},
		{tat + "local z = x .. ','", ".. of something else"},
		{"local x = '0' .. ARGV[1]", ".. of something else"},
		{"local x = ' ' .. KEYS[1]", ".. of something else"},
		{"local x = '0' .. string.format('%d', 1) local y = x + 1", "the left side of + is a text of string.format"},
		{tat + "local w = x .. ' ' .. y local z = w + 1", "the left side of + is a text of string.format"},
		{tat + "local w = '0' .. x local z = w < 1", "the left side of < is a text of digits where a number is due"},
		{"local x = string.sub(12, 1)", "argument 1 of string.sub is a number where a text is due"},
		{"local x = string.find(2^60, '1')", "argument 1 of string.find is a number where a text is due"},
		{"local x = ARGV[1] + 1", "the left side of + is a text where a number or digits is due"},
		{"local x = math.floor(1.5)", "the function math.floor"},
		{"local x = 1 - '1'", "the right side of - is a literal of digits where a number or digits is due"},
		{"local x = -ARGV[1]", "the operand of - is a text where a number or digits is due"},
		{"local x = math.min(ARGV[1], 1)", "argument 1 of math.min is a text where a number is due"},
		{"local x = ARGV[1] < 1", "the left side of < is a text where a number is due"},
		{"local x = 1 >= ARGV[1]", "the right side of >= is a text where a number is due"},
		{"local x = #12", "the operand of # is a number where a text is due"},
		{"local x = (ARGV[1] or 0) * 2", "the left side of * is a value of two kinds where a number or digits is due"},
		{"local x x = ARGV[1] local y = x + 1", "the left side of + is a text where a number or digits is due"},
		{"local x = 1 x = ARGV[1] local y = x * 2", "the left side of * is a text where a number or digits is due"},
		{"local x = 1 if ARGV[2] then x = ARGV[1] end local y = x * 2", "the left side of * is a value of two kinds"},
		{"local x = nil local y = x * 2", "the left side of * is a nil"},
		{"local x if ARGV[2] then x = ARGV[1] end local y = x * 2", "the left side of * is a text"},
		{"local x if ARGV[2] then x = 1 else x = '1' end return {1, 2, 3, x}", "value 4 of the reply is a value of two kinds"},
		{"local x = redis.pcall('GET', KEYS[1]) local y = x * 2", "the left side of * is a reply of the server"},
		{"local x = redis.pcall('GET', KEYS[1]) local y = string.sub(x, 1, 9) * 2", "the left side of * is a text"},

		// Digits: what is searched for others, and only where there are none.
		{"local x = ARGV[1] local y = string.find(x, '%D') local z = x + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if string.find(x, '%D') then local y = x + 1 end", "the left side of + is a text"},
		{"local x = ARGV[1] if string.find(x, '%D') then local y = 1 end local z = x + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if not string.find(x, '%D') then return redis.pcall('TIME') end local z = x + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if string.find(x, '%d') then return redis.pcall('TIME') end local z = x + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if string.find(x, '^%d') then local z = x + 1 end", "the left side of + is a text"},
		{"local x = ARGV[1] if #x > 9 and string.find(x, '%D') then return redis.pcall('TIME') end local z = x + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if #x < 9 or string.find(x, '^[1-9]%d*$') then local z = x + 1 end", "the left side of + is a text"},
		{"local x = ARGV[1] if x ~= '0' then local z = x + 1 end", "the left side of + is a text"},
		{"local x = ARGV[1] if x ~= '0' then return redis.pcall('TIME') end local y = x < 1", "the left side of < is a text of digits"},
		{"local x = ARGV[1] if x ~= 'a' then return redis.pcall('TIME') end local y = x + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if x ~= '0' and #x > 9 then return redis.pcall('TIME') end local y = x + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if x ~= '0' or string.find(x, '%D') then local y = 1 else local y = x < 1 end", "the left side of < is a text of digits"},
		{"local x, y = ARGV[1], ARGV[2] if string.find(x, '%D') then return redis.pcall('TIME') end local z = y + 1", "the left side of + is a text"},
		{"local x = ARGV[1] local y = string.sub(x, 1, 9) if string.find(x, '%D') then return redis.pcall('TIME') end local z = y + 1", "the left side of + is a text"},
		{"local x = ARGV[1] if x == '0' then local y = x < 1 end", "the left side of < is a text of digits where a number is due"},
		{"local x = ARGV[1] if x == '0' then return {1, 2, 3, x} end", "value 4 of the reply is a text of digits where a number is due"},
		{"local x = redis.pcall('TIME') local y = string.format('%d', x[1])", "argument 2 of string.format is a text of digits where a number is due"},
		{"local x = redis.pcall('TIME') local y = math.fmod(x[1], 1)", "argument 1 of math.fmod is a text of digits where a number is due"},
		{"local x = redis.pcall('TIME') local y = 'a' .. x[1]", ".. of something else"},
		{"local x = string.match(ARGV[1], '(%w+)')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '^(%d+)(.)$')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '^(%d+)  (%d+)$')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '^(%d+),(%d+)$')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '^(%d+) $')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '^ (%d+)$')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '^(%d+) ()$')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '^(%d-)$')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], '(%d+)')", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1], ARGV[2])", "string.match with a pattern other than digits"},
		{"local x = string.match(ARGV[1])", "string.match with 1 arguments"},
		{"local x = string.match(ARGV[1], '^(%d)$') local y = x < 1", "the left side of < is a text of digits where a number is due"},
		{"local x = string.format('%d', 1) local y = x + 1", "the left side of + is a text of string.format"},
		{"local a, b = string.byte('ab', 1, 2) local x = string.sub(b, 1)", "argument 1 of string.sub is a number"},
		{"return {1, 2, 3, ARGV[1]}", "value 4 of the reply is a text where a number is due"},
		{"return {1, 2, 3}", "the reply is four numbers, not 3 values"},
		{"return {1, 2, 3, x = 4}", "the reply is values without keys"},

		{"local x = 2^60 % 7919", "% by something else"},
		{"local x = -2^60 % 1e9", "% by something else"},
		{"local x = 7 local y = 9 % x", "% by something else"},
		{"local x = 9 % 3", "% by something else"},
		{"local x = 9 % 0.5", "% by something else"},
		{"local x = 9 local y = 2^x", "^ of something else"},
		{"local x = 3^2", "^ of something else"},
		{"local x = -0", "the literal -0"},
		{"local x = -0.0", "the literal -0"},
		{"local x = -0x0", "the literal -0"},
		{"local x = -0e9", "the literal -0"},

		{"goto done", "GotoStmt"},
		{"::done::", "LabelStmt"},
		{"do end", "DoBlockStmt"},
		{"for i = 0, 2 do end", "a loop other than one from 1 by 1"},
		{"for i = 1, 2, 2 do end", "a loop other than one from 1 by 1"},
		{"for i = #KEYS, 2 do end", "a loop other than one from 1 by 1"},
		{"for i = 1, 2 do for j = 1, 2 do end end", "a loop other than one from 1 by 1, and in no other"},
		{"for i = 1, ARGV[1] do end", "the limit of a loop is a text"},
		{"local x = 1 for i = 1, 2 do x = x + 1 end", "a loop assigns x, a local from outside"},
		{"local x = 1 for i = 1, 2 do if ARGV[1] then x = 2 end end", "a loop assigns x, a local from outside"},
		{"for i = 1, 2 do local x = redis.pcall('TIME') end", `a loop sends "TIME"`},
		{"for i = 1, 2 do " + stored + "local x = redis.pcall('GET', KEYS[i]) local y = " + setOf + " end", "a loop sends \"GET\" and \"SET\""},
		{"for i = 1, 2 do " + stored + "local y = " + setOf + " end local x = redis.pcall('TIME')", `"TIME" is sent after SET`},
		{"for i = 1, 2 do local x = redis.pcall('GET', KEYS[i]) local y = redis.pcall('GET', KEYS[i]) end", `"GET" is sent twice`},
		{"for i = 1, 2 do local x = KEYS[i + 1] end", "KEYS is read as"},
		{"for i = 1, 2 do local x = redis.pcall('DEL', KEYS[i]) end", `the command "DEL" KEYS[i]`},
		{"for i = 1, 2 do local x = ARGV[#KEYS] end", "ARGV is read by"},
		{"for i = 1, 2 do local x = ARGV[i * 2] + 1 end", "the left side of + is a text"},
		{"for i = 1, 2 do ARGV[i] = 9 end for i = 1, 2 do local x = '1' .. ARGV[i] end", ".. of something else"},
		{"for i = 1, 2 do ARGV[i] = 9 end for i = 1, 2 do local x = ARGV[i + 1] + 1 end", "the left side of + is a text"},
		{"for i = 1, 2 do ARGV[1] = 'a' end", "assignment to a field of a ARGV"},
		{"for i = 1, 2 do KEYS[i] = 'a' end", "assignment to a field of a KEYS"},
		{"for i = 1, 2 do i = 2 local x = 'a' .. i end", ".. of something else"},
		{"local n = 1 local x = 'a' .. n", ".. of something else"},
		{"local x = {} x[ARGV[1]] = true", "assignment to a field of a set of keys"},
		{"local x = {} x[KEYS[1]] = 1", "assignment to a field of a set of keys"},
		{"local x = {} local y = x[ARGV[1]]", "a field of a set of keys"},
		{"local x = {} return x", "what is returned is a set of keys"},
		{"local x = {1, 0} x[3] = 1", "assignment to a field of a reply of several keys"},
		{"local x = {1, 0} for i = 1, 2 do x[i] = 1 end", "assignment to a field of a reply of several keys"},
		{"local x = {1, 0} x[2] = ARGV[1]", "value 2 of a reply is a text"},
		{"local x = {1, ARGV[1]}", "value 2 of the reply is a text"},
		{"local x = {1, 2, 3, 4, 5}", "value 5 of the reply is a number where a text is due"},
		{"local x = {1, 2, 3, 4, ''} x[5] = 1", "assignment to a field of a reply of one key"},
		{"local x = {1, 2, 3, 4, ''} x[4] = ''", "value 4 of a reply is a text"},
		{"return {1, 2, 3, 4, ''}", "the reply is four numbers, not 5 values"},
		{"for k in KEYS do end", "GenericForStmt"},
		{"while true do end", "WhileStmt"},
		{"repeat until true", "RepeatStmt"},
		{"function f() end", "FuncDefStmt"},
		{"local function f() end", "FunctionExpr"},
		{"local f = function() end", "FunctionExpr"},
		{"redis.pcall('TIME')", "FuncCallStmt"},
		{"local x = {1}", "a table of 1 values"},
		{"local x = ...", "Comma3Expr"},

		{"x = 1", "assignment to the global x"},
		{"if true then local x = 1 end x = 2", "assignment to the global x"},
		{"KEYS[1] = 'a'", "assignment to a field"},
		{"local x = redis.pcall('TIME') x[1] = '0'", "assignment to a field"},
		{"local x = y", "the global y: only redis, KEYS"},
		{"local x = _G", "the global _G: only redis, KEYS"},
		{"local x = y == 1", "the global y: only redis, KEYS"},
		{"local x = 1 ~= y", "the global y: only redis, KEYS"},
		{"local x = not y", "the global y: only redis, KEYS"},
		{"if true then local x = y end", "the global y: only redis, KEYS"},
		{"if true then else local x = y end", "the global y: only redis, KEYS"},
		{"local x = math local y = x.random(9)", "the function math.random"},
		{"local x = math local y = x + 1", "the left side of + is a math where"},
		{"local x = redis.pcall if ARGV[1] then x = redis.call end local y = x('TIME')", "a call of a value of two kinds"},
		{"local f = string.format local x = f('%.1f', 1)", "string.format with a format other than"},
		{"local f = tonumber local x = f('10', 16)", "tonumber with 2 arguments"},
		{"local math = 1", "the local math hides a global"},
		{"local string = math", "the local string hides a global"},
		{"local x = KEYS[3]", "KEYS is read as KEYS[1], KEYS[2] and #KEYS only"},
		{"local x = KEYS[#KEYS]", "KEYS is read as KEYS[1], KEYS[2] and #KEYS only"},
		{"local x = KEYS local y = x[#x]", "KEYS is read as KEYS[1], KEYS[2] and #KEYS only"},
		{"local x = redis.pcall('GET', KEYS[2])", "argument 2 of a command"},
		{"local x = ARGV local y = x[1] + 1", "the left side of + is a text"},
		{"local x = ARGV[#ARGV]", "ARGV is read by literal numbers only"},
		{"local x = redis.pcall('TIME') local y = x.ok", "a field of a reply to TIME"},
		{"local x = redis.pcall('GET', KEYS[1]) local y = x[1]", "a field of a reply of the server"},
		{"local x = 'a' local y = x.len", "a field of a text"},

		{"if ARGV[1] then local x = redis.pcall('TIME') end local y = redis.pcall('TIME')", `"TIME" is sent twice`},
		{"if ARGV[1] then local x = " + set + " else local x = " + keep + " end local y = " + keep, `"SET" is sent twice`},
		{"if ARGV[1] then local x = " + set + " local y = " + keep + " end", `"SET" is sent twice`},
		{"if ARGV[1] then local x = 1 else local x = " + keep + " end local y = redis.pcall('TIME')", `"TIME" is sent after SET`},
		{"if ARGV[1] then local x = " + set + " end if ARGV[2] then local x = " + keep + " end", `"SET" is sent twice`},
		{"local x = redis.call('TIME') local y = redis.pcall('TIME')", `"TIME" is sent twice`},
		{"local x = redis.call('GET', KEYS[1]) local y = redis.call('GET', KEYS[1])", `"GET" is sent twice`},
		{"local x = " + set + " local y = " + set, `"SET" is sent twice`},
		{"local x = " + set + " local y = redis.pcall('TIME')", `"TIME" is sent after SET`},
		{"if " + set + " then return redis.pcall('GET', KEYS[1]) end", `"GET" is sent after SET`},
		{"local x = redis.call('DEL', KEYS[1])", `the command "DEL" KEYS[1]`},
		{"local x = redis.call('get', KEYS[1])", `the command "get" KEYS[1]`},
		{"local x = redis.call('GET', 'other')", `the command "GET" "other"`},
		{"local x = redis.call()", "the command :"},
		{"local x = redis.call('SET', KEYS[1], string.format('%d', 1))", `the command "SET" KEYS[1] %d`},
		{"local x = redis.call('SET', KEYS[1], '1', 'EX', '1')", `the command "SET" KEYS[1] "1" "EX" "1"`},
		{"local x = redis.call('SET', KEYS[1], string.format('%d', 1), 'PX', string.format('%d', 1))", `"PX" %d`},
		{"local x = redis.call('SET', KEYS[1], string.format('%d', 1), 'EXAT', string.format('%d', 1))", `"EXAT" %d`},
		{"local x = redis.call('SET', KEYS[1], string.format('%d', 1), 'keepttl')", `%d "keepttl"`},
		{"local x = redis.call('SET', KEYS[1], string.format('%d', 1), 'KEEPTTL', 'XX')", `%d "KEEPTTL" "XX"`},
		{"local x = redis.call('SET', KEYS[1], string.char(1))", `the command "SET" KEYS[1] bytes`},
		{"local x = redis.call('SET', KEYS[1], 1, 'EX', string.format('%d', 1))", "argument 3 of a command"},
		{"local x = redis.call('SET', KEYS[1], string.char(1), 'EX', 9)", "argument 5 of a command"},
		{"local x = 'KEEPTTL' local y = redis.call('SET', KEYS[1], string.char(1), x)", "argument 4 of a command"},
		{"local x = '2' local y = redis.call('SET', KEYS[1], string.char(1), 'EX', x)", "argument 5 of a command"},
		{"local x = ARGV[1] if ARGV[2] then x = string.format('%d', 1) end local y = redis.call('SET', KEYS[1], x, 'KEEPTTL')",
			"argument 3 of a command"},
		{tat + "local y = redis.call('SET', KEYS[1], x, 'KEEPTTL')", "argument 3 of a command"},
		{"local x = redis.call('GET', ARGV[1])", "argument 2 of a command"},
		{"local call, x = redis.call, 'other' local y = call('GET', x)", "argument 2 of a command"},
		{"local x = redis.pcall('TIME') local y = redis.pcall('SET', KEYS[1], x[1], 'EX', x[2])", "argument 3 of a command"},
		{"local x = redis.call('SET', KEYS[1], string.char(ARGV[1]), 'EX', string.format('%d', 1))", "argument 1 of string.char is a text"},
		{"local x = 'GET' local y = redis.call(x, KEYS[1])", "argument 1 of a command"},
		{"local x = string.char(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13)", "string.char with 13 arguments"},
		{"local x = string.format('%.14g', 1)", `string.format with a format other than ["%d" "%09d" "%d%09d" "%s%09d" "%.0f" "%.0f%09d"]`},
		{"local x = string.format('%.1f', 1)", "string.format with a format other than"},
		{"local x = string.format('%9d', 1)", "string.format with a format other than"},
		{"local x = string.format('%s%09d', 1, 2)", "argument 2 of string.format is a number where a text of digits is due"},
		{"local x = string.format('%s%09d', ARGV[1], 2)", "argument 2 of string.format is a text where a text of digits is due"},
		{"local x = string.format('%d%09d', 1)", `string.format of "%d%09d" with 1 numbers`},
		{"local x = string.format('%d', 1, 2)", `string.format of "%d" with 2 numbers`},
		{"local x = string.format('%d')", `string.format of "%d" with 0 numbers`},

		// %d of what may be 2^31 or more
		{"local x = 1 local y = string.format('%d', x)", "%d of x, which may be 2^31 or more"},
		{"local x = 1 local y = string.format('%09d', x)", "%d of x, which may be 2^31 or more"},
		{"local x = 1 local y = string.format('%.0f%09d', 1, x)", "%d of x, which may be 2^31 or more"},
		{"local x = string.format('%d', 2^31)", "%d of 2 ^ 31, which may be 2^31 or more"},
		{"local x = 1 local y = string.format('%d', (x + 2 * x) / -x)", "%d of (x + (2 * x)) / -x, which may be"},
		{"local x = 1 if x < 2^31 then local y = 1 else local y = string.format('%d', x) end", "%d of x, which may be"},
		{"local x = 1 if x < 2^31 then local y = 1 end local y = string.format('%d', x)", "%d of x, which may be"},
		{"local x = 1 if x < 2^32 then local y = string.format('%d', x) end", "%d of x, which may be"},
		{"local x = 1 if x > 2^31 then local y = string.format('%d', x) end", "%d of x, which may be"},
		{"local x = 1 if 2^31 < x then local y = string.format('%d', x) end", "%d of x, which may be"},
		{"local x, y = 1, 2 if x < 2^31 then local z = string.format('%d', y) end", "%d of y, which may be"},
		{"local x = 1 if x < 2^31 then x = x * 2 local z = string.format('%d', x) end", "%d of x, which may be"},
		{"local x = 1 if x >= 2^31 then local y = string.format('%d', x) end", "%d of x, which may be"},
		{"local x = 1 if x >= 2^32 then local y = 1 else local y = string.format('%d', x) end", "%d of x, which may be"},
		{"local x = 1 if x < 2^31 or ARGV[1] then local z = string.format('%d', x) end", "%d of x, which may be"},
		{"local x = string.format(ARGV[1], 1)", "string.format with a format other than"},
		{"return", "return with 0 values"},
		{"return 1", "what is returned is a number"},
		{"return KEYS[1]", "what is returned is a key"},

		{"return redis.error_reply('ERR asset: no')", "an error that does not start with 'BADARG asset: '"},
		{"return redis.error_reply('BADARG other: no')", "an error that does not start with 'BADARG asset: '"},
		{"return redis.error_reply('BADSTATE ' .. 'asset: no')", "an error that does not start with 'BADARG asset: '"},
		{"return redis.error_reply(ARGV[1])", "an error that does not start with 'BADARG asset: '"},
	} {
		faults, _ := checkSyntax("asset", "\n"+test.snippet, nil, nil)
		if len(faults) != 1 || !strings.HasPrefix(faults[0], "asset:2: ") || !strings.Contains(faults[0], test.want) {
			t.Errorf("%s\n got %q\nwant one fault on line 2 with %q", test.snippet, faults, test.want)
		}
	}
	if faults, _ := checkSyntax("asset", "local x =", nil, nil); len(faults) != 1 {
		t.Errorf("text that is no Lua: got %q, want one fault", faults)
	}
}

// What the assets do for speed or against rounding, one rule each.
func TestSyntaxAllows(t *testing.T) {
	for _, snippet := range []string{
		"local KEYS, tonumber, call = KEYS, tonumber, redis.pcall local x = tonumber(ARGV[1]) + #KEYS local y = call('GET', KEYS[1])",
		"if not KEYS[1] or KEYS[2] then return redis.error_reply('BADARG asset: one key') end",
		"local string = string local x = string.sub(ARGV[1], 1, 9)",
		"local time = redis.pcall('TIME') local x = time[1] + time[2] * 1000 - -time[2]",
		"local x = ARGV[1] if #x > 9 or string.find(x, '%D') then return redis.pcall('TIME') end local y = x + string.sub(x, -9)",
		"local x = ARGV[1] local y = x if string.find(x, '%D') then return redis.pcall('TIME') end local z = y + 1",
		"local x = redis.pcall('GET', KEYS[1]) if string.find(x, '^[1-9]%d*$') or x == '0' then local y = x + 1 end",
		"local x = ARGV[1] if string.find(x, '%D') then x = 1 end local y = x + 1",
		"local x = redis.pcall('TIME') local y = 1 if y > 2 then y = x[1] end local z = y + 1",
		"local x, y = nil, nil if ARGV[2] then x, y = string.match(ARGV[1], '^([1-9]%d)(%d)$') else x, y = 0, 0 end local z = x * 1e9 + y",
		"local small = 9 local x = small % 3 local y = -small % 5",
		"local x = 2^60 % 2^32 % 256",
		"local x = redis.pcall('TIME') if x.err then return x end local y, z = x[1] + 0, x[2] * 1000",
		"local x = ARGV[1] if x ~= '0' and not string.find(x, '^[1-9]%d*$') then return redis.pcall('TIME') end local y = x + 1",
		"local x = redis.pcall('GET', KEYS[1]) local y = string.match(x, '^(%d+) (%d+)$') y = y or x" +
			" if string.find(y, '%D') then return x end local z = y + 1",
		// A state: the digits that are known, then what is printed; and its expiry.
		"local x = string.match(ARGV[1], '^(%d+)$') local y = '0' .. x local z = y + 0" +
			" local w = redis.pcall('SET', KEYS[1], x .. string.format('%09d', 1), 'KEEPTTL')",
		"local x, y = string.match(ARGV[1], '^(%d+) ([1-9]%d*)$') local z = string.format('%d%09d', 1, 2)" +
			" if ARGV[2] then y = z end z = z .. ' ' .. x .. ' ' .. y local w = redis.pcall('SET', KEYS[1], z, 'KEEPTTL')",
		"local x = '2' if ARGV[1] then x = string.format('%d', 1) end" +
			" local y = redis.pcall('SET', KEYS[1], string.format('%.0f%09d', 2^33, 1), 'EX', x)",
		"local x = string.char(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) local y" +
			" if ARGV[1] then y = redis.pcall('SET', KEYS[1], x, 'KEEPTTL')" +
			" else y = redis.pcall('SET', KEYS[1], x, 'EX', string.format('%d', 9)) end if y.err then return y end",
		"if ARGV[1] then local x = redis.pcall('SET', KEYS[1], string.char(1), 'KEEPTTL') return x end local y = redis.pcall('TIME')",
		"local x = 1 if x == 0 then local y = 1 elseif x < 2^31 then local y = string.format('%d%09d', x, 1) end",
		"local x = 1 if x >= 2^31 then local y = 1 elseif x == 9 then local y = 2 else local y = string.format('%d', x) end",
		"local low, x = 1, 2 local y = string.format('%d', (low - x) + 1)",
		// Several keys: each read before one is written, by what stands where arguments were.
		"local n, met, reply = #KEYS, {}, {1, 0} for at = 1, n do local key, text = KEYS[at], ARGV[6 * at - 4]" +
			" if met[key] then return redis.error_reply('BADARG asset: key ' .. at .. ': met') end met[key] = true" +
			" local x = redis.pcall('GET', key) if x then x = string.format('%d', 1) else x = string.char(1) end" +
			" reply[at + 2], ARGV[6 * at - 4] = {1, 2, 3, 4, text}, x reply[1] = math.min(reply[2], at) end" +
			" for at = 1, n do local each = reply[at + 2] each[2], each[5] = each[2] + 1, '' local done" +
			" if ARGV[1] then done = redis.pcall('SET', KEYS[at], ARGV[6 * at - 4], 'KEEPTTL')" +
			" else done = redis.pcall('SET', KEYS[at], ARGV[6 * at - 4], 'EX', string.format('%d', 1)) end if done.err then return done end end return reply",
	} {
		var small, low map[string]string
		if strings.Contains(snippet, "small") {
			small = map[string]string{"small": "9"}
		}
		if strings.Contains(snippet, "low") {
			low = map[string]string{"(low - x) + 1": "0"}
		}
		if faults, _ := checkSyntax("asset", snippet, small, low); faults != nil {
			t.Errorf("%s\n got %q, want no fault", snippet, faults)
		}
	}
	vain := map[string]string{"x": "9"}
	if faults, _ := checkSyntax("asset", "local x = 9", vain, vain); len(faults) != 2 {
		t.Errorf("a name of below53 and of below31 that is not needed: got %q, want two faults", faults)
	}
}

// The commands are counted wherever they stand.
func TestSyntaxCounts(t *testing.T) {
	const keep = "redis.pcall('SET', KEYS[1], string.char(1), 'KEEPTTL')"
	faults, got := checkSyntax("asset", "if ARGV[1] then local x = redis.pcall('TIME') else local x = redis.pcall('TIME') end "+
		"local x = redis.call('GET', KEYS[1]) if x then local y = "+keep+" elseif ARGV[2] then local y = "+keep+" else local y = "+keep+" end", nil, nil)
	if want := map[string]int{`"TIME"`: 2, `"GET"`: 1, `"SET"`: 3}; faults != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %q, want %v", got, faults, want)
	}
}

func TestHeaderRefuses(t *testing.T) {
	lines := []string{"-- asset: what it does\n", "-- SPDX-License-Identifier: MIT\n", "-- https://github.com/tatami-rate/tatami, where\n",
		"-- KEYS[1] key\n", "-- ARGV amount [now_ns]\n", "--   amount 1\n", "--   now_ns 2\n", "-- reply {status}\n",
		"--   status 1\n", "--   remaining 1\n", "--   retry_after_ns 1\n", "--   reset_after_ns 1\n", "-- errors none\n", "-- expiry set\n",
		"--   2 s more  with the server's clock\n", "--   61 s more  with a caller's clock\n"}
	if faults := checkHeader("asset", strings.Join(lines, "")); faults != nil {
		t.Errorf("a full header: %q", faults)
	}
	for i, dropped := range lines {
		// The line comes back below the header, where it does not count.
		source := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "") + "\n" + dropped
		named := strings.TrimRight(strings.Fields(dropped)[1], ",") // the first word after the dashes
		if strings.Contains(dropped, " s more ") {
			_, named, _ = strings.Cut(strings.TrimSpace(dropped), "  with ")
		}
		faults := checkHeader("asset", source)
		if strings.Contains(dropped, "ARGV") { // its arguments' lines are not asked for without it
			named = "-- ARGV "
		}
		if len(faults) != 1 || !strings.Contains(faults[0], named) {
			t.Errorf("without %q: got %q, want one fault that names it", dropped, faults)
		}
	}
}
