package typecheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

// TestCheck changes a package of two files, of which one uses the other.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/p\n\ngo 1.26\n",
		"a.go":   "package p\n\nimport \"strings\"\n\nfunc A() string { return strings.ToUpper(B()) }\n\nfunc init() {}\n\nfunc C[T any](T) {}\n",
		"b.go":   "package p\n\nfunc B() string { return \"b\" }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree := List(dir, "./...")
	for _, c := range []struct{ name, text, want string }{
		{"b.go", "package p\n\nfunc B() string { return \"c\" }\n", ""},
		{"b.go", "package p\n\nfunc B() string { return 1 }\n", "b.go:3:26: cannot use 1"},
		{"b.go", "package p\n\nfunc B() string { x := \"b\"; return \"b\" }\n", "b.go:3:19: declared and not used"},
		{"b.go", "package p\n\nfunc B() int { return 1 }\n", "a.go:5:42: cannot use B()"},
		{"b.go", "package p\n\nfunc B() string {\n", "expected '}'"},
		{"a.go", "package p\n\nimport \"strings\"\n\nfunc A() string { return B() }\n\nfunc init() {}\n\nfunc C[T any](T) {}\n", "\"strings\" imported and not used"},
		{"c.go", "package p\n\nfunc B() string { return \"\" }\n", "B redeclared"},
	} {
		_, _, err := tree.Check(".", map[string][]byte{filepath.Join(dir, c.name): []byte(c.text)}, nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s is\n%s%v, want %q", c.name, c.text, err, c.want)
		}
	}
}
