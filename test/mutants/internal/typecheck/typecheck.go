// Package typecheck finds out whether changed packages of the repository would compile.
package typecheck

import (
	"bytes"
	"encoding/json"
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
