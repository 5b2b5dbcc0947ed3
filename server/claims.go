package server

import (
	"crypto/subtle"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// A connect request with a session id claims a session. A claim without merit is refused by this
// server alone: only a claim with the right password becomes a replicated request.
//
// A password never changes and ids of sessions are not used twice, so a password that is wrong here
// is wrong everywhere. A session that is unknown here may have been created on another server a
// moment ago. Its creation was committed before its client learned the id, so this server knows the
// session, unless it is over, after a read barrier.

const (
	// failedClaims is how many claims without merit an address may make at once, and per
	// failedClaimsPer afterwards. Those above are not answered, so that the client may try again.
	// Thousands of clients behind one address, whose sessions have all expired, get through within
	// a minute or two.
	failedClaims    = 100
	failedClaimsPer = time.Second
	// maxClaimants is about how many addresses are remembered.
	maxClaimants = 1 << 16
)

// judge decides about a claim that came at now. passwd is the client's, of any length. A
// refused claim has a story if the client's session has ended here.
func (c newcomer) judge(id proto.SessionID, passwd []byte, now time.Time) (v liveness.Verdict, story *facts.EndedSession) {
	s := c.server
	known, right := s.heardOwner(id, passwd, now)
	if right {
		return liveness.Right, nil
	}
	if story = s.endings.Told(id, passwd); story != nil { // it was the client's session, so it has merit
		return liveness.Refused, story
	}
	if !c.claimAllowed() {
		return liveness.Unanswered, nil
	}
	if !known {
		if !c.awaitCurrent() {
			return liveness.Unanswered, nil
		}
		if _, right = s.heardOwner(id, passwd, now); right {
			return liveness.Right, nil
		}
		story = s.endings.Told(id, passwd) // it may have begun and ended meanwhile
	}
	return liveness.Refused, story
}

// claimAllowed counts a claim without merit, and reports whether it is to be answered.
func (c newcomer) claimAllowed() bool {
	wait, _ := c.server.strangers.claims.Take(c.addr, time.Now())
	if wait > 0 {
		c.server.meter.Count(meter.ConnectionsRejected)
		c.logger().Warn("client refused: too many connect requests of this address with a wrong password or for a session that is over",
			"per_second", failedClaims)
	}
	return wait == 0
}

// refuseClaim answers a claim that came at now and is refused; see refuse.
func (c newcomer) refuseClaim(req *proto.ConnectRequest, story *facts.EndedSession, now time.Time) {
	s := c.server
	_, lives, _ := s.state.session(req.SessionID)
	_, local := s.conns.locals.Get(req.SessionID)
	c.logger().Debug("session refused", "session", req.SessionID.String())
	c.Lock()
	c.server.trail.Session(c.conn, proto.OpReattachSession, req.SessionID, proto.ErrSessionExpired, 0)
	if c.refuse(req.HasReadOnly, story); story == nil {
		c.noteRefused(req.SessionID, lives || local, now)
	}
	c.Unlock()
	c.Flush()
}

// heardOwner reports whether this server knows a session, and whether the password is the
// session's. If so, it records that the client was heard from: to re-attach the session may take
// longer than the client waits.
func (s *Server) heardOwner(id proto.SessionID, passwd []byte, now time.Time) (known, right bool) {
	info, known, _ := s.state.session(id)
	if right = known && subtle.ConstantTimeCompare(info.Passwd[:], passwd) == 1; right {
		s.conns.noteOwner(id, now)
		s.sessions.expiry.Touch(id, now)
	}
	return known, right
}

// awaitCurrent waits until this server has applied everything committed anywhere at the time of the
// call. It returns false if the connection closes first, as all do when the leader is lost.
func (c newcomer) awaitCurrent() bool {
	current := false
	c.whenCurrent(func() { current = true })
	c.Lock()
	defer c.Unlock()
	c.Await(func() bool { return !current })
	return !c.ClosedLocked()
}
