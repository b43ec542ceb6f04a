// Package generate makes and plays the vectors of the folder vectors.
//
// file.go is the form of a file, port.go plays it on whatever runs a script, claim.go
// says in exact integers what may be answered, make.go writes down what was, setting.go is
// what a runner cannot have of a server and so puts before the script, and the other files
// are the tables of what is asked.
package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// File is the vectors of one script. All integers but the ids are decimal texts, since
// a JSON number loses bits in some languages.
type File struct {
	Script string          `json:"script"`
	SHA1   string          `json:"sha1"` // of the script's text
	Flags  map[string]Flag `json:"flags"`
	Groups []Group         `json:"groups"`
}

// Flag is what goes wrong in a limiter that fails a test with it.
type Flag struct {
	Kind   string `json:"kind"` // arithmetic, clock, definition, expiry, state or argument
	Fault  string `json:"fault"`
	Source string `json:"source"` // where it was seen, and what it broke there
}

// Group is tests and streams that share their leading arguments and the setting of their
// calls.
type Group struct {
	Comment string   `json:"comment"`
	Argv    []string `json:"argv"`
	Setting Setting  `json:"setting"`
	Tests   []Test   `json:"tests"`
	Streams []Stream `json:"streams"`
}

// Test is calls on one key, or of limits_v1 on several.
type Test struct {
	ID      int      `json:"id"`
	Comment string   `json:"comment"`
	Flags   []string `json:"flags"`
	Keys    []Key    `json:"keys"`
	Steps   []Step   `json:"steps"`
}

// Key is what a key holds before a test.
type Key struct {
	Kind string `json:"kind"` // none, string, or list
	Hex  string `json:"hex"`  // the bytes of a string
}

// Step is one call and what is seen of it. A number that depends on the server's clock is
// a Range. Expire, State and TTLMs have an element for each of the test's keys.
type Step struct {
	// Expire is the expiry that a key is given before the call: in ms, none, or empty
	// to leave it.
	Expire []string `json:"expire"`
	Argv   []string `json:"argv"`  // after the group's
	Error  string   `json:"error"` // what the error reply begins with, or empty
	Reply  Reply    `json:"reply"`
	Exact  Reply    `json:"exact"` // the same by exact integers, fed with the same admissions
	// State is a key's bytes in hex, empty without a key and for a list; a dot stands
	// for any digit.
	State []string `json:"state"`
	TTLMs []Range  `json:"ttl_ms"` // PTTL after the call; -1 without an expiry, -2 without a key
}

// Reply is the reply of a call, empty on an error. Of a script of one key it is status,
// remaining, retry_after_ns and reset_after_ns. Of limits_v1 it is status and
// retry_after_ns, then for each key those four and the receipt, a text; in JSON each key's
// are a list.
type Reply []Range

// The places of a reply.
const (
	single = 4 // numbers of a script of one key
	common = 2 // numbers of limits_v1 before those of the keys
	each   = 5 // of a key
)

// isReceipt tells whether element i of a reply of n is a text.
func isReceipt(i, n int) bool { return n > single && i >= common && (i-common)%each == each-1 }

// MarshalJSON writes the reply.
func (r Reply) MarshalJSON() ([]byte, error) {
	if len(r) <= single {
		return json.Marshal([]Range(r))
	}
	list := []any{r[0], r[1]}
	for keys := range slices.Chunk(r[common:], each) {
		list = append(list, []Range(keys))
	}
	return json.Marshal(list)
}

// UnmarshalJSON reads the reply.
func (r *Reply) UnmarshalJSON(text []byte) error {
	var list []json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*r = Reply{}
	for i, element := range list {
		var key []Range
		if i < common || len(list) == single && element[0] != '[' {
			key = make([]Range, 1)
			if err := json.Unmarshal(element, &key[0]); err != nil {
				return err
			}
		} else if err := json.Unmarshal(element, &key); err != nil {
			return err
		} else if len(key) != each {
			return fmt.Errorf("a key's part of a reply has %d elements", len(key))
		}
		*r = append(*r, key...)
	}
	return nil
}

// Stream is many calls on one key, of one hash: each comes when the last one's wait is
// over.
type Stream struct {
	ID      int      `json:"id"`
	Comment string   `json:"comment"`
	Flags   []string `json:"flags"`
	NowNs   string   `json:"now_ns"` // of the first call
	Cost    string   `json:"cost"`
	Calls   int      `json:"calls"`
	SHA256  string   `json:"sha256"` // of a line "status remaining retry_after_ns reset_after_ns\n" for each call
}

// Read reads a file. A key that is not of the form is an error, and so is a missing one
// to the schema.
func Read(text []byte) (*File, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	f := &File{}
	if err := decoder.Decode(f); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("vectors of %s: text after the end", f.Script)
	}
	return f, nil
}

// Text is the file as it is written: a line for each step and each stream.
func (f *File) Text() ([]byte, error) {
	w := &writer{}
	w.add("{\n\"script\": %s,\n\"sha1\": %s,\n\"flags\": ", f.Script, f.SHA1)
	flags, err := json.MarshalIndent(f.Flags, "", " ")
	w.fail(err)
	w.text.Write(flags)
	w.add(",\n\"groups\": [")
	for i, g := range f.Groups {
		w.separate(i, "\n")
		w.add("{\"comment\": %s, \"argv\": %s,\n \"setting\": %s,\n \"tests\": [", g.Comment, g.Argv, g.Setting)
		for i, t := range g.Tests {
			w.separate(i, "\n ")
			w.add("{\"id\": %s, \"comment\": %s, \"flags\": %s, \"keys\": %s,\n  \"steps\": [", t.ID, t.Comment, t.Flags, t.Keys)
			for i, s := range t.Steps {
				w.separate(i, "\n   ")
				w.add("%s", s)
			}
			w.add("]}")
		}
		w.add("],\n \"streams\": [")
		for i, s := range g.Streams {
			w.separate(i, "\n  ")
			w.add("%s", s)
		}
		w.add("]}")
	}
	w.add("\n]\n}\n")
	return w.text.Bytes(), w.err
}

// writer puts values into a text as JSON.
type writer struct {
	text bytes.Buffer
	err  error
}

func (w *writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// add is fmt.Fprintf, each %s a value in JSON.
func (w *writer) add(format string, values ...any) {
	texts := make([]any, len(values))
	for i, v := range values {
		text, err := json.Marshal(v)
		w.fail(err)
		texts[i] = text
	}
	fmt.Fprintf(&w.text, format, texts...)
}

// separate starts element i of a list.
func (w *writer) separate(i int, space string) {
	if i > 0 {
		w.text.WriteByte(',')
	}
	w.text.WriteString(space)
}
