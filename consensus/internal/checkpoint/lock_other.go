//go:build !unix

package checkpoint

import (
	"os"

	"github.com/gozkd/gozkd/internal/vfs"
)

// lockFile does nothing. No other server uses the file, since the data directory is locked. A tool
// that reads the file of a running server may find pages of two transactions, which is an error
// that says that the file is damaged.
func lockFile(vfs.File, bool) error { return nil }

// duplicate opens a file again. Nothing replaces it meanwhile: this system does not rename a file
// onto one that is open.
func duplicate(_ vfs.File, path string) (*os.File, error) { return os.Open(path) }
