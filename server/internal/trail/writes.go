package trail

import (
	"fmt"
	"strings"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Request is a request that was applied, or refused, and its result.
type Request struct {
	Client  Client // nil: the server itself sent it
	Session proto.SessionID
	Xid     int32
	Op      proto.OpCode
	Body    []byte
	IDs     []proto.ID // of the client, as in Client.AuditEvent

	Time  time.Time
	Err   proto.ErrCode
	Zxid  proto.Zxid
	Path  string              // of the znode that a create made
	Multi []proto.MultiResult // of the operations of a multi
	// MultiFailed: nothing of the multi was done.
	MultiFailed bool
}

// event returns an event with everything that does not depend on the operation.
func (r *Request) event() audit.Event {
	if r.Client == nil {
		return audit.Event{Time: r.Time, Result: audit.ResultOf(r.Err), Err: r.Err, Zxid: r.Zxid}
	}
	e := event(r.Client, "", r.Err, r.IDs, r.Time)
	e.Session, e.Xid, e.Zxid = r.Session, r.Xid, r.Zxid
	return e
}

// Write records a write, unless its operation has no events.
func (t *Trail) Write(r *Request) { t.write(r.event(), r) }

// Lost records a write whose outcome is not known here.
func (t *Trail) Lost(r *Request) {
	e := r.event()
	e.Result = audit.Invoked
	e.Detail = "applied or refused by the other members, whose state this server took over"
	t.write(e, r)
}

// End records the end of a session, and of its ephemeral znodes. The Trail must be on.
func (t *Trail) End(r *Request, ephemerals []string) {
	for _, path := range ephemerals {
		t.Log.Record(&audit.Event{
			Time: r.Time, Operation: audit.DeleteEphemeral, Result: audit.Success, Session: r.Session, Zxid: r.Zxid,
			Znode: path, HasZnode: true,
		})
	}
	e := r.event()
	switch {
	case r.Op == proto.OpExpireSession:
		e.Operation = audit.ExpireSession
	case r.Client != nil:
		e.Operation = audit.CloseSession
	default:
		return
	}
	e.Session = r.Session
	t.Log.Record(&e)
}

func (t *Trail) write(e audit.Event, r *Request) {
	d := jute.NewDecoder(r.Body)
	d.AliasStrings()
	switch r.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		e.Operation = audit.Create
		setZnode(&e, &d)
		d.Buffer()
		for range d.Count(minACLEntryBytes) { // of the ACL
			d.Int()
			_, _ = d.String(), d.String()
		}
		// As in ZooKeeper, a body that ends early asks for a persistent znode.
		e.Mode, e.HasMode = proto.CreateMode(d.Int()), true
		if r.Err == proto.OK {
			e.Znode, e.HasZnode = r.Path, true
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
		t.setACL(&e, &d)
	case proto.OpReconfig:
		e.Operation = audit.Reconfig
	case proto.OpMulti:
		t.multi(e, &d, r)
		return
	default:
		return
	}
	t.Log.Record(&e)
}

// setZnode reads the path at the beginning of a body.
func setZnode(e *audit.Event, d *jute.Decoder) {
	if path, null := d.StringOrNull(); d.Err() == nil && !null {
		e.Znode, e.HasZnode = strings.Clone(path), true
	}
}

// setACL reads an ACL. Of a list that is too long for a znode, and so is refused, the event has the
// beginning: a few such requests must not take the room of other events.
func (t *Trail) setACL(e *audit.Event, d *jute.Decoder) {
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
		if i == t.MaxACLEntries || size > t.MaxACLBytes {
			e.Detail = fmt.Sprintf("%d of %d entries of the ACL", i, n)
			return
		}
		id.Scheme, id.ID = strings.Clone(id.Scheme), strings.Clone(id.ID) // they share the body
		e.ACL = append(e.ACL, entry)
	}
}

// minACLEntryBytes is the least length of an entry of an ACL in a request.
const minACLEntryBytes = 12

// multi records each write of a multi, or one event if the multi failed.
func (t *Trail) multi(e audit.Event, d *jute.Decoder, r *Request) {
	var m proto.MultiRequest
	err := m.Decode(d, proto.OpMulti)
	if r.Err != proto.OK || r.MultiFailed || err != nil {
		e.Operation, e.Result = audit.Multi, audit.Failure
		for i := range min(len(m.Ops), len(r.Multi)) {
			if code := r.Multi[i].Err; code != proto.OK {
				e.Err, e.Detail = code, fmt.Sprintf("operation %d of %d: %v %s", i+1, len(m.Ops), m.Ops[i].Op, m.Ops[i].Path)
				break
			}
		}
		t.Log.Record(&e)
		return
	}
	for i := range m.Ops {
		op, part := &m.Ops[i], e
		part.InMulti, part.Znode, part.HasZnode = true, strings.Clone(op.Path), true
		switch op.Op {
		case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
			part.Operation, part.Mode, part.HasMode, part.Znode = audit.Create, op.Mode, true, r.Multi[i].Path
		case proto.OpDelete:
			part.Operation = audit.Delete
		case proto.OpSetData:
			part.Operation = audit.SetData
		default:
			continue
		}
		t.Log.Record(&part)
	}
}
