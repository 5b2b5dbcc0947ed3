package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/server"
)

// MemberOf returns the member that a session is connected to, or an error if it is not connected.
func (c *Cluster) MemberOf(session int64) (*Member, error) {
	for _, m := range c.members {
		if gate := m.run.Load().gate; gate != nil && slices.Contains(gate.Sessions(), session) {
			return m, nil
		}
	}
	if !c.knows(session) {
		return nil, errorf(ErrNotFound, "cluster: there is no session 0x%x (%s)", uint64(session), c.states())
	}
	return nil, errorf(ErrState, "cluster: session 0x%x is not connected to any member (%s)", uint64(session), c.states())
}

func (c *Cluster) knows(session int64) bool {
	return slices.ContainsFunc(c.running(), func(m *Member) bool {
		s := m.Server()
		return s != nil && slices.ContainsFunc(s.Facts().Sessions(), func(known server.Session) bool { return known.ID == session })
	})
}

// ExpireSession ends a session as if its client had been silent for too long. It returns when all
// serving members have applied the expiry.
func (c *Cluster) ExpireSession(ctx context.Context, id int64) error {
	again := false
	return c.change(ctx, func(ctx context.Context, s *server.Server) error {
		err := s.ExpireSession(ctx, id)
		if again && errors.Is(err, server.ErrNoSession) {
			return nil // the previous leader expired the session
		}
		again = true
		return err
	})
}

// CloseConnection breaks the connection of one client. Its session lives on.
func (c *Cluster) CloseConnection(session int64) error {
	m, err := c.MemberOf(session)
	if err != nil {
		return err
	}
	if gate := m.run.Load().gate; gate == nil || !gate.CloseConn(session) {
		return errorf(ErrState, "cluster: session 0x%x is no longer connected", uint64(session))
	}
	return nil
}

// Advance lets the time d pass for sessions, TTL znodes, containers and the times of znodes. It
// returns when all serving members have applied everything that is due. A client counts as having
// sent its pings during d if it is connected to a member that the leader reaches, otherwise as
// silent. Timers of clients, elections and Delay run on real time. If the leader changes meanwhile,
// every session gets its full timeout again, as after every election.
func (c *Cluster) Advance(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return errorf(ErrInvalid, "cluster: time goes forward, so not by %v", d)
	}
	c.advancing.lock()
	defer c.advancing.unlock()
	if _, err := c.Leader(ctx); err != nil {
		return err
	}
	c.moveClocks(func() []int64 {
		connected := c.connected()
		c.offset.Add(int64(d))
		return connected
	})
	if err := c.settle(ctx); err != nil {
		return err
	}
	c.moveClocks(c.connected) // clients whose handshake was in progress before are connected now
	return c.change(ctx, func(ctx context.Context, s *server.Server) error { return s.ExpireDue(ctx) })
}

// moveClocks calls move while no member can expire a session, and touches the sessions that move
// returns at all members.
func (c *Cluster) moveClocks(move func() []int64) {
	c.jumping.Lock()
	defer c.jumping.Unlock()
	for _, m := range c.running() {
		if s := m.Server(); s != nil {
			within := move
			move = func() (connected []int64) {
				s.MoveClock(func() []int64 {
					connected = within()
					return connected
				})
				return connected
			}
		}
	}
	move()
}

// connected returns the sessions whose clients are connected to a member that the leader reaches.
func (c *Cluster) connected() []int64 {
	ids := []int64{} // MoveClock treats nil differently
	for _, m := range c.majority() {
		if gate := m.run.Load().gate; gate != nil {
			ids = append(ids, gate.Sessions()...)
		}
	}
	return ids
}

// settle returns when all serving members have applied everything committed before the call.
func (c *Cluster) settle(ctx context.Context) error {
	for _, m := range c.majority() {
		if s := m.Server(); s != nil {
			err := s.CatchUp(ctx)
			// The goroutine that starts the member waits for it.
			notServing := errors.Is(err, server.ErrClosed) || errors.Is(err, server.ErrNotStarted)
			if err != nil && !notServing && m.State() == Running {
				return fmt.Errorf("cluster: %s: %w", m.Name(), classify(err))
			}
		}
	}
	return nil
}

// Sessions returns the sessions of all clients.
func (c *Cluster) Sessions(ctx context.Context) (sessions []server.Session, err error) {
	err = c.atLeader(ctx, func(ctx context.Context, s *server.Server) error {
		err := s.CatchUp(ctx)
		sessions = s.Facts().Sessions()
		return err
	})
	for i := range sessions {
		_, at := c.MemberOf(sessions[i].ID)
		sessions[i].Connected = at == nil
	}
	return sessions, err
}

// Answers reports whether the member that a session is connected to can serve.
func (c *Cluster) Answers(session int64) bool {
	m, err := c.MemberOf(session)
	return err == nil && slices.Contains(c.majority(), m)
}
