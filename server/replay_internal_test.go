package server

import (
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/watch"
)

// A state that was received, or is about to be, has no history: nobody may get the events of a part
// of the changes.
func TestState_HistoryGoesWithTheState(t *testing.T) {
	var s state
	s.init(&Config{Logger: hclog.NewNullLogger(), WatchReplay: 1 << 20}, func() bool { return true })
	change := func(zxid proto.Zxid) {
		s.remember(&datatree.Event{Type: proto.EventCreated, Path: "/a", Zxid: zxid})
	}
	change(1)
	if !s.history.Covers(0) {
		t.Fatal("a new state knows everything")
	}
	received := datatree.New(datatree.Options{})
	received.SetLastZxid(10)
	s.install(received, func() {})
	change(11)
	if s.history.Covers(9) || !s.history.Covers(10) {
		t.Errorf("after a state of zxid 10: covers 9: %t, 10: %t", s.history.Covers(9), s.history.Covers(10))
	}
	s.drop()
	kept := 0
	s.history.After(0, func(watch.Change) bool { kept++; return true })
	s.unlockDropped()
	if kept != 0 {
		t.Errorf("a state that was dropped keeps %d changes", kept)
	}
}

// A client that was away while the leader changed gets what the new leader changed first: the
// counters of zxids begin anew.
func TestReplay_OfANewLeader(t *testing.T) {
	var s state
	s.init(&Config{Logger: hclog.NewNullLogger(), WatchReplay: 1 << 20}, func() bool { return true })
	known, first := proto.Zxid(1<<32|50), proto.Zxid(2<<32|1)
	for _, zxid := range []proto.Zxid{known, first} {
		s.remember(&datatree.Event{Type: proto.EventCreated, Path: "/a/" + zxid.String(), Zxid: zxid})
	}
	s.tree.SetLastZxid(first)
	r := newReplay(&s, 0, &proto.SetWatchesRequest{RelativeZxid: known, PersistentRecursive: []string{"/a"}})
	if !r.slice() || r.failed || len(r.events) != 1 || r.events[0].zxid != first {
		t.Errorf("the events are %+v (failed: %v), want one of %v", r.events, r.failed, first)
	}
}
