package server

import (
	"testing"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// A request that consensus lost, because a checkpoint has its effect, counts for no bound any more,
// and whoever waits for it is told.
func TestLost_IsNotUnderWay(t *testing.T) {
	s, err := New(Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	a, c := &applier{s: s}, new(conn)
	multi := datatree.Request{Op: proto.OpMulti, Body: make([]byte, 100<<10)}
	for range 10 { // more than may be under way
		w := &clientWrite{clientRequest: clientRequest{conn: c, req: multi}}
		if !w.big() || !s.writes.RoomForBig() || !s.writes.Try(w.bytes(), true) {
			t.Fatal("no room for a multi after others were lost")
		}
		a.lost(w)
		attach := &attachRequest{clientRequest: clientRequest{conn: c, req: datatree.Request{Op: proto.OpCreateSession}}, passwd: make([]byte, proto.PasswdBytes)}
		s.writes.Take(attach.bytes())
		a.lost(attach)
	}
	if n := s.writes.Outstanding(); n != 0 {
		t.Errorf("%d writes are under way after all were lost", n)
	}
	told := proto.OK
	a.lost(&serverWrite{applied: func(res *datatree.Result) { told = res.Err }})
	if told != errUnknownOutcome {
		t.Errorf("the server was told %v about its own request", told)
	}
}
