package generate

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/tatami-rate/tatami/emulator/native"
	"github.com/tatami-rate/tatami/precision"
)

// NativePort is the plain Go port of a script. Its server's clock stands where Set puts
// it.
type NativePort struct {
	script    precision.Script
	setting   Setting
	serverNs  int64
	key       native.Key
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

// Hold makes the key hold this and nothing else.
func (p *NativePort) Hold(k Key) error {
	text, err := hex.DecodeString(k.Hex)
	p.key = native.Key{Exists: k.Kind == "string", Text: string(text)}
	p.list, p.expires = k.Kind == "list", false
	return err
}

// Expire sets the key's expiry, or takes it away.
func (p *NativePort) Expire(ms string) (err error) {
	if p.expires = ms != noExpiry; p.expires {
		var n int64
		n, err = strconv.ParseInt(ms, 10, 64)
		p.expiresMs = p.nowMs() + n
	}
	return err
}

// Call makes one call.
func (p *NativePort) Call(argv []string) ([]string, string, error) {
	if p.expires && p.nowMs() > p.expiresMs {
		p.key, p.list, p.expires = native.Key{}, false, false
	}
	if p.setting.Keys != 1 {
		argv = make([]string, 6) // too many, which has the same error
	}
	unixUs := p.serverNs / us
	if p.setting.TimeUs != "" {
		unixUs = p.setting.unixUs()
	}
	after, d, ok := native.Call(string(p.script), p.key, argv, native.ServerClock(unixUs))
	switch {
	case !ok:
		return nil, "", fmt.Errorf("no port of %s", p.script)
	case p.setting.Refuses == "TIME" && byServer(argv) && !strings.HasPrefix(d.Err, "BADARG"):
		return nil, "REFUSED TIME", nil
	case d.Err != "":
		return nil, d.Err, nil
	case p.list:
		return nil, "WRONGTYPE", nil
	case p.setting.Refuses == "SET" && d.Written && d.TTLS > 0:
		return nil, "REFUSED SET EX " + decimal(d.TTLS), nil
	case p.setting.Refuses == "SET" && d.Written:
		return nil, "REFUSED SET KEEPTTL", nil
	}
	p.key = after
	if d.TTLS > 0 {
		p.expires, p.expiresMs = true, p.nowMs()+1000*d.TTLS
	}
	return []string{decimal(d.Status), decimal(d.Remaining), decimal(d.RetryAfterNs), decimal(d.ResetAfterNs)}, "", nil
}

// Look reads the key.
func (p *NativePort) Look() (string, int64, error) {
	state := hex.EncodeToString([]byte(p.key.Text))
	switch {
	case !p.key.Exists && !p.list:
		return "", -2, nil
	case !p.expires:
		return state, -1, nil
	}
	return state, p.expiresMs - p.nowMs(), nil
}
