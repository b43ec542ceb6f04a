// Package emulator is a Redis server in the process, for tests and for proofs: it
// runs the very text of a script on gopher-lua, with the number rules, error texts
// and expiry of Redis 7.0 on amd64, and with a clock that the caller may set.
//
// NewClient is a server of one's own behind an ordinary go-redis client:
//
//	client := emulator.NewClient()
//	defer client.Close()
//
// New is one whose clock a test moves; its Client, Dial and Serve lead to it. Its
// methods Eval, EvalSha and Do run a command without a connection, which is faster.
//
// It has what scripts that limit rates use and no more. A client gets Redis' own
// error for a command that the emulator lacks. What a script lacks is refused with
// an error that says "emulator". Three things are refused although a server
// takes them: a Lua number as an argument of a command, since servers differ in how
// they print it; goto used as a name; and a number literal such as 0x1p4. Errors
// that Lua itself raises, such as a call of nil, keep gopher-lua's words. A script
// that does not end blocks the server for ever.
package emulator

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/yuin/gopher-lua"

	"github.com/tatami-rate/tatami/emulator/number"
)

// Redis is an emulated server. It is safe for concurrent use; like a server it runs
// one command, script or transaction at a time.
type Redis struct {
	mu      sync.Mutex
	clock   func() time.Time
	ahead   time.Duration // what Advance added to the clock
	now     time.Time     // the instant of the command that runs, in whole microseconds
	dbs     [16]map[string]*value
	keys    map[string]*value         // those of the database that the session selected
	sweepAt int                       // the number of keys at which put drops the expired ones
	scripts map[string]*lua.LFunction // by SHA1, in small letters

	session  *session // whose command runs
	direct   *session // of the methods that need no connection
	sessions map[*session]bool
	lastID   int64

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
// SetTime, Advance or SetClock moves it.
func New() *Redis {
	r := &Redis{
		sweepAt:  minSweep,
		scripts:  map[string]*lua.LFunction{},
		direct:   &session{},
		sessions: map[*session]bool{},
		lua:      lua.NewState(lua.Options{SkipOpenLibs: true}),
	}
	r.SetTime(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC))
	for db := range r.dbs {
		r.dbs[db] = map[string]*value{}
	}
	r.keys = r.dbs[0]
	L := r.lua
	r.globals, L.Env = library(L, r.redisLibrary())
	for _, operator := range []lua.LGFunction{luaMod, luaConcat, luaFor} {
		r.operators = append(r.operators, L.NewFunction(operator))
	}
	r.onError = L.NewFunction(r.describeError)
	return r
}

// SetTime stops the clock at now; it may go backwards. Times are whole microseconds:
// the rest is cut off.
func (r *Redis) SetTime(now time.Time) { r.SetClock(func() time.Time { return now }) }

// SetClock lets the clock be what now returns, such as time.Now; now must not call
// the server. Every command, script and transaction has one instant, its first.
func (r *Redis) SetClock(now func() time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock, r.ahead = now, 0
}

// instant is what the clock says, in whole microseconds.
func (r *Redis) instant() time.Time { return time.UnixMicro(r.clock().Add(r.ahead).UnixMicro()) }

// Advance moves the clock on by d, cut off to whole microseconds, whether it stands
// or runs.
func (r *Redis) Advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ahead += d.Truncate(time.Microsecond)
}

// evaluate is EVAL, or EVALSHA, or either's form that may not write.
func evaluate(bySHA, readOnly bool) func(r *Redis, args []string) reply {
	return func(r *Redis, args []string) reply {
		script := args[0]
		if bySHA && len(script) != 40 {
			return errNoScript
		}
		keys, ok := parseInteger(args[1])
		switch {
		case !ok:
			return errNotInteger
		case keys > int64(len(args)-2):
			return replyError("ERR Number of keys can't be greater than number of args")
		case keys < 0:
			return replyError("ERR Number of keys can't be negative")
		}
		sha, function := strings.ToLower(script), (*lua.LFunction)(nil)
		if bySHA {
			if function = r.scripts[sha]; function == nil {
				return errNoScript
			}
		} else {
			var refused reply
			if sha, function, refused = r.load(script); refused != nil {
				return refused
			}
		}
		return r.runScript(sha, function, args[2:2+keys], args[2+keys:], readOnly)
	}
}

func (r *Redis) scriptExists(args []string) reply {
	found := make([]any, len(args))
	for i, sha := range args {
		found[i] = int64(0)
		if r.scripts[strings.ToLower(sha)] != nil {
			found[i] = int64(1)
		}
	}
	return found
}

func (r *Redis) scriptFlush(args []string) reply {
	if !isFlushOption(args) {
		return replyError("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	clear(r.scripts)
	return status("OK")
}

func (r *Redis) scriptLoad(args []string) reply {
	sha, _, refused := r.load(args[0])
	if refused != nil {
		return refused
	}
	return sha
}

// load compiles a script unless it is there, and keeps it.
func (r *Redis) load(script string) (string, *lua.LFunction, reply) {
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

// runScript is EVAL and its kin, for the arguments that follow the script.
func (r *Redis) runScript(sha string, script *lua.LFunction, keys, args []string, readOnly bool) reply {
	for _, list := range []struct {
		name   string
		values []string
	}{{"KEYS", keys}, {"ARGV", args}} {
		table := r.lua.CreateTable(len(list.values), 0)
		for _, v := range list.values {
			table.Append(lua.LString(v))
		}
		r.globals.RawSetString(list.name, table)
	}
	r.sha, r.readOnly = sha, readOnly
	db := r.session.db
	L := r.lua
	L.Push(script)
	err := L.PCall(0, 1, r.onError)
	r.selectDB(db) // a script's SELECT ends with it
	if err != nil {
		return replyError(oneLine(err.(*lua.ApiError).Object.String()))
	}
	result := L.Get(-1)
	L.Pop(1)
	return fromLua(result, 0)
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
	switch reply := r.call(L).(type) {
	case nil:
		L.Push(lua.LFalse)
	case string:
		L.Push(lua.LString(reply))
	case int64:
		L.Push(lua.LNumber(reply))
	case status:
		return pushField(L, "ok", string(reply))
	case verbatim:
		L.Push(lua.LString(reply))
	case []any: // TIME's texts
		table := L.CreateTable(len(reply), 0)
		for _, element := range reply {
			table.Append(lua.LString(element.(string)))
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

// call runs the command that stands on the stack.
func (r *Redis) call(L *lua.LState) reply {
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
	c, args := lookup(words)
	switch {
	case c == nil:
		return replyError("ERR emulator: the command " + words[0] + " is not emulated")
	case !c.takes(n):
		return replyError("ERR Wrong number of args calling Redis command from script")
	case c.flags&noScript != 0:
		return replyError("ERR This Redis command is not allowed from script")
	case c.flags&writes != 0 && r.readOnly:
		return replyError("ERR Write commands are not allowed from read-only scripts.")
	}
	return c.run(r, args)
}

// fromLua is what a client gets for the value that a script returns.
func fromLua(v lua.LValue, depth int) reply {
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

func tableFromLua(table *lua.LTable, depth int) reply {
	if message, ok := table.RawGetString("err").(lua.LString); ok {
		return replyError(oneLine(string(message)))
	}
	if message, ok := table.RawGetString("ok").(lua.LString); ok {
		return status(oneLine(string(message)))
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
