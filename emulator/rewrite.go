package emulator

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/tatami-rate/tatami/emulator/number"
)

// chunkName is what the server calls every script in its error texts.
const chunkName = "user_script"

// Names of the locals through which a script reaches the operators that gopher-lua's
// machine has wired in with other rules, and how those begin that hold the values of an
// assignment. No script can spell them.
const (
	modName    = "%"
	concatName = ".."
	forName    = "for"
	valueName  = "="
)

// compile turns the text of a script into a function of the operators modName,
// concatName and forName that returns the script as a function.
//
// It parses with gopher-lua and changes the tree where Lua 5.1 means something else:
// % and .. become calls, number literals get the value that strtod gives them, the
// bounds of a numeric for may be text, and several values are assigned at once. What 5.1
// does not have is refused.
func compile(text string) (*lua.FunctionProto, error) {
	chunk, err := parse.Parse(strings.NewReader(text), chunkName)
	if err != nil {
		var syntax *parse.Error
		if errors.As(err, &syntax) {
			token := syntax.Token
			line := strconv.Itoa(syntax.Pos.Line)
			if syntax.Pos.Line == parse.EOF {
				token, line = "<eof>", strconv.Itoa(strings.Count(text, "\n")+1)
			}
			err = fmt.Errorf("%s:%s: %s near '%s'", chunkName, line, syntax.Message, token)
		}
		return nil, err
	}
	r := rewriter{}
	r.block(chunk)
	if r.err != nil {
		return nil, r.err
	}
	script := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: r.usesVarargs}, Stmts: chunk}
	give := &ast.ReturnStmt{Exprs: []ast.Expr{script}}
	take := &ast.LocalAssignStmt{Names: []string{modName, concatName, forName}, Exprs: []ast.Expr{&ast.Comma3Expr{}}}
	return lua.Compile([]ast.Stmt{take, give}, chunkName)
}

type rewriter struct {
	depth       int  // of functions inside the script
	usesVarargs bool // whether the script itself, outside its functions, says ...
	err         error
}

// fail keeps the first error.
func (r *rewriter) fail(line int, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s:%d: %s", chunkName, line, fmt.Sprintf(format, args...))
	}
}

func (r *rewriter) block(stmts []ast.Stmt) {
	for i, stmt := range stmts {
		r.stmt(stmt)
		if s, ok := stmt.(*ast.AssignStmt); ok {
			stmts[i] = r.assign(s)
		}
	}
}

// assign returns what takes the place of an assignment. Lua has all values before it assigns
// the first; gopher-lua computes each right into its local, where the next would read it.
func (r *rewriter) assign(s *ast.AssignStmt) ast.Stmt {
	locals := map[string]bool{} // or globals
	reads := false
	for i, target := range s.Lhs {
		if name, ok := target.(*ast.IdentExpr); ok {
			locals[name.Value] = true
			reads = reads || i+1 < len(s.Rhs)
		}
	}
	for _, target := range s.Lhs {
		if field, ok := target.(*ast.AttrGetExpr); ok {
			if table, ok := field.Object.(*ast.IdentExpr); ok && locals[table.Value] {
				r.fail(s.Line(), "emulator: an assignment of %s and of a field of it is not emulated", table.Value)
			}
		}
	}
	if !reads {
		return s
	}
	values := &ast.LocalAssignStmt{Exprs: s.Rhs}
	assign := &ast.AssignStmt{Lhs: s.Lhs}
	for i, target := range s.Lhs {
		name := &ast.IdentExpr{Value: valueName + strconv.Itoa(i)}
		name.SetLine(target.Line())
		name.SetLastLine(target.LastLine())
		values.Names, assign.Rhs = append(values.Names, name.Value), append(assign.Rhs, name)
	}
	block := &ast.DoBlockStmt{Stmts: []ast.Stmt{values, assign}}
	for _, stmt := range []ast.Stmt{values, assign, block} {
		stmt.SetLine(s.Line())
		stmt.SetLastLine(s.LastLine())
	}
	return block
}

func (r *rewriter) stmt(stmt ast.Stmt) {
	switch s := stmt.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Lhs)
		r.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		r.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		r.block(s.Stmts)
		s.Condition = r.expr(s.Condition)
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		s.Init = r.bound(s.Init, "initial value")
		s.Limit = r.bound(s.Limit, "limit")
		if s.Step != nil {
			s.Step = r.bound(s.Step, "step")
		}
		r.block(s.Stmts)
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.block(s.Stmts)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			s.Name.Func = r.expr(s.Name.Func)
		}
		if s.Name.Receiver != nil {
			s.Name.Receiver = r.expr(s.Name.Receiver)
		}
		r.expr(s.Func)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	case *ast.BreakStmt:
	case *ast.GotoStmt: // a name to Lua 5.1, and the next one makes no sense to it
		r.fail(s.Line(), "'=' expected near '%s'", s.Label)
	case *ast.LabelStmt:
		r.fail(s.Line(), "unexpected symbol near ':'")
	default:
		panic(fmt.Sprintf("unknown statement %T", s))
	}
}

func (r *rewriter) exprs(exprs []ast.Expr) {
	for i, e := range exprs {
		exprs[i] = r.expr(e)
	}
}

// expr returns what takes the place of e.
func (r *rewriter) expr(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.NumberExpr:
		x, ok := number.ToNumber(e.Value)
		if !ok {
			// The lexer reads one byte too many, if only the end of the text.
			r.fail(e.Line(), "malformed number near '%s'", strings.TrimSpace(strings.TrimSuffix(e.Value, "\xff")))
		}
		// With an exponent, so that no leading zero can make it octal.
		e.Value = strconv.FormatFloat(x, 'e', -1, 64)
	case *ast.Comma3Expr:
		if r.depth == 0 {
			r.usesVarargs = true
		}
	case *ast.AttrGetExpr:
		e.Object = r.expr(e.Object)
		e.Key = r.expr(e.Key)
	case *ast.TableExpr:
		for _, field := range e.Fields {
			if field.Key != nil {
				field.Key = r.expr(field.Key)
			}
			field.Value = r.expr(field.Value)
		}
	case *ast.FuncCallExpr:
		if e.Func != nil {
			e.Func = r.expr(e.Func)
		}
		if e.Receiver != nil {
			e.Receiver = r.expr(e.Receiver)
		}
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
		if e.Operator == "%" {
			return call(modName, e.Line(), e.Lhs, e.Rhs)
		}
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.FunctionExpr:
		r.depth++
		r.block(e.Stmts)
		r.depth--
	case *ast.IdentExpr, *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
	default:
		panic(fmt.Sprintf("unknown expression %T", e))
	}
	return e
}

// concat makes one call of a chain a .. b .. c, which Lua too joins at once after it
// has all operands.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	var operands []ast.Expr
	literals := true
	rest := ast.Expr(e)
	for {
		chain, ok := rest.(*ast.StringConcatOpExpr)
		operand := rest
		if ok {
			operand = chain.Lhs
		}
		_, literal := operand.(*ast.StringExpr)
		literals = literals && literal
		operands = append(operands, r.expr(operand))
		if !ok {
			break
		}
		rest = chain.Rhs
	}
	if literals {
		return e
	}
	return call(concatName, e.Line(), operands...)
}

func (r *rewriter) bound(e ast.Expr, what string) ast.Expr {
	return call(forName, e.Line(), r.expr(e), &ast.StringExpr{Value: what})
}

// call is an expression of exactly one value, like the operator that it replaces, and
// so is its last argument.
func call(name string, line int, args ...ast.Expr) ast.Expr {
	switch last := args[len(args)-1].(type) {
	case *ast.FuncCallExpr:
		last.AdjustRet = true
	case *ast.Comma3Expr:
		last.AdjustRet = true
	}
	function := &ast.IdentExpr{Value: name}
	function.SetLine(line)
	function.SetLastLine(line)
	expr := &ast.FuncCallExpr{Func: function, Args: args, AdjustRet: true}
	expr.SetLine(line)
	expr.SetLastLine(line)
	return expr
}
