package wal

import (
	"errors"
	"fmt"
)

// recover reads the segments, makes the last segment the tail, and makes the content durable.
func (l *Log) recover(numbers []uint64) (Recovered, error) {
	content, last, err := l.readSegments(numbers)
	if err != nil {
		return Recovered{}, err
	}
	rec, err := l.repair(last)
	if err != nil {
		return Recovered{}, err
	}
	l.pos = position{first: content.base + 1, last: content.last()}
	if content.state != nil {
		l.setState(content.state)
	}
	rec.State, rec.Entries = content.state, content.entries
	return rec, nil
}

// readSegments reads the segments, and makes the last segment the tail, whose file stays open even
// after an error. After an error, content is what precedes it.
func (l *Log) readSegments(numbers []uint64) (content *replay, last *reader, err error) {
	content = &replay{}
	keep := &arena{}
	for i, number := range numbers {
		r, err := l.readSegment(segmentPath(l.dir, number), number, last, content, keep)
		if err != nil {
			return content, nil, err
		}
		last = r
		content.forget(l.cfg.From, l.cfg.Keep)
		s := segment{number: number, bytes: r.size, highest: content.last()}
		if i < len(numbers)-1 {
			l.sealed = append(l.sealed, s)
			if err := r.f.Close(); err != nil {
				return content, nil, fmt.Errorf("wal: close %s: %w", r.path, err)
			}
			continue
		}
		// start is before the state that a segment begins with: a segment that holds nothing else
		// may be left early.
		l.tail = tail{segment: s, f: r.f, salt: r.header.salt, start: segmentHeaderBytes, end: r.end}
	}
	return content, last, nil
}

// readSegment applies the segment at path to content, and advances the chain of checksums past it.
// number is the segment's, or 0 if any will do. previous is the previous segment, read to its end,
// or nil. The file stays open unless there is an error.
func (l *Log) readSegment(path string, number uint64, previous *reader, content *replay, keep *arena) (_ *reader, err error) {
	r, err := openReader(l.cfg.FS, path, l.table)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.f.Close())
		}
	}()
	if err := r.readHeader(number); err != nil {
		return nil, err
	}
	if previous == nil {
		l.seq, content.base = r.header.firstSeq, r.header.firstIndex-1
	} else if err := r.follows(previous, l.seq, l.prev, content.last()); err != nil {
		return nil, err
	}
	l.prev = r.crc
	for bytes := 0; ; {
		payload, ok, err := r.next(l.seq, l.prev)
		if err != nil {
			return nil, err
		}
		if !ok {
			return r, nil
		}
		l.seq, l.prev = l.seq+1, r.crc
		if want, got, ok := content.payload(keep.copy(payload)); !ok {
			return nil, r.corrupt(r.last, want, got)
		}
		if bytes += len(payload); int64(bytes) > max(forgetBytes, l.cfg.Keep/4) { // each time copies what stays
			bytes = 0
			content.forget(l.cfg.From, l.cfg.Keep)
		}
	}
}

// torn decides whether the bytes after the last good frame are the remains of a torn append or
// damage. r must have read the last segment.
func (l *Log) torn(r *reader) (Recovered, error) {
	torn, later, err := r.scanTail(l.seq)
	if err != nil {
		return Recovered{}, err
	}
	if later >= 0 {
		// Append writes a frame only after the previous frame was synced. So the bad frame here was
		// on disk and acknowledged.
		return Recovered{}, r.corrupt(r.end, fmt.Sprintf("frame %d, because a later frame is at offset %d", l.seq, later), r.why)
	}
	rec := Recovered{TornBytes: torn}
	if torn > 0 {
		rec.TornPath, rec.TornOffset = r.path, r.end
	}
	return rec, nil
}

// repair cuts off a torn append, and makes the tail durable. r must have read the last segment.
func (l *Log) repair(r *reader) (Recovered, error) {
	rec, err := l.torn(r)
	if err != nil {
		return Recovered{}, err
	}
	if rec.TornBytes > 0 {
		l.cfg.Logger.Warn("cut off a torn append", "path", r.path, "offset", r.end, "bytes", rec.TornBytes)
		if err := r.f.Preallocate(r.end, rec.TornBytes); err != nil {
			return Recovered{}, fmt.Errorf("wal: cut off the torn append in %s: %w", r.path, err)
		}
	}
	// The previous process may have died, or stopped, between the write of the last frame and its
	// sync. Only that frame can be in the page cache without being on disk, and after a failed sync
	// the cache may mark its pages as clean. So write that frame again, and sync, before anything
	// depends on it.
	frame, err := r.at(r.last, r.end-r.last)
	if err != nil {
		return Recovered{}, err
	}
	if _, err := r.f.WriteAt(frame, r.last); err != nil {
		return Recovered{}, fmt.Errorf("wal: write the last frame of %s again: %w", r.path, err)
	}
	if err := r.f.Sync(); err != nil {
		return Recovered{}, fmt.Errorf("wal: sync %s: %w", r.path, err)
	}
	if err := l.cfg.FS.SyncDir(l.dir); err != nil {
		return Recovered{}, fmt.Errorf("wal: sync directory: %w", err)
	}
	r.buf = nil // the log retains the file, not the buffer
	return rec, nil
}

// arena copies payloads, most of which are small, into shared blocks of memory.
type arena struct{ buf []byte }

const arenaBytes = 64 << 10

// forgetBytes are read before entries that nobody needs are dropped.
const forgetBytes = 1 << 20

func (a *arena) copy(p []byte) []byte {
	if len(p) > arenaBytes/4 {
		return append(make([]byte, 0, len(p)), p...)
	}
	if cap(a.buf)-len(a.buf) < len(p) {
		a.buf = make([]byte, 0, arenaBytes)
	}
	start := len(a.buf)
	a.buf = append(a.buf, p...)
	return a.buf[start:len(a.buf):len(a.buf)]
}
