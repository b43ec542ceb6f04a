package emulator

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file is what a server knows of a connection, and the commands about it:
// those of transactions, and those that clients send when they connect.

// session is one connection.
type session struct {
	id      int64
	began   time.Time // by the server's clock
	address string    // of the client
	name    string
	db      int
	resp3   bool
	ended   bool // by QUIT

	inMulti bool
	broken  bool             // a command was refused since MULTI
	queue   [][]string       // the commands since MULTI
	watched map[watched]bool // whether the key was there when WATCH named it
	changed bool             // whether a watched key has changed
}

type watched struct {
	db  int
	key string
}

// endTransaction forgets MULTI and WATCH.
func (s *session) endTransaction() {
	s.inMulti, s.broken, s.queue = false, false, nil
	s.watched, s.changed = nil, false
}

// connect returns the session of a new connection.
func (r *Redis) connect(address string) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastID++
	s := &session{id: r.lastID, began: r.instant(), address: address}
	r.sessions[s] = true
	return s
}

func (r *Redis) disconnect(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s)
}

// execute runs one command of a session, or queues it between MULTI and EXEC.
func (r *Redis) execute(s *session, words []string) reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.instant()
	r.session = s
	r.selectDB(s.db)
	c, args := lookup(words)
	switch {
	case c == nil || !c.takes(len(words)):
		s.broken = s.inMulti
		return refuse(words)
	case c.flags&connection != 0 && s == r.direct:
		return replyError("ERR emulator: " + words[0] + " needs a connection; Client, Dial and Serve make them")
	case s.inMulti && c.flags&immediate == 0:
		s.queue = append(s.queue, words)
		return status("QUEUED")
	}
	return c.run(r, args)
}

func (r *Redis) multi([]string) reply {
	if r.session.inMulti {
		return replyError("ERR MULTI calls can not be nested")
	}
	r.session.inMulti = true
	return status("OK")
}

func (r *Redis) exec([]string) reply {
	s := r.session
	if !s.inMulti {
		return replyError("ERR EXEC without MULTI")
	}
	queue, broken, changed := s.queue, s.broken, s.changed
	for key, existed := range s.watched {
		r.keys = r.dbs[key.db]
		changed = changed || existed && r.find(key.key) == nil // it has expired
	}
	r.selectDB(s.db)
	s.endTransaction()
	switch {
	case broken:
		return replyError("EXECABORT Transaction discarded because of previous errors.")
	case changed:
		return noArray{}
	}
	replies := make([]any, len(queue))
	for i, words := range queue {
		c, args := lookup(words)
		replies[i] = c.run(r, args)
	}
	return replies
}

func (r *Redis) discard([]string) reply {
	if !r.session.inMulti {
		return replyError("ERR DISCARD without MULTI")
	}
	r.session.endTransaction()
	return status("OK")
}

func (r *Redis) watch(keys []string) reply {
	s := r.session
	if s.inMulti {
		return replyError("ERR WATCH inside MULTI is not allowed")
	}
	if s.watched == nil {
		s.watched = map[watched]bool{}
	}
	for _, key := range keys {
		k := watched{s.db, key}
		if _, twice := s.watched[k]; !twice {
			s.watched[k] = r.find(key) != nil
		}
	}
	return status("OK")
}

func (r *Redis) unwatch([]string) reply {
	r.session.watched, r.session.changed = nil, false
	return status("OK")
}

const errWrongPass = replyError("WRONGPASS invalid username-password pair or user is disabled.")

// auth answers as a server whose default user has no password: that user is let in
// with any.
func (r *Redis) auth(args []string) reply {
	switch {
	case len(args) > 2:
		return errSyntax
	case len(args) == 1:
		return replyError("ERR AUTH <password> called without any password configured for the default user. " +
			"Are you sure your configuration is correct?")
	case args[0] != "default":
		return errWrongPass
	}
	return status("OK")
}

func (r *Redis) hello(args []string) reply {
	s := r.session
	resp3, name, named := s.resp3, "", false
	if len(args) > 0 {
		version, ok := parseInteger(args[0])
		switch {
		case !ok:
			return replyError("ERR Protocol version is not an integer or out of range")
		case version < 2 || version > 3:
			return replyError("NOPROTO unsupported protocol version")
		}
		resp3, args = version == 3, args[1:]
	}
	for len(args) > 0 {
		switch option := strings.ToUpper(args[0]); {
		case option == "AUTH" && len(args) > 2:
			if args[1] != "default" {
				return errWrongPass
			}
			args = args[3:]
		case option == "SETNAME" && len(args) > 1:
			name, named, args = args[1], true, args[2:]
		default:
			return replyError(oneLine("ERR Syntax error in HELLO option '" + args[0] + "'"))
		}
	}
	if named {
		if refused := r.clientSetName([]string{name}); refused != status("OK") {
			return refused
		}
	}
	s.resp3 = resp3
	version := int64(2)
	if resp3 {
		version = 3
	}
	return pairs{"server", "redis", "version", redisVersion, "proto", version, "id", s.id,
		"mode", "standalone", "role", "master", "modules", []any{}}
}

func (r *Redis) clientID([]string) reply { return r.session.id }

func (r *Redis) clientGetName([]string) reply {
	if r.session.name == "" {
		return nil
	}
	return r.session.name
}

func (r *Redis) clientSetName(args []string) reply {
	for _, c := range []byte(args[0]) {
		if c < '!' || c > '~' {
			return replyError("ERR Client names cannot contain spaces, newlines or special characters.")
		}
	}
	r.session.name = args[0]
	return status("OK")
}

func (r *Redis) clientInfo([]string) reply {
	s := r.session
	protocol := 2
	if s.resp3 {
		protocol = 3
	}
	queued := -1
	if s.inMulti {
		queued = len(s.queue)
	}
	return verbatim(fmt.Sprintf("id=%d addr=%s name=%s age=%d idle=0 flags=N db=%d multi=%d cmd=client|info user=default resp=%d\n",
		s.id, s.address, s.name, int(r.now.Sub(s.began).Seconds()), s.db, queued, protocol))
}

func (r *Redis) ping(args []string) reply {
	switch len(args) {
	case 0:
		return status("PONG")
	case 1:
		return args[0]
	}
	return wrongArity("ping")
}

func (r *Redis) quit([]string) reply {
	r.session.ended = true
	return status("OK")
}

func (r *Redis) reset([]string) reply {
	s := r.session
	s.endTransaction()
	s.name, s.resp3 = "", false
	r.selectDB(0)
	return status("RESET")
}

func noCluster(*Redis, []string) reply {
	return replyError("ERR This instance has cluster support disabled")
}

// names are those of the commands without their subcommands, sorted.
func names() []string {
	var all []string
	for name := range commands {
		if !strings.Contains(name, "|") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
