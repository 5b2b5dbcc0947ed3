package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gozkd/gozkd/internal/vfs"
)

// unfinished begins the names of files that are being written, or that a crash has left.
const unfinished = ".unfinished-"

// dir is a directory. It must exist, so that nothing is written where a file system is not mounted.
type dir struct{ root string }

func newDir(path string) dir {
	if runtime.GOOS == "windows" { // file:///C:/archive
		path = strings.TrimPrefix(path, "/")
	}
	return dir{filepath.FromSlash(path)}
}

func (d dir) String() string { return d.root }

func (d dir) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func (d dir) check() error {
	info, err := os.Stat(d.root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("archive: the directory %s does not exist: make it, or mount its file system", d.root)
	case err == nil && !info.IsDir():
		return fmt.Errorf("archive: %s is a file: name a directory", d.root)
	}
	return err
}

func (d dir) Put(ctx context.Context, name string, data []byte) (err error) {
	if err := errors.Join(ctx.Err(), d.check()); err != nil {
		return err
	}
	path := d.path(name)
	if err := (vfs.OS{}).MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	err = vfs.WriteWhole(path, unfinished, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	return errors.Join(err, vfs.OS{}.SyncDir(filepath.Dir(path)))
}

func (d dir) Get(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return b, err
}

// List relies on WalkDir's order, which is that of the names, except that a folder's name is
// compared without the slash after it, which no two names of an archive notice.
func (d dir) List(ctx context.Context, prefix, after string) (list []Object, err error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	top := path.Clean(prefix[:strings.LastIndexByte(prefix, '/')+1])
	err = fs.WalkDir(os.DirFS(d.root), top, func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // nothing was written yet, or it was deleted meanwhile
			return nil
		case err != nil:
			return err
		case e.IsDir():
			return ctx.Err()
		}
		if !strings.HasPrefix(name, prefix) || name <= after || strings.HasPrefix(e.Name(), unfinished) {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			list = append(list, Object{name, info.Size(), info.ModTime()})
		}
		return err
	})
	return list, err
}

// Delete also removes a folder that is empty afterwards.
func (d dir) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := os.Remove(d.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(d.path(name))) // fails unless it is empty
	return nil
}
