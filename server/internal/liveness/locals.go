package liveness

import (
	"crypto/subtle"
	"encoding/binary"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/session"
)

// Locals holds the sessions that only this server knows. A session is opened, resumed and ended
// without a request to the ensemble. C is a connection; its zero value means that the client is not
// connected. Locals is safe for concurrent use; its lock is a leaf.
//
//	S1  No znode belongs to a local session. Its writes carry session 0, and the tree refuses an
//	    ephemeral znode for that (-120).
//	S2  At no moment do both tables have a session. With Config.LocalSessionUpgrades, a request that
//	    creates an ephemeral znode waits (pauseUpgrade) until createSession with the session's id,
//	    timeout and password is applied; Apply removes the local entry under the tree's write lock, and
//	    then the request is routed again. Meanwhile a claim of the session is closed without an answer.
//	    If the full state has no room for a session, this one stays local, and the request gets -125.
//	S3  A session is known on a single server. A claim elsewhere is refused like that of an ended
//	    session, after a read barrier, because the session may have become global a moment ago.
//	S4  The requests of a session take effect in their order, also across connections: a claim closes
//	    the previous connection before the new connection is read. But without connection epochs a
//	    write that was under way when its connection closed may be applied after the session was
//	    resumed, or has ended.
//	S5  A server that loses touch with the leader for syncLimit ticks forgets its local sessions, as in
//	    ZooKeeper, after it has closed all connections: adding a session requires the lock of an open
//	    connection. A pause of the process counts, too.
type Locals[C comparable] struct {
	heard func(c C, now time.Time) time.Time // when a connection was last heard from

	mu       sync.Mutex // guards the rest
	tracker  *session.Tracker
	byID     map[proto.SessionID]*Local[C]
	idle     int       // sessions without a connection
	lastJump time.Time // as Expiry.lastJump
}

// Local is a local session.
type Local[C comparable] struct {
	Passwd    [proto.PasswdBytes]byte
	TimeoutMs int32
	Conn      C
	upgrading bool // all members are about to know the session; it neither moves nor ends
}

// Verdict is the decision about a claim of a session.
type Verdict uint8

// The verdicts.
const (
	Unanswered Verdict = iota // the connection is closed, so that the client tries again
	Refused                   // the session is over, or has another password
	Right                     // as far as this server knows; for a global session the replicated request decides
	Unknown                   // not a local session of this server
)

// MaxIdle bounds the local sessions without a connection, about 20 MiB: to leave one behind costs a
// client next to nothing. Beyond it new sessions are global until some have expired; a read-only
// server, which cannot open global ones, refuses them.
const MaxIdle = 1 << 16

// localBit is set in the id of every session that was opened as a local session. Ids of global
// sessions have an epoch there, which becomes that large only if a backup is restored that is older
// than 97 days.
const localBit = proto.SessionID(1) << 55

// LocalID returns the id of a new local session of a member, of which seven bytes are random.
func LocalID(member uint8, random [7]byte) proto.SessionID {
	return proto.SessionID(binary.BigEndian.Uint64(append([]byte{member}, random[:]...))) | localBit
}

// JudgeReadOnly decides, on a read-only server, about a claim of a session that is not local there.
// Only a quorum knows whether a global session lives, unless the server has seen the session's end.
// The server compares the session's id, which holds the zxid of the session's creation, with last,
// the server's last zxid. lives says that the server's state has the session.
func JudgeReadOnly(id proto.SessionID, last proto.Zxid, lives bool) Verdict {
	const zxidBits = proto.SessionID(1)<<56 - 1
	local := id&localBit != 0 && proto.SessionID(last)&localBit == 0
	ahead := (id - proto.SessionID(last)) & zxidBits // a restore may wrap the bits of the epoch
	if lives || !local && ahead != 0 && ahead < 1<<55 {
		return Unanswered
	}
	return Refused
}

// NewLocals returns a Locals without sessions. heard must not wait for a lock.
func NewLocals[C comparable](tick time.Duration, heard func(c C, now time.Time) time.Time) *Locals[C] {
	return &Locals[C]{heard: heard, tracker: session.New(tick), byID: make(map[proto.SessionID]*Local[C])}
}

// Len returns the number of sessions.
func (l *Locals[C]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID)
}

// Connected returns the number of sessions with a connection.
func (l *Locals[C]) Connected() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.byID) - l.idle
}

// Crowded reports whether no session may be added.
func (l *Locals[C]) Crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.idle >= MaxIdle
}

// Get returns a copy of a session.
func (l *Locals[C]) Get(id proto.SessionID) (_ Local[C], known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil {
		return *e, true
	}
	return Local[C]{}, false
}

// Expiries returns when the sessions expire, the next first. The caller owns the result.
func (l *Locals[C]) Expiries() []session.Bucket {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tracker.Buckets()
}

// Add adds a session with a connection, and returns false if there is one with that id.
func (l *Locals[C]) Add(id proto.SessionID, s Local[C], now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID[id] != nil {
		return false
	}
	l.byID[id] = &s
	l.connected(id, &s, now)
	return true
}

// connected records that the client of a session connected. l.mu is held.
func (l *Locals[C]) connected(id proto.SessionID, s *Local[C], now time.Time) {
	l.tracker.Add(id, time.Duration(s.TimeoutMs)*time.Millisecond, later(now, l.lastJump))
}

// Claim decides about a claim of a session, and makes c its connection if the claim is right. The
// caller must close the previous connection, unless that is zero.
func (l *Locals[C]) Claim(id proto.SessionID, passwd []byte, c C, timeoutMs int32, now time.Time) (v Verdict, old C) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e := l.byID[id]; {
	case e == nil:
		return Unknown, old
	case subtle.ConstantTimeCompare(e.Passwd[:], passwd) != 1:
		return Refused, old
	case e.upgrading: // until that is applied, nobody knows which table the session is in
		return Unanswered, old
	default:
		if e.Conn == old { // none
			l.idle--
		}
		old, e.Conn, e.TimeoutMs = e.Conn, c, timeoutMs
		l.connected(id, e, now)
		return Right, old
	}
}

// of returns the session of a connection, or nil if the connection has lost it. l.mu is held.
func (l *Locals[C]) of(id proto.SessionID, c C) *Local[C] {
	if e := l.byID[id]; e != nil && e.Conn == c {
		return e
	}
	return nil
}

// Upgrade marks the session of c as upgrading, and returns it. Upgrade returns false if c is not
// its connection any more.
func (l *Locals[C]) Upgrade(id proto.SessionID, c C) (_ Local[C], ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(id, c)
	if e == nil {
		return Local[C]{}, false
	}
	e.upgrading = true
	return *e, true
}

// Release records that a connection is closed, and when it was last heard from. It returns false if
// c is not the session's connection any more.
func (l *Locals[C]) Release(id proto.SessionID, c C, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.of(id, c)
	if e != nil {
		var none C
		e.Conn = none
		l.idle++
		l.tracker.Touch(id, l.heard(c, now))
	}
	return e != nil
}

// Upgraded ends the upgrade of a session, which stays local, or is removed: it is global now, or
// lost.
func (l *Locals[C]) Upgraded(id proto.SessionID, staysLocal bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil && staysLocal {
		e.upgrading = false
		return
	}
	l.remove(id)
}

// Remove ends a session, unless it is upgrading, which Remove reports. Remove returns the session's
// connection, and whether there was a session.
func (l *Locals[C]) Remove(id proto.SessionID) (c C, known, upgrading bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.byID[id]; e != nil && e.upgrading {
		return c, true, true
	}
	c, known = l.remove(id)
	return c, known, false
}

// End ends the session of c, and returns false if c is not its connection any more.
func (l *Locals[C]) End(id proto.SessionID, c C) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of(id, c) == nil {
		return false
	}
	l.remove(id)
	return true
}

// remove ends a session. l.mu is held.
func (l *Locals[C]) remove(id proto.SessionID) (c C, known bool) {
	e := l.byID[id]
	if e == nil {
		return c, false
	}
	if e.Conn == c { // none
		l.idle--
	}
	l.tracker.Remove(id)
	delete(l.byID, id)
	return e.Conn, true
}

// Clear ends all sessions, and returns their ids. Their connections are closed already.
func (l *Locals[C]) Clear() (ended []proto.SessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.byID {
		l.remove(id)
		ended = append(ended, id)
	}
	return ended
}

// Expire ends the sessions whose clients were silent for their timeouts, and returns their
// connections, which may be zero.
func (l *Locals[C]) Expire(now time.Time) map[proto.SessionID]C {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.connections(func(id proto.SessionID, c C) { l.tracker.Touch(id, l.heard(c, now)) })
	ended := make(map[proto.SessionID]C)
	for _, id := range l.tracker.Expired(now) {
		if l.byID[id].upgrading {
			l.tracker.Retry(id)
			continue
		}
		ended[id], _ = l.remove(id)
	}
	return ended
}

// connections calls f for each session with a connection. l.mu is held.
func (l *Locals[C]) connections(f func(proto.SessionID, C)) {
	var none C
	for id, e := range l.byID {
		if e.Conn != none {
			f(id, e.Conn)
		}
	}
}

// GiveBack is Expiry.GiveBack.
func (l *Locals[C]) GiveBack(lost time.Duration, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tracker.GiveBack(min(lost, now.Sub(l.lastJump)), now)
}

// Jump is Expiry.Jump. If move returns no sessions, those that are connected count as heard from.
func (l *Locals[C]) Jump(move func() (now time.Time, heard []int64)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, heard := move()
	l.lastJump = now
	for _, id := range heard {
		l.tracker.Touch(proto.SessionID(id), now)
	}
	if heard == nil {
		l.connections(func(id proto.SessionID, _ C) { l.tracker.Touch(id, now) })
	}
}
