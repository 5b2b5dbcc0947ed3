package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

// What an embedder may do to a server that no client can: end sessions, and let time pass.

// ErrNoSession says that there is no such session, or not any more.
var ErrNoSession = errors.New("server: no such session")

// ErrNotLeading says that only the leader can do that, and this server is not, or no longer.
var ErrNotLeading = errors.New("server: it does not lead")

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
// moment, since their clients would have sent pings in the time that was skipped: those that move returns, or, if that is
// nil, those that are connected to this server. Where several members' clocks jump, each must be told, within the move of another,
// since who leads decides for all.
func (s *Server) MoveClock(move func() (connected []int64)) {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	s.trackMu.Lock()
	defer s.trackMu.Unlock()
	if s.accepting.Load() {
		s.takeLead() // else it would give everybody a full timeout behind the jump
	}
	connected := move()
	now := s.cfg.Now()
	s.jumped = now
	for _, id := range connected {
		s.tracker.Touch(proto.SessionID(id), now)
	}
	if connected == nil {
		for id := range s.bySession {
			s.tracker.Touch(id, now)
		}
	}
}

// ExpireDue ends the sessions whose time is over, and collects the containers and TTL znodes that are due. It does not wait for a tick,
// nor for the end of one as sessions do else. It returns when all that is applied here, or ErrNotLeading.
func (s *Server) ExpireDue(ctx context.Context) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	for {
		if !s.node.Status().Leading {
			return ErrNotLeading
		}
		now := s.cfg.Now()
		s.touchSessions()
		// Also those that a tick has found already: that they are closed is not applied yet.
		infos, epoch := s.expired(func() []proto.SessionID { return s.tracker.Due(now) })
		due := make([]datatree.Request, 0, len(infos))
		for _, info := range infos {
			due = append(due, expiry(info, epoch))
		}
		due = append(due, s.collectable(now, s.live.Load().ContainerMaxPerMinute)...)
		changed, err := s.decideAll(ctx, due)
		if err != nil || !changed { // what goes last may leave a container empty
			return err
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
func (s *Server) decide(ctx context.Context, r datatree.Request, look ...func(*datatree.Result)) (code proto.ErrCode, err error) {
	err = s.proposeAll(ctx, []datatree.Request{r}, func(res *datatree.Result) {
		code = res.Err
		for _, f := range look {
			f(res)
		}
	})
	return code, err
}

// decideAll proposes several, and reports whether any of them changed something, or may have.
func (s *Server) decideAll(ctx context.Context, requests []datatree.Request) (changed bool, err error) {
	err = s.proposeAll(ctx, requests, func(res *datatree.Result) { changed = changed || res.Err == proto.OK || res.Err == errUnknownOutcome })
	return changed, err
}

// proposeAll proposes requests one behind the other, and returns when look was called with all their results. With an error it was not,
// and will not be called any more.
func (s *Server) proposeAll(ctx context.Context, requests []datatree.Request, look func(*datatree.Result)) error {
	switch {
	case !s.accepting.Load():
		return s.whyNot()
	case len(requests) == 0:
		return nil
	}
	var mu sync.Mutex // guards the rest, and what look does
	left, over := len(requests), make(chan struct{})
	for _, r := range requests {
		s.propose(r, func(res *datatree.Result) {
			mu.Lock()
			defer mu.Unlock()
			if left == 0 { // given up
				return
			}
			look(res)
			if left--; left == 0 {
				close(over)
			}
		})
	}
	giveUp := func(err error) error {
		mu.Lock()
		defer mu.Unlock()
		left = 0
		return err
	}
	select {
	case <-over:
		return nil
	case <-s.ended:
		return giveUp(ErrClosed)
	case <-ctx.Done():
		return giveUp(fmt.Errorf("server: not applied yet: %w", ctx.Err()))
	}
}
