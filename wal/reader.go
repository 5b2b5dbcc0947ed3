package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/gozkd/gozkd/internal/vfs"
)

// windowBytes is how much of a segment is read at a time.
const windowBytes = 256 << 10

// reader reads the frames of one segment file, in order.
type reader struct {
	f     vfs.File
	path  string
	table *crc32.Table
	size  int64

	header segmentHeader
	last   int64  // where the last good frame begins; equal to end if there is none
	end    int64  // behind the last good frame
	crc    uint32 // of the last good frame, or of the header
	why    string // why there is no good frame at end

	buf []byte // what at has read last
	off int64  // where buf begins
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
	if r.header.number != number {
		return r.corrupt(16, fmt.Sprintf("segment %d, as the file's name says", number), fmt.Sprintf("segment %d", r.header.number))
	}
	r.last, r.end = segmentHeaderBytes, segmentHeaderBytes
	return nil
}

// follows checks that the segment goes on where the one before has ended.
func (r *reader) follows(before *reader, seq uint64, prev uint32, lastIndex uint64) error {
	h := r.header
	if h.firstSeq > seq || h.firstSeq == seq && h.prevCRC != prev {
		return before.corrupt(before.end, fmt.Sprintf("frames %d to %d, since segment %d follows", seq, h.firstSeq-1, h.number), before.why)
	}
	if h.firstSeq < seq || h.firstIndex != lastIndex+1 {
		return r.corrupt(32, fmt.Sprintf("frame %d and entry %d to follow", seq, lastIndex+1), fmt.Sprintf("%d and %d", h.firstSeq, h.firstIndex))
	}
	return nil
}

// next returns the payload of the next frame, valid until the next call. ok is false if there is no good frame; r.why
// then says what is there.
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
		return stop("a frame of %d bytes where the file ends after %d", n, room)
	}
	if buf, err = r.at(r.end, n); err != nil {
		return nil, false, err
	}
	if sum := frameCRC(buf, r.table); sum != h.crc {
		return stop("a frame with CRC %#08x that says %#08x", sum, h.crc)
	}
	r.last, r.end, r.crc = r.end, r.end+n, h.crc
	return buf[frameHeaderBytes : frameHeaderBytes+int64(h.length)], true, nil
}

// scanTail looks at what is behind the last good frame of the last segment.
//
//	torn   how many bytes an unfinished append has left there
//	later  where a frame stands that is later than seq, the one that should come next; -1 if there is none
//
// A frame counts as later by its salt and sequence number alone. Its checksum doesn't matter: a frame, whole or torn, is
// only ever written after the sync of the one before. Contents can't pass for one, since the salt is drawn at random
// and told to nobody. At end itself nothing is concluded from them: of a head that lies across two sectors the salt
// may be new, and the number whatever a recycled file held there.
func (r *reader) scanTail(seq uint64) (torn, later int64, err error) {
	le := binary.LittleEndian
	later = -1
	dirty := r.end // behind the last word that is not zero
	for off := r.end; off < r.size; off += windowBytes {
		// Each window reaches into the next one by what is needed to see a header that begins at its last word.
		buf, err := r.at(off, min(windowBytes+24, r.size-off))
		if err != nil {
			return 0, 0, err
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
	// In a recycled file remains of its earlier life may lie behind the tail. An append has begun there only if the head of
	// its frame is there; if just other pieces of it are, the next append's head takes their head's place all the same.
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

// at returns n bytes at off, which must lie within the file, valid until the next call.
func (r *reader) at(off, n int64) ([]byte, error) {
	if off >= r.off && off+n <= r.off+int64(len(r.buf)) {
		return r.buf[off-r.off:][:n], nil
	}
	want := max(n, min(windowBytes, r.size-off))
	if int64(cap(r.buf)) < want {
		r.buf = make([]byte, want)
	}
	r.buf, r.off = r.buf[:want], off
	if got, err := r.f.ReadAt(r.buf, off); int64(got) < want {
		r.buf = r.buf[:0]
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // the file has shrunk
		}
		return nil, fmt.Errorf("wal: read %s at %d: %w", r.path, off, err)
	}
	return r.buf[:n], nil
}

func (r *reader) corrupt(offset int64, want, got string) error {
	return &CorruptError{Path: r.path, Offset: offset, Want: want, Got: got}
}
