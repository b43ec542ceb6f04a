package loader

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Every error of a call, of Reset and of Delete is one of these two by errors.Is, and
// never both.
var (
	// ErrNotSpent means that surely nothing was spent, and nothing reset or deleted: the
	// arguments were refused, nothing was sent, or the server answered that it ran
	// nothing or wrote nothing. The call may be made again.
	ErrNotSpent = errors.New("tatami: nothing was spent")
	// ErrMaybeSpent means that whether anything was spent, reset or deleted is unknown: the
	// reply was lost, or is one that no script makes. A call made again may count twice.
	ErrMaybeSpent = errors.New("tatami: unknown whether anything was spent")
)

// What an error is about. Errors of the first five come before anything is sent.
var (
	// ErrLimit means that a limit is out of range.
	ErrLimit = errors.New("tatami: bad limit")
	// ErrCost means that a cost is negative or above 2^52, that Wait can never get it, or that
	// AllowAtMost is to grant none.
	ErrCost = errors.New("tatami: bad cost")
	// ErrKey means that a key is empty.
	ErrKey = errors.New("tatami: bad key")
	// ErrClock means that the caller's clock is before 1970 or past 2262, where its
	// nanoseconds leave an int64.
	ErrClock = errors.New("tatami: bad clock")
	// ErrAsks means that a reservation has no asks, more than 32, or two of one Redis key,
	// or that it is settled with another number of units than it has asks.
	ErrAsks = errors.New("tatami: bad asks")
	// ErrWait means that Wait would have to wait until after the context's deadline.
	ErrWait = errors.New("tatami: wait too long")
	// ErrReply means that the reply is not one that the script makes.
	ErrReply = errors.New("tatami: unexpected reply")
	// ErrBadArg means that the script refused an argument, its clock among them.
	ErrBadArg = errors.New("tatami: argument refused")
	// ErrBadState means that the key holds something else than this limit's state. It
	// is left as it was.
	ErrBadState = errors.New("tatami: key holds something else")
	// ErrReadOnly means that the server is a replica, where only calls that cost
	// nothing run.
	ErrReadOnly = errors.New("tatami: server is read only")
	// ErrOutOfMemory means that the server is at its maxmemory and may evict nothing.
	ErrOutOfMemory = errors.New("tatami: server is out of memory")
	// ErrPin means that a script's SHA1 differs between this package's source, the
	// script's text, lua.sum and the server: something has been altered.
	ErrPin = errors.New("tatami: SHA1 differs from the pinned one")
	// ErrUnreached means that Load or Verify got an answer from no server.
	ErrUnreached = errors.New("tatami: no server was reached")
)

const errorPrefix = "tatami: "

// failure is every error of this package. Its text names the kind, the server and the
// cause; each part that is there is found by errors.Is and errors.As.
type failure struct {
	spent  error  // ErrNotSpent or ErrMaybeSpent
	kind   error  // a sentinel of the second list
	server string // its address, where it is known
	cause  error
	ended  error    // the context's error, when the context ended the call
	keys   []string // which the text leaves out
	asks   []int    // of limits_v1: whose number the text has in place of the key's
	again  bool     // the call did not run, and may soon pass
}

func (f *failure) Error() string {
	var parts []string
	cause := f.causeText()
	if f.kind != nil {
		parts = append(parts, strings.TrimPrefix(f.kind.Error(), errorPrefix))
	}
	if f.server != "" && !strings.Contains(cause, f.server) {
		parts = append(parts, f.server)
	}
	if cause != "" {
		parts = append(parts, cause)
	}
	if f.ended != nil && !errors.Is(f.cause, f.ended) {
		parts = append(parts, f.ended.Error())
	}
	return errorPrefix + strings.Join(parts, ": ")
}

// numbered is how limits_v1 names a key: by its number in the call.
var numbered = regexp.MustCompile(`limits_v1: key \d+`)

// causeText is the cause's text without what a server repeats of a command that it does
// not know, the key and, of an AUTH, the password.
func (f *failure) causeText() string {
	if f.cause == nil {
		return ""
	}
	text, _, _ := strings.Cut(f.cause.Error(), ", with args beginning with")
	text = numbered.ReplaceAllStringFunc(text, func(found string) string {
		digits := strings.TrimPrefix(found, "limits_v1: key ")
		if at, _ := strconv.Atoi(digits); 1 <= at && at <= len(f.asks) {
			return fmt.Sprintf("limits_v1: ask %d", f.asks[at-1]+1)
		}
		return found
	})
	for _, key := range f.keys {
		text = strings.ReplaceAll(text, key, "(the key)")
	}
	return strings.TrimPrefix(text, errorPrefix)
}

func (f *failure) Unwrap() []error {
	var all []error
	for _, err := range []error{f.spent, f.kind, f.cause, f.ended} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// failures is one error of several servers.
type failures []error

func (all failures) Error() string {
	var parts []string
	for _, err := range all {
		parts = append(parts, strings.TrimPrefix(err.Error(), errorPrefix))
	}
	return errorPrefix + strings.Join(parts, "; ")
}

func (all failures) Unwrap() []error { return all }

// unspent is a failure as a part of another, which says what was spent.
func unspent(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	part := *f
	part.spent = nil
	return &part
}

// refuse is the error of a call that is not sent.
func refuse(kind error, text string) error {
	return &failure{spent: ErrNotSpent, kind: kind, cause: errors.New(text)}
}

// reply is an error reply that a server is known to give before a script's write, or in
// its place. Of a script's SETs, one a key, the server refuses the first or none: within a
// script it looks at what would make it refuse one before the first alone, or at what
// cannot change meanwhile. Nothing else that can fail comes after a SET: so what the script
// itself answers, or hands on from its GET, TIME or SET, did not write.
type reply struct {
	prefix string
	kind   error
	again  bool // the same call may soon pass: send it again
}

// replies lists them with where Redis 6.0 to 8.0 and valkey make them; processCommand is
// in server.c, and refuses a command before it runs.
var replies = []reply{
	{prefix: "BADARG ", kind: ErrBadArg},     // the scripts, before they read the key
	{prefix: "BADSTATE ", kind: ErrBadState}, // the scripts, in place of SET
	{prefix: "WRONGTYPE ", kind: ErrBadState},

	{prefix: "NOSCRIPT "},                    // eval.c, evalGenericCommand: there is nothing to run
	{prefix: "LOADING ", again: true},        // processCommand
	{prefix: "BUSY "},                        // processCommand: another script runs
	{prefix: "MASTERDOWN "},                  // processCommand: a replica without its master
	{prefix: "MISCONF "},                     // processCommand, or SET in a script: cannot persist
	{prefix: "NOREPLICAS "},                  // processCommand, or SET in a script: min-replicas-to-write
	{prefix: "READONLY ", kind: ErrReadOnly}, // processCommand, or SET in a script
	{prefix: "OOM ", kind: ErrOutOfMemory},   // processCommand, or SET in a script
	{prefix: "NOAUTH "},                      // processCommand
	{prefix: "NOPERM "},                      // processCommand: ACL
	{prefix: "WRONGPASS "},                   // acl.c, authCommand: on a connection's first command
	{prefix: "NOPROTO "},                     // networking.c, helloCommand: likewise
	{prefix: "DENIED "},                      // networking.c: protected mode, instead of a connection
	{prefix: "ERR max number of clients"},    // networking.c: instead of a connection
	{prefix: "ERR unknown command"},          // processCommand
	{prefix: "CLUSTERDOWN ", again: true},    // cluster.c, getNodeByQuery, called by processCommand
	{prefix: "TRYAGAIN ", again: true},       // likewise
	{prefix: "CROSSSLOT "},                   // likewise
	{prefix: "MOVED "},                       // likewise
	{prefix: "ASK "},                         // likewise
}

// refusedWithin are parts of replies about a script that was not let write.
var refusedWithin = []string{
	// Redis kills only a script that has not written (script.c, scriptKill); of another it
	// says UNKILLABLE, and lets it run.
	"Script killed by user with SCRIPT KILL",
	// The server refused the script TIME, GET or SET: by its ACL up to 7.0 and after it,
	// and under a name that it does not have (script.c, scriptCall; scripting.c before 7.0).
	"The user executing the script can't run this command or subcommand",
	"ACL failure in script: ",
	"Unknown Redis command called from ",
}

// handedOn is what Redis 6 puts before an error that a script hands on: its line.
var handedOn = regexp.MustCompile(`^@user_script: ?\d+: -`)

// known returns what the list says of a server's error reply.
func known(answer redis.Error) (reply, bool) {
	message := handedOn.ReplaceAllString(answer.Error(), "")
	for _, one := range replies {
		if strings.HasPrefix(message, one.prefix) {
			return one, true
		}
	}
	return reply{}, slices.ContainsFunc(refusedWithin, func(part string) bool { return strings.Contains(message, part) })
}

// isDial is true when there was no connection: nothing was sent.
func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// isUnsent is true of the errors by which go-redis says that it had no connection.
func isUnsent(err error) bool {
	return isDial(err) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, redis.ErrClosed)
}

// isTimeout is true of an error that came because nothing did.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}
