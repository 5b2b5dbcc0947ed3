package vfs

import (
	"errors"
	"io"
)

// ErrLocked is wrapped by the error of [FS.Lock] when the lock is held already.
var ErrLocked = errors.New("in use: stop the process that holds the lock, or choose another directory")

// ErrReplaced is wrapped by the error of [Placed.InPlace] if the name leads to another file.
var ErrReplaced = errors.New("another file has its name")

// FS is a file system. Names are paths in the form of the operating system; "/" and the results of
// [path/filepath.Join] work everywhere. The error for a missing file wraps [io/fs.ErrNotExist].
//
// A change of a directory (Create of a new name, Remove, Rename) survives a power loss only after
// SyncDir of that directory. Until then any subset of the changes may survive. A Rename is atomic.
//
// Safe for concurrent use.
type FS interface {
	// Create makes an empty file for reading and writing. An existing file is truncated.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenRW opens an existing file for reading and writing.
	OpenRW(name string) (File, error)
	Remove(name string) error
	// Rename renames a file within its directory, and replaces an existing file. The file must not
	// be open: Windows refuses to rename open files.
	Rename(oldName, newName string) error
	// ReadDir returns the names (not paths) in a directory, sorted.
	ReadDir(dir string) ([]string, error)
	// MkdirAll makes a directory and its missing parents, which then survive a power loss.
	MkdirAll(dir string) error
	// SyncDir makes all earlier changes of the directory durable. On Windows it does nothing: there
	// is no such call, and NTFS journals changes of directories in order.
	SyncDir(dir string) error
	// Lock acquires the lock file name, which is created if necessary. The lock is released by
	// Close of the result or when the process ends; the file stays. While this process or another
	// holds the lock, Lock fails at once. The error wraps [ErrLocked] and names the process id of
	// the holder if it is known.
	Lock(name string) (Lock, error)
}

// Lock is a lock file that is held.
type Lock interface {
	io.Closer
	Placed
}

// Placed is a file that is open under a name.
type Placed interface {
	// InPlace returns nil while the name leads to this file. If the file or a directory above it
	// was removed, moved or replaced, the error wraps [io/fs.ErrNotExist] or [ErrReplaced]: nobody
	// will find what is written to the file. Any other error says nothing about that.
	InPlace() error
}

// File is an open file. Reads may run concurrently; a write must not with any other call.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Placed
	// Sync returns after all earlier writes, and the size of the file, are durable. After an error
	// the state of all writes since the last success is unknown, even if a later Sync succeeds: the
	// kernel may have dropped the pages. The data must be written again.
	Sync() error
	// Size returns the length in bytes.
	Size() (int64, error)
	// Preallocate writes n zero bytes at off. Later writes there change neither the size nor the
	// allocation of the file, so a Sync has only data to write. Sync makes the zeros durable.
	Preallocate(off, n int64) error
}
