package rawclient

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// MaxFrameBytes is the largest frame that ReadFrame accepts.
const MaxFrameBytes = 64 << 20

var (
	// ErrClosed means that the server closed the connection, cleanly or with a reset.
	ErrClosed = errors.New("rawclient: closed by the server")
	// ErrTimeout means that no complete frame came in time.
	ErrTimeout = errors.New("rawclient: no answer in time")
)

// A Conn is a TCP connection to a server. Not safe for concurrent use.
type Conn struct {
	nc net.Conn
	r  *bufio.Reader
}

// Dial connects to addr and sends nothing. ctx bounds only the connect.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("rawclient: %w", err)
	}
	return New(nc), nil
}

// New returns a Conn on a connection that the caller has made. Close closes it.
func New(nc net.Conn) *Conn { return &Conn{nc: nc, r: bufio.NewReaderSize(nc, 16<<10)} }

// Close closes the connection without closing the session.
func (c *Conn) Close() error { return c.nc.Close() }

// Write sends b unchanged in one write.
func (c *Conn) Write(b []byte, timeout time.Duration) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("rawclient: %w", err)
	}
	if _, err := c.nc.Write(b); err != nil {
		return ioError(err)
	}
	return nil
}

// ReadFrame returns the payload of the next frame, which the caller owns. The error is ErrClosed,
// ErrTimeout, or reports an impossible length.
func (c *Conn) ReadFrame(timeout time.Duration) ([]byte, error) {
	if err := c.nc.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, fmt.Errorf("rawclient: %w", err)
	}
	var head [4]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return nil, ioError(err)
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if n < 0 || n > MaxFrameBytes {
		return nil, fmt.Errorf("rawclient: the server announced a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(c.r, frame); err != nil {
		return nil, ioError(err)
	}
	return frame, nil
}

// Handshake sends req and returns the reply. ErrClosed means that the server refused silently.
func (c *Conn) Handshake(req *proto.ConnectRequest, timeout time.Duration) (proto.ConnectResponse, error) {
	var resp proto.ConnectResponse
	if err := c.Write(AppendFrame(nil, req.Append(nil)), timeout); err != nil {
		return resp, err
	}
	frame, err := c.ReadFrame(timeout)
	if err != nil {
		return resp, err
	}
	d := jute.NewDecoder(frame)
	resp.Decode(&d)
	return resp, d.Err()
}

// Call sends a request and returns the body of its reply; the error may be a proto.ErrCode.
func (c *Conn) Call(xid int32, op proto.OpCode, body []byte, timeout time.Duration) ([]byte, error) {
	if err := c.Write(AppendRequest(nil, xid, op, body), timeout); err != nil {
		return nil, err
	}
	return c.Reply(timeout)
}

// Reply returns the body of the next reply, as Call does. Events and replies to pings are skipped.
func (c *Conn) Reply(timeout time.Duration) ([]byte, error) {
	for {
		switch h, body, err := c.Next(timeout); {
		case err != nil:
			return nil, err
		case h.Err != proto.OK:
			return nil, h.Err
		case h.Xid >= 0:
			return body.Rest(), nil
		}
	}
}

// Next returns the header and the body of the next frame: a reply or an event.
func (c *Conn) Next(timeout time.Duration) (h proto.ReplyHeader, body jute.Decoder, err error) {
	frame, err := c.ReadFrame(timeout)
	if err != nil {
		return h, body, err
	}
	body = jute.NewDecoder(frame)
	h.Decode(&body)
	return h, body, body.Err()
}

// NewSession returns a request for a new session.
func NewSession(timeoutMs int32) *proto.ConnectRequest {
	return &proto.ConnectRequest{TimeoutMs: timeoutMs, Passwd: make([]byte, proto.PasswdBytes)}
}

// AppendFrame appends payload with its length before it.
func AppendFrame(b, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(payload))), payload...)
}

// AppendRequest appends a frame with a request header and body.
func AppendRequest(b []byte, xid int32, op proto.OpCode, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(proto.RequestHeaderBytes+len(body)))
	b = (&proto.RequestHeader{Xid: xid, Op: op}).Append(b)
	return append(b, body...)
}

// ioError maps the errors of reads and writes to those of this package.
func ioError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case neterr.TLSReason(err) == neterr.HungUp:
		return ErrClosed
	}
	return fmt.Errorf("rawclient: %w", err)
}
