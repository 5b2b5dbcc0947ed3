package vfstest

import (
	"errors"

	"github.com/gozkd/gozkd/internal/vfs"
)

// OpKind is the kind of an [Op].
type OpKind string

// The operations that a hook of [NewFaulty] sees. Reads are among them; Close and Size are not.
const (
	OpCreate      OpKind = "create"
	OpOpen        OpKind = "open" // Open and OpenRW
	OpRemove      OpKind = "remove"
	OpRename      OpKind = "rename"
	OpReadDir     OpKind = "readdir"
	OpMkdirAll    OpKind = "mkdir"
	OpSyncDir     OpKind = "syncdir"
	OpLock        OpKind = "lock"
	OpRead        OpKind = "read"
	OpWrite       OpKind = "write"
	OpSync        OpKind = "sync"
	OpPreallocate OpKind = "preallocate"
)

// Op is an operation that is about to run.
type Op struct {
	Kind OpKind
	Path string // the old name of a rename
	// Bytes is how many bytes a write or a preallocation writes.
	Bytes int64
}

// ShortWrite is an error for hooks to return on OpWrite: the first N bytes are written, and the
// write returns Err.
type ShortWrite struct {
	N   int
	Err error
}

func (e *ShortWrite) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *ShortWrite) Unwrap() error { return e.Err }

type faultyFS struct {
	fs   vfs.FS
	hook func(Op) error
}

type faultyFile struct {
	f    vfs.File
	fs   *faultyFS
	path string
}

// NewFaulty returns fs with a hook that runs before each operation, on the goroutine of the caller.
// If the hook returns an error, the operation does not run (except for [ShortWrite]) and returns
// that error.
func NewFaulty(fs vfs.FS, hook func(Op) error) vfs.FS { return &faultyFS{fs: fs, hook: hook} }

func (y *faultyFS) Create(name string) (vfs.File, error) {
	return y.open(OpCreate, name, y.fs.Create)
}

func (y *faultyFS) Open(name string) (vfs.File, error) { return y.open(OpOpen, name, y.fs.Open) }

func (y *faultyFS) OpenRW(name string) (vfs.File, error) { return y.open(OpOpen, name, y.fs.OpenRW) }

func (y *faultyFS) Remove(name string) error {
	return y.before(Op{Kind: OpRemove, Path: name}, func() error { return y.fs.Remove(name) })
}

func (y *faultyFS) Rename(oldName, newName string) error {
	return y.before(Op{Kind: OpRename, Path: oldName}, func() error { return y.fs.Rename(oldName, newName) })
}

func (y *faultyFS) ReadDir(dir string) ([]string, error) {
	return hooked(y, Op{Kind: OpReadDir, Path: dir}, func() ([]string, error) { return y.fs.ReadDir(dir) })
}

func (y *faultyFS) MkdirAll(dir string) error {
	return y.before(Op{Kind: OpMkdirAll, Path: dir}, func() error { return y.fs.MkdirAll(dir) })
}

func (y *faultyFS) SyncDir(dir string) error {
	return y.before(Op{Kind: OpSyncDir, Path: dir}, func() error { return y.fs.SyncDir(dir) })
}

func (y *faultyFS) Lock(name string) (vfs.Lock, error) {
	return hooked(y, Op{Kind: OpLock, Path: name}, func() (vfs.Lock, error) { return y.fs.Lock(name) })
}

func (y *faultyFS) open(kind OpKind, name string, open func(string) (vfs.File, error)) (vfs.File, error) {
	f, err := hooked(y, Op{Kind: kind, Path: name}, func() (vfs.File, error) { return open(name) })
	if err != nil {
		return nil, err
	}
	return &faultyFile{f: f, fs: y, path: name}, nil
}

// hooked runs an operation after the hook, unless the hook returns an error.
func hooked[T any](y *faultyFS, op Op, run func() (T, error)) (result T, err error) {
	if err = y.hook(op); err != nil {
		return result, err
	}
	return run()
}

// before is hooked for an operation without a result.
func (y *faultyFS) before(op Op, run func() error) error {
	_, err := hooked(y, op, func() (struct{}, error) { return struct{}{}, run() })
	return err
}

func (f *faultyFile) ReadAt(p []byte, off int64) (int, error) {
	return hooked(f.fs, Op{Kind: OpRead, Path: f.path}, func() (int, error) { return f.f.ReadAt(p, off) })
}

func (f *faultyFile) WriteAt(p []byte, off int64) (int, error) {
	err := f.fs.hook(Op{Kind: OpWrite, Path: f.path, Bytes: int64(len(p))})
	if err == nil {
		return f.f.WriteAt(p, off)
	}
	var short *ShortWrite
	if !errors.As(err, &short) {
		return 0, err
	}
	n, writeErr := f.f.WriteAt(p[:min(short.N, len(p))], off)
	if writeErr != nil {
		return n, writeErr
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	return f.fs.before(Op{Kind: OpSync, Path: f.path}, f.f.Sync)
}

func (f *faultyFile) Preallocate(off, n int64) error {
	return f.fs.before(Op{Kind: OpPreallocate, Path: f.path, Bytes: n}, func() error { return f.f.Preallocate(off, n) })
}

func (f *faultyFile) Size() (int64, error) { return f.f.Size() }
func (f *faultyFile) InPlace() error       { return f.f.InPlace() }
func (f *faultyFile) Close() error         { return f.f.Close() }
