package jepsenlite

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A tap is a client connection that records its traffic: requests before they are written, replies
// and events when their last byte was read. So each request takes effect between its Call and its
// Return.
type tap struct {
	net.Conn
	rec    *Recorder
	client string
	member int
	number int

	mu       sync.Mutex // guards the fields below; reading and writing are different goroutines
	out, in  []byte     // bytes of incomplete frames
	outFirst bool       // the handshake was sent
	sent     int        // requests
	claimed  proto.SessionID
	session  proto.SessionID
	open     bool // the handshake was answered
	refused  bool // the claimed session is gone, and its story was not told
	pending  []*Record
	lastSync *Record // the last reply, if of a sync
	why      string
	closed   bool
}

func newTap(conn net.Conn, rec *Recorder, client string, member int) *tap {
	return &tap{Conn: conn, rec: rec, client: client, member: member, number: rec.nextConn()}
}

// Write records the requests in b, and sends it.
func (t *tap) Write(b []byte) (int, error) {
	t.mu.Lock()
	t.out = append(t.out, b...)
	now := t.rec.Now()
	t.out = eachFrame(t.out, func(frame []byte) {
		if !t.outFirst {
			d, req := jute.NewDecoder(frame), proto.ConnectRequest{}
			req.Decode(&d)
			t.outFirst, t.claimed = true, req.SessionID
			return
		}
		r := decodeRequest(frame)
		r.Kind, r.Conn, r.Client, r.Session, r.Member, r.Call = KindReply, t.number, t.client, t.session, t.member, now
		t.sent++
		r.Number = t.sent
		t.pending = append(t.pending, r)
	})
	t.mu.Unlock()
	return t.Conn.Write(b)
}

// Read records the replies and events in the bytes it returns.
func (t *tap) Read(b []byte) (int, error) {
	n, err := t.Conn.Read(b)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && !t.closed {
		t.in = append(t.in, b[:n]...)
		now := t.rec.Now()
		t.in = eachFrame(t.in, func(frame []byte) { t.received(frame, now) })
	}
	if err != nil && t.why == "" && !t.closed {
		t.why = WhyServer
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.why = WhySilence
		}
	}
	return n, err
}

// SetReadDeadline shortens the wait for a handshake.
func (t *tap) SetReadDeadline(at time.Time) error {
	t.mu.Lock()
	if limit := time.Now().Add(t.rec.Handshake); !t.open && at.After(limit) {
		at = limit
	}
	t.mu.Unlock()
	return t.Conn.SetReadDeadline(at)
}

// Close closes the connection and records the requests without a reply.
func (t *tap) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		if t.why == "" {
			t.why = WhyClient
		}
		t.rec.add(t.pending...)
		t.rec.add(&Record{Kind: KindClose, Conn: t.number, Client: t.client, Session: t.session, Member: t.member, Return: t.rec.Now(), Why: t.why})
	}
	return t.Conn.Close()
}

func (t *tap) received(frame []byte, now time.Duration) {
	d := jute.NewDecoder(frame)
	if !t.open {
		var resp proto.ConnectResponse
		resp.Decode(&d)
		t.open, t.session, t.refused = true, resp.SessionID, resp.TimeoutMs <= 0
		t.rec.add(&Record{Kind: KindOpen, Conn: t.number, Client: t.client, Session: t.session, Member: t.member, Return: now,
			Timeout: time.Duration(resp.TimeoutMs) * time.Millisecond, Refused: t.refused})
		return
	}
	var h proto.ReplyHeader
	h.Decode(&d)
	if t.refused && h == (proto.ReplyHeader{Xid: pingXid}) && tellsOf(&d, t.claimed) {
		t.refused = false
		return
	}
	const notification = -1
	if h.Xid == notification {
		var e proto.WatcherEvent
		e.Decode(&d)
		t.rec.add(&Record{Kind: KindEvent, Conn: t.number, Client: t.client, Session: t.session, Member: t.member, Return: now,
			Event: e.Type, Parts: []Part{{Path: e.Path}}, Zxid: h.Zxid})
		return
	}
	// The reply of the oldest request with its xid. Earlier requests stay pending: the check of the
	// order of replies sees it.
	for i, r := range t.pending {
		if r.Xid != h.Xid {
			continue
		}
		t.pending = append(t.pending[:i:i], t.pending[i+1:]...)
		r.Return, r.Zxid, r.Err = now, h.Zxid, h.Err
		decodeReply(r, &d)
		if t.lastSync != nil && t.lastSync.Path() == r.Path() {
			r.Synced = t.lastSync.Call
		}
		t.lastSync = nil
		if r.Op == proto.OpSync && r.OK() {
			t.lastSync = r
		}
		t.rec.add(r)
		return
	}
	// A reply without a request.
	t.rec.add(&Record{Kind: KindReply, Conn: t.number, Client: t.client, Session: t.session, Member: t.member, Return: now,
		Xid: h.Xid, Zxid: h.Zxid, Err: h.Err, Op: proto.OpError})
}

// tellsOf reports whether the body of a frame tells why a session ended: see
// docs/adr/0020-stories-for-clients.md.
func tellsOf(d *jute.Decoder, session proto.SessionID) bool {
	var story struct{ Session string }
	err := json.Unmarshal(d.Buffer(), &story)
	return err == nil && d.Err() == nil && d.Remaining() == 0 && story.Session == session.String()
}

// eachFrame calls fn with each complete frame in b and returns the rest.
func eachFrame(b []byte, fn func([]byte)) []byte {
	const head = 4
	for len(b) >= head {
		n := int(binary.BigEndian.Uint32(b))
		if len(b)-head < n {
			break
		}
		fn(b[head : head+n])
		b = b[head+n:]
	}
	return b
}
