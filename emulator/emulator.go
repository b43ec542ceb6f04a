// Package emulator is a Redis server in the process, for tests and for proofs: it
// runs the very text of a script on gopher-lua, with the number rules, error texts
// and expiry of Redis 7.0 on amd64, and with a clock that the caller sets.
//
// It has what scripts that limit rates use and no more. What it lacks it refuses
// with an error that says "emulator". Three things are refused although a server
// takes them: a Lua number as an argument of a command, since servers differ in how
// they print it; goto used as a name; and a number literal such as 0x1p4. Errors
// that Lua itself raises, such as a call of nil, keep gopher-lua's words.
package emulator

import (
	"context"
	"crypto/sha1"
	"encoding"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/yuin/gopher-lua"

	"github.com/tatami-rate/tatami/internal/number"
)

// Redis is an emulated server. It is safe for concurrent use; like a server it runs
// one command or script at a time.
type Redis struct {
	mu      sync.Mutex
	now     time.Time
	keys    map[string]*value
	scripts map[string]*lua.LFunction // by SHA1, in small letters

	lua       *lua.LState
	globals   *lua.LTable
	operators []lua.LValue   // what compile's functions take
	onError   *lua.LFunction // error value -> text of the error reply
	sha       string         // of the script that runs
	readOnly  bool           // whether it may not write
	words     []string       // room for one command
}

var _ redis.Scripter = (*Redis)(nil)

// New returns an empty server. Its clock stands at 2025-01-01T00:00:00Z until
// SetTime or Advance moves it.
func New() *Redis {
	r := &Redis{
		now:     time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
		keys:    map[string]*value{},
		scripts: map[string]*lua.LFunction{},
		lua:     lua.NewState(lua.Options{SkipOpenLibs: true}),
	}
	L := r.lua
	r.globals, L.Env = library(L, r.redisLibrary())
	for _, operator := range []lua.LGFunction{luaMod, luaConcat, luaFor} {
		r.operators = append(r.operators, L.NewFunction(operator))
	}
	r.onError = L.NewFunction(r.describeError)
	return r
}

// SetTime sets the clock; it may go backwards. Times are whole microseconds: the
// rest is cut off.
func (r *Redis) SetTime(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = time.UnixMicro(now.UnixMicro())
}

// Advance moves the clock on by d, cut off to whole microseconds.
func (r *Redis) Advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d.Truncate(time.Microsecond))
}

// Eval runs a script and keeps it for EvalSha.
func (r *Redis) Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return r.eval(ctx, "eval", script, keys, args)
}

// EvalRO runs a script that may not write, and keeps it.
func (r *Redis) EvalRO(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return r.eval(ctx, "eval_ro", script, keys, args)
}

// EvalSha runs the script with this SHA1, or answers redis.ErrNoScript.
func (r *Redis) EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	return r.eval(ctx, "evalsha", sha1, keys, args)
}

// EvalShaRO runs the script with this SHA1, which may not write, or answers
// redis.ErrNoScript.
func (r *Redis) EvalShaRO(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd {
	return r.eval(ctx, "evalsha_ro", sha1, keys, args)
}

// ScriptExists tells of each SHA1 whether EvalSha would find it.
func (r *Redis) ScriptExists(ctx context.Context, hashes ...string) *redis.BoolSliceCmd {
	words := []any{"script", "exists"}
	for _, hash := range hashes {
		words = append(words, hash)
	}
	cmd := redis.NewBoolSliceCmd(ctx, words...)
	if err := ctx.Err(); err != nil {
		cmd.SetErr(err)
		return cmd
	}
	if len(hashes) == 0 {
		cmd.SetErr(wrongArity("script|exists"))
		return cmd
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := make([]bool, len(hashes))
	for i, hash := range hashes {
		found[i] = r.scripts[strings.ToLower(hash)] != nil
	}
	cmd.SetVal(found)
	return cmd
}

// ScriptLoad compiles and keeps a script and answers its SHA1.
func (r *Redis) ScriptLoad(ctx context.Context, script string) *redis.StringCmd {
	cmd := redis.NewStringCmd(ctx, "script", "load", script)
	if err := ctx.Err(); err != nil {
		cmd.SetErr(err)
		return cmd
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sha, _, err := r.load(script)
	if err != nil {
		cmd.SetErr(err)
		return cmd
	}
	cmd.SetVal(sha)
	return cmd
}

// ScriptFlush forgets all scripts.
func (r *Redis) ScriptFlush(ctx context.Context) *redis.StatusCmd {
	cmd := redis.NewStatusCmd(ctx, "script", "flush")
	if err := ctx.Err(); err != nil {
		cmd.SetErr(err)
		return cmd
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.scripts)
	cmd.SetVal("OK")
	return cmd
}

// Do runs one of the commands DEL, EXISTS, GET, PERSIST, PEXPIRE, PTTL, RPUSH, SET,
// TIME and TYPE, as a client of the server would.
func (r *Redis) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	if err := ctx.Err(); err != nil {
		cmd.SetErr(err)
		return cmd
	}
	words := make([]string, len(args))
	for i, arg := range args {
		word, err := argumentText(arg)
		if err != nil {
			cmd.SetErr(err)
			return cmd
		}
		words[i] = word
	}
	if len(words) == 0 {
		cmd.SetErr(errors.New("emulator: Do takes a command"))
		return cmd
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := commands[strings.ToUpper(words[0])]
	switch {
	case c == nil:
		cmd.SetErr(noCommand(words[0]))
		return cmd
	case !c.takes(len(words)):
		cmd.SetErr(wrongArity(strings.ToLower(words[0])))
		return cmd
	}
	switch reply := c.run(r, words[1:]).(type) {
	case status:
		answer(cmd, string(reply))
	case []string:
		array := make([]any, len(reply))
		for i, element := range reply {
			array[i] = element
		}
		answer(cmd, array)
	default:
		answer(cmd, reply)
	}
	return cmd
}

func noCommand(name string) replyError {
	return replyError("ERR emulator: the command " + name + " is not emulated")
}

func wrongArity(name string) replyError {
	return replyError("ERR wrong number of arguments for '" + name + "' command")
}

// answer ends a command as go-redis does: nil is redis.Nil, an error reply an error.
func answer(cmd *redis.Cmd, v any) {
	switch v := v.(type) {
	case nil:
		cmd.SetErr(redis.Nil)
	case replyError:
		cmd.SetErr(v)
	default:
		cmd.SetVal(v)
	}
}

// eval is EVAL and its kin; name ends in _ro where the script may not write.
func (r *Redis) eval(ctx context.Context, name, script string, keys []string, args []any) *redis.Cmd {
	if len(args) == 1 { // go-redis spreads a lone list
		switch list := args[0].(type) {
		case []any:
			args = list
		case []string:
			args = make([]any, len(list))
			for i, arg := range list {
				args[i] = arg
			}
		}
	}
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, name, script, len(keys))
	for _, key := range keys {
		words = append(words, key)
	}
	words = append(words, args...)
	cmd := redis.NewCmd(ctx, words...)
	if err := ctx.Err(); err != nil {
		cmd.SetErr(err)
		return cmd
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	sha, function := script, (*lua.LFunction)(nil)
	if strings.HasPrefix(name, "evalsha") {
		function = r.scripts[sha]
		if function == nil {
			sha = strings.ToLower(sha)
			function = r.scripts[sha]
		}
		if function == nil {
			cmd.SetErr(redis.ErrNoScript)
			return cmd
		}
	} else {
		var err error
		if sha, function, err = r.load(script); err != nil {
			cmd.SetErr(err)
			return cmd
		}
	}
	r.sha, r.readOnly = sha, strings.HasSuffix(name, "_ro")
	v, err := r.run(function, words[3:3+len(keys)], words[3+len(keys):])
	if err != nil {
		cmd.SetErr(err)
	} else {
		answer(cmd, v)
	}
	return cmd
}

// load compiles a script unless it is there, and keeps it.
func (r *Redis) load(script string) (string, *lua.LFunction, error) {
	sum := sha1.Sum([]byte(script))
	sha := hex.EncodeToString(sum[:])
	if function := r.scripts[sha]; function != nil {
		return sha, function, nil
	}
	proto, err := compile(script)
	if err != nil {
		return "", nil, replyError(oneLine("ERR Error compiling script (new function): " + err.Error()))
	}
	L := r.lua
	L.Push(L.NewFunctionFromProto(proto))
	for _, operator := range r.operators {
		L.Push(operator)
	}
	L.Call(len(r.operators), 1)
	function := L.Get(-1).(*lua.LFunction)
	L.Pop(1)
	r.scripts[sha] = function
	return sha, function, nil
}

func (r *Redis) run(script *lua.LFunction, keys, args []any) (any, error) {
	for _, list := range []struct {
		name   string
		values []any
	}{{"KEYS", keys}, {"ARGV", args}} {
		table := r.lua.CreateTable(len(list.values), 0)
		for _, v := range list.values {
			word, err := argumentText(v)
			if err != nil {
				return nil, err
			}
			table.Append(lua.LString(word))
		}
		r.globals.RawSetString(list.name, table)
	}
	L := r.lua
	L.Push(script)
	if err := L.PCall(0, 1, r.onError); err != nil {
		return nil, replyError(oneLine(err.(*lua.ApiError).Object.String()))
	}
	result := L.Get(-1)
	L.Pop(1)
	return fromLua(result, 0), nil
}

// describeError is the error handler of scripts: it makes of the raised value the
// text of the error reply, while the stack still shows the place.
func (r *Redis) describeError(L *lua.LState) int {
	raised := L.Get(1)
	var message string
	if table, ok := raised.(*lua.LTable); ok {
		message = text(table.RawGetString("err"))
	} else {
		message = "ERR " + text(raised)
	}
	// Level 0 is this function; the one above raised, or called what raised.
	for level := 1; level <= 2; level++ {
		if where := L.Where(level); strings.HasPrefix(where, chunkName) {
			message += " script: " + r.sha + ", on @" + strings.TrimSuffix(where, ":") + "."
			break
		}
	}
	L.Push(lua.LString(message))
	return 1
}

// redisLibrary is the table redis of scripts.
func (r *Redis) redisLibrary() *lua.LTable {
	table := r.lua.NewTable()
	setFunctions(r.lua, table, map[string]lua.LGFunction{
		"call":  func(L *lua.LState) int { return r.luaCall(L, true) },
		"pcall": func(L *lua.LState) int { return r.luaCall(L, false) },
		"error_reply": func(L *lua.LState) int {
			message, ok := L.Get(1).(lua.LString)
			if L.GetTop() != 1 || !ok {
				return pushField(L, "err", "ERR wrong number or type of arguments")
			}
			return pushField(L, "err", errorReply(string(message)))
		},
		"status_reply": func(L *lua.LState) int {
			message, ok := L.Get(1).(lua.LString)
			if L.GetTop() != 1 || !ok {
				return pushField(L, "err", "ERR wrong number or type of arguments")
			}
			return pushField(L, "ok", string(message))
		},
		"sha1hex": func(L *lua.LState) int {
			if L.GetTop() != 1 {
				raise(L, "ERR wrong number of arguments")
			}
			input := ""
			if lua.LVCanConvToString(L.Get(1)) {
				input = text(L.Get(1))
			}
			sum := sha1.Sum([]byte(input))
			L.Push(lua.LString(hex.EncodeToString(sum[:])))
			return 1
		},
		"replicate_commands": func(L *lua.LState) int {
			L.Push(lua.LTrue)
			return 1
		},
	})
	return table
}

// errorReply is the err of redis.error_reply(message): a code and a text. Text of
// one word gets the code ERR, and a leading - is dropped.
func errorReply(message string) string {
	message = strings.TrimPrefix(message, "-")
	code, rest, ok := strings.Cut(message, " ")
	if !ok {
		code, rest = "ERR", message
	}
	return code + " " + strings.TrimRight(rest, "\r\n")
}

func pushField(L *lua.LState, name, message string) int {
	table := L.NewTable()
	table.RawSetString(name, lua.LString(message))
	L.Push(table)
	return 1
}

func raise(L *lua.LState, message string) {
	pushField(L, "err", message)
	L.Error(L.Get(-1), 0)
}

// luaCall is redis.call, which raises errors, and redis.pcall, which returns them.
func (r *Redis) luaCall(L *lua.LState, raises bool) int {
	switch reply := r.command(L).(type) {
	case nil:
		L.Push(lua.LFalse)
	case string:
		L.Push(lua.LString(reply))
	case int64:
		L.Push(lua.LNumber(reply))
	case status:
		return pushField(L, "ok", string(reply))
	case []string:
		table := L.CreateTable(len(reply), 0)
		for _, element := range reply {
			table.Append(lua.LString(element))
		}
		L.Push(table)
	case replyError:
		if raises {
			raise(L, string(reply))
		}
		pushField(L, "err", string(reply))
		L.Get(-1).(*lua.LTable).RawSetString("ignore_error_stats_update", lua.LTrue)
	}
	return 1
}

// command runs the command that stands on the stack.
func (r *Redis) command(L *lua.LState) reply {
	n := L.GetTop()
	if n == 0 {
		return replyError("ERR Please specify at least one argument for this redis lib call")
	}
	words := r.words[:0]
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case lua.LString:
			words = append(words, string(v))
		case lua.LNumber:
			return replyError(fmt.Sprintf("ERR emulator: argument %d of a command is a Lua number, "+
				"which servers print in different ways; pass string.format('%%d', n)", i))
		default:
			return replyError("ERR Lua redis lib command arguments must be strings or integers")
		}
	}
	r.words = words
	c := commands[strings.ToUpper(words[0])]
	switch {
	case c == nil:
		return noCommand(words[0])
	case !c.takes(n):
		return replyError("ERR Wrong number of args calling Redis command from script")
	case c.write && r.readOnly:
		return replyError("ERR Write commands are not allowed from read-only scripts.")
	}
	return c.run(r, words[1:])
}

// fromLua is what a client gets for the value that a script returns.
func fromLua(v lua.LValue, depth int) any {
	switch v := v.(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return number.Truncate(float64(v))
	case lua.LBool:
		if v {
			return int64(1)
		}
	case *lua.LTable:
		if depth > 1000 {
			return replyError("ERR reached lua stack limit")
		}
		return tableFromLua(v, depth)
	}
	return nil
}

func tableFromLua(table *lua.LTable, depth int) any {
	if message, ok := table.RawGetString("err").(lua.LString); ok {
		return replyError(oneLine(string(message)))
	}
	if message, ok := table.RawGetString("ok").(lua.LString); ok {
		return oneLine(string(message))
	}
	for _, name := range []string{"double", "map", "set", "big_number", "verbatim_string"} {
		if table.RawGetString(name) != lua.LNil {
			return replyError("ERR emulator: a reply {" + name + "=...} is not emulated")
		}
	}
	array := make([]any, 0, table.Len())
	for i := 1; ; i++ {
		element := table.RawGetInt(i)
		if element == lua.LNil {
			return array
		}
		array = append(array, fromLua(element, depth+1))
	}
}

var lineBreaks = strings.NewReplacer("\r", " ", "\n", " ")

// oneLine is text as it goes into a reply of one line.
func oneLine(text string) string { return lineBreaks.Replace(text) }

// argumentText is an argument as go-redis sends it.
func argumentText(arg any) (string, error) {
	switch v := arg.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case int:
		return strconv.Itoa(v), nil
	case int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return fmt.Sprint(v), nil
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 64), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case bool:
		if v {
			return "1", nil
		}
		return "0", nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case time.Duration:
		return strconv.FormatInt(int64(v), 10), nil
	case encoding.BinaryMarshaler:
		b, err := v.MarshalBinary()
		return string(b), err
	case net.IP:
		return string(v), nil
	}
	return "", fmt.Errorf("redis: can't marshal %T (implement encoding.BinaryMarshaler)", arg)
}
