package server

import (
	"fmt"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/server/internal/trail"
)

func (s *sessions) opensLocal() bool { return s.cfg.LocalSessions && !s.alone() }

// attachLocal opens a local session, or resumes one that this server knows. done is false if the
// ensemble must decide about the request. readOnly: this server is read-only.
func (c newcomer) attachLocal(req *proto.ConnectRequest, readOnly bool) (ok, done bool, err error) {
	s := c.server
	if req.SessionID == 0 && !readOnly && (!s.sessions.opensLocal() || s.conns.locals.Crowded()) {
		return false, false, nil // a global session
	}
	now := s.cfg.Now()
	e := liveness.Local[*conn]{Conn: c.conn, TimeoutMs: int32(s.clampTimeout(req.TimeoutMs).Milliseconds())}
	id, verdict, old := req.SessionID, liveness.Right, (*conn)(nil)
	// The lock of the tree keeps a session from becoming global meanwhile. The sessions are
	// cleared after connections were closed, so c must not be closed when its session is added.
	c.locked(func(t *meter.BatchStats) {
		switch {
		case c.ClosedLocked():
			verdict = liveness.Unanswered
		case id != 0:
			verdict, old = s.conns.locals.Claim(id, req.Passwd, c.conn, e.TimeoutMs, now)
			copy(e.Passwd[:], req.Passwd)
			if verdict == liveness.Unknown && readOnly {
				_, lives := s.state.tree.Session(id)
				verdict = liveness.JudgeReadOnly(id, s.state.tree.LastZxid(), lives)
			}
		case s.conns.locals.Crowded():
			verdict = liveness.Unanswered
			c.logger().Warn("client refused: too many clients left without closing their local sessions, which have not expired yet",
				"max", liveness.MaxIdle)
		default:
			id, err = s.sessions.openLocal(&e, now)
		}
		if err == nil && verdict == liveness.Right {
			c.session, c.timeoutMs, c.local, c.readOnly = id, e.TimeoutMs, true, readOnly
			c.greetLocal(t, req, &e, now)
		}
	})
	switch {
	case err != nil:
		return false, true, err
	case verdict == liveness.Unknown:
		return false, false, nil
	case verdict == liveness.Refused && c.claimAllowed():
		c.refuseClaim(req, s.endings.Told(id, req.Passwd), now)
		return false, true, nil
	case verdict != liveness.Right:
		return false, true, nil
	}
	if old != nil {
		old.closeFor(sessionMoved) // before c is read: nothing of old is proposed after something of c
	}
	c.Flush()
	return true, true, nil
}

// openLocal adds a local session with a new id and password. The tree's lock is held.
func (s *sessions) openLocal(e *liveness.Local[*conn], now time.Time) (id proto.SessionID, err error) {
	for {
		var random [7]byte
		if _, err := s.cfg.Rand.Read(random[:]); err != nil {
			return 0, fmt.Errorf("session id: %w", err)
		}
		if _, err := s.cfg.Rand.Read(e.Passwd[:]); err != nil {
			return 0, fmt.Errorf("session password: %w", err)
		}
		id = liveness.LocalID(memberid.Number(s.cfg.MemberID), random)
		if s.cfg.ZooKeeperPasswords {
			e.Passwd = zkfiles.Password(id)
		}
		if _, global := s.state.tree.Session(id); !global && s.conns.locals.Add(id, *e, now) {
			return id, nil
		}
	}
}

// greetLocal answers the connect request. The tree's lock is held, and c is locked.
func (c newcomer) greetLocal(t *meter.BatchStats, req *proto.ConnectRequest, e *liveness.Local[*conn], now time.Time) {
	op := proto.OpReattachSession
	if req.SessionID == 0 {
		op = proto.OpCreateSession
		c.stats.LastOp, c.stats.LastXid = op, 0
	} else {
		c.server.meter.Count(meter.SessionsReattached)
	}
	c.stats.LastZxid = c.server.state.tree.LastZxid()
	c.server.trail.Session(c.conn, op, c.session, proto.OK, 0)
	c.appendConnectResponse(&proto.ConnectResponse{
		TimeoutMs: e.TimeoutMs, SessionID: c.session, Passwd: e.Passwd[:], HasReadOnly: req.HasReadOnly, ReadOnly: c.readOnly,
	})
	t.Ran(op, now, false)
}

// localRequest handles the requests that are different for a local session: those that a read-only
// server refuses, the end of the session, and those for which the session must become global.
// done is false if the request is to be handled as usual. The tree's lock is held, and c is locked.
func (c *conn) localRequest(r *received) (p pause, done bool) {
	s := c.server
	switch {
	case r.Op == proto.OpCloseSession:
		if !s.conns.locals.End(c.session, c) { // it moved to another connection, or has expired
			c.CloseLocked()
			return pauseClosed, true
		}
		s.sessions.noteLocal(c.session, facts.Closed, c.storyLocked(r.now, r.now), r.now)
		if s.trail.On() {
			s.trail.End(&trail.Request{Client: c, Session: c.session, Xid: r.Xid, Op: r.Op, Time: r.now}, nil)
		}
		c.status(r, proto.OK, zxidLast, true)
		return pauseEnd, true
	case c.readOnly:
		switch r.Op.Info().Class {
		case proto.ClassWrite, proto.ClassReconfig, proto.ClassSync, proto.ClassInternal:
			c.refuseRequest(r, proto.ErrNotReadOnly)
			return pauseNone, true
		}
	case s.cfg.LocalSessionUpgrades && datatree.CreatesEphemeral(r.Op, r.body):
		if !c.cannotUpgrade {
			return pauseUpgrade, true
		}
		c.cannotUpgrade = false
		c.refuseRequest(r, proto.ErrQuotaExceeded)
		return pauseNone, true
	}
	return pauseNone, false // without upgrades, the tree refuses an ephemeral znode
}

// upgrade makes the local session of c global, with the same id, and returns when that is applied
// here, or refused because the state is full. It returns false if the connection closes first.
func (c *conn) upgrade() bool {
	s := c.server
	c.Lock()
	id := c.session
	c.Unlock()
	e, ok := s.conns.locals.Upgrade(id, c)
	if !ok {
		return false
	}
	now := s.cfg.Now()
	w := &attachRequest{clientRequest: clientRequest{conn: c, heard: now, received: now}, passwd: e.Passwd[:], upgrades: true}
	body := datatree.CreateSessionBody{TimeoutMs: e.TimeoutMs, Passwd: e.Passwd}
	w.req = datatree.Request{Session: id, Op: proto.OpCreateSession, Server: s.cfg.MemberID, Body: body.Append(nil)}
	s.writes.Take(w.bytes())
	s.node.Propose(w.req.Append(nil), w)
	c.Lock()
	defer c.Unlock()
	c.Await(func() bool { return c.local && !c.cannotUpgrade })
	return !c.ClosedLocked()
}

// upgraded takes the result of the request of upgrade. Apply calls it under the tree's write lock:
// at no moment do both tables have the session.
func (c *conn) upgraded(w *attachRequest, res *datatree.Result) {
	full := res.Err == proto.ErrQuotaExceeded
	c.server.conns.locals.Upgraded(w.req.Session, full)
	c.Lock()
	defer c.Unlock()
	switch {
	case full: // the session stays local
		c.cannotUpgrade = true
		c.payRefusal(w.bytes())
	case res.Err != proto.OK: // the id is in use
		c.logger().Warn("connection closed: its local session cannot become a global one", "session", w.req.Session.String(), "reason", res.Why)
		c.CloseLocked()
	default:
		c.local, c.epoch = false, res.Zxid
	}
	c.Wake()
}
