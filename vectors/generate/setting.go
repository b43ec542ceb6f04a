package generate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tatami-rate/tatami/precision"
)

// Setting is how a group's calls are made where that is not as usual. A runner can neither
// set a server's clock nor have it refuse a command. So it puts the prelude before the
// script's text, which has the script find the server that the other fields say.
type Setting struct {
	// Keys is which of the test's keys the calls name, in their order: eachKey, noKey, or
	// keysAndFirst.
	Keys string `json:"keys"`
	// TimeUs is the server's clock in us, empty for its own.
	TimeUs string `json:"time_us"`
	// Refuses is a command that the server refuses, SET, TIME or secondSet, or empty. The error reply
	// is REFUSED with the command, and of SET what follows key and value: its expiry.
	Refuses string `json:"refuses"`
	// LongBits is 32 for a server whose string.format cuts a %d to so many bits, or empty.
	LongBits string `json:"long_bits"`
	Prelude  string `json:"prelude"`
}

// The keys that calls name.
const (
	eachKey      = "each"
	noKey        = "none"
	keysAndFirst = "again" // each, and then the first one again
)

// named are the keys of these that the calls name.
func named[K any](s Setting, keys []K) []K {
	switch s.Keys {
	case noKey:
		return nil
	case keysAndFirst:
		return append(slices.Clone(keys), keys[0])
	}
	return keys
}

// usual is the setting of most groups.
var usual = Setting{Keys: eachKey}

// at is the setting with the server's clock at this many us.
func (s Setting) at(unixUs int64) *Setting {
	s.TimeUs = decimal(unixUs)
	return &s
}

// refusing is the setting with a server that refuses a command.
func (s Setting) refusing(command string) *Setting {
	s.Refuses = command
	return &s
}

// on32Bits is the setting with a server of 32 bits.
func (s Setting) on32Bits() *Setting {
	s.LongBits = "32"
	return &s
}

// complete is the setting with its prelude, on one line without double quotes, as a shell
// has to pass it on.
func (s Setting) complete() Setting {
	var commands, lines []string
	switch s.Refuses {
	case secondSet:
		lines = append(lines, "local sets = 0")
		commands = append(commands, "if name == 'SET' then sets = sets + 1 "+
			"if sets == 2 then return {err = 'REFUSED SET ' .. table.concat({...}, ' ', 3)} end end")
	case "SET":
		commands = append(commands, "if name == 'SET' then return {err = 'REFUSED SET ' .. table.concat({...}, ' ', 3)} end")
	case "TIME":
		commands = append(commands, "if name == 'TIME' then return {err = 'REFUSED TIME'} end")
	}
	if s.TimeUs != "" {
		unixUs := s.unixUs()
		commands = append(commands, fmt.Sprintf("if name == 'TIME' then return {'%d', '%d'} end", unixUs/1e6, unixUs%1e6))
	}
	if commands != nil {
		lines = append(lines, "local redis = setmetatable({pcall = function(name, ...) "+strings.Join(commands, " ")+
			" return redis.pcall(name, ...) end}, {__index = redis})")
	}
	if s.LongBits == "32" {
		lines = append(lines, narrowLong)
	}
	for _, line := range lines {
		s.Prelude += line + " "
	}
	return s
}

// secondSet refuses the second SET of a call, and no other.
const secondSet = "second SET"

// refusedSet is which SET of a call the server refuses, counted from 1; 0 for none.
func (s Setting) refusedSet() int {
	switch s.Refuses {
	case "SET":
		return 1
	case secondSet:
		return 2
	}
	return 0
}

// narrowLong has string.format do with a %d what i386 does, where a C long has 32 bits:
// all that does not fit becomes -2^31.
const narrowLong = "local string = setmetatable({format = function(form, ...) local values, at = {...}, 0 " +
	"for i = 1, #values do local _, last, conversion = string.find(form, '%%[0-9.]*(%a)', at + 1) at = last " +
	"if conversion == 'd' and not (values[i] > -2^31 - 1 and values[i] < 2^31) then values[i] = -2^31 end end " +
	"return string.format(form, unpack(values)) end}, {__index = string})"

func (s Setting) unixUs() int64 {
	unixUs, _ := strconv.ParseInt(s.TimeUs, 10, 64) // of at
	return unixUs
}

// byItsClock tells whether a call of these arguments goes by a clock of the server that the
// setting does not say.
func (s Setting) byItsClock(script precision.Script, argv []string) bool {
	return s.TimeUs == "" && byServer(script, argv)
}
