package server

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/liveness"
)

// A connection that has lost its session to another one does not end the session.
func TestLocalSessions_ClosedByAFormerConnection(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	nc, _ := net.Pipe() // nothing reads or writes
	former := newConn(s, nc, portPlain, "client")
	former.session, former.local = 1, true
	s.conns.locals.Add(1, liveness.Local[*conn]{Conn: former, TimeoutMs: 10_000}, now)
	if verdict, old := s.conns.locals.Claim(1, make([]byte, proto.PasswdBytes), newConn(s, nc, portPlain, "client"), 10_000, now); verdict != liveness.Right || old != former {
		t.Fatalf("the session does not move: %v", verdict)
	}
	p, done := former.localRequest(&received{
		RequestHeader: proto.RequestHeader{Xid: 1, Op: proto.OpCloseSession}, now: now, stats: s.meter.Batch(),
	})
	if _, known := s.conns.locals.Get(1); !known || !done || p != pauseClosed {
		t.Errorf("session known: %v; done %v, pause %v", known, done, p)
	}
}

// A session that is becoming global is not ended as a local session: the request that makes it
// global would bring it back.
func TestLocalSessions_ExpiredWhileUpgrading(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	nc, _ := net.Pipe() // nothing reads or writes
	c := newConn(s, nc, portPlain, "client")
	s.conns.locals.Add(1, liveness.Local[*conn]{Conn: c, TimeoutMs: 10_000}, now)
	if _, ok := s.conns.locals.Upgrade(1, c); !ok {
		t.Fatal("the session does not begin to upgrade")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.ExpireSession(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the session upgrades: %v", err)
	}
	if _, known := s.conns.locals.Get(1); !known || c.IsClosed() {
		t.Errorf("known: %v, connection closed: %v", known, c.IsClosed())
	}
	expired := make(chan error, 1)
	go func() { expired <- s.ExpireSession(t.Context(), 1) }()
	s.conns.locals.Upgraded(1, false) // as upgraded does
	s.state.wake()
	if err := <-expired; !errors.Is(err, ErrNotStarted) { // the ensemble decides, and this server is not part of one
		t.Errorf("after the session has upgraded: %v", err)
	}
}
