package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits that keep the code readable. Tests may have long functions, but no long files.
const (
	maxFileLines   = 500
	maxFuncLines   = 80
	maxImportChain = 8
	maxColumns     = 100 // of comments; a tab counts as 4
)

// measures reports whether a package measures or tests: its long tables and scripts are not
// limited.
func measures(pkg string) bool {
	return pkg == "bench" || slices.ContainsFunc([]string{"bench/", "test/", "tools/"}, func(prefix string) bool { return strings.HasPrefix(pkg, prefix) })
}

// tooLarge lists the files and functions above the limits.
func tooLarge(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		if n := s.line(s.file.FileEnd); n > maxFileLines {
			findings = append(findings, fmt.Sprintf("%s has %d lines, allowed are %d", s.name, n, maxFileLines))
		}
		if s.test || measures(s.pkg) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncDecl); ok {
				if lines := s.line(f.End()) - s.line(f.Pos()) + 1; lines > maxFuncLines {
					findings = append(findings, fmt.Sprintf("%s: %s has %d lines, allowed are %d", s.at(f.Pos()), f.Name.Name, lines, maxFuncLines))
				}
			}
			return true
		})
	}
	return findings
}

func TestLimits(t *testing.T) { report(t, tooLarge(load(t))) }

func TestLimits_Finds(t *testing.T) {
	long := strings.Repeat("//\n", maxFileLines)
	body := strings.Repeat("\n", maxFuncLines)
	for _, c := range []struct{ name, text, want string }{
		{"wal/a.go", long, "has 501 lines"},
		{"wal/a_test.go", long, "has 501 lines"},
		{"wal/a.go", "func f() {" + body + "}", "f has 81 lines"},
		{"wal/a_test.go", "func f() {" + body + "}", ""},
		{"test/attacks/a.go", "func f() {" + body + "}", ""},
	} {
		mustFind(t, tooLarge, sample(t, c.name, "package p\n"+c.text), c.want)
	}
}

// importChain returns the longest chain of our packages that import one another, tests left out.
func importChain(srcs []source) []string {
	imports := make(map[string][]string)
	for _, s := range srcs {
		if s.test {
			continue
		}
		for _, imp := range s.imports() {
			if to, ours := strings.CutPrefix(imp.path, modulePath+"/"); ours && !slices.Contains(imports[s.pkg], to) {
				imports[s.pkg] = append(imports[s.pkg], to)
			}
		}
	}
	longest := make(map[string][]string)
	var from func(pkg string) []string
	from = func(pkg string) []string {
		if chain, known := longest[pkg]; known {
			return chain
		}
		chain := []string{pkg}
		for _, to := range imports[pkg] {
			if c := from(to); len(c)+1 > len(chain) {
				chain = append([]string{pkg}, c...)
			}
		}
		longest[pkg] = chain
		return chain
	}
	var chain []string
	for pkg := range imports {
		if c := from(pkg); len(c) > len(chain) {
			chain = c
		}
	}
	return chain
}

func TestImportChain(t *testing.T) {
	chain := importChain(load(t))
	t.Logf("the longest chain of imports: %s", strings.Join(chain, " -> "))
	if len(chain) > maxImportChain {
		t.Errorf("%d packages import one another in a chain, allowed are %d: %s", len(chain), maxImportChain, strings.Join(chain, " -> "))
	}
}

// maxRecipeNames bounds the exported functions, types, constants, variables, and methods of
// exported types that users of recipes can see. Lower it when names go; a new name should replace
// another.
const maxRecipeNames = 301

// exportedNames returns the exported names of the packages below folder that are not internal.
func exportedNames(srcs []source, folder string) []string {
	var names []string
	for _, s := range srcs {
		if s.test || s.pkg != folder && !strings.HasPrefix(s.pkg, folder+"/") || strings.Contains(s.pkg, "internal") {
			continue
		}
		add := func(receiver string, id *ast.Ident) {
			if id.IsExported() && (receiver == "" || ast.IsExported(receiver)) {
				names = append(names, s.pkg+" "+receiver+" "+id.Name)
			}
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				add(receiver(d), d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						add("", spec.Name)
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							add("", id)
						}
					}
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type whose method f is, "" if f is no method.
func receiver(f *ast.FuncDecl) (name string) {
	if f.Recv != nil {
		ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is && name == "" {
				name = id.Name
			}
			return true
		})
	}
	return name
}

func TestRecipeNames(t *testing.T) {
	if names := exportedNames(load(t), "recipes"); len(names) > maxRecipeNames {
		t.Errorf("recipes export %d names, allowed are %d", len(names), maxRecipeNames)
	}
	text := "package p\nconst A, b = 1, 2\ntype C[T any] struct{}\nfunc (c *C[T]) D() {}\nfunc (e e) F() {}\nfunc G() {}\nvar H int"
	if names := exportedNames(sample(t, "recipes/x/a.go", text), "recipes"); len(names) != 5 {
		t.Errorf("found %q", names)
	}
}

// unusedArrows lists the rows of the table that no file needs.
func unusedArrows(srcs []source) []string {
	var findings []string
	for _, b := range table {
		for _, a := range b.may {
			used := slices.ContainsFunc(srcs, func(s source) bool {
				return !s.test && boxOf(s.pkg) == b.pkg && slices.ContainsFunc(s.imports(), func(imp imported) bool {
					return covers(a.to, strings.TrimPrefix(imp.path, modulePath+"/"))
				})
			})
			if !used {
				findings = append(findings, fmt.Sprintf("the table allows %s to import %s, which it does not", b.pkg, a.to))
			}
		}
	}
	return findings
}

// boxOf returns the row of the table that decides about a package.
func boxOf(pkg string) string {
	if i := slices.IndexFunc(table, func(b box) bool { return covers(b.pkg, pkg) }); i >= 0 {
		return table[i].pkg
	}
	return ""
}

func TestTable_HasNoUnusedRows(t *testing.T) { report(t, unusedArrows(load(t))) }

// wideComments lists the lines of comments that are wider than allowed. Preformatted text, and
// comments beside code, may be wider.
func wideComments(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		number := 0
		for line := range strings.Lines(s.text) {
			number++
			text := strings.TrimLeft(line, "\t")
			if !strings.HasPrefix(text, "// ") || strings.HasPrefix(text, "//      ") {
				continue
			}
			if n := 4*(len(line)-len(text)) + utf8.RuneCountInString(strings.TrimSpace(text)); n > maxColumns {
				findings = append(findings, fmt.Sprintf("%s:%d: the comment has %d columns, allowed are %d", s.name, number, n, maxColumns))
			}
		}
	}
	return findings
}

func TestColumns(t *testing.T) { report(t, wideComments(load(t))) }

func TestColumns_Finds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"// " + strings.Repeat("é", maxColumns-3), ""},
		{"// " + strings.Repeat("e", maxColumns-2), "a.go:2: the comment has 101 columns"},
		{"\t// " + strings.Repeat("e", maxColumns-6), "a.go:2: the comment has 101 columns"},
		{"//\t" + strings.Repeat("e", maxColumns), ""},
		{"var x = 1 // " + strings.Repeat("e", maxColumns), ""},
	} {
		mustFind(t, wideComments, sample(t, "wal/a.go", "package p\n"+c.text), c.want)
	}
}
