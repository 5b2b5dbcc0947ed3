package vfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// crowded is a file system of a process that may have no free descriptor.
type crowded struct {
	OS
	err   atomic.Pointer[error] // that of operations; nil: there are free descriptors
	calls atomic.Int64
}

func (c *crowded) full() error {
	c.calls.Add(1)
	if err := c.err.Load(); err != nil {
		return *err
	}
	return nil
}

func (c *crowded) Create(name string) (File, error) {
	if err := c.full(); err != nil {
		return nil, err
	}
	return c.OS.Create(name)
}

func (c *crowded) Open(name string) (File, error) {
	if err := c.full(); err != nil {
		return nil, err
	}
	return c.OS.Open(name)
}

func (c *crowded) OpenRW(name string) (File, error) {
	if err := c.full(); err != nil {
		return nil, err
	}
	return c.OS.OpenRW(name)
}

func (c *crowded) MkdirAll(dir string) error { return errors.Join(c.full(), c.OS.MkdirAll(dir)) }
func (c *crowded) SyncDir(string) error      { return c.full() }

func (c *crowded) ReadDir(dir string) ([]string, error) {
	if err := c.full(); err != nil {
		return nil, err
	}
	return c.OS.ReadDir(dir)
}

func TestPatient(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	closed := func(f File, err error) error {
		if err != nil {
			return err
		}
		return f.Close()
	}
	ops := []struct {
		name string
		do   func(fs FS) error
	}{
		{"Create", func(fs FS) error { return closed(fs.Create(path)) }},
		{"Open", func(fs FS) error { return closed(fs.Open(path)) }},
		{"OpenRW", func(fs FS) error { return closed(fs.OpenRW(path)) }},
		{"MkdirAll", func(fs FS) error { return fs.MkdirAll(dir) }},
		{"SyncDir", func(fs FS) error { return fs.SyncDir(dir) }},
		{"ReadDir", func(fs FS) error {
			names, err := fs.ReadDir(dir)
			if err == nil && (len(names) != 1 || names[0] != "f") {
				err = errors.New("not the file in the directory")
			}
			return err
		}},
	}
	for _, op := range ops {
		for _, none := range []error{syscall.EMFILE, syscall.ENFILE} {
			synctest.Test(t, func(t *testing.T) {
				c, warned := new(crowded), 0
				disk := Patient(c, func(err error) {
					if warned++; !errors.Is(err, none) {
						t.Errorf("%s: warned of %v", op.name, err)
					}
				})
				if err := op.do(disk); err != nil || warned != 0 || c.calls.Load() != 1 {
					t.Errorf("%s with free descriptors: %v, %d warnings, %d calls", op.name, err, warned, c.calls.Load())
				}
				c.err.Store(&none)
				const wait = patience / 2
				time.AfterFunc(wait, func() { c.err.Store(nil) }) // somebody closes a connection
				begin := time.Now()
				if err := op.do(disk); err != nil || warned != 1 {
					t.Errorf("%s: %v, %d warnings", op.name, err, warned)
				}
				if took := time.Since(begin); took < wait || took > wait+time.Second {
					t.Errorf("%s: after %v, want %v", op.name, took, wait)
				}
				c.err.Store(&none)
				begin = time.Now()
				if err := op.do(disk); !errors.Is(err, none) || time.Since(begin) < patience {
					t.Errorf("%s: %v after %v", op.name, err, time.Since(begin))
				}
			})
		}
	}
}

// Another error is not worth waiting for.
func TestPatient_OtherErrors(t *testing.T) {
	c, other := new(crowded), error(fs.ErrPermission)
	c.err.Store(&other)
	disk := Patient(c, func(err error) { t.Errorf("warned of %v", err) })
	if _, err := disk.Open("f"); !errors.Is(err, other) || c.calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, c.calls.Load())
	}
}
