//go:build unix

package vfs

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// noFollow makes an open fail at a symbolic link.
const noFollow = unix.O_NOFOLLOW

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockFile uses flock instead of fcntl: an fcntl lock does not exclude the same process, and is
// released when any descriptor of the file is closed.
func lockFile(f *os.File) error { return flock(f, unix.LOCK_EX) }

func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

func unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	runtime.KeepAlive(f)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}
