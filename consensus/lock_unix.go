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

// lockFile locks a checkpoint file as bbolt does: a tool may look into that of a running server, and sees one transaction as long as it does. Who reads
// waits a second at most. Who writes waits a minute, in which a tool has read it: a server stops if it can't write its checkpoint.
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
			return errFileInUse
		}
		time.Sleep(step)
	}
}

// unlockFile releases the lock. Closing the file alone does not, as long as bbolt has a mapping of it.
func unlockFile(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // it may not have been locked yet
}
