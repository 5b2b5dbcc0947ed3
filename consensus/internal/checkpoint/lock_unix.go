//go:build unix

package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/vfs"
)

// lockFile locks a checkpoint file as bbolt does, until the file is closed. A tool may read the
// file of a running server, and sees a single transaction while it holds the lock. A reader waits a
// second at most. A writer waits a minute, in which a tool finishes as a rule.
func lockFile(f vfs.File, exclusive bool) error {
	file, ok := f.(interface{ Fd() uintptr })
	if !ok { // in memory
		return nil
	}
	const step = 50 * time.Millisecond
	how, tries := syscall.LOCK_SH, int(time.Second/step)
	if exclusive {
		how, tries = syscall.LOCK_EX, int(time.Minute/step)
	}
	for try := 1; ; try++ {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("flock: %w", err)
		case try == tries:
			return ErrInUse
		}
		time.Sleep(step)
	}
}

// duplicate returns another descriptor of an open file, which is the same file even if a server
// has replaced it meanwhile.
func duplicate(f vfs.File, path string) (*os.File, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Dup(int(f.(interface{ Fd() uintptr }).Fd()))
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), path), nil
}
