package peer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/gozkd/gozkd/internal/bodyread"
)

const (
	frameHeaderBytes = 12
	// maxPrealloc is the most that is allocated for a length before its bytes arrive.
	maxPrealloc = 1 << 20
)

// Types of frames. 0 is invalid, so that zeros are no frame.
const (
	typeData      = 1 // a frame for Receive, or a piece of a checkpoint
	typeHeartbeat = 2 // empty: the sender is alive
	typeEnd       = 3 // end of a checkpoint: the number of its bytes
	typeDone      = 4 // empty: the checkpoint was received
	typeFailed    = 5 // text: why this side closes the connection
)

// typeField returns the second word of a frame's header: the type and, if both sides understand
// that, a check of the length and the type. Without it, a damaged length would make the reader wait
// for bytes that never come: the frame's checksum is known only when all of its bytes are there.
func typeField(typ uint32, n int, checked bool) uint32 {
	if !checked {
		return typ
	}
	b := [5]byte{0: byte(typ)}
	binary.LittleEndian.PutUint32(b[1:], uint32(n))
	return typ | crc32.Checksum(b[:], castagnoli)<<8
}

// frameWriter writes frames. A frameWriter is not safe for concurrent use.
type frameWriter struct {
	*bufio.Writer
	checked bool
}

func newFrameWriter(w io.Writer, checked bool) *frameWriter {
	return &frameWriter{bufio.NewWriterSize(w, bufferBytes), checked}
}

// write buffers a frame, and writes all that does not fit into the buffer. The payload is not
// retained. An error is that of all later calls, too.
func (f *frameWriter) write(typ uint32, payload []byte) error {
	_, _ = f.Write(appendHeader(f.AvailableBuffer(), typ, payload, f.checked))
	_, err := f.Write(payload)
	return err
}

func appendFrame(b []byte, typ uint32, payload []byte, checked bool) []byte {
	return append(appendHeader(b, typ, payload, checked), payload...)
}

func appendHeader(b []byte, typ uint32, payload []byte, checked bool) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, typeField(typ, len(payload), checked))
	return binary.LittleEndian.AppendUint32(b, checksum(b[start:], payload))
}

// frameReader reads frames. A frameReader is not safe for concurrent use.
type frameReader struct {
	r       *bufio.Reader
	max     int // bytes of a payload
	checked bool
	head    [frameHeaderBytes]byte
}

func newFrameReader(r io.Reader, maxFrame int, checked bool) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, bufferBytes), max: maxFrame, checked: checked}
}

// next returns the next frame. The payload is in reuse if it fits, otherwise in new memory. An
// error is that of the reader (io.EOF only between two frames), or wraps ErrCorrupt.
func (f *frameReader) next(reuse []byte) (typ uint32, payload []byte, err error) {
	if _, err := io.ReadFull(f.r, f.head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(f.head[0:])
	word := binary.LittleEndian.Uint32(f.head[4:])
	if typ = word; f.checked {
		typ = word & 0xff
	}
	if typ < typeData || typ > typeFailed {
		return 0, nil, fmt.Errorf("%w: frame of type %d", ErrCorrupt, typ)
	}
	if want := typeField(typ, int(n), f.checked); word != want {
		return 0, nil, fmt.Errorf("%w: the header of a frame of %d bytes has check %06x, want %06x", ErrCorrupt, n, word>>8, want>>8)
	}
	if uint64(n) > uint64(f.max) {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes, the maximum is %d", ErrCorrupt, n, f.max)
	}
	if payload, err = bodyread.Read(f.r, reuse, int(n), maxPrealloc); err != nil {
		return 0, nil, err
	}
	if want, got := binary.LittleEndian.Uint32(f.head[8:]), checksum(f.head[:8], payload); want != got {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes has checksum %08x, want %08x", ErrCorrupt, n, got, want)
	}
	return typ, payload, nil
}
