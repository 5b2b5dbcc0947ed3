package server

import (
	"strings"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/internal/link"
)

// Audit puts an event into the audit log, if there is one: for what callers do through the program
// that embeds the server. Time is set if it is zero.
func (s *Server) Audit(e audit.Event) {
	if s.cfg.Audit == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = s.cfg.Now()
	}
	e.IDs = ShownIDs(e.IDs)
	s.cfg.Audit.Record(&e)
}

// auditEvent returns an event of this connection. c is locked, or Apply calls. ids are the
// client's identities at the time of the request.
func (c *conn) auditEvent(op audit.Operation, code proto.ErrCode, ids []proto.ID, now time.Time) audit.Event {
	origin := ""
	if caller, ok := c.NetConn().(*callerConn); ok {
		origin = caller.Origin
	}
	return audit.Event{
		Time: now, Operation: op, Result: audit.ResultOf(code), Err: code, Session: c.session, IDs: ShownIDs(ids),
		Client: c.NetConn().RemoteAddr().String(), Origin: origin, TLS: c.encrypted(),
	}
}

// maxAuditScheme bounds the name of a scheme in the audit log: a few requests with long names must
// not take the room of other events.
const maxAuditScheme = 256

// auditAuth records that the client proved an identity under a scheme, or failed to. c is locked.
func (c *conn) auditAuth(scheme string, code proto.ErrCode) {
	s := c.server
	if s.cfg.Audit == nil {
		return
	}
	e := c.auditEvent(audit.Authenticate, code, c.ids, s.cfg.Now())
	e.Detail = strings.Clone(printable.Shortened(scheme, maxAuditScheme)) // it may share the frame
	s.cfg.Audit.Record(&e)
}

// auditWord records a four-letter word that changes something.
func (c *conn) auditWord(word string, allowed bool) {
	s := c.server
	if s.cfg.Audit == nil || word != "srst" && word != "crst" && word != "stmk" {
		return
	}
	c.Lock()
	defer c.Unlock()
	e := c.auditEvent(audit.Word, proto.OK, c.ids, s.cfg.Now())
	e.Detail = word
	if !allowed {
		e.Result = audit.Failure
	}
	s.cfg.Audit.Record(&e)
}

// auditSession records that a client opened or resumed its session, or could not. c is locked.
func (c *conn) auditSession(op proto.OpCode, id proto.SessionID, code proto.ErrCode, zxid proto.Zxid) {
	s := c.server
	if s.cfg.Audit == nil {
		return
	}
	what := audit.OpenSession
	if op == proto.OpReattachSession {
		what = audit.ResumeSession
	}
	e := c.auditEvent(what, code, c.ids, s.cfg.Now())
	e.Session, e.Zxid = id, zxid
	s.cfg.Audit.Record(&e)
}

// auditRead records a read if its path is in Config.AuditReads, or if the client may not read the
// znode. c is locked.
func (c *conn) auditRead(op proto.OpCode, xid int32, path string, ids []proto.ID, code proto.ErrCode) {
	s := c.server
	if code != proto.ErrNoAuth && !below(path, s.cfg.AuditReads) {
		return
	}
	e := c.auditEvent(audit.Read, code, ids, s.cfg.Now())
	e.Xid, e.Znode, e.HasZnode, e.Detail = xid, strings.Clone(path), true, op.String()
	s.cfg.Audit.Record(&e)
}

// auditReadBody is auditRead for the body of a request.
func (c *conn) auditReadBody(op proto.OpCode, xid int32, body []byte, ids []proto.ID, code proto.ErrCode) {
	switch op {
	case proto.OpExists, proto.OpGetData, proto.OpGetACL, proto.OpGetChildren, proto.OpGetChildren2,
		proto.OpGetAllChildrenNumber, proto.OpGetEphemerals, proto.OpAddWatch:
		d := jute.NewDecoder(body)
		d.AliasStrings()
		if path := d.String(); d.Err() == nil {
			c.auditRead(op, xid, path, ids, code)
		}
	}
}

// below reports whether a path is one of the roots, or below one.
func below(path string, roots []string) bool {
	for _, root := range roots {
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(root, "/")); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// auditPatience is how often a connection that waits for the audit log looks whether it is closed.
const auditPatience = 100 * time.Millisecond

// awaitAudit waits until the audit log has room, if it asks for that. It returns false if the
// connection closes or the server stops. No lock is held: requests that were proposed are applied,
// and their events are taken, whoever waits here. A client that waits counts as heard.
func (c *conn) awaitAudit(in *link.Input) bool {
	log, ok := c.server.cfg.Audit.(audit.Backpressure)
	if !ok || !log.Full() {
		return true
	}
	c.HoldInput(in)
	for log.Full() {
		stopping := false
		select {
		case <-log.Room():
		case <-time.After(auditPatience):
		case <-c.server.life.stopping:
			stopping = true
		}
		if stopping || c.IsClosed() {
			return false
		}
	}
	return true
}
