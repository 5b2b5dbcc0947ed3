package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/vfs"
)

// keepBufferBytes is the largest buffer that a log retains between appends.
const keepBufferBytes = 1 << 20

// Log is an open log. Its methods must be called from one goroutine at a time.
type Log struct {
	dir   string
	cfg   Config
	table *crc32.Table
	lock  vfs.Lock

	sealed []segment // full segments, oldest first, numbers without gaps
	tail   tail
	spares []spare // files for the next segments

	pos   position
	state []byte // newest; nil if there has been none
	seq   uint64 // of the next frame
	prev  uint32 // CRC of the last frame, or of the tail's header if it has no frame

	buf    []byte // for the next frame; reused
	err    error  // the first error of the disk; sticky
	closed bool
}

type segment struct {
	number  uint64
	bytes   int64  // size of the file
	highest uint64 // LastIndex when it was sealed; all higher entries in it or in earlier segments are replaced
}

type tail struct {
	segment
	f     vfs.File
	salt  uint64
	start int64 // offset after the header and the state that each segment begins with
	end   int64 // offset after the last frame
}

// spare is the file of a dropped segment, kept for a later segment.
type spare struct {
	path  string
	bytes int64
}

// Append writes all batches, in order, as one frame, and returns after the frame is on disk. The
// frame is recovered as a whole or not at all. Append retains no slice, and does nothing if the
// batches are empty.
//
// Errors:
//
//   - ErrClosed.
//   - ErrOrder and ErrTooLarge: nothing was written, and the log can still be used.
//   - Any other error is sticky: the log refuses all further work, because after a failed sync the
//     page cache can't be trusted. The next Open may or may not recover the batches.
func (l *Log) Append(batches ...Batch) error {
	if err := l.usable(); err != nil {
		return err
	}
	pos, payload := l.pos, int64(0)
	for i := range batches {
		var err error
		if pos, err = pos.after(&batches[i]); err != nil {
			return err
		}
		payload += batches[i].encodedBytes()
	}
	if payload == 0 {
		return nil
	}
	if frameBytes(payload) > MaxAppendBytes {
		return fmt.Errorf("%w: %d bytes, the maximum is %d", ErrTooLarge, frameBytes(payload), int64(MaxAppendBytes))
	}
	if err := l.write(batches, payload); err != nil {
		l.err = err
		return err
	}
	for i := range batches {
		if state := batches[i].State; state != nil {
			l.setState(state)
		}
	}
	l.pos = pos
	return nil
}

// Compact declares that entries up to index are no longer needed. Compact drops the segments that
// hold no other entries, so the next Open may still recover some of these entries. An index above
// LastIndex empties the log durably, like Batch.Reset. Errors are those of Append.
func (l *Log) Compact(index uint64) error {
	if err := l.usable(); err != nil {
		return err
	}
	if index > l.pos.last {
		if err := l.Append(Batch{Reset: index}); err != nil {
			return err
		}
	}
	l.pos.first = max(l.pos.first, index+1)
	for len(l.sealed) > 0 && l.sealed[0].highest <= index {
		if err := l.dropOldest(); err != nil {
			l.err = err
			return err
		}
	}
	return nil
}

// FirstIndex returns the index of the oldest entry, or LastIndex()+1 if there is none.
func (l *Log) FirstIndex() uint64 { return l.pos.first }

// LastIndex returns the index of the newest entry, or FirstIndex()-1 if there are no entries.
func (l *Log) LastIndex() uint64 { return l.pos.last }

// InPlace returns an error if the directory, its lock or the newest segment was removed, moved or
// replaced while the log is open, as [vfs.Placed] says: the next Open would not find what is
// appended. Other errors are those of Append.
func (l *Log) InPlace() error {
	if err := l.usable(); err != nil {
		return err
	}
	return errors.Join(l.lock.InPlace(), l.tail.f.InPlace())
}

// Close closes the files and releases the lock. Close writes nothing; with NoSync it syncs the
// appends. A second Close does nothing.
func (l *Log) Close() error {
	if l.closed {
		return nil
	}
	l.closed = true
	var errs []error
	if l.tail.f != nil {
		if l.cfg.NoSync && l.err == nil {
			errs = append(errs, l.tail.f.Sync())
		}
		errs = append(errs, l.tail.f.Close())
	}
	return errors.Join(append(errs, l.lock.Close())...)
}

func (l *Log) usable() error {
	if l.closed {
		return ErrClosed
	}
	if l.err != nil {
		return fmt.Errorf("wal: stopped after an earlier error: %w", l.err)
	}
	return nil
}

// write appends batches to the tail, or to a new segment if the tail is full, and syncs. payload is
// their encoded length.
func (l *Log) write(batches []Batch, payload int64) error {
	size := frameBytes(payload)
	if l.tail.end+size > l.cfg.SegmentBytes && l.tail.end > l.tail.start {
		if err := l.roll(); err != nil {
			return err
		}
	}
	if err := l.extend(l.tail.end + size); err != nil {
		return err
	}
	buf := slices.Grow(l.buf[:0], int(size))[:frameHeaderBytes]
	for i := range batches {
		buf = batches[i].append(buf)
	}
	buf = l.seal(buf, l.tail.salt)
	if l.buf = buf; cap(buf) > keepBufferBytes {
		l.buf = nil
	}

	var began time.Time
	if l.cfg.OnSync != nil {
		began = time.Now()
	}
	if _, err := l.tail.f.WriteAt(buf, l.tail.end); err != nil {
		return fmt.Errorf("wal: append to segment %d: %w", l.tail.number, err)
	}
	l.tail.end += size
	if l.cfg.NoSync {
		return nil
	}
	if err := l.tail.f.Sync(); err != nil {
		return fmt.Errorf("wal: sync segment %d: %w", l.tail.number, err)
	}
	if l.cfg.OnSync != nil {
		l.cfg.OnSync(time.Since(began), len(batches), len(buf))
	}
	return nil
}

// seal turns buf, which holds room for a header and a payload, into the next frame of the chain.
func (l *Log) seal(buf []byte, salt uint64) []byte {
	h := frameHeader{kind: frameAppend, length: uint32(len(buf) - frameHeaderBytes), salt: salt, seq: l.seq, prev: l.prev}
	for len(buf)%frameAlign != 0 {
		buf = append(buf, 0)
	}
	l.prev = h.seal(buf, l.table)
	l.seq++
	return buf
}

func (l *Log) setState(state []byte) {
	if l.state == nil {
		l.state = make([]byte, 0, len(state)) // an empty state must not be nil
	}
	l.state = append(l.state[:0], state...)
}

func (l *Log) newSalt() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(l.cfg.Rand, b[:]); err != nil {
		return 0, fmt.Errorf("wal: draw a salt: %w", err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}
