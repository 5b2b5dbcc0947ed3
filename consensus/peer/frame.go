package peer

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

const (
	headBytes = 12
	// trustBytes is what is allocated because a length says so.
	trustBytes = 1 << 20
)

// Types of frames. 0 is none, so that zeros are no frame.
const (
	typeData   = 1 // for Receive, or a piece of a checkpoint
	typeBeat   = 2 // empty: the sender is there
	typeEnd    = 3 // of a checkpoint; holds the number of its bytes
	typeDone   = 4 // empty: the checkpoint was taken
	typeFailed = 5 // text: why this side gives up the connection
)

// frameWriter writes frames. Not safe for concurrent use.
type frameWriter struct {
	w    *bufio.Writer
	head [headBytes]byte // a local one would escape, once per frame
}

func newFrameWriter(w io.Writer) *frameWriter {
	return &frameWriter{w: bufio.NewWriterSize(w, bufferBytes)}
}

// write buffers a frame; what does not fit in the buffer goes out. The payload is not kept.
func (f *frameWriter) write(typ uint32, payload []byte) error {
	binary.LittleEndian.PutUint32(f.head[0:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(f.head[4:], typ)
	binary.LittleEndian.PutUint32(f.head[8:], checksum(f.head[:8], payload))
	if _, err := f.w.Write(f.head[:]); err != nil {
		return err
	}
	_, err := f.w.Write(payload)
	return err
}

func (f *frameWriter) flush() error { return f.w.Flush() }

// appendFrame encodes a frame behind b.
func appendFrame(b []byte, typ uint32, payload []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, typ)
	b = binary.LittleEndian.AppendUint32(b, checksum(b[start:], payload))
	return append(b, payload...)
}

// frameReader reads frames. Not safe for concurrent use.
type frameReader struct {
	r    *bufio.Reader
	max  int // bytes of a payload
	head [headBytes]byte
}

func newFrameReader(r io.Reader, maxFrame int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, bufferBytes), max: maxFrame}
}

// next returns the next frame. The payload is reuse if it fits there, else new. Errors: those of the reader, io.EOF only
// between two frames; ErrCorrupt.
func (f *frameReader) next(reuse []byte) (typ uint32, payload []byte, err error) {
	if _, err := io.ReadFull(f.r, f.head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(f.head[0:])
	typ = binary.LittleEndian.Uint32(f.head[4:])
	if typ < typeData || typ > typeFailed {
		return 0, nil, fmt.Errorf("%w: frame of type %d", ErrCorrupt, typ)
	}
	if uint64(n) > uint64(f.max) {
		return 0, nil, fmt.Errorf("%w: frame of %d bytes, at most %d are allowed", ErrCorrupt, n, f.max)
	}
	if payload, err = readBody(f.r, reuse, int(n)); err != nil {
		return 0, nil, err
	}
	if want, got := binary.LittleEndian.Uint32(f.head[8:]), checksum(f.head[:8], payload); want != got {
		return 0, nil, fmt.Errorf("%w: checksum of a frame of %d bytes is %08x, not %08x", ErrCorrupt, n, got, want)
	}
	return typ, payload, nil
}

// readBody reads n bytes. It allocates trustBytes at most before they come, and then at most twice what has come, so that a length
// that lies costs the liar as much as us.
func readBody(r io.Reader, reuse []byte, n int) ([]byte, error) {
	body := reuse[:0]
	if cap(body) < n {
		body = make([]byte, 0, min(n, trustBytes))
	}
	for {
		have := len(body)
		body = body[:min(n, cap(body))]
		if _, err := io.ReadFull(r, body[have:]); err != nil {
			return nil, noEOF(err)
		}
		if len(body) == n {
			return body, nil
		}
		grown := make([]byte, len(body), min(n, 2*cap(body)))
		copy(grown, body)
		body = grown
	}
}
