package zktest

import (
	"context"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/server"
)

// Member is a server, across restarts. Its address and data stay the same.
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

// Server returns the running server, or nil if the member is down.
func (m *Member) Server() *server.Server { return m.m.Server() }

// ConnectTo is like Connect, but the client knows this member only.
func (m *Member) ConnectTo(t testing.TB, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	return m.service.connect(t, DefaultSessionTimeout, []string{m.Address()}, m.service.Dialer(), options)
}

// Stop closes the server: a leader hands over its lead first, then clients lose their connections.
func (m *Member) Stop() {
	m.service.t.Helper()
	m.service.must(m.m.Stop())
}

// Start starts the server again, with the same port and data. It returns when the server serves, or
// at once if too few members run for a quorum.
func (m *Member) Start() {
	m.service.t.Helper()
	m.service.do(m.m.Start)
}

// Restart stops the server if it runs, and starts it.
func (m *Member) Restart() {
	m.service.t.Helper()
	m.service.do(m.m.Restart)
}

// Kill ends the server like kill -9: connections break without notice. Data that the server
// acknowledged is there after the next Start.
func (m *Member) Kill() {
	m.service.t.Helper()
	m.service.must(m.m.Kill())
}

// Pause stops the server like a long garbage collection: connections stay open, nothing is
// answered, and the other members take it for dead. Resume continues it.
func (m *Member) Pause() {
	m.service.t.Helper()
	m.service.must(m.m.Pause())
}

// Resume continues a paused server.
func (m *Member) Resume() {
	m.service.t.Helper()
	m.service.must(m.m.Resume())
}

// Partition cuts the server off from its clients and all other members: nothing arrives, and no
// connection breaks.
func (m *Member) Partition() {
	m.service.t.Helper()
	m.service.must(m.m.Partition())
}

// Heal ends Partition. What was sent meanwhile arrives.
func (m *Member) Heal() {
	m.service.t.Helper()
	m.service.must(m.m.Heal())
}

// Disconnect breaks the connections of all clients of the server. Their sessions live on.
func (m *Member) Disconnect() {
	m.service.t.Helper()
	m.service.must(m.m.CloseConnections())
}

// Member returns the member with that number, from 1.
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

// Leader waits until a member leads and returns that member.
func (e *Ensemble) Leader() *Member {
	e.t.Helper()
	var leader *cluster.Member
	e.do(func(ctx context.Context) (err error) {
		leader, err = e.cluster.Leader(ctx)
		return err
	})
	return &Member{e.Service, leader}
}

// Followers waits until a member leads and returns the others, including those that are down.
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

// MemberOf waits until a client is connected and returns the member that serves the client.
func (e *Ensemble) MemberOf(conn interface{ SessionID() int64 }) *Member {
	e.t.Helper()
	var member *cluster.Member
	e.eventually(func() (err error) {
		member, err = e.cluster.MemberOf(conn.SessionID())
		return err
	})
	return &Member{e.Service, member}
}

// Partition cuts the links between members of different groups; members in no group form another
// group. Clients still reach all members. A new Partition replaces the previous partition.
func (e *Ensemble) Partition(groups ...[]int) {
	e.t.Helper()
	e.must(e.cluster.Partition(groups...))
}

// Heal restores all links, including those cut by Member.Partition.
func (e *Ensemble) Heal() { e.cluster.Heal() }

// eventually waits until f returns nil. It fails the test with the last error.
func (s *Service) eventually(f func() error) {
	s.t.Helper()
	ctx, cancel := s.context()
	defer cancel()
	for {
		err := f()
		if err == nil {
			return
		}
		if !backoff.Sleep(ctx, 2*time.Millisecond) {
			s.t.Fatalf("zktest: gave up after %v: %v", waitTimeout, err)
		}
	}
}

// State is the state of a member.
type State string

// The states of a member.
const (
	Running State = "running"
	Paused  State = "paused"
	Down    State = "down" // stopped or killed
)

// State returns the state of the member.
func (m *Member) State() State { return State(m.m.State()) }
