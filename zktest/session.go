package zktest

import (
	"context"
	"time"

	"github.com/gozkd/gozkd/server"
)

// Advance lets time pass: d is over at once for sessions, TTL znodes, containers, and the times that znodes are given. A
// client that is connected counts as having sent its pings meanwhile; the session of one that is not ends if its timeout is
// less than d. Everything that is due is done when it returns. The timers of clients, elections and Delay go on by real time.
func (s *Service) Advance(d time.Duration) {
	s.t.Helper()
	s.do(func(ctx context.Context) error { return s.cluster.Advance(ctx, d) })
}

// ExpireSession ends a session as if its client had been silent for too long: its ephemerals are gone when it returns, its connection
// breaks, and the client learns of it when it comes back.
func (s *Service) ExpireSession(id int64) {
	s.t.Helper()
	s.do(func(ctx context.Context) error { return s.cluster.ExpireSession(ctx, id) })
}

// CloseConnection breaks the connection of one client. Its session lives on.
func (s *Service) CloseConnection(session int64) {
	s.t.Helper()
	s.must(s.cluster.CloseConnection(session))
}

// CloseConnections breaks the connections of all clients. Their sessions live on.
func (s *Service) CloseConnections() {
	s.t.Helper()
	for _, m := range s.cluster.Members() {
		if m.Server() != nil {
			s.must(m.CloseConnections())
		}
	}
}

// Sessions returns the sessions of all clients.
func (s *Service) Sessions() (sessions []server.Session) {
	s.t.Helper()
	s.do(func(ctx context.Context) (err error) {
		sessions, err = s.cluster.Sessions(ctx)
		return err
	})
	return sessions
}
