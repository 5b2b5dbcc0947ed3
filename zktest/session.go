package zktest

import (
	"context"
	"time"

	"github.com/gozkd/gozkd/server"
)

// Advance lets the time d pass for sessions, TTL znodes, containers and the times of znodes, and
// returns when everything that is due is done. A connected client counts as having sent its pings;
// the session of any other client expires if its timeout is less than d. The timers of clients,
// elections and Delay run on real time.
func (s *Service) Advance(d time.Duration) {
	s.t.Helper()
	s.do(func(ctx context.Context) error { return s.cluster.Advance(ctx, d) })
}

// ExpireSession ends a session as if its client had been silent for too long. When it returns, the
// session's ephemerals are deleted and its connection is broken; the client learns of the expiry
// when it reconnects.
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
