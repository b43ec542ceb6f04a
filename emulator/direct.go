package emulator

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// This file is the server's Go methods, which run a command without a connection.

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
	return r.Do(ctx, append(words, args...)...)
}

// ScriptExists tells of each SHA1 whether EvalSha would find it.
func (r *Redis) ScriptExists(ctx context.Context, hashes ...string) *redis.BoolSliceCmd {
	words := []any{"script", "exists"}
	for _, hash := range hashes {
		words = append(words, hash)
	}
	cmd := redis.NewBoolSliceCmd(ctx, words...)
	v, err := r.process(ctx, words)
	if err != nil {
		cmd.SetErr(err)
		return cmd
	}
	found := make([]bool, len(hashes))
	for i, n := range v.([]any) {
		found[i] = n == int64(1)
	}
	cmd.SetVal(found)
	return cmd
}

// ScriptLoad compiles and keeps a script and answers its SHA1.
func (r *Redis) ScriptLoad(ctx context.Context, script string) *redis.StringCmd {
	words := []any{"script", "load", script}
	cmd := redis.NewStringCmd(ctx, words...)
	v, err := r.process(ctx, words)
	if err != nil {
		cmd.SetErr(err)
		return cmd
	}
	cmd.SetVal(v.(string))
	return cmd
}

// Do runs any command that does not concern a connection, as a client of the server
// would. It refuses AUTH, CLIENT, HELLO, QUIT, RESET, SELECT and those of
// transactions.
func (r *Redis) Do(ctx context.Context, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	v, err := r.process(ctx, args)
	if err != nil {
		cmd.SetErr(err)
		return cmd
	}
	cmd.SetVal(v)
	return cmd
}

// process runs a command and returns its reply as go-redis does: nil is redis.Nil, an
// error reply an error, a status a string.
func (r *Redis) process(ctx context.Context, args []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	words := make([]string, len(args))
	for i, arg := range args {
		word, err := argumentText(arg)
		if err != nil {
			return nil, err
		}
		words[i] = word
	}
	if len(words) == 0 {
		return nil, errors.New("emulator: Do takes a command")
	}
	switch v := r.execute(r.direct, words).(type) {
	case nil:
		return nil, redis.Nil
	case replyError:
		if v == errNoScript {
			return nil, redis.ErrNoScript
		}
		return nil, v
	default:
		return plain(v), nil
	}
}

// plain is a reply in go-redis' types.
func plain(v reply) any {
	switch v := v.(type) {
	case status:
		return string(v)
	case verbatim:
		return string(v)
	case pairs:
		return plain([]any(v))
	case []any:
		for i, element := range v {
			v[i] = plain(element)
		}
	}
	return v
}

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
