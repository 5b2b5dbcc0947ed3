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

// maxSliceChanges is how many changes of the history are read under one lock. It takes less than
// 1 ms, or about 3 ms if all of them are compared with watches.
const maxSliceChanges = 8 << 10

// remember adds an event to the history. That of the parent's children follows from the others.
func (s *state) remember(e *datatree.Event) {
	switch e.Type {
	case proto.EventDeleted:
		s.history.Add(e.Zxid, e.Type, e.Path, e.ACL.Encoding())
	case proto.EventCreated, proto.EventDataChanged:
		s.history.Add(e.Zxid, e.Type, e.Path, "")
	}
}

// replay finds the events that the persistent watches of a setWatches2 missed, see
// docs/adr/0017-replay.md. It reads the history in slices: others go on between these. The caller
// of all its methods holds the lock of the tree.
type replay struct {
	state *state
	since proto.Zxid // the client knows everything up to it
	upTo  proto.Zxid // so far all changes up to it were read
	// watches are those of the request, without the mark; told are those that the connection had
	// before it. Both are under the number 0.
	watches, told *watch.Table
	prefix        string // of all paths of watches
	asked         bool   // the request has persistent watches, or the mark
	marked        bool   // the request has the mark
	failed        bool   // the missed events are not known, or too many
	events        []missedEvent
	bytes         int               // of the paths of events
	gone          map[string][]byte // the latest ACLs of znodes that were deleted
}

type replays struct {
	marked bool // a request had the mark
	missed bool // a replay could not send all missed events
}

type missedEvent struct {
	zxid proto.Zxid
	typ  proto.EventType
	path string
	acl  []byte // of a znode that was deleted
}

// newReplay returns the replay of a setWatches2. Its strings are kept.
func newReplay(s *state, conn watch.ConnID, q *proto.SetWatchesRequest) *replay {
	since := q.RelativeZxid
	r := &replay{state: s, since: since, upTo: since, watches: watch.New(), told: watch.New(), gone: make(map[string][]byte)}
	if len(q.Persistent)+len(q.PersistentRecursive) > 0 {
		s.watches.OfConn(conn, func(path string, k watch.Kind) bool {
			r.told.Add(0, path, k&(watch.Persistent|watch.PersistentRecursive))
			return true
		})
	}
	for _, path := range q.Persistent {
		r.add(path, watch.Persistent)
	}
	for _, path := range q.PersistentRecursive {
		r.add(path, watch.PersistentRecursive)
	}
	return r
}

func (r *replay) add(path string, kind watch.Kind) {
	r.asked = true
	switch {
	case path == proto.ReplayMark:
		r.marked = true
		return
	case r.watches.Empty():
		r.prefix = strings.Clone(path)
	}
	r.watches.Add(0, path, kind)
	for !strings.HasPrefix(path, r.prefix) {
		r.prefix = r.prefix[:len(r.prefix)-1]
	}
}

// slice reads a part of the history, and reports whether it was the last one: then the events up to
// now are known, or failed is set.
func (r *replay) slice() (done bool) {
	if !r.asked || r.failed {
		return true
	}
	if !r.state.history.Covers(r.upTo) || r.since > r.state.tree.LastZxid() {
		r.fail()
		return true
	}
	done = true
	n, one := 0, make([]watch.ConnID, 0, 1)
	r.state.history.After(r.upTo, func(c watch.Change) bool {
		if n++; n > maxSliceChanges && c.Zxid > r.upTo { // a transaction is read as a whole
			done = false
			return false
		}
		r.upTo = c.Zxid
		if r.watches.Empty() || len(c.Path) < len(r.prefix) || string(c.Path[:len(r.prefix)]) != r.prefix {
			return true
		}
		path := string(c.Path)
		r.note(one, missedEvent{c.Zxid, c.Type, path, slices.Clone(c.ACL)})
		if c.Type != proto.EventDataChanged {
			r.note(one, missedEvent{c.Zxid, proto.EventChildrenChanged, proto.ParentPath(path), nil})
		}
		return len(r.events) <= maxReplayed && r.bytes <= maxReplayedBytes
	})
	if len(r.events) > maxReplayed || r.bytes > maxReplayedBytes {
		r.fail()
	}
	return done
}

// fail gives up, and the memory too.
func (r *replay) fail() { r.failed, r.events, r.gone, r.bytes = true, nil, nil, 0 }

// held is about how many bytes the events take.
func (r *replay) held() int { return r.bytes + 64*len(r.events) }

// note notes an event if a watch of the request missed it.
func (r *replay) note(one []watch.ConnID, e missedEvent) {
	if len(r.watches.Match(one, e.typ, e.path)) == 0 {
		return
	}
	if e.typ == proto.EventDeleted {
		r.gone[e.path] = e.acl
	}
	if len(r.told.Match(one, e.typ, e.path)) == 0 {
		r.events = append(r.events, e)
		r.bytes += len(e.path)
	}
}

// finish returns the events that a client may see, after the last slice and under the same lock. It
// returns false and no events if these are not known, or too many.
func (r *replay) finish(who datatree.Caller) (events []missedEvent, ok bool) {
	may := func(acl []byte) bool { return r.state.tree.Readable(datatree.DecodeACL(acl), who) }
	hidden := r.failed // or: the client saw a deletion, and may not see the path any longer
	events = slices.DeleteFunc(r.events, func(e missedEvent) bool {
		readable, exists := r.state.tree.ReadableNow(e.path, who)
		if acl, known := r.gone[e.path]; !exists && known {
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

// send appends the events, and the answer to those who ask whether these are all.
func (r *replay) send(o *link.Output, t *meter.BatchStats, client *reader) {
	if !r.asked {
		return
	}
	events, ok := r.finish(client.Caller)
	for _, e := range events {
		client.event(o, t, e.zxid, e.typ, e.path)
		client.meter.Count(meter.EventsReplayed)
	}
	all := client.replays
	all.marked, all.missed = all.marked || r.marked, all.missed || !ok
	if !ok {
		client.meter.Count(meter.ReplaysMissed)
	}
	switch {
	case r.marked && !all.missed:
		client.event(o, t, r.state.tree.LastZxid(), proto.EventDataChanged, proto.ReplayMark)
	case r.marked, !ok && all.marked:
		client.event(o, t, r.state.tree.LastZxid(), proto.EventDeleted, proto.ReplayMark)
	}
}
