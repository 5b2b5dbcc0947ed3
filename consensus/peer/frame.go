package peer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"

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

// typeField returns the second word of a frame's header: the type and a check of the length and the
// type. Without it, a damaged length would make the reader wait for bytes that never come: the
// frame's checksum is known only when all of its bytes are there.
func typeField(typ uint32, n int) uint32 {
	crc := ^uint32(0)
	for _, b := range [...]byte{byte(typ), byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} {
		crc = castagnoli[byte(crc)^b] ^ crc>>8 // crc32.Checksum, which would put the bytes on the heap
	}
	return typ | ^crc<<8
}

// frameWriter writes frames. A frameWriter is not safe for concurrent use.
type frameWriter struct{ *bufio.Writer }

func newFrameWriter(w io.Writer) *frameWriter {
	return &frameWriter{bufio.NewWriterSize(w, bufferBytes)}
}

// write buffers a frame, and writes all that does not fit into the buffer. The payload is not
// retained. An error is that of all later calls, too.
func (f *frameWriter) write(typ uint32, payload []byte) error {
	_, _ = f.Write(appendHeader(f.AvailableBuffer(), typ, payload))
	_, err := f.Write(payload)
	return err
}

func appendFrame(b []byte, typ uint32, payload []byte) []byte {
	return append(appendHeader(b, typ, payload), payload...)
}

func appendHeader(b []byte, typ uint32, payload []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, typeField(typ, len(payload)))
	return binary.LittleEndian.AppendUint32(b, checksum(b[start:], payload))
}

// frameReader reads frames. A frameReader is not safe for concurrent use.
type frameReader struct {
	r       *bufio.Reader
	max     int // bytes of a payload
	head    [frameHeaderBytes]byte
	partial partialReader // of r; without tell it is not used
}

func newFrameReader(r io.Reader, maxFrame int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, bufferBytes), max: maxFrame}
}

// next returns the next frame. The payload is in reuse if it fits, otherwise in new memory. An
// error is that of the reader (io.EOF only between two frames), or wraps ErrCorrupt.
func (f *frameReader) next(reuse []byte) (typ uint32, payload []byte, err error) {
	if _, err := io.ReadFull(f.r, f.head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(f.head[0:])
	word := binary.LittleEndian.Uint32(f.head[4:])
	if typ = word & 0xff; typ < typeData || typ > typeFailed {
		return 0, nil, fmt.Errorf("%w: frame of type %d", ErrCorrupt, typ)
	}
	if want := typeField(typ, int(n)); word != want {
		return 0, nil, fmt.Errorf("%w: the header of a frame of %d bytes has check %06x, want %06x", ErrCorrupt, n, word>>8, want>>8)
	}
	if uint64(n) > uint64(f.max) {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes, the maximum is %d", ErrCorrupt, n, f.max)
	}
	payloads := io.Reader(f.r)
	if f.partial.tell != nil && int(n) > f.r.Buffered() {
		f.partial.told, payloads = time.Now(), &f.partial
	}
	if payload, err = bodyread.Read(payloads, reuse, int(n), maxPrealloc); err != nil {
		return 0, nil, err
	}
	if want, got := binary.LittleEndian.Uint32(f.head[8:]), checksum(f.head[:8], payload); want != got {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes has checksum %08x, want %08x", ErrCorrupt, n, got, want)
	}
	return typ, payload, nil
}

// partialReader reads a payload that arrives in parts. It calls tell once in partInterval while
// parts arrive, unless tell is nil.
type partialReader struct {
	io.Reader
	told time.Time // when the last call was, or when the payload began
	tell func()
}

func (p *partialReader) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if now := time.Now(); err == nil && now.Sub(p.told) >= partInterval {
		p.told = now
		p.tell()
	}
	return n, err
}
