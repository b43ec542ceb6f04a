package emulator

import (
	"strings"

	"github.com/yuin/gopher-lua"

	"github.com/tatami-rate/tatami/emulator/number"
)

// This file is the matcher of Lua patterns behind string.find and string.match: that
// of Lua 5.1, with its words for a bad pattern. gopher-lua's compiles a pattern for
// each call, which takes longer than all the rest of a rate limiter.

const (
	maxCaptures     = 32
	openCapture     = -1 // the length of one that is not closed yet
	positionCapture = -2
)

type matcher struct {
	L       *lua.LState
	text    string
	pattern string
	level   int // captures opened
	capture [maxCaptures]struct{ start, length int }
}

func luaFind(L *lua.LState) int  { return findOrMatch(L, "find") }
func luaMatch(L *lua.LState) int { return findOrMatch(L, "match") }

func findOrMatch(L *lua.LState, name string) int {
	subject, pattern := checkText(L, 1, name), checkText(L, 2, name)
	init := 1
	if L.Get(3) != lua.LNil {
		init = int(number.Truncate(checkNumber(L, 3, name)))
	}
	if init < 0 {
		init += len(subject) + 1
	}
	start := min(max(init-1, 0), len(subject))
	if name == "find" && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(pattern, "^$*+?.([%-")) {
		at := strings.Index(subject[start:], pattern)
		if at < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(lua.LNumber(start + at + 1))
		L.Push(lua.LNumber(start + at + len(pattern)))
		return 2
	}
	m := matcher{L: L, text: subject, pattern: pattern}
	first := 0
	anchored := strings.HasPrefix(pattern, "^")
	if anchored {
		first = 1
	}
	for ; start <= len(subject); start++ {
		m.level = 0
		if end := m.match(start, first); end >= 0 {
			if name == "match" {
				return m.pushCaptures(start, end, true)
			}
			L.Push(lua.LNumber(start + 1))
			L.Push(lua.LNumber(end))
			return 2 + m.pushCaptures(start, end, false)
		}
		if anchored {
			break
		}
	}
	L.Push(lua.LNil)
	return 1
}

// pushCaptures pushes all captures; where whole and there are none, the match.
func (m *matcher) pushCaptures(start, end int, whole bool) int {
	if m.level == 0 && whole {
		m.L.Push(lua.LString(m.text[start:end]))
		return 1
	}
	for i := range m.level {
		switch c := m.capture[i]; c.length {
		case openCapture:
			m.L.RaiseError("unfinished capture")
		case positionCapture:
			m.L.Push(lua.LNumber(c.start + 1))
		default:
			m.L.Push(lua.LString(m.text[c.start : c.start+c.length]))
		}
	}
	return m.level
}

// match matches the text from s with the pattern from p, and returns the end of the
// match, or -1.
func (m *matcher) match(s, p int) int {
	for p < len(m.pattern) {
		switch c := m.pattern[p]; {
		case c == '(':
			if p+1 < len(m.pattern) && m.pattern[p+1] == ')' {
				return m.open(s, p+2, positionCapture)
			}
			return m.open(s, p+1, openCapture)
		case c == ')':
			return m.close(s, p+1)
		case c == '$' && p+1 == len(m.pattern):
			if s == len(m.text) {
				return s
			}
			return -1
		case c == '%' && p+1 < len(m.pattern):
			switch next := m.pattern[p+1]; {
			case next == 'b':
				if s = m.balance(s, p+2); s < 0 {
					return -1
				}
				p += 4
				continue
			case next == 'f':
				p += 2
				if p >= len(m.pattern) || m.pattern[p] != '[' {
					m.L.RaiseError("missing '[' after '%s' in pattern", "%f")
				}
				end := m.classEnd(p)
				before, here := byte(0), byte(0)
				if s > 0 {
					before = m.text[s-1]
				}
				if s < len(m.text) {
					here = m.text[s]
				}
				if m.inSet(before, p, end) || !m.inSet(here, p, end) {
					return -1
				}
				p = end
				continue
			case number.IsDecimal(next):
				if s = m.back(s, next); s < 0 {
					return -1
				}
				p += 2
				continue
			}
		}
		end := m.classEnd(p)
		var repeat byte
		if end < len(m.pattern) {
			repeat = m.pattern[end]
		}
		switch repeat {
		case '?':
			if m.single(s, p, end) {
				if to := m.match(s+1, end+1); to >= 0 {
					return to
				}
			}
			p = end + 1
		case '*', '+':
			from := s
			if repeat == '+' {
				from++
			}
			last := s
			for m.single(last, p, end) {
				last++
			}
			for ; last >= from; last-- {
				if to := m.match(last, end+1); to >= 0 {
					return to
				}
			}
			return -1
		case '-':
			for {
				if to := m.match(s, end+1); to >= 0 {
					return to
				}
				if !m.single(s, p, end) {
					return -1
				}
				s++
			}
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s++
			p = end
		}
	}
	return s
}

func (m *matcher) open(s, p, length int) int {
	if m.level >= maxCaptures {
		m.L.RaiseError("too many captures")
	}
	m.capture[m.level].start, m.capture[m.level].length = s, length
	m.level++
	end := m.match(s, p)
	if end < 0 {
		m.level--
	}
	return end
}

func (m *matcher) close(s, p int) int {
	for i := m.level - 1; i >= 0; i-- {
		if m.capture[i].length == openCapture {
			m.capture[i].length = s - m.capture[i].start
			end := m.match(s, p)
			if end < 0 {
				m.capture[i].length = openCapture
			}
			return end
		}
	}
	m.L.RaiseError("invalid pattern capture")
	return -1
}

// balance matches %bxy, whose x and y stand at p.
func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pattern) {
		m.L.RaiseError("unbalanced pattern")
	}
	if s >= len(m.text) || m.text[s] != m.pattern[p] {
		return -1
	}
	depth := 1
	for s++; s < len(m.text); s++ {
		switch m.text[s] {
		case m.pattern[p+1]:
			depth--
			if depth == 0 {
				return s + 1
			}
		case m.pattern[p]:
			depth++
		}
	}
	return -1
}

// back matches what a capture has matched before.
func (m *matcher) back(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.capture[i].length == openCapture {
		m.L.RaiseError("invalid capture index")
	}
	c := m.capture[i]
	if c.length < 0 || !strings.HasPrefix(m.text[s:], m.text[c.start:c.start+c.length]) {
		return -1
	}
	return s + c.length
}

// classEnd is the end of the single-character class that starts at p.
func (m *matcher) classEnd(p int) int {
	c := m.pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pattern) {
			m.L.RaiseError("malformed pattern (ends with '%s')", "%")
		}
		return p + 1
	case '[':
		if p < len(m.pattern) && m.pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(m.pattern) || m.pattern[p] != ']'; first = false {
			if p >= len(m.pattern) {
				m.L.RaiseError("malformed pattern (missing ']')")
			}
			if m.pattern[p] == '%' && p+1 < len(m.pattern) {
				p++
			}
			p++
		}
		return p + 1
	}
	return p
}

// single tells whether the character at s is in the class from p to end.
func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.text) {
		return false
	}
	c := m.text[s]
	switch m.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pattern[p+1])
	case '[':
		return m.inSet(c, p, end)
	}
	return c == m.pattern[p]
}

// inSet tells whether c is in the set [...] from p to end.
func (m *matcher) inSet(c byte, p, end int) bool {
	last := end - 1 // the closing bracket
	found := true
	p++
	if m.pattern[p] == '^' {
		found = false
		p++
	}
	for ; p < last; p++ {
		switch {
		case m.pattern[p] == '%':
			p++
			if inClass(c, m.pattern[p]) {
				return found
			}
		case p+2 < last && m.pattern[p+1] == '-':
			if m.pattern[p] <= c && c <= m.pattern[p+2] {
				return found
			}
			p += 2
		case m.pattern[p] == c:
			return found
		}
	}
	return !found
}

// inClass tells whether c is in the class %class of the C locale.
func inClass(c, class byte) bool {
	letter := 'a' <= c|0x20 && c|0x20 <= 'z'
	var in bool
	switch class | 0x20 {
	case 'a':
		in = letter
	case 'c':
		in = c < 32 || c == 127
	case 'd':
		in = number.IsDecimal(c)
	case 'l':
		in = 'a' <= c && c <= 'z'
	case 'p':
		in = 33 <= c && c <= 126 && !letter && !number.IsDecimal(c)
	case 's':
		in = c == ' ' || 9 <= c && c <= 13
	case 'u':
		in = 'A' <= c && c <= 'Z'
	case 'w':
		in = letter || number.IsDecimal(c)
	case 'x':
		in = number.DigitValue(c) < 16
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if 'A' <= class && class <= 'Z' {
		return !in
	}
	return in
}
