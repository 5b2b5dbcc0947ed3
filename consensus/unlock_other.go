//go:build !unix

package consensus

import "os"

// unlockFile does nothing: Windows releases the locks of a file when it is closed.
func unlockFile(*os.File) {}
