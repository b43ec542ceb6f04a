package generate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Port runs one script on one key.
type Port interface {
	// Arrange has the calls that follow made in a setting.
	Arrange(Setting) error
	// Hold makes the key hold this and nothing else.
	Hold(Key) error
	// Expire gives the key an expiry in so many ms, or takes it away with none.
	Expire(ms string) error
	// Call makes one call: the four numbers of the reply, or the error reply.
	Call(argv []string) (reply []string, refused string, err error)
	// Look returns the key's bytes in hex, empty without a key and for a list, and its
	// PTTL in ms: -1 without an expiry, -2 without a key.
	Look() (state string, ttlMs int64, err error)
}

// ErrDiffers means that a port answers otherwise than a vector says.
var ErrDiffers = errors.New("differs from the vector")

// Play makes the test's calls, each with its group's arguments before its own. The
// first difference is an ErrDiffers; another error is the port's own.
func (t *Test) Play(g *Group, p Port) error {
	if err := p.Arrange(g.Setting); err != nil {
		return err
	}
	if err := p.Hold(t.Key); err != nil {
		return err
	}
	for i, s := range t.Steps {
		a, err := ask(p, s.Expire, slices.Concat(g.Argv, s.Argv))
		if err != nil {
			return err
		}
		if !s.errorIs(a.refused) || !slices.EqualFunc(a.reply, s.Reply, isIn) || !s.stateIs(a.state) || !s.TTLMs.has(a.ttlMs) {
			return fmt.Errorf("test %d, step %d, %.100q: %q %q, state %s, ttl %d: %w: %q %q, state %s, ttl %s",
				t.ID, i, s.Argv, a.reply, a.refused, a.state, a.ttlMs, ErrDiffers, s.Reply, s.Error, s.State, s.TTLMs)
		}
	}
	return nil
}

// answer is what is seen of a call.
type answer struct {
	reply   []string
	refused string // the error reply
	state   string // in hex
	ttlMs   int64
}

// ask makes one call, and looks.
func ask(p Port, expire string, argv []string) (a answer, err error) {
	if expire != "" {
		if err := p.Expire(expire); err != nil {
			return a, err
		}
	}
	if a.reply, a.refused, err = p.Call(argv); err != nil {
		return a, err
	}
	a.state, a.ttlMs, err = p.Look()
	return a, err
}

// errorIs tells whether an error reply is the step's. Of the server's own errors a step has
// the first word: what follows differs from one server to the next.
func (s *Step) errorIs(refused string) bool {
	return strings.HasPrefix(refused, s.Error) && (refused == "") == (s.Error == "")
}

// stateIs tells whether the key's bytes, in hex, are the step's.
func (s *Step) stateIs(state string) bool {
	if len(state) != len(s.State) {
		return false
	}
	for i := range len(state) {
		if s.State[i] != '.' && s.State[i] != state[i] {
			return false
		}
	}
	return true
}

// Play makes the stream's calls and compares their hash, as Test.Play does.
func (s *Stream) Play(g *Group, p Port) error {
	if err := p.Arrange(g.Setting); err != nil {
		return err
	}
	got, err := s.digest(g.Argv, p, func([]string, []string) error { return nil })
	if err == nil && got != s.SHA256 {
		return fmt.Errorf("stream %d: hash %s %w: %s", s.ID, got, ErrDiffers, s.SHA256)
	}
	return err
}

// digest makes the stream's calls and returns the hash of their replies. seen is told of
// each call's argv and reply.
func (s *Stream) digest(groupArgv []string, p Port, seen func(argv, reply []string) error) (string, error) {
	nowNs, err := strconv.ParseInt(s.NowNs, 10, 64)
	if err != nil {
		return "", err
	}
	if err := p.Hold(Key{Kind: "none"}); err != nil {
		return "", err
	}
	hash := sha256.New()
	for range s.Calls {
		argv := slices.Concat(groupArgv, []string{s.Cost, strconv.FormatInt(nowNs, 10)})
		reply, refused, err := p.Call(argv)
		if err != nil {
			return "", err
		}
		if refused != "" {
			return "", fmt.Errorf("stream %d, %q: %s: %w", s.ID, argv, refused, ErrDiffers)
		}
		if err := seen(argv, reply); err != nil {
			return "", err
		}
		fmt.Fprintln(hash, strings.Join(reply, " "))
		retryAfterNs, err := strconv.ParseInt(reply[2], 10, 64)
		if err != nil {
			return "", err
		}
		nowNs += retryAfterNs
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// Server is what a port of a server needs of a client, or of the emulator.
type Server interface {
	redis.Scripter
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// ServerPort is a script on a key of a server.
type ServerPort struct {
	server    Server
	text, key string
	sha       string   // of the text, its setting's prelude before it
	keys      []string // that the calls name
}

// NewServerPort loads a script's text.
func NewServerPort(ctx context.Context, server Server, text, key string) (*ServerPort, error) {
	sha, err := server.ScriptLoad(ctx, text).Result()
	return &ServerPort{server, text, key, sha, []string{key}}, err
}

// Arrange loads the script's text with the setting's prelude before it.
func (p *ServerPort) Arrange(s Setting) (err error) {
	p.keys = slices.Repeat([]string{p.key}, s.Keys)
	p.sha, err = p.server.ScriptLoad(context.Background(), s.Prelude+p.text).Result()
	return err
}

// Hold makes the key hold this and nothing else.
func (p *ServerPort) Hold(k Key) error {
	ctx := context.Background()
	if err := p.server.Do(ctx, "DEL", p.key).Err(); err != nil {
		return err
	}
	switch k.Kind {
	case "none":
		return nil
	case "list":
		return p.server.Do(ctx, "RPUSH", p.key, "a").Err()
	default:
		text, err := hex.DecodeString(k.Hex)
		if err != nil {
			return err
		}
		return p.server.Do(ctx, "SET", p.key, string(text)).Err()
	}
}

// Expire sets the key's expiry, or takes it away.
func (p *ServerPort) Expire(ms string) error {
	ctx := context.Background()
	if ms == noExpiry {
		return p.server.Do(ctx, "PERSIST", p.key).Err()
	}
	return p.server.Do(ctx, "PEXPIRE", p.key, ms).Err()
}

// Call makes one call by EVALSHA.
func (p *ServerPort) Call(argv []string) ([]string, string, error) {
	args := make([]any, len(argv))
	for i, arg := range argv {
		args[i] = arg
	}
	values, err := p.server.EvalSha(context.Background(), p.sha, p.keys, args...).Slice()
	var refused redis.Error
	if errors.As(err, &refused) {
		return nil, refused.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	reply := make([]string, len(values))
	for i, value := range values {
		n, ok := value.(int64)
		if !ok {
			return nil, "", fmt.Errorf("reply's element %d is no integer: %v", i, values)
		}
		reply[i] = strconv.FormatInt(n, 10)
	}
	return reply, "", nil
}

// Look reads the key.
func (p *ServerPort) Look() (string, int64, error) {
	ctx := context.Background()
	ttlMs, err := p.server.Do(ctx, "PTTL", p.key).Int64()
	if err != nil {
		return "", 0, err
	}
	text, err := p.server.Do(ctx, "GET", p.key).Text()
	if err != nil && !errors.Is(err, redis.Nil) && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
		return "", 0, err
	}
	return hex.EncodeToString([]byte(text)), ttlMs, nil
}
