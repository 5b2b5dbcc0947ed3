package vfs

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// datasync calls fdatasync. Unlike fsync, it leaves out access and modification times, which would
// cost a journal commit.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		runtime.KeepAlive(f)
		// An interrupted call reported no write-back error, so it can be repeated.
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
			return nil // not every file system supports fallocate; writing the zeros allocates as well
		}
		return err
	}
}
