package server

import (
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// audit records a request that was applied. Of a request that this server proposed there is an
// event before its reply is sent, in the order in which requests are applied (A1). Every member has
// events of sessions that end and of their ephemeral znodes, as in ZooKeeper, unless the log is
// applied again after a start. events are those of Apply.
func (a *applier) audit(req *datatree.Request, res *datatree.Result, events []datatree.Event, ref any, now time.Time) {
	w := clientRequestOf(ref)
	if res.Pending || w != nil && res.Err == proto.ErrSessionMoved { // the latter is not answered
		return
	}
	switch req.Op {
	case proto.OpCreateSession, proto.OpReattachSession, proto.OpInitConfig, proto.OpConfigDone: // see attached and noteConfig
	case proto.OpCloseSession, proto.OpExpireSession:
		a.auditEnd(req, res, events, w, now)
	default:
		_, own := ref.(*serverWrite)
		if w != nil || own {
			a.s.auditWrite(auditBase(req, res, w, now), req, res)
		}
	}
}

// auditBase returns an event of a request with everything that does not depend on the operation. A
// nil w means that the server itself sent the request.
func auditBase(req *datatree.Request, res *datatree.Result, w *clientRequest, now time.Time) audit.Event {
	if w == nil {
		return audit.Event{Time: now, Result: audit.ResultOf(res.Err), Err: res.Err, Zxid: res.Zxid}
	}
	e := w.conn.auditEvent("", res.Err, req.IDs, now)
	e.Session, e.Xid, e.Zxid = w.session(), w.xid, res.Zxid
	return e
}

// auditEnd records the end of a session and of its ephemeral znodes.
func (a *applier) auditEnd(req *datatree.Request, res *datatree.Result, events []datatree.Event, w *clientRequest, now time.Time) {
	s := a.s
	if !s.life.serving.Load() || w == nil && res.Err != proto.OK {
		return
	}
	for i := range events {
		if events[i].Type == proto.EventDeleted {
			s.cfg.Audit.Record(&audit.Event{
				Time: now, Operation: audit.DeleteEphemeral, Result: audit.Success, Session: req.Session, Zxid: res.Zxid,
				Znode: events[i].Path, HasZnode: true,
			})
		}
	}
	e := auditBase(req, res, w, now)
	switch {
	case req.Op == proto.OpExpireSession:
		e.Operation = audit.ExpireSession
	case w != nil:
		e.Operation = audit.CloseSession
	default:
		return
	}
	e.Session = req.Session
	s.cfg.Audit.Record(&e)
}

// auditWrite completes the event of a write, and records it.
func (s *Server) auditWrite(e audit.Event, req *datatree.Request, res *datatree.Result) {
	d := jute.NewDecoder(req.Body)
	d.AliasStrings()
	switch req.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		e.Operation = audit.Create
		setZnode(&e, &d)
		d.Buffer()
		skipACL(&d)
		// As in ZooKeeper, a body that ends early asks for a persistent znode.
		e.Mode, e.HasMode = proto.CreateMode(d.Int()), true
		if res.Err == proto.OK {
			e.Znode, e.HasZnode = res.Path, true
		}
	case proto.OpDelete:
		e.Operation = audit.Delete
		setZnode(&e, &d)
	case proto.OpDeleteContainer:
		e.Operation = audit.Collect
		setZnode(&e, &d)
	case proto.OpSetData:
		e.Operation = audit.SetData
		setZnode(&e, &d)
	case proto.OpSetACL:
		e.Operation = audit.SetACL
		setZnode(&e, &d)
		setACL(&e, &d)
	case proto.OpReconfig:
		e.Operation = audit.Reconfig
	case proto.OpMulti:
		s.auditMulti(e, &d, res)
		return
	default:
		return
	}
	s.cfg.Audit.Record(&e)
}

// setZnode reads the path at the beginning of a body.
func setZnode(e *audit.Event, d *jute.Decoder) {
	if path, null := d.StringOrNull(); d.Err() == nil && !null {
		e.Znode, e.HasZnode = strings.Clone(path), true
	}
}

// setACL reads an ACL. Of a list that is too long for a znode, and so is refused, the event has the
// beginning: a few such requests must not take the room of other events.
func setACL(e *audit.Event, d *jute.Decoder) {
	n, size := d.Count(minACLEntryBytes), 0
	if n < 0 { // null
		return
	}
	e.ACL = []proto.ACL{}
	for i := range n {
		var entry proto.ACL
		if entry.Decode(d); d.Err() != nil {
			e.ACL = []proto.ACL{}
			return
		}
		id := &entry.ID
		size += minACLEntryBytes + len(id.Scheme) + len(id.ID)
		if i == datatree.MaxACLEntries || size > datatree.MaxACLBytes {
			e.Detail = fmt.Sprintf("%d of %d entries of the ACL", i, n)
			return
		}
		id.Scheme, id.ID = strings.Clone(id.Scheme), strings.Clone(id.ID) // they share the body
		e.ACL = append(e.ACL, entry)
	}
}

// minACLEntryBytes is the least length of an entry of an ACL in a request.
const minACLEntryBytes = 12

// skipACL skips an ACL without copying it.
func skipACL(d *jute.Decoder) {
	for range d.Count(minACLEntryBytes) {
		d.Int()
		_, _ = d.String(), d.String()
	}
}

// auditMulti records each write of a multi, or one event if the multi failed.
func (s *Server) auditMulti(e audit.Event, d *jute.Decoder, res *datatree.Result) {
	var m proto.MultiRequest
	err := m.Decode(d, proto.OpMulti)
	if res.Err != proto.OK || res.MultiFailed || err != nil {
		e.Operation, e.Result = audit.Multi, audit.Failure
		for i := range min(len(m.Ops), len(res.Multi)) {
			if code := res.Multi[i].Err; code != proto.OK {
				e.Err, e.Detail = code, fmt.Sprintf("operation %d of %d: %v %s", i+1, len(m.Ops), m.Ops[i].Op, m.Ops[i].Path)
				break
			}
		}
		s.cfg.Audit.Record(&e)
		return
	}
	for i := range m.Ops {
		op, part := &m.Ops[i], e
		part.InMulti, part.Znode, part.HasZnode = true, strings.Clone(op.Path), true
		switch op.Op {
		case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
			part.Operation, part.Mode, part.HasMode, part.Znode = audit.Create, op.Mode, true, res.Multi[i].Path
		case proto.OpDelete:
			part.Operation = audit.Delete
		case proto.OpSetData:
			part.Operation = audit.SetData
		default:
			continue
		}
		s.cfg.Audit.Record(&part)
	}
}

// auditRefused records a write that is answered without being applied. c is locked.
func (c *conn) auditRefused(h proto.RequestHeader, body []byte, code proto.ErrCode, now time.Time) {
	s := c.server
	if s.cfg.Audit == nil {
		return
	}
	e := c.auditEvent("", code, c.ids, now)
	e.Xid = h.Xid
	s.auditWrite(e, &datatree.Request{Op: h.Op, Body: body}, &datatree.Result{Err: code})
}

// auditLost records a request whose outcome is not known here.
func (s *Server) auditLost(w *clientRequest) {
	if s.cfg.Audit == nil {
		return
	}
	w.conn.Lock()
	defer w.conn.Unlock()
	res := datatree.Result{Err: errUnknownOutcome}
	e := auditBase(&w.req, &res, w, s.cfg.Now())
	e.Result, e.Detail = audit.Invoked, "applied or refused by the other members, whose state this server took over"
	s.auditWrite(e, &w.req, &res)
}
