package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/vfs"
)

// writeNew makes the file at path. fill writes the file under a temporary name. The file gets its
// final name after it was read back and verified, and never replaces another file. If want is not
// nil, the file must hold the same state.
func writeNew(path string, fill func(temporary string) error, want *source) (_ *source, err error) {
	if err := mustNotExist(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	folder, err := os.MkdirTemp(dir, "."+filepath.Base(path)+".unfinished-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	temporary := filepath.Join(folder, "checkpoint.db")
	if err := fill(temporary); err != nil {
		return nil, err
	}
	got, err := readSource(temporary, "")
	if err != nil {
		return nil, fmt.Errorf("the backup is not good: it was written, and reading it back failed: %w", err)
	}
	if want != nil && (got.tree.Digest() != want.tree.Digest() || got.tree.LastZxid() != want.tree.LastZxid() || got.held.Index != want.held.Index) {
		return nil, fmt.Errorf("the backup is not good: it has zxid %v and digest %#x, the source has %v and %#x",
			got.tree.LastZxid(), got.tree.Digest(), want.tree.LastZxid(), want.tree.Digest())
	}
	if err := giveName(temporary, path); err != nil {
		return nil, err
	}
	got.path = path
	return got, vfs.OS{}.SyncDir(dir)
}

func mustNotExist(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s exists: a backup never replaces a file; choose another name", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// giveName gives the temporary file its name. A link never replaces a file. On a file system
// without links a file would be replaced if another process made it at this very moment.
func giveName(temporary, path string) error {
	err := os.Link(temporary, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := mustNotExist(path); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
