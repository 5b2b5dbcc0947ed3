// Package typecheck finds out whether changed packages of the repository would compile.
package typecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Tree is packages and their dependencies.
type Tree struct {
	Fset     *token.FileSet
	packages map[string]listed // by directory, from the root of the repository
	mu       sync.Mutex        // of the importer
	importer types.Importer
	bare     sync.Map // by path: the *ast.File without the bodies of functions
}

type listed struct {
	ImportPath, Export, Dir string
	GoFiles                 []string
}

// List returns the packages that match the patterns. What they import must compile.
func List(root string, patterns ...string) *Tree {
	root = must.Get(filepath.Abs(root))
	args := []string{"list", "-deps", "-export", "-json=ImportPath,Export,Dir,GoFiles"}
	if b, _ := debug.ReadBuildInfo(); slices.Contains(b.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race") // go test -race has compiled them so
	}
	cmd := exec.Command("go", append(args, patterns...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	t := &Tree{Fset: token.NewFileSet(), packages: make(map[string]listed)}
	exports := make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(must.Get(cmd.Output()))); d.More(); {
		var p listed
		must.Do(d.Decode(&p))
		exports[p.ImportPath] = p.Export
		if name, err := filepath.Rel(root, p.Dir); err == nil {
			t.packages[filepath.ToSlash(name)] = p
		}
	}
	t.importer = importer.ForCompiler(t.Fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return t
}

// Import implements types.Importer.
func (t *Tree) Import(path string) (*types.Package, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.importer.Import(path)
}

// Check type-checks the package in a directory, with some files replaced or added, and returns its
// files and their content. Files are named by their path.
func (t *Tree) Check(dir string, changed map[string][]byte, info *types.Info) ([]*ast.File, map[string][]byte, error) {
	p := t.packages[dir]
	content := make(map[string][]byte)
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		content[path] = must.Get(os.ReadFile(path))
	}
	maps.Copy(content, changed)
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(content)) {
		f, err := parser.ParseFile(t.Fset, name, content[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	_, err := (&types.Config{Importer: t}).Check(p.ImportPath, t.Fset, files, info)
	return files, content, err
}

// Compiles type-checks a package that compiles, with some files replaced or added, as Check does.
// If all declarations stay as they are, the bodies of the functions in the other files still
// compile: Compiles leaves them out.
func (t *Tree) Compiles(dir string, changed map[string][]byte) error {
	p, replaced := t.packages[dir], 0
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, isChanged := changed[path]
		if !isChanged {
			f, err := t.withoutBodies(path, old)
			if err != nil {
				return err
			}
			files = append(files, f)
			continue
		}
		before, err := parser.ParseFile(t.Fset, path, old, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		after, err := parser.ParseFile(t.Fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !bytes.Equal(t.declarations(before, old), t.declarations(after, text)) {
			_, _, err := t.Check(dir, changed, nil)
			return err
		}
		files, replaced = append(files, after), replaced+1
	}
	if replaced < len(changed) { // the others are new
		_, _, err := t.Check(dir, changed, nil)
		return err
	}
	var first error
	config := types.Config{Importer: t, Error: func(err error) {
		e, ok := errors.AsType[types.Error](err)
		_, isChanged := changed[t.Fset.Position(e.Pos).Filename]
		if without := ok && e.Soft && !isChanged; !without && first == nil { // such as an import that only a body uses
			first = err
		}
	}}
	_, _ = config.Check(p.ImportPath, t.Fset, files, nil)
	return first
}

// withoutBodies parses a file and drops the bodies of its functions, except init.
func (t *Tree) withoutBodies(path string, text []byte) (*ast.File, error) {
	if f, ok := t.bare.Load(path); ok {
		return f.(*ast.File), nil
	}
	f, err := parser.ParseFile(t.Fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name != "init" {
			fn.Body = nil
		}
	}
	t.bare.Store(path, f)
	return f, nil
}

// declarations returns the text of a file without the bodies of its functions.
func (t *Tree) declarations(f *ast.File, text []byte) (declared []byte) {
	end := 0
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			declared = append(declared, text[end:t.Fset.Position(fn.Body.Pos()).Offset]...)
			end = t.Fset.Position(fn.Body.End()).Offset
		}
	}
	return append(declared, text[end:]...)
}
