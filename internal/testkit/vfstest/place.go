package vfstest

import (
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/vfs"
)

// RemoveAll removes a directory and all below it. Open files stay usable, as on Unix.
func (m *Mem) RemoveAll(dir string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for path := range m.dirs {
		if below(path, dir) {
			delete(m.dirs, path)
		}
	}
}

// Replace replaces a directory and all below it by a copy, in which all files are others.
func (m *Mem) Replace(dir string) {
	everything := m.Crash(func(n int) int { return n - 1 })
	m.mu.Lock()
	defer m.mu.Unlock()
	for path := range m.dirs {
		if below(path, dir) {
			m.dirs[path] = everything.dirs[path]
		}
	}
}

func below(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// InPlace implements [vfs.Placed].
func (l *memLock) InPlace() error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	d, _, err := l.m.dirOf("find", l.path)
	if err == nil && d != l.dir {
		err = &fs.PathError{Op: "find", Path: l.path, Err: vfs.ErrReplaced}
	}
	return err
}

// InPlace implements [vfs.Placed].
func (f *memFile) InPlace() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	d, base, err := f.m.dirOf("find", f.path)
	switch {
	case err != nil:
		return err
	case d.names[base] == nil:
		err = fs.ErrNotExist
	case d.names[base] != f.inode:
		err = vfs.ErrReplaced
	default:
		return nil
	}
	return &fs.PathError{Op: "find", Path: f.path, Err: err}
}
