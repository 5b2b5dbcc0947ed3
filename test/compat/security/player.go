package security

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
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
	if of != nil {
		c.said = append(c.said, fmt.Sprintf("the same session: %t", c.session == of.session))
	}
	return c
}

// play performs the acts of a row, and returns the server's answers on each connection.
func (p *player) play(acts []string) string {
	c := p.connect(nil)
	for _, act := range acts {
		word, rest, _ := strings.Cut(act, " ")
		switch word {
		case "connect":
			c = p.connect(nil)
		case "again":
			c = p.connect(c)
		case "reply":
			c.reply(proto.OpPing)
		case "login":
			c.login(rest)
		default:
			op, body := must.Get2(exchange.ParseRequest(rest))
			c.call(int32(must.Get(strconv.ParseInt(word, 10, 32))), op, body)
		}
	}
	var stories []string
	for _, c := range p.conns {
		stories = append(stories, strings.Join(c.said, "; "))
	}
	return strings.Join(stories, "\n             ")
}

// request sends a request. body may be nil.
func (c *conn) request(xid int32, op proto.OpCode, body []byte) {
	// An error means that the server has closed the connection, which reply says too.
	_ = c.raw.Write(rawclient.AppendRequest(nil, xid, op, body), patience)
}

var nonce = regexp.MustCompile(`nonce="[A-Za-z0-9+/=]{40}"`)

// reply notes the next reply of the server and returns the token in it, if it is one of SASL; nil:
// there is none, or the connection is closed or silent.
func (c *conn) reply(op proto.OpCode) (token []byte) {
	h, d, err := c.raw.Next(patience)
	switch {
	case errors.Is(err, rawclient.ErrTimeout):
		c.said = append(c.said, "silent")
		return nil
	case err != nil:
		c.said = append(c.said, "closed")
		return nil
	}
	size, body := proto.ReplyHeaderBytes+d.Remaining(), d
	text := fmt.Sprintf("%v xid %d err %d", op, h.Xid, h.Err)
	if op == proto.OpSASL || op == proto.OpAuth || h.Err == proto.ErrSessionClosedRequireSASLAuth {
		text += fmt.Sprintf(" zxid %d of %d bytes", h.Zxid, size)
	}
	switch op {
	case proto.OpSASL:
		var r proto.TokenRecord
		r.Decode(&d)
		token = r.Token
		switch {
		case d.Err() != nil:
			text += " " + hex.EncodeToString(body.Rest())
		case r.Token == nil:
			text += " null"
		case strings.HasPrefix(string(r.Token), "rspauth="):
			text += " rspauth"
		default:
			text += " " + nonce.ReplaceAllString(string(r.Token), `nonce="40"`)
		}
	case proto.OpGetACL:
		var r proto.ACLResponse
		r.Decode(&d)
		text += fmt.Sprint(" ", r.ACL)
	case proto.OpMulti:
		text += fmt.Sprintf(" of %d bytes", size)
	case proto.OpWhoAmI:
		var r proto.WhoAmIResponse
		r.Decode(&d)
		for _, id := range r.IDs {
			text += " " + id.Scheme + ":" + id.ID
		}
	}
	c.said = append(c.said, text)
	return token
}

// call sends a request, notes the reply, and returns what reply does.
func (c *conn) call(xid int32, op proto.OpCode, body []byte) (token []byte) {
	c.request(xid, op, body)
	return c.reply(op)
}

func (c *conn) sasl(xid int32, token []byte) (answer []byte) {
	return c.call(xid, proto.OpSASL, (&proto.TokenRecord{Token: token}).Append(nil))
}

// login plays an exchange of DIGEST-MD5. act is "USER PASSWORD" and changes of the second token:
// edit PATTERN REPLACEMENT replaces all matches of a pattern, with NAME=VALUE sets a directive, and
// with NAME= leaves the directive out.
func (c *conn) login(act string) {
	user, rest, _ := strings.Cut(act, " ")
	password, changes, changed := strings.Cut(rest, " ")
	x := must.Get(sasl.NewDigestClient(user, password).New(""))
	first, _, err := x.Step(nil)
	must.Do(err)
	challenge := c.sasl(1, first)
	if challenge == nil {
		return
	}
	second, _, err := x.Step(challenge)
	must.Do(err)
	answer := c.sasl(2, []byte(edited(string(second), changes)))
	if answer != nil && !changed {
		_, _, err = x.Step(answer)
		must.Do(err)
	}
}

// edited returns the token with its changes.
func edited(token, changes string) string {
	next := func() string {
		quoted := must.Get(strconv.QuotedPrefix(changes))
		changes = strings.TrimPrefix(changes[len(quoted):], " ")
		return must.Get(strconv.Unquote(quoted))
	}
	for changes != "" {
		word, rest, _ := strings.Cut(changes, " ")
		changes = rest
		switch word {
		case "edit":
			pattern := regexp.MustCompile(next())
			token = pattern.ReplaceAllLiteralString(token, next())
		case "with":
			directive := next()
			name, value, _ := strings.Cut(directive, "=")
			parts := slices.DeleteFunc(strings.Split(token, ","), func(part string) bool { return strings.HasPrefix(part, name+"=") })
			if value != "" {
				parts = append(parts, directive)
			}
			token = strings.Join(parts, ",")
		default:
			must.Failf("a login has no %q", word)
		}
	}
	return token
}
