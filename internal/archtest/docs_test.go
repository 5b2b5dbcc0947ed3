package archtest

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// update writes the tables of modules into the pages: go test ./internal/archtest -run Docs -update
var update = flag.Bool("update", false, "write the tables of modules into the pages below docs")

// modulesOf is a part of a page that lists modules, as a table.
func modulesOf(pkg string) *regexp.Regexp {
	return regexp.MustCompile("(?s)(<!-- modules of " + pkg + ": generated -->\n)(.*?)(<!-- modules of " + pkg + ": end -->\n)")
}

// withModules returns the page with its table of the modules that a package brings.
func withModules(page, pkg string, modules map[string]string) string {
	var b strings.Builder
	b.WriteString("| module | because |\n|---|---|\n")
	for _, m := range slices.Sorted(maps.Keys(modules)) {
		if m != modulePath {
			fmt.Fprintf(&b, "| `%s` | %s |\n", m, modules[m])
		}
	}
	return modulesOf(pkg).ReplaceAllString(page, "${1}"+b.String()+"${3}")
}

// TestDocsListTheModules compares the tables of modules in the pages with the modules.
func TestDocsListTheModules(t *testing.T) {
	tables := 0
	for name, page := range pages(t) {
		want := page
		for pkg, modules := range linked {
			tables += len(modulesOf(pkg).FindAllString(want, -1))
			if pkg != "server" {
				modules = maps.Clone(modules)
				maps.DeleteFunc(modules, func(m, _ string) bool { return serverModules[m] != "" })
			}
			want = withModules(want, pkg, modules)
		}
		switch {
		case want == page:
		case *update:
			if err := os.WriteFile(filepath.Join(root, "docs", filepath.FromSlash(name)), []byte(want), 0o644); err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("docs/%s lists other modules than are linked, from here on: %s\nupdate it: go test ./internal/archtest -run Docs -update", name, difference(page, want))
		}
	}
	if tables < len(linked) {
		t.Errorf("the pages have %d tables of modules, want %d: the marks are broken", tables, len(linked))
	}
}

// difference returns the first line of the page that is not as it should be.
func difference(page, want string) string {
	lines, wanted := strings.Split(page, "\n"), strings.Split(want, "\n")
	for i, line := range lines {
		if i >= len(wanted) || line != wanted[i] {
			return fmt.Sprintf("line %d: %s", i+1, line)
		}
	}
	return "its end"
}

// pages returns the text of each page below docs, by its path there.
func pages(t *testing.T) map[string]string {
	t.Helper()
	pages := make(map[string]string)
	docs := os.DirFS(filepath.Join(root, "docs"))
	err := fs.WalkDir(docs, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(docs, name)
		pages[name] = string(text)
		return err
	})
	if err != nil || len(pages) == 0 {
		t.Fatalf("read the pages below docs: %d found, error: %v", len(pages), err)
	}
	return pages
}

func TestDocsListTheModules_Finds(t *testing.T) {
	page := "text\n<!-- modules of server: generated -->\n| old |\n<!-- modules of server: end -->\n"
	got := withModules(page, "server", map[string]string{modulePath: "ourselves", "example.com/m": "a reason"})
	want := "text\n<!-- modules of server: generated -->\n" +
		"| module | because |\n|---|---|\n| `example.com/m` | a reason |\n<!-- modules of server: end -->\n"
	if got != want {
		t.Errorf("the page became\n%s\nwant\n%s", got, want)
	}
	if d := difference(page, want); d != "line 3: | old |" {
		t.Errorf("the difference is at %q", d)
	}
}

// scope declares what the tables of docs/guide/testing.md and blocks of Go in pages talk about.
const scope = `package scope

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

func _(t *testing.T, s *zktest.Server, e *zktest.Ensemble, m *zktest.Member, conn *zk.Conn, adapt func(member int, c *server.Config),
	callback func(zk.Event), d time.Duration, cond func(map[string]string) bool, snapshot zktest.Snapshot, port int, dir, archive string,
	ctx context.Context, own tls.Certificate, pool *x509.CertPool) {
	_, _, _, _ = proto.ErrNoAuth, fmt.Sprint, slog.Default, client.Connect
	here()
}

func here() {}
`

var codeSpan = regexp.MustCompile("`([^`]+)`")

// calls returns the code in one column of each table of a page that is marked <!-- calls: column N
// -->, by line.
func calls(page string) map[int][]string {
	found := make(map[int][]string)
	column := 0
	for i, line := range strings.Split(page, "\n") {
		mark, marked := strings.CutPrefix(line, "<!-- calls: column ")
		switch cells := strings.Split(line, "|"); {
		case marked:
			column, _ = strconv.Atoi(strings.TrimSuffix(mark, " -->")) // 0, which no table has, if it is no number
			found[i+1] = nil
		case len(cells) < 3:
			column = 0
		case column >= len(cells):
			found[i+1] = []string{"no such column"}
		case column > 0:
			for _, code := range codeSpan.FindAllStringSubmatch(cells[column], -1) {
				found[i+1] = append(found[i+1], code[1])
			}
		}
	}
	return found
}

// TestDocsCallWhatIsThere checks the types of what docs/guide/testing.md says can be called: a
// method that is renamed, or takes something else, must be renamed there.
func TestDocsCallWhatIsThere(t *testing.T) {
	load(t) // NB: opens every source file, so that a cached result of this test dies with any change of them
	check, compile := checker(t)
	n, snippets := 0, 0
	for _, name := range []string{"guide/client.md", "guide/embedding.md", "guide/testing.md"} {
		for _, snippet := range goSnippet.FindAllStringSubmatch(pages(t)[name], -1) {
			snippets++
			if err := compile(snippet[1]); err != nil {
				t.Errorf("docs/%s:\n%s%v", name, snippet[1], err)
			}
		}
	}
	if err := compile("s.NoSuchMethod()\n"); snippets < 5 || err == nil {
		t.Errorf("%d blocks of Go, and with a call of what is not there: %v", snippets, err)
	}
	for line, code := range calls(pages(t)["guide/testing.md"]) {
		for _, c := range code {
			n++
			if err := check(c); err != nil {
				t.Errorf("docs/guide/testing.md:%d: %s: %v", line, c, err)
			}
		}
	}
	if n < 50 {
		t.Errorf("docs/guide/testing.md calls %d times: the marks are broken", n)
	}
	if err := check("s.Kill(1)"); err == nil {
		t.Error("a call with too many arguments was accepted")
	}
	if err := check("e.NoSuchMethod()"); err == nil {
		t.Error("a call of what is not there was accepted")
	}
}

func TestDocsCallWhatIsThere_Finds(t *testing.T) {
	got := calls("`no`\n<!-- calls: column 2 -->\n| a | b |\n|---|---|\n| `x` | `f()`, `g()` |\n\n| `y` | `z` |\n")
	if want := []string{"f()", "g()"}; !slices.Equal(got[5], want) {
		t.Errorf("found %q in line 5, want %q", got[5], want)
	}
	if got[7] != nil {
		t.Errorf("found %q in a table that is not marked", got[7])
	}
}

// goSnippet matches a block of statements.
var goSnippet = regexp.MustCompile("(?s)\n```go\n(.*?\n)```\n")

// checker returns functions that report what is wrong with an expression in scope, and with
// statements there, of which results may be unused.
func checker(t *testing.T) (expression, statements func(code string) error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-f", "{{if .Export}}{{.ImportPath}}\t{{.Export}}{{end}}", "./zktest")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	exported := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exported[path] = file
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "scope.go", scope, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		text, err := os.ReadFile(exported[path])
		return io.NopCloser(bytes.NewReader(text)), err
	})}
	pkg, err := config.Check("scope", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var here token.Pos
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.ExprStmt); ok {
			here = call.Pos()
		}
		return true
	})
	statements = func(code string) error {
		code = strings.ReplaceAll(code, "{ ... }", "{}")
		file, err := parser.ParseFile(fset, "snippet.go", strings.Replace(scope, "here()", "{\n"+code+"}", 1), 0)
		wrong := []error{err}
		lenient := types.Config{Importer: config.Importer, Error: func(err error) {
			if e, ok := errors.AsType[types.Error](err); !ok || !e.Soft {
				wrong = append(wrong, err)
			}
		}}
		_, _ = lenient.Check("snippet", fset, []*ast.File{file}, nil) // wrong has the errors
		return errors.Join(wrong...)
	}
	return func(code string) error {
		_, err := types.Eval(fset, pkg, here, code)
		return err
	}, statements
}
