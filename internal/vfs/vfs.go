package vfs

import (
	"errors"
	"io"
)

// ErrLocked is wrapped by the error of [FS.Lock] when somebody else holds the lock.
var ErrLocked = errors.New("vfs: locked")

// FS is a file system. Names are paths in the form of the operating system; "/" and the names that
// [path/filepath.Join] makes work everywhere. Missing files are reported with an error that wraps [io/fs.ErrNotExist].
//
// A change of a directory (Create of a new name, Remove, Rename) survives a power loss only after SyncDir of that
// directory; until then any subset of the changes may survive. A Rename is atomic: it happened or it did not.
//
// Safe for concurrent use.
type FS interface {
	// Create makes an empty file for reading and writing, or empties the one that is there.
	Create(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (File, error)
	// OpenRW opens a file that exists for reading and writing.
	OpenRW(name string) (File, error)
	Remove(name string) error
	// Rename moves a file within its directory and replaces what was there. The file must not be open: Windows
	// refuses to rename open files.
	Rename(oldName, newName string) error
	// ReadDir returns the names (not paths) in a directory, sorted.
	ReadDir(dir string) ([]string, error)
	// MkdirAll makes a directory and its parents where they are missing; when it returns they survive a power loss.
	MkdirAll(dir string) error
	// SyncDir makes all earlier changes of the directory durable. Windows has no such call: there it does nothing,
	// NTFS journals changes of directories in order.
	SyncDir(dir string) error
	// Lock takes the lock file name, which it makes if need be and which stays when the lock is released. The lock
	// ends with Close of the result or with the process. While somebody else holds it, in this process or another, Lock
	// fails at once with an error that wraps [ErrLocked] and names the holder's process id where it is known.
	Lock(name string) (io.Closer, error)
}

// File is an open file. Reads may run beside each other; a write may not run beside anything else.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Sync returns when all that was written, and the size of the file, survives a power loss. After an error nothing is
	// known of what was written since the last success, and a second Sync that succeeds says nothing either: the
	// kernel may have dropped the pages. Only writing the data again helps.
	Sync() error
	// Size returns the length in bytes.
	Size() (int64, error)
	// Preallocate writes n zero bytes at off, so that later writes there change neither the file's size nor its
	// allocation and a Sync has only data to write. Not durable until Sync.
	Preallocate(off, n int64) error
}
