package recipes

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/clientauth"
)

// sessionConn is a network connection of Connect's zk.Conn that does four things that go-zookeeper
// does not:
//
//   - Run the SASL exchange, between the handshake and the first request.
//   - Read the handshake, to learn the negotiated timeout and when the answered request was sent.
//   - Refuse to resume a session that was declared lost: sessionConn closes that session on the
//     server and tells go-zookeeper that the session has expired, so that go-zookeeper opens a new
//     session.
//   - Shorten the waits for a silent server. go-zookeeper waits ten connect timeouts for the
//     handshake and two thirds of the session timeout for an answer, which leaves no time to try
//     another server.
type sessionConn struct {
	net.Conn
	core    *core
	address string // of the server
	// timeout is the session timeout: as requested before the handshake, as negotiated afterwards.
	timeout time.Duration

	// Only the goroutine of the handshake writes these fields.
	requestSent   bool
	requestSentAt time.Duration
	handshakeDone bool
	unread        []byte // rest of the handshake's answer
}

// reasonPatience bounds the wait for the reason of a failed write.
const reasonPatience = 100 * time.Millisecond

// Write notes when the handshake's request, which comes first, is sent.
func (w *sessionConn) Write(b []byte) (int, error) {
	if !w.requestSent {
		w.requestSent, w.requestSentAt = true, w.core.now()
	}
	n, err := w.Conn.Write(b)
	if err != nil {
		if !w.handshakeDone && w.Conn.SetReadDeadline(time.Now().Add(reasonPatience)) == nil {
			err = clientauth.Reason(w.Conn, err)
			w.core.connectFailed(fmt.Errorf("%s: %w", w.address, err))
		}
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

// SetReadDeadline limits the deadline to half the session timeout: go-zookeeper pings a server
// every third of the timeout.
func (w *sessionConn) SetReadDeadline(t time.Time) error {
	if !w.handshakeDone {
		return nil // handshake sets its own
	}
	if latest := time.Now().Add(w.timeout / 2); t.After(latest) {
		t = latest
	}
	return w.Conn.SetReadDeadline(t)
}

// handshake reads the server's answer and decides which answer go-zookeeper sees.
func (w *sessionConn) handshake() error {
	if err := w.Conn.SetDeadline(time.Now().Add(w.timeout / 3)); err != nil {
		return err
	}
	frame, err := readFrame(w.Conn)
	if err != nil {
		w.core.connectFailed(fmt.Errorf("%s: %w", w.address, err))
		return err
	}
	w.unread = frame
	timeout, session, ok := parseConnectReply(frame)
	if !ok || session == 0 {
		return w.Conn.SetDeadline(time.Time{})
	}
	if err := w.authenticate(); err != nil {
		return err
	}
	w.timeout = timeout
	if !w.core.sessionGranted(session, timeout, w.requestSentAt) {
		w.closeSession()
		w.unread = expiredReply()
		return w.Conn.Close()
	}
	return w.Conn.SetDeadline(time.Time{})
}

// authenticate runs the SASL exchange, in which go-zookeeper has no part: it waits for the
// handshake's answer.
func (w *sessionConn) authenticate() error {
	k := w.core
	if k.cfg.sasl == nil {
		return nil
	}
	err := clientauth.SASL(w.Conn, k.cfg.sasl, w.address)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w: %w", w.address, ErrSASL, err)
	k.cfg.logger.Printf("%v", err)
	k.connectFailed(err)
	if refused := (*clientauth.RefusedError)(nil); errors.As(err, &refused) {
		select {
		case k.refused <- err:
		default: // start has returned, or gets an earlier error
		}
	}
	return err
}

// closeSession ends the session on the server, so that its ephemerals are deleted at once. If that
// fails, the session expires.
func (w *sessionConn) closeSession() {
	const xid, closeSession = 1, -11
	b := binary.BigEndian.AppendUint32(nil, 8)
	b = binary.BigEndian.AppendUint32(b, xid)
	b = binary.BigEndian.AppendUint32(b, uint32(0xffffffff+closeSession+1))
	if _, err := w.Conn.Write(b); err != nil {
		return
	}
	for { // until the handshake's deadline
		frame, err := readFrame(w.Conn)
		if err != nil || len(frame) >= 8 && binary.BigEndian.Uint32(frame[4:]) == xid {
			return
		}
	}
}

// maxHandshake bounds the frames of a handshake. The answer has 40 bytes; events may precede the
// answer to closeSession.
const maxHandshake = 1 << 20

// readFrame reads a frame and returns the frame with its length prefix.
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

// parseConnectReply parses length, protocol version, timeout in ms (int), session (long), password.
func parseConnectReply(frame []byte) (timeout time.Duration, session int64, ok bool) {
	if len(frame) < 20 {
		return 0, 0, false
	}
	ms := int32(binary.BigEndian.Uint32(frame[8:]))
	return time.Duration(ms) * time.Millisecond, int64(binary.BigEndian.Uint64(frame[12:])), ms > 0
}

// expiredReply returns a server's answer to a client that asks for an expired session: no session,
// and a password of zeros.
func expiredReply() []byte {
	const passwd = 16
	b := make([]byte, 4+4+4+8+4+passwd)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	binary.BigEndian.PutUint32(b[20:], passwd)
	return b
}
