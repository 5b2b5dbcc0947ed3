//go:build !unix

package consensus

import (
	"os"

	"github.com/gozkd/gozkd/internal/vfs"
)

// lockFile does nothing: the data directory is locked.
func lockFile(vfs.File, bool) error { return nil }

// unlockFile does nothing: Windows releases the locks of a file when it is closed.
func unlockFile(*os.File) {}
