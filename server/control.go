package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// What an embedder may do to a server that no client can: end sessions, and let time pass.

// ErrNoSession says that there is no such session, or not any more.
var ErrNoSession = errors.New("server: no such session")

// Session describes a session as this server knows it.
type Session struct {
	ID         int64
	Timeout    time.Duration
	Connected  bool // to this server
	Ephemerals int
}

// Sessions returns the sessions of the whole ensemble, by rising id.
func (s *Server) Sessions() []Session {
	s.tree.RLock()
	sessions := make([]Session, 0, s.state.NumSessions())
	for info := range s.state.Sessions() {
		sessions = append(sessions, Session{
			ID: int64(info.ID), Timeout: time.Duration(info.TimeoutMs) * time.Millisecond, Ephemerals: info.NumEphemerals,
		})
	}
	s.tree.RUnlock()
	s.connMu.Lock()
	defer s.connMu.Unlock()
	for i := range sessions {
		sessions[i].Connected = s.bySession[proto.SessionID(sessions[i].ID)] != nil
	}
	return sessions
}

// ExpireSession ends a session as if nothing had been heard from its client for too long: its ephemerals go, its connection is
// closed without a word, and when the client comes back it is told. Any member can do it. It returns when the end is applied
// here.
func (s *Server) ExpireSession(ctx context.Context, id int64) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	for {
		s.tree.RLock()
		info, known := s.state.Session(proto.SessionID(id))
		epoch := s.state.LastZxid().Epoch()
		s.tree.RUnlock()
		if !known {
			return fmt.Errorf("%w: 0x%x", ErrNoSession, uint64(id))
		}
		code, err := s.decide(ctx, expiry(info, epoch))
		if err != nil || code == proto.OK {
			return err
		}
		// It was taken up again, or another leads now: look again.
	}
}

// MoveClock calls move, which makes Config.Now jump, while no session can expire, and then counts some sessions as heard from at that
// moment, since their clients would have sent pings in the time that was skipped: those named in connected, or, if that is
// nil, those that are connected to this server. Where several members' clocks jump, each must be told, within the move of another,
// since who leads decides for all.
func (s *Server) MoveClock(move func(), connected []int64) {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.trackMu.Lock()
	defer s.trackMu.Unlock()
	move()
	now := s.cfg.Now()
	for _, id := range connected {
		s.tracker.Touch(proto.SessionID(id), now)
	}
	if connected == nil {
		for id := range s.bySession {
			s.tracker.Touch(id, now)
		}
	}
}

// ExpireDue ends, if this server leads, the sessions whose time is over, and collects the containers and TTL znodes that are due, without
// waiting for the next tick. It returns when that is applied here.
func (s *Server) ExpireDue(ctx context.Context) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	for {
		if !s.node.Status().Leading {
			return nil
		}
		now := s.cfg.Now()
		s.touchSessions()
		infos, epoch := s.expired(now)
		due := make([]datatree.Request, 0, len(infos))
		for _, info := range infos {
			due = append(due, expiry(info, epoch))
		}
		due = append(due, s.collectable(now, s.cfg.ContainerMaxPerMinute)...)
		changed := false
		for _, r := range due {
			code, err := s.decide(ctx, r)
			if err != nil {
				return err
			}
			changed = changed || code == proto.OK
		}
		if !changed { // what goes last may leave a container empty
			return nil
		}
	}
}

// CatchUp returns when this server has applied what was committed anywhere before the call.
func (s *Server) CatchUp(ctx context.Context) error {
	if !s.accepting.Load() {
		return s.whyNot()
	}
	done := make(chan struct{})
	s.node.Read(func() { close(done) })
	select {
	case <-done:
		return nil
	case <-s.ended:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("server: not caught up yet: %w", ctx.Err())
	}
}

// decide proposes a request of the server's own and returns what became of it. With an error that is not known. look is called with the
// result, which does not last, under the tree's lock.
func (s *Server) decide(ctx context.Context, r datatree.Request, look ...func(*datatree.Result)) (proto.ErrCode, error) {
	if !s.accepting.Load() {
		return 0, s.whyNot()
	}
	done := make(chan proto.ErrCode, 1)
	s.propose(r, func(res *datatree.Result) {
		for _, f := range look {
			f(res)
		}
		done <- res.Err
	})
	select {
	case code := <-done:
		return code, nil
	case <-s.ended:
		return 0, ErrClosed
	case <-ctx.Done():
		return 0, fmt.Errorf("server: not applied yet: %w", ctx.Err())
	}
}
