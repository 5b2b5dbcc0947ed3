package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/gozkd/gozkd"

// root is the module's folder, seen from this package's.
const root = "../.."

// source is one parsed Go file.
type source struct {
	pkg  string // import path below the module: "proto/jute"; "" for the module's root
	name string // file path from the module's root, with slashes
	test bool   // a _test.go file
	fset *token.FileSet
	file *ast.File
	text string
	deps []imported
}

// at names the place of a node, for findings.
func (s source) at(p token.Pos) string {
	return fmt.Sprintf("%s:%d", s.name, s.line(p))
}

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

// imports returns the file's imports and the name each has in the file.
func (s source) imports() []imported { return s.deps }

// importsOf is imports for a file just parsed.
func importsOf(file *ast.File) []imported {
	var all []imported
	for _, spec := range file.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser accepted it
		}
		name := path.Base(p)
		if name == "v2" {
			name = path.Base(path.Dir(p)) // math/rand/v2
		}
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all = append(all, imported{path: p, name: name, pos: spec.Pos()})
	}
	return all
}

type imported struct {
	path, name string
	pos        token.Pos
}

// uses calls f for every mention of a name of the package imported as importPath: time.Now, called
// or not.
func (s source) uses(importPath string, f func(name string, pos token.Pos)) {
	for _, imp := range s.imports() {
		if imp.path != importPath {
			continue
		}
		if imp.name == "." {
			f(".", imp.pos) // its names can't be told from our own
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == imp.name {
				f(sel.Sel.Name, sel.Pos())
			}
			return true
		})
	}
}

// load parses every Go file of all modules, for every platform and build tag. testdata and folders
// that the go command ignores are left out. All tests share the result, which they must not change.
func load(t *testing.T) []source {
	t.Helper()
	all, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var loaded = sync.OnceValues(parseAll)

// parseAll is load without a test.
func parseAll() ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			base := d.Name()
			if rel != "." && (base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		s, err := parse(rel, string(text))
		if err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("no Go file found: the walk is broken")
	}
	return all, err
}

// parse reads one file; name is its path from the module's root.
func parse(name, text string) (source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	dir := path.Dir(name)
	if dir == "." {
		dir = ""
	}
	return source{pkg: dir, name: name, test: strings.HasSuffix(name, "_test.go"), fset: fset, file: file, text: text, deps: importsOf(file)}, nil
}

// sample parses a file that a rule's own test made up.
func sample(t *testing.T, name, text string) []source {
	t.Helper()
	s, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return []source{s}
}

// report fails the test with each finding.
func report(t *testing.T, findings []string) {
	t.Helper()
	for _, f := range findings {
		t.Error(f)
	}
}

// mustFind is the test of a rule: each sample breaks it once, and the finding must contain want.
func mustFind(t *testing.T, rule func([]source) []string, srcs []source, want string) {
	t.Helper()
	found := rule(srcs)
	if want == "" {
		if len(found) != 0 {
			t.Errorf("%s: found %q, want nothing", srcs[0].name, found)
		}
		return
	}
	if len(found) != 1 || !strings.Contains(found[0], want) {
		t.Errorf("%s: found %q, want one finding with %q", srcs[0].name, found, want)
	}
}
