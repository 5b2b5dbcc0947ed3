package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Header is the position and time of a request in the log.
type Header struct {
	Zxid   proto.Zxid
	TimeMs int64 // Unix milliseconds, chosen by the leader; becomes Ctime and Mtime
}

// Result is the reply to the client of a request. The operation determines which fields are set.
//
// Two errors concern the connection: ErrSessionExpired (the session is unknown or closed) and
// ErrSessionMoved (the session is attached to another connection, so this one must be closed
// without a reply).
type Result struct {
	Zxid proto.Zxid
	Err  proto.ErrCode
	Path string     // create*: the final path
	Stat proto.Stat // create*, setData, setACL, configDone: after the change
	// For multi, with Err OK even if the multi failed; valid until the next Apply.
	Multi       []proto.MultiResult
	MultiFailed bool            // multi: nothing was done, and Multi says why
	SessionID   proto.SessionID // createSession, reattachSession
	// For reconfig and initConfig: accepted. Raft must change first, and the configDone of Serial
	// has the result.
	Pending bool
	// For reconfig and initConfig: the pending change; configDone: the change that ended, or 0.
	Serial proto.Zxid
	// For configDone: the new text of /zookeeper/config; shared, must not be changed.
	Data []byte
	// Reason of a refusal that should be logged: operation, path, size and limit.
	Why string
	// Full: the request, or an operation of the multi, was refused because the state is full.
	Full bool
}

// Event is an event for watches.
type Event struct {
	Type proto.EventType
	Path string
	Zxid proto.Zxid
	ACL  ACLRef // of the znode at Path at that moment; a watcher without READ gets no event
}

// Apply executes one committed request. It returns the result for the client and the events in
// firing order: a znode's event comes before its parent's. Events and Result.Multi are valid until
// the next Apply.
//
// Deterministic: trees that applied the same requests are equal under Digest.
//
//	h.Zxid    must be above LastZxid, otherwise Apply panics (D4)
//	r         is not retained; data and names are copied
//
// Client mistakes (no parent, bad version, an undecodable body) are Result.Err and consume the
// zxid. The checks come in ZooKeeper's order. Sources: PrepRequestProcessor.pRequest2Txn,
// DataTree.processTxn.
func (t *Tree) Apply(h Header, r *Request) (Result, []Event) {
	t.SetLastZxid(h.Zxid)
	t.events = reuse(t.events)
	x := newTxn(h, r)
	x.caller.Known = &t.known
	t.known.forget()
	x.res.Zxid = h.Zxid
	x.res.Err = t.dispatch(&x)
	t.endFull()
	t.hashPending()
	t.dec.Reset(nil) // drops the reference to the body
	return x.res, t.events
}

type txn struct {
	Header
	*Request
	caller Caller
	res    Result
}

func newTxn(h Header, r *Request) txn {
	return txn{Header: h, Request: r, caller: Caller{IDs: r.IDs, SkipACL: r.Flags&FlagSkipACL != 0}}
}

func (t *Tree) dispatch(x *txn) proto.ErrCode {
	if code := t.checkSession(x); code != proto.OK {
		return code
	}
	switch x.Op {
	case proto.OpCreateSession:
		return t.createSession(x)
	case proto.OpReattachSession:
		return t.reattachSession(x)
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
	case proto.OpSetLimit:
		return t.setLimit(x)
	}
	return proto.ErrUnimplemented
}

// body returns a decoder for the request's body. Its strings share the body's memory; strings that
// are kept must be cloned.
func (t *Tree) body(x *txn) *jute.Decoder {
	t.dec.Reset(x.Body)
	t.dec.AliasStrings()
	return &t.dec
}

func (t *Tree) emit(x *txn, typ proto.EventType, n *znode) {
	t.events = append(t.events, Event{Type: typ, Path: n.path(), Zxid: x.Zxid, ACL: ACLRef{t.aclOf(n)}})
}

// reuse returns s with length 0 for the next Apply, or nil if its memory has become large.
func reuse[T any](s []T) []T {
	if cap(s) > 1<<12 {
		return nil
	}
	clear(s)
	return s[:0]
}

func dataReplyBytes(n int) int { return proto.ReplyHeaderBytes + 4 + n + proto.StatBytes }

// fits refuses a change after which a reply would exceed jute.maxbuffer, so that nobody could read
// that znode or list.
func (x *txn) fits(what, path string, size int) proto.ErrCode {
	if x.MaxBuffer <= 0 || size <= int(x.MaxBuffer) {
		return proto.OK
	}
	return x.refuse(proto.ErrMarshallingError, path, "the reply with its %s would take %d bytes, jute.maxbuffer is %d",
		what, size, x.MaxBuffer)
}

// refuse gives the reason of a refusal that should be logged, and returns code.
func (x *txn) refuse(code proto.ErrCode, path, format string, args ...any) proto.ErrCode {
	x.res.Why = fmt.Sprintf("%v of %q refused: ", x.Op, path) + fmt.Sprintf(format, args...)
	return code
}
