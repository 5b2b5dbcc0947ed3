package server_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A server that hears the leader but is not heard by it cannot write, and its reads become stale:
// it closes its connections like a server that hears nobody.
func TestEnsemble_OneWay(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		victim := e.followers()[0]
		c, other := e.connect(victim, time.Hour), e.connect(e.leader(), time.Hour)
		e.m(victim).mute(true)
		if took := c.closedIn(time.Minute); took < 4500*time.Millisecond || took > 7*time.Second {
			t.Errorf("the client of a server that nobody hears was kept for %v", took)
		}
		late := e.dial(victim)
		late.send((&proto.ConnectRequest{TimeoutMs: 30_000, Passwd: make([]byte, proto.PasswdBytes)}).Append(nil))
		if late.recv() != nil {
			t.Error("it accepts new clients")
		}
		e.m(victim).mute(false)
		time.Sleep(5 * time.Second)
		e.check(victim, e.leader(), "/back")
		other.sync()
	})
}
