// Package lastzxid tracks, in place of go-zookeeper (1.0.4), the last zxid that a client has seen.
//
// go-zookeeper writes this zxid on the goroutine that reads replies, and reads it without a lock on
// the goroutine that sets the watches again after a reconnect. This is a data race, which the race
// detector reports in every program that loses its connection. Worse, the zxid may be that of a
// reply on the new connection. Then a change between the two connections never fires its watch.
//
// A Conn hides the zxids of replies from go-zookeeper and writes its own zxids into requests. The
// handshake gets the last zxid that the client has seen. The request that sets the watches gets the
// zxid at the last handshake, or at an earlier handshake if the connection was lost before its
// watches were set. So a watch may fire for a change that the client has seen, but never misses a
// change.
package lastzxid

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Seen is the last zxid that a client has seen on any connection. The zero value is for a new one.
type Seen struct {
	mu    sync.Mutex
	zxid  int64 // the last zxid seen
	since int64 // later changes may have fired no watch
	// watchesSet: the watches are set on the current connection, so no change is missed until this
	// connection is lost.
	watchesSet bool
}

// beginConnection returns the zxids for the handshake and for setting the watches.
func (s *Seen) beginConnection(newSession bool) (zxid, since int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newSession { // a new session has seen nothing and has no watches
		s.zxid, s.since, s.watchesSet = 0, 0, true
		return 0, 0
	}
	if s.watchesSet {
		s.since, s.watchesSet = s.zxid, false
	}
	return s.zxid, s.since
}

func (s *Seen) noteReply(zxid int64, setWatches bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.zxid = zxid
	s.watchesSet = s.watchesSet || setWatches
}

// Conn wraps a connection for a zk.Conn. It supports one reader and one writer at a time.
type Conn struct {
	net.Conn
	seen *Seen

	handshakeSent bool
	since         int64        // zxid for setting the watches
	xid           atomic.Int64 // of the last request that set watches; -1: none
	handshakeRead bool         // the reply to the handshake was passed on
	unread        []byte       // start of the current frame
	remaining     int64        // bytes of the frame after unread that were not read yet
}

// NewConn returns a Conn that wraps conn, for the client of seen.
func NewConn(conn net.Conn, seen *Seen) *Conn {
	c := &Conn{Conn: conn, seen: seen}
	c.xid.Store(-1)
	return c
}

const (
	replyHeader  = 4 + 16 // the length, then of a reply: xid, zxid, error
	opSetWatches = 101
)

// Write writes b. go-zookeeper writes each request in one call, the handshake first.
func (c *Conn) Write(b []byte) (int, error) {
	switch {
	case !c.handshakeSent:
		c.handshakeSent = true
		if len(b) < 28 {
			break
		}
		// The request: length, protocol version, last zxid seen, timeout, session.
		zxid, since := c.seen.beginConnection(binary.BigEndian.Uint64(b[20:]) == 0)
		c.since = since
		b = bytes.Clone(b)
		binary.BigEndian.PutUint64(b[8:], uint64(zxid))
	case len(b) >= 20 && binary.BigEndian.Uint32(b[8:]) == opSetWatches: // length, xid, op code, zxid
		c.xid.Store(int64(binary.BigEndian.Uint32(b[4:])))
		b = bytes.Clone(b)
		binary.BigEndian.PutUint64(b[12:], uint64(c.since))
	}
	return c.Conn.Write(b)
}

// Read reads from the server, with the zxids of replies cleared.
func (c *Conn) Read(b []byte) (int, error) {
	if len(c.unread) == 0 && c.remaining == 0 {
		if err := c.readFrameStart(); err != nil {
			return 0, err
		}
	}
	if len(c.unread) > 0 {
		n := copy(b, c.unread)
		c.unread = c.unread[n:]
		return n, nil
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.remaining)])
	c.remaining -= int64(n)
	return n, err
}

// readFrameStart reads the length of a frame, and the header of a reply, whose zxid it records.
func (c *Conn) readFrameStart() error {
	frame := make([]byte, replyHeader)
	if _, err := io.ReadFull(c.Conn, frame[:4]); err != nil {
		return err
	}
	length := int64(binary.BigEndian.Uint32(frame))
	if !c.handshakeRead || length < replyHeader-4 { // a malformed length is for go-zookeeper to report
		c.handshakeRead = true
		c.unread, c.remaining = frame[:4], length
		return nil
	}
	if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
		return err
	}
	xid, zxid := int32(binary.BigEndian.Uint32(frame[4:])), int64(binary.BigEndian.Uint64(frame[8:]))
	if xid >= 0 && zxid > 0 {
		c.seen.noteReply(zxid, int64(xid) == c.xid.Load())
		clear(frame[8:16]) // go-zookeeper ignores a zxid that is not positive
	}
	c.unread, c.remaining = frame, length-(replyHeader-4)
	return nil
}
