package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Merge applies changes to the checkpoint at path and replaces its meta, in one transaction. A nil
// value deletes a key. If there is no file, Merge makes a file beside path and renames it, so that
// a crash leaves no half of a first checkpoint.
//
// check is called with the meta of the existing checkpoint, nil if there is none, and must return
// an error unless the changes are complete since that checkpoint. After an error the file holds
// either the old or the new checkpoint.
func Merge(disk vfs.FS, path string, check func(meta []byte) error, meta []byte, changes Pairs) error {
	file, err := disk.OpenRW(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := check(nil); err != nil {
			return fmt.Errorf("write checkpoint %s: %w", path, err)
		}
		fresh := path + ".new"
		if err := Remove(disk, fresh); err != nil {
			return err
		}
		if err := Create(disk, fresh, meta, changes, nil); err != nil {
			return err
		}
		return Replace(disk, fresh, path)
	}
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	err = lockFile(file, true)
	if err == nil {
		err = mergeInto(file, check, meta, changes)
	}
	return fileError("write", path, ofServer, errors.Join(err, file.Close()))
}

func mergeInto(file vfs.File, check func(meta []byte) error, meta []byte, changes Pairs) error {
	old, err := newPageReader(file, Newest)
	if err != nil {
		return err
	}
	m := newMerge(file, int(old.pageSize))
	before, err := m.beginWith(old)
	if err != nil {
		return err
	}
	if err := check(before); err != nil {
		return err
	}
	if err := old.makeDurable(file); err != nil {
		return err
	}
	if err := changes(m.put); err != nil {
		return err
	}
	return m.commit(meta)
}

// Revert makes the previous checkpoint of the file at path the newest one. The caller must have
// read the previous checkpoint completely ([Previous]). After an error either counts.
func Revert(disk vfs.FS, path string) error {
	file, err := disk.OpenRW(path)
	if err != nil {
		return fmt.Errorf("revert checkpoint: %w", err)
	}
	err = lockFile(file, true)
	if err == nil {
		err = revert(file)
	}
	return fileError("revert", path, ofServer, errors.Join(err, file.Close()))
}

// revert replaces the meta page of the newest transaction, T, by a page that names the pages of the
// previous transaction, S. S's own meta page stays, so that a torn write leaves S. The new
// transaction has T's number plus 2, because that number belongs to T's meta page.
func revert(file vfs.File) error {
	damaged, err := newPageReader(file, NewestOfTwo)
	if err != nil {
		return err
	}
	old, err := newPageReader(file, Previous)
	if err != nil {
		return err
	}
	meta := old.metaPage
	meta.txid = damaged.txid + 2
	if err := writeMetaPage(file, meta); err != nil {
		return err
	}
	return file.Sync()
}

// Create writes a new checkpoint file, and syncs the file but not its directory. If the file exists
// already, Create returns an error that wraps [io/fs.ErrExist]. After any other error there may be
// a file, which [Open] refuses.
//
// room is called before each megabyte, and its error ends Create: the disk may be shared. A nil
// room means that there is room.
func Create(disk vfs.FS, path string, meta []byte, pairs Pairs, room func() error) error {
	exists, err := vfs.Exists(disk, path)
	if exists {
		err = &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	if err != nil {
		return fmt.Errorf("create checkpoint: %w", err)
	}
	file, err := disk.Create(path)
	if err != nil {
		return fmt.Errorf("create checkpoint: %w", err)
	}
	m := newMerge(file, os.Getpagesize())
	m.room = room
	err = pairs(m.put)
	if err == nil {
		err = m.commit(meta)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("create checkpoint %s: %w", path, err)
	}
	return nil
}

// Replace renames a complete checkpoint file to path, durably.
func Replace(disk vfs.FS, complete, path string) error {
	if err := disk.Rename(complete, path); err != nil {
		return fmt.Errorf("replace checkpoint: %w", err)
	}
	if err := disk.SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("replace checkpoint %s: sync its directory: %w", path, err)
	}
	return nil
}

// Remove removes a checkpoint file, if any.
func Remove(disk vfs.FS, path string) error {
	if err := disk.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove checkpoint: %w", err)
	}
	return nil
}
