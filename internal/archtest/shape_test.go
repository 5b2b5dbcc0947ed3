package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// Limits of a type and of a line, which grouping fields or joining lines does not meet. Tests,
// harnesses and measurements are exempt.
const (
	maxLeaves      = 60
	maxMethods     = 70
	maxCodeColumns = 120 // a tab counts as 4
)

// offendersFile lists what is above a limit, a row each: the measure, the object, the figure. Rows
// may go and figures may fall, but neither may grow. Where two changes conflict, keep the higher
// figure, and lower it with -update.
const offendersFile = "testdata/offenders.txt"

// measure is a figure of the source: above limit, its objects stand in offendersFile. A figure must
// be lowered there when it has fallen by more than slack.
type measure struct {
	name, unit   string
	limit, slack int
	of           func([]source) map[string]int
}

var shape = []measure{
	{"leaves", "fields, with those of structs inside it counted one by one", maxLeaves, 0, leaves},
	{"methods", "methods", maxMethods, 0, methods},
	{"columns", fmt.Sprintf("lines wider than %d columns (new ones: git diff main | grep '^+.\\{%d\\}')", maxCodeColumns, maxCodeColumns-6), 0, 10, wideCode},
}

// leaves returns the number of fields of each struct. A field whose type is a struct of the same
// package counts as the fields of that struct, so that grouping fields does not change the figure.
// Types that end in Config or Options may be wide and are left out.
func leaves(srcs []source) map[string]int {
	structs := make(map[string]ast.Expr) // by package and name
	for _, s := range srcs {
		if s.test || measures(s.pkg) {
			continue
		}
		for _, d := range s.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					structs[s.pkg+"."+t.Name.Name] = t.Type
				}
			}
		}
	}
	var count func(pkg string, typ ast.Expr, within []string) int
	count = func(pkg string, typ ast.Expr, within []string) int {
		switch t := typ.(type) {
		case *ast.StructType:
			n := 0
			for _, f := range t.Fields.List {
				n += count(pkg, f.Type, within) * max(1, len(f.Names))
			}
			return n
		case *ast.ArrayType:
			if t.Len != nil { // a slice holds its fields elsewhere, an array here
				return count(pkg, t.Elt, within)
			}
		case *ast.IndexExpr:
			return count(pkg, t.X, within)
		case *ast.IndexListExpr:
			return count(pkg, t.X, within)
		case *ast.Ident:
			name := pkg + "." + t.Name
			if inner, ours := structs[name]; ours && !slices.Contains(within, name) {
				return count(pkg, inner, append(within, name))
			}
		}
		return 1
	}
	all := make(map[string]int)
	for name, typ := range structs {
		if !strings.HasSuffix(strings.ToLower(name), "config") && !strings.HasSuffix(name, "Options") {
			pkg := name[:strings.LastIndex(name, ".")]
			all[name] = count(pkg, typ, []string{name})
		}
	}
	return all
}

// methods returns the number of methods of each type. One that each platform defines for itself
// counts once.
func methods(srcs []source) map[string]int {
	seen := make(map[string]bool)
	all := make(map[string]int)
	for _, s := range srcs {
		if s.test || measures(s.pkg) {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				typ := s.pkg + "." + receiver(f)
				if method := typ + "." + f.Name.Name; !seen[method] {
					seen[method] = true
					all[typ]++
				}
			}
		}
	}
	return all
}

// wideLines returns the number of lines of code that are too wide.
func wideLines(s source) (n int) {
	if s.test || measures(s.pkg) {
		return 0
	}
	for line := range strings.Lines(s.text) {
		if len(line) <= maxCodeColumns/4 {
			continue // even if all of it were tabs
		}
		line = strings.TrimRight(line, "\n")
		columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
		if columns > maxCodeColumns && !strings.HasPrefix(strings.TrimSpace(line), "//") {
			n++
		}
	}
	return n
}

// wideCode returns the number of lines that are too wide, of all packages together: code may move
// with its wide lines.
func wideCode(srcs []source) map[string]int {
	n := 0
	for _, s := range srcs {
		n += wideLines(s)
	}
	return map[string]int{"code": n}
}

// parseOffenders reads offendersFile.
func parseOffenders(text string) (map[string]int, error) {
	all := make(map[string]int)
	for line := range strings.Lines(text) {
		i := strings.LastIndex(line, " ")
		n, err := strconv.Atoi(strings.TrimSpace(line[i+1:]))
		if err != nil || i < 0 || all[line[:i]] != 0 {
			return nil, fmt.Errorf("%s: %q is no row with a measure, an object and a figure, or there are two", offendersFile, line)
		}
		all[line[:i]] = n
	}
	return all, nil
}

// outOfShape returns what is wrong with the source, and what is wrong only with the list, which is
// too high. It lowers the list.
func outOfShape(srcs []source, listed map[string]int) (worse, better []string) {
	measured := make(map[string]int)
	slack := make(map[string]int)
	for _, m := range shape {
		slack[m.name] = m.slack
		for object, n := range m.of(srcs) {
			if n > m.limit {
				row := m.name + " " + object
				measured[row] = n
				switch was := listed[row]; {
				case was == 0:
					worse = append(worse, fmt.Sprintf("%s has %d %s, allowed are %d", object, n, m.unit, m.limit))
				case n > was:
					worse = append(worse, fmt.Sprintf("%s has %d %s, and had %d", object, n, m.unit, was))
				}
			}
		}
	}
	for row, was := range listed {
		name, _, _ := strings.Cut(row, " ")
		if n := measured[row]; n < was-slack[name] || n < was && n == 0 {
			better = append(better, fmt.Sprintf("%q fell from %d to %d", row, was, n))
			listed[row] = n
		}
	}
	slices.Sort(worse)
	slices.Sort(better)
	return worse, better
}

// TestShape holds the limits of types and of lines. Objects above a limit must be listed with their
// exact figure, so that what was gained is not lost again.
func TestShape(t *testing.T) {
	text, err := os.ReadFile(offendersFile)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := parseOffenders(string(text))
	if err != nil {
		t.Fatal(err)
	}
	worse, better := outOfShape(load(t), listed)
	report(t, worse)
	switch {
	case len(better) == 0:
	case *update:
		var rows strings.Builder
		for _, row := range slices.Sorted(maps.Keys(listed)) {
			if listed[row] > 0 {
				fmt.Fprintf(&rows, "%s %d\n", row, listed[row])
			}
		}
		if err := os.WriteFile(offendersFile, []byte(rows.String()), 0o644); err != nil {
			t.Error(err)
		}
	default:
		t.Errorf("the code is better than internal/archtest/%s says: %s\nlower it: go test ./internal/archtest -run Shape -update", offendersFile, strings.Join(better, "; "))
	}
}

func TestShape_Finds(t *testing.T) {
	ints := func(n int) string { return "struct {" + strings.Repeat("_ int\n", n) + "}\n" }
	for _, c := range []struct{ name, text, want string }{
		{"wal/a.go", "type Log " + ints(61), "wal.Log has 61 fields"},
		{"wal/a.go", "type Log " + ints(60), ""},
		{"wal/a.go", "type Log struct { a, b part; c *part }\ntype part " + ints(30), "wal.Log has 61 fields"},
		{"wal/a.go", "type Log struct { part[int]; e int }\ntype part[T any] " + ints(60), "wal.Log has 61 fields"},
		{"wal/a.go", "type Log struct { a [2]part; b []part }\ntype part named\ntype named " + ints(60), "wal.Log has 61 fields"},
		{"wal/a.go", "type Log struct {\nb *Log\na " + ints(60) + "}", "wal.Log has 61 fields"},
		{"wal/a.go", "type LogConfig " + ints(61) + "type LogOptions " + ints(61), ""},
		{"wal/a_test.go", "type Log " + ints(61), ""},
		{"test/attacks/a.go", "type Log " + ints(61), ""},
		{"wal/a.go", "var x = \"" + strings.Repeat("é", 111) + "\"", "code has 1 lines wider"},
		{"wal/a.go", "var x = \"" + strings.Repeat("é", 110) + "\"", ""},
		{"wal/a.go", "func f() {\n\t\t\t\t\tvar x = \"" + strings.Repeat("e", 91) + "\"\n}", "code has 1 lines wider"},
		{"wal/a.go", "// " + strings.Repeat("e", 200), ""},
	} {
		mustFind(t, func(srcs []source) []string {
			worse, better := outOfShape(srcs, nil)
			return append(worse, better...)
		}, sample(t, c.name, "package p\n"+c.text), c.want)
	}
	var many strings.Builder
	for i := range 71 {
		fmt.Fprintf(&many, "func (*Log[T]) f%d() {}\n", i)
	}
	srcs := sample(t, "wal/a.go", "package p\n"+many.String()+"func (*Log[T]) f1() {}")
	for was, want := range map[int]string{
		0:  `["wal.Log has 71 methods, allowed are 70"] []`,
		70: `["wal.Log has 71 methods, and had 70"] []`,
		71: `[] []`,
		72: `[] ["\"methods wal.Log\" fell from 72 to 71"]`,
	} {
		listed := map[string]int{"methods wal.Log": was}
		worse, better := outOfShape(srcs, listed)
		if got := fmt.Sprintf("%q %q", worse, better); got != want {
			t.Errorf("with %d methods on the list, found %s, want %s", was, got, want)
		}
	}
	listed := map[string]int{"columns wal": 3}
	if _, better := outOfShape(srcs, listed); len(better) != 1 || listed["columns wal"] != 0 {
		t.Errorf("an offender that is gone: found %q, and the list became %v", better, listed)
	}
	wide := sample(t, "wal/a.go", "package p\nvar x = \""+strings.Repeat("e", 120)+"\"")
	for was, found := range map[int]int{1: 0, 11: 0, 12: 1} {
		if _, better := outOfShape(wide, map[string]int{"columns code": was}); len(better) != found {
			t.Errorf("1 wide line, where the list has %d: found %q, want %d findings", was, better, found)
		}
	}
	for _, bad := range []string{"columns wal x\n", "7\n", "columns wal 1\ncolumns wal 2\n"} {
		if _, err := parseOffenders(bad); err == nil {
			t.Errorf("the list %q was accepted", bad)
		}
	}
}
