package emulator

import (
	"math"
	"strconv"
	"strings"
)

// This file is the commands of the server, with its rules of expiry and its words.

// A reply is nil, a string, an int64, a replyError, an array []any of replies, or one
// of these.
type (
	reply    any
	status   string
	verbatim string   // text for a person
	pairs    []any    // keys and values in turn
	noArray  struct{} // nil where an array was asked for
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
	errNoScript   = replyError("NOSCRIPT No matching script. Please use EVAL.")
)

// value is what a key holds: text, or a list where list is not nil.
type value struct {
	text      string
	list      []string
	expires   bool
	expiresMs int64 // since 1970; the key is there at this millisecond, and gone at the next
}

type command struct {
	arity int // the number of words, name included; -n for at least n
	flags flags
	keys  [3]int // COMMAND's: the first word that is a key, the last, -1 for all, and the step
	run   func(r *Redis, args []string) reply
}

type flags int

const (
	reads      flags = 1 << iota // reads keys, and writes none
	writes                       // refused in a read-only script
	noScript                     // refused in a script
	connection                   // concerns a connection, so that Do refuses it
	immediate                    // runs at once between MULTI and EXEC
	container                    // has subcommands
)

func (c *command) takes(words int) bool {
	return words == c.arity || c.arity < 0 && words >= -c.arity
}

// commands are those that the emulator has, by their name in capitals; a subcommand's
// is CLIENT|ID. COMMAND lists them, so init breaks the circle.
var commands map[string]*command

func init() {
	oneKey, allKeys := [3]int{1, 1, 1}, [3]int{1, -1, 1}
	get := func(run func(r *Redis, args []string) reply) *command {
		return &command{2, reads, oneKey, run}
	}
	expire := func(name string, unit int64, fromNow bool) *command {
		return &command{-3, writes, oneKey, func(r *Redis, args []string) reply {
			return r.expire(name, unit, fromNow, args)
		}}
	}
	on := func(arity int, flags flags, run func(r *Redis, args []string) reply) *command {
		return &command{arity: arity, flags: flags, run: run}
	}
	const about = noScript | connection // about the connection itself
	commands = map[string]*command{
		"DEL":         {-2, writes, allKeys, (*Redis).del},
		"EXISTS":      {-2, reads, allKeys, (*Redis).exists},
		"EXPIRE":      expire("expire", 1000, true),
		"EXPIREAT":    expire("expireat", 1000, false),
		"EXPIRETIME":  get(func(r *Redis, args []string) reply { return r.ttl(args[0], 1000, false) }),
		"GET":         get((*Redis).get),
		"INCR":        {2, writes, oneKey, func(r *Redis, args []string) reply { return r.incrBy(args[0], 1) }},
		"INCRBY":      {3, writes, oneKey, (*Redis).incrByCommand},
		"PERSIST":     {2, writes, oneKey, (*Redis).persist},
		"PEXPIRE":     expire("pexpire", 1, true),
		"PEXPIREAT":   expire("pexpireat", 1, false),
		"PEXPIRETIME": get(func(r *Redis, args []string) reply { return r.ttl(args[0], 1, false) }),
		"PTTL":        get(func(r *Redis, args []string) reply { return r.ttl(args[0], 1, true) }),
		"RPUSH":       {-3, writes, oneKey, (*Redis).rpush},
		"SET":         {-3, writes, oneKey, (*Redis).set},
		"TTL":         get(func(r *Redis, args []string) reply { return r.ttl(args[0], 1000, true) }),
		"TYPE":        get((*Redis).typeOf),
		"UNLINK":      {-2, writes, allKeys, (*Redis).del},

		"DBSIZE":   on(1, reads, (*Redis).dbsize),
		"FLUSHALL": on(-1, writes, (*Redis).flushAll),
		"FLUSHDB":  on(-1, writes, (*Redis).flushDB),
		"SELECT":   on(2, connection, (*Redis).selectCommand),

		"EVAL":          on(-3, noScript, evaluate(false, false)),
		"EVALSHA":       on(-3, noScript, evaluate(true, false)),
		"EVALSHA_RO":    on(-3, noScript|reads, evaluate(true, true)),
		"EVAL_RO":       on(-3, noScript|reads, evaluate(false, true)),
		"SCRIPT":        on(-2, container, nil),
		"SCRIPT|EXISTS": on(-3, noScript, (*Redis).scriptExists),
		"SCRIPT|FLUSH":  on(-2, noScript, (*Redis).scriptFlush),
		"SCRIPT|LOAD":   on(3, noScript, (*Redis).scriptLoad),

		"DISCARD": on(1, about|immediate, (*Redis).discard),
		"EXEC":    on(1, about|immediate, (*Redis).exec),
		"MULTI":   on(1, about|immediate, (*Redis).multi),
		"UNWATCH": on(1, about, (*Redis).unwatch),
		"WATCH":   {-2, about | immediate, allKeys, (*Redis).watch},

		"AUTH":           on(-2, about, (*Redis).auth),
		"CLIENT":         on(-2, container, nil),
		"CLIENT|GETNAME": on(2, about, (*Redis).clientGetName),
		"CLIENT|ID":      on(2, about, (*Redis).clientID),
		"CLIENT|INFO":    on(2, about, (*Redis).clientInfo),
		"CLIENT|SETNAME": on(3, about, (*Redis).clientSetName),
		"ECHO":           on(2, 0, func(_ *Redis, args []string) reply { return args[0] }),
		"HELLO":          on(-1, about, (*Redis).hello),
		"PING":           on(-1, 0, (*Redis).ping),
		"QUIT":           on(-1, about|immediate, (*Redis).quit),
		"RESET":          on(1, about|immediate, (*Redis).reset),

		"CLUSTER":        on(-2, container, nil),
		"CLUSTER|INFO":   on(2, 0, noCluster),
		"CLUSTER|MYID":   on(2, 0, noCluster),
		"CLUSTER|NODES":  on(2, 0, noCluster),
		"CLUSTER|SHARDS": on(2, 0, noCluster),
		"CLUSTER|SLOTS":  on(2, 0, noCluster),
		"COMMAND":        on(-1, container, (*Redis).command),
		"COMMAND|COUNT":  on(2, 0, func(*Redis, []string) reply { return int64(len(names())) }),
		"COMMAND|DOCS":   on(-2, 0, func(*Redis, []string) reply { return pairs{} }),
		"INFO":           on(-1, 0, (*Redis).info),
		"TIME":           on(1, 0, (*Redis).time),
	}
}

// lookup is the command that the words name, nil for none, and its arguments.
func lookup(words []string) (*command, []string) {
	name := strings.ToUpper(words[0])
	c := commands[name]
	if c == nil || strings.Contains(name, "|") {
		return nil, nil
	}
	if c.flags&container != 0 && len(words) > 1 {
		return commands[name+"|"+strings.ToUpper(words[1])], words[2:]
	}
	return c, words[1:]
}

// refuse is the server's word on a command that it does not have, or not with so many
// arguments.
func refuse(words []string) replyError {
	c, _ := lookup(words)
	name := words[0]
	of := commands[strings.ToUpper(name)]
	isContainer := of != nil && of.flags&container != 0 && len(words) > 1
	switch {
	case c != nil && isContainer:
		return wrongArity(strings.ToLower(name + "|" + words[1]))
	case c != nil:
		return wrongArity(strings.ToLower(name))
	case isContainer:
		return replyError(oneLine("ERR unknown subcommand '" + upTo128(words[1]) + "'. Try " + strings.ToUpper(name) + " HELP."))
	}
	args := ""
	for _, arg := range words[1:] {
		if len(args) >= 128 {
			break
		}
		arg, _, _ = strings.Cut(arg, "\x00")
		args += "'" + arg[:min(len(arg), 128-len(args))] + "' "
	}
	return replyError(oneLine("ERR unknown command '" + upTo128(name) + "', with args beginning with: " + args))
}

// upTo128 is a text as C's '%.128s' prints it.
func upTo128(text string) string {
	text, _, _ = strings.Cut(text, "\x00")
	return text[:min(len(text), 128)]
}

func wrongArity(name string) replyError {
	return replyError("ERR wrong number of arguments for '" + name + "' command")
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

// touch tells the sessions that watch a key that it changes.
func (r *Redis) touch(key string) {
	for s := range r.sessions {
		if _, watches := s.watched[watched{r.session.db, key}]; watches {
			s.changed = true
		}
	}
}

func (r *Redis) del(keys []string) reply {
	n := int64(0)
	for _, key := range keys {
		if r.find(key) != nil {
			r.touch(key)
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
	r.put(key, v)
	return answer
}

// put sets a key. Whenever the keys have doubled, it drops those that have expired and
// were not looked at since, or they would stay for ever.
func (r *Redis) put(key string, v *value) {
	r.touch(key)
	r.keys[key] = v
	if len(r.keys) < r.sweepAt {
		return
	}
	for key := range r.keys {
		r.find(key)
	}
	r.sweepAt = max(minSweep, 2*len(r.keys))
}

// minSweep is the number of keys below which expired ones may stay.
const minSweep = 1 << 14

// expiryUnits are the options of SET that give the key an expiry, and the milliseconds
// of the unit in which they do.
var expiryUnits = map[string]int64{"EX": 1000, "EXAT": 1000, "PX": 1, "PXAT": 1}

func invalidExpiry(command string) replyError {
	return replyError("ERR invalid expire time in '" + command + "' command")
}

func (r *Redis) incrByCommand(args []string) reply {
	by, ok := parseInteger(args[1])
	if !ok {
		return errNotInteger
	}
	return r.incrBy(args[0], by)
}

// incrBy adds to the number that a key holds, and leaves its expiry.
func (r *Redis) incrBy(key string, by int64) reply {
	old := r.find(key)
	sum := &value{}
	n := int64(0)
	if old != nil {
		if old.list != nil {
			return errWrongType
		}
		var ok bool
		if n, ok = parseInteger(old.text); !ok {
			return errNotInteger
		}
		sum.expires, sum.expiresMs = old.expires, old.expiresMs
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		return replyError("ERR increment or decrement would overflow")
	}
	sum.text = strconv.FormatInt(n+by, 10)
	r.put(key, sum)
	return n + by
}

func (r *Redis) persist(args []string) reply {
	v := r.find(args[0])
	if v == nil || !v.expires {
		return int64(0)
	}
	r.touch(args[0])
	v.expires = false
	return int64(1)
}

// expire is EXPIRE and its kin: args are a key, a number of units, in milliseconds,
// from now or from 1970, and options.
func (r *Redis) expire(name string, unit int64, fromNow bool, args []string) reply {
	var nx, xx, gt, lt bool
	for _, option := range args[2:] {
		switch strings.ToUpper(option) {
		case "NX":
			nx = true
		case "XX":
			xx = true
		case "GT":
			gt = true
		case "LT":
			lt = true
		default:
			return replyError(oneLine("ERR Unsupported option " + option))
		}
	}
	if nx && (xx || gt || lt) {
		return replyError("ERR NX and XX, GT or LT options at the same time are not compatible")
	}
	if gt && lt {
		return replyError("ERR GT and LT options at the same time are not compatible")
	}
	n, ok := parseInteger(args[1])
	if !ok {
		return errNotInteger
	}
	base := int64(0)
	if fromNow {
		base = r.nowMs()
	}
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-base {
		return invalidExpiry(name)
	}
	whenMs := n*unit + base
	v := r.find(args[0])
	switch {
	case v == nil, nx && v.expires, xx && !v.expires,
		gt && (!v.expires || whenMs <= v.expiresMs),
		lt && v.expires && whenMs >= v.expiresMs:
		return int64(0)
	}
	r.touch(args[0])
	if whenMs <= r.nowMs() {
		delete(r.keys, args[0])
	}
	v.expires, v.expiresMs = true, whenMs
	return int64(1)
}

// ttl is when a key expires, from now or from 1970, in units of so many milliseconds,
// rounded to the nearest; -1 for a key that does not, -2 for none.
func (r *Redis) ttl(key string, unit int64, fromNow bool) reply {
	v := r.find(key)
	switch {
	case v == nil:
		return int64(-2)
	case !v.expires:
		return int64(-1)
	}
	ms := v.expiresMs
	if fromNow {
		ms -= r.nowMs() // 0 or more, or find had dropped it
	}
	return (ms + unit/2) / unit
}

func (r *Redis) rpush(args []string) reply {
	v := r.find(args[0])
	if v == nil {
		v = &value{}
	} else if v.list == nil {
		return errWrongType
	}
	r.put(args[0], v)
	v.list = append(v.list, args[1:]...)
	return int64(len(v.list))
}

func (r *Redis) time([]string) reply {
	return []any{
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

func (r *Redis) dbsize([]string) reply {
	for key := range r.keys {
		r.find(key)
	}
	return int64(len(r.keys))
}

func (r *Redis) flushDB(args []string) reply { return r.flush(r.session.db, r.session.db, args) }

func (r *Redis) flushAll(args []string) reply { return r.flush(0, len(r.dbs)-1, args) }

// flush drops the keys of the databases from one to another. Its option, ASYNC or
// SYNC, says how a server frees the memory.
func (r *Redis) flush(from, to int, args []string) reply {
	if !isFlushOption(args) {
		return errSyntax
	}
	selected := r.session.db
	for db := from; db <= to; db++ {
		r.selectDB(db)
		for key := range r.keys {
			r.touch(key)
		}
		clear(r.keys)
	}
	r.selectDB(selected)
	return status("OK")
}

func isFlushOption(args []string) bool {
	return len(args) == 0 || len(args) == 1 && (strings.EqualFold(args[0], "SYNC") || strings.EqualFold(args[0], "ASYNC"))
}

// selectDB makes db the database of the session and of what follows in its command.
func (r *Redis) selectDB(db int) { r.session.db, r.keys = db, r.dbs[db] }

func (r *Redis) selectCommand(args []string) reply {
	n, ok := parseInteger(args[0])
	switch {
	case !ok:
		return errNotInteger
	case n != int64(int32(n)):
		return replyError("ERR value is out of range, value must between -2147483648 and 2147483647")
	case n < 0 || n >= int64(len(r.dbs)):
		return replyError("ERR DB index is out of range")
	}
	r.selectDB(int(n))
	return status("OK")
}

// parseInteger reads an integer as the server's commands do: its shortest form only.
func parseInteger(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}
