package server

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/bounds"
)

// gone is a client that waits for nothing.
type gone struct{ bounds.Sender }

func (gone) Host() string { return "" }
func (gone) Gone() bool   { return true }

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
		w := &clientWrite{clientRequest: clientRequest{conn: c, req: multi}, place: s.writes.Long.Take(len(multi.Body), gone{}, time.Millisecond)}
		if w.place == nil || !s.writes.Enter(w.place, bounds.IsBig(multi.Op, w.bytes()), time.Millisecond) || !s.writes.Try(w.bytes()) {
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
