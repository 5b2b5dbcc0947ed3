package consensus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/gozkd/gozkd/internal/vfs"
)

// ErrCorruptCheckpoint is wrapped by the error of a checkpoint file that can't be read.
var ErrCorruptCheckpoint = errors.New("consensus: corrupt checkpoint")

var (
	stateBucket = []byte("state")
	metaBucket  = []byte("meta")
	metaKey     = []byte("meta")
)

// checkpointFile is the checkpoint on disk: one file of bbolt's format, changed in one transaction per checkpoint (C4). It is open
// only while it is used, so that its mapped pages don't stay in the process's resident memory.
type checkpointFile struct{ path string }

// use has bbolt make a new file, runs f, and closes it again.
//
// bbolt trusts its file: a damaged page makes it panic, and a file that is cut short makes the mapping fault. Both are
// turned into an error here and nowhere else. bbolt may then hold locks of its own, on which its Close would wait for
// ever. So only the file is unlocked and closed; the mapping stays until the process ends.
func (c checkpointFile) use(f func(*bolt.DB) error) (err error) {
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = corruptCheckpoint(c.path, fmt.Errorf("%v", p))
			unlockFile(file)
			_ = file.Close() // of no more use, whatever this says
		}
	}()
	db, err := bolt.Open(c.path, 0o600, &bolt.Options{
		PreLoadFreelist: true, FreelistType: bolt.FreelistMapType, Timeout: time.Second,
		OpenFile: func(name string, flag int, mode os.FileMode) (_ *os.File, err error) {
			file, err = os.OpenFile(name, flag, mode)
			return file, err
		},
	})
	var errno syscall.Errno
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("consensus: checkpoint %s is in use by another process", c.path)
	case errors.As(err, &errno):
		return fmt.Errorf("consensus: open checkpoint %s: %w", c.path, err)
	case err != nil: // bbolt has no common error for what it finds wrong in the file
		return corruptCheckpoint(c.path, err)
	}
	return errors.Join(f(db), db.Close())
}

func corruptCheckpoint(path string, cause error) error {
	return fmt.Errorf("%w %s: %w; nothing was changed: restore the file from a copy, or, if other members hold the data, "+
		"move the whole data directory away and let this server fetch it from them", ErrCorruptCheckpoint, path, cause)
}

// load reads the checkpoint, if there is one, and passes its state to restore. With strict both meta pages must be good.
func (c checkpointFile) load(strict bool, restore func(iter.Seq2[[]byte, []byte]) error) (meta checkpointMeta, found bool, err error) {
	switch info, err := os.Stat(c.path); {
	case errors.Is(err, fs.ErrNotExist):
		return checkpointMeta{}, false, nil
	case err != nil:
		return checkpointMeta{}, false, fmt.Errorf("consensus: checkpoint: %w", err)
	case info.Size() == 0: // bbolt would take it for a new file
		return checkpointMeta{}, false, corruptCheckpoint(c.path, errors.New("the file is empty"))
	}
	err = c.read(strict, func(p *pages, buckets []bucket) error {
		if meta, err = readMeta(p, buckets[0]); err != nil {
			return err
		}
		var walk error
		err := restore(func(yield func(k, v []byte) bool) {
			walk = p.pairs(buckets[1], func(k, v []byte) error {
				if !yield(k, v) {
					return errEnough
				}
				return nil
			})
		})
		switch {
		case walk != nil && !errors.Is(walk, errEnough): // why the state machine did not get all
			return walk
		case err != nil:
			return err
		}
		_, _, err = p.free()
		return err
	})
	return meta, err == nil, err
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// read opens the file, and passes on its pages and its two buckets: that of the meta, and that of the state. All that goes wrong is said
// to be the file's fault, but what the operating system says.
func (c checkpointFile) read(strict bool, f func(*pages, []bucket) error) (err error) {
	file, err := vfs.OS{}.Open(c.path)
	if err != nil {
		return fmt.Errorf("consensus: open checkpoint: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := lockFile(file, false); err != nil {
		return blame("read", c.path, err)
	}
	p, err := openPages(file, strict)
	if err != nil {
		return blame("read", c.path, err)
	}
	buckets, err := p.buckets()
	if err != nil {
		return blame("read", c.path, err)
	}
	return blame("read", c.path, f(p, buckets))
}

// blame says what an error of reading or writing the pages of a file is: one of the operating system, or one that the file makes.
func blame(what, path string, err error) error {
	var errno syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &errno), errors.Is(err, errFileInUse):
		return fmt.Errorf("consensus: %s checkpoint %s: %w", what, path, err)
	}
	return corruptCheckpoint(path, err)
}

func readMeta(p *pages, b bucket) (meta checkpointMeta, err error) {
	found := false
	err = p.pairs(b, func(k, v []byte) (err error) {
		if bytes.Equal(k, metaKey) {
			found = true
			meta, err = decodeMeta(v)
		}
		return err
	})
	if err == nil && !found {
		err = errors.New("its meta is missing")
	}
	return meta, err
}

// write adds changes to the checkpoint of index base and sets meta, in one transaction. The first checkpoint, for which base is of no account, is made
// aside and renamed, so that a crash while a new file is laid out leaves none.
//
// After an error the checkpoint in the file is that of base, or the new one.
func (c checkpointFile) write(base uint64, meta checkpointMeta, changes Changes) error {
	path := c.path
	_, statErr := os.Stat(path)
	fresh := errors.Is(statErr, fs.ErrNotExist)
	if fresh {
		path += ".new"
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("consensus: checkpoint: %w", err)
		}
	}
	if err := mergeFile(path, fresh, base, meta, changes); err != nil {
		return blame("write", path, err)
	}
	if fresh {
		if err := os.Rename(path, c.path); err != nil {
			return fmt.Errorf("consensus: checkpoint: %w", err)
		}
		if err := (vfs.OS{}).SyncDir(filepath.Dir(c.path)); err != nil {
			return fmt.Errorf("consensus: checkpoint: %w", err)
		}
	}
	return nil
}

// errFileInUse is what a lock says that did not come.
var errFileInUse = errors.New("it is in use by another process")

// mergeFile writes changes and meta into the file, as a transaction.
func mergeFile(path string, fresh bool, base uint64, meta checkpointMeta, changes Changes) (err error) {
	open := vfs.OS{}.OpenRW
	if fresh {
		open = vfs.OS{}.Create
	}
	file, err := open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := lockFile(file, true); err != nil {
		return err
	}
	return mergeInto(file, fresh, base, meta, changes)
}

func mergeInto(file vfs.File, fresh bool, base uint64, meta checkpointMeta, changes Changes) (err error) {
	var old *pages
	if !fresh {
		if old, err = openPages(file, false); err != nil {
			return err
		}
	}
	m, err := beginMerge(file, old, os.Getpagesize(), true)
	if err != nil {
		return err
	}
	if !fresh {
		if m.base != base { // what changed since another one is not all
			return fmt.Errorf("it has the state as of entry %d, and should have that of entry %d", m.base, base)
		}
		if err := old.settle(file); err != nil {
			return err
		}
	}
	if err := changes.Range(m.put); err != nil {
		return err
	}
	return m.commit(meta.append(nil))
}
