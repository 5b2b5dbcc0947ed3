package server_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/pipenet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// bubble runs a server on pipes in a synctest bubble, where timeouts of hours take no time.
func bubble(t *testing.T, cfg server.Config, f func(t *testing.T, dial func() *raw)) {
	t.Helper()
	serverBubble(t, cfg, func(t *testing.T, _ *server.Server, dial func() *raw) { f(t, dial) })
}

// serverBubble is bubble for tests that also look at the server.
func serverBubble(t *testing.T, cfg server.Config, f func(t *testing.T, s *server.Server, dial func() *raw)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		cfg.Listener = l
		s, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		f(t, s, func() *raw {
			t.Helper()
			nc, err := l.Dial()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = nc.Close() })
			return &raw{t: t, nc: nc}
		})
	})
}

// othersGoOn sends requests of another client, at intervals, until the goroutines of load have
// ended. None of these requests may take any time. The test must be in a bubble.
func othersGoOn(t *testing.T, name string, load *sync.WaitGroup, interval time.Duration, send func(xid int32)) {
	t.Helper()
	done := make(chan struct{})
	go func() { load.Wait(); close(done) }()
	for xid := int32(2); ; xid++ {
		sent := time.Now()
		send(xid)
		if took := time.Since(sent); took > 0 {
			t.Fatalf("%s: a request of another client took %v", name, took)
		}
		select {
		case <-done:
			return
		case <-time.After(interval):
		}
	}
}

// raw speaks the protocol byte by byte.
type raw struct {
	t    testing.TB
	nc   net.Conn
	id   proto.SessionID
	pass []byte
}

func (r *raw) send(payload []byte) {
	r.t.Helper()
	if _, err := r.nc.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...)); err != nil {
		r.t.Fatal(err)
	}
}

// recv returns the next frame, or nil if the server closed the connection.
func (r *raw) recv() []byte {
	r.t.Helper()
	// In a bubble, a minute passes only when all goroutines are idle.
	if r.nc.SetReadDeadline(time.Now().Add(time.Minute)) != nil {
		return nil // a pipe whose other end is closed
	}
	var n [4]byte
	if _, err := io.ReadFull(r.nc, n[:]); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.t.Fatal("neither a frame nor a close in a minute")
		}
		return nil
	}
	b := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(r.nc, b); err != nil {
		r.t.Fatal(err)
	}
	return b
}

// tryRecv returns the next frame, or nil if no more frames come. It may be called from any
// goroutine.
func (r *raw) tryRecv() []byte {
	if r.nc.SetReadDeadline(time.Now().Add(time.Minute)) != nil {
		return nil
	}
	return r.next()
}

// next returns the next frame, or nil if none comes before the deadline.
func (r *raw) next() []byte {
	var n [4]byte
	if _, err := io.ReadFull(r.nc, n[:]); err != nil {
		return nil
	}
	b := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(r.nc, b); err != nil {
		return nil
	}
	return b
}

// connect creates a session, or re-attaches one.
func (r *raw) connect(timeoutMs int32, id proto.SessionID, pass []byte) proto.ConnectResponse {
	r.t.Helper()
	r.send((&proto.ConnectRequest{TimeoutMs: timeoutMs, SessionID: id, Passwd: pass, HasReadOnly: true}).Append(nil))
	b := r.recv()
	if b == nil {
		r.t.Fatal("closed in the handshake")
	}
	d := jute.NewDecoder(b)
	var resp proto.ConnectResponse
	resp.Decode(&d)
	if d.Err() != nil || d.Remaining() != 0 {
		r.t.Fatalf("connect response %x: %v", b, d.Err())
	}
	r.id, r.pass = resp.SessionID, resp.Passwd
	return resp
}

type record interface{ Append([]byte) []byte }

func (r *raw) request(xid int32, op proto.OpCode, body record) {
	r.t.Helper()
	r.send(encodeRequest(xid, op, body))
}

func encodeRequest(xid int32, op proto.OpCode, body record) []byte {
	b := (&proto.RequestHeader{Xid: xid, Op: op}).Append(nil)
	if body != nil {
		b = body.Append(b)
	}
	return b
}

// burst sends requests with one write.
func (r *raw) burst(requests ...[]byte) {
	r.t.Helper()
	var b []byte
	for _, payload := range requests {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(payload))), payload...)
	}
	if _, err := r.nc.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

// create is a record for request.
type create struct {
	path string
	mode proto.CreateMode
	op   proto.OpCode
	ttl  int64
}

func (c create) Append(b []byte) []byte {
	return (&proto.CreateRequest{Path: c.path, Data: []byte("x"), ACL: proto.OpenACL(), Mode: c.mode, TTL: c.ttl}).Append(b, c.op)
}

func (r *raw) reply() (proto.ReplyHeader, *jute.Decoder) {
	r.t.Helper()
	b := r.recv()
	if b == nil {
		r.t.Fatal("closed instead of a reply")
	}
	return decodeReply(b)
}

func decodeReply(b []byte) (proto.ReplyHeader, *jute.Decoder) {
	d := jute.NewDecoder(b)
	var h proto.ReplyHeader
	h.Decode(&d)
	return h, &d
}

// call sends a request and returns its reply; events before it are an error.
func (r *raw) call(xid int32, op proto.OpCode, body record) (proto.ReplyHeader, *jute.Decoder) {
	r.t.Helper()
	r.request(xid, op, body)
	h, d := r.reply()
	if h.Xid != xid {
		r.t.Fatalf("reply to xid %d has xid %d", xid, h.Xid)
	}
	return h, d
}

func (r *raw) event() (proto.ReplyHeader, proto.WatcherEvent) {
	r.t.Helper()
	h, d := r.reply()
	var e proto.WatcherEvent
	if e.Decode(d); h.Xid != proto.XidEvent || d.Err() != nil {
		r.t.Fatalf("xid %d instead of an event (%v)", h.Xid, d.Err())
	}
	return h, e
}
