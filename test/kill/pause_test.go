//go:build unix

package kill

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

// TestPause stops the process with SIGSTOP for longer than the sessions' timeout, while clients
// send pings that the system keeps for it. None of their sessions may expire, and a session whose
// client is gone must expire when its timeout has passed without the pause.
func TestPause(t *testing.T) {
	exhaustive.Only(t) // it takes 30 s and needs a processor for the pings
	const timeout, pauseFor, tick = 4 * time.Second, 10 * time.Second, 2 * time.Second
	s := newServer(t, build(t), "tickTime=2000")
	must(t, s.start())
	first, _, err := s.ready(t.Context())
	must(t, err)
	must(t, first.end())
	observer, err := open(t.Context(), s.addr, newSession(40*time.Second))
	must(t, err)
	dead, err := open(t.Context(), s.addr, newSession(timeout))
	must(t, err)
	_, err = dead.call(proto.OpCreate, (&proto.CreateRequest{Path: "/dead", ACL: proto.OpenACL(), Mode: proto.ModeEphemeral}).Append(nil, proto.OpCreate))
	must(t, err)
	must(t, dead.Close())
	died := time.Now()

	stop := make(chan struct{})
	var pingers sync.WaitGroup
	clients := make([]*client, 20)
	for i := range clients {
		clients[i], err = open(t.Context(), s.addr, newSession(timeout))
		must(t, err)
		pingers.Go(func() { // ended by stop, awaited below
			for last := time.Now(); ; {
				if err := clients[i].Write(rawclient.AppendRequest(nil, proto.XidPing, proto.OpPing, nil), patience); err != nil {
					t.Errorf("client %d: %v", i, err)
					return
				}
				if late := time.Since(last); late > timeout/2 {
					t.Errorf("inconclusive: the machine is too busy, client %d sent nothing for %v", i, late)
				}
				last = time.Now()
				select {
				case <-stop:
					return
				case <-time.After(500 * time.Millisecond):
				}
			}
		})
	}
	pause(time.Second)
	must(t, s.cmd.Process.Signal(syscall.SIGSTOP))
	paused := time.Now()
	pause(pauseFor)
	must(t, s.cmd.Process.Signal(syscall.SIGCONT))
	lost := time.Since(paused)
	for {
		z, err := observer.get("/dead") // also keeps the observer's session
		must(t, err)
		if lived := time.Since(died); !z.exists {
			t.Logf("a dead session lived %v, timeout %v, pause %v", lived, timeout, lost)
			break
		} else if lived > timeout+lost+3*tick {
			t.Fatalf("a dead session with a timeout of %v lives %v after a pause of %v", timeout, lived, lost)
		}
		pause(50 * time.Millisecond)
	}
	pause(timeout)
	close(stop)
	pingers.Wait()
	lostSessions := 0
	for _, c := range clients {
		again, err := open(t.Context(), s.addr, &proto.ConnectRequest{TimeoutMs: int32(timeout.Milliseconds()), SessionID: c.session, Passwd: c.passwd})
		if err != nil {
			lostSessions++
			continue
		}
		must(t, again.Close())
		must(t, c.Close())
	}
	if lostSessions > 0 {
		t.Errorf("%d of %d sessions expired, whose clients sent pings all the time", lostSessions, len(clients))
	}
	must(t, observer.end())
}
