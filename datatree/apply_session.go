package datatree

import (
	"crypto/subtle"
	"encoding/binary"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// CreateSessionBody is the body of createSession and reattachSession, which servers propose.
type CreateSessionBody struct {
	TimeoutMs int32
	// For createSession the new random password, for reattachSession the password from the client.
	Passwd [proto.PasswdBytes]byte
}

// Append appends the encoding: int and buffer.
func (s *CreateSessionBody) Append(b []byte) []byte {
	return jute.AppendBuffer(jute.AppendInt(b, s.TimeoutMs), s.Passwd[:])
}

// decode reports whether d held the record.
func (s *CreateSessionBody) decode(d *jute.Decoder) bool {
	s.TimeoutMs = d.Int()
	passwd := d.Buffer() // nil after an error
	copy(s.Passwd[:], passwd)
	return len(passwd) == proto.PasswdBytes
}

// ExpireSessionBody is the body of expireSession, which the leader proposes for a session that was
// silent for its timeout.
type ExpireSessionBody struct {
	Epoch uint32 // of the leader's zxids when it decided
}

// Append appends the encoding: a uvarint.
func (e ExpireSessionBody) Append(b []byte) []byte { return binary.AppendUvarint(b, uint64(e.Epoch)) }

type session struct {
	rec        *sessionRecord
	ephemerals []znodeID // unsorted; znode.ownerIdx is the index
}

// sessionRecord is the part of a session that is in checkpoints. It is immutable.
type sessionRecord struct {
	id        proto.SessionID
	connEpoch proto.Zxid
	digest    uint64
	timeoutMs int32
	server    uint8
	passwd    [proto.PasswdBytes]byte
}

// createSession creates a session with a unique id: the origin's member id in the high byte, then
// 24 bits of the epoch, then the counter of the zxid. A request with an id makes the origin's local
// session of that id one that all members know; servers send it from feature level 3 on.
func (t *Tree) createSession(x *txn) proto.ErrCode {
	var body CreateSessionBody
	if !body.decode(t.body(x)) {
		return proto.ErrMarshallingError
	}
	id := proto.SessionID(memberid.Number(x.Server))<<56 | proto.SessionID(x.Zxid)&(1<<56-1)
	if x.Session != 0 {
		id = x.Session
	}
	if t.sessions[id] != nil {
		// The same counter was used 2²⁴ epochs ago by a session that is still alive, or the random
		// id of a local session is that of another session. The client tries again.
		x.res.Why = "session id " + id.String() + " is in use"
		return proto.ErrSessionExpired
	}
	if code := t.mayAddSession(x); code != proto.OK {
		return code
	}
	t.setSession(sessionRecord{
		id: id, connEpoch: x.Zxid, timeoutMs: body.TimeoutMs, server: x.Server, passwd: body.Passwd,
	})
	x.res.SessionID = id
	return proto.OK
}

// reattachSession moves a session to a new connection of a client that knows its password. Requests
// from the old connection are refused from now on.
func (t *Tree) reattachSession(x *txn) proto.ErrCode {
	var body CreateSessionBody
	if !body.decode(t.body(x)) {
		return proto.ErrMarshallingError
	}
	s := t.sessions[x.Session]
	if s == nil {
		return proto.ErrSessionExpired
	}
	if subtle.ConstantTimeCompare(body.Passwd[:], s.rec.passwd[:]) != 1 {
		return proto.ErrAuthFailed
	}
	rec := *s.rec
	rec.connEpoch, rec.timeoutMs, rec.server = x.Zxid, body.TimeoutMs, x.Server
	t.setSession(rec)
	x.res.SessionID = rec.id
	return proto.OK
}

// checkSession refuses a request whose session is not attached to the request's connection.
// Requests that attach a session pass, and so do requests without a session, except those that end
// one. An expiry names the silent connection, so a session that was re-attached meanwhile is not
// closed.
func (st *state) checkSession(x *txn) proto.ErrCode {
	s := st.sessions[x.Session]
	switch {
	case x.Op == proto.OpCreateSession, x.Op == proto.OpReattachSession,
		x.Session == 0 && x.Op != proto.OpCloseSession && x.Op != proto.OpExpireSession:
		return proto.OK
	case s == nil:
		return proto.ErrSessionExpired
	case s.rec.connEpoch != x.ConnEpoch:
		return proto.ErrSessionMoved
	}
	return proto.OK
}

// expireSession closes a silent session, unless the leader has changed: a new leader does not know
// when the old leader last heard from a session, and gives every session its full timeout.
// Therefore an expiry from an earlier epoch is refused with ErrBadVersion.
func (t *Tree) expireSession(x *txn) proto.ErrCode {
	d := reader{b: x.Body}
	epoch := d.uint32()
	switch {
	case d.end() != nil:
		return proto.ErrMarshallingError
	case epoch != x.Zxid.Epoch():
		return proto.ErrBadVersion
	}
	return t.closeSession(x)
}

// closeSession removes the session and its ephemerals, in the order of their paths.
func (t *Tree) closeSession(x *txn) proto.ErrCode {
	for _, n := range t.sorted(t.sessions[x.Session].ephemerals) {
		t.unlink(x, n)
	}
	t.dropSession(x.Session)
	return proto.OK
}
