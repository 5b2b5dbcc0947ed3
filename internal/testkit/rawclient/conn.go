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
	"syscall"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// MaxFrameBytes is the largest frame that ReadFrame takes: a server that announces more is broken.
const MaxFrameBytes = 64 << 20

var (
	// ErrClosed says that the server has closed the connection, orderly or with a reset.
	ErrClosed = errors.New("rawclient: closed by the server")
	// ErrTimeout says that nothing, or no complete frame, came within the time.
	ErrTimeout = errors.New("rawclient: no answer in time")
)

// A Conn is one TCP connection to a server. Not safe for concurrent use.
type Conn struct {
	nc net.Conn
	r  *bufio.Reader
}

// Dial connects to addr without saying anything yet. ctx bounds the dialling only.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("rawclient: %w", err)
	}
	return &Conn{nc: nc, r: bufio.NewReaderSize(nc, 16<<10)}, nil
}

// Close closes the connection, without a word to the server.
func (c *Conn) Close() error { return c.nc.Close() }

// Write sends b as it is, in one write.
func (c *Conn) Write(b []byte, timeout time.Duration) error {
	if err := c.nc.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return fmt.Errorf("rawclient: %w", err)
	}
	if _, err := c.nc.Write(b); err != nil {
		return ioError(err)
	}
	return nil
}

// ReadFrame returns the payload of the next frame; the caller owns it. The error is ErrClosed,
// ErrTimeout, or says that the server sent a length that cannot be.
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

// Handshake sends req and returns the answer. ErrClosed means that the server refused without a
// word.
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

// AppendFrame appends payload with its length in front.
func AppendFrame(b, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(payload))), payload...)
}

// AppendRequest appends a frame with a request header and body.
func AppendRequest(b []byte, xid int32, op proto.OpCode, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(proto.RequestHeaderBytes+len(body)))
	b = (&proto.RequestHeader{Xid: xid, Op: op}).Append(b)
	return append(b, body...)
}

// ioError sorts the ways in which a read or write can end.
func ioError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrTimeout
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return ErrClosed
	}
	return fmt.Errorf("rawclient: %w", err)
}
