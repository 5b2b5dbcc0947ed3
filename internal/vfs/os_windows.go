package vfs

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/windows"
)

// noFollow has no counterpart among the flags of Go's os package for Windows.
const noFollow = 0

func syncDir(string) error { return nil }

// lockFile locks one byte far after the contents: locks are mandatory on Windows, and a process
// that is refused must be able to read the process id.
func lockFile(f *os.File) error { return lockByte(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func lockShared(f *os.File) error { return lockByte(f, 0) }

// unlock does nothing: a process that is started has no descriptors of this one, so closing the
// file releases the lock.
func unlock(*os.File) error { return nil }

func lockByte(f *os.File, how uint32) error {
	at := windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	runtime.KeepAlive(f)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
