// Package lua holds the scripts. Their text, comments included, is what their
// SHA1 names, so it is embedded and handed on byte for byte.
package lua

import _ "embed"

// GCRAV1 is the text of gcra_v1.lua.
//
//go:embed gcra_v1.lua
var GCRAV1 string

// GCRAV2 is the text of gcra_v2.lua.
//
//go:embed gcra_v2.lua
var GCRAV2 string

// WindowV1 is the text of window_v1.lua.
//
//go:embed window_v1.lua
var WindowV1 string

// LimitsV1 is the text of limits_v1.lua.
//
//go:embed limits_v1.lua
var LimitsV1 string

// Sum is the text of lua.sum: a line "name SHA1 SHA256" for each script.
//
//go:embed lua.sum
var Sum string

// Assets are the texts by name.
var Assets = map[string]string{"gcra_v1": GCRAV1, "gcra_v2": GCRAV2, "window_v1": WindowV1, "limits_v1": LimitsV1}
