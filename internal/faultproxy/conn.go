package faultproxy

import (
	"errors"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/rawio"
	"github.com/gozkd/gozkd/proto"
)

const (
	// probeTime bounds the wait for a sign of a closed connection if the system does not tell.
	probeTime = time.Millisecond
	// maxProbeBytes: a client that sent this much before the reply to its connect request is not
	// waiting for that reply.
	maxProbeBytes = 64 << 10
)

// conn is the server's end of a client's connection. reader holds the state of Read, writer that of
// Write, and conn their shared state.
type conn struct {
	net.Conn
	gate *Gate
	r    reader
	w    writer

	readDeadline, writeDeadline deadline
	closed                      chan struct{} // closed when isShut is set
	session                     atomic.Int64  // attached; 0: none

	mu          sync.Mutex // guards the fields below
	isShut      bool
	blindReader bool // the bytes from the client are passed on without parsing
	blindWriter bool // the bytes from the server are passed on without parsing
	outstanding outstanding
}

func newConn(g *Gate, nc net.Conn) *conn {
	c := &conn{Conn: nc, gate: g, closed: make(chan struct{})}
	c.readDeadline.set(time.Time{})
	c.writeDeadline.set(time.Time{})
	return c
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
	for _, u := range c.outstanding {
		if u.rule != nil {
			u.rule.giveBack()
		}
	}
	c.outstanding = nil
	close(c.closed)
	c.mu.Unlock()
	c.gate.forget(c)
	if abruptly {
		return reset(c.Conn)
	}
	return c.Conn.Close()
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

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
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
// Read, which returns the bytes that left has read.
func (c *conn) left() bool {
	if socket := rawio.NewConn(c.Conn); socket != nil && socket.Answers().Known {
		return socket.Answers().Ended
	}
	if c.Conn.SetReadDeadline(time.Now().Add(probeTime)) != nil {
		return true
	}
	for c.r.err == nil && len(c.r.held) < maxProbeBytes {
		if c.fill(0) != nil {
			break // the deadline
		}
	}
	return c.r.err != nil || c.Conn.SetReadDeadline(time.Time{}) != nil
}

// deadline is the time at which a wait ends. The wrapped connection gets the same deadline for its
// own waits. set must be called before wait.
type deadline struct{ atomic.Pointer[moment] }

// moment is the value of a deadline until moved is closed. Its time is zero if there is none.
type moment struct {
	time.Time
	moved chan struct{}
}

func (d *deadline) set(at time.Time) {
	if old := d.Swap(&moment{at, make(chan struct{})}); old != nil {
		close(old.moved)
	}
}

// wait returns nil when over is closed or timer fires; either may be nil. Errors:
// os.ErrDeadlineExceeded at the deadline, which may change during the wait; net.ErrClosed when the
// channel closed is closed.
func (d *deadline) wait(over <-chan struct{}, timer <-chan time.Time, closed <-chan struct{}) error {
	for {
		at := d.Load()
		var alarm <-chan time.Time
		if !at.IsZero() {
			alarm = time.After(time.Until(at.Time))
		}
		select {
		case <-over:
			return nil
		case <-timer:
			return nil
		case <-closed:
			return net.ErrClosed
		case <-alarm:
			return os.ErrDeadlineExceeded
		case <-at.moved:
		}
	}
}

// unanswered is a request without a reply so far.
type unanswered struct {
	xid  int32  // of the reply
	rule *Armed // the fault of the reply; nil: the reply passes
	body []byte // Fail only: the body of the reply; nil: the code goes into the header
}

// outstanding is the requests without a reply, in the order of their arrival. Replies have the same
// order, except that replies to auth, sasl and unknown op codes overtake others. All requests are
// kept because an xid does not identify a request: all pings share an xid, and a client may reuse
// any other.
type outstanding []unanswered

// answered removes and returns the oldest request whose reply has this xid, or a request without a
// rule if there is none.
func (o *outstanding) answered(xid int32) (u unanswered) {
	if i := slices.IndexFunc(*o, func(u unanswered) bool { return u.xid == xid }); i >= 0 {
		u = (*o)[i]
		*o = slices.Delete(*o, i, i+1)
	}
	return u
}

// xidConnect stands for the xid of the connect request, which has none.
const xidConnect = math.MinInt32

// answerXid returns the xid of the reply to a request. All pings have the same xid.
func (r *request) answerXid() int32 {
	switch {
	case r.connect:
		return xidConnect
	case r.header.Op == proto.OpPing:
		return proto.XidPing
	}
	return r.header.Xid
}
