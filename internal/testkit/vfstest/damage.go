package vfstest

import (
	"os"
	"path/filepath"
	"testing"
)

// DamagedCheckpoints makes data directories below dir from which no server can start.
func DamagedCheckpoints(t testing.TB, dir string, members ...string) {
	t.Helper()
	for _, id := range members {
		if err := os.MkdirAll(filepath.Join(dir, id), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, id, "checkpoint.db"), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
