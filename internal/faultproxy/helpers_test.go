package faultproxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

type record interface{ Append([]byte) []byte }

// bare is a record of raw bytes.
type bare []byte

func (b bare) Append(to []byte) []byte { return append(to, b...) }

func frame(payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

func requestFrame(xid int32, op proto.OpCode, body record) []byte {
	b := (&proto.RequestHeader{Xid: xid, Op: op}).Append(nil)
	if body != nil {
		b = body.Append(b)
	}
	return frame(b)
}

func replyFrame(xid int32, zxid proto.Zxid, code proto.ErrCode, body []byte) []byte {
	return frame(append((&proto.ReplyHeader{Xid: xid, Zxid: zxid, Err: code}).Append(nil), body...))
}

func connectFrame(session int64) []byte {
	return frame((&proto.ConnectRequest{TimeoutMs: 5000, SessionID: proto.SessionID(session), Passwd: make([]byte, 16)}).Append(nil))
}

func welcomeFrame(session int64) []byte {
	return frame((&proto.ConnectResponse{TimeoutMs: 5000, SessionID: proto.SessionID(session), Passwd: make([]byte, 16)}).Append(nil))
}

func path(p string) record { return &proto.PathWatchRequest{Path: p} }

func create(p string) record {
	return bare((&proto.CreateRequest{Path: p}).Append(nil, proto.OpCreate))
}

func multi(paths ...string) record {
	var m proto.MultiRequest
	for _, p := range paths {
		m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpDelete, Path: p})
	}
	return &m
}

// readFrame returns a whole frame with its length.
func readFrame(r io.Reader) ([]byte, error) {
	b := make([]byte, 4)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	b = append(b, make([]byte, binary.BigEndian.Uint32(b))...)
	_, err := io.ReadFull(r, b[4:])
	return b, err
}

// eternal is a deadline that no test reaches: the watchdog stops a test that hangs.
const eternal = 10 * time.Minute

// world is a tiny server behind a gate: it gives out sessions 1, 2, 3 ..., or the requested one,
// and replies to each request with OK, the request's own body and zxid 100 + xid. got holds the
// requests.
type world struct {
	t     testing.TB
	gate  *Gate
	rules Rules
	dial  func() (net.Conn, error)
	got   chan []byte // the frame of each request; nil: a connection ended
	ended chan struct{}
	conns chan net.Conn // the server's ends
}

func tcpWorld(t testing.TB) *world {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(t, l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
}

func newWorld(t testing.TB, l net.Listener, dial func() (net.Conn, error)) *world {
	w := &world{t: t, dial: dial, got: make(chan []byte, 1000), ended: make(chan struct{}), conns: make(chan net.Conn, 100)}
	w.gate = NewGate(l, &w.rules)
	go w.serve() // ends with the gate, awaited by the clean-up
	t.Cleanup(func() {
		w.gate.Cut(false)
		w.gate.CloseConns()
		if err := w.gate.Close(); err != nil && !errors.Is(err, net.ErrClosed) { // the test may have closed it
			t.Error(err)
		}
		<-w.ended
	})
	return w
}

func (w *world) serve() {
	defer close(w.ended)
	done := make(chan struct{})
	n := 0
	for {
		nc, err := w.gate.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				w.t.Errorf("Accept: %v", err)
			}
			for range n {
				<-done
			}
			return
		}
		n++
		w.conns <- nc
		go func(session int64) { // ends with the connection, awaited above
			defer func() { done <- struct{}{} }()
			defer func() { _ = nc.Close() }()
			w.serveConn(nc, session)
			w.got <- nil
		}(int64(n))
	}
}

func (w *world) serveConn(nc net.Conn, session int64) {
	first, err := readFrame(nc)
	if err != nil {
		return
	}
	if asked := int64(binary.BigEndian.Uint64(first[4+16:])); asked != 0 {
		session = asked
	}
	Attach(nc, session)
	if _, err := nc.Write(welcomeFrame(session)); err != nil {
		return
	}
	for {
		f, err := readFrame(nc)
		if err != nil {
			return
		}
		w.got <- f
		d := jute.NewDecoder(f[4:])
		var h proto.RequestHeader
		h.Decode(&d)
		if h.Op == proto.OpCloseSession {
			Attach(nc, 0)
		}
		if _, err := nc.Write(replyFrame((&request{header: h}).answerXid(), proto.Zxid(100+h.Xid), proto.OK, d.Rest())); err != nil || h.Op == proto.OpCloseSession {
			return
		}
	}
}

// client is a raw connection to the world.
type client struct {
	t  testing.TB
	nc net.Conn
}

// open dials without a handshake.
func (w *world) open() *client {
	w.t.Helper()
	nc, err := w.dial()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = nc.Close() })
	if err := nc.SetDeadline(time.Now().Add(eternal)); err != nil {
		w.t.Fatal(err)
	}
	return &client{w.t, nc}
}

// connect opens a session.
func (w *world) connect() (c *client, session int64) {
	w.t.Helper()
	c = w.open()
	c.send(connectFrame(0))
	f := c.recv()
	return c, int64(binary.BigEndian.Uint64(f[4+8:]))
}

func (c *client) send(b []byte) {
	c.t.Helper()
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) recv() []byte {
	c.t.Helper()
	f, err := readFrame(c.nc)
	if err != nil {
		c.t.Fatal(err)
	}
	return f
}

func (c *client) expect(want []byte) {
	c.t.Helper()
	if f := c.recv(); !bytes.Equal(f, want) {
		c.t.Fatalf("got %x, want %x", f, want)
	}
}

// expectEnd checks that the connection ends here.
func (c *client) expectEnd() {
	c.t.Helper()
	switch f, err := readFrame(c.nc); {
	case err == nil:
		c.t.Fatalf("got %x instead of the end", f)
	case isTimeout(err):
		c.t.Fatal("the connection does not end")
	}
}

// expectSilence checks that nothing arrives for a while.
func (c *client) expectSilence() {
	c.t.Helper()
	_ = c.nc.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	var b [1]byte
	if n, err := c.nc.Read(b[:]); n > 0 || !isTimeout(err) {
		c.t.Fatalf("Read: %d bytes, %v", n, err)
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(eternal))
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func (w *world) arm(f Fault) *Armed {
	w.t.Helper()
	a, err := w.rules.Add(f)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) expectGot(want []byte) {
	w.t.Helper()
	select {
	case f := <-w.got:
		if !bytes.Equal(f, want) {
			w.t.Fatalf("the server got %x, want %x", f, want)
		}
	case <-time.After(eternal):
		w.t.Fatal("the server got nothing")
	}
}

func (w *world) expectGotNothing() {
	w.t.Helper()
	select {
	case f := <-w.got:
		w.t.Fatalf("the server got %x", f)
	default:
	}
}

func expectCount(t testing.TB, a *Armed, want int, done bool) {
	t.Helper()
	if n := a.Count(); n != want {
		t.Errorf("%v: want %d times", a, want)
	}
	select {
	case <-a.Done():
		if !done {
			t.Errorf("%v: done", a)
		}
	default:
		if done {
			t.Errorf("%v: not done", a)
		}
	}
}

// script is a connection with given input, read in pieces of any size, that keeps its output.
type script struct {
	net.Conn
	in      []byte
	piece   func(n int) int // how many of n bytes Read returns
	out     bytes.Buffer
	isEnded bool
}

func (s *script) Read(p []byte) (int, error) {
	if s.isEnded {
		return 0, net.ErrClosed
	}
	if len(s.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.in[:s.piece(min(len(p), len(s.in)))])
	s.in = s.in[n:]
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	if s.isEnded {
		return 0, net.ErrClosed
	}
	return s.out.Write(p)
}

func (s *script) Close() error { s.isEnded = true; return nil }
