package server

import (
	"slices"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// read appends the reply to a read op to c.Out. The caller holds the tree's lock, and c is locked.
// body may be a network buffer, and is not kept. read returns false if it did only a part of the
// work: after the locks were released, it must be called again with the same request.
func (s *Server) read(c *conn, t *meter.BatchStats, op proto.OpCode, xid int32, body []byte, ids []proto.ID) bool {
	o := &c.Out
	switch op {
	case proto.OpPing:
		o.Buf = appendStatus(o.Buf, proto.XidPing, s.state.tree.LastZxid(), proto.OK)
		return true
	case proto.OpMultiRead:
		if c.queue.partial == nil {
			c.queue.partial = newPartialRead(body)
		}
		if !c.queue.partial.slice(c, xid, c.caller(ids)) {
			return false
		}
	}
	zxid := s.state.tree.LastZxid()
	d := jute.NewDecoder(body)
	d.AliasStrings()
	start := o.Mark()
	o.Buf, _ = beginReply(o.Buf, xid, zxid, proto.OK)
	code := s.readBody(c, t, op, &d, ids)
	if s.trail.On() {
		c.server.trail.ReadBody(c, op, xid, body, ids, code)
	}
	switch {
	case op == proto.OpSetWatches || op == proto.OpSetWatches2:
		// The events of setWatches come before its reply: move the empty frame of the reply to
		// their end.
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

// readBody and readPath take the identities and not the Caller, so that all arguments are passed in
// registers: nearly all requests are reads.
func (s *Server) readBody(c *conn, t *meter.BatchStats, op proto.OpCode, d *jute.Decoder, ids []proto.ID) (code proto.ErrCode) {
	o := &c.Out
	switch op {
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		return s.readPath(c, t, op, d, ids)
	case proto.OpGetACL:
		path := d.RequiredString()
		if d.Err() != nil {
			return proto.ErrMarshallingError
		}
		acl, st, code := s.state.tree.GetACL(path, c.caller(ids))
		if code == proto.OK {
			at := len(o.Buf)
			o.Buf = (&proto.ACLResponse{ACL: acl, Stat: st}).Append(o.Buf)
			t.Read(path, len(o.Buf)-at)
		}
		return code
	case proto.OpGetAllChildrenNumber:
		path := d.RequiredString()
		if d.Err() != nil {
			return proto.ErrMarshallingError
		}
		n, code := s.state.tree.AllChildrenNumber(path, c.caller(ids))
		o.Buf = jute.AppendInt(o.Buf, n)
		return code
	case proto.OpGetEphemerals:
		prefix := d.NullString()
		if d.Err() != nil {
			return proto.ErrMarshallingError
		}
		paths := s.state.tree.Ephemerals(c.session, prefix)
		if paths == nil {
			paths = []string{}
		}
		o.Buf = jute.AppendStrings(o.Buf, paths)
	case proto.OpWhoAmI:
		o.Buf = appendWhoAmI(o.Buf, ids)
	case proto.OpMultiRead:
		r := c.queue.partial
		c.queue.partial = nil
		o.AppendOutput(r.out)
		return r.code
	case proto.OpSetWatches, proto.OpSetWatches2:
		o.Buf, code = s.setWatches(c, t, o.Buf, op, d)
		return code
	case proto.OpAddWatch:
		o.Buf, code = s.addWatch(c, o.Buf, d)
		return code
	case proto.OpCheckWatches, proto.OpRemoveWatches:
		return s.checkOrRemoveWatches(c, op, d)
	default:
		return proto.ErrUnimplemented
	}
	return proto.OK
}

// readPath handles exists, getData and both getChildren.
func (s *Server) readPath(c *conn, t *meter.BatchStats, op proto.OpCode, d *jute.Decoder, ids []proto.ID) (code proto.ErrCode) {
	var r proto.PathWatchRequest
	r.Decode(d)
	if d.Err() != nil {
		return proto.ErrMarshallingError
	}
	o, kind := &c.Out, watch.Data
	at := o.Len()
	switch op {
	case proto.OpExists:
		if strings.IndexByte(r.Path, 0) >= 0 {
			return proto.ErrBadArguments
		}
		var st proto.Stat
		if st, code = s.state.tree.Exists(r.Path, c.caller(ids)); code == proto.OK {
			o.Buf = st.Append(o.Buf)
		}
		if r.Watch && code == proto.ErrNoNode {
			s.state.watches.Add(c.id, r.Path, kind)
		}
	case proto.OpGetData:
		var data []byte
		var st proto.Stat
		who := datatree.Caller{IDs: ids, SkipACL: c.skipACL, Known: &c.known} // c.caller would copy it
		if data, code = s.state.tree.ReadData(r.Path, &who, &st); code == proto.OK {
			o.AppendData(data)
			o.Buf = st.Append(o.Buf)
		}
	default:
		kind = watch.Child
		var st proto.Stat
		if o.Buf, st, code = s.state.tree.AppendChildren(o.Buf, r.Path, c.caller(ids)); code == proto.OK && op == proto.OpGetChildren2 {
			o.Buf = st.Append(o.Buf)
		}
	}
	if r.Watch && code == proto.OK {
		s.state.watches.Add(c.id, r.Path, kind)
	}
	if code == proto.OK {
		t.Read(r.Path, o.Len()-at)
	}
	return code
}

func (s *Server) addWatch(c *conn, out []byte, d *jute.Decoder) ([]byte, proto.ErrCode) {
	var r proto.AddWatchRequest
	r.Decode(d)
	kind := watch.Persistent
	switch {
	case d.Err() != nil:
		return out, proto.ErrMarshallingError
	case r.Mode == proto.AddWatchPersistentRecursive:
		kind = watch.PersistentRecursive
	case r.Mode != proto.AddWatchPersistent:
		return out, proto.ErrMarshallingError
	}
	s.state.watches.Add(c.id, r.Path, kind)
	return jute.AppendInt(out, 0), proto.OK
}

func (s *Server) checkOrRemoveWatches(c *conn, op proto.OpCode, d *jute.Decoder) proto.ErrCode {
	var r proto.WatchesRequest
	r.Decode(d)
	if d.Err() != nil || !r.Type.Valid() {
		return proto.ErrMarshallingError
	}
	found := false
	if op == proto.OpCheckWatches {
		found = s.state.watches.Has(c.id, r.Path, r.Type)
	} else {
		found = s.state.watches.Remove(c.id, r.Path, r.Type)
	}
	if !found {
		return proto.ErrNoWatcher
	}
	return proto.OK
}

// setWatches sets the watches of a client that reconnected, and appends an event for each watch
// that should have fired in the meantime. As in ZooKeeper, no ACL is checked and no path is
// validated, and a null vector or path fails the request only when it is reached: the watches
// before it stay set. Persistent watches may have a null path.
func (s *Server) setWatches(c *conn, t *meter.BatchStats, out []byte, op proto.OpCode, d *jute.Decoder) ([]byte, proto.ErrCode) {
	var r proto.SetWatchesRequest
	syntax := *d
	if r.Decode(&syntax, op); syntax.Err() != nil {
		return out, proto.ErrMarshallingError
	}
	relative := proto.Zxid(d.Long())
	event := func(typ proto.EventType, path string) {
		at := len(out)
		out = appendEvent(out, proto.NoZxid, typ, path)
		c.stats.Sent++
		t.Event(len(out) - at)
	}
	const data, exist, child = 0, 1, 2 // the lists before those of persistent watches
	kinds := []watch.Kind{watch.Data, watch.Data, watch.Child, watch.Persistent, watch.PersistentRecursive}
	if op == proto.OpSetWatches {
		kinds = kinds[:child+1]
	}
	for list, kind := range kinds {
		n := d.Count(4)
		if n < 0 {
			return out, proto.ErrMarshallingError
		}
		for range n {
			path := d.NullString()
			if path == nil {
				if list <= child {
					return out, proto.ErrMarshallingError
				}
				path = new(string) // as in addWatch
			}
			switch mzxid, pzxid, exists := s.state.tree.Lookup(*path); {
			case list == exist && exists:
				event(proto.EventCreated, *path)
			case (list == data || list == child) && !exists:
				event(proto.EventDeleted, *path)
			case list == data && mzxid > relative:
				event(proto.EventDataChanged, *path)
			case list == child && pzxid > relative:
				event(proto.EventChildrenChanged, *path)
			default:
				s.state.watches.Add(c.id, *path, kind)
			}
		}
	}
	return out, proto.OK
}

// appendWhoAmI appends the user of each identity, which for the superuser is empty.
func appendWhoAmI(out []byte, ids []proto.ID) []byte {
	users := slices.Clone(ShownIDs(ids))
	for i := range users {
		if users[i].ID = users[i].User(); users[i].Scheme == superID.Scheme {
			users[i].ID = ""
		}
	}
	return (&proto.WhoAmIResponse{IDs: users}).Append(out)
}
