package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// wantClients checks that a member takes clients, or refuses them.
func (e *ensemble) wantClients(id int, taken bool) {
	e.t.Helper()
	if answered := e.dial(id).connectSilently(); answered != taken {
		e.t.Errorf("member %d takes clients: %v", id, answered)
	}
}

// With LeaderWithoutClients, clients are served by the members that do not lead, also when the
// leadership moves. Four-letter words are answered by all, so that the leader can be watched.
func TestEnsemble_LeaderWithoutClients(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.each(func(c *server.Config) { c.LeaderWithoutClients = true })
		e.startAll()
		first := e.leader()
		e.wantClients(first, false)
		if srvr, isro := e.word(first, "srvr"), e.word(first, "isro"); !strings.Contains(srvr, "Mode: leader") || isro != "null" {
			t.Errorf("the leader answers srvr by %q and isro by %q", srvr, isro)
		}
		clients := make(map[int]*raw)
		for _, id := range e.followers() {
			e.wantClients(id, true)
			clients[id] = e.connect(id, time.Minute)
			if isro := e.word(id, "isro"); isro != "rw" {
				t.Errorf("follower %d answers isro by %q", id, isro)
			}
		}
		e.m(first).kill()
		next := e.leader()
		if took := clients[next].closedIn(time.Minute); took > time.Second {
			t.Errorf("the new leader closed its client's connection after %v", took)
		}
		e.wantClients(next, false)
		for _, id := range e.followers() {
			if id != first {
				clients[id].ping()
				clients[next].move(e, id).ping()
			}
		}
		e.start(first)
		e.wantClients(first, true)
	})
}

// A server without other members serves its clients: there is nobody else. When it gets another
// member, it leaves clients to that.
func TestEnsemble_LeaderWithoutClientsAlone(t *testing.T) {
	withEnsemble(t, 1, func(t *testing.T, e *ensemble) {
		without := func(c *server.Config) {
			c.SuperDigest, c.LeaderWithoutClients, c.OneVoter = superDigest(), true, true
		}
		e.each(without)
		e.startAll()
		e.settle()
		e.connect(1, time.Minute).ping()
		observer := e.newMember(2)
		observer.adapt, observer.line = without, strings.Replace(observer.line, "participant", "observer", 1)
		e.members = append(e.members, observer)
		served := observer.begin(e.lines())
		admin := e.admin(1)
		admin.request(7, proto.OpReconfig, change{joining: observer.line})
		admin.closedIn(time.Minute)
		if err := served(); err != nil {
			t.Fatal(err)
		}
		e.wantClients(1, false)
		e.wantClients(2, true)
	})
}
