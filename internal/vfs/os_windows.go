package vfs

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/windows"
)

func syncDir(string) error { return nil }

// lockFile locks one byte far behind the contents: locks are mandatory here, and whoever is refused reads the process id.
func lockFile(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	runtime.KeepAlive(f)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
