package vfs

import (
	"errors"
	"syscall"
	"time"
)

// patience is how long an operation waits for a file descriptor.
const patience = 10 * time.Second

// NoDescriptor reports whether an operation failed because the process, or the system, has no file
// descriptor left.
func NoDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Patient returns fs with operations that wait a while for a file descriptor if none is left. warn
// is called when an operation begins to wait.
func Patient(fs FS, warn func(error)) FS { return &patientFS{fs, warn} }

type patientFS struct {
	FS
	warn func(error)
}

func (p *patientFS) wait(op func() error) error {
	const longest = 100 * time.Millisecond
	for waited, pause := time.Duration(0), time.Millisecond; ; pause = min(2*pause, longest) {
		err := op()
		if !NoDescriptor(err) || waited >= patience {
			return err
		}
		if waited == 0 {
			p.warn(err)
		}
		time.Sleep(pause)
		waited += pause
	}
}

func (p *patientFS) file(open func(string) (File, error), name string) (f File, err error) {
	err = p.wait(func() (err error) { f, err = open(name); return err })
	return f, err
}

func (p *patientFS) Create(name string) (File, error) { return p.file(p.FS.Create, name) }
func (p *patientFS) Open(name string) (File, error)   { return p.file(p.FS.Open, name) }
func (p *patientFS) OpenRW(name string) (File, error) { return p.file(p.FS.OpenRW, name) }

func (p *patientFS) MkdirAll(dir string) error {
	return p.wait(func() error { return p.FS.MkdirAll(dir) })
}

func (p *patientFS) SyncDir(dir string) error {
	return p.wait(func() error { return p.FS.SyncDir(dir) })
}

func (p *patientFS) ReadDir(dir string) (names []string, err error) {
	err = p.wait(func() (err error) { names, err = p.FS.ReadDir(dir); return err })
	return names, err
}
