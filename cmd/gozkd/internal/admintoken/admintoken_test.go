package admintoken_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/admintoken"
)

// The token is made once, only its owner can read it, and what is no private token is replaced
// without following a link.
func TestEnsure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "data")
	ensure := func() string {
		t.Helper()
		path, err := admintoken.Ensure(dir)
		if err != nil || path != admintoken.Path(dir) {
			t.Fatal(path, err)
		}
		token, _, err := admintoken.Read(path)
		if err != nil || len(token) < admintoken.MinBytes {
			t.Fatal(token, err)
		}
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Fatal(info.Mode(), err)
		}
		return token
	}
	first := ensure()
	if again := ensure(); again != first {
		t.Error("another token at the second start")
	}
	target := filepath.Join(t.TempDir(), "target")
	for what, spoil := range map[string]func(path string) error{
		"empty":    func(path string) error { return os.Truncate(path, 0) },
		"readable": func(path string) error { return os.Chmod(path, 0o644) },
		"a link": func(path string) error {
			if err := os.WriteFile(target, []byte("0123456789abcdef"), 0o600); err != nil {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(target, path)
		},
	} {
		if runtime.GOOS == "windows" && what != "empty" {
			continue
		}
		before := ensure()
		if err := spoil(admintoken.Path(dir)); err != nil {
			t.Fatal(err)
		}
		if ensure() == before {
			t.Errorf("%s: the token stays", what)
		}
	}
	if runtime.GOOS != "windows" {
		if text, err := os.ReadFile(target); err != nil || string(text) != "0123456789abcdef" {
			t.Errorf("the target of the link holds %q, %v", text, err)
		}
	}
}
