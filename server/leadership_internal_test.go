package server

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/members"
)

// What the leader was told of sessions without a connection is forgotten, and so is what the leader
// itself has noted: clients that come and go leave nothing.
func TestUnattached_IsForgotten(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.conns.noteOwner(7, now)
	s.conns.noteOwner(8, now.Add(time.Second))
	s.conns.heardSince(now, now.Add(time.Second), func(proto.SessionID, time.Time) {})
	if at := s.conns.unattachedAt; len(at) != 1 || at[8].IsZero() {
		t.Errorf("after a report of all that was heard until %v, this is kept: %v", now, at)
	}
	s.sessions.touchConnected(now)
	if at := s.conns.unattachedAt; len(at) != 0 {
		t.Errorf("the leader keeps %v", at)
	}
}

// A server that loses touch with the leader while it catches up must catch up again, with what is
// committed when the contact comes back.
func TestWatch_CatchesUpAgain(t *testing.T) {
	s, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	barrier := make(chan struct{})
	for _, st := range []consensus.Status{{Leader: 2, Since: time.Now()}, {Since: time.Now()}} {
		s.leader.caughtUp = barrier
		s.leader.catchingUp.Store(true)
		s.leader.watch(st)
		if keeps := s.leader.caughtUp != nil; keeps != (st.Leader != 0) || s.leader.catchingUp.Load() != keeps {
			t.Errorf("leader %d: the barrier is kept: %v, or the server does not know", st.Leader, keeps)
		}
	}
}

// A server that was read-only lets clients in only when all connections of that time are closed.
func TestWatch_ReadOnlyEndsBeforeClientsComeBack(t *testing.T) {
	s, c := tableServer(t)
	s.leader.lost.Store(true)
	s.leader.readOnly.Store(true)
	barrier := make(chan struct{})
	close(barrier)
	s.leader.caughtUp = barrier
	c.Lock() // its end waits
	done := make(chan struct{})
	go func() { // ends when c is unlocked; awaited below
		defer close(done)
		s.leader.watch(consensus.Status{Leader: 2, Since: time.Now()})
	}()
	for s.leader.readOnly.Load() {
		runtime.Gosched()
	}
	if !s.leader.lost.Load() {
		t.Error("clients are let in while a connection of the read-only server is open")
	}
	c.Unlock()
	<-done
	if s.leader.lost.Load() || !c.IsClosed() {
		t.Errorf("clients are not let in, or the connection of the read-only server is open")
	}
}

// A report cannot say that sessions were silent in a time that has not come yet.
func TestTakeReport_TimeOfTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const member, id, timeout = 2, proto.SessionID(99), 10 * time.Second
		s := startInProcess(t, Config{})
		for _, ms := range []uint64{1, 1 << 40} {
			now := time.Now()
			b := members.AppendHeard(members.AppendState(nil, members.Digest{}), members.LeaderTime, ms)
			if err := s.leader.takeReport(member, b); err != nil {
				t.Fatal(err)
			}
			s.sessions.expiry.Attached(id, timeout, true, now.Add(-timeout/2))
			find := func(proto.SessionID) (uint8, time.Duration, bool) { return member, timeout, true }
			if over := s.sessions.expiry.Expired(now.Add(timeout*9/10), find); len(over) > 0 {
				t.Errorf("a report of time %d, which came before the timeout, ends the session", ms)
			}
			s.sessions.expiry.Remove(id)
		}
	})
}

// However rare the rounds of the collector and however few deletions a minute may have, each round
// deletes something.
func TestCollector_EachRoundDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInProcess(t, Config{ContainerInterval: time.Second, ContainerMaxPerMinute: 1})
		c := connectTo(t, s)
		for path, o := range map[string]client.CreateOptions{"/c": {Container: true}, "/d": {Container: true}} {
			if _, _, err := c.Create(t.Context(), path, nil, o); err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Create(t.Context(), path+"/x", nil, client.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), path+"/x", -1); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(5 * time.Second)
		if found := s.sessions.collectable(time.Now(), 10); len(found) > 0 {
			t.Errorf("%d containers are left after five rounds", len(found))
		}
	})
}
