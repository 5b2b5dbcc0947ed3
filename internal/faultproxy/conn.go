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
	// probeTime is how long to look whether the client of a connection has closed it. What it sent before it did is there
	// already: the time is for finding that nothing is.
	probeTime = time.Millisecond
	// maxProbeBytes: a client that sent so much without an answer to its connect does not wait for one.
	maxProbeBytes = 64 << 10
)

// conn is the server's end of a client's connection. The fields of Read are in reader, those of Write in writer; what both
// need is here.
type conn struct {
	net.Conn
	gate *Gate
	r    reader
	w    writer

	readDeadline, writeDeadline deadline
	closed                      chan struct{} // closed with shut set

	mu          sync.Mutex // guards all below
	isShut      bool
	session     proto.SessionID // attached; 0: none
	blindReader bool            // what the client sends is not looked at any more
	blindWriter bool            // what the server sends is not looked at any more
	greeting    *mark           // of the answer to the connect
	outstanding outstanding
}

func newConn(g *Gate, nc net.Conn) *conn {
	return &conn{Conn: nc, gate: g, closed: make(chan struct{})}
}

// Close closes the connection. After the first time it returns net.ErrClosed.
func (c *conn) Close() error { return c.shut(false) }

// shut closes the connection and arms the rules again whose answers did not come.
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

// attachedTo returns the session, or 0.
func (c *conn) attachedTo() proto.SessionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// awaitHealed waits while the gate is cut. Errors: net.ErrClosed, os.ErrDeadlineExceeded.
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

// SetReadDeadline bounds Read, also where a delay or a cut holds it.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readDeadline.set(t)
	return c.Conn.SetReadDeadline(t)
}

// SetWriteDeadline bounds Write, also where a cut holds it.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeDeadline.set(t)
	return c.Conn.SetWriteDeadline(t)
}

// left reports whether the client has closed the connection. To find out it reads what is there; Read returns that later. To
// be called before the first Read.
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
