package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// OS is the operating system's file system.
type OS struct{}

var _ FS = OS{}

type osFile struct{ *os.File }

// Create implements [FS].
func (OS) Create(name string) (File, error) {
	return wrapOS(os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600))
}

// Open implements [FS].
func (OS) Open(name string) (File, error) { return wrapOS(os.Open(name)) }

// OpenRW implements [FS].
func (OS) OpenRW(name string) (File, error) { return wrapOS(os.OpenFile(name, os.O_RDWR, 0)) }

// Remove implements [FS].
func (OS) Remove(name string) error { return os.Remove(name) }

// Rename implements [FS].
func (OS) Rename(o, n string) error { return os.Rename(o, n) }

// SyncDir implements [FS].
func (OS) SyncDir(dir string) error { return syncDir(dir) }

// ReadDir implements [FS].
func (OS) ReadDir(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// MkdirAll implements [FS].
func (o OS) MkdirAll(dir string) error {
	dir = filepath.Clean(dir)
	parent := filepath.Dir(dir)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		// The call that made dir may have died before it synced the parent. Errors other than EIO
		// come from a parent that this process cannot have changed.
		if err := syncDir(parent); errors.Is(err, syscall.EIO) {
			return err
		}
		return nil
	}
	if parent != dir {
		if err := o.MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// If another process made the directory, it may not have synced the parent yet: sync anyway.
	return syncDir(parent)
}

// Lock implements [FS].
func (OS) Lock(name string) (Lock, error) {
	f, err := openLock(name, os.O_RDWR|os.O_CREATE, lockFile)
	if err != nil {
		return nil, err
	}
	// The process id is for the error of a process that is refused; it locks nothing.
	pid := strconv.Itoa(os.Getpid()) + "\n"
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(pid), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("vfs: lock %s: %w", name, err), f.Close())
	}
	return fileLock{osFile{f}}, nil
}

type fileLock struct{ osFile }

// Close releases the lock before it closes the file: a process that is being started has all
// descriptors of this one for a moment, and would hold the lock.
func (l fileLock) Close() error { return errors.Join(unlock(l.File), l.File.Close()) }

// openLock opens a lock file and locks it. A symbolic link is not followed: its target would be
// overwritten with the process id.
func openLock(name string, flag int, lock func(*os.File) error) (*os.File, error) {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("vfs: lock %s: it is no regular file but %v: remove it", name, info.Mode().Type())
	}
	f, err := os.OpenFile(name, flag|noFollow, 0o600) // noFollow: a link may have taken the name since
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		holder := ""
		if errors.Is(err, ErrLocked) {
			holder = lockHolder(f)
		}
		return nil, errors.Join(fmt.Errorf("vfs: lock %s%s: %w", name, holder, err), f.Close())
	}
	return f, nil
}

// lockHolder returns " (held by process N)", or "" if the lock file does not name the process.
func lockHolder(f *os.File) string {
	buf := make([]byte, 20)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (held by process %d)", pid)
}

func (f osFile) Sync() error { return datasync(f.File) }

// InPlace compares the open file with the file that has its name now.
func (f osFile) InPlace() error {
	open, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Stat(f.Name())
	if err == nil && !os.SameFile(open, named) || errors.Is(err, syscall.ENOTDIR) {
		err = &fs.PathError{Op: "find", Path: f.Name(), Err: ErrReplaced}
	}
	return err
}

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f osFile) Preallocate(off, n int64) error {
	// Allocate the space first, so that a full disk is an error before anything is written. Then
	// write zeros: the first write to allocated but unwritten space changes metadata, and the next
	// sync would have to commit the journal.
	if err := allocate(f.File, off, n); err != nil {
		return &os.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	zeros := make([]byte, min(n, 256<<10))
	for n > 0 {
		m, err := f.WriteAt(zeros[:min(n, int64(len(zeros)))], off)
		if err != nil {
			return err
		}
		off += int64(m)
		n -= int64(m)
	}
	return nil
}

func wrapOS(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}
