package server

import (
	"encoding/binary"
	"fmt"
	"sync"
)

const inputBytes = 32 << 10

// inputs are buffers to read into. A connection borrows one while bytes are there.
var inputs = sync.Pool{New: func() any { return new([inputBytes]byte) }}

// input is what was read from a connection and not yet handled: buf[r:w].
type input struct {
	buf    []byte
	r, w   int
	pooled *[inputBytes]byte
}

// frame returns the next whole frame without its length, or nil if it is not there yet. It shares the buffer. A length
// that is negative or over limit is an error.
func (in *input) frame(limit int32) ([]byte, error) {
	if in.w-in.r < 4 {
		return nil, nil
	}
	n := int32(binary.BigEndian.Uint32(in.buf[in.r:]))
	if n < 0 || n > limit {
		return nil, fmt.Errorf("frame length %d, allowed are 0 to %d (jute.maxbuffer)", n, limit)
	}
	if in.w-in.r-4 < int(n) {
		return nil, nil
	}
	f := in.buf[in.r+4 : in.r+4+int(n) : in.r+4+int(n)]
	in.r += 4 + int(n)
	return f, nil
}

// fill reads more bytes from c. While nothing is there and no partial frame waits, no buffer is held.
func (in *input) fill(c *conn) error {
	if in.r == in.w {
		in.release()
		return in.first(c)
	}
	in.grow()
	n, err := c.nc.Read(in.buf[in.w:])
	in.w += n
	return err
}

// first reads the first bytes into a borrowed buffer.
func (in *input) first(c *conn) error {
	if c.raw == nil { // a pipe, or a system without raw sockets: wait with a few bytes
		var few [4]byte
		n, err := c.nc.Read(few[:])
		in.borrow()
		in.w = copy(in.buf, few[:n])
		return err
	}
	return c.raw.fill(in)
}

// grow makes room for more bytes of a frame that is not whole. The buffer doubles as bytes arrive: a length that lies
// costs no more than twice what was really sent.
func (in *input) grow() {
	switch {
	case in.r > 0:
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	case in.w == len(in.buf):
		bigger := make([]byte, 2*len(in.buf))
		copy(bigger, in.buf)
		w := in.w
		in.release()
		in.buf, in.w = bigger, w
	}
}

func (in *input) borrow() {
	in.pooled = inputs.Get().(*[inputBytes]byte)
	in.buf = in.pooled[:]
	in.r, in.w = 0, 0
}

func (in *input) release() {
	if in.pooled != nil {
		inputs.Put(in.pooled)
	}
	*in = input{}
}
