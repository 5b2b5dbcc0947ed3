//go:build !unix

package consensus

import (
	"os"

	"github.com/gozkd/gozkd/internal/vfs"
)

// lockFile does nothing: no other server has the file, since the data directory is locked. A tool that reads it meanwhile may find pages of two
// transactions, which is an error that says that the file is damaged.
func lockFile(vfs.File, bool) error { return nil }

// unlockFile does nothing: Windows releases the locks of a file when it is closed.
func unlockFile(*os.File) {}
