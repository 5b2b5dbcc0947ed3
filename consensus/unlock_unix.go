//go:build unix

package consensus

import (
	"os"
	"syscall"
)

// unlockFile releases the lock that bbolt took. Closing the file alone does not, as long as a mapping of it is left.
func unlockFile(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // it may not have been locked yet
}
