package emulator

import (
	"math"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua"

	"github.com/tatami-rate/tatami/emulator/number"
)

// This file is the Lua library of the server: gopher-lua's own functions where they
// do the same, and the real behaviour where they do not. Numbers are the common
// reason: gopher-lua reads and prints them by Go's rules.

// notEmulated are globals and library fields that a server has and this package has
// not. Using one is an error that says so, rather than a wrong "no such name".
var notEmulated = map[string]bool{
	"bit": true, "cjson": true, "cmsgpack": true, "collectgarbage": true,
	"coroutine": true, "gcinfo": true, "load": true, "loadstring": true, "struct": true,
	"math.random": true, "math.randomseed": true,
	"string.dump": true, "string.gfind": true, "string.gmatch": true, "string.gsub": true,
	"table.foreach": true, "table.foreachi": true, "table.setn": true,
	"redis.acl_check_cmd": true, "redis.breakpoint": true, "redis.debug": true,
	"redis.log": true, "redis.set_repl": true, "redis.setresp": true,
}

// library opens the libraries in a fresh state. It returns the table of globals, to
// which KEYS and ARGV are added before each script, and the read-only view of it
// that is the environment of scripts.
func library(L *lua.LState, redisLib *lua.LTable) (globals, view *lua.LTable) {
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath} {
		L.Push(L.NewFunction(open))
		L.Call(0, 0)
	}
	globals = L.NewTable()
	for _, name := range []string{
		"assert", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget", "select",
		"setmetatable", "type", "unpack", "xpcall",
	} {
		globals.RawSetString(name, L.GetGlobal(name))
	}
	globals.RawSetString("_VERSION", lua.LString("Lua 5.1"))
	view = L.NewTable()
	globals.RawSetString("_G", view)

	strings := stringLibrary(L)
	libraries := map[string]*lua.LTable{
		"math": mathLibrary(L), "string": strings, "table": tableLibrary(L), "redis": redisLib,
	}
	views := map[*lua.LTable]bool{view: true}
	for name, fields := range libraries {
		v := L.NewTable()
		views[v] = true
		globals.RawSetString(name, v)
		protect(L, v, fields, func(L *lua.LState, field string) {
			if notEmulated[name+"."+field] {
				L.RaiseError("emulator: %s.%s is not emulated", name, field)
			}
		})
	}
	protect(L, view, globals, func(L *lua.LState, name string) {
		if notEmulated[name] {
			L.RaiseError("emulator: the global %s is not emulated", name)
		}
		L.RaiseError("Script attempted to access nonexistent global variable '%s'", name)
	})
	setFunctions(L, globals, map[string]lua.LGFunction{
		"error":    luaError,
		"pcall":    luaPCall,
		"tonumber": luaToNumber,
		"tostring": luaToString,
		"rawset": func(L *lua.LState) int {
			table := L.CheckTable(1)
			if views[table] {
				L.Error(lua.LString(readOnlyTable), 0)
			}
			L.RawSet(table, L.CheckAny(2), L.CheckAny(3))
			L.SetTop(1)
			return 1
		},
	})
	L.SetMetatable(lua.LString(""), stringMetatable(L, strings))
	return globals, view
}

const readOnlyTable = "Attempt to modify a readonly table"

// protect makes view a read-only view of fields. missing is told each name that is
// read in vain, and may raise.
func protect(L *lua.LState, view, fields *lua.LTable, missing func(L *lua.LState, name string)) {
	last := L.NewTable()
	last.RawSetString("__index", L.NewFunction(func(L *lua.LState) int {
		if key := L.Get(2); lua.LVCanConvToString(key) {
			missing(L, text(key))
		}
		L.Push(lua.LNil)
		return 1
	}))
	fields.Metatable = last
	meta := L.NewTable()
	meta.RawSetString("__index", fields)
	meta.RawSetString("__newindex", L.NewFunction(func(L *lua.LState) int {
		L.RaiseError(readOnlyTable)
		return 0
	}))
	meta.RawSetString("__metatable", lua.LFalse) // keeps both from scripts
	view.Metatable = meta
}

func setFunctions(L *lua.LState, table *lua.LTable, functions map[string]lua.LGFunction) {
	for name, function := range functions {
		table.RawSetString(name, L.NewFunction(function))
	}
}

// toNumber is a Lua value as a number, text by the server's rules.
func toNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return number.ToNumber(string(v))
	}
	return 0, false
}

// text is a string or number as text; of anything else, gopher-lua's.
func text(v lua.LValue) string {
	if x, ok := v.(lua.LNumber); ok {
		return number.ToString(float64(x))
	}
	return v.String()
}

func badArgument(L *lua.LState, n int, function, message string) {
	L.RaiseError("bad argument #%d to '%s' (%s)", n, function, message)
}

// badType raises that argument n of function is not of the wanted type.
func badType(L *lua.LState, n int, function, want string) {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	badArgument(L, n, function, want+" expected, got "+got)
}

// checkNumber is argument n of function as a number, or raises.
func checkNumber(L *lua.LState, n int, function string) float64 {
	x, ok := toNumber(L.Get(n))
	if !ok {
		badType(L, n, function, "number")
	}
	return x
}

// checkText is argument n of function as text, or raises.
func checkText(L *lua.LState, n int, function string) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return number.ToString(float64(v))
	}
	badType(L, n, function, "string")
	return ""
}

// Basic functions.

func luaToNumber(L *lua.LState) int {
	base := 10
	if L.Get(2) != lua.LNil {
		base = int(number.Truncate(checkNumber(L, 2, "tonumber")))
	}
	var x float64
	var ok bool
	if base == 10 {
		if L.GetTop() == 0 {
			badArgument(L, 1, "tonumber", "value expected")
		}
		x, ok = toNumber(L.Get(1))
	} else {
		digits := checkText(L, 1, "tonumber")
		if base < 2 || base > 36 {
			badArgument(L, 2, "tonumber", "base out of range")
		}
		x, ok = number.ToNumberBase(digits, base)
	}
	if ok {
		L.Push(lua.LNumber(x))
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

func luaToString(L *lua.LState) int {
	if L.GetTop() == 0 {
		badArgument(L, 1, "tostring", "value expected")
	}
	if x, ok := L.Get(1).(lua.LNumber); ok {
		L.Push(lua.LString(number.ToString(float64(x))))
	} else {
		L.Push(L.ToStringMeta(L.Get(1)))
	}
	return 1
}

func luaError(L *lua.LState) int {
	value := L.Get(1)
	level := 1
	if L.Get(2) != lua.LNil {
		level = int(number.Truncate(checkNumber(L, 2, "error")))
	}
	if level > 0 && lua.LVCanConvToString(value) {
		message := text(value)
		if where := L.Where(level); strings.HasPrefix(where, chunkName) {
			message = where + " " + message
		}
		value = lua.LString(message)
	}
	L.Error(value, 0)
	return 0
}

// luaPCall is the server's pcall: of an error table only its err comes back.
func luaPCall(L *lua.LState) int {
	if L.GetTop() == 0 {
		badArgument(L, 1, "pcall", "value expected")
	}
	err := L.PCall(L.GetTop()-1, lua.MultRet, nil)
	if err == nil {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	object := err.(*lua.ApiError).Object
	if table, ok := object.(*lua.LTable); ok {
		if message := table.RawGetString("err"); message != lua.LNil {
			object = message
		}
	}
	L.Push(lua.LFalse)
	L.Push(object)
	return 2
}

// Operators.

func luaMod(L *lua.LState) int {
	a, ok := L.Get(1).(lua.LNumber)
	b, ok2 := L.Get(2).(lua.LNumber)
	if !ok || !ok2 {
		return arithmetic(L, "__mod", number.Mod)
	}
	L.Push(lua.LNumber(number.Mod(float64(a), float64(b))))
	return 1
}

// arithmetic is an operator on two values that are not both numbers.
func arithmetic(L *lua.LState, event string, operate func(a, b float64) float64) int {
	a, b := L.Get(1), L.Get(2)
	for _, operand := range []lua.LValue{a, b} {
		if _, ok := operand.(lua.LString); ok {
			continue // its metatable leads here
		}
		if function, ok := L.GetMetaField(operand, event).(*lua.LFunction); ok {
			L.Push(function)
			L.Push(a)
			L.Push(b)
			L.Call(2, 1)
			return 1
		}
	}
	x, ok := toNumber(a)
	y, ok2 := toNumber(b)
	if !ok || !ok2 {
		wrong := b
		if !ok {
			wrong = a
		}
		L.RaiseError("attempt to perform arithmetic on a %s value", wrong.Type())
	}
	L.Push(lua.LNumber(operate(x, y)))
	return 1
}

func luaConcat(L *lua.LState) int {
	n := L.GetTop()
	parts := make([]string, n)
	for i := range parts {
		operand := L.Get(i + 1)
		if !lua.LVCanConvToString(operand) {
			return concatWithMeta(L)
		}
		parts[i] = text(operand)
	}
	L.Push(lua.LString(strings.Join(parts, "")))
	return 1
}

// concatWithMeta joins from the right, two at a time, where one is no text.
func concatWithMeta(L *lua.LState) int {
	right := L.Get(L.GetTop())
	for i := L.GetTop() - 1; i > 0; i-- {
		left := L.Get(i)
		if lua.LVCanConvToString(left) && lua.LVCanConvToString(right) {
			right = lua.LString(text(left) + text(right))
			continue
		}
		function := L.GetMetaField(left, "__concat")
		if function == lua.LNil {
			function = L.GetMetaField(right, "__concat")
		}
		if function == lua.LNil {
			wrong := right
			if !lua.LVCanConvToString(left) {
				wrong = left
			}
			L.RaiseError("attempt to concatenate a %s value", wrong.Type())
		}
		L.Push(function)
		L.Push(left)
		L.Push(right)
		L.Call(2, 1)
		right = L.Get(-1)
		L.Pop(1)
	}
	L.Push(right)
	return 1
}

func luaFor(L *lua.LState) int {
	x, ok := toNumber(L.Get(1))
	if !ok {
		L.RaiseError("'for' %s must be a number", L.Get(2))
	}
	L.Push(lua.LNumber(x))
	return 1
}

// stringMetatable lets text be indexed, as the string library, and be computed with.
func stringMetatable(L *lua.LState, strings *lua.LTable) *lua.LTable {
	meta := L.NewTable()
	meta.RawSetString("__index", strings)
	for event, operate := range map[string]func(a, b float64) float64{
		"__add": func(a, b float64) float64 { return a + b },
		"__sub": func(a, b float64) float64 { return a - b },
		"__mul": func(a, b float64) float64 { return a * b },
		"__div": func(a, b float64) float64 { return a / b },
		"__mod": number.Mod,
		"__pow": math.Pow,
	} {
		meta.RawSetString(event, L.NewFunction(func(L *lua.LState) int {
			return arithmetic(L, event, operate)
		}))
	}
	meta.RawSetString("__unm", L.NewFunction(func(L *lua.LState) int {
		x, ok := toNumber(L.Get(1))
		if !ok {
			L.RaiseError("attempt to perform arithmetic on a string value")
		}
		L.Push(lua.LNumber(-x))
		return 1
	}))
	meta.RawSetString("__metatable", lua.LFalse)
	return meta
}

// Mathematics.

func mathLibrary(L *lua.LState) *lua.LTable {
	table := L.NewTable()
	table.RawSetString("pi", lua.LNumber(math.Pi))
	table.RawSetString("huge", lua.LNumber(math.Inf(1)))
	for name, function := range map[string]func(float64) float64{
		"abs": math.Abs, "ceil": math.Ceil, "floor": math.Floor, "sqrt": math.Sqrt,
		"exp": math.Exp, "log": math.Log, "log10": math.Log10,
		"sin": math.Sin, "cos": math.Cos, "tan": math.Tan,
		"asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
		"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh,
		"deg": func(x float64) float64 { return x / (math.Pi / 180) },
		"rad": func(x float64) float64 { return x * (math.Pi / 180) },
	} {
		table.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			L.Push(lua.LNumber(function(checkNumber(L, 1, name))))
			return 1
		}))
	}
	for name, function := range map[string]func(a, b float64) float64{
		"fmod": number.Fmod, "mod": number.Fmod, "pow": math.Pow, "atan2": math.Atan2,
		"ldexp": func(x, exponent float64) float64 {
			return math.Ldexp(x, int(max(-1<<20, min(number.Truncate(exponent), 1<<20))))
		},
	} {
		table.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			a, b := checkNumber(L, 1, name), checkNumber(L, 2, name)
			L.Push(lua.LNumber(function(a, b)))
			return 1
		}))
	}
	for name, better := range map[string]func(x, than float64) bool{
		"max": func(x, than float64) bool { return x > than },
		"min": func(x, than float64) bool { return x < than },
	} {
		table.RawSetString(name, L.NewFunction(func(L *lua.LState) int {
			best := checkNumber(L, 1, name)
			for i := 2; i <= L.GetTop(); i++ {
				if x := checkNumber(L, i, name); better(x, best) {
					best = x
				}
			}
			L.Push(lua.LNumber(best))
			return 1
		}))
	}
	setFunctions(L, table, map[string]lua.LGFunction{
		"frexp": func(L *lua.LState) int {
			fraction, exponent := math.Frexp(checkNumber(L, 1, "frexp"))
			L.Push(lua.LNumber(fraction))
			L.Push(lua.LNumber(exponent))
			return 2
		},
		"modf": func(L *lua.LState) int {
			x := checkNumber(L, 1, "modf")
			whole, fraction := math.Trunc(x), math.Copysign(0, x)
			if !math.IsInf(x, 0) && whole != x {
				fraction = x - whole
			}
			L.Push(lua.LNumber(whole))
			L.Push(lua.LNumber(fraction))
			return 2
		},
	})
	return table
}

// Text.

func stringLibrary(L *lua.LState) *lua.LTable {
	table := L.NewTable()
	source := L.GetGlobal("string").(*lua.LTable)
	// The arguments up to this count are text, those after it numbers.
	for name, texts := range map[string]int{
		"byte": 1, "len": 1, "lower": 1, "rep": 1, "reverse": 1, "sub": 1, "upper": 1,
	} {
		table.RawSetString(name, convertArguments(L, source.RawGetString(name).(*lua.LFunction), texts))
	}
	setFunctions(L, table, map[string]lua.LGFunction{
		"char": luaChar, "find": luaFind, "format": luaFormat, "match": luaMatch,
	})
	return table
}

// convertArguments is function behind the server's rules for numbers passed as text
// and text passed as numbers.
func convertArguments(L *lua.LState, function *lua.LFunction, texts int) *lua.LFunction {
	return L.NewFunction(func(L *lua.LState) int {
		for i := 1; i <= L.GetTop(); i++ {
			switch v := L.Get(i).(type) {
			case lua.LNumber:
				if i <= texts {
					L.Replace(i, lua.LString(number.ToString(float64(v))))
				}
			case lua.LString:
				if i > texts {
					if x, ok := number.ToNumber(string(v)); ok {
						L.Replace(i, lua.LNumber(x))
					}
				}
			}
		}
		return function.GFunction(L)
	})
}

func luaChar(L *lua.LState) int {
	bytes := make([]byte, L.GetTop())
	for i := range bytes {
		c := number.Truncate(checkNumber(L, i+1, "char"))
		if c != int64(byte(c)) {
			badArgument(L, i+1, "char", "invalid value")
		}
		bytes[i] = byte(c)
	}
	L.Push(lua.LString(bytes))
	return 1
}

func luaFormat(L *lua.LState) int {
	format := checkText(L, 1, "format")
	if format == "%d" { // what the scripts ask for
		if x, ok := L.Get(2).(lua.LNumber); ok {
			L.Push(lua.LString(number.FormatInt(float64(x))))
			return 1
		}
	}
	var out []byte
	argument := 1
	for i := 0; i < len(format); {
		if format[i] != '%' {
			out = append(out, format[i])
			i++
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			out = append(out, '%')
			i++
			continue
		}
		argument++
		if argument > L.GetTop() {
			badArgument(L, argument, "format", "no value")
		}
		options := scanOptions(L, format[i:])
		i += len(options)
		conversion := byte(0)
		if i < len(format) {
			conversion = format[i]
			i++
		}
		switch conversion {
		case 'd', 'i', 'o', 'u', 'x', 'X', 'e', 'E', 'f', 'g', 'G':
			out = append(out, number.Format(options, conversion, checkNumber(L, argument, "format"))...)
		case 'c':
			c := number.Truncate(checkNumber(L, argument, "format"))
			if c != int64(int32(c)) {
				c = 0 // the low byte of what an int becomes that is out of range
			}
			out = append(out, formatText(options, true, string([]byte{byte(c)}))...)
		case 's':
			s := checkText(L, argument, "format")
			if !strings.Contains(options, ".") && len(s) >= 100 {
				out = append(out, s...)
			} else {
				out = append(out, formatText(options, false, s)...)
			}
		case 'q':
			out = appendQuoted(out, checkText(L, argument, "format"))
		default:
			L.RaiseError("invalid option '%%%s' to 'format'", strings.TrimRight(string([]byte{conversion}), "\x00"))
		}
	}
	L.Push(lua.LString(out))
	return 1
}

// scanOptions is the flags, width and precision at the start of format, or raises.
func scanOptions(L *lua.LState, format string) string {
	i := 0
	for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
		i++
	}
	if i > 5 {
		L.RaiseError("invalid format (repeated flags)")
	}
	twoDigits := func() {
		for end := i + 2; i < end && i < len(format) && number.IsDecimal(format[i]); {
			i++
		}
	}
	twoDigits()
	if i < len(format) && format[i] == '.' {
		i++
		twoDigits()
	}
	if i < len(format) && number.IsDecimal(format[i]) {
		L.RaiseError("invalid format (width or precision too long)")
	}
	return format[:i]
}

// formatText is C's sprintf of %s and, where char, of %c; both end at a NUL.
func formatText(options string, char bool, s string) string {
	flags, width, precision, precise := number.SplitOptions(options)
	if !char {
		s, _, _ = strings.Cut(s, "\x00")
		if precise {
			n, _ := strconv.Atoi(precision) // 0 where there are no digits
			s = s[:min(n, len(s))]
		}
	}
	n, _ := strconv.Atoi(width) // 0 where there are no digits
	fill := strings.Repeat(" ", max(n-len(s), 0))
	if strings.Contains(flags, "-") {
		s += fill
	} else {
		s = fill + s
	}
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

func appendQuoted(out []byte, s string) []byte {
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			out = append(out, '\\', c)
		case '\r':
			out = append(out, `\r`...)
		case 0:
			out = append(out, `\000`...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// Tables.

func tableLibrary(L *lua.LState) *lua.LTable {
	table := L.NewTable()
	source := L.GetGlobal("table").(*lua.LTable)
	for _, name := range []string{"getn", "insert", "maxn", "remove", "sort"} {
		table.RawSetString(name, source.RawGetString(name))
	}
	setFunctions(L, table, map[string]lua.LGFunction{"concat": luaTableConcat})
	return table
}

func luaTableConcat(L *lua.LState) int {
	table, ok := L.Get(1).(*lua.LTable)
	if !ok {
		badType(L, 1, "concat", "table")
	}
	separator, first, last := "", 1, table.Len()
	if L.Get(2) != lua.LNil {
		separator = checkText(L, 2, "concat")
	}
	if L.Get(3) != lua.LNil {
		first = int(number.Truncate(checkNumber(L, 3, "concat")))
	}
	if L.Get(4) != lua.LNil {
		last = int(number.Truncate(checkNumber(L, 4, "concat")))
	}
	var out strings.Builder
	for i := first; i <= last; i++ {
		value := table.RawGetInt(i)
		if !lua.LVCanConvToString(value) {
			L.RaiseError("invalid value (%s) at index %d in table for 'concat'", value.Type(), i)
		}
		out.WriteString(text(value))
		if i < last {
			out.WriteString(separator)
		}
	}
	L.Push(lua.LString(out.String()))
	return 1
}
