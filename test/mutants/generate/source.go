package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// source is a package with its types.
type source struct {
	fset    *token.FileSet
	path    string
	files   []*ast.File
	content map[string][]byte // by path of the file
	info    types.Info
	imports types.Importer
	parents map[ast.Node]ast.Node
	lowered map[ast.Expr]bool // the constant in a comparison that "< becomes <=" makes greater already
}

// load reads a package of the library.
func load(root, name string) (*source, error) {
	cmd := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles", "cmp", "os", "strconv", "syscall", "./"+name)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	type listed struct {
		ImportPath, Export, Dir string
		GoFiles                 []string
	}
	var last listed // the packages come after their dependencies, in the order of the arguments
	exports := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath], last = p.Export, p
	}
	pkg := &source{fset: token.NewFileSet(), path: last.ImportPath, content: make(map[string][]byte)}
	pkg.imports = importer.ForCompiler(pkg.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, file := range last.GoFiles {
		path := filepath.Join(last.Dir, file)
		if pkg.content[path], err = os.ReadFile(path); err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(pkg.fset, path, pkg.content[path], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		pkg.files = append(pkg.files, f)
	}
	pkg.info = types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	if _, err := (&types.Config{Importer: pkg.imports}).Check(pkg.path, pkg.fset, pkg.files, &pkg.info); err != nil {
		return nil, err
	}
	pkg.relate()
	return pkg, nil
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

// check compiles the package with its mutants.
func (p *source) check(r *rewriter) error {
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range r.rewritten() {
		f, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("rewritten %w", err)
		}
		files = append(files, f)
	}
	_, err := (&types.Config{Importer: p.imports}).Check(p.path, fset, files, nil)
	return err
}
