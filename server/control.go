package server

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
)

// An embedding program can do some things to a server that no client can: end sessions, let time
// pass, and close connections.

// Errors of these methods.
var (
	// ErrNoSession means that the session does not exist, or does not exist any more.
	ErrNoSession = errors.New("server: no such session")
	// ErrNotLeading means that only the leader can do that, and this server is not, or no longer.
	ErrNotLeading = errors.New("server: not the leader")
)

// ExpireSession ends a session as if its client had not been heard from for too long: its
// ephemerals are deleted, its connection is closed without a reply, and a client that reconnects
// learns that the session has expired. ExpireSession may be called on any member, and returns when
// the end is applied there.
func (s *Server) ExpireSession(ctx context.Context, id int64) error {
	return s.sessions.expireNow(ctx, proto.SessionID(id))
}

// MoveClock calls move, which makes Config.Now jump, while no session can expire. Afterwards some
// sessions count as heard from at that moment, because their clients would have sent pings in the
// skipped time: the sessions that move returns, or, if move returns nil, the sessions connected to
// this server. If the clocks of several members jump, MoveClock must be called on each, every call
// within the move of another, because the leader decides for all.
func (s *Server) MoveClock(move func() (connected []int64)) { s.sessions.moveClock(move) }

// ExpireDue ends the sessions whose timeout is over, and collects the containers and TTL znodes
// that are due. Unlike the regular expiry, ExpireDue waits neither for a tick nor for the end of a
// tick. It returns when these changes are applied on this server, or ErrNotLeading.
func (s *Server) ExpireDue(ctx context.Context) error { return s.sessions.expireDue(ctx) }

// CatchUp returns when this server has applied all that was committed anywhere before the call.
func (s *Server) CatchUp(ctx context.Context) error { return s.catchUp(ctx) }

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
		c.closeFor("to shed load, as an administrator asked")
	}
	if n > 0 {
		s.cfg.Logger.Info("connections closed to shed load", "closed", n, "of", len(conns))
	}
	return n
}
