package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// LockForReading acquires the lock file name in shared mode, until Close of the result, so that
// [FS.Lock] fails meanwhile. It writes nothing. If the file does not exist, no process has ever
// held the lock, and nothing is locked. Errors are those of [FS.Lock].
func LockForReading(name string) (io.Closer, error) {
	f, err := openLock(name, os.O_RDONLY, lockShared)
	if errors.Is(err, fs.ErrNotExist) {
		return io.NopCloser(nil), nil
	}
	if err != nil {
		return nil, err
	}
	return fileLock{osFile{f}}, nil
}
