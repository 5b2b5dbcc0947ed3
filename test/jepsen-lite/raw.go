package jepsenlite

import (
	"context"
	"errors"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A rawConn is a tapped connection with a session, on which requests are sent without waiting for
// replies. The tap matches and records the replies. A goroutine may send while another receives.
type rawConn struct {
	*tap
	conn    *rawclient.Conn // on the tap
	session proto.ConnectResponse
	xid     int32
}

// errExpired is returned if the server does not know the session.
var errExpired = errors.New("jepsenlite: session expired")

// rawPatience is how long a raw connection waits for a reply.
const rawPatience = 10 * time.Second

// openRaw connects and requests a session: the session in last, or a new session. lastZxid is the
// last zxid that the client has seen. A refused session is an error that wraps errExpired.
func openRaw(rec *Recorder, name, address string, member int, timeout time.Duration, last proto.ConnectResponse, lastZxid proto.Zxid) (*rawConn, error) {
	t, err := rec.connect(name, address, member, time.Second)
	if err != nil {
		return nil, err
	}
	c := &rawConn{tap: t, conn: rawclient.New(t)}
	req := rawclient.NewSession(int32(timeout.Milliseconds()))
	req.LastZxidSeen = lastZxid
	if last.Passwd != nil {
		req.SessionID, req.Passwd = last.SessionID, last.Passwd
	}
	c.session, err = c.conn.Handshake(req, rawPatience)
	if err == nil && c.session.TimeoutMs <= 0 {
		err = errExpired
	}
	if err != nil {
		_ = c.Close() // the earlier error says more
		return nil, err
	}
	return c, nil
}

// receive returns the header and the body of the next frame.
func (c *rawConn) receive() (proto.ReplyHeader, jute.Decoder, error) { return c.conn.Next(rawPatience) }

// request appends a request with the next xid.
func (c *rawConn) request(b []byte, op proto.OpCode, body []byte) []byte {
	c.xid++
	return rawclient.AppendRequest(b, c.xid, op, body)
}

// send writes requests.
func (c *rawConn) send(b []byte) error { return c.conn.Write(b, rawPatience) }

// pingXid is the xid of pings and of their replies.
const pingXid = -2

// ping sends a ping.
func (c *rawConn) ping() error {
	return c.send(rawclient.AppendRequest(nil, pingXid, proto.OpPing, nil))
}

// rawSessions calls use with raw connections, in turn, until ctx ends. A connection continues the
// session of the previous connection, or begins a new session if that is gone. use returns the last
// zxid that it saw and the index of the server to try next; the servers after that follow.
func (w *worker) rawSessions(ctx context.Context, use func(c *rawConn) (seen proto.Zxid, next int)) {
	var session proto.ConnectResponse
	var seen proto.Zxid
	next := w.home
	for ctx.Err() == nil {
		member := next%len(w.Addresses) + 1
		c, err := openRaw(w.Recorder, w.name+"-raw", w.Addresses[member-1], member, w.Timeout, session, seen)
		switch {
		case errors.Is(err, errExpired):
			session, seen = proto.ConnectResponse{}, 0 // the same server gives a new one
		case err != nil:
			next++
			backoff.Sleep(ctx, 50*time.Millisecond)
		default:
			session = c.session
			w.raw.Store(c)
			var last proto.Zxid
			last, next = use(c)
			seen = max(seen, last)
		}
	}
}
