package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// All mutants of a package are woven into one test binary, and a variable of the
// environment chooses among them: to link one for each takes longer than all the rest. A
// function with mutants is there once more for each, and begins with a switch to them.

const (
	chosen   = "chosenMutant"     // the variable of Go, in a file of its own
	chooses  = "GOMUTANTS_MUTANT" // that of the environment
	declared = "package %s\n\nimport (\n\t\"os\"\n\t\"strconv\"\n)\n\nvar " + chosen + ", _ = strconv.Atoi(os.Getenv(\"" + chooses + "\"))\n"
)

// edit puts a text in the place of source[from:to].
type edit struct {
	from, to int
	text     string
}

func edited(source string, edits ...edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	text, at := "", 0
	for _, e := range edits {
		text += source[at:e.from] + e.text
		at = e.to
	}
	return text + source[at:]
}

// edit makes the mutant of its file.
func (m *mutant) edit() edit { return edit{m.offset, m.offset + len(m.was), m.is} }

// weave has a file's functions choose among its mutants. outside are those of no
// function's body, which need a binary of their own.
func weave(source string, mutants []*mutant) (text string, outside []*mutant, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	at := func(p token.Pos) int { return fset.Position(p).Offset }
	in := map[*ast.FuncDecl][]*mutant{}
	for _, m := range mutants {
		i := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Body != nil && at(f.Body.Pos()) <= m.offset && m.offset < at(f.Body.End())
		})
		if i < 0 {
			outside = append(outside, m)
			continue
		}
		f := file.Decls[i].(*ast.FuncDecl)
		in[f] = append(in[f], m)
	}
	var edits []edit
	var copies strings.Builder
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || in[f] == nil {
			continue
		}
		receiver, named := names(f.Recv, at, "receiver")
		edits = append(edits, named...)
		args, named := names(f.Type.Params, at, "argument")
		edits = append(edits, named...)
		params, _ := names(f.Type.TypeParams, at, "")
		from, to := at(f.Pos()), at(f.End())
		cases := ""
		for _, m := range in[f] {
			name := fmt.Sprintf("mutant%d_%s", m.id, f.Name.Name)
			call := strings.Join(append(receiver, name), ".")
			if len(params) > 0 {
				call += "[" + strings.Join(params, ", ") + "]"
			}
			call += "(" + strings.Join(args, ", ") + ")"
			if f.Type.Results != nil {
				call = "return " + call
			} else {
				call += "; return"
			}
			cases += fmt.Sprintf("case %d: %s; ", m.id, call)
			// A compiler's error tells the mutant by the name of its file.
			fmt.Fprintf(&copies, "\n//line mutant%d:1:1\n%s\n", m.id,
				edited(source[:to], m.edit(), edit{at(f.Name.Pos()), at(f.Name.End()), name})[from:])
		}
		body := at(f.Body.Lbrace) + 1
		edits = append(edits, edit{body, body, " switch " + chosen + " { " + cases + "}; "})
	}
	return edited(source, edits...) + copies.String(), outside, nil
}

// names is the names of a list of parameters, as a call passes them on, and gives one to
// each that has none.
func names(list *ast.FieldList, at func(token.Pos) int, blank string) (all []string, edits []edit) {
	if list == nil {
		return nil, nil
	}
	for _, field := range list.List {
		first := len(all)
		for _, name := range field.Names {
			if name.Name == "_" {
				name = &ast.Ident{NamePos: name.NamePos, Name: fmt.Sprint(blank, len(all))}
				edits = append(edits, edit{at(name.Pos()), at(name.Pos()) + 1, name.Name})
			}
			all = append(all, name.Name)
		}
		if len(field.Names) == 0 {
			name := fmt.Sprint(blank, len(all))
			edits = append(edits, edit{at(field.Pos()), at(field.Pos()), name + " "})
			all = append(all, name)
		}
		if _, ok := field.Type.(*ast.Ellipsis); ok {
			all[first] += "..."
		}
	}
	return all, edits
}
