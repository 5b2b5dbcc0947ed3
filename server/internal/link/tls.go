package link

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
)

const (
	// maxHandshakeInput bounds a client's bytes before its handshake is complete. A long
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
// the memory that it holds for the client is counted. On others, conn reads and writes by itself.
type tlsLayer struct {
	conn *tls.Conn
	wire wire

	frameLeft int  // of the frame that conn was given in part; owned by the goroutine that writes
	drained   bool // conn has given all that was in the records it read; owned by the reader
}

type wire struct {
	net.Conn
	l   *Link
	raw *rawio.Conn // nil: the handshake is not complete, or Conn is no socket

	// Owned by the goroutine that reads.
	in       Input // ciphertext that has arrived, for conn to decrypt
	records  recordScan
	received int // bytes of the handshake

	mu  sync.Mutex
	out []byte // ciphertext to be sent after the bytes of the last take; guarded by mu
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
			w.in.Release()
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
		w.l.holdInput(w.received, true) // crypto/tls keeps it
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

// recordScan follows the boundaries of TLS records in the bytes that conn has read.
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
func (l *Link) sealed() bool { return l.tls != nil && l.raw != nil }

// decrypt fills b with arrived data, without waiting. If there is none, it returns noInput.
func (t *tlsLayer) decrypt(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = t.conn.Read(b[n:])
		n += m
	}
	t.drained = errors.Is(err, noInput{}) && t.wire.records.held() == 0
	if n > 0 {
		return n, nil // the next call returns the same error
	}
	return 0, err
}

// first waits until the client has sent something, and reads it into a borrowed buffer.
func (t *tlsLayer) first(in *Input) error {
	t.wire.in.host = in.host
	for {
		in.borrow()
		n, err := t.decrypt(in.buf)
		if in.w = n; n > 0 {
			return t.answerPeer()
		}
		in.Release()
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
	if errors.Is(err, noInput{}) {
		if err = t.answerPeer(); err == nil {
			held += t.wire.records.held()
			t.wire.l.holdInput(held, held > 0)
			err = t.wire.in.await(t.wire.raw)
		}
	}
	if err != nil {
		t.wire.in.Release() // the reader ends
	}
	return err
}

// answerPeer sends messages of TLS itself: answers to key updates, and alerts. A client that
// asks for many and does not read is not read either.
func (t *tlsLayer) answerPeer() error {
	l := t.wire.l
	if t.wire.unsent() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.flushing && t.wire.unsent() >= minPooledOutput && !l.closed {
		l.room.Wait()
	}
	if !l.flushing {
		l.writeOut(false)
	}
	if l.closed {
		return net.ErrClosed
	}
	return nil
}

// seal encrypts output, up to about sealBytes of it, if there is none that is encrypted already.
// last: the connection ends with it.
func (t *tlsLayer) seal(o *Output, last bool) error {
	if o.sealed != nil {
		return nil
	}
	for n := 0; o.Len() > 0 && n < sealBytes; {
		b, _ := o.Next()
		sealed, err := t.writeFrames(b)
		if err != nil {
			return err
		}
		o.Advance(sealed)
		n += sealed
	}
	if last && o.Len() == 0 {
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
// knows can tell the end from an attack. c.mu is held, nobody writes, and nothing sealed waits.
func (t *tlsLayer) goodbye(raw *rawio.Conn) {
	_ = t.conn.CloseWrite() // the connection ends in any case
	if b := t.wire.take(); len(b) > 0 {
		_, _ = raw.TryWrite(b, false)
	}
}

// Secure does a TLS handshake, which in begins, until the deadline. It returns the verified
// certificate of the client, or nil if the client has shown none. The reader calls it, before the
// link is served.
func (l *Link) Secure(in *Input, cfg *tls.Config, deadline time.Time) (leaf *x509.Certificate, err error) {
	if err := l.nc.SetDeadline(deadline); err != nil {
		return nil, err
	}
	t := &tlsLayer{}
	t.wire.Conn, t.wire.l, t.wire.in = l.nc, l, *in
	*in = Input{small: true}
	t.conn = tls.Server(&t.wire, cfg)
	if err = t.conn.Handshake(); err == nil {
		err = l.nc.SetDeadline(time.Time{})
	}
	if err != nil {
		t.wire.in.Release()
		return nil, err
	}
	t.wire.raw, t.wire.received, t.wire.in.small, t.wire.in.sealed = l.raw, -1, false, true
	l.HoldInput(in)
	if chains := t.conn.ConnectionState().VerifiedChains; len(chains) > 0 {
		leaf = chains[0][0]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tls = t
	return leaf, nil
}

// Secured reports whether the link has TLS. Its mu is held, or the handshake is over.
func (l *Link) Secured() bool { return l.tls != nil }

// readSome reads into b, which is part of a buffer with held bytes. It may wait.
func (l *Link) readSome(b []byte, held int) (int, error) {
	switch {
	case l.sealed():
		return l.tls.more(b, held)
	case l.tls != nil:
		return l.tls.conn.Read(b)
	}
	n, err := l.nc.Read(b)
	if l.raw != nil {
		l.raw.Position.Add(int64(n))
	}
	return n, err
}

// WriteAll writes all of b, and waits for the client. Nothing else is written meanwhile.
func (l *Link) WriteAll(b []byte) (n int, err error) {
	if l.tls == nil {
		return l.nc.Write(b)
	}
	if n, err = l.tls.conn.Write(b); err == nil && l.raw != nil {
		_, err = l.nc.Write(l.tls.wire.take())
	}
	return n, err
}
