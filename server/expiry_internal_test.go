package server

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// A client that asks for its session again is alive, even if the answer takes long. Nobody without
// the password keeps a session alive.
func TestHeardOwner(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	body := datatree.CreateSessionBody{TimeoutMs: 4000, Passwd: [proto.PasswdBytes]byte{1, 2, 3}}
	res, _ := s.tree.Apply(datatree.Header{Zxid: 1}, &datatree.Request{Op: proto.OpCreateSession, Body: body.Append(nil)})
	id, start := res.SessionID, time.Unix(1_000_000_000, 0)
	s.expiry.tracker.Add(id, 4*time.Second, start)
	heard := func() (at time.Time) {
		s.conns.heardSince(start, func(_ proto.SessionID, heard time.Time) { at = heard })
		return at
	}
	wrong := [proto.PasswdBytes]byte{1, 2, 4}
	s.heardOwner(id, wrong[:], start.Add(time.Second))
	s.heardOwner(id+1, body.Passwd[:], start.Add(time.Second))
	if at := heard(); !at.IsZero() || !s.expiry.tracker.Silent(id, start.Add(4*time.Second)) {
		t.Errorf("heard at %v from a client without the password", at)
	}
	s.heardOwner(id, body.Passwd[:], start.Add(time.Second))
	if at := heard(); !at.Equal(start.Add(time.Second)) || s.expiry.tracker.Silent(id, start.Add(4*time.Second)) {
		t.Errorf("the owner was heard at %v, want a second after the start", at)
	}
}
