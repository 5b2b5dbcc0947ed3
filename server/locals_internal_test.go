package server

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Clients that leave without closing their local sessions cannot fill the memory, and the count of
// such sessions follows what happens to them.
func TestLocalSessions_Idle(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, now := &s.conns.locals, time.Now()
	nc, _ := net.Pipe() // nothing reads or writes
	c := newConn(s, nc, portPlain, "client")
	for id := range proto.SessionID(maxIdleLocals) {
		if l.crowded() {
			t.Fatalf("crowded by %d", id)
		}
		if !l.add(id, &localSession{conn: c, timeoutMs: 10_000}, now) {
			t.Fatal("an id is taken")
		}
		l.release(id, c)
	}
	if !l.crowded() {
		t.Error("there is no limit")
	}
	if verdict, _ := l.claim(1, make([]byte, proto.PasswdBytes), c, 10_000, now); verdict != claimRight || l.crowded() {
		t.Errorf("%v: a session that is resumed counts", verdict)
	}
	if l.release(1, c); !l.crowded() {
		t.Error("a session that is left again does not count")
	}
	if l.remove(1); l.crowded() {
		t.Error("a session that has ended counts")
	}
	if l.expire(now.Add(time.Minute)); l.idle != 0 || l.count() != 0 {
		t.Errorf("%d of %d sessions are idle after all have expired", l.idle, l.count())
	}
}

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
	s.conns.locals.add(1, &localSession{conn: former, timeoutMs: 10_000}, now)
	if verdict, old := s.conns.locals.claim(1, make([]byte, proto.PasswdBytes), newConn(s, nc, portPlain, "client"), 10_000, now); verdict != claimRight || old != former {
		t.Fatalf("the session does not move: %v", verdict)
	}
	p, done := former.localRequest(proto.RequestHeader{Xid: 1, Op: proto.OpCloseSession}, nil, &received{now, s.meter.Batch()})
	if _, known := s.conns.locals.get(1); !known || !done || p != pauseClosed {
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
	s.conns.locals.add(1, &localSession{conn: c, timeoutMs: 10_000}, now)
	if _, ok := s.conns.locals.upgrade(1, c); !ok {
		t.Fatal("the session does not begin to upgrade")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.ExpireSession(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the session upgrades: %v", err)
	}
	if _, known := s.conns.locals.get(1); !known || c.IsClosed() {
		t.Errorf("known: %v, connection closed: %v", known, c.IsClosed())
	}
	expired := make(chan error, 1)
	go func() { expired <- s.ExpireSession(t.Context(), 1) }()
	s.conns.locals.remove(1) // as upgraded does
	s.applied.wake()
	if err := <-expired; !errors.Is(err, ErrNotStarted) { // the ensemble decides, and this server is not part of one
		t.Errorf("after the session has upgraded: %v", err)
	}
}
