package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server/facts"
)

// backupFolder is the prefix of the names of folders in which backups are made. No other folder has
// this prefix, so those that a crash has left can be removed.
const backupFolder = ".gozkd-backup-"

// ErrNoRoom means that the disk of the data directory has no room for a backup.
var ErrNoRoom = errors.New("server: no room for a backup")

// Backup is a copy of the state at one moment.
type Backup = facts.Backup

// Capture is the state at one moment, in memory.
type Capture = facts.Capture

// backupFile is the file of a Backup, in a folder of its own.
type backupFile struct {
	*os.File
	folder string
}

// Close removes the file.
func (b backupFile) Close() error { return errors.Join(b.File.Close(), os.RemoveAll(b.folder)) }

// captured is the state of a Capture.
type captured struct {
	server *Server
	zxid   int64
	held   consensus.SavedState
	state  consensus.Changes
}

// Backup makes a backup that contains everything that was committed anywhere before the call. Any
// member can make it. Clients are served meanwhile, but nothing is applied while the list of znodes
// is copied, which takes time in proportion to their number. The file is made in the data
// directory, or in the system's folder for temporary files if there is none, and needs about as
// much room as a checkpoint. In the data directory, Backup leaves room for two segments of the log.
//
// Errors: ErrNotStarted; ErrClosed; ErrNoRoom; ctx's error if ctx ends first, for example because
// there is no leader; any error of the disk, which does not stop the server.
func (s *Server) Backup(ctx context.Context) (*Backup, error) {
	c, err := s.Capture(ctx)
	if err != nil {
		return nil, err
	}
	return c.File(ctx)
}

// Capture is the first half of Backup, without the file.
func (s *Server) Capture(ctx context.Context) (*Capture, error) {
	if !s.life.Accepting.Load() {
		return nil, s.life.WhyNot()
	}
	alive, cancel := context.WithCancel(ctx)
	watched := make(chan struct{})
	// Ends with alive, awaited below. Without this goroutine Snapshot would wait forever, because a
	// node that stops does not answer.
	go func() {
		defer close(watched)
		select {
		case <-s.life.Stopping():
			cancel()
		case <-alive.Done():
		}
	}()
	held, state, err := s.node.Snapshot(alive)
	cancel()
	<-watched
	if err != nil {
		if !s.life.Accepting.Load() {
			err = s.life.WhyNot()
		}
		return nil, err
	}
	c := captured{s, int64(state.(*datatree.Changes).Zxid()), held, state}
	return &Capture{Zxid: c.zxid, Index: held.Index, Term: held.Term, Time: held.Time, File: c.file}, nil
}

// file makes the backup's file.
func (c captured) file(ctx context.Context) (*Backup, error) {
	s := c.server
	folder, err := os.MkdirTemp(s.cfg.Dir, backupFolder)
	if err != nil {
		return nil, fmt.Errorf("server: backup: %w", err)
	}
	backup, err := openBackup(folder, func(path string) error {
		return c.held.WriteCheckpoint(path, c.state, func() error {
			if err := ctx.Err(); err != nil || s.cfg.Dir == "" {
				return err
			}
			return roomIn(folder, s.checkpoint.logRoom)
		})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: backup: %w", err), os.RemoveAll(folder))
	}
	backup.Zxid = c.zxid
	return backup, nil
}

// roomIn returns ErrNoRoom if less than leave bytes are free on the disk of dir.
func roomIn(dir string, leave int64) error {
	if free, known := vfs.Free(dir); known && free < leave {
		return fmt.Errorf("%w: %d MiB are free, and the log may need %d MiB: free space, or move the data directory to a larger disk", ErrNoRoom, free>>20, leave>>20)
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
	return &Backup{Size: info.Size(), ReadCloser: backupFile{f, folder}}, nil
}

// removeBackups removes the folders that a crash has left. removeBackups must be called before the
// log is opened, which may need the room. If the data directory is in use, removeBackups does
// nothing: opening the log then fails with that reason.
func (s *Server) removeBackups() {
	if s.cfg.Dir == "" {
		return
	}
	lock, err := vfs.LockForReading(filepath.Join(s.cfg.Dir, "LOCK"))
	if err != nil {
		return
	}
	leftovers, _ := filepath.Glob(filepath.Join(s.cfg.Dir, backupFolder+"*")) // the only error is that of a bad pattern
	for _, folder := range leftovers {
		if err := os.RemoveAll(folder); err != nil {
			s.cfg.Logger.Warn("the folder of an unfinished backup could not be removed; delete it", "folder", folder, "error", err)
		}
	}
	if err := lock.Close(); err != nil {
		s.cfg.Logger.Warn("the data directory could not be unlocked", "error", err)
	}
}

// LastSnapshot returns the zxid and the time of the last checkpoint on disk, whether this server,
// an earlier process or another member wrote the checkpoint. ok is false if there is none, and for
// a server in memory.
func (s *Server) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	if s.cfg.Dir == "" || !s.life.Accepting.Load() {
		return 0, time.Time{}, false
	}
	info, err := os.Stat(filepath.Join(s.cfg.Dir, "checkpoint.db"))
	if err != nil {
		return 0, time.Time{}, false
	}
	return s.checkpoint.onDisk.Load(), info.ModTime(), true
}
