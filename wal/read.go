package wal

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Read recovers the content of the log in dir like Open, but changes nothing: no file is made, and
// a torn append stays in place. So the content need not be durable. Read takes no lock: the caller
// must make sure that the log is not open. Of cfg, only FS is used.
//
// Errors are as for Open, except that a missing directory returns an error wrapping
// [io/fs.ErrNotExist], and that a *[CorruptError] comes with the state and the entries before the
// damage.
func Read(dir string, cfg Config) (_ Recovered, err error) {
	if err := cfg.ensureDefaults(); err != nil {
		return Recovered{}, err
	}
	cfg.FS = readOnly{cfg.FS}
	names, err := cfg.FS.ReadDir(dir)
	if err != nil {
		return Recovered{}, fmt.Errorf("wal: %w", err)
	}
	l := &Log{dir: dir, cfg: cfg, table: crc32.MakeTable(crc32.Castagnoli)}
	defer func() {
		if l.tail.f != nil {
			err = errors.Join(err, l.tail.f.Close())
		}
	}()
	segments, _ := sortNames(names)
	if len(segments) == 0 {
		return Recovered{}, nil
	}
	if err := l.checkGaps(segments); err != nil {
		return Recovered{}, err
	}
	content, last, err := l.readSegments(segments)
	return l.result(content, last, err)
}

// ReadSegment reads the file of one segment, as Read reads a whole log. The file's name does not
// matter. Bytes after the last good frame count as torn unless a later frame follows them, although
// they are damage if the log goes on in another segment.
func ReadSegment(path string) (_ Recovered, err error) {
	cfg := Config{FS: readOnly{vfs.OS{}}}
	l := &Log{cfg: cfg, table: crc32.MakeTable(crc32.Castagnoli)}
	content := &replay{}
	r, err := l.readSegment(path, 0, nil, content, &arena{})
	if err == nil {
		defer func() { err = errors.Join(err, r.f.Close()) }()
	}
	return l.result(content, r, err)
}

// result returns what was read up to the end of the log, or to the damage that err describes.
func (l *Log) result(content *replay, last *reader, err error) (rec Recovered, _ error) {
	if err == nil {
		rec, err = l.torn(last)
	}
	rec.State, rec.Entries = content.state, content.entries
	return rec, err
}

// readOnly is an FS whose OpenRW opens for reading only.
type readOnly struct{ vfs.FS }

func (r readOnly) OpenRW(name string) (vfs.File, error) { return r.Open(name) }
