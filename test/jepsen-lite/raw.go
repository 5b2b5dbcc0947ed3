package jepsenlite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A rawConn is a tapped connection with a session, on which requests are sent without waiting for
// replies. The tap matches and records the replies. A goroutine may send while another receives.
type rawConn struct {
	*tap
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
	c := &rawConn{tap: t}
	passwd := last.Passwd
	if passwd == nil {
		passwd = make([]byte, proto.PasswdBytes)
	}
	req := proto.ConnectRequest{LastZxidSeen: lastZxid, TimeoutMs: int32(timeout.Milliseconds()), SessionID: last.SessionID, Passwd: passwd}
	frame, err := []byte(nil), t.SetWriteDeadline(time.Now().Add(rawPatience))
	if err == nil {
		_, err = c.Write(rawclient.AppendFrame(nil, req.Append(nil)))
	}
	if err == nil {
		frame, err = c.receive()
	}
	if err == nil {
		d := jute.NewDecoder(frame)
		c.session.Decode(&d)
		if err = d.Err(); err == nil && c.session.TimeoutMs <= 0 {
			err = errExpired
		}
	}
	if err != nil {
		_ = c.Close() // the earlier error says more
		return nil, err
	}
	return c, nil
}

// receive returns the payload of the next frame.
func (c *rawConn) receive() ([]byte, error) {
	if err := c.SetReadDeadline(time.Now().Add(rawPatience)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(c.tap, head[:]); err != nil {
		return nil, err
	}
	n := int(uint32(head[0])<<24 | uint32(head[1])<<16 | uint32(head[2])<<8 | uint32(head[3]))
	if n > rawclient.MaxFrameBytes {
		return nil, fmt.Errorf("jepsenlite: a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(c.tap, frame)
	return frame, err
}

// request appends a request with the next xid.
func (c *rawConn) request(b []byte, op proto.OpCode, body []byte) []byte {
	c.xid++
	return rawclient.AppendRequest(b, c.xid, op, body)
}

// send writes requests.
func (c *rawConn) send(b []byte) error {
	if err := c.SetWriteDeadline(time.Now().Add(rawPatience)); err != nil {
		return err
	}
	_, err := c.Write(b)
	return err
}

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
		member := next%len(w.addresses) + 1
		c, err := openRaw(w.rec, w.name+"-raw", w.addresses[member-1], member, w.timeout, session, seen)
		switch {
		case errors.Is(err, errExpired):
			session, seen = proto.ConnectResponse{}, 0 // the same server gives a new one
		case err != nil:
			next++
			_ = pause(ctx, 50*time.Millisecond)
		default:
			session = c.session
			w.raw.Store(c)
			var last proto.Zxid
			last, next = use(c)
			seen = max(seen, last)
		}
	}
}
