package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
)

// An embedding program can do some things to a server that no client can: end sessions, let time
// pass, and close connections.

// Errors of these methods.
var (
	// ErrNoSession means that the session does not exist, or does not exist any more.
	ErrNoSession = errors.New("server: no such session")
	// ErrNotLeading means that only the leader can do that, and this server is not the leader, or
	// no longer.
	ErrNotLeading = errors.New("server: not the leader")
)

// ExpireSession ends a session as if its client had not been heard from for too long: its
// ephemerals are deleted, its connection is closed without a reply, and a client that reconnects
// learns that the session has expired. ExpireSession may be called on any member, and returns when
// the end is applied there.
func (s *Server) ExpireSession(ctx context.Context, id int64) error {
	if ended, err := s.expireLocalSession(ctx, proto.SessionID(id)); ended || err != nil {
		return err
	}
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	for {
		info, known, epoch := s.state.session(proto.SessionID(id))
		if !known {
			return fmt.Errorf("%w: 0x%x", ErrNoSession, uint64(id))
		}
		code, err := s.decide(ctx, expiryRequest(info, epoch))
		if err != nil || code == proto.OK {
			return err
		}
		// The session was re-attached, or another server leads now: try again.
	}
}

// expireLocalSession ends a local session of this server, and reports whether there was one. A
// session that is upgrading is waited for: it will be global, and the request that makes it so
// would bring it back.
func (s *Server) expireLocalSession(ctx context.Context, id proto.SessionID) (ended bool, err error) {
	what := fmt.Sprintf("session %v becomes a global one, and has not ended", id)
	err = s.state.await(ctx, &s.life, what, func() bool {
		c, known, upgrading := s.conns.locals.Remove(id)
		if ended = known && !upgrading; ended {
			s.endLocal(id, c)
		}
		return !upgrading
	})
	return ended, err
}

// MoveClock calls move, which makes Config.Now jump, while no session can expire. Afterwards some
// sessions count as heard from at that moment, because their clients would have sent pings in the
// skipped time: the sessions that move returns, or, if move returns nil, the sessions connected to
// this server. If the clocks of several members jump, MoveClock must be called on each, every call
// within the move of another, because the leader decides for all.
func (s *Server) MoveClock(move func() (connected []int64)) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	if s.life.Accepting.Load() {
		s.takeLead() // otherwise the lead would be taken after the jump, with a full timeout for every session
	}
	s.conns.locals.Jump(func() (now time.Time, connected []int64) {
		connected, now = move(), s.cfg.Now()
		s.expiry.Jumped(now)
		for _, id := range connected {
			s.expiry.Touch(proto.SessionID(id), now)
		}
		if connected == nil {
			for id := range s.conns.bySession {
				s.expiry.Touch(id, now)
			}
		}
		return now, connected
	})
}

// ExpireDue ends the sessions whose timeout is over, and collects the containers and TTL znodes
// that are due. Unlike the regular expiry, ExpireDue waits neither for a tick nor for the end of a
// tick. It returns when these changes are applied on this server, or ErrNotLeading.
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
		// This includes sessions that a tick has found already: their end may not be applied yet.
		infos, epoch := s.choose(func() []proto.SessionID { return s.expiry.Due(now) })
		due := make([]datatree.Request, 0, len(infos))
		for _, info := range infos {
			due = append(due, expiryRequest(info, epoch))
		}
		due = append(due, s.collectable(now, s.live.Load().ContainerMaxPerMinute)...)
		changed := false
		err := s.proposeAll(ctx, due, func(res *datatree.Result) {
			changed = changed || res.Err == proto.OK || res.Err == errUnknownOutcome
		})
		if err != nil || !changed { // a change may have emptied a container
			return err
		}
	}
}

// CatchUp returns when this server has applied everything that was committed anywhere before the
// call.
func (s *Server) CatchUp(ctx context.Context) error {
	if !s.life.Accepting.Load() {
		return s.life.WhyNot()
	}
	done := make(chan struct{})
	s.node.Read(func() { close(done) })
	return s.life.Await(ctx, done, "not caught up yet")
}

// HandOver makes another member the leader, the voter to, which is a MemberStatus.ID, or, if to is
// 0, any. It must be called on the leader, otherwise it returns ErrNotLeading. It returns the new
// leader when this server knows it, or an error if no voter could take over: none that is connected
// has everything that is applied here. Clients notice nothing, except that writes wait for the
// moment.
func (s *Server) HandOver(ctx context.Context, to int) (leader int, err error) {
	switch {
	case !s.life.Accepting.Load():
		return 0, s.life.WhyNot()
	case !s.node.Status().Leading || s.alone():
		return 0, ErrNotLeading
	}
	s.node.HandOver(ctx, uint64(to))
	var st consensus.Status
	err = s.state.await(ctx, &s.life, "leadership is not handed over yet", func() bool {
		st = s.node.Status()
		return st.Leading && ctx.Err() == nil || st.Leader != 0 && !st.Leading
	})
	switch {
	case err != nil:
		return 0, err
	case st.Leading:
		return 0, errors.New("server: this server still leads: no other voter that is connected and up to date " +
			"can take over now; try again when all members are in step")
	}
	s.cfg.Logger.Info("leadership was handed over, as asked", "leader", memberid.Number(st.Leader))
	return int(st.Leader), nil
}

// ShedConnections closes some of the clients' connections, so that the clients move to other
// servers, and returns how many: percent of them, rounded up, chosen at random. percent is bounded
// to 0 to 100. Sessions live on. ShedConnections does not wait until the clients have left, and
// does not keep them from reconnecting to this server.
//
// Source: ZooKeeper's admin command shed_connections, which is new in 3.10.
func (s *Server) ShedConnections(percent int) int {
	conns := s.conns.all()
	n := (len(conns)*min(max(percent, 0), 100) + 99) / 100
	rand.Shuffle(len(conns), func(i, j int) { conns[i], conns[j] = conns[j], conns[i] })
	for _, c := range conns[:n] {
		c.Close()
	}
	if n > 0 {
		s.cfg.Logger.Info("connections closed to shed load", "closed", n, "of", len(conns))
	}
	return n
}
