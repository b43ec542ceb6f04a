// Package vectors holds the test vectors: what each script answers, as data that any
// language can read. README.md says how.
package vectors

import "embed"

//go:generate go run ./generate/cmd

// Files are the vectors, a file <script>.json for each script, and schema.json.
//
//go:embed *.json
var Files embed.FS
