package server

import (
	"slices"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/identity"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// reader is the client of a read.
type reader struct {
	datatree.Caller
	conn    watch.ConnID // gets the watches
	session proto.SessionID
	events  int64    // that setWatches put on the output
	missed  *replay  // of a setWatches2
	replays *replays // of the connection
	meter   *meter.Meter
}

// read appends the reply to a read op to c.Out. The caller holds the tree's lock, and c is locked.
// body may be a network buffer, and is not kept. read returns false if it did only a part of the
// work: after the locks were released, it must be called again with the same request.
func (c *conn) read(t *meter.BatchStats, op proto.OpCode, xid int32, body []byte, ids []proto.ID) bool {
	o, state := &c.Out, &c.server.state
	zxid := state.tree.LastZxid()
	switch op {
	case proto.OpPing:
		o.Buf = appendStatus(o.Buf, proto.XidPing, zxid, proto.OK)
		return true
	case proto.OpMultiRead:
		if c.queue.partial == nil {
			c.queue.partial = newPartialRead(body)
		}
		if !c.queue.partial.slice(c, xid, c.caller(ids)) {
			return false
		}
	case proto.OpSetWatches2:
		if c.queue.missed == nil {
			var q proto.SetWatchesRequest
			d := jute.NewDecoder(body)
			q.Decode(&d, op) // a malformed one may have fewer watches
			c.queue.missed = newReplay(state, c.id, &q)
		}
		if !c.queue.missed.slice() {
			return false
		}
	}
	d := jute.NewDecoder(body)
	d.AliasStrings()
	start := o.Mark()
	o.Buf, _ = beginReply(o.Buf, xid, zxid, proto.OK)
	var code proto.ErrCode
	if r := c.queue.partial; op == proto.OpMultiRead {
		o.AppendOutput(r.out)
		code, c.queue.partial = r.code, nil
	} else {
		// c.caller would copy it: nearly all requests are reads.
		r := reader{
			Caller: datatree.Caller{IDs: ids, SkipACL: c.skipACL, Known: &c.known},
			conn:   c.id, session: c.session, missed: c.queue.missed, replays: &c.replays, meter: &c.server.meter,
		}
		c.queue.missed = nil
		code = state.read(o, t, op, &d, &r)
		c.stats.Sent += r.events
	}
	if c.server.trail.On() {
		c.server.trail.ReadBody(c, op, xid, body, ids, code)
	}
	switch {
	case op == proto.OpSetWatches || op == proto.OpSetWatches2:
		// The events of setWatches come before its reply: move its empty frame to their end.
		events := o.Buf[start.At()+4+proto.ReplyHeaderBytes:]
		o.Buf = append(o.Buf[:start.At()], events...)
		o.Buf = appendStatus(o.Buf, xid, zxid, code)
	case code != proto.OK:
		o.Truncate(start)
		o.Buf = appendStatus(o.Buf, xid, zxid, code)
	default:
		o.EndFrame(start)
	}
	return true
}

// read carries out a read op, and appends the body of its reply, which is void after an error.
func (s *state) read(o *link.Output, t *meter.BatchStats, op proto.OpCode, d *jute.Decoder, r *reader) (code proto.ErrCode) {
	switch op {
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		return s.readPath(o, t, op, d, r)
	case proto.OpGetACL, proto.OpGetAllChildrenNumber:
		path := d.RequiredString()
		if d.Err() != nil {
			return proto.ErrMarshallingError
		}
		if op == proto.OpGetAllChildrenNumber {
			n, code := s.tree.AllChildrenNumber(path, r.Caller)
			o.Buf = jute.AppendInt(o.Buf, n)
			return code
		}
		acl, st, code := s.tree.GetACL(path, r.Caller)
		if code == proto.OK {
			at := len(o.Buf)
			o.Buf = (&proto.ACLResponse{ACL: acl, Stat: st}).Append(o.Buf)
			t.Read(path, len(o.Buf)-at)
		}
		return code
	case proto.OpListPage:
		var req proto.ListPageRequest
		if req.Decode(d); d.Err() != nil {
			return proto.ErrMarshallingError
		}
		page, code := s.tree.Page(&req, r.Caller)
		if code == proto.OK {
			at := len(o.Buf)
			o.Buf = page.Append(o.Buf, req.Flags)
			t.Read(req.Path, len(o.Buf)-at)
		}
		return code
	case proto.OpGetEphemerals:
		prefix := d.NullString()
		if d.Err() != nil {
			return proto.ErrMarshallingError
		}
		o.Buf = jute.AppendStrings(o.Buf, s.tree.Ephemerals(r.session, prefix))
	case proto.OpWhoAmI:
		o.Buf = appendWhoAmI(o.Buf, r.IDs)
	case proto.OpSetWatches, proto.OpSetWatches2:
		return s.setWatches(o, t, op, d, r)
	case proto.OpAddWatch:
		return s.addWatch(o, d, r)
	case proto.OpCheckWatches, proto.OpRemoveWatches:
		return s.checkOrRemoveWatches(op, d, r)
	default:
		return proto.ErrUnimplemented
	}
	return proto.OK
}

// readPath handles exists, getData and both getChildren.
func (s *state) readPath(o *link.Output, t *meter.BatchStats, op proto.OpCode, d *jute.Decoder, client *reader) (code proto.ErrCode) {
	var r proto.PathWatchRequest
	r.Decode(d)
	if d.Err() != nil {
		return proto.ErrMarshallingError
	}
	at, kind := o.Len(), watch.Data
	var st proto.Stat
	switch op {
	case proto.OpExists:
		if strings.IndexByte(r.Path, 0) >= 0 {
			return proto.ErrBadArguments
		}
		if st, code = s.tree.Exists(r.Path, client.Caller); code == proto.OK {
			o.Buf = st.Append(o.Buf)
		}
	case proto.OpGetData:
		var data []byte
		if data, code = s.tree.ReadData(r.Path, &client.Caller, &st); code == proto.OK {
			o.AppendData(data)
			o.Buf = st.Append(o.Buf)
		}
	default:
		kind = watch.Child
		if o.Buf, st, code = s.tree.AppendChildren(o.Buf, r.Path, client.Caller); code == proto.OK && op == proto.OpGetChildren2 {
			o.Buf = st.Append(o.Buf)
		}
	}
	if code == proto.ErrNoNode && kind == watch.Data && r.Path == proto.FeaturesPath {
		data := s.features()
		if op == proto.OpGetData {
			o.AppendData(data)
		}
		o.Buf = (&proto.Stat{DataLength: int32(len(data))}).Append(o.Buf)
		return proto.OK
	}
	if r.Watch && (code == proto.OK || code == proto.ErrNoNode && op == proto.OpExists) {
		s.watches.Add(client.conn, r.Path, kind)
	}
	if code == proto.OK {
		t.Read(r.Path, o.Len()-at)
	}
	return code
}

func (s *state) addWatch(o *link.Output, d *jute.Decoder, client *reader) proto.ErrCode {
	var r proto.AddWatchRequest
	r.Decode(d)
	kind := watch.Persistent
	switch {
	case d.Err() != nil:
		return proto.ErrMarshallingError
	case r.Mode == proto.AddWatchPersistentRecursive:
		kind = watch.PersistentRecursive
	case r.Mode != proto.AddWatchPersistent:
		return proto.ErrMarshallingError
	}
	s.watches.Add(client.conn, r.Path, kind)
	o.Buf = jute.AppendInt(o.Buf, 0)
	return proto.OK
}

func (s *state) checkOrRemoveWatches(op proto.OpCode, d *jute.Decoder, client *reader) proto.ErrCode {
	var r proto.WatchesRequest
	r.Decode(d)
	if d.Err() != nil || !r.Type.Valid() {
		return proto.ErrMarshallingError
	}
	found := false
	if op == proto.OpCheckWatches {
		found = s.watches.Has(client.conn, r.Path, r.Type)
	} else {
		found = s.watches.Remove(client.conn, r.Path, r.Type)
	}
	if !found {
		return proto.ErrNoWatcher
	}
	return proto.OK
}

// setWatches sets the watches of a client that reconnected, and appends an event for each watch
// that should have fired in the meantime; replay does so for persistent watches. As in ZooKeeper,
// no ACL is checked for the others and no path is validated, and a null vector or path fails the
// request only when it is reached: the watches before it stay set. Persistent watches may have a
// null path.
func (s *state) setWatches(o *link.Output, t *meter.BatchStats, op proto.OpCode, d *jute.Decoder, client *reader) proto.ErrCode {
	var r proto.SetWatchesRequest
	syntax := *d
	if r.Decode(&syntax, op); syntax.Err() != nil {
		return proto.ErrMarshallingError
	}
	relative := proto.Zxid(d.Long())
	event := func(typ proto.EventType, path string) { client.event(o, t, proto.NoZxid, typ, path) }
	const data, exist, child = 0, 1, 2 // the lists before those of persistent watches
	kinds := []watch.Kind{watch.Data, watch.Data, watch.Child, watch.Persistent, watch.PersistentRecursive}
	if op == proto.OpSetWatches {
		kinds = kinds[:child+1]
	}
	for list, kind := range kinds {
		n := d.Count(4)
		if n < 0 {
			return proto.ErrMarshallingError
		}
		for range n {
			path := d.NullString()
			if path == nil {
				if list <= child {
					return proto.ErrMarshallingError
				}
				path = new(string) // as in addWatch
			}
			switch mzxid, pzxid, exists := s.tree.Lookup(*path); {
			case list == exist && exists:
				event(proto.EventCreated, *path)
			case (list == data || list == child) && !exists:
				event(proto.EventDeleted, *path)
			case list == data && mzxid > relative:
				event(proto.EventDataChanged, *path)
			case list == child && pzxid > relative:
				event(proto.EventChildrenChanged, *path)
			default:
				s.watches.Add(client.conn, *path, kind)
			}
		}
	}
	if op == proto.OpSetWatches2 {
		client.missed.send(o, t, client)
	}
	return proto.OK
}

func (r *reader) event(o *link.Output, t *meter.BatchStats, zxid proto.Zxid, typ proto.EventType, path string) {
	at := len(o.Buf)
	o.Buf = appendEvent(o.Buf, zxid, typ, path)
	r.events++
	t.Event(len(o.Buf) - at)
}

// appendWhoAmI appends the user of each identity, which for the superuser is empty.
func appendWhoAmI(out []byte, ids []proto.ID) []byte {
	users := slices.Clone(proto.ShownIDs(ids))
	for i := range users {
		if users[i].ID = users[i].User(); users[i].Scheme == identity.SchemeSuper {
			users[i].ID = ""
		}
	}
	return (&proto.WhoAmIResponse{IDs: users}).Append(out)
}
