package server

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxHandshakeInput bounds what a client may send before its handshake is complete. A long
	// chain of certificates has 20 kB.
	maxHandshakeInput = 64 << 10
	// sealBytes is how much output is encrypted before it is offered to the socket.
	sealBytes = 64 << 10
	// goodbyePatience is how long a connection that is no socket may take to be told its end.
	goodbyePatience = time.Second
)

var errHandshakeTooLong = errors.New("the handshake is longer than 64 KiB")

// tlsLayer is TLS on a connection. On a socket, TLS only transforms bytes: conn reads ciphertext
// from the wire's memory and writes ciphertext to it, and never waits. So a connection waits for
// its client in the same way with and without TLS: in the runtime's poller, without a buffer, and
// what it holds for the client is counted. On anything else, conn reads and writes by itself.
type tlsLayer struct {
	conn *tls.Conn
	wire wire
	leaf *x509.Certificate // of the client, verified; nil: it has shown none

	frameLeft int // of the frame that conn was given in part; owned by the goroutine that writes
}

// wire is the connection below a tls.Conn.
type wire struct {
	net.Conn
	c   *conn
	raw *rawConn // nil: the handshake is not complete, or Conn is no socket

	// Owned by the goroutine that reads.
	in       input // ciphertext that has arrived, for conn to decrypt
	records  recordScan
	received int // bytes of the handshake

	mu  sync.Mutex
	out []byte // ciphertext to be sent after what was taken by take; guarded by mu
}

// noInput is the error of a wire that has no ciphertext. To a tls.Conn it is temporary: the next
// Read goes on in the middle of a record.
type noInput struct{}

func (noInput) Error() string   { return "no input" }
func (noInput) Timeout() bool   { return true }
func (noInput) Temporary() bool { return true }

func (w *wire) Read(b []byte) (n int, err error) {
	if w.in.r < w.in.w {
		n = copy(b, w.in.buf[w.in.r:w.in.w])
		if w.in.r += n; w.in.r == w.in.w {
			w.in.release()
		}
		w.records.pass(b[:n])
		return n, nil
	}
	if w.raw != nil {
		return 0, noInput{}
	}
	n, err = w.Conn.Read(b)
	w.records.pass(b[:n])
	if w.received >= 0 { // the handshake is under way
		if w.received += n; w.received > maxHandshakeInput {
			return 0, errHandshakeTooLong
		}
		w.c.holdInput(w.received, true) // crypto/tls keeps it
	}
	return n, err
}

func (w *wire) Write(b []byte) (int, error) {
	if w.raw == nil {
		return w.Conn.Write(b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.out == nil {
		w.out = *outputs.Get().(*[]byte)
	}
	w.out = append(w.out, b...)
	return len(b), nil
}

// Deadlines and the end are those of the connection, not of TLS.

func (w *wire) SetWriteDeadline(time.Time) error { return nil }
func (w *wire) Close() error                     { return nil }

// take returns the ciphertext to be sent next.
func (w *wire) take() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.out
	w.out = nil
	return b
}

func (w *wire) unsent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.out)
}

// recordScan follows the boundaries of TLS records in what conn has read.
type recordScan struct {
	head  [5]byte
	nHead int
	left  int // of the record that has begun
	size  int // of that record
}

func (s *recordScan) pass(b []byte) {
	for len(b) > 0 {
		if s.left > 0 {
			n := min(s.left, len(b))
			s.left -= n
			b = b[n:]
			continue
		}
		n := copy(s.head[s.nHead:], b)
		b = b[n:]
		if s.nHead += n; s.nHead == len(s.head) {
			s.nHead, s.left = 0, int(binary.BigEndian.Uint16(s.head[3:]))
			s.size = s.left
		}
	}
}

// held returns how many bytes conn holds of a record whose rest has not arrived.
func (s *recordScan) held() int {
	if s.left > 0 {
		return s.size // crypto/tls makes room for all of it
	}
	return s.nHead
}

// sealed reports whether the connection's output is encrypted before it is offered to the socket.
func (c *conn) sealed() bool { return c.tls != nil && c.raw != nil }

// decrypt fills b with what has arrived, without waiting. If that is nothing, it returns noInput.
func (t *tlsLayer) decrypt(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = t.conn.Read(b[n:])
		n += m
	}
	if n > 0 {
		return n, nil // the next call returns the same error
	}
	return 0, err
}

// first waits until the client has sent something, and reads it into a borrowed buffer.
func (t *tlsLayer) first(in *input) error {
	for {
		in.borrow()
		n, err := t.decrypt(in.buf)
		if in.w = n; n > 0 {
			return t.answerPeer()
		}
		in.release()
		if err := t.await(err, 0); err != nil {
			return err
		}
		in.waited = in.waited || t.wire.in.waited
	}
}

// more waits for more bytes of a frame, and reads them into b. held is the size of the buffer.
func (t *tlsLayer) more(b []byte, held int) (int, error) {
	for {
		n, err := t.decrypt(b)
		if n > 0 {
			return n, t.answerPeer()
		}
		if err := t.await(err, held); err != nil {
			return 0, err
		}
	}
}

// await waits for ciphertext if err, that of decrypt, is noInput. held is what the reader holds.
func (t *tlsLayer) await(err error, held int) error {
	if !errors.Is(err, noInput{}) {
		return err
	}
	if err := t.answerPeer(); err != nil {
		return err
	}
	held += t.wire.records.held()
	t.wire.c.holdInput(held, held > 0)
	return t.wire.raw.fill(&t.wire.in)
}

// answerPeer sends what TLS itself has to say: answers to key updates, and alerts. A client that
// asks for many and does not read is not read either.
func (t *tlsLayer) answerPeer() error {
	c := t.wire.c
	if t.wire.unsent() == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.flushing && t.wire.unsent() >= minPooledOutput && !c.closed {
		c.room.Wait()
	}
	if !c.flushing {
		c.writeOut(false)
	}
	if c.closed {
		return net.ErrClosed
	}
	return nil
}

// seal encrypts output, up to about sealBytes of it, if there is none that is encrypted already.
// last: the connection ends with it.
func (t *tlsLayer) seal(o *output, last bool) error {
	if o.sealed != nil {
		return nil
	}
	for n := 0; o.len() > 0 && n < sealBytes; {
		b, _ := o.next()
		sealed, err := t.writeFrames(b)
		if err != nil {
			return err
		}
		o.advance(sealed)
		n += sealed
	}
	if last && o.len() == 0 {
		_ = t.conn.CloseWrite() // fails if it was said already
	}
	if b := t.wire.take(); len(b) > 0 {
		o.sealed = b
	}
	return nil
}

// writeFrames encrypts the beginning of b, up to sealBytes of it. The last frame that begins there
// begins a record: OpenSSL takes one record at a time from the socket, so a client that waits for
// its socket before it reads each frame, as kazoo does, finds the socket readable until it has read
// the last frame. If that frame shared a record with others, the client would not notice it.
// b must hold the first four bytes of each frame that begins in it.
func (t *tlsLayer) writeFrames(b []byte) (n int, err error) {
	last, end := 0, t.frameLeft // the frame that begins at last ends at end
	for end < min(len(b), sealBytes) {
		last = end
		end += 4 + int(binary.BigEndian.Uint32(b[end:]))
	}
	if last > 0 {
		if n, err = t.conn.Write(b[:last]); err != nil {
			return n, err
		}
	}
	n, err = t.conn.Write(b[last:min(len(b), end, sealBytes)])
	n += last
	t.frameLeft = end - n
	return n, err
}

// goodbye tells the client that the connection ends, if that takes no time. Only a client that
// knows can tell the end from an attack. c.mu is held, nobody writes, and nothing that was sealed
// waits.
func (t *tlsLayer) goodbye(raw *rawConn) {
	_ = t.conn.CloseWrite() // the connection ends in any case
	if b := t.wire.take(); len(b) > 0 {
		_, _ = raw.tryWrite(b, false)
	}
}

// readSome reads into b, which is part of a buffer with held bytes. It may wait.
func (c *conn) readSome(b []byte, held int) (int, error) {
	switch {
	case c.sealed():
		return c.tls.more(b, held)
	case c.tls != nil:
		return c.tls.conn.Read(b)
	}
	return c.nc.Read(b)
}

// writeAll writes all of b, and waits for the client. Nothing else is written meanwhile.
func (c *conn) writeAll(b []byte) (n int, err error) {
	if c.tls == nil {
		return c.nc.Write(b)
	}
	if n, err = c.tls.conn.Write(b); err == nil && c.raw != nil {
		_, err = c.nc.Write(c.tls.wire.take())
	}
	return n, err
}
