package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// LockForReading keeps others from taking the lock file name until Close of the result, and writes nothing: several may hold it so beside each
// other. Where the file is not there, nobody has ever taken the lock, and nothing is locked. It fails as [FS.Lock] does.
func LockForReading(name string) (io.Closer, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	if err := lockShared(f); err != nil {
		holder := ""
		if errors.Is(err, ErrLocked) {
			holder = lockHolder(f)
		}
		return nil, errors.Join(fmt.Errorf("vfs: lock %s%s: %w", name, holder, err), f.Close())
	}
	return f, nil // closing the file releases the lock
}
