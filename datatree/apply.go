package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Header is what the log adds to a request.
type Header struct {
	Zxid   proto.Zxid
	TimeMs int64 // Unix milliseconds, chosen by the leader; becomes Ctime and Mtime
}

// Result is what the client of a request sees. Which fields are set depends on the op.
//
// Two errors have a meaning for the connection: ErrSessionExpired (the session is unknown or closed) and ErrSessionMoved
// (it is attached by another connection now: this one is to be closed without a reply).
type Result struct {
	Zxid        proto.Zxid
	Err         proto.ErrCode
	Path        string              // create*: the final path
	Stat        proto.Stat          // create*, setData, setACL, configDone: after the change
	Multi       []proto.MultiResult // multi, failed ones too, for which Err is OK; valid until the next Apply
	MultiFailed bool                // multi: nothing of it was done, and Multi says why
	SessionID   proto.SessionID     // createSession, reattachSession
	Pending     bool                // reconfig, initConfig: checked, and raft's turn; the answer comes with the configDone of Serial
	Serial      proto.Zxid          // reconfig, initConfig: what is pending now; configDone: what is no longer, 0 if it ended nothing
	Data        []byte              // configDone: the new text of /zookeeper/config; shared, not to be changed
	Why         string              // for refusals that deserve a line in the log: what, where, size and limit
}

// Event is something that watches may wait for.
type Event struct {
	Type proto.EventType
	Path string
	Zxid proto.Zxid
	ACL  ACLRef // of the znode at Path at that moment: who may not read it is not told
}

// Apply executes one committed request and returns what its client sees and which events fired, in firing order: the
// znode's own before its parent's. The events, and Result.Multi, are valid until the next Apply.
//
// Deterministic: trees that applied the same requests are equal under Digest.
//
//	h.Zxid    above LastZxid, else panic (D4)
//	r         not retained; data and names are copied
//
// Client mistakes (no parent, bad version, a body that cannot be decoded) are Result.Err and still consume the zxid.
// The order of the checks is ZooKeeper's. Sources: PrepRequestProcessor.pRequest2Txn, DataTree.processTxn.
func (t *Tree) Apply(h Header, r *Request) (Result, []Event) {
	t.SetLastZxid(h.Zxid)
	t.events = reuse(t.events)
	x := txn{Header: h, Request: r, caller: Caller{IDs: r.IDs, SkipACL: r.Flags&FlagSkipACL != 0}}
	x.res.Zxid = h.Zxid
	x.res.Err = t.dispatch(&x)
	t.dec.Reset(nil) // lets go of the body
	return x.res, t.events
}

// txn is a request on its way through Apply.
type txn struct {
	Header
	*Request
	caller Caller
	res    Result
}

func (t *Tree) dispatch(x *txn) proto.ErrCode {
	switch x.Op {
	case proto.OpCreateSession:
		return t.createSession(x)
	case proto.OpReattachSession:
		return t.reattachSession(x)
	}
	if code := t.checkSession(x); code != proto.OK {
		return code
	}
	switch x.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		return t.create(x)
	case proto.OpDelete:
		return t.delete(x)
	case proto.OpDeleteContainer:
		return t.deleteContainer(x)
	case proto.OpSetData:
		return t.setData(x)
	case proto.OpSetACL:
		return t.setACL(x)
	case proto.OpMulti:
		return t.applyMulti(x)
	case proto.OpCloseSession:
		return t.closeSession(x)
	case proto.OpExpireSession:
		return t.expireSession(x)
	case proto.OpReconfig:
		return t.reconfig(x)
	case proto.OpInitConfig:
		return t.initConfig(x)
	case proto.OpConfigDone:
		return t.configDone(x)
	}
	return proto.ErrUnimplemented
}

// body returns a decoder over the request's body whose strings alias it: what is kept is cloned.
func (t *Tree) body(x *txn) *jute.Decoder {
	t.dec.Reset(x.Body)
	t.dec.AliasStrings()
	return &t.dec
}

// emit notes an event at n.
func (t *Tree) emit(x *txn, typ proto.EventType, n *znode) {
	t.events = append(t.events, Event{Type: typ, Path: n.path(), Zxid: x.Zxid, ACL: ACLRef{t.aclOf(n)}})
}

// reuse returns s without elements, for another Apply to fill, unless a large one left it large.
func reuse[T any](s []T) []T {
	if cap(s) > 1<<12 {
		return nil
	}
	clear(s)
	return s[:0]
}

// dataReplyBytes returns the size of the reply to getData of that many bytes.
func dataReplyBytes(n int) int { return proto.ReplyHeaderBytes + 4 + n + proto.StatBytes }

// fits refuses what would make a reply too long for jute.maxbuffer: nobody could read that znode or list any more.
func (x *txn) fits(what, path string, size int) proto.ErrCode {
	if x.MaxBuffer <= 0 || size <= int(x.MaxBuffer) {
		return proto.OK
	}
	x.res.Why = fmt.Sprintf("%v of %q refused: the reply with its %s would take %d bytes, jute.maxbuffer is %d", x.Op, path, what, size, x.MaxBuffer)
	return proto.ErrMarshallingError
}
