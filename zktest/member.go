package zktest

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/server"
)

// Member is one server, through all its lives: its address and its data stay.
type Member struct {
	service *Service
	m       *cluster.Member
}

func (s *Service) member(id int) *Member {
	s.t.Helper()
	m, err := s.cluster.Member(id)
	s.must(err)
	return &Member{s, m}
}

// ID returns the member's number, from 1.
func (m *Member) ID() int { return m.m.ID() }

// Address returns host:port for clients.
func (m *Member) Address() string { return m.m.Address() }

// Dir returns the data directory, or "" without OnDisk.
func (m *Member) Dir() string { return m.m.Dir() }

// Server returns the server of the present life, or nil if the member is down.
func (m *Member) Server() *server.Server { return m.m.Server() }

// ConnectTo returns a client like that of Connect which knows no other member.
func (m *Member) ConnectTo(t testing.TB, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	return m.service.connect(t, DefaultSessionTimeout, []string{m.Address()}, options)
}

// Stop closes the server in an orderly way. Its clients lose their connections, and a leader hands over before.
func (m *Member) Stop() {
	m.service.t.Helper()
	m.service.must(m.m.Stop())
}

// Start starts it again, with the same port and the same data. When it returns, the server serves, unless too few members run for
// any of them to serve.
func (m *Member) Start() {
	m.service.t.Helper()
	m.service.do(m.m.Start)
}

// Restart is Stop, if it runs, and Start.
func (m *Member) Restart() {
	m.service.t.Helper()
	m.service.do(m.m.Restart)
}

// Kill ends the server as kill -9 does: connections break in the middle of things, and nobody is told. What it had
// acknowledged is there when it is started again.
func (m *Member) Kill() {
	m.service.t.Helper()
	m.service.must(m.m.Kill())
}

// Pause makes the server stand still, as a long stop of a garbage collector does: its connections stay, nobody is answered, and the
// other members take it for dead. Resume lets it go on.
func (m *Member) Pause() {
	m.service.t.Helper()
	m.service.must(m.m.Pause())
}

// Resume lets a paused server go on where it was.
func (m *Member) Resume() {
	m.service.t.Helper()
	m.service.must(m.m.Resume())
}

// Partition cuts the server off from its clients and from all other members: what is sent does not arrive, and no
// connection breaks.
func (m *Member) Partition() {
	m.service.t.Helper()
	m.service.must(m.m.Partition())
}

// Heal takes Partition back: what was sent meanwhile arrives.
func (m *Member) Heal() {
	m.service.t.Helper()
	m.service.must(m.m.Heal())
}

// Disconnect breaks the connections of all its clients. Their sessions live on.
func (m *Member) Disconnect() {
	m.service.t.Helper()
	m.service.must(m.m.CloseConnections())
}

// Member returns the one with that number, from 1.
func (e *Ensemble) Member(id int) *Member {
	e.t.Helper()
	return e.member(id)
}

// Members returns all members.
func (e *Ensemble) Members() (members []*Member) {
	for _, m := range e.cluster.Members() {
		members = append(members, &Member{e.Service, m})
	}
	return members
}

// Leader waits until one member leads, and returns it.
func (e *Ensemble) Leader() *Member {
	e.t.Helper()
	var leader *cluster.Member
	e.do(func(ctx context.Context) (err error) {
		leader, err = e.cluster.Leader(ctx)
		return err
	})
	return &Member{e.Service, leader}
}

// Followers waits until one member leads, and returns the others, those that are down too.
func (e *Ensemble) Followers() (followers []*Member) {
	e.t.Helper()
	leader := e.Leader().ID()
	for _, m := range e.Members() {
		if m.ID() != leader {
			followers = append(followers, m)
		}
	}
	return followers
}

// MemberOf waits until a client is connected, and returns the member that it is connected to.
func (e *Ensemble) MemberOf(conn interface{ SessionID() int64 }) *Member {
	e.t.Helper()
	var member *cluster.Member
	e.eventually(func() (err error) {
		member, err = e.cluster.MemberOf(conn.SessionID())
		return err
	})
	return &Member{e.Service, member}
}

// Partition cuts the links between members of different groups; those that are in none form one more. Clients reach all members
// as before. It replaces an earlier Partition of the ensemble.
func (e *Ensemble) Partition(groups ...[]int) {
	e.t.Helper()
	e.must(e.cluster.Partition(groups...))
}

// Heal mends all links, those of Member.Partition too.
func (e *Ensemble) Heal() { e.cluster.Heal() }

// eventually waits until f returns no error, and fails the test with the last one.
func (s *Service) eventually(f func() error) {
	s.t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	late := time.NewTimer(waitTimeout)
	defer late.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-late.C:
			s.t.Fatalf("zktest: after %v still: %v", waitTimeout, err)
		}
	}
}

// State is how a member is.
type State = cluster.MemberState

// The states of a member.
const (
	Running = cluster.Running
	Paused  = cluster.Paused
	Down    = cluster.Down // stopped or killed
)

// State returns how the member is.
func (m *Member) State() State { return m.m.State() }
