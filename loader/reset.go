package loader

import (
	"context"
	"encoding/binary"
	"fmt"
)

// reset deletes KEYS[1] if it holds a limiter's state: the one place that tells a state
// from something else. ARGV[1] is the kind of the script; ARGV[2] is for gcra the fewest
// digits of a TAT, for a window the period_ns modulo 2^32 as 4 bytes, big-endian.
// A state of gcra is a TAT of at most 19 digits, or a TAT, a credit and a last TAT, with a
// space between, and none has zeros in front. One of a window is 8 bytes of counts, and
// the period in the 4 after them.
const reset = `
local state = redis.pcall('GET', KEYS[1])
if not state then return 0 end
if type(state) ~= 'string' then return state end -- an error: the server's own is handed on
local isState
if ARGV[1] == 'window' then
  isState = #state == 12 and string.sub(state, 9) == ARGV[2]
else
  local tat, rest = string.match(state, '^(%d+)(.*)$')
  isState = tat and #tat >= tonumber(ARGV[2]) and #tat <= 19 and (tat == '0' or string.sub(tat, 1, 1) ~= '0')
  if isState and rest ~= '' then
    local credit, last = string.match(rest, '^ ([1-9]%d*) ([1-9]%d*)$')
    isState = credit and #last >= tonumber(ARGV[2]) and #last <= 19
  end
end
if not isState then
  return redis.error_reply('BADSTATE reset: the key holds no state of this limit')
end
return redis.pcall('DEL', KEYS[1])
`

// Reset forgets what was spent of the limit at key: a whole limit, as its Name, Algorithm
// and, for a window, Period are in the Redis key. What is no state of it, such as a hash,
// a list or another program's counter, is left as it is, and the error is then an
// ErrBadState. By the server's clock a state of GCRA has the 19 digits of a time from 2001
// on; with WithClock it may have fewer, so any such number is taken for one. It tells
// whether there was a key; that there was none is no error. Like a call it is sent once: a
// second one would also forget what was spent in between.
func (l *Limiter) Reset(ctx context.Context, key string, limit Limit) (existed bool, err error) {
	kind, form := "gcra", any(19)
	if l != nil && l.clock != nil {
		form = 1
	}
	if limit.isWindow() {
		// The low 32 bits of the period are its remainder by 2^32.
		kind, form = "window", binary.BigEndian.AppendUint32(nil, uint32(limit.Period))
	}
	return l.forget(ctx, key, limit, reset, kind, form)
}

// Delete deletes the limit's Redis key, of which Reset tells, whatever it holds, and tells
// whether there was one; that there was none is no error. It is sent once.
func (l *Limiter) Delete(ctx context.Context, key string, limit Limit) (existed bool, err error) {
	return l.forget(ctx, key, limit, "return redis.pcall('DEL', KEYS[1])")
}

// forget runs a script that answers with the number of keys that it deleted, 0 or 1.
func (l *Limiter) forget(ctx context.Context, key string, limit Limit, text string, args ...any) (existed bool, err error) {
	if err := l.usable(ctx); err != nil {
		return false, err
	}
	if err := check(key, limit, 0); err != nil {
		return false, err
	}
	c := &call{key: l.Key(key, limit), count: oneKey}
	c.args = append(append(c.own[:0], "eval", text, (*numKeys)(c), c.key), args...)
	l.send(ctx, c)
	if c.failed != nil {
		return false, c.failed
	}
	n, ok := c.reply.(int64)
	if !ok || n < 0 || n > 1 {
		return false, l.unexpected(c, fmt.Errorf("%w: %T %v, want 0 or 1", ErrReply, c.reply, c.reply))
	}
	return n == 1, nil
}
