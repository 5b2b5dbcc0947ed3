package wal

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"path/filepath"
)

// Recovered is the content of a log that Open has recovered. It belongs to the caller. The Data of
// several entries may share memory.
type Recovered struct {
	// State is the newest state, nil if none was ever appended.
	State []byte
	// Entries are the entries of the log, in order and without gaps. The first entries may be
	// compacted entries whose segment still existed.
	Entries []Entry

	// TornBytes is the size of the remains of an append that was running when the power failed:
	// they were cut off after the last whole append, in the file TornPath from TornOffset on, and
	// Open has logged it. 0 if there were none.
	TornBytes  int64
	TornPath   string
	TornOffset int64
}

// Open opens the log in dir, which it makes if necessary, and recovers its content. The content is
// durable when Open returns, even if the previous process died between a write and its sync. dir is
// locked until Close.
//
// An error wraps [ErrCorrupt] (as a *[CorruptError]), [ErrVersion] or [vfs.ErrLocked], or comes
// from the disk. A log that is corrupt, or in a newer format, is not changed.
func Open(dir string, cfg Config) (_ *Log, _ Recovered, err error) {
	if err := cfg.ensureDefaults(); err != nil {
		return nil, Recovered{}, err
	}
	if cfg.MustExist {
		names, err := cfg.FS.ReadDir(dir)
		if segments, _ := sortNames(names); err != nil || len(segments) == 0 {
			return nil, Recovered{}, fmt.Errorf("wal: no log in %s: %w", dir, cmp.Or(err, fs.ErrNotExist))
		}
	}
	if err := cfg.FS.MkdirAll(dir); err != nil {
		return nil, Recovered{}, fmt.Errorf("wal: make directory: %w", err)
	}
	lock, err := cfg.FS.Lock(filepath.Join(dir, lockName))
	if err != nil {
		return nil, Recovered{}, fmt.Errorf("wal: %w", err)
	}
	l := &Log{dir: dir, cfg: cfg, table: crc32.MakeTable(crc32.Castagnoli), lock: lock, seq: 1, pos: position{first: 1}}
	rec, err := l.open()
	if err != nil {
		l.err = err // Close must not sync
		return nil, Recovered{}, errors.Join(err, l.Close())
	}
	return l, rec, nil
}

func (l *Log) open() (Recovered, error) {
	names, err := l.cfg.FS.ReadDir(l.dir)
	if err != nil {
		return Recovered{}, fmt.Errorf("wal: %w", err)
	}
	segments, spares := sortNames(names)
	if len(segments) == 0 {
		if err := l.adoptSpares(spares); err != nil {
			return Recovered{}, err
		}
		return Recovered{}, l.begin(1)
	}
	if err := l.checkGaps(segments); err != nil {
		return Recovered{}, err
	}
	rec, err := l.recover(segments)
	if err != nil {
		return Recovered{}, err
	}
	return rec, l.adoptSpares(spares)
}

// sortNames returns the numbers of the segments and the numbers of the spares, in the order of the
// names, which is ascending.
func sortNames(names []string) (segments, spares []uint64) {
	for _, name := range names {
		if n, ok := parseName(name, segmentSuffix); ok {
			segments = append(segments, n)
		} else if n, ok := parseName(name, spareSuffix); ok {
			spares = append(spares, n)
		}
	}
	return segments, spares
}

func (l *Log) checkGaps(segments []uint64) error {
	for i, n := range segments {
		if want := segments[0] + uint64(i); n != want || n == math.MaxUint64 {
			return &CorruptError{Path: segmentPath(l.dir, want), Want: fmt.Sprintf("segment %d", want), Got: "no such file"}
		}
	}
	return nil
}
