package vfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// process has a number of free descriptors, of which each open file and each call of SyncDir takes
// one.
type process struct {
	OS
	mu   sync.Mutex // guards free
	free int
}

func (p *process) take() (io.Closer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == 0 {
		return nil, syscall.EMFILE
	}
	p.free--
	return p, nil
}

func (p *process) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	return nil
}

type processFile struct {
	File
	p *process
}

func (f processFile) Close() error {
	return errors.Join(f.p.Close(), f.File.Close())
}

func (p *process) Create(name string) (File, error) {
	if _, err := p.take(); err != nil {
		return nil, err
	}
	f, err := p.OS.Create(name)
	return processFile{f, p}, err
}

func (p *process) SyncDir(string) error {
	c, err := p.take()
	if err == nil {
		err = c.Close()
	}
	return err
}

func TestReserve_NoDescriptorLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, warned := &process{free: 2}, 0
		r := &Reserve{size: 2, open: p.take, warn: func(error) { warned++ }}
		r.fill()
		fs, path := r.FS(p), filepath.Join(t.TempDir(), "f")
		create := func() File {
			t.Helper()
			f, err := fs.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if p.free != 0 || warned != 0 {
			t.Fatalf("%d descriptors are free, %d warnings", p.free, warned)
		}
		a, b := create(), create()
		if warned != 2 || len(r.spare) != 0 {
			t.Errorf("%d warnings, %d spare descriptors", warned, len(r.spare))
		}
		time.AfterFunc(time.Second, func() { _ = p.Close() }) // somebody closes a connection
		if err := fs.SyncDir("."); err != nil {
			t.Error(err)
		}
		if len(r.spare) != 1 {
			t.Errorf("%d spare descriptors after a call that took one for a moment", len(r.spare))
		}
		if err := a.Close(); err != nil || len(r.spare) != 2 {
			t.Errorf("%v, %d spare descriptors after a file was closed", err, len(r.spare))
		}
		if err := b.Close(); err != nil || p.free != 1 {
			t.Errorf("%v, %d free descriptors", err, p.free)
		}
		r.Close()
		if p.free != 3 {
			t.Errorf("%d free descriptors at the end", p.free)
		}
		p.free = 0
		begin := time.Now()
		if err := fs.SyncDir("."); !NoDescriptor(err) || time.Since(begin) < reservePatience {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// missing is a process without any file.
type missing struct{ *process }

func (m missing) Open(string) (File, error) {
	d, err := m.take() // the system looks for the name afterwards
	if err != nil {
		return nil, err
	}
	return nil, errors.Join(fs.ErrNotExist, d.Close())
}

// An operation that fails, although the reserve gave it a descriptor, gives it back.
func TestReserve_FailedOpen(t *testing.T) {
	p := &process{free: 2}
	r := &Reserve{size: 2, open: p.take, warn: func(error) {}}
	r.fill()
	for range 3 {
		if _, err := r.FS(missing{p}).Open("f"); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if len(r.spare) != 2 {
			t.Fatalf("%d spare descriptors are left of 2", len(r.spare))
		}
	}
}

func TestReserve_Real(t *testing.T) {
	r := NewReserve(2, func(error) {})
	if len(r.spare) != 2 {
		t.Errorf("%d descriptors", len(r.spare))
	}
	r.Close()
	if f, err := r.FS(OS{}).Create(filepath.Join(t.TempDir(), "f")); err != nil || f.Close() != nil {
		t.Error(err)
	}
}
