package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// covers reports whether name is what pattern allows: the same, or below it where pattern ends in
// "/...".
func covers(pattern, name string) bool {
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == dir || strings.HasPrefix(name, dir+"/")
	}
	if strings.Contains(pattern, ".") { // someone else's: any package of the module
		return name == pattern || strings.HasPrefix(name, pattern+"/")
	}
	return name == pattern
}

// standard reports whether an import is of the standard library: its first element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// brokenArrows lists imports that the table does not allow, and packages that it does not know.
func brokenArrows(srcs []source) []string {
	var findings []string
	for _, s := range srcs {
		if s.test {
			continue
		}
		i := slices.IndexFunc(table, func(b box) bool { return covers(b.pkg, s.pkg) })
		if i < 0 {
			findings = append(findings, fmt.Sprintf("%s: package %q is not in the table of internal/archtest: add it, with a reason per import", s.name, s.pkg))
			continue
		}
		for _, imp := range s.imports() {
			if standard(imp.path) {
				continue
			}
			to := strings.TrimPrefix(imp.path, modulePath+"/")
			if !slices.ContainsFunc(table[i].may, func(a arrow) bool { return covers(a.to, to) }) {
				findings = append(findings, fmt.Sprintf("%s: %s may not import %s", s.at(imp.pos), s.pkg, to))
			}
		}
	}
	return findings
}

func TestImports(t *testing.T) {
	srcs := load(t)
	report(t, brokenArrows(srcs))
	for _, b := range table {
		found := slices.ContainsFunc(srcs, func(s source) bool { return covers(b.pkg, s.pkg) })
		switch {
		case !found && b.there:
			t.Errorf("package %s is in the table and must exist, but does not", b.pkg)
		case !found:
			t.Logf("not there yet, so not checked: %s", b.pkg)
		}
		for _, a := range b.may {
			if a.because == "" {
				t.Errorf("the table allows %s to import %s without a reason", b.pkg, a.to)
			}
		}
	}
}

func TestImports_Finds(t *testing.T) {
	ours := modulePath + "/"
	for _, c := range []struct{ name, imports, want string }{
		{"datatree/a.go", ours + "wal", "datatree may not import wal"},
		{"datatree/a.go", "github.com/hashicorp/go-hclog", "may not import"},
		{"session/a.go", ours + "proto/jute", "may not import proto/jute"},
		{"datatree/a.go", ours + "proto", ""},
		{"datatree/a_test.go", ours + "wal", ""},
		{"server/a.go", ours + "cmd/gozkd/internal/config", "server may not import cmd/gozkd/internal/config"},
		{"consensus/a.go", "go.etcd.io/raft/v3/raftpb", ""},
		{"consensus/a.go", "go.etcd.io/raftish", "may not import"},
		{"test/compat/a.go", ours + "server", "may not import server"},
		{"elsewhere/a.go", "fmt", "not in the table"},
	} {
		mustFind(t, brokenArrows, sample(t, c.name, fmt.Sprintf("package p\nimport %q\n", c.imports)), c.want)
	}
}
