package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/vfs"
)

// writeNew makes the file at path, with what fill writes to a file aside. It appears under its name only when it was read again and is good, and
// never in the place of another. want is what it must hold; nil: whatever it holds.
func writeNew(path string, fill func(aside string) error, want *source) (_ *source, err error) {
	if err := mustNotExist(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	folder, err := os.MkdirTemp(dir, "."+filepath.Base(path)+".unfinished-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	aside := filepath.Join(folder, "checkpoint.db")
	if err := fill(aside); err != nil {
		return nil, err
	}
	got, err := readSource(aside, "")
	if err != nil {
		return nil, fmt.Errorf("the backup is not good, it was read again: %w", err)
	}
	if want != nil && (got.tree.Digest() != want.tree.Digest() || got.tree.LastZxid() != want.tree.LastZxid() || got.held.Index != want.held.Index) {
		return nil, fmt.Errorf("the backup is not good: it has zxid %v and digest %#x, the source has %v and %#x",
			got.tree.LastZxid(), got.tree.Digest(), want.tree.LastZxid(), want.tree.Digest())
	}
	if err := give(aside, path); err != nil {
		return nil, err
	}
	got.path = path
	return got, vfs.OS{}.SyncDir(dir)
}

func mustNotExist(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s is there already: a backup never takes the place of a file", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// give gives a file its name. A link never replaces what is there; where the file system has none, a file that another process makes in the same
// moment would be replaced.
func give(aside, path string) error {
	err := os.Link(aside, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := mustNotExist(path); err != nil {
		return err
	}
	return os.Rename(aside, path)
}
