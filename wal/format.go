package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"strconv"
	"strings"
)

// The layout is drawn in docs/reference/formats.md. All integers are little-endian.
const (
	magic         = "gozkdWAL"
	formatVersion = 1

	segmentHeaderBytes = 64
	frameHeaderBytes   = 32
	frameAlign         = 8

	// flagRecycled marks a reused file: the bytes after the tail need not be zeros.
	flagRecycled = 1

	frameAppend = 1 // the only frame type; 0 is unwritten space

	recordState   = 1
	recordReset   = 2
	recordEntries = 3

	segmentSuffix = ".wal"
	spareSuffix   = ".spare"
	lockName      = "LOCK"
)

// segmentHeader is the header of a segment file. It is durable before the file gets its name, so it
// is never torn.
type segmentHeader struct {
	number     uint64
	salt       uint64
	firstSeq   uint64 // of the first frame
	firstIndex uint64 // LastIndex()+1 when the segment was made
	prevCRC    uint32 // of the last frame of the previous segment; the first frame is chained to the header's own CRC
	recycled   bool
}

func (h segmentHeader) append(buf []byte, table *crc32.Table) (_ []byte, crc uint32) {
	start := len(buf)
	le := binary.LittleEndian
	var flags uint32
	if h.recycled {
		flags = flagRecycled
	}
	buf = append(buf, magic...)
	buf = le.AppendUint32(buf, formatVersion)
	buf = le.AppendUint32(buf, flags)
	buf = le.AppendUint64(buf, h.number)
	buf = le.AppendUint64(buf, h.salt)
	buf = le.AppendUint64(buf, h.firstSeq)
	buf = le.AppendUint64(buf, h.firstIndex)
	buf = le.AppendUint32(buf, h.prevCRC)
	buf = le.AppendUint64(buf, 0) // reserved
	crc = crc32.Checksum(buf[start:], table)
	return le.AppendUint32(buf, crc), crc
}

// decodeSegmentHeader decodes the 64 bytes in buf. Its error is a *CorruptError without Path, or
// wraps ErrVersion.
//
// The magic, the checksum and the version are verified in this order. Every version must have a
// checksum over the first 60 bytes, so that a damaged version number is not mistaken for a newer
// format.
func decodeSegmentHeader(buf []byte, table *crc32.Table) (h segmentHeader, crc uint32, err error) {
	le := binary.LittleEndian
	bad := func(offset int64, want, got string) (segmentHeader, uint32, error) {
		return segmentHeader{}, 0, &CorruptError{Offset: offset, Want: want, Got: got}
	}
	if !bytes.HasPrefix(buf, []byte(magic)) {
		return bad(0, strconv.Quote(magic), strconv.Quote(string(buf[:len(magic)])))
	}
	crc = le.Uint32(buf[60:])
	if sum := crc32.Checksum(buf[:60], table); sum != crc {
		return bad(0, fmt.Sprintf("a segment header with CRC %#08x", crc), fmt.Sprintf("%#08x", sum))
	}
	if v := le.Uint32(buf[8:]); v > formatVersion {
		return segmentHeader{}, 0, fmt.Errorf("%w: it has version %d, this program reads versions up to %d; upgrade this server", ErrVersion, v, formatVersion)
	} else if v == 0 {
		return bad(8, "a format version", "0")
	}
	flags := le.Uint32(buf[12:])
	if flags&^flagRecycled != 0 || le.Uint64(buf[52:]) != 0 {
		return bad(12, "reserved bits that are zero", fmt.Sprintf("%#x and %#x", flags, le.Uint64(buf[52:])))
	}
	h = segmentHeader{
		number:     le.Uint64(buf[16:]),
		salt:       le.Uint64(buf[24:]),
		firstSeq:   le.Uint64(buf[32:]),
		firstIndex: le.Uint64(buf[40:]),
		prevCRC:    le.Uint32(buf[48:]),
		recycled:   flags&flagRecycled != 0,
	}
	if h.number == 0 || h.firstSeq == 0 || h.firstIndex == 0 {
		return bad(16, "number, sequence and index from 1", fmt.Sprintf("%d, %d and %d", h.number, h.firstSeq, h.firstIndex))
	}
	return h, crc, nil
}

type frameHeader struct {
	kind   byte
	length uint32 // of the payload, in bytes, without padding
	salt   uint64 // of the segment
	seq    uint64 // number of the frame in the log; unique among acknowledged frames
	prev   uint32 // CRC of the previous frame
	crc    uint32
}

// seal fills in the header of the frame in buf: frameHeaderBytes of room, payload, zero padding.
func (h frameHeader) seal(buf []byte, table *crc32.Table) (crc uint32) {
	le := binary.LittleEndian
	le.PutUint32(buf[0:], uint32(h.kind))
	le.PutUint32(buf[4:], h.length)
	le.PutUint64(buf[8:], h.salt)
	le.PutUint64(buf[16:], h.seq)
	le.PutUint32(buf[24:], h.prev)
	crc = frameCRC(buf, table)
	le.PutUint32(buf[28:], crc)
	return crc
}

// decodeFrameHeader decodes the header in buf. ok is false if no frame of this version has that.
func decodeFrameHeader(buf []byte) (h frameHeader, ok bool) {
	le := binary.LittleEndian
	kind := le.Uint32(buf[0:])
	h = frameHeader{
		kind:   byte(kind),
		length: le.Uint32(buf[4:]),
		salt:   le.Uint64(buf[8:]),
		seq:    le.Uint64(buf[16:]),
		prev:   le.Uint32(buf[24:]),
		crc:    le.Uint32(buf[28:]),
	}
	return h, kind == frameAppend
}

func frameCRC(frame []byte, table *crc32.Table) uint32 {
	crc := crc32.Update(0, table, frame[:28])
	return crc32.Update(crc, table, frame[frameHeaderBytes:])
}

func frameBytes(n int64) int64 {
	return frameHeaderBytes + (n+frameAlign-1)/frameAlign*frameAlign
}

func segmentPath(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", number, segmentSuffix))
}

func sparePath(dir string, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", number, spareSuffix))
}

// parseName returns the number in the name of a file of the log. ok is false for any other name.
func parseName(name, suffix string) (number uint64, ok bool) {
	hex, found := strings.CutSuffix(name, suffix)
	if !found || len(hex) != 16 || hex != strings.ToLower(hex) {
		return 0, false
	}
	number, err := strconv.ParseUint(hex, 16, 64)
	return number, err == nil
}
