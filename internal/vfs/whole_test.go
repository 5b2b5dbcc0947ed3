package vfs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A file that cannot be filled leaves the previous one, and no other.
func TestWriteWhole_Replaces(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	full := errors.New("no room")
	for i, c := range []struct {
		text string
		fail error
		want string
	}{{"one", nil, "one"}, {"two", full, "one"}, {"three", nil, "three"}} {
		err := WriteWhole(path, "file.part-*", func(f *os.File) error {
			_, err := f.WriteString(c.text)
			return errors.Join(err, c.fail)
		})
		if !errors.Is(err, c.fail) {
			t.Errorf("%d: %v, want %v", i, err, c.fail)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
			t.Errorf("%d: %q, %v, want %q", i, got, err, c.want)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
