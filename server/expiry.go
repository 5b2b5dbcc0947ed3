package server

import (
	"sync"
	"time"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// expiry tracks when sessions expire. Every server keeps track; the leader's expiry decides, twice
// a tick (runSessions). A session expires only if all of these hold:
//
//   - The leader can commit. If requests wait and nothing was applied for commitPatience or longer
//     (Status.Progress), nobody expires. Afterwards every session has a full timeout (ResetAll).
//   - The leader's process ran. A pass that is late by more than an eighth of a tick finds sockets
//     that nobody has read. GiveBack moves every session by the lost time. The first late pass does
//     not judge; later passes do even if they are late, too: dead sessions must end also on an
//     overloaded machine.
//   - The session's server says so. Other servers report touches twice a tick ("this session, this
//     many ms ago"). For a session that is attached elsewhere (SessionInfo.Server) the leader waits
//     for a report that was made after the timeout was over. The leader's answers carry its time,
//     and the next report repeats that time, so a report that was under way for long proves nothing
//     new.
//   - A silent server may have heard its clients until its next report was due. So if a server does
//     not report, its sessions last until their timeout and one more tick have passed since its
//     last report. The first report of its next process, which repeats no time, counts as a touch
//     for the clients of the previous process (reportArrived), once.
//
// A report covers everything since the last report that the leader has confirmed, and a tick before
// it. A server whose own pass is late reports only in the next pass. A server that is cut off
// answers pings for syncLimit ticks; if it dies within that time, its clients have up to that much
// less than their timeout.
//
// A session also counts as heard when its client asks for it again with the right password
// (heardOwner), and while its connection is not read because the server handles earlier requests
// (conn.handling). While the server waits for the client to take its replies, the session counts as
// heard whenever the client takes some of them (conn.writeRest) or its socket shows that it is
// alive (noteProgress).
type expiry struct {
	mu       sync.Mutex // guards these
	tracker  *session.Tracker
	reported map[uint8]memberReport // the last report of each other member
	// resetAt is when every session last got a full timeout.
	resetAt time.Time
	// leadingSince is Status.Since of the leadership for which the tracker was reset; zero: this
	// server does not lead.
	leadingSince time.Time
	// lastJump is when MoveClock last moved the clock. A time that was read from the clock before
	// the jump is too old for a client that connects now.
	lastJump time.Time
}

// memberReport is what the leader knows of the last report of another member.
type memberReport struct {
	arrived        time.Time
	madeAfter      time.Time
	firstOfProcess bool // the member's process does not know yet that a report has arrived
	// processStarted is a lower bound of when the member's process began. Until then its previous
	// process may have heard clients. Zero: there was none under this leader.
	processStarted time.Time
}

func (e *expiry) init(tick time.Duration) {
	e.tracker, e.reported = session.New(tick), make(map[uint8]memberReport)
}

// touch records that a session was heard from at that time.
func (e *expiry) touch(id proto.SessionID, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker.Touch(id, at)
}

func (e *expiry) remove(id proto.SessionID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracker.Remove(id)
}

// attached records that a client connected with a new or an existing session.
func (e *expiry) attached(info datatree.SessionInfo, isNew bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now.Before(e.lastJump) {
		now = e.lastJump
	}
	timeout := time.Duration(info.TimeoutMs) * time.Millisecond
	if isNew {
		e.tracker.Add(info.ID, timeout, now)
	} else {
		e.tracker.SetTimeout(info.ID, timeout, now)
	}
}

// reportArrived records a report of another member. If it is the first of a process, clients may
// have been heard by the previous process that it did not report, until its next report was due:
// these count as heard at that time.
func (s *Server) reportArrived(from uint8, r memberReport) {
	if r.firstOfProcess {
		s.treeMu.RLock()
		defer s.treeMu.RUnlock()
	}
	e := &s.expiry
	e.mu.Lock()
	defer e.mu.Unlock()
	last, known := e.reported[from]
	r.processStarted = last.processStarted
	if known && r.firstOfProcess && !last.firstOfProcess {
		r.processStarted = earlier(last.arrived.Add(s.cfg.Tick), r.arrived)
		for info := range s.tree.Sessions() {
			timeout := time.Duration(info.TimeoutMs) * time.Millisecond
			if info.Server == from && !e.tracker.Silent(info.ID, last.processStarted.Add(timeout)) { // a client of that process
				e.tracker.Touch(info.ID, r.processStarted)
			}
		}
	}
	e.reported[from] = r
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// resetAll gives every session a full timeout.
func (e *expiry) resetAll(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resetAt = now
	e.tracker.ResetAll(now)
}

// giveBack lets the time lost, which has just ended, count for no session and for no report.
func (e *expiry) giveBack(lost time.Duration, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.resetAt = earlier(e.resetAt.Add(lost), now)
	for id, r := range e.reported {
		r.arrived = earlier(r.arrived.Add(lost), now)
		e.reported[id] = r
	}
	e.tracker.GiveBack(lost, now)
}

// takeLead gives every session a full timeout if this server has become the leader, because the
// previous leader's record of sessions is lost. takeLead reports whether it did. e.mu is held.
func (e *expiry) takeLead(st consensus.Status, now time.Time) bool {
	switch {
	case !st.Leading:
		e.leadingSince = time.Time{}
	case !st.Since.Equal(e.leadingSince):
		e.leadingSince, e.resetAt = st.Since, now
		e.tracker.ResetAll(now)
		return true
	}
	return false
}

// adoptSessions makes the tracker know the sessions of a state that was restored, each with a full
// timeout: while no server served, no client could be heard.
func (s *Server) adoptSessions() {
	now := s.cfg.Now()
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	s.expiry.tracker, s.expiry.resetAt = session.New(s.cfg.Tick), now
	for info := range s.tree.Sessions() {
		s.expiry.tracker.Add(info.ID, time.Duration(info.TimeoutMs)*time.Millisecond, now)
	}
}

// takeLead resets expiry and digests if this server has become the leader. s.expiry.mu is held.
func (s *Server) takeLead() {
	if s.expiry.takeLead(s.node.Status(), s.cfg.Now()) {
		s.digests.Forget()
	}
}

// touchSessions records when each connected session was last heard from.
func (s *Server) touchSessions() {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for id, c := range s.conns.bySession {
		s.expiry.tracker.Touch(id, c.heard())
	}
	clear(s.conns.unattachedAt) // forget and heardOwner have touched these
}

// dueNow returns the sessions that are closing or whose timeout is over, and the present epoch.
// dueNow holds the tree's lock so that no session re-attaches meanwhile: a session that re-attached
// after the tracker had given up on it would be closed under its new epoch.
func (s *Server) dueNow(now time.Time) (infos []datatree.SessionInfo, epoch uint32) {
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for _, id := range s.expiry.tracker.Due(now) {
		if info, ok := s.tree.Session(id); ok {
			infos = append(infos, info)
		}
	}
	return infos, s.tree.LastZxid().Epoch()
}

// takeExpired returns the sessions that are to be closed now, marked as closing, and the present
// epoch. It holds the same locks as dueNow.
func (s *Server) takeExpired(now time.Time) (infos []datatree.SessionInfo, epoch uint32) {
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.expiry.mu.Lock()
	defer s.expiry.mu.Unlock()
	for _, id := range s.expiry.tracker.Expired(now) {
		info, ok := s.tree.Session(id)
		switch {
		case !ok: // its end is being applied
		case s.silenceKnown(info, now):
			infos = append(infos, info)
		default:
			s.expiry.tracker.Retry(id)
		}
	}
	return infos, s.tree.LastZxid().Epoch()
}

// silenceKnown reports whether it is certain that a session was silent for its timeout, which is
// over as far as this server knows. For a session of another member, that member must have made a
// report after the end of the timeout. A member that does not report is waited for until the
// timeout has passed after its next report was due: until then it may have heard the client.
// s.expiry.mu is held.
func (s *Server) silenceKnown(info datatree.SessionInfo, now time.Time) bool {
	e := &s.expiry
	report := e.reported[info.Server]
	if info.Server == s.cfg.MemberID || e.tracker.Silent(info.ID, report.madeAfter) {
		return true
	}
	last := report.arrived
	if last.Before(e.resetAt) {
		last = e.resetAt
	}
	return now.Sub(last) > time.Duration(info.TimeoutMs)*time.Millisecond+s.cfg.Tick
}

// expiryRequest returns the request that ends a session. The request names the connection epoch
// that was seen, so a session that re-attaches in the meantime lives, and the epoch of this leader,
// so the session also lives if another leader takes over.
func expiryRequest(info datatree.SessionInfo, epoch uint32) datatree.Request {
	return datatree.Request{
		Session: info.ID, ConnEpoch: info.ConnEpoch, Op: proto.OpExpireSession, Body: datatree.ExpireSessionBody{Epoch: epoch}.Append(nil),
	}
}
