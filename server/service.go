package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/lifecycle"
)

// Errors of a server that does not serve clients.
var (
	// ErrNotStarted means that Start was not called yet.
	ErrNotStarted = lifecycle.ErrNotStarted
	// ErrNoLeader means that a server does not answer clients because it knows no leader, cannot
	// reach the leader, or has not caught up yet. That may pass. NotServing tells which it is.
	ErrNoLeader = errors.New("server: no leader, or no contact with it")
	// ErrStandby means that a server cannot do what needs a leader, because it is a standby.
	ErrStandby = errors.New("server: a standby has no leader, and serves only reads until it is promoted")
)

// service is the service that a server gives its clients at a moment. Every statement about whether
// the server serves is derived from it.
type service struct {
	stage    stage
	readOnly bool // clients that accept a read-only server are served meanwhile
}

// stage is how far a server is on its way to serve its clients.
type stage uint8

const (
	stageClosed     stage = iota // the data is not open yet, or the server stops: Life.WhyNot tells
	stageRestoring               // the state was dropped, and another one is read
	stageStarting                // no leader was found yet, or the entries committed then are not applied
	stageLost                    // there was no contact with a leader for syncLimit ticks
	stageLagging                 // the contact is back, and the entries committed then are not applied
	stageForming                 // the ensemble is new, and its clients wait for its members
	stageLeaderless              // no leader is known at the moment; the clients stay
	stageServing
)

type circumstances struct {
	accepting, dropped, started, lost, lagging, membersKnown, current, readOnly bool
}

// service returns the first stage that the circumstances hold a server back in.
func (c circumstances) service() service {
	s := service{stageServing, c.readOnly}
	switch {
	case !c.accepting:
		s.stage = stageClosed
	case c.dropped:
		s.stage = stageRestoring
	case !c.started:
		s.stage = stageStarting
	case c.lost && c.lagging:
		s.stage = stageLagging
	case c.lost:
		s.stage = stageLost
	case !c.membersKnown:
		s.stage = stageForming
	case !c.current:
		s.stage = stageLeaderless
	}
	return s
}

// serves reports whether clients are answered, and their writes carried out.
func (s service) serves() bool { return s.stage == stageServing }

// answers reports whether clients are answered, be it only those that are connected, or that accept
// a read-only server.
func (s service) answers() bool {
	return s.stage >= stageLeaderless || s.readOnly && s.stage > stageRestoring
}

// catchesUp reports whether the server, if it knows a leader, only has to apply committed entries.
func (s service) catchesUp() bool {
	return s.stage == stageRestoring || s.stage == stageStarting || s.stage == stageLagging
}

// service returns the present service for clients, and the status of the node, if the data is open.
func (s *Server) service() (now service, st consensus.Status) {
	if s.life.Accepting.Load() {
		st = s.node.Status()
	}
	return s.circumstances(st).service(), st
}

func (s *Server) circumstances(st consensus.Status) circumstances {
	return circumstances{
		accepting: s.life.Accepting.Load(), dropped: s.state.isDropped(), started: s.life.Serving.Load(),
		lost: s.leader.lost.Load(), lagging: s.leader.catchingUp.Load(), membersKnown: s.membersKnown(st.Voters),
		current: st.Current, readOnly: s.leader.readOnly.Load(),
	}
}

func (s *Server) serves() bool {
	now, _ := s.service()
	return now.serves()
}

// notServing is why a server whose data is open does not answer clients: an ErrNoLeader.
type notServing string

func (e notServing) Error() string { return "server: " + string(e) }

// Is implements the interface of errors.Is.
func (e notServing) Is(target error) bool { return target == ErrNoLeader }

// NotServing returns nil while the server answers clients, be it only those that accept a read-only
// server (Config.ReadOnlyMode; Status tells). Otherwise it returns the reason: ErrNotStarted, an
// error that wraps ErrNoLeader, or ErrClosed, with the cause if the server stopped by itself.
func (s *Server) NotServing() error {
	if now, st := s.service(); !now.answers() {
		return s.whyNot(now.stage, st)
	}
	return nil
}

func (s *Server) noContact() error {
	if !s.leader.lost.Load() {
		return nil
	}
	now, st := s.service()
	return s.whyNot(now.stage, st)
}

func (s *Server) whyNot(stage stage, st consensus.Status) error {
	switch {
	case stage == stageClosed:
		return s.life.WhyNot()
	case st.Leader == 0:
		return notServing(s.whyNoLeader(st))
	case stage == stageLost:
		return notServing(fmt.Sprintf("no contact with the leader, server %d, for syncLimit ticks", memberid.Number(st.Leader)))
	case stage == stageForming:
		return notServing("the ensemble is new, and its members are not agreed yet")
	}
	return notServing(fmt.Sprintf("catching up with the leader, server %d", memberid.Number(st.Leader)))
}

// Ready returns when the server answers clients: it knows a leader, has applied everything that was
// committed when it found the leader, and, in a new ensemble, the members. In an ensemble that may
// change again later: not because the server lags, but when it loses the leader. Start does not
// wait for the members. Ready returns ErrClosed, with the cause if there is one, if the server
// stopped, and an error that wraps ctx's if ctx ends first.
func (s *Server) Ready(ctx context.Context) error {
	return s.state.await(ctx, &s.life, "not serving clients", s.serves)
}

// Status returns a recent summary of the server.
func (s *Server) Status() facts.Status {
	st := Status{Member: int(s.cfg.MemberID), Standby: s.cfg.Standby}
	now, node := s.service()
	if now.stage == stageClosed {
		return st
	}
	st.Leader, st.Mode, st.Zxid = int(node.Leader), s.facts.mode(), int64(s.state.lastZxid())
	st.Serving = now.serves()
	if node.Leader == 0 && !st.Standby {
		st.NoLeader = s.whyNoLeader(node)
	}
	st.CatchingUp = node.Leader != 0 && now.catchesUp()
	st.LeavesClients = s.leader.leavesClients(node)
	set, _ := s.ensemble()
	st.Whole = s.alone() || !node.Joining && slices.Equal(slices.Sorted(slices.Values(node.Voters)), slices.Sorted(slices.Values(set.Voters())))
	return st
}
