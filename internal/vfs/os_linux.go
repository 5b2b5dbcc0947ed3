package vfs

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// datasync leaves out what fsync adds: access and modification times, which cost a journal commit for nothing.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		runtime.KeepAlive(f)
		// An interrupted call did not fail: no write-back error was taken off the file's account.
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
		return nil
	}
}

func allocate(f *os.File, off, n int64) error {
	for {
		err := unix.Fallocate(int(f.Fd()), 0, off, n)
		runtime.KeepAlive(f)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return nil // not every file system can; the zeros allocate as well
		}
		return err
	}
}
