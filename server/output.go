package server

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/gozkd/gozkd/proto/jute"
)

// outputs holds free buffers for replies. An idle connection has none.
var outputs = sync.Pool{New: func() any { b := make([]byte, 0, minPooledOutput); return &b }}

// A buffer is kept if it has from minPooledOutput to maxPooledOutput bytes. A longer buffer would
// only make the pool heavy: the replies of a burst of reads need burstOutput. A shorter buffer may
// be a frame that connections share, see appendShared.
const (
	minPooledOutput = 4 << 10
	maxPooledOutput = 2 * burstOutput
	// maxSealNow is how much output of a connection is encrypted by the goroutine that made it.
	maxSealNow = 16 << 10
	// pieceBytes is how much is written at once to a client that is waited for.
	pieceBytes = 16 << 10
)

// shareBytes is the size from which data of a znode is sent without being copied. Copying less
// costs no more than two additional system calls.
const shareBytes = 16 << 10

// output holds what waits to be sent to a client: bytes, and between them data that is shared with
// the tree. The zero value is empty.
type output struct {
	sealed []byte // what is encrypted, and sent before all else; nil: nothing
	nGone  int    // how many bytes of sealed are sent
	buf    []byte
	sent   int          // how many bytes of buf are sent
	shared []sharedData // in order
	nBytes int          // of all shared data
}

// sharedData is data that is sent before buf[at]. It is never changed.
type sharedData struct {
	at   int
	data []byte
}

// len returns the number of bytes to be sent.
func (o *output) len() int { return len(o.sealed) - o.nGone + len(o.buf) - o.sent + o.nBytes }

// held returns how many bytes of memory o keeps from being freed, apart from shared data.
func (o *output) held() int { return cap(o.sealed) + cap(o.buf) }

// appendData appends the data of a znode as a jute buffer.
func (o *output) appendData(data []byte) {
	if len(data) < shareBytes {
		o.buf = jute.AppendBuffer(o.buf, data)
		return
	}
	o.buf = jute.AppendInt(o.buf, int32(len(data)))
	o.share(data)
}

// share appends data without copying it.
func (o *output) share(data []byte) {
	o.shared = append(o.shared, sharedData{len(o.buf), data})
	o.nBytes += len(data)
}

// appendOutput appends later, of which nothing is sent yet.
func (o *output) appendOutput(later output) {
	for _, s := range later.shared {
		o.shared = append(o.shared, sharedData{len(o.buf) + s.at, s.data})
	}
	o.buf = append(o.buf, later.buf...)
	o.nBytes += later.nBytes
}

// outputMark is a position in an output.
type outputMark struct{ buf, shared, nBytes int }

// mark returns the end of o.
func (o *output) mark() outputMark { return outputMark{len(o.buf), len(o.shared), o.nBytes} }

// truncate drops everything after m.
func (o *output) truncate(m outputMark) {
	clear(o.shared[m.shared:])
	o.buf, o.shared, o.nBytes = o.buf[:m.buf], o.shared[:m.shared], m.nBytes
}

// endFrame patches the length of the frame that begins at m.
func (o *output) endFrame(m outputMark) {
	binary.BigEndian.PutUint32(o.buf[m.buf:], uint32(len(o.buf)-m.buf-4+o.nBytes-m.nBytes))
}

// next returns the bytes to be sent next, and whether more bytes come after these.
func (o *output) next() (b []byte, more bool) {
	switch {
	case o.sealed != nil:
		b = o.sealed[o.nGone:]
	case len(o.shared) == 0:
		return o.buf[o.sent:], false
	case o.shared[0].at == o.sent:
		b = o.shared[0].data
	default:
		b = o.buf[o.sent:o.shared[0].at]
	}
	return b, len(b) < o.len()
}

// advance drops n bytes that next returned, because they are sent.
func (o *output) advance(n int) {
	if o.sealed != nil {
		if o.nGone += n; o.nGone == len(o.sealed) {
			putOutput(o.sealed)
			o.sealed, o.nGone = nil, 0
		}
		return
	}
	if len(o.shared) == 0 || o.shared[0].at != o.sent {
		o.sent += n
		return
	}
	o.nBytes -= n
	s := &o.shared[0]
	if s.data = s.data[n:]; len(s.data) == 0 {
		s.data = nil // the empty slice would keep the array
		o.shared = o.shared[1:]
	}
}

// shrink gives a large buffer back that holds little, before a goroutine waits for the client.
func (o *output) shrink() {
	rest := o.buf[o.sent:]
	if cap(o.buf) <= 2*max(len(rest), minPooledOutput) {
		return
	}
	large := o.buf
	o.buf = bytes.Clone(rest)
	for i := range o.shared {
		o.shared[i].at -= o.sent
	}
	o.sent = 0
	putOutput(large)
}

// borrowOutput gives the connection a buffer, before something is appended to out. c.mu is held.
func (c *conn) borrowOutput() {
	if c.out.buf == nil {
		c.out.buf = *outputs.Get().(*[]byte)
	}
}

// appendShared appends a frame that other connections get, too. The frame is never changed, and its
// capacity must be its length: then the frame itself can be the output, and an append to the output
// copies it. c.mu is held.
func (c *conn) appendShared(frame []byte) {
	if c.out.buf == nil && len(frame) < minPooledOutput {
		c.out.buf = frame
		return
	}
	if len(frame) >= shareBytes {
		c.out.share(frame)
		return
	}
	c.borrowOutput()
	c.out.buf = append(c.out.buf, frame...)
}

func putOutput(b []byte) {
	if c := cap(b); c >= minPooledOutput && c <= maxPooledOutput {
		kept := b[:0] // the address of b would put b on the heap in every call
		outputs.Put(&kept)
	}
}

// flush writes the output to the socket, and waits for the socket if necessary. The goroutine that
// reads the connection calls flush, so a client that does not read is not read either.
func (c *conn) flush() {
	c.flushes.Add(1)
	defer c.flushes.Add(-1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.flushing && c.out.len() >= burstOutput && !c.closed {
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
	if c.out.len() == 0 {
		if c.closeAfter {
			c.writeOut(true) // nothing: this ends the connection
		}
		return
	}
	// Apply does not spend its time on encrypting much for one client.
	if c.raw != nil && (c.tls == nil || c.out.len() <= maxSealNow) {
		c.writeOut(true)
	}
	if !c.flushing && c.out.len() > 0 && !c.closed {
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
	for c.unsent() && !c.closed {
		if len(c.out.shared) > 0 {
			c.holdShared()
		}
		o, m := c.out, &c.memory
		c.out = output{}
		m.writing, m.writingShared, m.waited = o.len()-o.nBytes, len(o.shared), false
		c.mu.Unlock()
		err := c.send(&o, try)
		c.mu.Lock()
		if sent := m.writingShared - len(o.shared); sent > 0 {
			c.releaseShared(sent)
		}
		m.writing, m.writingShared = 0, 0
		c.room.Broadcast()
		if err != nil {
			c.closeLocked()
			break
		}
		if o.len() > 0 { // only if try
			o.appendOutput(c.out)
			c.out = o
			break
		}
		if m.since.Load() != 0 {
			m.since.Store(0)
		}
		if !m.waited { // otherwise the buffer may be as long as a slow client let it become
			putOutput(o.buf)
		}
	}
	c.flushing = false
	c.room.Broadcast()
	empty := c.out.len() == 0
	if empty {
		putOutput(c.out.buf)
		c.out = output{}
	}
	c.recount(!empty || c.memory.charged())
	if empty && c.closeAfter && !c.closed {
		_ = c.endOutput() // forget closes the socket
		c.socketOpen = true
	}
}

// unsent reports whether there is output, or something that TLS itself has to say. c.mu is held.
func (c *conn) unsent() bool {
	return c.out.len() > 0 || c.sealed() && c.tls.wire.unsent() > 0
}

// send writes o until it is empty or, if try is set, until the socket would block.
func (c *conn) send(o *output, try bool) error {
	for {
		if c.sealed() {
			if err := c.tls.seal(o, c.raw.last); err != nil {
				return err
			}
		}
		if o.len() == 0 {
			return nil
		}
		b, more := o.next()
		n, err := 0, error(nil)
		if c.raw != nil {
			n, err = c.raw.tryWrite(b, more)
		}
		if n < len(b) && err == nil && !try {
			o.advance(n)
			o.shrink()
			c.awaitClient(o)
			b, _ = o.next()
			n, err = c.writeRest(b)
		}
		if err != nil {
			return err
		}
		if o.advance(n); n < len(b) {
			return nil
		}
	}
}

// writeRest writes what a socket did not take at once, or everything to anything else. It writes
// pieces, and each that the client takes shows that the client is alive.
func (c *conn) writeRest(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		if c.tls == nil || c.raw != nil {
			m, err = c.nc.Write(b[n:min(len(b), n+pieceBytes)])
		} else {
			m, err = c.tls.writeFrames(b[n:])
		}
		if n += m; err == nil && c.handling.Load() { // a client that is read has other ways to say that it is alive
			c.aliveAt.Store(int64(c.server.cfg.Now().Sub(c.server.startedWall)))
		}
	}
	return n, err
}
