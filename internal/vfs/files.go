package vfs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"path/filepath"
)

// ReadFile returns the contents of a file.
func ReadFile(disk FS, name string) (b []byte, err error) {
	f, err := disk.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.NewSectionReader(f, 0, math.MaxInt64))
}

// WriteFile makes a file with the given contents, or replaces those of an existing file, and syncs
// the file but not its directory.
func WriteFile(disk FS, name string, b []byte) error {
	f, err := disk.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Sync(), f.Close())
}

// Exists reports whether a file exists.
func Exists(disk FS, name string) (bool, error) {
	f, err := disk.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, f.Close()
}

// SizeBelow returns the total size of the files below a directory of the operating system. What
// can't be read, or is removed meanwhile, counts nothing.
func SizeBelow(dir string) (total int64) {
	// The function never returns an error, and then WalkDir returns none.
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}
