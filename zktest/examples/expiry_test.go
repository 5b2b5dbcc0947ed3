package examples

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/zktest"
)

// A worker is there as long as its session is. On real time the servers' clock is moved: a client
// that is connected keeps its session, whatever is skipped, and one that is not loses it when its
// timeout is over.
func TestExpiry_Advance(t *testing.T) {
	t.Parallel()
	s := zktest.Start(t)
	worker := s.ConnectTimeout(t, 30*time.Second)
	session := worker.SessionID()
	if _, err := worker.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Hour)
	s.AssertOwner("/worker", session)

	s.Partition() // the worker does not reach the server any more
	s.Advance(15 * time.Second)
	s.AssertOwner("/worker", session)
	s.Advance(20 * time.Second)
	s.AssertMissing("/worker")

	// It learns of it when it is back, and has a new session then.
	s.Heal()
	for {
		_, err := worker.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if err == nil {
			break
		}
		if errors.Is(err, zk.ErrNodeExists) {
			t.Fatal("the znode of the session that has ended is still there")
		}
	}
	if worker.SessionID() == session {
		t.Errorf("session 0x%x has come back", session)
	}
	s.AssertOwner("/worker", worker.SessionID())
}

// In a bubble time passes for servers and clients alike, while everybody waits: a minute takes no
// time at all.
func TestExpiry_Bubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		worker, other := s.ConnectTimeout(t, 30*time.Second), s.ConnectTimeout(t, 10*time.Minute)
		if _, err := worker.Create("/worker", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		_, _, gone, err := other.ExistsW("/worker")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute) // both send their pings
		s.AssertOwner("/worker", worker.SessionID())

		begin := time.Now()
		s.Partition() // nobody reaches the server
		time.Sleep(time.Minute)
		s.Heal()
		if e := <-gone; e.Type != zk.EventNodeDeleted {
			t.Fatalf("event %v", e)
		}
		s.AssertMissing("/worker")
		if took := time.Since(begin); took > 2*time.Minute {
			t.Errorf("noticed after %v", took)
		}
	})
}
