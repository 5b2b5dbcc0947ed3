package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// patience bounds each exchange.
const patience = 20 * time.Second

// client is a session that sends its requests singly, also requests that no library would send.
// Its methods end the program if the server does not answer (see must).
type client struct {
	addr    string
	timeout time.Duration
	conn    *rawclient.Conn
	xid     int32
}

// connect creates a session.
func connect(addr string, timeout time.Duration) *client {
	c := &client{addr: addr, timeout: timeout}
	c.reconnect()
	return c
}

// reconnect creates a new session on a new connection.
func (c *client) reconnect() {
	c.conn = must.Get(rawclient.Dial(context.Background(), c.addr))
	must.Get(c.conn.Handshake(&proto.ConnectRequest{TimeoutMs: int32(c.timeout.Milliseconds()), Passwd: make([]byte, proto.PasswdBytes)}, patience))
}

// closed is the code that call returns if the server closes the connection instead of answering.
const closed proto.ErrCode = 1

// call sends a request and returns the code in the reply. If the server closes the connection
// instead, call returns closed, and the next call is in a new session.
func (c *client) call(op proto.OpCode, body []byte) proto.ErrCode {
	c.xid++
	must.Do(c.conn.Write(rawclient.AppendRequest(nil, c.xid, op, body), patience))
	for {
		frame, err := c.conn.ReadFrame(patience)
		if err != nil {
			c.reconnect()
			return closed
		}
		d := jute.NewDecoder(frame)
		var h proto.ReplyHeader
		h.Decode(&d)
		must.Do(d.Err())
		switch h.Xid {
		case c.xid:
			return h.Err
		case proto.XidEvent:
		default:
			must.Failf("the reply to %v has xid %d, not %d", op, h.Xid, c.xid)
		}
	}
}

// do is call for a request whose code only the audit log shows.
func (c *client) do(op proto.OpCode, body []byte) { _ = c.call(op, body) }

func (c *client) close() {
	c.do(proto.OpCloseSession, nil)
	_ = c.conn.Close() // the server closes it, too
}

func (c *client) identify(scheme, credentials string) {
	c.do(proto.OpAuth, (&proto.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}).Append(nil))
}

// awaitGone returns when the znode does not exist any more.
func (c *client) awaitGone(path string) {
	end := time.Now().Add(patience)
	for c.call(proto.OpExists, (&proto.PathWatchRequest{Path: path}).Append(nil)) != proto.ErrNoNode {
		if time.Now().After(end) {
			must.Failf("%s still exists", path)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func create(op proto.OpCode, path string, mode proto.CreateMode, ttl int64, acl []proto.ACL) []byte {
	return (&proto.CreateRequest{Path: path, Data: []byte("data"), ACL: acl, Mode: mode, TTL: ttl}).Append(nil, op)
}

func remove(path string, version int32) []byte {
	return (&proto.PathVersionRequest{Path: path, Version: version}).Append(nil)
}

func setData(path string, version int32) []byte {
	return (&proto.SetDataRequest{Path: path, Data: []byte("new"), Version: version}).Append(nil)
}

func setACL(path string, version int32, acl ...proto.ACL) []byte {
	return (&proto.SetACLRequest{Path: path, ACL: acl, Version: version}).Append(nil)
}

func multi(ops ...proto.MultiOp) []byte { return (&proto.MultiRequest{Ops: ops}).Append(nil) }

func acl(perms proto.Perms, scheme, id string) proto.ACL {
	return proto.ACL{Perms: perms, ID: proto.ID{Scheme: scheme, ID: id}}
}

func text(format string, args ...any) string { return fmt.Sprintf(format, args...) }
