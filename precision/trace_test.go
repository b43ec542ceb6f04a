package precision

import (
	"go/ast"
	"go/parser"
	"go/token"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
)

// What is asked is chosen by the oracle alone. The native port answers a trace when all of
// its calls are made, so it has no say in them; nor have it and the assets one in the oracle
// or in the claims.
func TestTheNativePortChoosesNoCall(t *testing.T) {
	for file, mayPlay := range map[string]string{
		"trace.go": "playNative", "limits_trace.go": "", "limits_claims.go": "", "settle.go": "", "claims.go": "", "oracle.go": "", "call.go": "", "judge.go": "",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			if strings.Contains(spec.Path.Value, "tatami") {
				t.Errorf("%s imports %s", file, spec.Path.Value)
			}
		}
		played := 0
		for _, decl := range parsed.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok || strings.HasPrefix(function.Name.Name, "Judge") { // it compares with the native outcomes
				continue
			}
			ast.Inspect(function.Body, func(node ast.Node) bool {
				word, ok := node.(*ast.Ident)
				if !ok || !slices.Contains([]string{"Native", "NewNative", "nativeKey", "NewNativePort", "NewAsset", "Play"}, word.Name) {
					return true
				}
				if played++; function.Name.Name != mayPlay {
					t.Errorf("%s: %s names %s", file, function.Name.Name, word.Name)
				}
				return true
			})
		}
		if (played > 0) != (mayPlay != "") {
			t.Errorf("%s: %d mentions of a driver in %q", file, played, mayPlay)
		}
	}
}

// The calls of the traces, pinned: they depend on the seed, the index and the oracle.
func TestCallsArePinned(t *testing.T) {
	hash, limits := fnv.New64a(), fnv.New64a()
	add := func(trace *Trace) {
		_, _ = hash.Write([]byte(trace.String()))
	}
	for _, s := range singles {
		for index := range 2 * len(gcraStyles[GCRAV2]) {
			add(NewTrace(s.Script, 5, index))
		}
	}
	for index := range 2 * limitsStyles {
		_, _ = limits.Write([]byte(NewLimitsTrace(5, index).String()))
	}
	add(NewSaturated(GCRAV1, 76))
	add(NewSaturated(GCRAV2, 0))
	add(NewFading(WindowV1, 65535, 2_345_678_901_234_567, 50))
	const want = 0x0eb6b6a4dab6a47a
	if got := hash.Sum64(); got != want {
		t.Errorf("the hash of the calls is %#016x, want %#016x", got, uint64(want))
	}
	const wantLimits = 0x432ba6cb8d1dda20
	if got := limits.Sum64(); got != wantLimits {
		t.Errorf("the hash of the calls of limits_v1 is %#016x, want %#016x", got, uint64(wantLimits))
	}
}

// A server whose clock cannot be set gets every style of callers' clocks in turn.
func TestCallersTraces(t *testing.T) {
	for script, styles := range map[Script]int{GCRAV1: 6, GCRAV2: 7, WindowV1: 4, LimitsV1: 10} {
		var indexes []int
		for n := range 3 * styles {
			index := callersIndex(script, n)
			indexes = append(indexes, index)
			for _, c := range clocks(NewTrial(script, 1, index)) {
				if c.ServerNs > 0 || c.ByServer {
					t.Fatalf("%s, trace %d: %+v", script, index, c)
				}
			}
		}
		if slices.Sort(indexes); len(slices.Compact(slices.Clone(indexes))) != 3*styles {
			t.Errorf("%s: the indexes %v", script, indexes)
		}
	}
}

// clocks are the calls of a trial, by any of which its clocks are known.
func clocks(t Trial) (calls []Call) {
	switch t := t.(type) {
	case *Trace:
		return t.Calls
	case *LimitsTrace:
		for i := range t.Calls {
			calls = append(calls, *t.Calls[i].clock())
		}
	}
	return calls
}
