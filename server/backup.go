package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/vfs"
)

// backupFolder is how the names of folders begin in which backups are made. Nobody else gives a folder such a name: what is left of one is removed.
const backupFolder = ".gozkd-backup-"

// ErrNoRoom says that there is no room for a backup on the disk of the data directory.
var ErrNoRoom = errors.New("server: no room for a backup")

// Backup is a copy of the state at one moment: a checkpoint file, as docs/reference/formats.md has it and gozkd restore takes it. It is for one goroutine.
// Who has it closes it.
type Backup struct {
	Zxid int64 // of the last change in it
	Size int64 // in bytes

	file   *os.File
	folder string
}

// Read reads on in the file.
func (b *Backup) Read(into []byte) (int, error) { return b.file.Read(into) }

// Close removes the file.
func (b *Backup) Close() error { return errors.Join(b.file.Close(), os.RemoveAll(b.folder)) }

// Backup makes a backup with all that was committed anywhere before the call. Any member can, and clients are served meanwhile; but nothing is
// applied while the list of what there is is copied, which takes time that grows with the number of znodes. The file is made in the data
// directory, or where temporary files are if there is none, and needs about as much room there as a checkpoint. In the data directory it
// leaves the log room for two segments.
//
// Errors: ErrNotStarted; ErrClosed; ErrNoRoom; ctx's, if that ends first, as it may where there is no leader; what the disk says, which does not stop
// the server.
func (s *Server) Backup(ctx context.Context) (*Backup, error) {
	if !s.life.accepting.Load() {
		return nil, s.life.whyNot()
	}
	alive, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	// A node that stops does not answer. Ends with alive, awaited below.
	go func() {
		defer close(watched)
		select {
		case <-s.life.stopping:
			cancel()
		case <-alive.Done():
		}
	}()
	held, state, err := s.node.Snapshot(alive)
	cancel()
	<-watched
	if err != nil {
		if !s.life.accepting.Load() {
			err = s.life.whyNot()
		}
		return nil, err
	}
	folder, err := os.MkdirTemp(s.cfg.Dir, backupFolder)
	if err != nil {
		return nil, fmt.Errorf("server: backup: %w", err)
	}
	backup, err := openBackup(folder, func(path string) error {
		return held.WriteCheckpoint(path, state, func() error {
			if err := ctx.Err(); err != nil || s.cfg.Dir == "" {
				return err
			}
			return roomIn(folder, s.checkpoint.logRoom)
		})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: backup: %w", err), os.RemoveAll(folder))
	}
	backup.Zxid = int64(state.(*datatree.Changes).Zxid())
	return backup, nil
}

// roomIn says whether there is more room than that.
func roomIn(dir string, leave int64) error {
	if left, known := vfs.Free(dir); known && left < leave {
		return fmt.Errorf("%w: %d MiB are left, and the log may need %d", ErrNoRoom, left>>20, leave>>20)
	}
	return nil
}

func openBackup(folder string, write func(path string) error) (*Backup, error) {
	path := filepath.Join(folder, "checkpoint.db")
	if err := write(path); err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Backup{Size: info.Size(), file: f, folder: folder}, nil
}

// removeBackups removes those that a crash has left. That comes before the log is opened, which may need the room. If the data directory
// is in use nothing is done, and who opens it next says so.
func (s *Server) removeBackups() {
	if s.cfg.Dir == "" {
		return
	}
	lock, err := vfs.LockForReading(filepath.Join(s.cfg.Dir, "LOCK"))
	if err != nil {
		return
	}
	left, _ := filepath.Glob(filepath.Join(s.cfg.Dir, backupFolder+"*")) // the only error is that of a bad pattern
	for _, folder := range left {
		if err := os.RemoveAll(folder); err != nil {
			s.cfg.Logger.Warn("a backup that a crash has left could not be removed", "folder", folder, "error", err)
		}
	}
	if err := lock.Close(); err != nil {
		s.cfg.Logger.Warn("the data directory could not be unlocked", "error", err)
	}
}

// LastSnapshot returns the zxid of the last checkpoint on disk, and when it was written. It is one that this server made, or that it started with, or
// that came from another member. In memory, and before there is one, ok is false.
func (s *Server) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	if s.cfg.Dir == "" || !s.life.accepting.Load() {
		return 0, time.Time{}, false
	}
	info, err := os.Stat(filepath.Join(s.cfg.Dir, "checkpoint.db"))
	if err != nil {
		return 0, time.Time{}, false
	}
	return s.checkpoint.onDisk.Load(), info.ModTime(), true
}
