package datatree_test

import (
	"bytes"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

// saved is a snapshot of the tree and the model at the same moment.
type saved struct {
	bytes []byte
	model *model
}

// snapshot keeps the last three.
func (s *machine) snapshot(*rapid.T) {
	s.saved = append(s.saved, saved{s.tree.Snapshot(), s.model.clone()})
	s.saved = s.saved[max(0, len(s.saved)-3):]
}

// rewind puts back one of the snapshots, or tries what must be refused.
func (s *machine) rewind(t *rapid.T) {
	if len(s.saved) == 0 {
		t.Skip("nothing to rewind to")
	}
	to := rapid.SampledFrom(s.saved).Draw(t, "to")
	switch rapid.IntRange(0, 7).Draw(t, "refused") {
	case 0: // a client's
		s.request(t, s.conn(t), proto.OpRewind, to.bytes, func(env) outcome { return outcome{err: proto.ErrUnimplemented} })
		return
	case 1:
		body := bytes.Clone(to.bytes)
		body[rapid.IntRange(0, len(body)-1).Draw(t, "spoilt")]++
		s.apply(t, s.header(t), &datatree.Request{Op: proto.OpRewind, Body: body}, outcome{err: proto.ErrMarshallingError})
		return
	}
	h := s.header(t)
	req := &datatree.Request{Op: proto.OpRewind, Body: to.bytes, MaxBuffer: 1, Flags: datatree.FlagEnforceQuota}
	s.apply(t, h, req, outcome{events: s.model.rewind(h.Zxid, to.model)})
	s.compareAll(t)
}

// rewind makes the znodes those of then, and returns what watches were promised: what goes is told with the ACL it had, all else
// with that which the znode has in the end.
func (m *model) rewind(zxid proto.Zxid, then *model) []modelEvent {
	before, after := m.nodes, then.clone().nodes
	maps.DeleteFunc(after, func(path string, n *modelNode) bool {
		_, lives := m.sessions[n.owner]
		return below(path, "/zookeeper/config") || n.kind == ephemeral && !lives
	})
	for path, n := range before {
		if below(path, "/zookeeper/config") {
			after[path] = n
		}
	}
	stays := func(path string) bool {
		return before[path] != nil && after[path] != nil && before[path].czxid == after[path].czxid
	}
	m.nodes, m.rewound = after, zxid

	var events []modelEvent
	told := make(map[string]bool)
	tell := func(typ proto.EventType, path string, from map[string]*modelNode) {
		parent := parentOf(path)
		parentACL := from[parent].acl
		if stays(parent) {
			parentACL = after[parent].acl
		}
		events = append(events, modelEvent{typ, path, from[path].acl}, modelEvent{proto.EventChildrenChanged, parent, parentACL})
		told[parent] = true
	}
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(before))) {
		if !stays(path) {
			tell(proto.EventDeleted, path, before)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if !stays(path) {
			tell(proto.EventCreated, path, after)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		was, is := before[path], after[path]
		if !stays(path) {
			continue
		}
		// The data differ alone only where the server wrote them, in the stats of a quota.
		if was.mzxid != is.mzxid || string(was.data) != string(is.data) {
			events = append(events, modelEvent{proto.EventDataChanged, path, is.acl})
		}
		if was.pzxid != is.pzxid && !told[path] {
			events = append(events, modelEvent{proto.EventChildrenChanged, path, is.acl})
		}
	}
	m.recount()
	return events
}
