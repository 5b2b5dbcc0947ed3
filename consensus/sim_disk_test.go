package consensus

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

// errPower is the error of all operations from the moment of a crash on.
var errPower = errors.New("power loss")

// simDisk is a member's disk: the log's file system, and the checkpoint. As with package
// checkpoint, a write of the checkpoint happens completely or not at all.
type simDisk struct {
	w          *simWorld
	fs         *vfstest.Mem
	checkpoint *simCheckpoint            // nil: none
	aside      map[string]*simCheckpoint // received checkpoints, by path
	crashAfter int                       // durable operations left until the power fails; 0: it does not
	power      bool                      // true: unsynced writes are lost; false: only the process dies
	after      *vfstest.Mem              // the file system after the crash
	copied     *simCopy                  // nil: none
	crashed    bool
	fullUntil  int64 // nothing more can be written to it before
}

// simCheckpoint is immutable.
type simCheckpoint struct {
	meta []byte
	kv   map[string]string
}

func newSimDisk(w *simWorld) *simDisk {
	return &simDisk{w: w, fs: vfstest.NewMem(), aside: map[string]*simCheckpoint{}}
}

func (d *simDisk) dir() string { return filepath.Join("data", "wal") }

// hook runs before each operation of the log.
func (d *simDisk) hook(op vfstest.Op) error {
	if d.crashed {
		return errPower
	}
	if err := d.lacksRoom(op.Kind, op.Path); err != nil {
		return err
	}
	switch op.Kind {
	case vfstest.OpWrite, vfstest.OpSync, vfstest.OpCreate, vfstest.OpRename, vfstest.OpRemove, vfstest.OpSyncDir, vfstest.OpPreallocate:
		return d.durableStep()
	}
	return nil
}

// durableStep counts a step that changes the disk, and may crash before it.
func (d *simDisk) durableStep() error {
	if d.crashed {
		return errPower
	}
	if d.crashAfter > 0 {
		if d.crashAfter--; d.crashAfter == 0 {
			d.w.stats.tornOps++
			d.crash(d.power)
			return errPower
		}
	}
	return nil
}

// crash decides which writes survive. The member must still be told.
func (d *simDisk) crash(power bool) {
	d.crashed = true
	d.after = d.fs
	if power {
		choose := d.w.rng.IntN
		switch d.w.rng.IntN(4) {
		case 0:
			choose = func(int) int { return 0 }
		case 1:
			choose = func(n int) int { return n - 1 }
		}
		d.after = d.fs.Crash(choose)
	}
}

// restart prepares the disk for the next life.
func (d *simDisk) restart() {
	if d.after != nil {
		d.fs = d.after
	}
	d.fs.Kill()
	d.after, d.crashed, d.crashAfter = nil, false, 0
	clear(d.aside)
}

func (d *simDisk) files() vfs.FS {
	var fs vfs.FS = d.fs
	if d.w.bug == bugSkipSync {
		fs = lyingFS{fs}
	}
	return vfstest.NewFaulty(fs, d.hook)
}

func (d *simDisk) open() (*wal.Log, wal.Recovered, error) {
	return wal.Open(d.dir(), wal.Config{FS: d.files(), SegmentBytes: 8 << 10, Rand: d.w.chacha})
}

// replace implements checkpointReplacer.
func (d *simDisk) replace(path string) error {
	if err := d.durableStep(); err != nil {
		return err
	}
	got := d.aside[path]
	if got == nil {
		d.w.fatalf("checkpoint %s is to be installed and is not there", path)
	}
	d.checkpoint = got
	return d.durableStep()
}

// write is the checkpoint's transaction, as checkpointFile.write.
func (d *simDisk) write(base uint64, meta core.Meta, changes Changes) error {
	if err := d.lacksRoom(vfstest.OpWrite, "checkpoint"); err != nil {
		return err
	}
	if err := d.durableStep(); err != nil {
		return err
	}
	if d.checkpoint != nil {
		before, err := core.DecodeMeta(d.checkpoint.meta)
		d.w.must(err)
		if before.Index != base {
			d.w.fatalf("a checkpoint of the changes since index %d is to be written, but the file holds that of index %d", base, before.Index)
		}
	}
	next := &simCheckpoint{meta: meta.Append(nil), kv: map[string]string{}}
	if d.checkpoint != nil {
		next.kv = maps.Clone(d.checkpoint.kv)
	}
	err := changes.Range(func(k, v []byte) error {
		if v == nil {
			delete(next.kv, string(k))
		} else {
			next.kv[string(k)] = string(v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.checkpoint = next
	return d.durableStep()
}

func (c *simCheckpoint) all() iter.Seq2[[]byte, []byte] {
	return func(yield func(k, v []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(c.kv)) {
			if !yield([]byte(k), []byte(c.kv[k])) {
				return
			}
		}
	}
}

// pairs is the same as checkpoint.Pairs.
func (c *simCheckpoint) pairs(yield func(k, v []byte) error) error {
	for k, v := range c.all() {
		if err := yield(k, v); err != nil {
			return err
		}
	}
	return nil
}

// lyingFS syncs nothing.
type lyingFS struct{ vfs.FS }

type lyingFile struct{ vfs.File }

func (lyingFile) Sync() error { return nil }

func lie(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return lyingFile{f}, nil
}

func (y lyingFS) Create(name string) (vfs.File, error) { return lie(y.FS.Create(name)) }
func (y lyingFS) OpenRW(name string) (vfs.File, error) { return lie(y.FS.OpenRW(name)) }

// asidePath names a received checkpoint.
func asidePath(from uint64) string { return fmt.Sprintf("checkpoint.from-%d", from) }
