package generate

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

// NativePort is the plain Go port of a script. Its server's clock stands where Set puts
// it.
type NativePort struct {
	script   precision.Script
	setting  Setting
	serverNs int64
	keys     []nativeKey
}

type nativeKey struct {
	native.Key
	list      bool
	expires   bool
	expiresMs int64
}

// NewNativePort returns the port, its server's clock at some instant of 2026.
func NewNativePort(script precision.Script) *NativePort {
	return &NativePort{script: script, setting: usual, serverNs: epoch}
}

// Arrange has the calls that follow made in a setting, of whose prelude it does what the
// fields say.
func (p *NativePort) Arrange(s Setting) error {
	p.setting = s
	return nil
}

// Set sets the server's clock, in ns of whole us.
func (p *NativePort) Set(serverNs int64) { p.serverNs = serverNs }

func (p *NativePort) nowMs() int64 { return p.serverNs / ms }

// Hold makes the keys hold this and nothing else.
func (p *NativePort) Hold(keys []Key) error {
	p.keys = nil
	for _, k := range keys {
		text, err := hex.DecodeString(k.Hex)
		if err != nil {
			return err
		}
		p.keys = append(p.keys, nativeKey{Key: native.Key{Exists: k.Kind == "string", Text: string(text)}, list: k.Kind == "list"})
	}
	return nil
}

// Expire sets the keys' expiries, or takes them away.
func (p *NativePort) Expire(list []string) error {
	for i, ms := range list {
		switch k := &p.keys[i]; ms {
		case "":
		case noExpiry:
			k.expires = false
		default:
			n, err := strconv.ParseInt(ms, 10, 64)
			if err != nil {
				return err
			}
			k.expires, k.expiresMs = true, p.nowMs()+n
		}
	}
	return nil
}

// Call makes one call.
func (p *NativePort) Call(argv []string) ([]string, string, error) {
	var keys []native.Key
	for i, k := range p.keys {
		if k.expires && p.nowMs() > k.expiresMs {
			k = nativeKey{}
		}
		k.Name = decimal(int64(i))
		p.keys[i] = k
		keys = append(keys, k.Key)
	}
	unixUs := p.serverNs / us
	if p.setting.TimeUs != "" {
		unixUs = p.setting.unixUs()
	}
	after, r, ok := native.Call(string(p.script), named(p.setting, keys), argv, native.ServerClock(unixUs))
	if !ok {
		return nil, "", fmt.Errorf("no port of %s", p.script)
	}
	if refused, before := p.refused(argv, &r); refused != "" {
		for i := range before {
			p.write(i, after[i], r.Limits[i].Decision)
		}
		return nil, refused, nil
	}
	if p.script != precision.LimitsV1 {
		p.write(0, after[0], r.Decision)
		return numbers(r.Decision), "", nil
	}
	reply := []string{decimal(r.Status), decimal(r.RetryAfterNs)}
	for i, l := range r.Limits {
		p.write(i, after[i], l.Decision)
		reply = append(append(reply, numbers(l.Decision)...), l.Receipt)
	}
	return reply, "", nil
}

// refused is the error reply, of the script or of the server, or empty; and of a SET how many
// keys are before the one of it.
func (p *NativePort) refused(argv []string, r *native.Reply) (refused string, before int) {
	beforeTime := "BADARG"
	if p.script == precision.LimitsV1 {
		beforeTime = "BADARG limits_v1: takes"
	}
	if p.setting.Refuses == "TIME" && byServer(p.script, argv) && !strings.HasPrefix(r.Err, beforeTime) {
		return "REFUSED TIME", 0
	}
	list := slices.IndexFunc(p.keys, func(k nativeKey) bool { return k.list })
	wrong := 0 // the key that the error is of
	if _, err := fmt.Sscanf(r.Err, "BADSTATE limits_v1: key %d:", &wrong); err != nil {
		_, _ = fmt.Sscanf(r.Err, "BADARG limits_v1: key %d:", &wrong)
	}
	switch {
	case list >= 0 && (r.Err == "" || wrong > list+1):
		return "WRONGTYPE", 0
	case r.Err != "":
		return r.Err, 0
	}
	writes := []native.Decision{r.Decision}
	if p.script == precision.LimitsV1 {
		writes = nil
	}
	for _, l := range r.Limits {
		writes = append(writes, l.Decision)
	}
	sets := 0
	for i, d := range writes {
		if d.Written {
			sets++
		}
		switch {
		case !d.Written || sets != p.setting.refusedSet():
		case d.TTLS > 0:
			return "REFUSED SET EX " + decimal(d.TTLS), i
		default:
			return "REFUSED SET KEEPTTL", i
		}
	}
	return "", 0
}

// write has a key hold what a call left in it.
func (p *NativePort) write(i int, after native.Key, d native.Decision) {
	p.keys[i].Key = after
	if d.TTLS > 0 {
		p.keys[i].expires, p.keys[i].expiresMs = true, p.nowMs()+1000*d.TTLS
	}
}

func numbers(d native.Decision) []string {
	return []string{decimal(d.Status), decimal(d.Remaining), decimal(d.RetryAfterNs), decimal(d.ResetAfterNs)}
}

// Look reads the keys.
func (p *NativePort) Look() ([]seen, error) {
	var all []seen
	for _, k := range p.keys {
		key := seen{hex.EncodeToString([]byte(k.Text)), k.expiresMs - p.nowMs()}
		switch {
		case !k.Exists && !k.list:
			key = seen{"", -2}
		case !k.expires:
			key.ttlMs = -1
		}
		all = append(all, key)
	}
	return all, nil
}
