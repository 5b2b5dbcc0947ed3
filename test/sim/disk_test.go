package sim

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
)

// disk is the disk of a member: data directory and log.
type disk struct {
	mu      sync.Mutex
	changed sync.Cond
	mem     *vfstest.Mem
	faults  diskFaults
}

// diskFaults is what is wrong with a disk now.
type diskFaults struct {
	hung      bool          // what writes waits, as with fsfreeze
	slow      time.Duration // of each sync
	rate      int64         // bytes a second; 0: any number
	full      bool          // ENOSPC
	writes    bool          // EIO from writes and syncs
	hangAfter int           // hangs after this many more operations that write; 0: does not
	reads     bool          // EIO from reads
}

func newDisk() *disk {
	d := &disk{mem: vfstest.NewMem()}
	d.changed.L = &d.mu
	return d
}

// change changes what is wrong.
func (d *disk) change(f func(*diskFaults)) {
	d.mu.Lock()
	f(&d.faults)
	d.changed.Broadcast()
	d.mu.Unlock()
}

// current returns what is wrong now.
func (d *disk) current() diskFaults {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

// powerLoss ends all processes that use the disk, and loses or tears what was not synced.
func (d *disk) powerLoss(rng *rand.Rand) {
	d.mu.Lock()
	d.mem = d.mem.Crash(rng.IntN)
	d.mu.Unlock()
}

// copy returns the content of the disk as another process would see it now.
func (d *disk) copy() *vfstest.Mem {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mem.Crash(func(n int) int { return n - 1 }) // all that was written survives
}

// replace puts another content in the place of the disk's.
func (d *disk) replace(mem *vfstest.Mem) {
	d.mu.Lock()
	d.mem = mem
	d.mu.Unlock()
}

// removeData removes the data directory below a running process.
func (d *disk) removeData() {
	d.mu.Lock()
	d.mem.RemoveAll(dataDir)
	d.mu.Unlock()
}

// errDead is what a process gets from its disk after its death, which its goroutines outlive in the
// simulator.
var errDead = errors.New("sim: this process is dead")

// processFS is the disk as one process sees it.
type processFS struct {
	d    *disk
	dead bool // guarded by d.mu
}

// open returns the disk for a new process. The process must have ended when kill returns.
// before runs before each operation that is not a read.
func (d *disk) open(before func(path string)) (*processFS, vfs.FS) {
	p := &processFS{d: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem.Kill()
	mem := d.mem
	return p, vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if !reads(op) {
			before(op.Path)
		}
		return p.before(mem, op)
	})
}

// kill makes all later and all waiting operations of the process fail.
func (p *processFS) kill() {
	p.d.mu.Lock()
	p.dead = true
	p.d.changed.Broadcast()
	p.d.mu.Unlock()
}

func reads(op vfstest.Op) bool {
	return op.Kind == vfstest.OpRead || op.Kind == vfstest.OpOpen || op.Kind == vfstest.OpReadDir
}

// before runs before each operation.
func (p *processFS) before(mem *vfstest.Mem, op vfstest.Op) error {
	p.d.mu.Lock()
	if f := &p.d.faults; f.hangAfter > 0 && !p.dead && op.Kind != vfstest.OpRead {
		f.hangAfter--
		f.hung = f.hung || f.hangAfter == 0
	}
	for p.d.faults.hung && !reads(op) && !p.dead {
		p.d.changed.Wait()
	}
	dead, faults := p.dead, p.d.faults
	p.d.mu.Unlock()
	if faults.slow > 0 && op.Kind == vfstest.OpSync && !dead {
		time.Sleep(faults.slow)
	}
	if faults.rate > 0 && op.Bytes > 0 && !dead && !faults.full {
		time.Sleep(time.Duration(op.Bytes) * time.Second / time.Duration(faults.rate))
	}
	fail := func(err error) error { return &fs.PathError{Op: "sim", Path: op.Path, Err: err} }
	switch {
	case dead:
		return errDead
	case faults.full && (op.Kind == vfstest.OpWrite || op.Kind == vfstest.OpPreallocate || op.Kind == vfstest.OpCreate):
		return fail(syscall.ENOSPC)
	case faults.writes && op.Kind == vfstest.OpSync:
		mem.LoseUnsynced(op.Path) // as Linux does
		return fail(syscall.EIO)
	case faults.writes && op.Kind == vfstest.OpWrite:
		return fail(syscall.EIO)
	case faults.reads && op.Kind == vfstest.OpRead:
		return fail(syscall.EIO)
	}
	return nil
}
