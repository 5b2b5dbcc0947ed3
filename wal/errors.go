package wal

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed is returned by a closed log.
	ErrClosed = errors.New("wal: closed")
	// ErrCorrupt is wrapped by every [CorruptError].
	ErrCorrupt = errors.New("wal: corrupt")
	// ErrVersion is wrapped by the error of Open for a segment in a newer format.
	ErrVersion = errors.New("wal: format is newer than this program")
	// ErrTooLarge is wrapped by the error of an Append beyond [MaxAppendBytes]. Nothing is written.
	ErrTooLarge = errors.New("wal: append too large")
	// ErrOrder is wrapped by the error of an Append whose entries don't continue the log. Nothing
	// was written.
	ErrOrder = errors.New("wal: entries out of order")
)

// CorruptError describes damage to the log, and wraps [ErrCorrupt].
type CorruptError struct {
	Path   string // the segment file
	Offset int64  // of the damaged header or frame, in bytes
	Want   string // expected content
	Got    string // actual content
}

// Error returns the place of the damage and what an operator can do about it.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("wal: corrupt: %s at offset %d: want %s, got %s; acknowledged data may be damaged, so the log was not opened and nothing was changed: "+
		"check the disk, then, if the other servers of the ensemble hold the data, move it away and start this server with an empty one; "+
		"otherwise make a new one with gozkd restore",
		e.Path, e.Offset, e.Want, e.Got)
}

// Unwrap returns [ErrCorrupt].
func (e *CorruptError) Unwrap() error { return ErrCorrupt }
