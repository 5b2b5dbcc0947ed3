package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// backupFolder is the prefix of the names of folders in which backups are made. No other folder has
// this prefix, so those that a crash has left can be removed.
const backupFolder = ".gozkd-backup-"

// ErrNoRoom means that the disk of the data directory has no room for a backup.
var ErrNoRoom = errors.New("server: no room for a backup")

type (
	// Backup is a copy of the state at one moment: a checkpoint file.
	Backup = facts.Backup
	// Capture is the state at one moment, in memory.
	Capture = facts.Capture
	// LogPosition describes how far a server has applied the replicated log.
	LogPosition = facts.LogPosition
	// ArchiveStats is the state of the archive, as the program that archives the log knows it.
	ArchiveStats = facts.ArchiveStats
	// StandbyStats is the state of a standby's archive, as the program that feeds it knows it.
	StandbyStats = facts.StandbyStats
)

// Backups makes copies of the state and of the replicated log, and knows the last checkpoint on
// disk. Its methods may be called from any goroutine, and at any time.
//
// Invariants: a copy has everything that was committed before the call. No copy takes the room that
// the log needs.
type Backups struct {
	*shared
	noContact func() error // of the Server
	capturing atomic.Int64 // zxid of the checkpoint that is being written
	onDisk    atomic.Int64 // zxid of the last checkpoint on disk
	// logRoom is how many bytes a backup must leave free on the disk, because the server stops when
	// its log has no room. Set before Start returns.
	logRoom int64
}

// Backups returns the methods that copy this server's state and log.
func (s *Server) Backups() *Backups { return &s.backups }

type backupFile struct {
	*os.File
	folder string
}

func (b backupFile) Close() error { return errors.Join(b.File.Close(), os.RemoveAll(b.folder)) }

type captured struct {
	backups *Backups
	zxid    int64
	held    consensus.SavedState
	state   consensus.Changes
}

// Make makes a backup that contains everything that was committed anywhere before the call. Any
// member can make it. Clients are served meanwhile, but nothing is applied while the list of znodes
// is copied, which takes time in proportion to their number. The file is made in the data
// directory, or in the system's folder for temporary files if there is none, and needs about as
// much room as a checkpoint. In the data directory, Make leaves room for two segments of the log.
//
// Errors: ErrNotStarted; ErrClosed; ErrStandby; ErrNoLeader if there is no contact with a leader
// for syncLimit ticks; ErrNoRoom; ctx's error if ctx ends first; any error of the disk, which does
// not stop the server.
func (b *Backups) Make(ctx context.Context) (*Backup, error) {
	c, err := b.Capture(ctx)
	if err != nil {
		return nil, err
	}
	return c.File(ctx)
}

// Capture is the first half of Make, without the file.
func (b *Backups) Capture(ctx context.Context) (*Capture, error) {
	switch {
	case !b.life.Accepting.Load():
		return nil, b.life.WhyNot()
	case b.cfg.Standby: // no leader would tell what is committed
		return nil, ErrStandby
	}
	look := time.NewTicker(b.cfg.Tick)
	defer look.Stop()
	for got := b.node.Snapshot(); ; {
		select {
		case s := <-got:
			c := captured{b, int64(s.State.(*datatree.Changes).Zxid()), s.Held, s.State}
			return &Capture{Zxid: c.zxid, Index: s.Held.Index, Term: s.Held.Term, Time: s.Held.Time, File: c.file}, nil
		case <-b.life.Stopping():
			return nil, b.life.WhyNot()
		case <-ctx.Done():
			return nil, fmt.Errorf("server: no snapshot yet: %w", ctx.Err())
		case <-look.C:
			if err := b.noContact(); err != nil {
				return nil, err
			}
		}
	}
}

func (c captured) file(ctx context.Context) (*Backup, error) {
	b := c.backups
	folder, err := os.MkdirTemp(b.cfg.Dir, backupFolder)
	if err != nil {
		return nil, fmt.Errorf("server: backup: %w", err)
	}
	backup, err := openBackup(folder, func(path string) error {
		return c.held.WriteCheckpoint(path, c.state, func() error {
			disk, known := vfs.SpaceOf(folder)
			if err := ctx.Err(); err != nil || b.cfg.Dir == "" || !known || disk.Free >= b.logRoom {
				return err
			}
			return fmt.Errorf("%w: %d MiB are free, and the log may need %d MiB: free space, or move the data directory to a larger disk",
				ErrNoRoom, disk.Free>>20, b.logRoom>>20)
		})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: backup: %w", err), os.RemoveAll(folder))
	}
	backup.Zxid = c.zxid
	return backup, nil
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

// removeLeftovers removes the folders that a crash has left. It must be called before the log is
// opened, which may need the room. If the data directory is in use, removeLeftovers does nothing:
// opening the log then fails with that reason.
func (b *Backups) removeLeftovers() {
	if b.cfg.Dir == "" {
		return
	}
	lock, err := vfs.LockForReading(filepath.Join(b.cfg.Dir, "LOCK"))
	if err != nil {
		return
	}
	leftovers, _ := filepath.Glob(filepath.Join(b.cfg.Dir, backupFolder+"*")) // the only error is that of a bad pattern
	for _, folder := range leftovers {
		if err := os.RemoveAll(folder); err != nil {
			b.cfg.Logger.Warn("the folder of an unfinished backup could not be removed; delete it", "folder", folder, "error", err)
		}
	}
	if err := lock.Close(); err != nil {
		b.cfg.Logger.Warn("the data directory could not be unlocked", "error", err)
	}
}

// LastSnapshot returns the zxid and the time of the last checkpoint on disk, whether this server,
// an earlier process or another member wrote the checkpoint. ok is false if there is none, and for
// a server in memory.
func (b *Backups) LastSnapshot() (zxid int64, at time.Time, ok bool) {
	if b.cfg.Dir == "" || !b.life.Accepting.Load() {
		return 0, time.Time{}, false
	}
	info, err := os.Stat(filepath.Join(b.cfg.Dir, "checkpoint.db"))
	if err != nil {
		return 0, time.Time{}, false
	}
	return b.onDisk.Load(), info.ModTime(), true
}

// checkpointed is called by consensus after each checkpoint that this server made.
func (b *Backups) checkpointed(took time.Duration, changes int) {
	b.meter.Record(meter.Checkpoints, int64(took), 1)
	b.onDisk.Store(b.capturing.Load())
	b.cfg.Logger.Info("checkpoint", "changes", changes, "took_ms", took.Milliseconds())
}

// LogPosition returns the present position. It is zero before the data is open, and after Close.
func (b *Backups) LogPosition() LogPosition {
	if !b.life.Accepting.Load() {
		return LogPosition{}
	}
	st := b.node.Status()
	p := LogPosition{Ensemble: b.node.Cluster(), Applied: st.Applied, Leads: st.Leading && st.Current}
	order := slices.Concat(slices.Sorted(slices.Values(st.Learners)), slices.Sorted(slices.Values(st.Voters)))
	if i := slices.Index(order, st.Leader); i >= 0 { // a leader is known
		order = append(slices.Delete(order, i, i+1), st.Leader)
	}
	p.Turn = max(slices.Index(order, uint64(b.cfg.MemberID)), 0)
	p.Members = len(order)
	return p
}

// ReplicatedLog returns applied entries of the log from an index on, as many as have size bytes,
// but at least one if there is one. If the first entry is not in the log any more, the error is
// consensus.ErrCompacted.
func (b *Backups) ReplicatedLog(from uint64, size int64) ([]consensus.LogEntry, error) {
	if !b.life.Accepting.Load() {
		return nil, b.life.WhyNot()
	}
	return b.node.Log(from, size)
}

// KeepLog says that all entries before an index are archived. Until it is called for the first
// time, nothing is. Entries that are not archived stay in the log, up to Config.ArchiveBytes.
func (b *Backups) KeepLog(from uint64) {
	if b.life.Accepting.Load() {
		b.node.KeepFrom(from)
	}
}

// Follow applies entries of the ensemble's log to a standby, and returns when they are applied. It
// leaves out those that are. If the others do not follow these, Follow has no effect, and waits
// until ctx ends. It must not be called again before it has returned.
func (b *Backups) Follow(ctx context.Context, entries []consensus.LogEntry) error {
	if !b.life.Accepting.Load() {
		return b.life.WhyNot()
	}
	return b.life.Await(ctx, b.node.Follow(entries), "not applied yet")
}

func (b *Backups) addFacts(l *facts.Values) {
	if b.cfg.StandbyStats != nil {
		s := b.cfg.StandbyStats()
		l.Add("gozkd_standby_lag_seconds", float64(s.Lag.Milliseconds())/1000)
		l.Add("gozkd_standby_time_seconds", max(0, s.Time.Unix())) // the zero time is before 1970
		l.Add("gozkd_standby_bases_verified_total", s.Verified)
		l.Add("gozkd_standby_errors_total", s.Errors)
	}
	if b.cfg.ArchiveStats == nil {
		return
	}
	a := b.cfg.ArchiveStats()
	l.Add("gozkd_archive_lag_seconds", float64(a.Lag.Milliseconds())/1000)
	l.Add("gozkd_archive_shipper", flag(a.Shipper))
	l.Add("gozkd_archive_objects_total", a.Objects)
	l.Add("gozkd_archive_bytes_total", a.Bytes)
	l.Add("gozkd_archive_errors_total", a.Errors)
	l.Add("gozkd_archive_gaps_total", a.Gaps)
	l.Add("gozkd_archive_fenced", flag(a.Fenced != ""))
	l.Add("gozkd_archive_verified_seconds", max(0, a.Verified.Unix())) // the zero time is before 1970
	l.Add("gozkd_archive_verify_failed", flag(a.VerifyFailed))
}
