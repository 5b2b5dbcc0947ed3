package memnet

import (
	"errors"
	"io"
	"net"
	"time"
)

// conn is one end of a connection: a net.Conn.
type conn struct {
	network       *Network // nil: made by Pipe
	number        int      // of the end, in its network
	in, out       *stream
	local, remote Addr
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// Read waits for at least one byte, unless b is empty.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.opError("read", err)
}

// Write returns when all of b was sent, or with an error and the number of bytes that were sent.
// Write does not retain b.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	return n, c.opError("write", err)
}

// TryWrite sends as much of b as a Write would send at once, and never waits: nothing while a Write
// waits, and not more than the window has room for. TryWrite does not retain b.
func (c *conn) TryWrite(b []byte) (int, error) {
	n, err := c.out.tryWrite(b)
	return n, c.opError("write", err)
}

// Close ends waiting calls of this end with net.ErrClosed. A second Close returns net.ErrClosed.
func (c *conn) Close() error {
	first := c.out.closeWriter()
	c.in.closeReader()
	if !first {
		return c.opError("close", net.ErrClosed)
	}
	if c.network != nil {
		c.network.forget(c)
	}
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline applies to waiting reads as well. The zero time means none. After Close it fails
// with net.ErrClosed.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadline(c.in, &c.in.reader, t) }

func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadline(c.out, &c.out.writer, t) }

func (c *conn) setDeadline(s *stream, w *waiters, t time.Time) error {
	if !s.setDeadline(w, t) {
		return c.opError("set", net.ErrClosed)
	}
	return nil
}

// opError wraps the errors that package net wraps (M8).
func (c *conn) opError(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return opError(op, c.local, c.remote, err)
}

// Pipe returns both ends of a connection outside of any network. The connection has no latency, and
// can't be cut or torn. Unlike net.Pipe it is buffered (M3) and closes like TCP (M5). The names are
// the addresses of the ends: clientName is the RemoteAddr of the server's end.
func Pipe(clientName, serverName string) (client, server net.Conn) {
	there, back := newStream(link{}, linkState{}), newStream(link{}, linkState{})
	return &conn{in: back, out: there, local: Addr(clientName), remote: Addr(serverName)},
		&conn{in: there, out: back, local: Addr(serverName), remote: Addr(clientName)}
}

// Addr is the address of a listener or an end of a connection: host:port, or a name for [Pipe].
type Addr string

// Network returns "memory".
func (Addr) Network() string  { return "memory" }
func (a Addr) String() string { return string(a) }

// opError returns the error that package net would return. A missing address must be nil.
func opError(op string, local, remote net.Addr, err error) error {
	return &net.OpError{Op: op, Net: Addr("").Network(), Source: local, Addr: remote, Err: err}
}
