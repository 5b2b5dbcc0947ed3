package server

import (
	"slices"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// These bound the events that a setWatches2 sends again.
const (
	maxReplayed      = 10_000
	maxReplayedBytes = 1 << 20 // of their paths
)

// remember adds an event to the history. That of the parent's children follows from the others.
func (s *state) remember(e *datatree.Event) {
	switch e.Type {
	case proto.EventDeleted:
		s.history.Add(e.Zxid, e.Type, e.Path, e.ACL.Encoding())
	case proto.EventCreated, proto.EventDataChanged:
		s.history.Add(e.Zxid, e.Type, e.Path, "")
	}
}

// replay sends the events that the persistent watches of a setWatches2 missed, see
// docs/adr/0017-replay.md. The caller of all its methods holds the lock of the tree.
type replay struct {
	state  *state
	client *reader
	// watches are those of the request, without the mark; told are those that the connection had
	// before it. Both are under the number 0. nil: there was no persistent watch in the request.
	watches, told *watch.Table
	prefix        string // of all paths of watches
	marked        bool   // the request has the mark
}

// replays is what a connection has to know of the replays of its requests.
type replays struct {
	marked bool // a request had the mark
	missed bool // one could not send what was missed
}

// missedEvent is an event to send.
type missedEvent struct {
	zxid proto.Zxid
	typ  proto.EventType
	path string
	acl  []byte // of a znode that was deleted
}

// add adds a persistent watch of the request before the connection has it. It returns false for the
// mark, which is no watch.
func (r *replay) add(path string, kind watch.Kind) bool {
	if r.told == nil {
		r.watches, r.told = watch.New(), watch.New()
		r.state.watches.OfConn(r.client.conn, func(path string, k watch.Kind) bool {
			r.told.Add(0, path, k&(watch.Persistent|watch.PersistentRecursive))
			return true
		})
	}
	switch {
	case path == proto.ReplayMark:
		r.marked = true
		return false
	case r.watches.Empty():
		r.prefix = strings.Clone(path)
	}
	r.watches.Add(0, path, kind)
	for !strings.HasPrefix(path, r.prefix) {
		r.prefix = r.prefix[:len(r.prefix)-1]
	}
	return true
}

// send appends the events since a zxid, and the answer to those who ask whether these are all.
func (r *replay) send(o *link.Output, t *meter.BatchStats, since proto.Zxid) {
	if r.told == nil {
		return
	}
	events, ok := r.collect(since)
	for _, e := range events {
		r.client.event(o, t, e.zxid, e.typ, e.path)
		r.client.meter.Count(meter.EventsReplayed)
	}
	all := r.client.replays
	all.marked, all.missed = all.marked || r.marked, all.missed || !ok
	if !ok {
		r.client.meter.Count(meter.ReplaysMissed)
	}
	switch {
	case r.marked && !all.missed:
		r.client.event(o, t, r.state.tree.LastZxid(), proto.EventDataChanged, proto.ReplayMark)
	case r.marked, !ok && all.marked:
		r.client.event(o, t, r.state.tree.LastZxid(), proto.EventDeleted, proto.ReplayMark)
	}
}

// collect returns the events since a zxid that the client may see. It returns false and no events
// if these are not known, or too many.
func (r *replay) collect(since proto.Zxid) (events []missedEvent, ok bool) {
	if !r.state.history.Covers(since) || since > r.state.tree.LastZxid() {
		return nil, false
	}
	gone := make(map[string][]byte) // the latest ACLs of znodes that were deleted
	bytes, one := 0, make([]watch.ConnID, 0, 1)
	add := func(zxid proto.Zxid, typ proto.EventType, path string, acl []byte) {
		if len(r.watches.Match(one, typ, path)) == 0 {
			return
		}
		if typ == proto.EventDeleted {
			gone[path] = acl
		}
		if len(r.told.Match(one, typ, path)) == 0 {
			events = append(events, missedEvent{zxid, typ, path, acl})
			bytes += len(path)
		}
	}
	r.state.history.After(since, func(c watch.Change) bool {
		if r.watches.Empty() || len(c.Path) < len(r.prefix) || string(c.Path[:len(r.prefix)]) != r.prefix {
			return true
		}
		path := string(c.Path)
		add(c.Zxid, c.Type, path, c.ACL)
		if c.Type != proto.EventDataChanged {
			add(c.Zxid, proto.EventChildrenChanged, proto.ParentPath(path), nil)
		}
		return len(events) <= maxReplayed && bytes <= maxReplayedBytes
	})
	if len(events) > maxReplayed || bytes > maxReplayedBytes {
		return nil, false
	}
	may := func(acl []byte) bool { return r.state.tree.Readable(datatree.DecodeACL(acl), r.client.Caller) }
	hidden := false // the client saw a deletion, and may not see the path any longer
	events = slices.DeleteFunc(events, func(e missedEvent) bool {
		readable, exists := r.state.tree.ReadableNow(e.path, r.client.Caller)
		if acl, known := gone[e.path]; !exists && known {
			readable = may(acl)
		}
		hidden = hidden || !readable && e.typ == proto.EventDeleted && may(e.acl)
		return !readable
	})
	if hidden {
		return nil, false
	}
	return events, true
}
