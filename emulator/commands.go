package emulator

import (
	"math"
	"strconv"
	"strings"
)

// This file is the commands of the server, with its rules of expiry and its words.

// A reply is nil, a string, an int64, a status, an array of strings or a replyError.
type (
	reply  any
	status string
)

// replyError is an error reply. It is a redis.Error, as those of go-redis are.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks the error as a reply of a server.
func (e replyError) RedisError() {}

const (
	errWrongType  = replyError("WRONGTYPE Operation against a key holding the wrong kind of value")
	errNotInteger = replyError("ERR value is not an integer or out of range")
	errSyntax     = replyError("ERR syntax error")
)

// value is what a key holds: text, or a list where list is not nil.
type value struct {
	text      string
	list      []string
	expires   bool
	expiresMs int64 // since 1970; the key is there at this millisecond, and gone at the next
}

type command struct {
	arity int  // the number of words, name included; -n for at least n
	write bool // refused in a read-only script
	run   func(r *Redis, args []string) reply
}

func (c *command) takes(words int) bool {
	return words == c.arity || c.arity < 0 && words >= -c.arity
}

// commands are those that the emulator has, by their name in capitals.
var commands = map[string]*command{
	"DEL":     {-2, true, (*Redis).del},
	"EXISTS":  {-2, false, (*Redis).exists},
	"GET":     {2, false, (*Redis).get},
	"PERSIST": {2, true, (*Redis).persist},
	"PEXPIRE": {-3, true, (*Redis).pexpire},
	"PTTL":    {2, false, (*Redis).pttl},
	"RPUSH":   {-3, true, (*Redis).rpush},
	"SET":     {-3, true, (*Redis).set},
	"TIME":    {1, false, (*Redis).time},
	"TYPE":    {2, false, (*Redis).typeOf},
}

func (r *Redis) nowMs() int64 { return r.now.UnixMilli() }

// find is the value of a key that has not expired, or nil. It drops one that has.
func (r *Redis) find(key string) *value {
	v := r.keys[key]
	if v != nil && v.expires && r.nowMs() > v.expiresMs {
		delete(r.keys, key)
		return nil
	}
	return v
}

func (r *Redis) del(keys []string) reply {
	n := int64(0)
	for _, key := range keys {
		if r.find(key) != nil {
			delete(r.keys, key)
			n++
		}
	}
	return n
}

func (r *Redis) exists(keys []string) reply {
	n := int64(0)
	for _, key := range keys {
		if r.find(key) != nil {
			n++
		}
	}
	return n
}

func (r *Redis) get(args []string) reply {
	switch v := r.find(args[0]); {
	case v == nil:
		return nil
	case v.list != nil:
		return errWrongType
	default:
		return v.text
	}
}

func (r *Redis) set(args []string) reply {
	key, options := args[0], args[2:]
	var nx, xx, get, keepTTL bool
	expiry, number := "", "" // the option that sets the expiry, and what follows it
	for i := 0; i < len(options); i++ {
		switch name := strings.ToUpper(options[i]); {
		case name == "NX" && !xx:
			nx = true
		case name == "XX" && !nx:
			xx = true
		case name == "GET":
			get = true
		case name == "KEEPTTL" && expiry == "":
			keepTTL = true
		case expiryUnits[name] != 0 && !keepTTL && (expiry == "" || expiry == name) && i+1 < len(options):
			i++
			expiry, number = name, options[i]
		default:
			return errSyntax
		}
	}
	v := &value{text: args[1]}
	if expiry != "" {
		n, ok := parseInteger(number)
		if !ok {
			return errNotInteger
		}
		base := int64(0)
		if !strings.HasSuffix(expiry, "AT") {
			base = r.nowMs()
		}
		unit := expiryUnits[expiry]
		if n <= 0 || n > (math.MaxInt64-base)/unit { // n * unit + base <= 2^63 - 1
			return invalidExpiry("set")
		}
		v.expires, v.expiresMs = true, n*unit+base
	}
	old := r.find(key)
	answer := reply(status("OK"))
	if get {
		if answer = r.get(args[:1]); answer == errWrongType {
			return answer
		}
	}
	if nx && old != nil || xx && old == nil {
		if get {
			return answer
		}
		return nil
	}
	if keepTTL && old != nil {
		v.expires, v.expiresMs = old.expires, old.expiresMs
	}
	r.keys[key] = v
	return answer
}

// expiryUnits are the options of SET that give the key an expiry, and the milliseconds
// of the unit in which they do.
var expiryUnits = map[string]int64{"EX": 1000, "EXAT": 1000, "PX": 1, "PXAT": 1}

func invalidExpiry(command string) replyError {
	return replyError("ERR invalid expire time in '" + command + "' command")
}

func (r *Redis) persist(args []string) reply {
	v := r.find(args[0])
	if v == nil || !v.expires {
		return int64(0)
	}
	v.expires = false
	return int64(1)
}

func (r *Redis) pexpire(args []string) reply {
	ttlMs, ok := parseInteger(args[1])
	if !ok {
		return errNotInteger
	}
	if len(args) > 2 {
		return replyError("ERR emulator: PEXPIRE with " + args[2] + " is not emulated")
	}
	if ttlMs > math.MaxInt64-r.nowMs() {
		return invalidExpiry("pexpire")
	}
	v := r.find(args[0])
	if v == nil {
		return int64(0)
	}
	if ttlMs <= 0 {
		delete(r.keys, args[0])
	}
	v.expires, v.expiresMs = true, r.nowMs()+ttlMs
	return int64(1)
}

func (r *Redis) pttl(args []string) reply {
	switch v := r.find(args[0]); {
	case v == nil:
		return int64(-2)
	case !v.expires:
		return int64(-1)
	default:
		return v.expiresMs - r.nowMs()
	}
}

func (r *Redis) rpush(args []string) reply {
	v := r.find(args[0])
	if v == nil {
		v = &value{}
		r.keys[args[0]] = v
	} else if v.list == nil {
		return errWrongType
	}
	v.list = append(v.list, args[1:]...)
	return int64(len(v.list))
}

func (r *Redis) time([]string) reply {
	return []string{
		strconv.FormatInt(r.now.Unix(), 10),
		strconv.Itoa(r.now.Nanosecond() / 1000),
	}
}

func (r *Redis) typeOf(args []string) reply {
	switch v := r.find(args[0]); {
	case v == nil:
		return status("none")
	case v.list != nil:
		return status("list")
	default:
		return status("string")
	}
}

// parseInteger reads an integer as the server's commands do: its shortest form only.
func parseInteger(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}
