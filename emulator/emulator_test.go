package emulator

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// place stands for the end of an error text that says where a script failed.
const place = " script: SHA, on @user_script:1."

// snippets are scripts and what they answer on a server, to the letter. They find
// KEYS[1] missing, KEYS[2] holding the text "v" and KEYS[3] a list.
var snippets = []struct{ script, want string }{
	// Replies.
	{`return 3.99`, `int64 3`},
	{`return -3.99`, `int64 -3`},
	{`return 2^63`, `int64 -9223372036854775808`},
	{`return 1e300`, `int64 -9223372036854775808`},
	{`return true`, `int64 1`},
	{`return false`, `error redis: nil`},
	{`return nil`, `error redis: nil`},
	{`return`, `error redis: nil`},
	{``, `error redis: nil`},
	{`return function() end`, `error redis: nil`},
	{`return 1, 2`, `int64 1`},
	{`return {1, nil, 3}`, `{int64 1}`},
	{`return {1, false, true, {}, {2, {'x'}}, 'a\0b'}`, `{int64 1, <nil> <nil>, int64 1, {}, {int64 2, {x}}, ` + "a\x00b}"},
	{`return {1, 2, x = 3}`, `{int64 1, int64 2}`},
	{`return {err = 'X y'}`, `error X y`},
	{`return {err = '  X'}`, `error   X`},
	{`return {err = 'X\ny\r\nz'}`, `error X y  z`},
	{`return {err = 12}`, `{}`},
	{`return {1, {err = 'X y'}, 2}`, `{int64 1, error X y, int64 2}`},
	{`return {ok = 'X y'}`, `X y`},
	{`return {ok = 'X\ny'}`, `X y`},
	{`return {ok = 5, 1}`, `{int64 1}`},
	{`return redis.error_reply('X y')`, `error X y`},
	{`return redis.error_reply('x')`, `error ERR x`},
	{`return redis.error_reply('-X y')`, `error X y`},
	{`return redis.error_reply('X y\r\n')`, `error X y`},
	{`return redis.error_reply('')`, `error ERR `},
	{`return redis.error_reply(' x')`, `error  x`},
	{`return redis.error_reply(1)`, `error ERR wrong number or type of arguments`},
	{`return redis.error_reply()`, `error ERR wrong number or type of arguments`},
	{`return redis.error_reply('a', 'b')`, `error ERR wrong number or type of arguments`},
	{`return redis.error_reply('my err').err`, `my err`},
	{`return redis.status_reply('X y')`, `X y`},
	{`return redis.status_reply()`, `error ERR wrong number or type of arguments`},
	{`return redis.sha1hex('')`, `da39a3ee5e6b4b0d3255bfef95601890afd80709`},
	{`return redis.sha1hex(12)`, `7b52009b64fd0a2a49e6d8a939753077792b0554`},
	{`return redis.sha1hex({})`, `da39a3ee5e6b4b0d3255bfef95601890afd80709`},
	{`return redis.sha1hex()`, `error ERR wrong number of arguments` + place},
	{`return redis.replicate_commands()`, `int64 1`},
	{`return #KEYS .. '|' .. #ARGV .. '|' .. ARGV[1] .. '|' .. type(ARGV[2])`, `3|2|first|string`},
	{`KEYS[1] = 'b' KEYS.x = 1 return {KEYS[1], KEYS.x}`, `{b, int64 1}`},
	{`ARGV[1], ARGV[2], ARGV[3] = nil, 7, {} return {tostring(ARGV[1]), ARGV[2], ARGV[3], #KEYS}`, `{nil, int64 7, {}, int64 3}`},

	// Assignments of several values.
	{`local a, b = 1, 2 a, b = b, a return {a, b}`, `{int64 2, int64 1}`},
	{`local a, b, c = 1, 2, 3 a, b, c = c, a + b, a return {a, b, c}`, `{int64 3, int64 3, int64 1}`},
	{`local a, b = 1 b, a = a, b return {b, tostring(a)}`, `{int64 1, nil}`},
	{`local a, t = 1, {} a, t[a] = 2, a return {a, t[1]}`, `{int64 2, int64 1}`},
	{`local a, b, c = 1 a, b, c = 2, (function() return a, 5 end)() return {a, b, c}`, `{int64 2, int64 1, int64 5}`},
	{`local a, b, c = 1, 2, 3 a, b, c = b, a return {a, b, tostring(c)}`, `{int64 2, int64 1, nil}`},
	{`local a, b = 1 a = 2, (function() b = a end)() return {a, b}`, `{int64 2, int64 1}`},
	{`local a = 1 return (function() local b = 2 a, b = b, a return {a, b} end)()`, `{int64 2, int64 1}`},

	// Commands.
	{`return redis.call('GET', KEYS[1])`, `error redis: nil`},
	{`return tostring(redis.call('GET', KEYS[1]))`, `false`},
	{`return redis.call('get', KEYS[2])`, `v`},
	{`return redis.call('GET', KEYS[3])`, `error WRONGTYPE Operation against a key holding the wrong kind of value` + place},
	{`return redis.pcall('GET', KEYS[3])`, `error WRONGTYPE Operation against a key holding the wrong kind of value`},
	{`local t = redis.pcall('GET', KEYS[3]) return {t.err, tostring(t.ignore_error_stats_update), type(t.source)}`,
		`{WRONGTYPE Operation against a key holding the wrong kind of value, true, nil}`},
	{`return redis.call('SET', KEYS[1], 'x', 'PX', '5000')`, `OK`},
	{`return redis.call('SET', KEYS[1], 'x').ok`, `OK`},
	{`return redis.call('SET', KEYS[3], 'x')`, `OK`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX')`, `error ERR syntax error`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'FOO')`, `error ERR syntax error`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'px', '0')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '-1')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '9223372036854775807')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '9200000000000000000')`, `OK`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '9223372036854775808')`, `error ERR value is not an integer or out of range`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '01')`, `error ERR value is not an integer or out of range`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '1.5')`, `error ERR value is not an integer or out of range`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '1e3')`, `error ERR value is not an integer or out of range`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', ' 1')`, `error ERR value is not an integer or out of range`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '')`, `error ERR value is not an integer or out of range`},
	{`redis.call('SET', KEYS[1], 'x', 'PX', '5000') redis.call('SET', KEYS[1], 'y') return redis.call('PTTL', KEYS[1])`, `int64 -1`},
	{`redis.call('SET', KEYS[1], 'x', 'PX', '5000') return redis.call('PTTL', KEYS[1])`, `int64 5000`},
	{`return redis.call('SET', KEYS[1], 'x', 'EX', '12')`, `OK`},
	{`redis.call('SET', KEYS[1], 'x', 'ex', '12') return redis.call('PTTL', KEYS[1])`, `int64 12000`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX')`, `error ERR syntax error`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '0')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '-1')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '9200000000000000')`, `OK`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '9223372036854775')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '9223372036854776')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '9223372036854775807')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '9223372036854775808')`, `error ERR value is not an integer or out of range`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '1.5')`, `error ERR value is not an integer or out of range`},
	{`redis.call('SET', KEYS[1], 'x', 'EX', '5', 'EX', '6') return redis.call('PTTL', KEYS[1])`, `int64 6000`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EX', '5', 'PX', '6')`, `error ERR syntax error`},
	{`redis.call('SET', KEYS[1], 'x', 'PX', '5000') return {redis.call('SET', KEYS[1], 'y', 'KEEPTTL'), redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1])}`,
		`{OK, int64 5000, y}`},
	{`return {redis.call('SET', KEYS[2], 'x', 'keepttl'), redis.call('PTTL', KEYS[2])}`, `{OK, int64 -1}`},
	{`return {redis.call('SET', KEYS[1], 'x', 'KEEPTTL'), redis.call('PTTL', KEYS[1])}`, `{OK, int64 -1}`},
	{`redis.call('PEXPIRE', KEYS[3], '7000') return {redis.call('SET', KEYS[3], 'x', 'KEEPTTL'), redis.call('PTTL', KEYS[3]), redis.call('GET', KEYS[3])}`,
		`{OK, int64 7000, x}`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'KEEPTTL', 'EX', '5')`, `error ERR syntax error`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PX', '5', 'KEEPTTL')`, `error ERR syntax error`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'KEEPTTL', '5')`, `error ERR syntax error`},
	{`redis.call('SET', KEYS[1], 'x', 'EXAT', '4000000000') return redis.call('PTTL', KEYS[1]) > 0`, `int64 1`},
	{`redis.call('SET', KEYS[2], 'x', 'PXAT', '1') return {redis.call('GET', KEYS[2]), redis.call('PTTL', KEYS[2])}`, `{<nil> <nil>, int64 -2}`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'EXAT', '9223372036854776')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'PXAT', '0')`, `error ERR invalid expire time in 'set' command`},
	{`return {redis.call('SET', KEYS[1], 'x', 'NX'), redis.call('SET', KEYS[1], 'y', 'nx'), redis.call('GET', KEYS[1])}`, `{OK, <nil> <nil>, x}`},
	{`return {redis.call('SET', KEYS[1], 'x', 'XX'), redis.call('GET', KEYS[1]), redis.call('SET', KEYS[2], 'y', 'XX')}`, `{<nil> <nil>, <nil> <nil>, OK}`},
	{`return redis.pcall('SET', KEYS[1], 'x', 'NX', 'XX')`, `error ERR syntax error`},
	{`return {redis.call('SET', KEYS[2], 'x', 'GET'), redis.call('SET', KEYS[1], 'y', 'GET'), redis.call('GET', KEYS[1])}`, `{v, <nil> <nil>, y}`},
	{`return {redis.call('SET', KEYS[2], 'x', 'GET', 'NX'), redis.call('GET', KEYS[2])}`, `{v, v}`},
	{`return {redis.call('SET', KEYS[1], 'x', 'XX', 'GET'), redis.call('GET', KEYS[1])}`, `{<nil> <nil>, <nil> <nil>}`},
	{`return {redis.pcall('SET', KEYS[3], 'x', 'GET').err, redis.call('TYPE', KEYS[3]).ok}`,
		`{WRONGTYPE Operation against a key holding the wrong kind of value, list}`},
	{`return redis.pcall('SET', KEYS[3], 'x', 'GET', 'PX', '0')`, `error ERR invalid expire time in 'set' command`},
	{`return redis.call('PTTL', KEYS[1])`, `int64 -2`},
	{`return redis.call('PTTL', KEYS[2])`, `int64 -1`},
	{`redis.call('PEXPIRE', KEYS[2], '7000') return {redis.call('PERSIST', KEYS[2]), redis.call('PERSIST', KEYS[2]), redis.call('PTTL', KEYS[2])}`,
		`{int64 1, int64 0, int64 -1}`},
	{`return {redis.call('PEXPIRE', KEYS[2], '7000'), redis.call('PTTL', KEYS[2]), redis.call('PEXPIRE', KEYS[1], '7000')}`,
		`{int64 1, int64 7000, int64 0}`},
	{`return {redis.call('PEXPIRE', KEYS[2], '0'), redis.call('EXISTS', KEYS[2])}`, `{int64 1, int64 0}`},
	{`return {redis.call('PEXPIRE', KEYS[2], '-5'), redis.call('TYPE', KEYS[2])}`, `{int64 1, none}`},
	{`return redis.pcall('PEXPIRE', KEYS[2], 'x')`, `error ERR value is not an integer or out of range`},
	{`return redis.pcall('PEXPIRE', KEYS[2], '9223372036854775807')`, `error ERR invalid expire time in 'pexpire' command`},
	{`return {redis.call('TYPE', KEYS[1]), redis.call('TYPE', KEYS[2]), redis.call('TYPE', KEYS[3]).ok}`, `{none, string, list}`},
	{`return {redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[2]), redis.call('DEL', KEYS[1], KEYS[2]), redis.call('EXISTS', KEYS[2])}`,
		`{int64 2, int64 1, int64 0}`},
	{`return {redis.call('RPUSH', KEYS[3], 'a', 'b'), redis.call('RPUSH', KEYS[1], 'a')}`, `{int64 3, int64 1}`},
	{`return redis.pcall('RPUSH', KEYS[2], 'a')`, `error WRONGTYPE Operation against a key holding the wrong kind of value`},
	{`local t = redis.call('TIME') return {#t, type(t[1]), type(t[2]), string.find(t[1] .. t[2], '%D') == nil, #t[2] <= 6}`,
		`{int64 2, string, string, int64 1, int64 1}`},
	{`return redis.call()`, `error ERR Please specify at least one argument for this redis lib call` + place},
	{`return redis.pcall()`, `error ERR Please specify at least one argument for this redis lib call`},
	{`return redis.call('GET')`, `error ERR Wrong number of args calling Redis command from script` + place},
	{`return redis.call('TIME', 'x')`, `error ERR Wrong number of args calling Redis command from script` + place},
	{`return redis.call('GET', {})`, `error ERR Lua redis lib command arguments must be strings or integers` + place},
	{`return redis.call('GET', nil)`, `error ERR Lua redis lib command arguments must be strings or integers` + place},
	{`return redis.call('GET', true)`, `error ERR Lua redis lib command arguments must be strings or integers` + place},

	// Errors.
	{`error('x')`, `error ERR user_script:1: x` + place},
	{`error('x', 0)`, `error ERR x` + place},
	{`error('x', 2)`, `error ERR x` + place},
	{`error(12)`, `error ERR user_script:1: 12` + place},
	{`error(1e15)`, `error ERR user_script:1: 1e+15` + place},
	{`error(nil)`, `error ERR nil` + place},
	{`error(true)`, `error ERR true` + place},
	{`error({err = 'X y'})`, `error X y` + place},
	{`error({err = 'X\ny'})`, `error X y` + place},
	{`local function f() error('deep') end f()`, `error ERR user_script:1: deep` + place},
	{`local function f() error('deep', 2) end f()`, `error ERR user_script:1: deep` + place},
	{`assert(false)`, `error ERR user_script:1: assertion failed!` + place},
	{`assert(nil, 'x')`, `error ERR user_script:1: x` + place},
	{`local ok, e = pcall(redis.call, 'GET', KEYS[3]) return {tostring(ok), e}`,
		`{false, WRONGTYPE Operation against a key holding the wrong kind of value}`},
	{`local ok, e = pcall(error, {err = 'X y'}) return {tostring(ok), e}`, `{false, X y}`},
	{`local ok, e = pcall(error, {}) return {tostring(ok), type(e)}`, `{false, table}`},
	{`local ok, e = pcall(error, 'x') return {tostring(ok), e}`, `{false, x}`},
	{`return {pcall(function(...) return select('#', ...), ... end, 1, 2)}`, `{int64 1, int64 2, int64 1, int64 2}`},
	{`local ok, t = xpcall(function() return redis.call('GET', KEYS[3]) end, type) return {tostring(ok), t}`, `{false, table}`},
	{`return 1 < 'a'`, `error ERR user_script:1: attempt to compare number with string` + place},

	// Globals.
	{`x = 1`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`redis = 1`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`KEYS = {}`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`function f() end`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`_G.x = 1`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`string.x = 1`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`math.floor = nil`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`redis.call = nil`, `error ERR user_script:1: Attempt to modify a readonly table` + place},
	{`rawset(_G, 'x', 1)`, `error ERR Attempt to modify a readonly table` + place},
	{`return x`, `error ERR user_script:1: Script attempted to access nonexistent global variable 'x'` + place},
	{`return _G.x`, `error ERR user_script:1: Script attempted to access nonexistent global variable 'x'` + place},
	{`return nope()`, `error ERR user_script:1: Script attempted to access nonexistent global variable 'nope'` + place},
	{`return print`, `error ERR user_script:1: Script attempted to access nonexistent global variable 'print'` + place},
	{`return os`, `error ERR user_script:1: Script attempted to access nonexistent global variable 'os'` + place},
	{`return require`, `error ERR user_script:1: Script attempted to access nonexistent global variable 'require'` + place},
	{`return _VERSION`, `Lua 5.1`},
	{`return {type(redis.nope), type(string.nope), type(math.nope)}`, `{nil, nil, nil}`},
	{`return select('#', ...)`, `int64 0`},
	{`local a, b = ... return type(a) .. type(b)`, `nilnil`},

	// Number literals and operators.
	{`return 010 + 0x10 + 1e2`, `int64 126`},
	{`return {0010, 0x0a, 3., .5 * 4, 1E2, 0xFF}`, `{int64 10, int64 10, int64 3, int64 2, int64 100, int64 255}`},
	{`return tostring(1e400)`, `inf`},
	{`return string.format('%.17g', 0.1)`, `0.10000000000000001`},
	{`return string.format('%d', 9007199254740993)`, `9007199254740992`},
	{`return string.format('%d', 18446744073709551615)`, `-9223372036854775808`},
	{`return tostring(0xffffffffffffffff)`, `1.844674407371e+19`},
	{`return 2^53 == 9007199254740992`, `int64 1`},
	{`return -2^2`, `int64 -4`},
	{`return {7 % 3, -7 % 3, 7 % -3, -7 % -3, 5.5 % 2 * 10}`, `{int64 1, int64 2, int64 -2, int64 -1, int64 15}`},
	{`return 1780000000e9 % 7919`, `int64 2560`},
	{`return math.fmod(1780000000e9, 7919)`, `int64 2515`},
	{`return {2^3^2, 7 % 4 % 2, 2 * 3 % 4, -5 % 3 ^ 2}`, `{int64 512, int64 1, int64 2, int64 4}`},
	{`return 1e15 .. '|' .. 0.1 .. '|' .. 123456789012345 .. '|' .. -0.5`, `1e+15|0.1|1.2345678901234e+14|-0.5`},
	{`return 1 .. ''`, `1`},
	{`return ('a' .. 'b') .. 'c' .. 1 .. 2`, `abc12`},
	{`local function f() return 1, 2, 3 end return {f() .. 'a', 'a' .. f(), (f()), 7 % f(), f() % 7}`, `{1a, a1, int64 1, int64 0, int64 1}`},
	{`local function f(...) return ... % 4, 'a' .. ... end return {f(7, 2)}`, `{int64 3, a7}`},
	{`local function f(n) return n % 4 end return {f(7), f(8)}`, `{int64 3, int64 0}`},
	{`local t = {[7 % 4] = 'x' .. 1, ['k' .. 2] = 3} return {t[3], t.k2}`, `{x1, int64 3}`},
	{`local n = 0 for i = 1, 10 % 6 do n = n + i end while n % 7 ~= 0 do n = n + 1 end repeat n = n + 1 until n % 5 == 0 return n`, `int64 15`},
	{`local s = '' for i = 3, 1, -1 do s = s .. i end for _, v in ipairs({4, 5}) do s = s .. v end return s`, `32145`},
	{`local s = 0 for i = '1', '0x3', ' 1 ' do s = s + i end return s`, `int64 6`},
	{`for i = 'a', 2 do end`, `error ERR user_script:1: 'for' initial value must be a number` + place},
	{`for i = 1, 'b' do end`, `error ERR user_script:1: 'for' limit must be a number` + place},
	{`for i = 1, 2, {} do end`, `error ERR user_script:1: 'for' step must be a number` + place},
	{`if 5 % 2 == 1 and not (4 % 2 == 1) then return #('a' .. 5) elseif 1 % 1 then return 9 end`, `int64 2`},
	{`local o = {} function o.f(a) return a % 3 end function o:g(a) return self.f(a) .. '!' end return o:g(5)`, `2!`},
	{`return '10' + '0x10' - ' 1e1 ' * '2' / '010'`, `int64 24`},
	{`return {'7' % '4', '2' ^ 3, -'3', '7' % 4, 9 % '5'}`, `{int64 3, int64 8, int64 -3, int64 3, int64 4}`},
	{`return 'abc' + 1`, `error ERR user_script:1: attempt to perform arithmetic on a string value` + place},
	{`return -'abc'`, `error ERR user_script:1: attempt to perform arithmetic on a string value` + place},
	{`return nil % 2`, `error ERR user_script:1: attempt to perform arithmetic on a nil value` + place},
	{`return 2 % {}`, `error ERR user_script:1: attempt to perform arithmetic on a table value` + place},
	{`return 'a' .. nil`, `error ERR user_script:1: attempt to concatenate a nil value` + place},
	{`return nil .. 'a' .. 1`, `error ERR user_script:1: attempt to concatenate a nil value` + place},
	{`return true .. 'a'`, `error ERR user_script:1: attempt to concatenate a boolean value` + place},
	{`local mt = {__mod = function(a, b) return 'mod' end, __concat = function(a, b) return 'cat' end, __add = function() return 'add' end}
local t = setmetatable({}, mt) return {t % 2, 2 % t, t .. 'a', 'a' .. t, 1 .. t .. 2, '1' + t, t + '1', '7' % t}`,
		`{mod, mod, cat, cat, 1cat, add, add, mod}`},
	{`return {1 < 2, '10' < '9', 'a\0b' < 'a\0c', 2 <= 2, not (1 ~= 1)}`, `{int64 1, int64 1, int64 1, int64 1, int64 1}`},
	{`local n = tonumber('nan') return {n == n, n < 1, n >= 1, not (n >= 1), n ~= n}`,
		`{<nil> <nil>, <nil> <nil>, <nil> <nil>, int64 1, int64 1}`},
	{`return '1' == 1`, `error redis: nil`},

	// The library.
	{`return {tonumber('10'), tonumber(10), type(tonumber('x')), type(tonumber(nil)), type(tonumber({})), tonumber('z', 36), tonumber(10, 16)}`,
		`{int64 10, int64 10, nil, nil, nil, int64 35, int64 16}`},
	{`return tonumber()`, `error ERR user_script:1: bad argument #1 to 'tonumber' (value expected)` + place},
	{`return tonumber('a', 99)`, `error ERR user_script:1: bad argument #2 to 'tonumber' (base out of range)` + place},
	{`return tonumber(nil, 16)`, `error ERR user_script:1: bad argument #1 to 'tonumber' (string expected, got nil)` + place},
	{`return tostring()`, `error ERR user_script:1: bad argument #1 to 'tostring' (value expected)` + place},
	{`return tostring(nil) .. tostring(true) .. tostring('x') .. tostring(-0.5)`, `niltruex-0.5`},
	{`return tostring(setmetatable({}, {__tostring = function() return 'T' end}))`, `T`},
	{`return {math.floor('1.5'), math.ceil(-1.5), math.abs(-3), math.max(1, '3', 2), math.min(2, 1), math.sqrt(16), math.pow(2, 10)}`,
		`{int64 1, int64 -1, int64 3, int64 3, int64 1, int64 4, int64 1024}`},
	{`return tostring(math.huge) .. tostring(-math.huge) .. tostring(math.pi)`, `inf-inf3.1415926535898`},
	{`return {math.frexp(8), math.ldexp(1, 10), (math.modf(-3.5)), select(2, math.modf(-3.5)) * 2, select(2, math.modf(math.huge))}`,
		`{int64 0, int64 1024, int64 -3, int64 -1, int64 0}`},
	{`return math.floor('x')`, `error ERR user_script:1: bad argument #1 to 'floor' (number expected, got string)` + place},
	{`return math.floor()`, `error ERR user_script:1: bad argument #1 to 'floor' (number expected, got no value)` + place},
	{`return math.fmod(1)`, `error ERR user_script:1: bad argument #2 to 'fmod' (number expected, got no value)` + place},
	{`return string.format('%d', 'x')`, `error ERR user_script:1: bad argument #2 to 'format' (number expected, got string)` + place},
	{`return string.format('%d')`, `error ERR user_script:1: bad argument #2 to 'format' (no value)` + place},
	{`return string.format('%s', nil)`, `error ERR user_script:1: bad argument #2 to 'format' (string expected, got nil)` + place},
	{`return string.format('%y', 1)`, `error ERR user_script:1: invalid option '%y' to 'format'` + place},
	{`return string.format('%', 1)`, `error ERR user_script:1: invalid option '%' to 'format'` + place},
	{`return string.format('%123d', 1)`, `error ERR user_script:1: invalid format (width or precision too long)` + place},
	{`return string.format('%.123d', 1)`, `error ERR user_script:1: invalid format (width or precision too long)` + place},
	{`return string.format('%------d', 1)`, `error ERR user_script:1: invalid format (repeated flags)` + place},
	{`return string.format('%d%%|%s|%5s|%-5s|%.2s', '0x10', 'a', 'b', 'c', 'def')`, `16%|a|    b|c    |de`},
	{`return string.format('%q', 'a\0b"c\\d\ne\rf')`, "\"a\\000b\\\"c\\\\d\\\ne\\rf\""},
	{`return string.format('%s|%.3s', 'a\0b', 'c\0d')`, `a|c`},
	{`return #string.format('%5s', string.rep('x', 200)) + #string.format('%s', string.rep('a\0', 50))`, `int64 300`},
	{`return ('%d'):format(3.99)`, `3`},
	{`return {string.char(), string.char(97, '98'), string.byte('abc', 2), string.byte('a\255', 2), select('#', string.byte('abc', 1, 8))}`,
		`{, ab, int64 98, int64 255, int64 3}`},
	{`return string.char(256)`, `error ERR user_script:1: bad argument #1 to 'char' (invalid value)` + place},
	{`return string.char(-1)`, `error ERR user_script:1: bad argument #1 to 'char' (invalid value)` + place},
	{`return {string.sub('abcdef', 2, -2), string.sub('abc', '2'), string.sub(12345, 2, 3), string.sub('abc', 1, -10), string.sub('abc', -9)}`,
		`{bcde, bc, 23, , abc}`},
	{`return {string.len('a\0b'), string.len(1e15), string.upper('aZ1'), string.lower('Az'), string.rep('ab', 3), string.reverse('abc'), #'x'}`,
		`{int64 3, int64 5, AZ1, az, ababab, cba, int64 1}`},
	{`return {string.find('abc', 'b'), string.find('abc', 'b', 3) == nil, string.find('a.c', '.', 1, true), string.find('abc', '', 10)}`,
		`{int64 2, int64 1, int64 2, int64 4, int64 3}`},
	{`return {string.find('x123y', '(%d)(%d)()')}`, `{int64 2, int64 3, 1, 2, int64 4}`},
	{`return {string.match('key = value', '^(%w+)%s*=%s*(%w+)$')}`, `{key, value}`},
	{`return {string.match('2025-01-02', '%d+%-%d+'), string.match('abc', '^b') == nil, string.match('aXb', '%u'), string.match('a]b', '[]]'),
string.match('a-b', '[a%-]+'), string.match('xyz', '[^x]+'), string.match('a^b', '[b^]+'), string.match('5-7', '[0-9-]+')}`,
		`{2025-01, int64 1, X, ], a-, yz, ^b, 5-7}`},
	{`return {string.match('f(a(b)c)d', '%b()'), string.match('THE (quick) fox', '%f[%a]%a+%f[%A]', 5), string.match('abab', '(ab)%1'), string.match('aaa', 'a-$')}`,
		`{(a(b)c), quick, ab, aaa}`},
	{`return {string.match('aaab', 'a*?b') == nil, string.match('ab', 'a?ab') , string.match('', '.*'), string.match('abc', 'b*'), string.match(12.5, '%d+$')}`,
		`{int64 1, ab, , , 5}`},
	{`return {string.find('a\0b', '%z'), string.find('a\0b', 'b'), string.find('\t', '%c'), string.find('a!', '%p'), string.find('g1F', '%x')}`,
		`{int64 2, int64 3, int64 1, int64 2, int64 2, int64 2}`},
	{`return {string.find('abc', '%D', -1)}`, `{int64 3, int64 3}`},
	{`return string.find('a', '[a')`, `error ERR user_script:1: malformed pattern (missing ']')` + place},
	{`return string.find('a', 'a%')`, `error ERR user_script:1: malformed pattern (ends with '%')` + place},
	{`return string.find('a', '(a')`, `error ERR user_script:1: unfinished capture` + place},
	{`return string.find('a', '(a))')`, `error ERR user_script:1: invalid pattern capture` + place},
	{`return string.find('a', '%1')`, `error ERR user_script:1: invalid capture index` + place},
	{`return string.find('a', '%f')`, `error ERR user_script:1: missing '[' after '%f' in pattern` + place},
	{`return string.find('a', '%b(')`, `error ERR user_script:1: unbalanced pattern` + place},
	{`return string.find('a')`, `error ERR user_script:1: bad argument #2 to 'find' (string expected, got no value)` + place},
	{`return table.concat({1, 'a', 1e15, 0.1}, 7)`, `17a71e+1570.1`},
	{`return table.concat({1, 2, 3}, ',', 2) .. table.concat({}) .. table.concat({1, 2, 3}, ',', 1, '2')`, `2,31,2`},
	{`return table.concat({1, {}})`, `error ERR user_script:1: invalid value (table) at index 2 in table for 'concat'` + place},
	{`local t = {3, 1, 2} table.sort(t) table.insert(t, 4) table.insert(t, 1, 0) table.remove(t) return t`, `{int64 0, int64 1, int64 2, int64 3}`},
	{`return {unpack({1, 2, 3}, 2)}`, `{int64 2, int64 3}`},
	{`return {rawequal(1, 1), rawget({5}, 1), next({7}), type(next), select(2, 'a', 'b')}`, `{int64 1, int64 5, int64 1, function, b}`},
}

func TestSnippets(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		ctx := t.Context()
		for _, c := range snippets {
			tries := 1
			if _, own := s.(*Redis); !own && strings.Contains(c.script, "'PTTL'") {
				tries = 100 // a millisecond may pass within a server's script
			}
			got := ""
			for ; tries > 0 && got != c.want; tries-- {
				for _, prepare := range [][]any{{"DEL", "{s}1", "{s}2", "{s}3"}, {"SET", "{s}2", "v"}, {"RPUSH", "{s}3", "a"}} {
					if err := do(s, prepare...).Err(); err != nil {
						t.Fatal(err)
					}
				}
				got = outcome(s.Eval(ctx, c.script, []string{"{s}1", "{s}2", "{s}3"}, "first", 2))
				sum := sha1.Sum([]byte(c.script))
				got = strings.ReplaceAll(got, hex.EncodeToString(sum[:]), "SHA")
			}
			if got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.script, got, c.want)
			}
		}
	})
}

// do runs a command outside of scripts.
func do(s redis.Scripter, args ...any) *redis.Cmd {
	return s.(interface {
		Do(ctx context.Context, args ...any) *redis.Cmd
	}).Do(context.Background(), args...)
}

// What the emulator refuses, it refuses by name.
func TestNotEmulated(t *testing.T) {
	r := New()
	for script, want := range map[string]string{
		`return cjson.encode({})`:                      "the global cjson is not emulated",
		`local a = {} a, a.x = 1, 2`:                   "an assignment of a and of a field of it is not emulated",
		`return bit.band(1, 2)`:                        "the global bit is not emulated",
		`return loadstring('return 1')`:                "the global loadstring is not emulated",
		`return math.random()`:                         "math.random is not emulated",
		`return ('a'):gsub('a', 'b')`:                  "string.gsub is not emulated",
		`redis.log(redis.LOG_NOTICE, 'x')`:             "redis.log is not emulated",
		`return {double = 3.5}`:                        "a reply {double=...} is not emulated",
		`return redis.call('HSET', KEYS[1], 'a', 'b')`: "the command HSET is not emulated",
		`return redis.call('SET', KEYS[1], 1)`:         "argument 3 of a command is a Lua number",
		`return redis.pcall('SET', KEYS[1], 'a', 0)`:   "argument 4 of a command is a Lua number",
	} {
		err := r.Eval(t.Context(), script, []string{"k"}).Err()
		if !redis.HasErrorPrefix(err, "") || !strings.Contains(err.Error(), "emulator: "+want) {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
	}
	if got := outcome(r.Do(t.Context(), "EXISTS", "k")); got != "int64 0" {
		t.Errorf("a refused script wrote: EXISTS gives %s", got)
	}
	if err := r.Do(t.Context(), "MULTI").Err(); err == nil || !strings.Contains(err.Error(), "emulator: MULTI needs a connection") {
		t.Errorf("MULTI: %v", err)
	}
}

// A script that does not compile is an error that names the line, and is not kept.
func TestCompileErrors(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for script, want := range map[string]string{
			"return 1 +":               "user_script:1: ",
			"\nx = = 1":                "user_script:2: ",
			"goto x ::x::":             "user_script:1: '=' expected near 'x'",
			"::x::":                    "user_script:1: unexpected symbol near ':'",
			"return 1e":                "user_script:1: malformed number near '1e'",
			"return 1_000":             "user_script:1: ",
			"return 'x":                "user_script:1: ",
			"return 08 + 0x":           "user_script:1: ",
			"if true then\n\nreturn 1": "user_script:3: ",
		} {
			_, err := s.ScriptLoad(t.Context(), script).Result()
			if !redis.HasErrorPrefix(err, "Error compiling script (new function): "+want) {
				t.Errorf("%q: %v, want %s", script, err, want)
			}
			sum := sha1.Sum([]byte(script))
			if err := s.EvalSha(t.Context(), hex.EncodeToString(sum[:]), nil).Err(); !errors.Is(err, redis.ErrNoScript) {
				t.Errorf("%q was kept: %v", script, err)
			}
		}
	})
}

func TestScriptCache(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		ctx := t.Context()
		const script = `return 'loaded'`
		sum := sha1.Sum([]byte(script))
		want := hex.EncodeToString(sum[:])
		if err := s.EvalSha(ctx, want, nil).Err(); !errors.Is(err, redis.ErrNoScript) ||
			err.Error() != "NOSCRIPT No matching script. Please use EVAL." || !redis.HasErrorPrefix(err, "NOSCRIPT") {
			t.Errorf("before: %v", err)
		}
		for _, unknown := range []string{"", "abc", strings.Repeat("f", 40)} {
			if err := s.EvalShaRO(ctx, unknown, nil).Err(); !errors.Is(err, redis.ErrNoScript) {
				t.Errorf("EvalShaRO(%q): %v", unknown, err)
			}
		}
		if got, err := s.ScriptLoad(ctx, script).Result(); got != want || err != nil {
			t.Errorf("ScriptLoad = %s, %v, want %s", got, err, want)
		}
		for _, sha := range []string{want, strings.ToUpper(want)} {
			if got := outcome(s.EvalSha(ctx, sha, nil)); got != "loaded" {
				t.Errorf("EvalSha(%s) = %s", sha, got)
			}
		}
		const second = `return 2`
		if got := outcome(s.Eval(ctx, second, nil)); got != "int64 2" {
			t.Errorf("Eval = %s", got)
		}
		sum = sha1.Sum([]byte(second))
		shas := []string{want, hex.EncodeToString(sum[:]), strings.Repeat("f", 40), strings.ToUpper(want), ""}
		if got := s.ScriptExists(ctx, shas...).Val(); !slices.Equal(got, []bool{true, true, false, true, false}) {
			t.Errorf("ScriptExists = %v", got)
		}
		if err := s.ScriptExists(ctx).Err(); err == nil || err.Error() != "ERR wrong number of arguments for 'script|exists' command" {
			t.Errorf("ScriptExists of nothing: %v", err)
		}
		if got := outcome(do(s, "SCRIPT", "FLUSH")); got != "OK" {
			t.Errorf("SCRIPT FLUSH = %s", got)
		}
		if err := s.EvalSha(ctx, want, nil).Err(); !errors.Is(err, redis.ErrNoScript) {
			t.Errorf("after the flush: %v", err)
		}
		if got := outcome(redis.NewScript(script).Run(ctx, s, nil)); got != "loaded" {
			t.Errorf("redis.Script.Run = %s", got)
		}
	})
}

func TestReadOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		ctx := t.Context()
		for script, want := range map[string]string{
			`return redis.call('SET', 'k', 'v')`:  "error ERR Write commands are not allowed from read-only scripts. script: SHA, on @user_script:1.",
			`return redis.pcall('SET', 'k', 'v')`: "error ERR Write commands are not allowed from read-only scripts.",
			`return redis.pcall('SET', 'k')`:      "error ERR Wrong number of args calling Redis command from script",
			`return redis.call('EXISTS', 'k')`:    "int64 0",
		} {
			sum := sha1.Sum([]byte(script))
			sha := hex.EncodeToString(sum[:])
			if got := strings.ReplaceAll(outcome(s.EvalRO(ctx, script, nil)), sha, "SHA"); got != want {
				t.Errorf("EvalRO %s = %s, want %s", script, got, want)
			}
			if got := strings.ReplaceAll(outcome(s.EvalShaRO(ctx, sha, nil)), sha, "SHA"); got != want {
				t.Errorf("EvalShaRO %s = %s, want %s", script, got, want)
			}
		}
		if got := outcome(s.Eval(ctx, `return redis.call('SET', 'k', 'v')`, nil)); got != "OK" {
			t.Errorf("Eval afterwards = %s", got)
		}
	})
}

// Do answers as a client of the server would see it.
func TestDo(t *testing.T) {
	onBoth(t, func(t *testing.T, s redis.Scripter) {
		for _, c := range []struct {
			args []any
			want string
		}{
			{[]any{"GET", "k"}, "error redis: nil"},
			{[]any{"SET", "k", 15, "px", time.Duration(500_000)}, "OK"},
			{[]any{"get", []byte("k")}, "15"},
			{[]any{"TYPE", "k"}, "string"},
			{[]any{"PERSIST", "k"}, "int64 1"},
			{[]any{"PTTL", "k"}, "int64 -1"},
			{[]any{"GET"}, "error ERR wrong number of arguments for 'get' command"},
			{[]any{"Del"}, "error ERR wrong number of arguments for 'del' command"},
			{[]any{"SET", "k", "v", "PX", "0"}, "error ERR invalid expire time in 'set' command"},
			{[]any{"SET", "k", 1.5, "PX", true}, "OK"},
			{[]any{"SET", "k", nil}, "OK"},
			{[]any{"GET", "k"}, ""},
			{[]any{"DEL", "k"}, "int64 1"},
			{[]any{"RPUSH", "k", "a", "b"}, "int64 2"},
			{[]any{"GET", "k"}, "error WRONGTYPE Operation against a key holding the wrong kind of value"},
			{[]any{"SET", "k", struct{}{}}, "error redis: can't marshal struct {} (implement encoding.BinaryMarshaler)"},
			{[]any{"SET", "k", time.Unix(1, 5).UTC()}, "OK"},
			{[]any{"GET", "k"}, "1970-01-01T00:00:01.000000005Z"},
			{[]any{"SET", "k", float32(0.5)}, "OK"},
			{[]any{"GET", "k"}, "0.5"},
			{[]any{"SET", "k", uint8(7)}, "OK"},
			{[]any{"GET", "k"}, "7"},
		} {
			if got := outcome(do(s, c.args...)); got != c.want {
				t.Errorf("%v = %s, want %s", c.args, got, c.want)
			}
		}
	})
}

// The clock that a test sets is what TIME says, without padding.
func TestClock(t *testing.T) {
	r := New()
	for _, c := range []struct {
		now  time.Time
		want string
	}{
		{time.Unix(1735689600, 999_000), "{1735689600, 999}"},
		{time.Unix(1735689600, 1_000_000), "{1735689600, 1000}"},
		{time.Unix(1735689600, 999_999_999), "{1735689600, 999999}"},
		{time.Unix(0, 0), "{0, 0}"},
	} {
		r.SetTime(c.now)
		if got := outcome(r.Do(t.Context(), "TIME")); got != c.want {
			t.Errorf("TIME = %s, want %s", got, c.want)
		}
		if got := outcome(r.Eval(t.Context(), `return redis.call('TIME')`, nil)); got != c.want {
			t.Errorf("TIME in a script = %s, want %s", got, c.want)
		}
	}
	r.Advance(1500 * time.Microsecond)
	if got := outcome(r.Do(t.Context(), "TIME")); got != "{0, 1500}" {
		t.Errorf("after Advance TIME = %s", got)
	}
	if got, again := outcome(New().Do(t.Context(), "TIME")), "{1735689600, 0}"; got != again {
		t.Errorf("a new server's TIME = %s, want %s", got, again)
	}
}

// A key is there in the millisecond of its expiry, with PTTL 0, and gone in the next.
func TestExpiry(t *testing.T) {
	ctx, r := t.Context(), New()
	start := time.Date(2026, 1, 1, 0, 0, 0, 300_000, time.UTC) // 0.3 ms into one
	r.SetTime(start)
	r.Do(ctx, "SET", "k", "v", "PX", 10)
	for _, c := range []struct {
		at   time.Duration
		want string
	}{
		{0, "{int64 10, v}"}, {9*time.Millisecond + 699*time.Microsecond, "{int64 1, v}"},
		{9*time.Millisecond + 700*time.Microsecond, "{int64 0, v}"}, {10*time.Millisecond + 699*time.Microsecond, "{int64 0, v}"},
		{10*time.Millisecond + 700*time.Microsecond, "{int64 -2, <nil> <nil>}"},
		{0, "{int64 -2, <nil> <nil>}"}, // gone for good: the look before dropped it
	} {
		r.SetTime(start.Add(c.at))
		got := outcome(r.Eval(ctx, `return {redis.call('PTTL', 'k'), redis.call('GET', 'k')}`, nil))
		if got != c.want {
			t.Errorf("after %v: %s, want %s", c.at, got, c.want)
		}
	}
}

// The server's own clock cannot be set, so the same rule is watched there: between
// two TIMEs of one millisecond the PTTL says whether the key is there at that
// millisecond. Keys are set until one is seen in the millisecond of its expiry.
func TestExpiryOnServer(t *testing.T) {
	ctx, client := t.Context(), serverClient(t)
	for seen := false; !seen; {
		if err := client.Set(ctx, "k", "v", 3*time.Millisecond).Err(); err != nil {
			t.Fatal(err)
		}
		when, err := client.PExpireTime(ctx, "k").Result()
		if err != nil {
			t.Fatal(err)
		}
		if when < 0 {
			continue // it had ended before it was asked about
		}
		pipe := client.Pipeline()
		var times []*redis.TimeCmd
		var ttls []*redis.Cmd
		for range 500 {
			times = append(times, pipe.Time(ctx))
			ttls = append(ttls, pipe.Do(ctx, "PTTL", "k"))
		}
		times = append(times, pipe.Time(ctx))
		if _, err := pipe.Exec(ctx); err != nil {
			t.Fatal(err)
		}
		for i, cmd := range ttls {
			before, after := times[i].Val().UnixMilli(), times[i+1].Val().UnixMilli()
			if before != after {
				continue
			}
			want := when.Milliseconds() - before
			if want < 0 {
				want = -2
			}
			seen = seen || want == 0
			if got := cmd.Val().(int64); got != want {
				t.Fatalf("PTTL = %d, %d ms before the expiry; want %d", got, when.Milliseconds()-before, want)
			}
		}
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := New()
	for name, err := range map[string]error{
		"Eval": r.Eval(ctx, `redis.call('SET', 'k', 'v')`, nil).Err(), "Do": r.Do(ctx, "SET", "k", "v").Err(),
		"ScriptLoad": r.ScriptLoad(ctx, "return 1").Err(), "ScriptExists": r.ScriptExists(ctx, "x").Err(),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
	if got := outcome(r.Do(t.Context(), "EXISTS", "k")); got != "int64 0" {
		t.Errorf("it wrote: EXISTS gives %s", got)
	}
}

// An error in the middle of nested calls leaves the emulator as it was.
func TestAfterErrors(t *testing.T) {
	r := New()
	for range 1000 {
		err := r.Eval(t.Context(), `local function f(n) if n == 0 then error('deep') end return 1 + f(n - 1) end
return f(20)`, nil).Err()
		if err == nil || !strings.HasPrefix(err.Error(), "ERR user_script:1: deep script: ") {
			t.Fatal(err)
		}
	}
	if got := outcome(r.Eval(t.Context(), `return {#KEYS, ARGV[1]}`, nil, []string{"a", "b"})); got != "{int64 0, a}" {
		t.Errorf("afterwards: %s", got)
	}
	if got := outcome(r.Eval(t.Context(), `local t = {} t[1] = t return t`, nil)); !strings.Contains(got, "reached lua stack limit") {
		t.Errorf("a table in itself: %.100s", got)
	}
}
