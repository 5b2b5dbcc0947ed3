package main

import (
	"bytes"
	"cmp"
	_ "embed" // switch.go.txt
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// switchFile is the name of the file that is added to a rewritten package.
const switchFile = "gozkd_mutant_switch.go"

// switchText is the content of switchFile, for the name of the package and the number of mutants.
// What is reached is noted in a file in shared memory, so that it survives any end of the process.
//
//go:embed switch.go.txt
var switchText string

// A mutant is one change of the code, compiled in behind a switch.
type mutant struct {
	id  int
	key string // function | original text | change; stable while the function stays as it is
}

// An edit is text to insert. Edits at one place are ordered by rank.
type edit struct {
	at   token.Pos
	text string
	rank int
}

// rewriter makes the edits of a package. No edit changes what is there: the original text is
// wrapped, so that edits nest.
type rewriter struct {
	pkg     *source
	mutants []mutant
	seen    map[string]int // by key without its ordinal
	edits   []edit
	fn      string // the function that is rewritten
	tail    map[ast.Stmt]bool
}

// rewrite returns the mutants of a package, and the edits that compile them in.
func rewrite(pkg *source) *rewriter {
	r := &rewriter{pkg: pkg, seen: make(map[string]int)}
	for _, file := range pkg.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || f.Name.Name == "String" || f.Name.Name == "init" {
				continue
			}
			r.fn = f.Name.Name
			if f.Recv != nil && len(f.Recv.List) == 1 {
				r.fn = strings.TrimLeft(strings.Split(r.text(f.Recv.List[0].Type), "[")[0], "*") + "." + r.fn
			}
			r.tail = make(map[ast.Stmt]bool)
			r.function(f.Type, f.Body)
			ast.Inspect(f.Body, func(n ast.Node) bool { return r.visit(n) })
		}
	}
	slices.SortStableFunc(r.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.rank, b.rank)) })
	return r
}

func (r *rewriter) text(n ast.Node) string { return r.pkg.text(n.Pos(), n.End()) }

// add makes a mutant of a node.
func (r *rewriter) add(n ast.Node, change string) (id int) {
	original := []rune(strings.Join(strings.Fields(r.text(n)), " "))
	if len(original) > 90 {
		original = append(original[:87], []rune("...")...)
	}
	key := fmt.Sprintf("%s | %s | %s", r.fn, string(original), change)
	r.seen[key]++
	if many := r.seen[key]; many > 1 {
		key += fmt.Sprintf(" (%d)", many)
	}
	id = len(r.mutants)
	r.mutants = append(r.mutants, mutant{id, key})
	return id
}

// wrap puts text around a node. Nodes are wrapped from the outermost to the innermost.
func (r *rewriter) wrap(n ast.Node, before, after string) {
	rank := len(r.edits) + 1
	r.edits = append(r.edits, edit{n.Pos(), before, rank}, edit{n.End(), after, -rank})
}

// function marks the statements that may end a function with results: it must have one.
func (r *rewriter) function(typ *ast.FuncType, body *ast.BlockStmt) {
	if typ.Results != nil {
		r.markTail(body.List)
	}
}

func (r *rewriter) markTail(list []ast.Stmt) {
	if len(list) == 0 {
		return
	}
	last := list[len(list)-1]
	r.tail[last] = true
	ast.Inspect(last, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			r.markTail(n.List)
		case *ast.CaseClause:
			r.markTail(n.Body)
		case *ast.CommClause:
			r.markTail(n.Body)
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return false
		}
		return true
	})
}

// visit makes the mutants of a node, and reports whether to visit what is in it.
func (r *rewriter) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		r.function(n.Type, n.Body)
	case *ast.BlockStmt:
		r.statements(n.List)
	case *ast.CaseClause:
		r.statements(n.Body)
	case *ast.CommClause:
		r.statements(n.Body)
	case *ast.AssignStmt:
		for _, e := range n.Rhs {
			ast.Inspect(e, r.visit)
		}
		return false
	case *ast.RangeStmt:
		ast.Inspect(n.X, r.visit)
		ast.Inspect(n.Body, r.visit)
		return false
	case *ast.KeyValueExpr:
		ast.Inspect(n.Value, r.visit)
		return false
	case *ast.SelectorExpr:
		r.expression(n)
		ast.Inspect(n.X, r.visit)
		return false
	case *ast.UnaryExpr:
		if _, literal := n.X.(*ast.CompositeLit); n.Op == token.AND && !literal {
			return false // what has an address is no value
		}
		r.expression(n)
	case *ast.CallExpr:
		if quiet(r.text(n.Fun)) {
			return false
		}
		switch r.pkg.parents[n].(type) {
		case *ast.ExprStmt, *ast.DeferStmt, *ast.GoStmt: // the result is not used
		default:
			r.expression(n)
		}
		r.minMax(n)
	case *ast.DeclStmt, *ast.ArrayType, *ast.FuncType, *ast.MapType, *ast.IncDecStmt, *ast.LabeledStmt, *ast.BranchStmt:
		_, label := n.(*ast.LabeledStmt)
		return label
	case ast.Expr:
		r.expression(n)
	}
	return true
}

// quiet reports whether a call only makes text for people.
func quiet(callee string) bool {
	return strings.HasPrefix(callee, "fmt.") || strings.HasPrefix(callee, "errors.New") || strings.Contains(callee, "ogger.")
}

var weaker = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

// expression makes the mutants of a condition, or of a constant.
func (r *rewriter) expression(e ast.Expr) {
	tv := r.pkg.info.Types[e]
	if tv.Type == nil || !tv.IsValue() {
		return
	}
	basic, ok := tv.Type.Underlying().(*types.Basic)
	switch {
	case !ok:
	case basic.Info()&types.IsBoolean != 0:
		r.condition(e)
	case basic.Info()&types.IsInteger != 0 && tv.Value != nil:
		r.constant(e, tv)
	}
}

func (r *rewriter) condition(e ast.Expr) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return
	case *ast.UnaryExpr:
		return // the operand is negated
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			r.connective(e)
			return
		}
		if to := weaker[e.Op]; to != 0 {
			id := r.add(e, fmt.Sprintf("%v becomes %v", e.Op, to))
			alt := r.text(e.X) + " " + to.String() + " " + r.text(e.Y)
			r.wrap(e, fmt.Sprintf("(mut(%d) && (%s) || !mut(%d) && (", id, alt, id), "))")
		}
	}
	id := r.add(e, "negated")
	r.wrap(e, fmt.Sprintf("(mut(%d) != (", id), "))")
}

func (r *rewriter) connective(e *ast.BinaryExpr) {
	other, drop := token.LOR, "(mut(%d) || ("
	if e.Op == token.LOR {
		other, drop = token.LAND, "(!mut(%d) && ("
	}
	id := r.add(e, fmt.Sprintf("%v becomes %v", e.Op, other))
	alt := "(" + r.text(e.X) + ") " + other.String() + " (" + r.text(e.Y) + ")"
	r.wrap(e, fmt.Sprintf("(mut(%d) && (%s) || !mut(%d) && (", id, alt, id), "))")
	for _, operand := range []ast.Expr{e.X, e.Y} {
		if b, ok := operand.(*ast.BinaryExpr); ok && b.Op == e.Op {
			continue // its own operands are dropped one by one
		}
		id := r.add(operand, "condition dropped")
		r.wrap(operand, fmt.Sprintf(drop, id), "))")
	}
}

// constant makes a constant greater or less by one.
func (r *rewriter) constant(e ast.Expr, tv types.TypeAndValue) {
	const most = 1024 // no rule depends on whether a large bound is greater by one
	typ := types.Unalias(types.Default(tv.Type))
	value, exact := constant.Int64Val(constant.ToInt(tv.Value))
	if _, named := typ.(*types.Named); named || !exact || value > most || value < -most || r.inConstant(e) {
		return
	}
	change, by := "plus 1", 1
	if r.pkg.lowered[e] {
		change, by = "minus 1", -1
		if value == 0 {
			return
		}
	}
	id := r.add(e, change)
	r.wrap(e, fmt.Sprintf("mutAdd[%v](%d, %d, ", typ, id, by), ")")
}

// inConstant reports whether e is part of a constant expression, which is mutated as a whole.
func (r *rewriter) inConstant(e ast.Expr) bool {
	parent, ok := r.pkg.parents[e].(ast.Expr)
	return ok && r.pkg.info.Types[parent].Value != nil
}

func (r *rewriter) minMax(call *ast.CallExpr) {
	name, ok := call.Fun.(*ast.Ident)
	if !ok || name.Name != "min" && name.Name != "max" || r.pkg.info.Types[call].Value != nil {
		return
	}
	id := r.add(call, "min and max swapped")
	rank := len(r.edits) + 1
	r.edits = append(r.edits, edit{call.Pos(), "mut_", rank}, edit{call.Lparen + 1, fmt.Sprintf("%d, ", id), rank})
}

// statements makes the mutants of the statements of a block.
func (r *rewriter) statements(list []ast.Stmt) {
	var guards []string // conditions of the next statement
	for i, s := range list {
		before, next := "", []string(nil)
		if i+1 < len(list) && r.swappable(s, list[i+1]) {
			id := r.add(s, "swapped with the next statement")
			before = fmt.Sprintf("if mut(%d) { %s }; ", id, r.text(list[i+1]))
			next = []string{fmt.Sprintf("!mut(%d)", id)}
		}
		if a, ok := s.(*ast.AssignStmt); ok && a.Tok == token.ASSIGN && len(a.Lhs) > 1 && len(a.Lhs) == len(a.Rhs) {
			before += r.assignments(a)
			guards = append(guards, "true")
		} else if droppable(s) && !quiet(r.text(s)) && !(r.tail[s] && ends(r.text(s))) {
			guards = append(guards, fmt.Sprintf("!mut(%d)", r.add(s, "dropped")))
		}
		if len(guards) > 0 {
			r.wrap(s, before+"if "+strings.Join(guards, " && ")+" { ", " }")
		}
		guards = next
	}
}

// assignments drops each part of an assignment to several variables.
func (r *rewriter) assignments(a *ast.AssignStmt) (alternatives string) {
	for i := range a.Lhs {
		var lhs, rhs []string
		for j := range a.Lhs {
			if j != i {
				lhs, rhs = append(lhs, r.text(a.Lhs[j])), append(rhs, r.text(a.Rhs[j]))
			}
		}
		id := r.add(a, fmt.Sprintf("without %s", r.text(a.Lhs[i])))
		alternatives += fmt.Sprintf("if mut(%d) { %s = %s } else ", id, strings.Join(lhs, ", "), strings.Join(rhs, ", "))
	}
	return alternatives
}

func droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.GoStmt, *ast.DeferStmt, *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	}
	return false
}

// ends reports whether a statement may end a function with results.
func ends(text string) bool {
	return strings.HasPrefix(text, "return") || strings.HasPrefix(text, "panic(")
}

// swappable reports whether the order of two statements may matter: one of them calls a function,
// or what one changes occurs in the other.
func (r *rewriter) swappable(a, b ast.Stmt) bool {
	changedA, callsA, okA := r.effects(a)
	changedB, callsB, okB := r.effects(b)
	uses := func(s ast.Stmt, changed []string) bool {
		return slices.ContainsFunc(changed, func(c string) bool { return strings.Contains(r.text(s), c) })
	}
	return okA && okB && (callsA && callsB || uses(a, changedB) || uses(b, changedA))
}

// effects returns the variables that a simple statement changes, and whether it calls a function.
func (r *rewriter) effects(s ast.Stmt) (changed []string, calls, simple bool) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		for _, e := range s.Lhs {
			changed = append(changed, r.text(e))
		}
		return changed, false, s.Tok != token.DEFINE
	case *ast.IncDecStmt:
		return []string{r.text(s.X)}, false, true
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if text := r.text(s); !ok || quiet(text) || ends(text) {
			return nil, false, false
		}
		if f, ok := call.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear" || f.Name == "copy") {
			return []string{r.text(call.Args[0])}, false, true
		}
		return nil, true, true
	}
	return nil, false, false
}

// rewritten returns the files of the package with the mutants compiled in, by path.
func (r *rewriter) rewritten() map[string][]byte {
	files := make(map[string][]byte)
	for _, f := range r.pkg.files {
		name := r.pkg.fset.Position(f.Pos()).Filename
		var b bytes.Buffer
		at := r.pkg.fset.File(f.Pos()).Pos(0)
		for _, e := range r.edits {
			if r.pkg.fset.File(e.at) == r.pkg.fset.File(f.Pos()) {
				b.WriteString(r.pkg.text(at, e.at))
				b.WriteString(e.text)
				at = e.at
			}
		}
		tokenFile := r.pkg.fset.File(f.Pos())
		b.WriteString(r.pkg.text(at, tokenFile.Pos(tokenFile.Size())))
		files[name] = b.Bytes()
	}
	dir := filepath.Dir(r.pkg.fset.Position(r.pkg.files[0].Pos()).Filename)
	files[filepath.Join(dir, switchFile)] = fmt.Appendf(nil, switchText, r.pkg.files[0].Name.Name, len(r.mutants))
	return files
}
