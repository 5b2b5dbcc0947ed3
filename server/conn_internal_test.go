package server

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/link"
)

// tableServer returns a server that was not started, with a connection in its table.
func tableServer(t *testing.T) (*Server, *conn) {
	t.Helper()
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, ours := memnet.Pipe("client", "server")
	c := newConn(s, ours, portPlain, "client")
	c.id = 1
	s.conns.byID[c.id] = c
	s.conns.perAddr[c.addr] = 1
	return s, c
}

// A connection must not leave the table, without which it gets no events, before its output has
// ended.
func TestForget_OutputEndsFirst(t *testing.T) {
	s, c := tableServer(t)
	c.Lock()
	done := make(chan struct{})
	go func() { // ends when c is unlocked; awaited below
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
	c.Unlock()
	<-done
	s.life.Goroutines.Wait()
	if s.conns.get(c.id) != nil || !c.IsClosed() {
		t.Error("the connection is not forgotten")
	}
}

// A connection that was closed while its client's session was being attached keeps nothing of the
// session.
func TestForget_ClosedDuringAttach(t *testing.T) {
	s, c := tableServer(t)
	c.Close()
	s.conns.bind(7, c) // Apply, which then finds c closed and does not set c.session
	s.forget(c, true)
	s.life.Goroutines.Wait()
	if s.conns.ofSession(7) != nil {
		t.Error("the session still has the connection")
	}
}

// Nothing is kept of a session that its client has ended, as would be of one that lives on.
func TestForget_EndedByItsClient(t *testing.T) {
	s, c := tableServer(t)
	c.NoteHeard(time.Now().Add(time.Second))
	s.conns.bind(7, c)
	newApplier(s).noteSession(&datatree.Request{Op: proto.OpCloseSession, Session: 7}, &datatree.Result{},
		&clientWrite{clientRequest: clientRequest{conn: c}}, time.Now())
	if c.IsClosed() {
		t.Error("the connection is closed before the reply")
	}
	s.forget(c, true)
	s.life.Goroutines.Wait()
	s.conns.heardSince(time.Time{}, time.Now(), func(id proto.SessionID, _ time.Time) { t.Errorf("session %v is kept", id) })
}

// A client's claim of its session is newer than what its previous connection heard, and counts,
// also if that connection closes afterwards, before the leader was told of the claim.
func TestForget_AfterAClaim(t *testing.T) {
	s, c := tableServer(t)
	began := time.Now()
	heard, claimed := began.Add(time.Second), began.Add(3*time.Second)
	c.NoteHeard(heard)
	s.conns.bind(7, c)
	s.conns.noteOwner(7, claimed)
	s.forget(c, true)
	s.life.Goroutines.Wait()
	s.conns.heardSince(began, time.Now(), func(id proto.SessionID, at time.Time) {
		if id != 7 || !at.Equal(claimed) {
			t.Errorf("session %v was heard at %v, want 7 at %v", id, at, claimed)
		}
	})
}

// If there are many connections, few of them are handled at the same time, so that few hold buffers
// for replies while they wait for locks. Otherwise none waits for its turn.
func TestBurst_FewAtATime(t *testing.T) {
	s, _ := tableServer(t)
	for _, many := range []bool{true, false} {
		s.conns.links.SetCount(map[bool]int{true: math.MaxInt32}[many])
		s.state.Lock()
		var bursts sync.WaitGroup
		var begun atomic.Int32
		for range 2 * maxBursts {
			_, ours := memnet.Pipe("client", "server")
			c := newConn(s, ours, portPlain, "client")
			bursts.Go(func() {
				begun.Add(1)
				if p, err := c.burst(new(link.Input), time.Now(), false); p != pauseInput || err != nil {
					t.Errorf("no input: %v, %v", p, err)
				}
			})
		}
		for begun.Load() < 2*maxBursts || many && len(s.conns.turns.bursts) < maxBursts {
			runtime.Gosched()
		}
		if n := len(s.conns.turns.bursts); !many && n > 0 {
			t.Errorf("%d connections of few have turns", n)
		}
		s.state.Unlock()
		bursts.Wait()
		if n := len(s.conns.turns.bursts); n > 0 {
			t.Errorf("%d turns do not end", n)
		}
	}
}
