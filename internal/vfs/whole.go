package vfs

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteWhole makes or replaces a file of the operating system that appears whole, also after a
// crash. fill writes it under a temporary name beside it, of pattern temporary (see os.CreateTemp),
// where only its owner can read it. After an error the previous file is still there.
func WriteWhole(path, temporary string, fill func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
