package vfstest

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Fingerprint returns a hash of all files of a directory of the operating system, or of one file.
func Fingerprint(t testing.TB, path string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(h, "%s %d\n%s", path, len(data), data) // a hash never fails
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
