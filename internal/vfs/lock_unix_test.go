//go:build unix

package vfs_test

import (
	"io"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/vfs"
)

// TestOS_LockIsReleasedByClose: a lock is released by Close although another process has the
// descriptor, as one that is being started has for a moment.
func TestOS_LockIsReleasedByClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "LOCK")
	for name, lock := range map[string]func(string) (io.Closer, error){"Lock": exclusive, "LockForReading": vfs.LockForReading} {
		if err := first(exclusive(path)).Close(); err != nil { // makes the file
			t.Fatal(err)
		}
		held := first(lock(path))
		inherited, err := unix.Dup(int(held.(interface{ Fd() uintptr }).Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if err := held.Close(); err != nil {
			t.Error(err)
		}
		again, err := vfs.OS{}.Lock(path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		if err := unix.Close(inherited); err != nil {
			t.Error(err)
		}
	}
}

func exclusive(path string) (io.Closer, error) { return vfs.OS{}.Lock(path) }

// first returns v, and panics if there is an error.
func first(v io.Closer, err error) io.Closer {
	if err != nil {
		panic(err)
	}
	return v
}
