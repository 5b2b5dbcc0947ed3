// Package lastzxid keeps for go-zookeeper (1.0.4) what the last zxid is that a client has seen.
//
// go-zookeeper writes it on the goroutine that reads answers, and reads it, without a lock, on the one that sets its watches again after a reconnect.
// That is a data race, which the race detector reports in whatever program loses its connection; and the zxid may be that of an answer on
// the new connection, so that a change between the two connections fires no watch, for ever.
//
// A Conn hides the zxids of answers from it, and says itself in the handshake what was seen, and in the setting of watches what had been
// seen at the handshake.
package lastzxid

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
)

// Seen is what one client has seen, over all its connections. The zero value is a client that has seen nothing.
type Seen struct{ zxid atomic.Int64 }

// Conn is a connection that a zk.Conn dialed. Like that it is for one reader and one writer at a time.
type Conn struct {
	net.Conn
	seen *Seen

	began  []byte // what had been seen at the handshake; nil: it was not sent yet
	shook  bool   // the answer to the handshake is passed on
	unread []byte // the beginning of a frame
	rest   int64  // of the frame behind it, which is still to be read
}

// NewConn returns a Conn in front of conn, for the client that has seen that.
func NewConn(conn net.Conn, seen *Seen) *Conn { return &Conn{Conn: conn, seen: seen} }

const (
	head       = 4 + 16 // the length, and of an answer: xid, zxid, error
	setWatches = 101
)

// Write passes the bytes on. Invariant: go-zookeeper writes each request in one call, and the handshake's before all others.
func (c *Conn) Write(b []byte) (int, error) {
	switch {
	case c.began == nil:
		c.began = make([]byte, 8)
		if len(b) < 28 {
			break
		}
		// Length, protocol version, last zxid seen, timeout, session. Who wants a new session has seen nothing.
		if binary.BigEndian.Uint64(b[20:]) == 0 {
			c.seen.zxid.Store(0)
		}
		binary.BigEndian.PutUint64(c.began, uint64(c.seen.zxid.Load()))
		b = bytes.Clone(b)
		copy(b[8:], c.began)
	case len(b) >= 20 && binary.BigEndian.Uint32(b[8:]) == setWatches: // length, xid, op code, the zxid after which they fire
		b = bytes.Clone(b)
		copy(b[12:], c.began)
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
		c.seen.zxid.Store(zxid)
		clear(frame[8:16]) // go-zookeeper notes none that is not positive
	}
	c.unread, c.rest = frame, length-(head-4)
	return nil
}
