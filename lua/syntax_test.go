package lua_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// kind is what is known of a value before the script runs. Kinds are followed
// because Lua turns numbers into strings and back without being asked, and each
// server has its own way of doing it.
type kind string

const (
	number  kind = "number"
	text    kind = "string"
	boolean kind = "boolean"
	answer  kind = "answer of the server" // a string, false or a table
	mixed   kind = "value of two kinds"   // good for a condition, not to compute with
	unset   kind = "unset"
)

// functions lists what a script may call, with the kinds of the arguments, all of
// which but the first may be left out.
var functions = map[string]struct {
	result kind
	args   []kind
}{
	"tonumber":          {number, []kind{text}},
	"type":              {text, []kind{answer}},
	"math.ceil":         {number, []kind{number}},
	"math.floor":        {number, []kind{number}},
	"math.fmod":         {number, []kind{number, number}},
	"string.byte":       {number, []kind{text, number, number}},
	"string.char":       {text, slices.Repeat([]kind{number}, 8)},
	"string.find":       {number, []kind{text, text}},
	"string.format":     {text, []kind{text, number}},
	"string.sub":        {text, []kind{text, number, number}},
	"redis.call":        {answer, nil}, // its arguments: commands
	"redis.pcall":       {answer, nil},
	"redis.error_reply": {answer, []kind{text}},
}

// commands lists the commands that a script may send, argument by argument: a
// literal in quotes, %d for string.format('%d', ...), bytes for string.char(...).
var commands = []string{
	`"TIME"`,
	`"GET" KEYS[1]`,
	`"SET" KEYS[1] %d "PX" %d`,
	`"SET" KEYS[1] bytes "PX" %d`,
}

var globals = []string{"redis", "KEYS", "ARGV", "math", "string", "tonumber", "type"}

// checker walks the syntax tree of one asset. It allows by list: what is not known
// to mean the same in Lua 5.1, 5.4, LuaJIT and gopher-lua is a fault.
type checker struct {
	asset  string
	scopes []map[string]kind // the innermost last
	sent   []string          // commands, in the order of the text
	faults []string
}

// checkSyntax returns what the asset's text does that an asset must not do, each
// as "asset:line: rule".
func checkSyntax(asset, source string) []string {
	statements, err := parse.Parse(strings.NewReader(source), asset)
	if err != nil {
		return []string{err.Error()}
	}
	c := &checker{asset: asset}
	c.block(statements)
	return c.faults
}

func (c *checker) fault(at ast.PositionHolder, format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf("%s:%d: ", c.asset, at.Line())+fmt.Sprintf(format, args...))
}

// scope returns the scope that holds the local of that name, or nil.
func (c *checker) scope(name string) map[string]kind {
	for _, scope := range slices.Backward(c.scopes) {
		if _, ok := scope[name]; ok {
			return scope
		}
	}
	return nil
}

func (c *checker) block(statements []ast.Stmt) {
	c.scopes = append(c.scopes, map[string]kind{})
	for _, statement := range statements {
		c.statement(statement)
	}
	c.scopes = c.scopes[:len(c.scopes)-1]
}

func (c *checker) statement(statement ast.Stmt) {
	switch s := statement.(type) {
	case *ast.LocalAssignStmt:
		kinds := c.values(s.Exprs, len(s.Names))
		for i, name := range s.Names {
			if slices.Contains(globals, name) {
				c.fault(s, "the local %s hides a global", name)
			}
			c.scopes[len(c.scopes)-1][name] = kinds[i]
		}
	case *ast.AssignStmt:
		kinds := c.values(s.Rhs, len(s.Lhs))
		for i, target := range s.Lhs {
			c.assign(target, kinds[i])
		}
	case *ast.IfStmt:
		c.expression(s.Condition)
		c.block(s.Then)
		c.block(s.Else)
	case *ast.ReturnStmt:
		for _, value := range s.Exprs {
			if table, ok := value.(*ast.TableExpr); ok {
				c.reply(table)
			} else {
				c.expression(value)
			}
		}
	default:
		c.fault(s, "%s: an asset has no statement but local, assignment, if and return", nodeName(s))
	}
}

// values returns the kinds of n values that a list of expressions gives.
func (c *checker) values(expressions []ast.Expr, n int) []kind {
	kinds := slices.Repeat([]kind{unset}, n)
	for i, e := range expressions {
		k := c.expression(e)
		_, isCall := e.(*ast.FuncCallExpr)
		for j := i; j < n && (j == i || isCall && i == len(expressions)-1); j++ {
			kinds[j] = k
		}
	}
	return kinds
}

func (c *checker) assign(target ast.Expr, k kind) {
	ident, ok := target.(*ast.IdentExpr)
	if !ok {
		c.fault(target, "assignment to a field")
		return
	}
	scope := c.scope(ident.Value)
	switch {
	case scope == nil:
		c.fault(target, "assignment to the global %s", ident.Value)
	case scope[ident.Value] == unset:
		scope[ident.Value] = k
	case scope[ident.Value] != k:
		c.fault(target, "%s is a %s and becomes a %s", ident.Value, scope[ident.Value], k)
	}
}

func (c *checker) reply(table *ast.TableExpr) {
	if len(table.Fields) != 4 {
		c.fault(table, "the reply is four numbers, not %d values", len(table.Fields))
	}
	for i, field := range table.Fields {
		if field.Key != nil {
			c.fault(table, "the reply is four numbers without keys")
		}
		c.want(field.Value, number, fmt.Sprintf("value %d of the reply", i+1))
	}
}

// want walks an expression and refuses it when it is of another kind.
func (c *checker) want(e ast.Expr, k kind, what string) {
	got := c.expression(e)
	if got != k && !(k == text && got == answer) {
		c.fault(e, "%s is a %s where a %s is due: no implicit conversion", what, got, k)
	}
}

func (c *checker) expression(expression ast.Expr) kind {
	switch e := expression.(type) {
	case *ast.NumberExpr:
		return number
	case *ast.StringExpr:
		return text
	case *ast.TrueExpr, *ast.FalseExpr:
		return boolean
	case *ast.IdentExpr:
		if scope := c.scope(e.Value); scope != nil {
			return scope[e.Value]
		}
		if slices.Contains(globals, e.Value) {
			c.fault(e, "the global %s is used as a value", e.Value)
		} else {
			c.fault(e, "the global %s: only %s are read", e.Value, strings.Join(globals, ", "))
		}
		return mixed
	case *ast.AttrGetExpr:
		return c.element(e)
	case *ast.FuncCallExpr:
		return c.call(e)
	case *ast.LogicalOpExpr:
		left, right := c.expression(e.Lhs), c.expression(e.Rhs)
		if e.Operator == "or" && left != right {
			return mixed
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
		c.concat(e.Lhs)
		c.concat(e.Rhs)
		return text
	case *ast.ArithmeticOpExpr:
		c.arithmetic(e)
		return number
	case *ast.UnaryMinusOpExpr:
		c.want(e.Expr, number, "the operand of -")
		if value, ok := literal(e.Expr); ok && value == 0 {
			c.fault(e, "the literal -0")
		}
		return number
	case *ast.UnaryNotOpExpr:
		c.expression(e.Expr)
		return boolean
	case *ast.UnaryLenOpExpr:
		if name := c.global(e.Expr); name != "KEYS" && name != "ARGV" {
			c.want(e.Expr, text, "the operand of #")
		}
		return number
	default:
		c.fault(e, "%s: an asset has no such expression", nodeName(e))
		return mixed
	}
}

// element allows KEYS[1], ARGV[n], and of a server's answer the numbered elements
// and the field err.
func (c *checker) element(e *ast.AttrGetExpr) kind {
	index, isNumber := literal(e.Key)
	switch c.global(e.Object) {
	case "KEYS":
		if !isNumber || index != 1 {
			c.fault(e, "KEYS is read as KEYS[1] and #KEYS only")
		}
	case "ARGV":
		if !isNumber {
			c.fault(e, "ARGV is read by literal numbers only")
		}
	default:
		isErr := false
		if key, ok := e.Key.(*ast.StringExpr); ok {
			isErr = key.Value == "err"
		}
		if object := c.expression(e.Object); object == answer && !isNumber && !isErr {
			c.fault(e, "a field of an answer other than err")
		} else if object != answer && object != mixed {
			c.fault(e, "a field of a %s", object)
		}
	}
	return text
}

// global returns the name of the global that an expression reads, or "".
func (c *checker) global(e ast.Expr) string {
	if ident, ok := e.(*ast.IdentExpr); ok && c.scope(ident.Value) == nil {
		return ident.Value
	}
	return ""
}

// function returns the name of the function that is called, such as "math.floor",
// or "" for a method or the value of an expression.
func (c *checker) function(call *ast.FuncCallExpr) string {
	if field, ok := call.Func.(*ast.AttrGetExpr); ok {
		library := c.global(field.Object)
		if key, ok := field.Key.(*ast.StringExpr); ok && library != "" {
			return library + "." + key.Value
		}
		return ""
	}
	return c.global(call.Func)
}

func (c *checker) call(call *ast.FuncCallExpr) kind {
	name := c.function(call)
	function, ok := functions[name]
	switch {
	case name == "":
		c.fault(call, "a call of something else than a named function of a library")
		return mixed
	case !ok:
		c.fault(call, "the function %s: only %s are called", name,
			strings.Join(slices.Sorted(maps.Keys(functions)), ", "))
		return mixed
	case name == "redis.call" || name == "redis.pcall":
		c.command(call)
		return answer
	case len(call.Args) < 1 || len(call.Args) > len(function.args):
		c.fault(call, "%s with %d arguments: it takes 1 to %d", name, len(call.Args), len(function.args))
		return function.result
	}
	for i, arg := range call.Args {
		c.want(arg, function.args[i], fmt.Sprintf("argument %d of %s", i+1, name))
	}
	switch name {
	case "string.format":
		if format, ok := call.Args[0].(*ast.StringExpr); !ok || format.Value != "%d" {
			c.fault(call, "string.format with a format other than '%%d'")
		}
	case "redis.error_reply":
		c.errorReply(call)
	}
	return function.result
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

func (c *checker) command(call *ast.FuncCallExpr) {
	var words []string
	for i, arg := range call.Args {
		c.expression(arg)
		word := ""
		switch a := arg.(type) {
		case *ast.StringExpr:
			word = strconv.Quote(a.Value)
		case *ast.AttrGetExpr:
			if c.global(a.Object) == "KEYS" {
				word = "KEYS[1]" // another index is a fault already
			}
		case *ast.FuncCallExpr:
			switch c.function(a) {
			case "string.format":
				word = "%d" // another format is a fault already
			case "string.char":
				word = "bytes"
			}
		}
		if word == "" {
			c.fault(call, "argument %d of a command is not a literal, KEYS[1], string.format('%%d', ...) or string.char(...)", i+1)
			return
		}
		words = append(words, word)
	}
	sent := strings.Join(words, " ")
	if !slices.Contains(commands, sent) {
		c.fault(call, "the command %s: only %s are sent", sent, strings.Join(commands, ", "))
		return
	}
	// There are no loops and no functions, so each call in the text runs once at most.
	name := words[0]
	if slices.Contains(c.sent, name) {
		c.fault(call, "%s is sent twice", name)
	} else if slices.Contains(c.sent, `"SET"`) {
		c.fault(call, "%s is sent after SET, which is the last command", name)
	}
	c.sent = append(c.sent, name)
}

// concat allows literals and the field err of an answer.
func (c *checker) concat(operand ast.Expr) {
	c.expression(operand)
	switch e := operand.(type) {
	case *ast.StringExpr, *ast.StringConcatOpExpr:
		return
	case *ast.AttrGetExpr:
		if key, ok := e.Key.(*ast.StringExpr); ok && key.Value == "err" {
			return
		}
	}
	c.fault(operand, ".. of something else than string literals and a field err")
}

// below53 are the names whose values stay below 2^53, and why.
var below53 = map[string]string{
	"w": "period_ns, checked to be at most 2^52",
}

// arithmetic wants numbers on both sides. Lua 5.1 computes a % b as
// a - floor(a / b) * b. From 2^53 on that is wrong for most b, so a % b wants either
// a power of two written out as b, which moves nothing but the exponent, so that every
// step is exact whatever a is, or one of the names below53 as a. For all else there is
// math.fmod, exact everywhere.
func (c *checker) arithmetic(e *ast.ArithmeticOpExpr) {
	c.want(e.Lhs, number, "the left side of "+e.Operator)
	c.want(e.Rhs, number, "the right side of "+e.Operator)
	switch e.Operator {
	case "%":
		value, ok := literal(e.Rhs)
		fraction, _ := math.Frexp(value)
		name, _ := e.Lhs.(*ast.IdentExpr)
		if small := name != nil && below53[name.Value] != ""; !small && (!ok || value < 1 || fraction != 0.5) {
			c.fault(e, "%% by something else than a literal power of two, of what may be above 2^53: use math.fmod")
		}
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
	var faults []string
	for _, start := range []string{"-- " + asset + ": ", "-- KEYS[1] ", "-- ARGV ", "-- reply ", "-- errors "} {
		if !slices.ContainsFunc(header, func(line string) bool { return strings.HasPrefix(line, start) }) {
			faults = append(faults, fmt.Sprintf("%s: no line of the header starts with %q", asset, start))
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
	for asset, source := range readAssets(t) {
		for _, fault := range slices.Concat(checkSyntax(asset, source), checkHeader(asset, source)) {
			t.Error(fault)
		}
	}
}

// Each snippet stands on line 2 and has one fault, which must be named.
func TestSyntaxRefuses(t *testing.T) {
	const set = "redis.pcall('SET', KEYS[1], string.format('%d', 1), 'PX', string.format('%d', 1))"
	for _, test := range []struct{ snippet, want string }{
		{"local x = tostring(1)", "the function tostring"},
		{"local x = unpack(KEYS)", "the function unpack"},
		{"local x = table.maxn(KEYS)", "the function table.maxn"},
		{"local x = bit.band(1, 2)", "the function bit.band"},
		{"local x = struct.pack('>I4', 1)", "the function struct.pack"},
		{"local x = cjson.encode(1)", "the function cjson.encode"},
		{"local x = cmsgpack.pack(1)", "the function cmsgpack.pack"},
		{"local x = math.random(9)", "the function math.random"},
		{"local x = pcall(tonumber, '1')", "the function pcall"},
		{"local x = ('1'):rep(2)", "a call of something else"},
		{"local x = ('1').rep('1', 2)", "a call of something else"},
		{"local x = tonumber('10', 16)", "tonumber with 2 arguments"},
		{"local x = tonumber()", "tonumber with 0 arguments"},

		{"local x = '1' .. 2", ".. of something else"},
		{"local x = tonumber('1') local y = x .. 'ns'", ".. of something else"},
		{"local x = 'a' .. ARGV[1]", ".. of something else"},
		{"local x = 'a' .. 'b' .. 3", ".. of something else"},
		{"local x = 'a' .. KEYS[1].err", "a field of a string"},
		{"local x = string.sub(12, 1)", "argument 1 of string.sub is a number where a string is due"},
		{"local x = string.find(2^60, '1')", "argument 1 of string.find is a number where a string is due"},
		{"local x = ARGV[1] + 1", "the left side of + is a string where a number is due"},
		{"local x = 1 - '1'", "the right side of - is a string where a number is due"},
		{"local x = -ARGV[1]", "the operand of - is a string where a number is due"},
		{"local x = math.floor(ARGV[1])", "argument 1 of math.floor is a string where a number is due"},
		{"local x = ARGV[1] < 1", "the left side of < is a string where a number is due"},
		{"local x = 1 >= ARGV[1]", "the right side of >= is a string where a number is due"},
		{"local x = #12", "the operand of # is a number where a string is due"},
		{"local x = (ARGV[1] or 0) * 2", "the left side of * is a value of two kinds where a number is due"},
		{"local x x = ARGV[1] local y = x + 1", "the left side of + is a string where a number is due"},
		{"local x = 1 x = ARGV[1]", "x is a number and becomes a string"},
		{"local a, b = string.byte('ab', 1, 2) local x = string.sub(b, 1)", "argument 1 of string.sub is a number"},
		{"return {1, 2, 3, ARGV[1]}", "value 4 of the reply is a string where a number is due"},
		{"return {1, 2, 3}", "the reply is four numbers, not 3 values"},
		{"return {1, 2, 3, x = 4}", "the reply is four numbers without keys"},

		{"local x = 2^60 % 7919", "% by something else"},
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
		{"for i = 1, 2 do end", "NumberForStmt"},
		{"for k in KEYS do end", "GenericForStmt"},
		{"while true do end", "WhileStmt"},
		{"repeat until true", "RepeatStmt"},
		{"function f() end", "FuncDefStmt"},
		{"local function f() end", "FunctionExpr"},
		{"local f = function() end", "FunctionExpr"},
		{"redis.pcall('TIME')", "FuncCallStmt"},
		{"local x = {}", "TableExpr"},
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
		{"local x = math", "the global math is used as a value"},
		{"local f = string.format", "the global string is used as a value"},
		{"local f = tonumber", "the global tonumber is used as a value"},
		{"local math = 1", "the local math hides a global"},
		{"local x = KEYS[2]", "KEYS is read as KEYS[1] and #KEYS only"},
		{"local x = KEYS[#KEYS]", "KEYS is read as KEYS[1] and #KEYS only"},
		{"local x = ARGV[#ARGV]", "ARGV is read by literal numbers only"},
		{"local x = redis.pcall('TIME') local y = x.ok", "a field of an answer other than err"},
		{"local x = '1' local y = x.len", "a field of a string"},

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
		{"local x = redis.call('SET', KEYS[1], '1', 'PX', '1')", `the command "SET" KEYS[1] "1" "PX" "1"`},
		{"local x = redis.call('SET', KEYS[1], string.format('%d', 1), 'EX', string.format('%d', 1))", `"EX" %d`},
		{"local x = redis.call('SET', KEYS[1], 1, 'PX', string.format('%d', 1))", "argument 3 of a command"},
		{"local x = redis.call('SET', KEYS[1], string.char(1), 'PX', 9)", "argument 5 of a command"},
		{"local x = redis.call('GET', ARGV[1])", "argument 2 of a command"},
		{"local x = redis.call('SET', KEYS[1], string.char(ARGV[1]), 'PX', string.format('%d', 1))", "argument 1 of string.char is a string"},
		{"local x = 'GET' local y = redis.call(x, KEYS[1])", "argument 1 of a command"},
		{"local x = string.format('%.0f', 1)", "string.format with a format other than '%d'"},
		{"local x = string.format(ARGV[1], 1)", "string.format with a format other than '%d'"},

		{"return redis.error_reply('ERR asset: no')", "an error that does not start with 'BADARG asset: '"},
		{"return redis.error_reply('BADARG other: no')", "an error that does not start with 'BADARG asset: '"},
		{"return redis.error_reply('BADSTATE ' .. 'asset: no')", "an error that does not start with 'BADARG asset: '"},
		{"return redis.error_reply(ARGV[1])", "an error that does not start with 'BADARG asset: '"},
	} {
		faults := checkSyntax("asset", "\n"+test.snippet)
		if len(faults) != 1 || !strings.HasPrefix(faults[0], "asset:2: ") || !strings.Contains(faults[0], test.want) {
			t.Errorf("%s\n got %q\nwant one fault on line 2 with %q", test.snippet, faults, test.want)
		}
	}
	if faults := checkSyntax("asset", "local x ="); len(faults) != 1 {
		t.Errorf("text that is no Lua: got %q, want one fault", faults)
	}
}

func TestHeaderRefuses(t *testing.T) {
	lines := []string{"-- asset: what it does\n", "-- KEYS[1] key\n", "-- ARGV amount\n", "-- reply {status}\n", "-- errors none\n"}
	if faults := checkHeader("asset", strings.Join(lines, "")); faults != nil {
		t.Errorf("a full header: %q", faults)
	}
	for i, dropped := range lines {
		// The line comes back below the header, where it does not count.
		source := strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "") + "\n" + dropped
		if faults := checkHeader("asset", source); len(faults) != 1 || !strings.Contains(faults[0], dropped[:len("-- reply ")-1]) {
			t.Errorf("without %q: got %q, want one fault that names it", dropped, faults)
		}
	}
}
