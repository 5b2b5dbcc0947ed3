package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/sasl"
)

// patience is how long a server may be silent.
const patience = 2 * time.Second

// player opens connections to one server.
type player struct {
	ctx   context.Context
	addr  string
	conns []*conn
}

// conn is a connection with a session. said is the server's answer.
type conn struct {
	raw     *rawclient.Conn
	session proto.SessionID
	passwd  []byte
	said    []string
}

func (p *player) closeAll() {
	for _, c := range p.conns {
		_ = c.raw.Close()
	}
}

// connect opens a connection with a new session, or resumes that of another connection.
func (p *player) connect(of *conn) *conn {
	c := &conn{raw: must.Get(rawclient.Dial(p.ctx, p.addr))}
	p.conns = append(p.conns, c)
	req := proto.ConnectRequest{TimeoutMs: 10_000, Passwd: make([]byte, proto.PasswdBytes), HasReadOnly: true}
	if of != nil {
		req.SessionID, req.Passwd = of.session, of.passwd
	}
	r := must.Get(c.raw.Handshake(&req, patience))
	c.session, c.passwd = r.SessionID, r.Passwd
	return c
}

// request sends a request. body may be nil.
func (c *conn) request(xid int32, op proto.OpCode, body []byte) {
	// An error means that the server has closed the connection, which reply says too.
	_ = c.raw.Write(rawclient.AppendRequest(nil, xid, op, body), patience)
}

var nonce = regexp.MustCompile(`nonce="[A-Za-z0-9+/=]{40}"`)

// reply notes the next reply of the server and returns it; nil: the connection is closed, or
// silent.
func (c *conn) reply(op proto.OpCode) []byte {
	frame, err := c.raw.ReadFrame(patience)
	switch {
	case errors.Is(err, rawclient.ErrTimeout):
		c.said = append(c.said, "silent")
		return nil
	case err != nil:
		c.said = append(c.said, "closed")
		return nil
	}
	d := jute.NewDecoder(frame)
	var h proto.ReplyHeader
	h.Decode(&d)
	text := fmt.Sprintf("%v xid %d err %d", op, h.Xid, h.Err)
	if op == proto.OpSASL || op == proto.OpAuth || h.Err == proto.ErrSessionClosedRequireSASLAuth {
		text += fmt.Sprintf(" zxid %d of %d bytes", h.Zxid, len(frame))
	}
	body := frame[proto.ReplyHeaderBytes:]
	switch op {
	case proto.OpSASL:
		var r proto.TokenRecord
		r.Decode(&d)
		switch {
		case d.Err() != nil:
			text += " " + hex.EncodeToString(body)
		case r.Token == nil:
			text += " null"
		case strings.HasPrefix(string(r.Token), "rspauth="):
			text += " rspauth"
		default:
			text += " " + nonce.ReplaceAllString(string(r.Token), `nonce="40"`)
		}
	case proto.OpWhoAmI:
		var r proto.WhoAmIResponse
		r.Decode(&d)
		for _, id := range r.IDs {
			text += " " + id.Scheme + ":" + id.ID
		}
	}
	c.said = append(c.said, text)
	return frame
}

// call sends a request and notes the reply.
func (c *conn) call(xid int32, op proto.OpCode, body []byte) []byte {
	c.request(xid, op, body)
	return c.reply(op)
}

func (c *conn) sasl(xid int32, token []byte) (answer []byte) {
	frame := c.call(xid, proto.OpSASL, (&proto.TokenRecord{Token: token}).Append(nil))
	if frame == nil {
		return nil
	}
	d := jute.NewDecoder(frame[proto.ReplyHeaderBytes:])
	var r proto.TokenRecord
	r.Decode(&d)
	return r.Token
}

// login plays an exchange of DIGEST-MD5. change changes the second token.
func (c *conn) login(user, password string, change func(token string) string) {
	x := must.Get(sasl.NewDigestClient(user, password).New(""))
	first, _, err := x.Step(nil)
	must.Do(err)
	challenge := c.sasl(1, first)
	if challenge == nil {
		return
	}
	second, _, err := x.Step(challenge)
	must.Do(err)
	if change != nil {
		second = []byte(change(string(second)))
	}
	answer := c.sasl(2, second)
	if answer != nil && change == nil {
		_, _, err = x.Step(answer)
		must.Do(err)
	}
}

func (c *conn) auth(scheme, credentials string) {
	c.call(proto.XidAuth, proto.OpAuth, (&proto.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}).Append(nil))
}

func (c *conn) whoAmI() { c.call(5, proto.OpWhoAmI, nil) }

func (c *conn) create(path string, ids ...proto.ID) {
	acl := proto.OpenACL()
	if len(ids) > 0 {
		acl = nil
	}
	for _, id := range ids {
		acl = append(acl, proto.ACL{Perms: proto.PermAll, ID: id})
	}
	c.call(6, proto.OpCreate, (&proto.CreateRequest{Path: path, ACL: acl}).Append(nil, proto.OpCreate))
}

func (c *conn) get(path string) {
	c.call(7, proto.OpGetData, (&proto.PathWatchRequest{Path: path}).Append(nil))
}

func (c *conn) set(path string) {
	c.call(8, proto.OpSetData, (&proto.SetDataRequest{Path: path, Version: -1}).Append(nil))
}

// story returns the server's answers.
func (c *conn) story() string { return strings.Join(c.said, "; ") }
