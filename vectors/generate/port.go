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

// Port runs one script on the keys of a test.
type Port interface {
	// Arrange has the calls that follow made in a setting.
	Arrange(Setting) error
	// Hold makes the keys hold this and nothing else.
	Hold([]Key) error
	// Expire gives each key an expiry in so many ms, takes it away with none, or leaves
	// it with nothing.
	Expire([]string) error
	// Call makes one call: the reply, in a row as a Reply has it, or the error reply.
	Call(argv []string) (reply []string, refused string, err error)
	// Look looks at each key.
	Look() ([]seen, error)
}

// seen is what is seen of a key: its bytes in hex, empty without a key and for a list, and
// its PTTL in ms, -1 without an expiry, -2 without a key.
type seen struct {
	state string
	ttlMs int64
}

// ErrDiffers means that a port answers otherwise than a vector says.
var ErrDiffers = errors.New("differs from the vector")

// Play makes the test's calls, each with its group's arguments before its own. The
// first difference is an ErrDiffers; another error is the port's own.
func (t *Test) Play(g *Group, p Port) error {
	if err := p.Arrange(g.Setting); err != nil {
		return err
	}
	if err := p.Hold(t.Keys); err != nil {
		return err
	}
	for i, s := range t.Steps {
		a, err := ask(p, s.Expire, slices.Concat(g.Argv, s.Argv))
		if err != nil {
			return err
		}
		if !s.errorIs(a.refused) || !s.replyIs(a.reply) || !s.keysAre(a.keys) {
			return fmt.Errorf("test %d, step %d, %.100q: %q %q, states and ttls %v: %w: %q %q, states %s, ttls %s",
				t.ID, i, s.Argv, a.reply, a.refused, a.keys, ErrDiffers, s.Reply, s.Error, s.State, s.TTLMs)
		}
	}
	return nil
}

// answer is what is seen of a call.
type answer struct {
	reply   []string
	refused string // the error reply
	keys    []seen
}

// ask makes one call, and looks.
func ask(p Port, expire []string, argv []string) (a answer, err error) {
	if err := p.Expire(expire); err != nil {
		return a, err
	}
	if a.reply, a.refused, err = p.Call(argv); err != nil {
		return a, err
	}
	a.keys, err = p.Look()
	return a, err
}

// errorIs tells whether an error reply is the step's. Of the server's own errors a step has
// the first word: what follows differs from one server to the next.
func (s *Step) errorIs(refused string) bool {
	return strings.HasPrefix(refused, s.Error) && (refused == "") == (s.Error == "")
}

// replyIs tells whether a reply is the step's.
func (s *Step) replyIs(reply []string) bool {
	if len(reply) != len(s.Reply) {
		return false
	}
	for i, text := range reply {
		if text != string(s.Reply[i]) && (isReceipt(i, len(reply)) || !isIn(text, s.Reply[i])) {
			return false
		}
	}
	return true
}

// keysAre tells whether the keys hold what the step says, for as long.
func (s *Step) keysAre(keys []seen) bool {
	if len(keys) != len(s.State) || len(keys) != len(s.TTLMs) {
		return false
	}
	for i, key := range keys {
		if !isLike(key.state, s.State[i]) || !s.TTLMs[i].has(key.ttlMs) {
			return false
		}
	}
	return true
}

// isLike tells whether a text is another, in which a dot is any letter.
func isLike(text, pattern string) bool {
	if len(text) != len(pattern) {
		return false
	}
	for i := range len(text) {
		if pattern[i] != '.' && pattern[i] != text[i] {
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
	if err := p.Hold([]Key{none.key}); err != nil {
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

// ServerPort is a script on keys of a server.
type ServerPort struct {
	server       Server
	text, prefix string
	sha          string // of the text, its setting's prelude before it
	setting      Setting
	keys         []string
}

// NewServerPort loads a script's text. Its keys begin with a prefix; Hold of none takes
// them away.
func NewServerPort(ctx context.Context, server Server, text, prefix string) (*ServerPort, error) {
	sha, err := server.ScriptLoad(ctx, text).Result()
	return &ServerPort{server: server, text: text, prefix: prefix, sha: sha, setting: usual}, err
}

// Arrange loads the script's text with the setting's prelude before it.
func (p *ServerPort) Arrange(s Setting) (err error) {
	p.setting = s
	p.sha, err = p.server.ScriptLoad(context.Background(), s.Prelude+p.text).Result()
	return err
}

// Hold makes the keys hold this and nothing else.
func (p *ServerPort) Hold(keys []Key) error {
	ctx := context.Background()
	before := p.keys
	p.keys = nil
	for i := range max(len(before), len(keys)) {
		key := fmt.Sprintf("%s:%d", p.prefix, i+1)
		if err := p.server.Do(ctx, "DEL", key).Err(); err != nil {
			return err
		}
		if i >= len(keys) {
			continue
		}
		p.keys = append(p.keys, key)
		if err := p.hold(ctx, key, keys[i]); err != nil {
			return err
		}
	}
	return nil
}

// hold makes a key that is not there hold this.
func (p *ServerPort) hold(ctx context.Context, key string, k Key) error {
	switch k.Kind {
	case "none":
		return nil
	case "list":
		return p.server.Do(ctx, "RPUSH", key, "a").Err()
	default:
		text, err := hex.DecodeString(k.Hex)
		if err != nil {
			return err
		}
		return p.server.Do(ctx, "SET", key, string(text)).Err()
	}
}

// Expire sets the keys' expiries, or takes them away.
func (p *ServerPort) Expire(list []string) (err error) {
	ctx := context.Background()
	for i, ms := range list {
		switch {
		case err != nil || ms == "":
		case ms == noExpiry:
			err = p.server.Do(ctx, "PERSIST", p.keys[i]).Err()
		default:
			err = p.server.Do(ctx, "PEXPIRE", p.keys[i], ms).Err()
		}
	}
	return err
}

// Call makes one call by EVALSHA.
func (p *ServerPort) Call(argv []string) ([]string, string, error) {
	args := make([]any, len(argv))
	for i, arg := range argv {
		args[i] = arg
	}
	values, err := p.server.EvalSha(context.Background(), p.sha, named(p.setting, p.keys), args...).Slice()
	var refused redis.Error
	if errors.As(err, &refused) {
		return nil, refused.Error(), nil
	}
	if err != nil {
		return nil, "", err
	}
	reply, ok := inARow(values)
	if !ok {
		return nil, "", fmt.Errorf("%v is no reply", values)
	}
	return reply, "", nil
}

// inARow is a server's reply as a Reply has it; ok is false for one of another form.
func inARow(values []any) (reply []string, ok bool) {
	for _, value := range values {
		key := []any{value}
		if list, isList := value.([]any); isList {
			if len(list) != each || len(reply) < common {
				return nil, false
			}
			key = list
		}
		for i, value := range key {
			n, isNumber := value.(int64)
			text, isText := value.(string)
			if isNumber {
				text = strconv.FormatInt(n, 10)
			}
			if isNumber == isText || isText != (i == each-1) {
				return nil, false
			}
			reply = append(reply, text)
		}
	}
	return reply, true
}

// Look reads the keys.
func (p *ServerPort) Look() ([]seen, error) {
	ctx := context.Background()
	var all []seen
	for _, key := range p.keys {
		ttlMs, err := p.server.Do(ctx, "PTTL", key).Int64()
		if err != nil {
			return nil, err
		}
		text, err := p.server.Do(ctx, "GET", key).Text()
		if err != nil && !errors.Is(err, redis.Nil) && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
			return nil, err
		}
		all = append(all, seen{hex.EncodeToString([]byte(text)), ttlMs})
	}
	return all, nil
}
