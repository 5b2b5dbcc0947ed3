package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
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

// checkpointFile is the checkpoint on disk: one bbolt file, changed in one transaction per checkpoint (C4). It is open
// only while it is used, so that its mapped pages don't stay in the process's resident memory.
type checkpointFile struct{ path string }

func (c checkpointFile) open(path string) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o644, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("consensus: checkpoint %s is in use by another process", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrChecksum), errors.Is(err, bolterrors.ErrVersionMismatch):
		return nil, corruptCheckpoint(path, err)
	case err != nil:
		return nil, fmt.Errorf("consensus: open checkpoint: %w", err)
	}
	return db, nil
}

func corruptCheckpoint(path string, cause any) error {
	return fmt.Errorf("%w %s: %v; nothing was changed: restore the file from a copy, or, if other members hold the data, "+
		"move the whole data directory away and let this server fetch it from them", ErrCorruptCheckpoint, path, cause)
}

// load reads the checkpoint, if there is one, and passes its state to restore.
func (c checkpointFile) load(restore func(iter.Seq2[[]byte, []byte]) error) (meta checkpointMeta, found bool, err error) {
	if _, err := os.Stat(c.path); errors.Is(err, fs.ErrNotExist) {
		return checkpointMeta{}, false, nil
	}
	// bbolt trusts its file: a damaged page makes it panic, a file that is cut short makes the mapping fault. Both are
	// turned into an error here, where the whole file is read, and nowhere else.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = corruptCheckpoint(c.path, p)
		}
	}()
	db, err := c.open(c.path)
	if err != nil {
		return checkpointMeta{}, false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	err = db.View(func(tx *bolt.Tx) error {
		metas, state := tx.Bucket(metaBucket), tx.Bucket(stateBucket)
		if metas == nil || state == nil {
			return corruptCheckpoint(c.path, "a bucket is missing")
		}
		var err error
		if meta, err = decodeMeta(metas.Get(metaKey)); err != nil {
			return corruptCheckpoint(c.path, err)
		}
		err = restore(func(yield func(k, v []byte) bool) {
			cur := state.Cursor()
			for k, v := cur.First(); k != nil; k, v = cur.Next() {
				if !yield(k, v) {
					return
				}
			}
		})
		if err != nil {
			return corruptCheckpoint(c.path, err)
		}
		return nil
	})
	return meta, err == nil, err
}

// write adds changes and sets meta, in one transaction. The first checkpoint is made aside and renamed, so that a crash
// while bbolt lays out a new file leaves none.
func (c checkpointFile) write(meta checkpointMeta, changes Changes) (err error) {
	path := c.path
	_, statErr := os.Stat(path)
	fresh := errors.Is(statErr, fs.ErrNotExist)
	if fresh {
		path += ".new"
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("consensus: checkpoint: %w", err)
		}
	}
	db, err := c.open(path)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		metas, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil {
			return err
		}
		state, err := tx.CreateBucketIfNotExists(stateBucket)
		if err != nil {
			return err
		}
		err = changes.Range(func(key, value []byte) error {
			if value == nil {
				return state.Delete(key)
			}
			return state.Put(key, value)
		})
		if err != nil {
			return err
		}
		return metas.Put(metaKey, meta.append(nil))
	})
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("consensus: write checkpoint %s: %w", path, err)
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
