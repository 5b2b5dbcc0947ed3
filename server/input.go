package server

import (
	"encoding/binary"
	"fmt"
	"sync"
)

const (
	inputBytes = 32 << 10
	// handshakeBytes is the size of the read buffer before a connection has a session. The longest
	// first request of a client has 49 bytes; a client may send more requests right after it.
	handshakeBytes = 1 << 10
)

// inputs and smallInputs hold free read buffers. A connection borrows a buffer only while there are
// bytes to handle.
var (
	inputs      = sync.Pool{New: func() any { return new([inputBytes]byte) }}
	smallInputs = sync.Pool{New: func() any { return new([handshakeBytes]byte) }}
)

// input holds the bytes that were read from a connection and are not handled yet: buf[r:w].
type input struct {
	buf    []byte
	r, w   int
	pooled *[inputBytes]byte     // nil: buf is not from inputs
	few    *[handshakeBytes]byte // nil: buf is not from smallInputs
	small  bool                  // the next buffer has handshakeBytes
	waited bool                  // the last fill found nothing at first
}

// frame returns the next frame without its length, or nil if the frame has not arrived as a whole.
// The result shares the buffer. A length that is negative or above limit is an error.
func (in *input) frame(limit int32) ([]byte, error) {
	if in.w-in.r < 4 {
		return nil, nil
	}
	n := int32(binary.BigEndian.Uint32(in.buf[in.r:]))
	if n < 0 || n > limit {
		return nil, fmt.Errorf("frame length %d, allowed are 0 to %d", n, limit)
	}
	if in.w-in.r-4 < int(n) {
		return nil, nil
	}
	f := in.buf[in.r+4 : in.r+4+int(n) : in.r+4+int(n)]
	in.r += 4 + int(n)
	return f, nil
}

// announced returns the length of the frame that has begun to arrive, or 0.
func (in *input) announced() int {
	if in.w-in.r < 4 {
		return 0
	}
	return int(binary.BigEndian.Uint32(in.buf[in.r:]))
}

// fill reads more bytes from c. fill holds no buffer while it waits, unless a part of a frame has
// arrived.
func (in *input) fill(c *conn) error {
	in.waited = false
	if in.r == in.w {
		in.release()
		c.holdInput(0, false)
		return in.first(c)
	}
	in.grow()
	c.holdInput(len(in.buf), true)
	n, err := c.readSome(in.buf[in.w:], len(in.buf))
	in.w += n
	return err
}

// first reads the first bytes into a borrowed buffer.
func (in *input) first(c *conn) error {
	if c.sealed() {
		return c.tls.first(in)
	}
	if c.raw == nil { // a pipe, or a system without raw sockets: wait with a small buffer
		var few [4]byte
		n, err := c.readSome(few[:], 0)
		in.borrow()
		in.w = copy(in.buf, few[:n])
		return err
	}
	return c.raw.fill(in)
}

// grow makes room for more bytes of an incomplete frame. The buffer doubles as bytes arrive, so
// that a false length costs at most twice the memory of what was really sent.
func (in *input) grow() {
	switch {
	case in.r > 0:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	case in.w == len(in.buf):
		full, w := *in, in.w
		if len(full.buf) < inputBytes {
			in.borrow()
		} else {
			// Not beyond the end of the frame, whose length was checked.
			in.buf = make([]byte, min(2*len(full.buf), max(4+full.announced(), len(full.buf)+1)))
			in.pooled, in.few = nil, nil
		}
		in.w = copy(in.buf, full.buf[:w])
		full.release()
	}
}

func (in *input) borrow() {
	in.r, in.w = 0, 0
	if in.small {
		in.pooled, in.few = nil, smallInputs.Get().(*[handshakeBytes]byte)
		in.buf = in.few[:]
		return
	}
	in.pooled, in.few = inputs.Get().(*[inputBytes]byte), nil
	in.buf = in.pooled[:]
}

// release gives the buffer back.
func (in *input) release() {
	if in.pooled != nil {
		inputs.Put(in.pooled)
	}
	if in.few != nil {
		smallInputs.Put(in.few)
	}
	in.buf, in.pooled, in.few, in.r, in.w = nil, nil, nil, 0, 0
}
