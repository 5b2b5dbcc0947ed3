package recipes

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

// wire is a connection that Connect's zk.Conn dialed. It reads along in the handshake, for what go-zookeeper does not tell: the negotiated
// timeout, and when the request was sent that the server answered with the session. And it refuses to take up a session that was declared
// lost: that one is closed for good on the server, and go-zookeeper is told that it has expired, so that it makes a new one.
//
// It also bounds waits that go-zookeeper makes long: ten times its patience for the handshake, two thirds of the timeout for a silent
// server, where this leaves no time to try another one.
type sessionConn struct {
	net.Conn
	owner sessionOwner
	// patience is the timeout that is asked for, then the negotiated one.
	timeout time.Duration

	// The handshake runs on one goroutine; afterwards these don't change.
	requestSent   bool
	requestSentAt time.Duration
	handshakeDone bool
	unread        []byte // of the answer to the handshake
}

// attacher is told of each session that a server gives or gives back.
type sessionOwner interface {
	now() time.Duration
	// attached reports whether the session may be used. sent is when the handshake's request was sent.
	sessionGranted(session int64, timeout, sent time.Duration) bool
}

// Write passes the bytes on, the handshake's request first.
func (w *sessionConn) Write(b []byte) (int, error) {
	if !w.requestSent {
		w.requestSent, w.requestSentAt = true, w.owner.now()
	}
	n, err := w.Conn.Write(b)
	if err != nil {
		err = &networkError{err}
	}
	return n, err
}

func (w *sessionConn) Read(b []byte) (int, error) {
	if !w.handshakeDone {
		if err := w.handshake(); err != nil {
			return 0, err
		}
		w.handshakeDone = true
	}
	if len(w.unread) > 0 {
		n := copy(b, w.unread)
		w.unread = w.unread[n:]
		return n, nil
	}
	return w.Conn.Read(b)
}

// SetReadDeadline sets a deadline no later than half the session timeout: a server that is there answers a ping each third of it.
func (w *sessionConn) SetReadDeadline(t time.Time) error {
	if !w.handshakeDone {
		return nil // handshake sets its own
	}
	if latest := time.Now().Add(w.timeout / 2); t.After(latest) {
		t = latest
	}
	return w.Conn.SetReadDeadline(t)
}

// handshake reads the server's answer and decides what go-zookeeper gets to see.
func (w *sessionConn) handshake() error {
	if err := w.Conn.SetReadDeadline(time.Now().Add(w.timeout / 3)); err != nil {
		return err
	}
	frame, err := readFrame(w.Conn)
	if err != nil {
		return err
	}
	w.unread = frame
	timeout, session, ok := parseConnectReply(frame)
	if !ok || session == 0 {
		return w.Conn.SetReadDeadline(time.Time{})
	}
	w.timeout = timeout
	if !w.owner.sessionGranted(session, timeout, w.requestSentAt) {
		w.closeSession()
		w.unread = expiredReply()
		return w.Conn.Close()
	}
	return w.Conn.SetReadDeadline(time.Time{})
}

// closeSession ends the session on the server, so that its ephemerals go now and not when it expires. If that fails, it expires.
func (w *sessionConn) closeSession() {
	const xid, closeSession = 1, -11
	b := binary.BigEndian.AppendUint32(nil, 8)
	b = binary.BigEndian.AppendUint32(b, xid)
	b = binary.BigEndian.AppendUint32(b, uint32(0xffffffff+closeSession+1))
	if _, err := w.Conn.Write(b); err != nil {
		return
	}
	for { // until the deadline of the handshake
		frame, err := readFrame(w.Conn)
		if err != nil || len(frame) >= 8 && binary.BigEndian.Uint32(frame[4:]) == xid {
			return
		}
	}
}

// maxHandshake bounds the frames of a handshake: the answer has 40 bytes, and some before the answer to closeSession may be events.
const maxHandshake = 1 << 20

// readFrame reads one frame and returns it with its length.
func readFrame(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > maxHandshake {
		return nil, io.ErrUnexpectedEOF
	}
	frame := make([]byte, 4+n)
	copy(frame, head)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// parseConnectReply takes apart: length, protocol version, timeout in ms (int), session (long), password.
func parseConnectReply(frame []byte) (timeout time.Duration, session int64, ok bool) {
	if len(frame) < 20 {
		return 0, 0, false
	}
	ms := int32(binary.BigEndian.Uint32(frame[8:]))
	return time.Duration(ms) * time.Millisecond, int64(binary.BigEndian.Uint64(frame[12:])), ms > 0
}

// expiredReply is what a server answers to who asks for a session that has expired: no session, and a password of zeros.
func expiredReply() []byte {
	const passwd = 16
	b := make([]byte, 4+4+4+8+4+passwd)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	binary.BigEndian.PutUint32(b[20:], passwd)
	return b
}
