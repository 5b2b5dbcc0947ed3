package lab

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/server"
)

// MemberOf returns the member that a session is connected to, or an error if it is connected to none.
func (l *Lab) MemberOf(session int64) (*Member, error) {
	for _, m := range l.members {
		if gate := m.now.Load().gate; gate != nil && slices.Contains(gate.Sessions(), session) {
			return m, nil
		}
	}
	if !l.knows(session) {
		return nil, kindf(ErrNotFound, "lab: there is no session 0x%x (%s)", uint64(session), l.states())
	}
	return nil, kindf(ErrState, "lab: session 0x%x is not connected to any member (%s)", uint64(session), l.states())
}

// knows reports whether any member knows of a session.
func (l *Lab) knows(session int64) bool {
	for _, m := range l.living() {
		if s := m.Server(); s != nil && slices.ContainsFunc(s.Sessions(), func(known server.Session) bool { return known.ID == session }) {
			return true
		}
	}
	return false
}

// ExpireSession ends a session as if its client had been silent for too long, and returns when all members that serve have applied
// that.
func (l *Lab) ExpireSession(ctx context.Context, id int64) error {
	m, err := l.Leader(ctx)
	if err != nil {
		return err
	}
	s := m.Server()
	if s == nil {
		return kindf(ErrState, "lab: %s, which led, is %s", m.name(), m.State())
	}
	if err := s.ExpireSession(ctx, id); err != nil {
		return ofServer(err)
	}
	return l.settle(ctx)
}

// CloseConnection breaks the connection of one client. Its session lives on.
func (l *Lab) CloseConnection(session int64) error {
	m, err := l.MemberOf(session)
	if err != nil {
		return err
	}
	if gate := m.now.Load().gate; gate == nil || !gate.CloseConn(session) {
		return kindf(ErrState, "lab: session 0x%x is not connected any more", uint64(session))
	}
	return nil
}

// Advance lets time pass: d is over at once for sessions, TTL znodes and containers, and for the times that znodes are given. A
// client that is connected counts as having sent its pings. It is away for the whole of d if it is not connected, or not
// to a member that the leader hears. Timers of clients, elections and Delay count real time. It returns when all that is
// due by then is applied at all members that serve.
func (l *Lab) Advance(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return kindf(ErrInvalid, "lab: time goes forward, so not by %v", d)
	}
	l.moves.Lock()
	defer l.moves.Unlock()
	leader, err := l.Leader(ctx)
	if err != nil {
		return err
	}
	connected := []int64{}
	for _, m := range l.majority() {
		if gate := m.now.Load().gate; gate != nil {
			connected = append(connected, gate.Sessions()...)
		}
	}
	move := func() { l.skipped.add(d) }
	for _, m := range l.living() {
		if s := m.Server(); s != nil {
			within := move
			move = func() { s.MoveClock(within, connected) }
		}
	}
	move()
	s := leader.Server()
	if s == nil {
		return kindf(ErrState, "lab: %s, which led, is %s", leader.name(), leader.State())
	}
	if err := s.ExpireDue(ctx); err != nil {
		return ofServer(err)
	}
	return l.settle(ctx)
}

// settle returns when all members that serve have applied what was committed before.
func (l *Lab) settle(ctx context.Context) error {
	for _, m := range l.majority() {
		if s := m.Server(); s != nil {
			if err := s.CatchUp(ctx); err != nil && m.State() == Running {
				return fmt.Errorf("lab: %s: %w", m.name(), ofServer(err))
			}
		}
	}
	return nil
}

// serving returns a server that has applied what was committed before.
func (l *Lab) serving(ctx context.Context) (*server.Server, error) {
	m, err := l.Leader(ctx)
	if err != nil {
		return nil, err
	}
	s := m.Server()
	if s == nil {
		return nil, kindf(ErrState, "lab: %s is %s", m.name(), m.State())
	}
	return s, ofServer(s.CatchUp(ctx))
}

// Sessions returns the sessions of all clients. Which of them are connected, and where, MemberOf tells.
func (l *Lab) Sessions(ctx context.Context) ([]server.Session, error) {
	s, err := l.serving(ctx)
	if err != nil {
		return nil, err
	}
	sessions := s.Sessions()
	for i := range sessions {
		_, err := l.MemberOf(sessions[i].ID)
		sessions[i].Connected = err == nil
	}
	return sessions, nil
}
