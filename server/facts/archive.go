package facts

import (
	"context"
	"io"
	"time"
)

// Backup is a copy of the state at one moment: a checkpoint file, whose format is in
// docs/reference/formats.md, and which gozkd restore reads. Backup is not safe for concurrent use.
// The caller must close it, which removes the file.
type Backup struct {
	Zxid int64 // of the last change in it
	Size int64 // in bytes
	io.ReadCloser
}

// Capture is the state at one moment, in memory.
type Capture struct {
	Zxid int64 // of the last change in it
	// Index and Term are those of the last entry of the log in it, Time is the leader's clock in
	// its last batch; zero if there was none.
	Index, Term uint64
	Time        time.Time
	// File makes the backup's file. It is called at most once. The server may be closed meanwhile.
	File func(ctx context.Context) (*Backup, error)
}

// LogPosition describes how far a server has applied the replicated log, for a program that
// archives the log. See docs/adr/0010-archive.md.
type LogPosition struct {
	Ensemble, Applied uint64 // the ensemble's id, 0 if it is not known yet; the index of the last applied entry
	// Turn is how many members should archive the log before the server does: 0 for the first
	// observer, or for the first follower if there are no observers. The leader comes last.
	Turn    int
	Members int // how many there are, the server included
	// Leads: the server leads, and has applied everything that was committed before its time.
	Leads bool
}

// ArchiveStats is the state of the archive, as the program that archives the log knows it.
type ArchiveStats struct {
	Lag            time.Duration // for how long the oldest applied entry that is not archived has waited; 0: there is none
	Shipper        bool          // the server writes to the archive
	Objects, Bytes int64         // written
	Errors         int64         // failed requests to the storage
	Gaps           int64         // breaks of the log that a new base had to mend
	Fenced         string        // a standby was promoted, so nothing is archived any more: why, and what to do
	Verified       time.Time     // when the last verification of the archive began; zero: never
	VerifyFailed   bool          // it failed
}

// StandbyStats is the state of a standby's archive, as the program that feeds the standby knows it.
type StandbyStats struct {
	// Lag is for how long the standby may have missed changes that are in the archive: the time
	// since the last listing of which everything is applied.
	Lag      time.Duration
	Time     time.Time // the clock of the ensemble's leader in the last batch; zero: there was none
	Verified int64     // bases whose digest was compared with that of the standby
	Errors   int64     // attempts to follow that failed
}
