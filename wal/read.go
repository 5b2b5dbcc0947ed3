package wal

import (
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Read recovers what the log in dir holds, as Open does, and changes nothing: no file is made, a torn append stays where it is.
// So what it returns need not be durable. It takes no lock: the caller knows that nobody has the log open.
//
// Errors are those of Open, but that a directory that is not there is one that wraps [io/fs.ErrNotExist]. Of cfg only FS counts.
func Read(dir string, cfg Config) (_ Recovered, err error) {
	if err := cfg.ensureDefaults(); err != nil {
		return Recovered{}, err
	}
	cfg.FS = readOnly{cfg.FS}
	names, err := cfg.FS.ReadDir(dir)
	if err != nil {
		return Recovered{}, fmt.Errorf("wal: %w", err)
	}
	l := &Log{dir: dir, cfg: cfg, table: crc32.MakeTable(crc32.Castagnoli), seq: 1}
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
	if err != nil {
		return Recovered{}, err
	}
	rec, err := l.torn(last)
	if err != nil {
		return Recovered{}, err
	}
	rec.State, rec.Entries = content.state, content.entries
	return rec, nil
}

// readOnly opens segments for reading only.
type readOnly struct{ vfs.FS }

func (r readOnly) OpenRW(name string) (vfs.File, error) { return r.Open(name) }
