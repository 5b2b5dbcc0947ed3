package vfs

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// reservePatience is how long an operation waits for a file descriptor when the reserve is used up.
const reservePatience = 10 * time.Second

// NoDescriptor reports whether an operation failed because the process, or the system, has no file
// descriptor left.
func NoDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Reserve holds file descriptors in reserve for file systems, so that connections that take all
// other descriptors of the process do not make a write fail. An operation that finds none left
// gives up one of the reserve and tries again. The reserve is filled up when that file is closed. A
// Reserve is safe for concurrent use.
type Reserve struct {
	open func() (io.Closer, error)

	mu    sync.Mutex // guards the rest
	spare []io.Closer
	size  int // 0 after Close
	warn  func(error)
}

// NewReserve opens n descriptors. warn is called when the reserve begins to be used.
func NewReserve(n int, warn func(error)) *Reserve {
	r := &Reserve{size: n, warn: warn, open: func() (io.Closer, error) { return os.Open(os.DevNull) }}
	r.fill()
	return r
}

// FS returns fs with this reserve.
func (r *Reserve) FS(fs FS) FS { return &reservedFS{fs, r} }

// Close closes the descriptors. The file systems stay usable.
func (r *Reserve) Close() {
	r.mu.Lock()
	r.size = 0
	r.mu.Unlock()
	for r.give() {
	}
}

// fill opens the descriptors that are missing, as far as there are any.
func (r *Reserve) fill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.spare) < r.size {
		f, err := r.open()
		if err != nil {
			return // the next time, then
		}
		r.spare = append(r.spare, f)
	}
}

// give closes a descriptor of the reserve, and returns false if there is none.
func (r *Reserve) give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.spare) == 0 {
		return false
	}
	last := len(r.spare) - 1
	_ = r.spare[last].Close() // nothing was written
	r.spare = r.spare[:last]
	return true
}

// use calls op until op does not lack a descriptor, with the descriptors of the reserve first. used
// reports whether the reserve must be filled up afterwards.
func (r *Reserve) use(op func() error) (used bool, err error) {
	pause := time.Millisecond
	for waited := time.Duration(0); ; {
		if err = op(); !NoDescriptor(err) {
			return used, err
		}
		if !used {
			r.warn(err)
		}
		used = true
		if r.give() {
			continue // another goroutine may take that descriptor
		}
		if waited >= reservePatience {
			return used, err
		}
		time.Sleep(pause)
		waited += pause
		pause = min(2*pause, 100*time.Millisecond)
	}
}

// run is use for operations that leave no descriptor open.
func (r *Reserve) run(op func() error) error {
	used, err := r.use(op)
	if used {
		r.fill()
	}
	return err
}

type reservedFS struct {
	FS
	r *Reserve
}

// reservedFile took a descriptor of the reserve.
type reservedFile struct {
	File
	r *Reserve
}

// Unwrap returns the file itself, which may have methods that File lacks.
func (f *reservedFile) Unwrap() File { return f.File }

func (f *reservedFile) Close() error {
	err := f.File.Close()
	f.r.fill()
	return err
}

func (s *reservedFS) file(open func(string) (File, error), name string) (f File, err error) {
	used, err := s.r.use(func() (err error) { f, err = open(name); return err })
	switch {
	case used && err == nil:
		f = &reservedFile{f, s.r}
	case used: // nothing is open, so no Close fills up the reserve
		s.r.fill()
	}
	return f, err
}

func (s *reservedFS) Create(name string) (File, error) { return s.file(s.FS.Create, name) }
func (s *reservedFS) Open(name string) (File, error)   { return s.file(s.FS.Open, name) }
func (s *reservedFS) OpenRW(name string) (File, error) { return s.file(s.FS.OpenRW, name) }

func (s *reservedFS) MkdirAll(dir string) error {
	return s.r.run(func() error { return s.FS.MkdirAll(dir) })
}

func (s *reservedFS) SyncDir(dir string) error {
	return s.r.run(func() error { return s.FS.SyncDir(dir) })
}

func (s *reservedFS) ReadDir(dir string) (names []string, err error) {
	err = s.r.run(func() (err error) { names, err = s.FS.ReadDir(dir); return err })
	return names, err
}
