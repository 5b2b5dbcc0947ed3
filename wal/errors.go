package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by a log that was closed.
	ErrClosed = errors.New("wal: closed")
	// ErrCorrupt is wrapped by every [CorruptError].
	ErrCorrupt = errors.New("wal: corrupt")
	// ErrVersion is wrapped by the error of Open when a segment was written in a format newer than this package reads.
	ErrVersion = errors.New("wal: format is newer than this program")
	// ErrTooLarge is returned by Append for more than [MaxAppendBytes] at once. Nothing was written.
	ErrTooLarge = errors.New("wal: append too large")
	// ErrOrder is wrapped by the error of Append when the entries don't continue the log. Nothing was written.
	ErrOrder = errors.New("wal: entries out of order")
)

// CorruptError says where the log is damaged. It wraps [ErrCorrupt].
type CorruptError struct {
	Path   string // the segment file
	Offset int64  // of the header or frame that is wrong, in bytes
	Want   string // what should be there
	Got    string // what is there
}

// Error names the place and what an operator can do about it.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: corrupt: %s at offset %d: want %s, got %s; acknowledged data may be damaged, so the log is not opened "+
		"and nothing was changed: check the disk, then restore this data directory from a backup, or (only where the other "+
		"servers of the ensemble hold the data) move it away and let this server join again empty",
		e.Path, e.Offset, e.Want, e.Got)
}

// Unwrap returns [ErrCorrupt].
func (e *CorruptError) Unwrap() error { return ErrCorrupt }
