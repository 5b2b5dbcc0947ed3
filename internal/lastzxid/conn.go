// Package lastzxid keeps for go-zookeeper (1.0.4) what the last zxid is that a client has seen.
//
// go-zookeeper writes it on the goroutine that reads answers, and reads it, without a lock, on the one that sets its watches again after a reconnect.
// That is a data race, which the race detector reports in whatever program loses its connection; and the zxid may be that of an answer on
// the new connection, so that a change between the two connections fires no watch, for ever.
//
// A Conn hides the zxids of answers from it, and says itself in the handshake what was seen; and in the setting of watches since when they may have
// missed something, which is what had been seen at the handshake, or at an earlier one, if the connection was lost before the
// watches were set on it. So a watch may fire for what was seen already, and none misses anything.
package lastzxid

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Seen is what one client has seen, over all its connections. The zero value is a client that has seen nothing.
type Seen struct {
	mu    sync.Mutex
	zxid  int64 // the last
	since int64 // what happened later may have fired no watch
	// set: the watches of the present connection are those of the client, so that nothing is missed until it is lost.
	set bool
}

// begin returns what to say in a handshake, and later in the setting of watches.
func (s *Seen) begin(newSession bool) (zxid, since int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newSession { // which has seen nothing, and has no watches
		s.zxid, s.since, s.set = 0, 0, true
		return 0, 0
	}
	if s.set {
		s.since, s.set = s.zxid, false
	}
	return s.zxid, s.since
}

// answered notes an answer.
func (s *Seen) answered(zxid int64, setWatches bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zxid = zxid
	s.set = s.set || setWatches
}

// Conn is a connection that a zk.Conn dialed. Like that it is for one reader and one writer at a time.
type Conn struct {
	net.Conn
	seen *Seen

	asked  bool         // the handshake's request was sent
	since  int64        // what its watches are set with
	xid    atomic.Int64 // of the last request that set watches; -1: none
	shook  bool         // the answer to the handshake is passed on
	unread []byte       // the beginning of a frame
	rest   int64        // of the frame behind it, which is still to be read
}

// NewConn returns a Conn in front of conn, for the client that has seen that.
func NewConn(conn net.Conn, seen *Seen) *Conn {
	c := &Conn{Conn: conn, seen: seen}
	c.xid.Store(-1)
	return c
}

const (
	head       = 4 + 16 // the length, and of an answer: xid, zxid, error
	setWatches = 101
)

// Write passes the bytes on. Invariant: go-zookeeper writes each request in one call, and the handshake's before all others.
func (c *Conn) Write(b []byte) (int, error) {
	switch {
	case !c.asked:
		c.asked = true
		if len(b) < 28 {
			break
		}
		// Length, protocol version, last zxid seen, timeout, session.
		zxid, since := c.seen.begin(binary.BigEndian.Uint64(b[20:]) == 0)
		c.since = since
		b = bytes.Clone(b)
		binary.BigEndian.PutUint64(b[8:], uint64(zxid))
	case len(b) >= 20 && binary.BigEndian.Uint32(b[8:]) == setWatches: // length, xid, op code, the zxid after which they fire
		c.xid.Store(int64(binary.BigEndian.Uint32(b[4:])))
		b = bytes.Clone(b)
		binary.BigEndian.PutUint64(b[12:], uint64(c.since))
	}
	return c.Conn.Write(b)
}

// Read passes on what the server says, but for the zxids of answers.
func (c *Conn) Read(b []byte) (int, error) {
	if len(c.unread) == 0 && c.rest == 0 {
		if err := c.begin(); err != nil {
			return 0, err
		}
	}
	if len(c.unread) > 0 {
		n := copy(b, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.rest)])
	c.rest -= int64(n)
	return n, err
}

// begin reads the beginning of a frame: its length, and of an answer its header, from which it takes the zxid.
func (c *Conn) begin() error {
	frame := make([]byte, head)
	if _, err := io.ReadFull(c.Conn, frame[:4]); err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint32(frame))
	if !c.shook || length < head-4 { // go-zookeeper knows what to say of that
		c.shook = true
		c.unread, c.rest = frame[:4], length
		return nil
	}
	if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
		return err
	}
	xid, zxid := int32(binary.BigEndian.Uint32(frame[4:])), int64(binary.BigEndian.Uint64(frame[8:]))
	if xid >= 0 && zxid > 0 {
		c.seen.answered(zxid, int64(xid) == c.xid.Load())
		clear(frame[8:16]) // go-zookeeper notes none that is not positive
	}
	c.unread, c.rest = frame, length-(head-4)
	return nil
}
