package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/gozkd/gozkd/internal/vfs"
)

const windowBytes = 256 << 10

type reader struct {
	f     vfs.File
	path  string
	table *crc32.Table
	size  int64

	header segmentHeader
	last   int64  // offset of the last good frame; equal to end if there is none
	end    int64  // offset after the last good frame
	crc    uint32 // of the last good frame, or of the header
	why    string // why there is no good frame at end

	buf []byte // window that at has read last
	off int64  // offset of buf
}

func openReader(fs vfs.FS, path string, table *crc32.Table) (*reader, error) {
	f, err := fs.OpenRW(path)
	if err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wal: size of %s: %w", path, err), f.Close())
	}
	return &reader{f: f, path: path, table: table, size: size}, nil
}

// readHeader reads the header of the segment with that number, or of any segment if number is 0.
func (r *reader) readHeader(number uint64) error {
	if r.size < segmentHeaderBytes {
		return r.corrupt(0, fmt.Sprintf("a header of %d bytes", segmentHeaderBytes), fmt.Sprintf("a file of %d bytes", r.size))
	}
	buf, err := r.at(0, segmentHeaderBytes)
	if err != nil {
		return err
	}
	r.header, r.crc, err = decodeSegmentHeader(buf, r.table)
	if corrupt := (*CorruptError)(nil); errors.As(err, &corrupt) {
		corrupt.Path = r.path
		return corrupt
	}
	if err != nil {
		return fmt.Errorf("wal: %s: %w", r.path, err)
	}
	if number != 0 && r.header.number != number {
		return r.corrupt(16, fmt.Sprintf("segment %d, as the file's name says", number), fmt.Sprintf("segment %d", r.header.number))
	}
	r.last, r.end = segmentHeaderBytes, segmentHeaderBytes
	return nil
}

// follows verifies that the segment continues where the previous segment has ended.
func (r *reader) follows(previous *reader, seq uint64, prev uint32, lastIndex uint64) error {
	h := r.header
	if h.firstSeq > seq || h.firstSeq == seq && h.prevCRC != prev {
		return previous.corrupt(previous.end, fmt.Sprintf("frames %d to %d, because segment %d follows", seq, h.firstSeq-1, h.number), previous.why)
	}
	if h.firstSeq < seq || h.firstIndex != lastIndex+1 {
		return r.corrupt(32, fmt.Sprintf("frame %d and entry %d to follow", seq, lastIndex+1), fmt.Sprintf("%d and %d", h.firstSeq, h.firstIndex))
	}
	return nil
}

// next returns the payload of the next frame, which is valid until the next call. If there is no
// good frame, ok is false, and r.why describes the bytes there.
func (r *reader) next(seq uint64, prev uint32) (payload []byte, ok bool, err error) {
	stop := func(why string, args ...any) ([]byte, bool, error) {
		r.why = fmt.Sprintf(why, args...)
		return nil, false, nil
	}
	room := r.size - r.end
	if room < frameHeaderBytes {
		return stop("the end of the file")
	}
	buf, err := r.at(r.end, frameHeaderBytes)
	if err != nil {
		return nil, false, err
	}
	h, known := decodeFrameHeader(buf)
	if !known {
		return stop("no frame")
	}
	if h.salt != r.header.salt || h.seq != seq || h.prev != prev {
		return stop("a frame %d of another chain", h.seq)
	}
	n := frameBytes(int64(h.length))
	if n > room {
		return stop("a frame of %d bytes, %d bytes before the end of the file", n, room)
	}
	if buf, err = r.at(r.end, n); err != nil {
		return nil, false, err
	}
	if sum := frameCRC(buf, r.table); sum != h.crc {
		return stop("a frame with CRC %#08x whose header says %#08x", sum, h.crc)
	}
	r.last, r.end, r.crc = r.end, r.end+n, h.crc
	return buf[frameHeaderBytes : frameHeaderBytes+int64(h.length)], true, nil
}

// scanTail examines the bytes after the last good frame of the last segment.
//
//	torn   number of bytes that an unfinished append has left there
//	later  offset of a frame that is later than seq, the expected next frame; -1 if there is none
//
// A frame counts as later by its salt and sequence number alone. Its checksum doesn't matter: a
// frame, whole or torn, is written only after the sync of the previous frame. Data of clients can't
// be mistaken for a frame, since the salt is random and secret. At end itself salt and number prove
// nothing: if a header lies across two sectors, the salt may be new, and the number may be left
// over in a recycled file.
func (r *reader) scanTail(seq uint64) (torn, later int64, err error) {
	le := binary.LittleEndian
	later = -1
	dirty := r.end // offset after the last word that is not zero
	for off := r.end; off < r.size; off += windowBytes {
		// Each window overlaps the next window, so that a header at its last word is seen.
		buf, err := r.at(off, min(windowBytes+24, r.size-off))
		if err != nil {
			return 0, 0, err
		}
		if bytes.Count(buf, []byte{0}) == len(buf) {
			continue // only zeros, as in most of the space that was allocated in advance
		}
		for i := 0; i < windowBytes && i+8 <= len(buf); i += frameAlign {
			if le.Uint64(buf[i:]) != 0 {
				dirty = off + int64(i) + 8
			}
			if off+int64(i) > r.end && i+24 <= len(buf) && le.Uint64(buf[i+8:]) == r.header.salt && le.Uint64(buf[i+16:]) > seq && later < 0 {
				later = off + int64(i)
			}
		}
	}
	if !r.header.recycled {
		return dirty - r.end, later, nil
	}
	// The tail of a recycled file may hold old data. There an append has left remains only if the
	// header of its frame is present. Other pieces of it don't matter: the next append overwrites
	// their header's place.
	if r.size-r.end < frameHeaderBytes {
		return 0, later, nil
	}
	buf, err := r.at(r.end, frameHeaderBytes)
	if err != nil {
		return 0, 0, err
	}
	if h, known := decodeFrameHeader(buf); known && h.salt == r.header.salt {
		torn = min(frameBytes(int64(h.length)), r.size-r.end)
	}
	return torn, later, nil
}

// at returns n bytes at off, which must lie within the file. They are valid until the next call.
func (r *reader) at(off, n int64) ([]byte, error) {
	if off >= r.off && off+n <= r.off+int64(len(r.buf)) {
		return r.buf[off-r.off:][:n], nil
	}
	want := max(n, min(windowBytes, r.size-off))
	r.buf, r.off = slices.Grow(r.buf[:0], int(want))[:want], off
	if got, err := r.f.ReadAt(r.buf, off); int64(got) < want {
		r.buf = r.buf[:0]
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file has shrunk
		}
		return nil, fmt.Errorf("wal: read %s at %d: %w", r.path, off, err)
	}
	return r.buf[:n], nil
}

func (r *reader) corrupt(offset int64, want, got string) error {
	return &CorruptError{Path: r.path, Offset: offset, Want: want, Got: got}
}
