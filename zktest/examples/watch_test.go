package examples

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/zktest"
)

// The server is restarted, and what a client watches changes before that client is back. It learns
// of it when it is, and once.
func TestWatch_SurvivesARestart(t *testing.T) {
	t.Parallel()
	s := zktest.Start(t)
	s.Load(map[string]string{"/color": "green"})

	changes := make(chan zk.Event, 10)
	watcher := s.Connect(t, zk.WithEventCallback(func(e zk.Event) {
		if e.Type != zk.EventSession {
			changes <- e
		}
	}))
	data, _, changed, err := watcher.GetW("/color")
	if err != nil || string(data) != "green" {
		t.Fatalf("color %q, %v", data, err)
	}

	s.Stop()
	absent := s.DropReply(zktest.Connect, zktest.OfSession(watcher.SessionID()), zktest.Times(-1)) // keeps it from coming back
	s.Start()
	if _, err := s.Connect(t).Set("/color", []byte("red"), -1); err != nil {
		t.Fatal(err)
	}
	absent.Wait() // it has tried
	select {
	case e := <-changes:
		t.Fatalf("an event came to a client that is not connected: %v", e)
	default:
	}
	absent.Remove()

	if e := <-changed; e.Err != nil || e.Type != zk.EventNodeDataChanged || e.Path != "/color" {
		t.Fatalf("event %v", e)
	}
	if e, more := <-changed; more {
		t.Fatalf("a second event %v", e)
	}
	if data, _, err = watcher.Get("/color"); err != nil || string(data) != "red" {
		t.Fatalf("color %q, %v", data, err)
	}
}
