//go:build unix

package consensus

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/vfs"
)

// lockFile locks a checkpoint file as bbolt does, for a tool that may look into it. It waits a second at most.
func lockFile(f vfs.File, exclusive bool) error {
	file, ok := f.(interface{ Fd() uintptr })
	if !ok { // in memory
		return nil
	}
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	const step, tries = 50 * time.Millisecond, 20
	for try := 1; ; try++ {
		err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return fmt.Errorf("flock: %w", err)
		case try == tries:
			return errFileInUse
		}
		time.Sleep(step)
	}
}

// unlockFile releases the lock. Closing the file alone does not, as long as bbolt has a mapping of it.
func unlockFile(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // it may not have been locked yet
}
