package secretfile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/secretfile"
)

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(path, []byte("12345678"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, shared, err := secretfile.Read(path, 8); string(text) != "12345678" || shared != "" || err != nil {
		t.Errorf("%s, %q, %v", text, shared, err)
	}
	if _, _, err := secretfile.Read(path, 7); err == nil || !strings.Contains(err.Error(), "more than 7 bytes") || strings.Contains(err.Error(), "123") {
		t.Error(err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, shared, err := secretfile.Read(path, 8); shared != "" || err != nil {
		t.Errorf("%q, %v", shared, err)
	}
	if err := os.Chmod(path, 0o604); err != nil {
		t.Fatal(err)
	}
	if _, shared, err := secretfile.Read(path, 8); !strings.Contains(shared, "chmod o= "+path) || err != nil {
		t.Errorf("%q, %v", shared, err)
	}
}
