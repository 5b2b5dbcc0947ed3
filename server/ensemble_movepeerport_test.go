package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// movingEnsemble is three running servers on loopback whose peer ports a reconfig can move.
type movingEnsemble struct {
	*ensemble
	admin *raw
	ports []*tcpport.Port // of the members, where they are to listen
}

func newMovingEnsemble(t *testing.T) *movingEnsemble {
	e := newEnsemble(t, 3, nil)
	e.onDisk()
	e.each(func(c *server.Config) {
		c.Tick, c.SyncLimit, c.NoSync, c.SuperDigest = 200*time.Millisecond, 150, true, superDigest()
	})
	e.startAll()
	e.awaitVoters(1, 2, 3)
	e.settle()
	m := &movingEnsemble{ensemble: e, admin: e.admin(e.leader())}
	for _, one := range e.members {
		m.ports = append(m.ports, one.peerPort)
	}
	return m
}

// moves changes the port of members, by a reconfig, and returns before they listen there.
func (m *movingEnsemble) moves(to map[int]*tcpport.Port) {
	m.t.Helper()
	var lines []string
	for id, port := range to {
		one := m.m(id)
		lines = append(lines, strings.Replace(one.line, one.peerAddress, port.Address(), 1))
		m.ports[id-1] = port
		port.Yield()
	}
	m.admin.mustReconfig(change{joining: strings.Join(lines, ",")})
	if h, _ := m.admin.call(1, proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1}); h.Err != proto.OK {
		m.t.Errorf("after %q: %v", lines, h.Err)
	}
}

// settled waits until each server listens on its port only, and is in step.
func (m *movingEnsemble) settled(when string) {
	m.t.Helper()
	for i, port := range m.ports {
		m.awaits(when+": the port of "+m.m(i+1).host()+" is "+port.Address(), func() bool { return server.PeerPorts(m.m(i+1).s) == port.Address() })
	}
	m.awaitVoters(1, 2, 3)
}

// A reconfig moves peer ports: of one server after the other, of all at once, in a ring. Clients
// stay connected. A restart with the former lines keeps the ports.
func TestReconfig_PeerPortsMove(t *testing.T) {
	m := newMovingEnsemble(t)
	for id := range 3 {
		m.moves(map[int]*tcpport.Port{id + 1: reservePort(t)})
		m.settled("one")
	}
	m.moves(map[int]*tcpport.Port{1: reservePort(t), 2: reservePort(t), 3: reservePort(t)})
	m.settled("all")
	m.moves(map[int]*tcpport.Port{1: m.ports[1], 2: m.ports[2], 3: m.ports[0]})
	m.settled("ring")
	m.moves(map[int]*tcpport.Port{1: m.m(1).peerPort}) // back where its line says
	m.settled("back")

	for id := range 3 {
		m.m(id + 1).stop()
		m.start(id + 1)
	}
	m.settled("restarted")
	for id := range 3 {
		m.m(id + 1).stop()
	}
	m.startAll()
	m.settled("restarted together")
	m.check(1, 3, "/after")
}

// A server whose new port is in use goes on at its former port, says why, and moves when the port
// is free. A member that was down while all others moved finds them, and they it.
func TestReconfig_PeerPortInUse(t *testing.T) {
	m := newMovingEnsemble(t)
	id, down := m.followers()[0], m.followers()[1]
	m.m(down).stop()
	port := reservePort(t)
	taken, err := port.Listen()
	if err != nil {
		t.Fatal(err)
	}
	leader := m.leader()
	before, leaderBefore := m.ports[id-1].Address(), m.ports[leader-1].Address()
	m.moves(map[int]*tcpport.Port{id: port, leader: reservePort(t)})
	m.awaits("the failure in the log", func() bool {
		return strings.Contains(m.said.String(), "cannot listen on the address for other servers")
	})
	if got := server.PeerPorts(m.m(id).s); got != before {
		t.Errorf("listens on %s, not on its former port %s", got, before)
	}
	m.awaits("the new port of the leader", func() bool { return strings.Contains(server.PeerPorts(m.m(leader).s), m.ports[leader-1].Address()) })
	if got := server.PeerPorts(m.m(leader).s); !strings.Contains(got, leaderBefore) {
		t.Errorf("the leader listens on %s, and no longer on %s, although member %d is down", got, leaderBefore, down)
	}
	m.start(down)
	m.awaitVoters(1, 2, 3)
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	m.settled("free")
}
