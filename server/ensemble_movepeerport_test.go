package server_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// movingEnsemble is three running servers on loopback whose peer ports a reconfig can move.
type movingEnsemble struct {
	*ensemble
	admin *raw
	ports []*tcpport.Port // of the members, where they are to listen
}

func newMovingEnsemble(t *testing.T) *movingEnsemble { return newMovingEnsembleWith(t, nil) }

// newMovingEnsembleWith changes the members before they start, if adapt is not nil.
func newMovingEnsembleWith(t *testing.T, adapt func(m *ensembleMember, c *server.Config)) *movingEnsemble {
	e := newEnsemble(t, 3, nil)
	e.onDisk()
	for _, one := range e.members {
		one.adapt = func(c *server.Config) {
			c.Tick, c.SyncLimit, c.NoSync, c.SuperDigest = 200*time.Millisecond, 150, true, superDigest()
			if adapt != nil {
				adapt(one, c)
			}
		}
	}
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
	texts := make(map[int]string)
	for id, port := range to {
		texts[id] = port.Address() + ":3888"
	}
	m.movesAs(texts, to)
}

// movesAs is moves with the text that a member's line then has for its address.
func (m *movingEnsemble) movesAs(texts map[int]string, to map[int]*tcpport.Port) {
	m.t.Helper()
	var lines []string
	for id, port := range to {
		one := m.m(id)
		lines = append(lines, strings.Replace(one.line, one.peerAddress+":3888", texts[id], 1))
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
	t.Parallel()
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
	t.Parallel()
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

// A peer port moves to an address with a name, to one of IPv6, and back, with TLS and without a
// proof. Restarted with their former lines, the members find each other.
func TestReconfig_PeerPortsMoveToNames(t *testing.T) {
	t.Parallel()
	v6, err := tcpport.Reserve("[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	v6.Release()
	for _, tls := range exhaustive.Or([]bool{true}, []bool{false, true}) {
		t.Run(fmt.Sprintf("TLS %t", tls), func(t *testing.T) {
			ca := testca.New(t, "members")
			m := newMovingEnsembleWith(t, func(m *ensembleMember, c *server.Config) {
				if cert := ca.Issue(t, testca.Spec{Hosts: []string{"localhost", "127.0.0.1", "::1"}}); tls {
					c.PeerTLS = server.PeerTLS{Mode: server.PeerTLSRequired, Server: cert.Server(), Client: cert.Client}
				}
			})
			v4, v6 := reservePort(t), reservePortAt(t, "[::1]:0")
			_, number, _ := net.SplitHostPort(v4.Address())
			m.movesAs(map[int]string{1: "localhost:" + number + ":3888", 2: v6.Address() + ":3888"}, map[int]*tcpport.Port{1: v4, 2: v6})
			m.settled("named")
			for id := range 3 {
				m.m(id + 1).stop()
			}
			m.startAll()
			m.settled("restarted")
			m.admin = m.ensemble.admin(m.leader())
			m.moves(map[int]*tcpport.Port{1: m.m(1).peerPort, 2: m.m(2).peerPort})
			m.settled("back")
		})
	}
}

// A member whose former line has several addresses listens on all of them after a restart with that
// line, as long as another member may know only these.
func TestReconfig_SeveralFormerPeerPorts(t *testing.T) {
	t.Parallel()
	second := reservePort(t)
	several := false
	m := newMovingEnsembleWith(t, func(m *ensembleMember, c *server.Config) {
		second.Yield()
		if c.MultiAddress = true; several && m.id == 1 {
			c.Members = slices.Clone(c.Members)
			c.Members[0] = strings.Replace(m.line, ":3888:", ":3888|"+second.Address()+":3888:", 1)
		}
	})
	several = true
	m.m(1).stop()
	m.start(1)
	m.awaitVoters(1, 2, 3)
	m.admin = m.ensemble.admin(m.leader())
	m.moves(map[int]*tcpport.Port{1: reservePort(t)})
	m.settled("moved")
	m.m(3).stop()
	m.m(1).stop()
	m.start(1)
	for _, want := range []string{m.ports[0].Address(), m.m(1).peerAddress, second.Address()} {
		if got := server.PeerPorts(m.m(1).s); !strings.Contains(got, want) {
			t.Errorf("listens on %s, and not on %s", got, want)
		}
	}
	m.start(3)
	m.settled("all are back")
}
