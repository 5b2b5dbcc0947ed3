package server

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/session"
)

// localBit is set in the id of every session that was opened as a local session. Ids of global
// sessions have an epoch there, which becomes that large only if a backup is restored that is older
// than 97 days.
const localBit = proto.SessionID(1) << 55

// localSessions holds the sessions that only this server knows. Opening, resuming and ending one
// costs no request.
//
//	S1  No znode belongs to a local session. Its writes carry session 0, and the tree refuses an
//	    ephemeral znode for that (-120).
//	S2  At no moment do both tables have a session. With Config.LocalSessionUpgrades, a request that
//	    creates an ephemeral znode waits (pauseUpgrade) until createSession with the session's id,
//	    timeout and password is applied; Apply removes the local entry under the tree's write lock, and
//	    then the request is routed again. Meanwhile a claim of the session is closed without an answer.
//	S3  A session is known on a single server. A claim elsewhere is refused like that of an ended
//	    session, after a read barrier, because the session may have become global a moment ago.
//	S4  The requests of a session take effect in their order, also across connections: a claim closes
//	    the previous connection before the new connection is read. But without connection epochs a
//	    write that was under way when its connection closed may be applied after the session was
//	    resumed, or has ended.
//	S5  A server that loses touch with the leader for syncLimit ticks forgets its local sessions, as in
//	    ZooKeeper, after it has closed all connections: adding a session requires Link.mu of an open
//	    connection.
type localSessions struct {
	mu       sync.Mutex // guards all; a leaf lock
	tracker  *session.Tracker
	byID     map[proto.SessionID]*localSession
	idle     int       // sessions without a connection
	lastJump time.Time // as expiry.lastJump
}

// maxIdleLocals bounds the local sessions without a connection, about 20 MiB: to leave one behind
// costs a client next to nothing. Beyond it new sessions are global until some have expired; a
// read-only server, which cannot open global ones, refuses them.
const maxIdleLocals = 1 << 16

// localSession is a session in localSessions.
type localSession struct {
	passwd    [proto.PasswdBytes]byte
	timeoutMs int32
	conn      *conn // nil: the client is not connected
	upgrading bool  // all members are about to know the session; it neither moves nor expires
}

func (l *localSessions) init(tick time.Duration) {
	l.tracker, l.byID = session.New(tick), make(map[proto.SessionID]*localSession)
}

func (l *localSessions) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

func (l *localSessions) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.idle >= maxIdleLocals
}

// get returns a copy of a session.
func (l *localSessions) get(id proto.SessionID) (_ localSession, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil {
		return *e, true
	}
	return localSession{}, false
}

// add adds a session, and returns false if there is one with that id.
func (l *localSessions) add(id proto.SessionID, e *localSession, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[id] != nil {
		return false
	}
	l.byID[id] = e
	l.heard(id, e, now)
	return true
}

// heard records that the client of e connected. l.mu is held.
func (l *localSessions) heard(id proto.SessionID, e *localSession, now time.Time) {
	if now.Before(l.lastJump) {
		now = l.lastJump
	}
	l.tracker.Add(id, time.Duration(e.timeoutMs)*time.Millisecond, now)
}

// claim decides about a claim of a session, and makes c its connection if the claim is right. The
// caller must close the previous connection, old, which may be nil.
func (l *localSessions) claim(id proto.SessionID, passwd []byte, c *conn, timeoutMs int32, now time.Time) (verdict judgement, old *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := l.byID[id]; {
	case e == nil:
		return claimUnknown, nil
	case subtle.ConstantTimeCompare(e.passwd[:], passwd) != 1:
		return claimRefused, nil
	case e.upgrading: // until that is applied, nobody knows which table the session is in
		return claimUnanswered, nil
	default:
		if e.conn == nil {
			l.idle--
		}
		old, e.conn, e.timeoutMs = e.conn, c, timeoutMs
		l.heard(id, e, now)
		return claimRight, old
	}
}

// upgrade marks the session of c as upgrading, and returns it. It returns false if c is not its
// connection any more.
func (l *localSessions) upgrade(id proto.SessionID, c *conn) (_ localSession, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.byID[id]
	if e == nil || e.conn != c {
		return localSession{}, false
	}
	e.upgrading = true
	return *e, true
}

// release records that a connection is closed, and when it was last heard from.
func (l *localSessions) release(id proto.SessionID, c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil && e.conn == c {
		e.conn = nil
		l.idle++
		l.tracker.Touch(id, c.Heard())
	}
}

// remove ends a session, and returns its connection, or nil. It reports whether there was one.
func (l *localSessions) remove(id proto.SessionID) (c *conn, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.removeLocked(id)
}

// removeSettled is remove, except that a session that is upgrading stays, which it reports.
func (l *localSessions) removeSettled(id proto.SessionID) (c *conn, known, upgrading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil && e.upgrading {
		return nil, true, true
	}
	c, known = l.removeLocked(id)
	return c, known, false
}

// end ends the session of c, and returns false if c is not its connection any more.
func (l *localSessions) end(id proto.SessionID, c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e == nil || e.conn != c {
		return false
	}
	l.removeLocked(id)
	return true
}

func (l *localSessions) removeLocked(id proto.SessionID) (c *conn, known bool) {
	e := l.byID[id]
	if e == nil {
		return nil, false
	}
	if e.conn == nil {
		l.idle--
	}
	l.tracker.Remove(id)
	delete(l.byID, id)
	return e.conn, true
}

// clear ends all sessions. Their connections are closed already.
func (l *localSessions) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.byID {
		l.removeLocked(id)
	}
}

// expire ends the sessions whose clients were silent for their timeouts, and returns their
// connections, with nil for sessions without one.
func (l *localSessions) expire(now time.Time) map[proto.SessionID]*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, e := range l.byID {
		if e.conn != nil {
			l.tracker.Touch(id, e.conn.Heard())
		}
	}
	var ended map[proto.SessionID]*conn
	for _, id := range l.tracker.Expired(now) {
		if l.byID[id].upgrading {
			l.tracker.Retry(id)
			continue
		}
		if ended == nil {
			ended = make(map[proto.SessionID]*conn)
		}
		ended[id], _ = l.removeLocked(id)
	}
	return ended
}

// giveBack lets the time lost, which has just ended, count for no session.
func (l *localSessions) giveBack(lost time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tracker.GiveBack(lost, now)
}

// opensLocal reports whether new sessions are local: if the configuration says so and, where local
// sessions can become global, if all members know how.
func (s *Server) opensLocal() bool {
	return s.cfg.LocalSessions && !s.alone() && (!s.cfg.LocalSessionUpgrades || s.hasLevel(consensus.Level3))
}

// expireLocal ends the local sessions that were not heard from in time.
func (s *Server) expireLocal(now time.Time) {
	for id, c := range s.conns.locals.expire(now) {
		s.cfg.Logger.Info("local session expires", "session", id.String())
		s.endLocal(id, c)
	}
}

// endLocal completes the end of a local session that has been removed.
func (s *Server) endLocal(id proto.SessionID, c *conn) {
	s.meter.Count(meter.SessionsExpired)
	s.Audit(audit.Event{Operation: audit.ExpireSession, Result: audit.Success, Session: id})
	if c != nil {
		c.Close()
	}
}

// attachLocal opens a local session, or resumes one that this server knows. done is false if the
// ensemble must decide about the request. readOnly: this server is read-only.
func (c *conn) attachLocal(req *proto.ConnectRequest, readOnly bool) (ok, done bool, err error) {
	s := c.server
	if req.SessionID == 0 && !readOnly && (!s.opensLocal() || s.conns.locals.crowded()) {
		return false, false, nil // a global session
	}
	now := s.cfg.Now()
	e := &localSession{conn: c, timeoutMs: int32(s.clampTimeout(req.TimeoutMs).Milliseconds())}
	id, verdict, old := req.SessionID, claimRight, (*conn)(nil)
	// The lock of the tree keeps a session from becoming global meanwhile. The sessions are
	// cleared after connections were closed, so c must not be closed when its session is added.
	s.treeMu.RLock()
	c.Lock()
	switch {
	case c.ClosedLocked():
		verdict = claimUnanswered
	case id != 0:
		verdict, old = s.conns.locals.claim(id, req.Passwd, c, e.timeoutMs, now)
		copy(e.passwd[:], req.Passwd)
		if verdict == claimUnknown && readOnly {
			verdict = s.judgeReadOnly(id)
		}
	case s.conns.locals.crowded():
		verdict = claimUnanswered
		c.logger().Warn("client refused: too many clients left without closing their local sessions, which have not expired yet", "max", maxIdleLocals)
	default:
		id, err = s.openLocal(e, now)
	}
	if err == nil && verdict == claimRight {
		c.session, c.timeoutMs, c.local, c.readOnly = id, e.timeoutMs, true, readOnly
		c.greetLocal(req, e, now)
	}
	c.Unlock()
	s.treeMu.RUnlock()
	switch {
	case err != nil:
		return false, true, err
	case verdict == claimUnknown:
		return false, false, nil
	case verdict == claimRefused && c.claimAllowed():
		c.refuseClaim(req)
		return false, true, nil
	case verdict != claimRight:
		return false, true, nil
	}
	if old != nil {
		old.Close() // before c is read: nothing of old is proposed after something of c
	}
	c.Flush()
	return true, true, nil
}

// judgeReadOnly decides, on a read-only server, about a claim of a session that is not local here.
// Only a quorum knows whether a global session lives, unless this server has seen its end: its id
// holds the zxid of its creation. The tree's lock is held.
func (s *Server) judgeReadOnly(id proto.SessionID) judgement {
	const zxidBits = proto.SessionID(1)<<56 - 1
	last := proto.SessionID(s.tree.LastZxid())
	local := id&localBit != 0 && last&localBit == 0
	ahead := (id - last) & zxidBits // a restore may wrap the bits of the epoch
	_, lives := s.tree.Session(id)
	if lives || !local && ahead != 0 && ahead < 1<<55 {
		return claimUnanswered
	}
	return claimRefused
}

// openLocal adds a local session with a new id. The tree's lock is held.
func (s *Server) openLocal(e *localSession, now time.Time) (id proto.SessionID, err error) {
	for {
		var random [8]byte
		if _, err := s.cfg.Rand.Read(random[1:]); err != nil {
			return 0, fmt.Errorf("session id: %w", err)
		}
		if _, err := s.cfg.Rand.Read(e.passwd[:]); err != nil {
			return 0, fmt.Errorf("session password: %w", err)
		}
		id = proto.SessionID(memberid.Number(s.cfg.MemberID))<<56 | localBit | proto.SessionID(binary.BigEndian.Uint64(random[:]))
		if _, global := s.tree.Session(id); !global && s.conns.locals.add(id, e, now) {
			return id, nil
		}
	}
}

// greetLocal answers the connect request. The tree's lock is held, and c is locked.
func (c *conn) greetLocal(req *proto.ConnectRequest, e *localSession, now time.Time) {
	op := proto.OpReattachSession
	if req.SessionID == 0 {
		op = proto.OpCreateSession
		c.stats.LastOp, c.stats.LastXid = op, 0
	} else {
		c.server.meter.Count(meter.SessionsReattached)
	}
	c.stats.LastZxid = c.server.tree.LastZxid()
	c.server.trail.Session(c, op, c.session, proto.OK, 0)
	c.appendConnectResponse(&proto.ConnectResponse{
		TimeoutMs: e.timeoutMs, SessionID: c.session, Passwd: e.passwd[:], HasReadOnly: req.HasReadOnly, ReadOnly: c.readOnly,
	})
	t := c.server.meter.Batch()
	t.Ran(op, now, false)
	c.server.meter.Done(t, c.server.cfg.Now())
}

// localRequest handles the requests that are different for a local session: those that a read-only
// server refuses, the end of the session, and those for which the session must become global.
// done is false if the request is to be handled as usual. The tree's lock is held, and c is locked.
func (c *conn) localRequest(h proto.RequestHeader, body []byte, r *received) (p pause, done bool) {
	s := c.server
	switch {
	case h.Op == proto.OpCloseSession:
		if !s.conns.locals.end(c.session, c) { // it moved to another connection, or has expired
			c.CloseLocked()
			return pauseClosed, true
		}
		s.trail.EndLocal(c, h.Xid, r.now)
		c.status(h, proto.OK, zxidLast, true, r.now, r.stats)
		return pauseEnd, true
	case c.readOnly:
		switch h.Op.Info().Class {
		case proto.ClassWrite, proto.ClassReconfig, proto.ClassSync, proto.ClassInternal:
			c.server.trail.Refused(c, h, body, proto.ErrNotReadOnly, r.now)
			c.status(h, proto.ErrNotReadOnly, zxidLast, false, r.now, r.stats)
			return pauseNone, true
		}
	case s.cfg.LocalSessionUpgrades && datatree.CreatesEphemeral(h.Op, body):
		return pauseUpgrade, true
	}
	return pauseNone, false // without upgrades, the tree refuses an ephemeral znode
}

// upgrade makes the local session of c global, with the same id, and returns when that is
// applied here. It returns false if the connection closes first.
func (c *conn) upgrade(in *link.Input) bool {
	s := c.server
	c.HoldInput(in)
	c.Lock()
	id := c.session
	c.Unlock()
	e, ok := s.conns.locals.upgrade(id, c)
	if !ok {
		return false
	}
	now := s.cfg.Now()
	w := &attachRequest{clientRequest: clientRequest{conn: c, heard: now, received: now}, passwd: e.passwd[:], upgrades: true}
	body := datatree.CreateSessionBody{TimeoutMs: e.timeoutMs, Passwd: e.passwd}
	w.req = datatree.Request{Session: id, Op: proto.OpCreateSession, Server: s.cfg.MemberID, Body: body.Append(nil)}
	s.writes.Take(w.bytes())
	s.node.Propose(w.req.Append(nil), w)
	c.Lock()
	defer c.Unlock()
	c.Await(func() bool { return c.local })
	return !c.ClosedLocked()
}

// upgraded takes the result of the request of upgrade. Apply calls it under the tree's write lock:
// at no moment do both tables have the session.
func (c *conn) upgraded(w *attachRequest, res *datatree.Result) {
	c.server.conns.locals.remove(w.req.Session)
	c.Lock()
	defer c.Unlock()
	if res.Err != proto.OK { // the id is in use, which its random bits exclude in practice
		c.logger().Warn("connection closed: its local session cannot become a global one", "session", w.req.Session.String(), "reason", res.Why)
		c.CloseLocked()
		return
	}
	c.local, c.epoch = false, res.Zxid
	c.Wake()
}
