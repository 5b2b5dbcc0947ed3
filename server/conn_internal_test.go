package server

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/proto"
)

// A step of the wall clock must not expire sessions: the times that the tracker gets have a
// monotonic reading.
func TestHeard_Monotonic(t *testing.T) {
	c := &conn{server: &Server{startedWall: time.Now()}}
	now := c.server.startedWall.Add(time.Minute)
	c.noteHeard(now)
	if heard := c.heard(); !heard.Equal(now) || !strings.Contains(heard.String(), " m=") {
		t.Errorf("heard at %v, want %v with its monotonic reading", heard, now)
	}
}

// tableServer returns a server that was not started, with a connection in its table.
func tableServer(t *testing.T) (*Server, *conn) {
	t.Helper()
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, ours := memnet.Pipe("client", "server")
	c := &conn{server: s, id: 1, transport: transport{nc: ours}}
	c.room.L = &c.mu
	s.conns.byID[c.id] = c
	s.conns.perAddr[c.addr] = 1
	return s, c
}

// A connection must not leave the table, without which it gets no events, before its output has
// ended.
func TestForget_OutputEndsFirst(t *testing.T) {
	s, c := tableServer(t)
	c.mu.Lock()
	done := make(chan struct{})
	go func() { // ends when c.mu is free; awaited below
		defer close(done)
		s.forget(c, true)
	}()
	for range 10_000 {
		if s.conns.get(c.id) == nil {
			t.Error("the table has lost the connection, which may still send replies")
			break
		}
		runtime.Gosched()
	}
	c.mu.Unlock()
	<-done
	s.life.goroutines.Wait()
	if s.conns.get(c.id) != nil || !c.isClosed() {
		t.Error("the connection is not forgotten")
	}
}

// A connection that was closed while its client's session was being attached keeps nothing of the
// session.
func TestForget_ClosedDuringAttach(t *testing.T) {
	s, c := tableServer(t)
	c.close()
	s.conns.bind(7, c) // Apply, which then finds c closed and does not set c.session
	s.forget(c, true)
	s.life.goroutines.Wait()
	if s.conns.ofSession(7) != nil {
		t.Error("the session still has the connection")
	}
}

// A client's claim of its session is newer than what its previous connection heard, and counts,
// also if that connection closes afterwards, before the leader was told of the claim.
func TestForget_AfterAClaim(t *testing.T) {
	s, c := tableServer(t)
	s.startedWall = time.Unix(1_000_000_000, 0)
	heard, claimed := s.startedWall.Add(time.Second), s.startedWall.Add(3*time.Second)
	c.noteHeard(heard)
	s.conns.bind(7, c)
	s.conns.noteOwner(7, claimed)
	s.forget(c, true)
	s.life.goroutines.Wait()
	s.conns.heardSince(s.startedWall, func(id proto.SessionID, at time.Time) {
		if id != 7 || !at.Equal(claimed) {
			t.Errorf("session %v was heard at %v, want 7 at %v", id, at, claimed)
		}
	})
}
