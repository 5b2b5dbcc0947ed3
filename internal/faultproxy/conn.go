package faultproxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
)

const (
	// probeTime is how long left waits for a sign that the client has closed the connection.
	// Everything that the client sent earlier is in the socket already, so a short wait is enough
	// to find that the socket is empty.
	probeTime = time.Millisecond
	// maxProbeBytes: a client that sent this much before the reply to its connect request is not
	// waiting for that reply.
	maxProbeBytes = 64 << 10
)

// conn is the server's end of a client's connection. reader holds the state of Read, writer that of
// Write, and conn what both share.
type conn struct {
	net.Conn
	gate *Gate
	r    reader
	w    writer

	readDeadline, writeDeadline deadline
	closed                      chan struct{} // closed when isShut is set

	mu          sync.Mutex // guards the fields below
	isShut      bool
	session     proto.SessionID // attached; 0: none
	blindReader bool            // the bytes from the client are passed on without parsing
	blindWriter bool            // the bytes from the server are passed on without parsing
	greeting    *mark           // for the reply to the connect request
	outstanding outstanding
}

func newConn(g *Gate, nc net.Conn) *conn {
	return &conn{Conn: nc, gate: g, closed: make(chan struct{})}
}

// Close closes the connection. Further calls return net.ErrClosed.
func (c *conn) Close() error { return c.shut(false) }

// shut closes the connection. Rules whose replies did not come are armed again.
func (c *conn) shut(abruptly bool) error {
	c.mu.Lock()
	if c.isShut {
		c.mu.Unlock()
		return net.ErrClosed
	}
	c.isShut = true
	c.session = 0
	if c.greeting != nil {
		c.greeting.rule.giveBack()
		c.greeting = nil
	}
	c.outstanding.giveUp()
	close(c.closed)
	c.mu.Unlock()
	c.gate.forget(c)
	if abruptly {
		return reset(c.Conn)
	}
	return c.Conn.Close()
}

// attachedTo returns the session that is attached to the connection, or 0.
func (c *conn) attachedTo() proto.SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// awaitHealed waits until the gate is not cut. Errors: net.ErrClosed, os.ErrDeadlineExceeded.
func (c *conn) awaitHealed(d *deadline) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	for s := c.gate.stall.Load(); s != nil; s = c.gate.stall.Load() {
		if err := d.wait(s.over, nil, c.closed); err != nil {
			return err
		}
	}
	return nil
}

// SetDeadline sets both deadlines.
func (c *conn) SetDeadline(t time.Time) error {
	c.readDeadline.set(t)
	c.writeDeadline.set(t)
	return c.Conn.SetDeadline(t)
}

// SetReadDeadline bounds Read, including its waits for a delay or the end of a cut.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readDeadline.set(t)
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds Write, including its wait for the end of a cut.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeDeadline.set(t)
	return c.Conn.SetWriteDeadline(t)
}

// left reports whether the client has closed the connection. It must be called before the first
// Read, which returns what left has read.
func (c *conn) left() bool {
	if c.Conn.SetReadDeadline(time.Now().Add(probeTime)) != nil {
		return true
	}
	for c.r.err == nil && len(c.r.held) < maxProbeBytes {
		if err := c.r.fill(c.Conn); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				return true
			}
			break
		}
	}
	return c.r.err != nil || c.Conn.SetReadDeadline(time.Time{}) != nil
}
