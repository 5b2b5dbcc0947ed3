package server_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/server"
)

// A leader or follower whose state differs stops, and does not start again with that state. The
// others go on.
func TestEnsemble_Divergence(t *testing.T) {
	for _, disk := range []bool{false, true} {
		for _, who := range []string{"leader", "follower"} {
			withNumbers(t, 3, func(t *testing.T, e *ensemble) {
				if disk {
					e.onDisk()
				}
				e.startAll()
				e.settle()
				id := e.leader()
				if who == "follower" {
					id = e.followers()[0]
				}
				c, other := e.connect(id, time.Hour), e.connect(e.but(id)[0], time.Hour)
				other.call(1, 1, create{path: "/x"})
				server.Corrupt(e.m(id).s)
				for i := range 100 { // digests are compared now and then
					other.set("/x", i)
				}
				if took := c.closedIn(time.Minute); took > 3*time.Second {
					t.Errorf("%s: a server with another state served for %v", who, took)
				}
				select {
				case err := <-e.m(id).s.Err():
					if !errors.Is(err, server.ErrDiverged) {
						t.Errorf("%s: %v", who, err)
					}
				case <-time.After(time.Minute):
					t.Errorf("%s: no error", who)
				}
				// Even before it is closed, it takes no part in decisions.
				time.Sleep(time.Second)
				for _, m := range e.but(id) {
					if st := server.StatusOf(e.m(m).s); st.Leader == uint64(id) || st.Leader == 0 {
						t.Errorf("%s: member %d follows member %d", who, m, st.Leader)
					} else if st.Leading && slices.ContainsFunc(st.Peers, func(p consensus.PeerStatus) bool { return p.ID == uint64(id) && p.Active }) {
						t.Errorf("%s: the server with another state still takes part", who)
					}
				}
				e.m(id).stop()
				if disk {
					served := e.m(id).begin(e.lines())
					if err := served(); !errors.Is(err, server.ErrDiverged) {
						t.Errorf("%s: started again: %v", who, err)
					}
					e.m(id).stop()
					e.m(id).dir = t.TempDir()
				}
				e.leader()
				other.ping()
				e.start(id)
				e.awaitVoters(e.ids()...)
				e.check(id, e.but(id)[0], "/y")
			})
		}
	}
}
