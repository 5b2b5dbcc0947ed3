package server

import "sync"

// outputs holds free buffers for replies. An idle connection has none.
var outputs = sync.Pool{New: func() any { b := make([]byte, 0, minPooledOutput); return &b }}

// A buffer is kept if it has from minPooledOutput to maxPooledOutput bytes. A longer reply is
// rejected by clients with the usual jute.maxbuffer, and a shorter buffer may be a frame that
// connections share, see appendShared.
const (
	minPooledOutput = 4 << 10
	maxPooledOutput = 4 << 20
)

// borrowOutput gives the connection a buffer, before something is appended to out. c.mu is held.
func (c *conn) borrowOutput() {
	if c.out == nil {
		c.out = *outputs.Get().(*[]byte)
	}
}

// appendShared appends a frame that other connections get, too. The frame is never changed, and its
// capacity must be its length: then the frame itself can be the output, and an append to the output
// copies it. c.mu is held.
func (c *conn) appendShared(frame []byte) {
	if c.out == nil && len(frame) < minPooledOutput {
		c.out = frame
		return
	}
	c.borrowOutput()
	c.out = append(c.out, frame...)
}

func putOutput(b []byte) {
	if c := cap(b); c >= minPooledOutput && c <= maxPooledOutput {
		kept := b[:0] // the address of b would put b on the heap in every call
		outputs.Put(&kept)
	}
}

// flush writes the output to the socket, and waits for the socket if necessary. Only the goroutine
// that reads the connection calls flush, so a client that does not read is not read either.
func (c *conn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.flushing && len(c.out) >= burstOutput && !c.closed {
		c.room.Wait()
	}
	if !c.flushing {
		c.writeOut(false)
	}
}

// flushAsync writes what the socket accepts at once, and leaves the rest to a goroutine. flushAsync
// does not wait.
func (c *conn) flushAsync() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flushing || c.closed {
		return
	}
	if len(c.out) == 0 {
		if c.closeAfter {
			c.closeLocked()
		}
		return
	}
	if c.raw != nil {
		c.writeOut(true)
	}
	if !c.flushing && len(c.out) > 0 && !c.closed {
		c.flushing = true
		// Ends when the output is written or the connection closes; Close of the server closes the
		// connection and waits.
		c.server.life.goroutines.Go(c.finishFlush)
	}
}

func (c *conn) finishFlush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flushing = false
	c.writeOut(false)
}

// writeOut writes until the output is empty or, if try is set, until the socket would block. The
// rest stays on the output. c.mu is held, except while writing.
func (c *conn) writeOut(try bool) {
	c.flushing = true
	for len(c.out) > 0 && !c.closed {
		b := c.out
		c.out = nil
		c.mu.Unlock()
		n, err := 0, error(nil)
		if c.raw != nil {
			n, err = c.raw.tryWrite(b)
		}
		if n < len(b) && err == nil && !try {
			_, err = c.nc.Write(b[n:])
			n = len(b)
		}
		c.mu.Lock()
		c.room.Broadcast()
		if err != nil {
			c.closeLocked()
			break
		}
		if n < len(b) { // only if try
			c.out = append(b[n:], c.out...)
			break
		}
		putOutput(b)
	}
	c.flushing = false
	c.room.Broadcast()
	if len(c.out) == 0 {
		putOutput(c.out)
		c.out = nil
		if c.closeAfter {
			c.closeLocked()
		}
	}
}
