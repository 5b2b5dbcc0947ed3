package examples

import (
	"sync/atomic"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/zktest"
)

// The server creates the lock's znode, but the client never hears of it. A client that then simply
// creates another one waits for itself until its session ends. go-zookeeper puts a number of its
// own into the name and looks whether it is there.
func TestLock_SurvivesALostReply(t *testing.T) {
	t.Parallel()
	s := zktest.Start(t)
	s.Load(map[string]string{"/lock": ""})
	acl := zk.WorldACL(zk.PermAll)

	conn := s.Connect(t)
	lock := zk.NewLock(conn, "/lock", acl)
	lost := s.DropReply(zktest.Create, zktest.OnPath("/lock/"))
	if err := lock.Lock(); err != nil {
		t.Fatal("lock:", err)
	}
	if n := lost.Count(); n != 1 {
		t.Fatalf("%d replies were lost, want 1", n)
	}
	children, _, err := conn.Children("/lock")
	if err != nil || len(children) != 1 {
		t.Fatalf("znodes of the lock: %q, %v; want one", children, err)
	}
	s.AssertOwner("/lock/"+children[0], conn.SessionID())

	// The lock is held: another client gets it when it is released, and not before.
	var released atomic.Bool
	locked := make(chan error, 1)
	next := zk.NewLock(s.Connect(t), "/lock", acl)
	go func() {
		err := next.Lock()
		if !released.Load() {
			t.Error("two clients had the lock at the same time")
		}
		locked <- err
	}()
	s.Await("/lock", func(tree map[string]string) bool { return len(tree) == 3 }) // /lock and both contenders
	released.Store(true)
	if err := lock.Unlock(); err != nil {
		t.Fatal("unlock:", err)
	}
	if err := <-locked; err != nil {
		t.Fatal("the next lock:", err)
	}
	if err := next.Unlock(); err != nil {
		t.Fatal("the next unlock:", err)
	}
	s.AssertChildren("/lock")
}
