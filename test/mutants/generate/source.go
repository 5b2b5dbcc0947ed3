package main

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/mutants/internal/typecheck"
)

// source is a package with its types.
type source struct {
	fset    *token.FileSet
	files   []*ast.File
	content map[string][]byte // by path of the file
	info    types.Info
	parents map[ast.Node]ast.Node
	lowered map[ast.Expr]bool // the constant in a comparison that "< becomes <=" makes greater already
}

// inSwitch are the packages that switchText imports.
var inSwitch = []string{"cmp", "os", "strconv", "syscall"}

// load reads a package of the tree.
func load(tree *typecheck.Tree, name string) *source {
	pkg := &source{fset: tree.Fset, info: types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}}
	pkg.files, pkg.content = must.Get2(tree.Check(name, nil, &pkg.info))
	pkg.relate()
	return pkg
}

// relate fills in parents and lowered.
func (p *source) relate() {
	p.parents, p.lowered = make(map[ast.Node]ast.Node), make(map[ast.Expr]bool)
	for _, f := range p.files {
		var stack []ast.Node
		ast.Inspect(f, func(n ast.Node) bool {
			if n == nil {
				stack = stack[:len(stack)-1]
				return true
			}
			if len(stack) > 0 {
				p.parents[n] = stack[len(stack)-1]
			}
			stack = append(stack, n)
			if b, ok := n.(*ast.BinaryExpr); ok {
				p.lowered[b.X] = b.Op == token.GTR || b.Op == token.LEQ
				p.lowered[b.Y] = b.Op == token.LSS || b.Op == token.GEQ
			}
			return true
		})
	}
}

func (p *source) text(from, to token.Pos) string {
	f := p.fset.File(from)
	return string(p.content[f.Name()][f.Offset(from):f.Offset(to)])
}
