//go:build linux

package main

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	sessionTimeoutMs = 1_800_000 // nothing pings here: longer than any measurement
	inputBytes       = 256 << 10
	ioTimeout        = 20 * time.Second // a server that is silent this long counts as dead
)

// client is a connection with a session: a socket and its buffers. Replies are matched to requests
// by their order. Not safe for concurrent use.
type client struct {
	index int // among the clients of a load
	fd    int

	tls    *tls.Conn // nil: none
	wire   *clientWire
	sealed int // how much of out is encrypted

	out []byte // requests not written yet
	in  []byte // nil: nothing was read so far
	r,
	w int // in[r:w] holds bytes of an incomplete frame

	sent    int32 // xid of the newest request
	got     int32 // xid of the last answered request
	sentAt  []time.Duration
	writing bool // the socket was full: epoll reports when it is writable

	random uint64
	made   int // requests made so far, for workloads that count
}

// dial connects and opens a session. window is the number of requests that may be in flight.
func dial(addr string, index, window int) (*client, error) {
	return dialImpatient(addr, index, window, ioTimeout)
}

// dialImpatient is dial with another limit on waiting for an answer.
func dialImpatient(addr string, index, window int, patience time.Duration) (*client, error) {
	fd, err := connect(addr, patience)
	if err != nil {
		return nil, err
	}
	c := &client{index: index, fd: fd, sentAt: make([]time.Duration, window), random: uint64(index)*0x9e3779b97f4a7c15 + 1}
	if err := errors.Join(c.startTLS(), c.handshake()); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return c, nil
}

// connect returns a socket connected to an IPv4 address. Reads time out after patience.
func connect(addr string, patience time.Duration) (fd int, err error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil || !to.Addr().Is4() {
		return -1, fmt.Errorf("connect: %q is no IPv4 address with a port", addr)
	}
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, fmt.Errorf("connect: %w", err)
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
	err = errors.Join(err, setPatience(fd, patience), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	if err != nil {
		return -1, fmt.Errorf("connect to %s: %w", addr, errors.Join(err, unix.Close(fd)))
	}
	return fd, nil
}

// setPatience sets the timeout of reads on a blocking socket.
func setPatience(fd int, d time.Duration) error {
	timeout := unix.NsecToTimeval(int64(d))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return fmt.Errorf("setsockopt: %w", err)
	}
	return nil
}

// handshake opens the session. The read buffer is just large enough for the answer; fill grows it.
func (c *client) handshake() error {
	const enough = 256
	c.in = make([]byte, enough)
	start := len(c.out)
	c.out = append(c.out, 0, 0, 0, 0)
	c.out = (&proto.ConnectRequest{TimeoutMs: sessionTimeoutMs, Passwd: make([]byte, proto.PasswdBytes), HasReadOnly: true}).Append(c.out)
	endFrame(c.out, start)
	if err := c.writeAll(); err != nil {
		return err
	}
	b, err := c.readFrame()
	if err != nil {
		return fmt.Errorf("handshake: %w", err)
	}
	var r proto.ConnectResponse
	d := jute.NewDecoder(b)
	if r.Decode(&d); d.Err() != nil {
		return fmt.Errorf("handshake: %w", d.Err())
	}
	if r.TimeoutMs <= 0 {
		return fmt.Errorf("handshake: the server refused the session")
	}
	return nil
}

// request appends a request to the output; body appends the part after the header.
func (c *client) request(op proto.OpCode, body func([]byte) []byte) {
	start := c.begin(op)
	c.out = body(c.out)
	endFrame(c.out, start)
}

// begin appends a request header, after space for the frame's length, which endFrame fills in.
func (c *client) begin(op proto.OpCode) (start int) {
	start = len(c.out)
	c.sent++
	c.out = append(c.out, 0, 0, 0, 0)
	c.out = (&proto.RequestHeader{Xid: c.sent, Op: op}).Append(c.out)
	return start
}

func endFrame(b []byte, start int) { binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4)) }

// answer checks that b, a frame without its length, is the reply to the oldest request and not an
// error. replyBytes is the expected length, or 0.
func (c *client) answer(b []byte, replyBytes int) error {
	var h proto.ReplyHeader
	d := jute.NewDecoder(b)
	if h.Decode(&d); d.Err() != nil {
		return fmt.Errorf("reply: %w", d.Err())
	}
	c.got++
	switch {
	case h.Xid != c.got:
		return fmt.Errorf("reply to request %d, expected one to %d", h.Xid, c.got)
	case h.Err != proto.OK:
		return fmt.Errorf("reply: %w", h.Err)
	case replyBytes > 0 && len(b) != replyBytes:
		return fmt.Errorf("reply of %d bytes, expected %d", len(b), replyBytes)
	}
	return nil
}

// call sends a request and waits for its reply. The socket must be blocking, nothing in flight.
func (c *client) call(op proto.OpCode, body func([]byte) []byte, replyBytes int) error {
	c.request(op, body)
	if err := c.writeAll(); err != nil {
		return err
	}
	b, err := c.readFrame()
	if err != nil {
		return err
	}
	return c.answer(b, replyBytes)
}

// close ends the session and closes the connection. It makes the socket blocking.
func (c *client) close() error {
	err := unix.SetNonblock(c.fd, false)
	if err == nil {
		err = c.call(proto.OpCloseSession, func(b []byte) []byte { return b }, 0)
	}
	if closeErr := unix.Close(c.fd); err == nil {
		err = closeErr
	}
	return err
}

// frame returns the next whole frame in the buffer, without its length, or nil.
func (c *client) frame() []byte {
	if c.w-c.r < 4 {
		return nil
	}
	n := int(binary.BigEndian.Uint32(c.in[c.r:]))
	if c.w-c.r-4 < n {
		return nil
	}
	b := c.in[c.r+4 : c.r+4+n]
	c.r += 4 + n
	return b
}

// fill reads once. n is 0 only if the socket is non-blocking and has no data.
func (c *client) fill() (n int, err error) {
	if c.in == nil {
		c.in = make([]byte, inputBytes)
	}
	c.w = copy(c.in, c.in[c.r:c.w])
	c.r = 0
	if c.w == len(c.in) {
		c.in = append(c.in, make([]byte, len(c.in))...)
	}
	if c.tls != nil {
		return c.fillTLS()
	}
	for {
		n, err = unix.Read(c.fd, c.in[c.w:])
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && n <= 0:
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("read: %w", err)
		case n == 0:
			return 0, fmt.Errorf("read: the server closed the connection")
		}
		c.w += n
		return n, nil
	}
}

// readFrame waits for a whole frame on a blocking socket.
func (c *client) readFrame() ([]byte, error) {
	for {
		if b := c.frame(); b != nil {
			return b, nil
		}
		if n, err := c.fill(); err != nil {
			return nil, err
		} else if n == 0 {
			return nil, errors.New("read: no answer in time")
		}
	}
}

// write writes as much as the socket takes at once.
func (c *client) write() error {
	if err := c.seal(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	for len(c.out) > 0 {
		n, err := unix.Write(c.fd, c.out)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return nil
		case err != nil:
			return fmt.Errorf("write: %w", err)
		default:
			c.out = c.out[:copy(c.out, c.out[n:])]
			c.sealed = max(0, c.sealed-n)
		}
	}
	return nil
}

// writeAll writes the output to a blocking socket.
func (c *client) writeAll() error {
	for len(c.out) > 0 {
		if err := c.write(); err != nil {
			return err
		}
	}
	return nil
}

// next returns a pseudo-random number below n (xorshift; each run repeats a client's sequence).
func (c *client) next(n int) int {
	c.random ^= c.random << 13
	c.random ^= c.random >> 7
	c.random ^= c.random << 17
	return int(c.random % uint64(n))
}
