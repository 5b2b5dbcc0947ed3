package wal

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

const (
	// firstBytes is the initial size of a segment, and growBytes its growth per step. Preallocating
	// the whole segment would delay a first start by 64 MiB of zeros; each step delays one append.
	firstBytes = 1 << 20
	growBytes  = 4 << 20
	// maxSpares is how many files of dropped segments are kept. Each roll uses a spare, and a
	// checkpoint may drop several segments.
	maxSpares = 2
)

// roll seals the tail and begins the next segment. The tail must be durable before the next segment
// is visible: recovery treats a bad frame in a segment with a successor as damage.
func (l *Log) roll() error {
	if l.cfg.NoSync {
		if err := l.tail.f.Sync(); err != nil {
			return fmt.Errorf("wal: sync segment %d: %w", l.tail.number, err)
		}
	}
	f := l.tail.f
	l.tail.f = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("wal: close segment %d: %w", l.tail.number, err)
	}
	l.tail.highest = l.pos.last
	l.sealed = append(l.sealed, l.tail.segment)
	return l.begin(l.tail.number + 1)
}

// begin makes a segment, which begins with the newest state, and makes it the tail.
//
// The segment is written and synced under the name of a spare, and then renamed. So at any moment a
// file with the name of a segment has a whole header and state, and older segments can be dropped.
func (l *Log) begin(number uint64) error {
	salt, err := l.newSalt()
	if err != nil {
		return err
	}
	path, size, recycled := sparePath(l.dir, number), int64(0), false
	if n := len(l.spares); n > 0 {
		path, size, recycled = l.spares[n-1].path, l.spares[n-1].bytes, true
		l.spares = l.spares[:n-1]
	}

	h := segmentHeader{number: number, salt: salt, firstSeq: l.seq, firstIndex: l.pos.last + 1, prevCRC: l.prev, recycled: recycled}
	head, crc := h.append(make([]byte, 0, segmentHeaderBytes), l.table)
	l.prev = crc
	if l.state != nil {
		b := Batch{State: l.state}
		frame := b.append(make([]byte, frameHeaderBytes, frameHeaderBytes+b.encodedBytes()+frameAlign))
		head = append(head, l.seal(frame, salt)...)
	}
	if size, err = l.writeHead(path, head, size, recycled); err != nil {
		return fmt.Errorf("wal: prepare segment %d: %w", number, err)
	}

	name := segmentPath(l.dir, number)
	if err := l.cfg.FS.Rename(path, name); err != nil {
		return fmt.Errorf("wal: name segment %d: %w", number, err)
	}
	if err := l.cfg.FS.SyncDir(l.dir); err != nil {
		return fmt.Errorf("wal: sync directory for segment %d: %w", number, err)
	}
	f, err := l.cfg.FS.OpenRW(name)
	if err != nil {
		return fmt.Errorf("wal: open segment %d: %w", number, err)
	}
	end := int64(len(head))
	l.tail = tail{segment: segment{number: number, bytes: size}, f: f, salt: salt, start: end, end: end}
	l.cfg.Logger.Debug("segment begun", "segment", number, "first_index", h.firstIndex, "recycled", recycled)
	return nil
}

// writeHead writes head durably to the file at path, which is a recycled file of size bytes or a
// new file, and returns the new size of the file.
func (l *Log) writeHead(path string, head []byte, size int64, recycled bool) (_ int64, err error) {
	open := l.cfg.FS.Create
	if recycled {
		open = l.cfg.FS.OpenRW
	}
	f, err := open(path)
	if err != nil {
		return 0, err
	}
	if want := grownSize(size, int64(len(head)), l.cfg.SegmentBytes); want > size {
		err = f.Preallocate(size, want-size)
		size = want
	}
	if err == nil {
		_, err = f.WriteAt(head, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return size, errors.Join(err, f.Close())
}

// extend makes the file of the tail at least need bytes long.
func (l *Log) extend(need int64) error {
	size := grownSize(l.tail.bytes, need, l.cfg.SegmentBytes)
	if size == l.tail.bytes {
		return nil
	}
	if err := l.tail.f.Preallocate(l.tail.bytes, size-l.tail.bytes); err != nil {
		return fmt.Errorf("wal: extend segment %d: %w", l.tail.number, err)
	}
	l.tail.bytes = size
	return nil
}

// grownSize returns the new size for a file of size bytes that must hold need bytes: whole steps up
// to a full segment, or exactly need if that is more.
func grownSize(size, need, segmentBytes int64) int64 {
	if need <= size {
		return size
	}
	step := int64(growBytes)
	if size == 0 {
		step = firstBytes
	}
	return max(need, min((need+step-1)/step*step, segmentBytes))
}

// dropOldest removes the oldest segment, or keeps its file as a spare. The directory is synced each
// time: a crash during two unsynced removals could keep the older file and lose the newer file, and
// the gap would look like damage.
func (l *Log) dropOldest() error {
	s := l.sealed[0]
	name := segmentPath(l.dir, s.number)
	path := sparePath(l.dir, s.number)
	// A spare may have this name already: an earlier process died before it renamed the spare to
	// this segment, and then another file became the segment.
	taken := slices.ContainsFunc(l.spares, func(s spare) bool { return s.path == path })
	if len(l.spares) < maxSpares && l.fitsSpare(s.bytes) && !taken {
		if err := l.cfg.FS.Rename(name, path); err != nil {
			return fmt.Errorf("wal: recycle segment %d: %w", s.number, err)
		}
		l.spares = append(l.spares, spare{path: path, bytes: s.bytes})
	} else {
		if err := l.cfg.FS.Remove(name); err != nil {
			return fmt.Errorf("wal: remove segment %d: %w", s.number, err)
		}
	}
	if err := l.cfg.FS.SyncDir(l.dir); err != nil {
		return fmt.Errorf("wal: sync directory after dropping segment %d: %w", s.number, err)
	}
	l.sealed = l.sealed[:copy(l.sealed, l.sealed[1:])]
	l.cfg.Logger.Debug("segment dropped", "segment", s.number)
	return nil
}

// fitsSpare reports whether a file of this size is worth keeping: neither much smaller nor much
// larger than a segment.
func (l *Log) fitsSpare(bytes int64) bool {
	return bytes >= l.cfg.SegmentBytes/2 && bytes <= 2*l.cfg.SegmentBytes
}

// adoptSpares keeps or removes the spares that an earlier process left. A spare is never read, so
// an unfinished spare can be used as well.
func (l *Log) adoptSpares(numbers []uint64) error {
	for _, number := range numbers {
		path := sparePath(l.dir, number)
		bytes, err := l.fileSize(path)
		if err != nil {
			return err
		}
		if len(l.spares) < maxSpares && l.fitsSpare(bytes) {
			l.spares = append(l.spares, spare{path: path, bytes: bytes})
			continue
		}
		if err := l.cfg.FS.Remove(path); err != nil {
			return fmt.Errorf("wal: remove spare %s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func (l *Log) fileSize(path string) (int64, error) {
	f, err := l.cfg.FS.Open(path)
	if err != nil {
		return 0, fmt.Errorf("wal: %w", err)
	}
	size, err := f.Size()
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("wal: size of %s: %w", filepath.Base(path), err)
	}
	return size, nil
}
