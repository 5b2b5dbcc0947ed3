package server

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/trail"
)

// A request that is not answered yet has one of five types. clientWrite, queuedRead and
// queuedStatus wait in the queue of their connection. clientWrite, attachRequest and serverWrite
// pass through consensus, which hands them back to Apply as the Ref of a consensus.Request.

// clientRequest is a request of a client on its way through consensus.
type clientRequest struct {
	conn     *conn
	xid      int32 // 0 in an attachRequest
	req      datatree.Request
	heard    time.Time // when its last bytes came
	received time.Time // when the server looked at it
}

// clientRequestOf returns the client's request in the Ref of a consensus.Request, or nil.
func clientRequestOf(ref any) *clientRequest {
	switch w := ref.(type) {
	case *clientWrite:
		return &w.clientRequest
	case *attachRequest:
		return &w.clientRequest
	}
	return nil
}

// writeRequest returns a client's write as a request for the tree. The body is that of r.
func (c *conn) writeRequest(r *received) datatree.Request {
	s, session := c.server, c.session
	if c.local {
		session = 0 // nothing to check, and no znode can belong to it
	}
	limit := int32(0) // of the replies that the changed znodes may cause; 0: none
	if s.cfg.RefuseUnreadable {
		limit = s.cfg.MaxBuffer
	}
	return datatree.Request{
		Session: session, ConnEpoch: c.epoch, Op: r.Op, Flags: s.requestFlags(), MaxBuffer: limit,
		IDs: c.IDs, Body: r.body, Server: s.cfg.MemberID,
	}
}

// session returns the client's session. A request of a local session has none for the ensemble.
func (r *clientRequest) session() proto.SessionID { return cmp.Or(r.req.Session, r.conn.session) }

// audited returns req and its result for the audit log. A nil r: the server itself sent req.
func (r *clientRequest) audited(req *datatree.Request, res *datatree.Result, now time.Time) *trail.Request {
	a := &trail.Request{
		Session: req.Session, Op: req.Op, Body: req.Body, IDs: req.IDs, Time: now,
		Err: res.Err, Zxid: res.Zxid, Path: res.Path, Multi: res.Multi, MultiFailed: res.MultiFailed,
	}
	if r != nil {
		a.Client, a.Session, a.Xid = r.conn, r.session(), r.xid
	}
	return a
}

type clientWrite struct {
	clientRequest
	place  *bounds.Place // of its frame, or nil
	record []byte        // of req for the log; the next request has its memory
	closes bool          // the connection closes after the reply

	// Set by Apply.
	done  bool       // the reply is complete, and waits for those before it
	reply []byte     // if done
	zxid  proto.Zxid // if done
	free  bool       // it was answered at once, and is no longer in the queue
}

// attachRequest creates or re-attaches a session, or makes a local session a global one. While it
// is under way, no other request of its connection begins, so it is not queued.
type attachRequest struct {
	clientRequest
	passwd      []byte
	hasReadOnly bool // the client sent the read-only byte
	upgrades    bool // a local session
}

// serverWrite is a request of the server itself. applied gets the result; nil: nobody waits for it.
type serverWrite struct {
	req     datatree.Request
	applied func(*datatree.Result)
}

// finish calls applied. res is copied, so that that of every other write stays on Apply's stack.
func (w *serverWrite) finish(res datatree.Result) {
	if w.applied != nil {
		w.applied(&res)
	}
}

// queuedRead is answered from the tree when all earlier ones are answered and its barrier passed.
type queuedRead struct {
	op              proto.OpCode
	xid             int32
	body            []byte
	ids             []proto.ID   // the identities of the client when it asked
	barrier         *readBarrier // nil: none
	heard, received time.Time
}

// queuedStatus is a reply that is known already, except perhaps its zxid.
type queuedStatus struct {
	op       proto.OpCode
	xid      int32
	code     proto.ErrCode
	zxid     proto.Zxid // 0 for auth, -1 for unknown ops, zxidLast
	body     []byte     // of the reply to sasl and sync; all others have none
	closes   bool       // the connection closes after the reply
	received time.Time

	// A sync is pending until this server has applied all that was committed when the sync came.
	pending bool
	heard   time.Time // when the last bytes of a sync came; zero: the request is no sync
}

// zxidLast in a queuedStatus stands for the zxid at the moment when the reply is made.
const zxidLast proto.Zxid = -2

// readBarrier makes reads wait until this server has applied what was committed when they came.
type readBarrier struct{ passed bool }

type queued interface {
	// bytes returns how many bytes of the request are held until the reply.
	bytes() int
	// unordered reports whether consensus decides when it is answered, not the order of the writes.
	unordered() bool
}

func (w *clientWrite) bytes() int   { return len(w.req.Body) }
func (w *attachRequest) bytes() int { return len(w.req.Body) + len(w.passwd) }
func (r *queuedRead) bytes() int    { return len(r.body) }
func (r *queuedStatus) bytes() int  { return len(r.body) }

func (*clientWrite) unordered() bool    { return false }
func (r *queuedRead) unordered() bool   { return r.barrier != nil }
func (r *queuedStatus) unordered() bool { return !r.heard.IsZero() }

// freeWrites are reused. Nearly all are answered at once, and free when Apply no longer needs them.
var freeWrites = sync.Pool{New: func() any { return new(clientWrite) }}

// recycle gives w away with its record. Nothing may refer to either any more.
func (w *clientWrite) recycle() {
	if invariants.Enabled {
		clear(w.record) // as if the next request had it already
	}
	if cap(w.record) > 4<<10 { // too much memory for short requests to keep
		w.record = nil
	}
	*w = clientWrite{record: w.record[:0]}
	freeWrites.Put(w)
}

// queue holds the requests of a connection that are not answered yet, in their order.
type queue struct {
	items      []queued
	first      int
	totalBytes int
	nUnordered int
	nReads     int
	nLists     int // of nReads, see isList
	// draining is set while finishDrain answers the head of the queue. The goroutine of Apply sets
	// it; finishDrain clears it under Link.mu and the lock of the tree.
	draining atomic.Bool
	partial  *partialRead // the multiRead that is answered in slices; nil: none
	missed   *replay      // of the setWatches2 that is answered in slices; nil: none
}

func (q *queue) len() int { return len(q.items) - q.first }

const (
	// maxQueued is how many requests of one connection may be unanswered before no further one is
	// handled, maxQueuedBytes how many bytes they may hold.
	maxQueued      = 4096
	maxQueuedBytes = 4 << 20
	// tightQueue and tightQueueBytes are the same while the queues of all connections hold more
	// than half of the budget.
	tightQueue      = 64
	tightQueueBytes = 16 << 10
	// queuedOverhead is about the size of a queued request without its body.
	queuedOverhead = 256
)

// full reports whether no further request of the connection may be handled until some are answered.
func (q *queue) full(b *bounds.Memory) bool {
	return q.len() >= maxQueued || q.totalBytes >= maxQueuedBytes ||
		(q.len() >= tightQueue || q.totalBytes >= tightQueueBytes) && b.QueuesTight()
}

func (q *queue) held() int64 {
	n := q.totalBytes + queuedOverhead*q.len()
	if q.partial != nil {
		n += q.partial.out.Held() + q.partial.out.SharedBytes()
	}
	if q.missed != nil {
		n += q.missed.held()
	}
	return int64(n)
}

// holdsWrites reports whether a write must wait before it is proposed. Behind a sync or a read with
// a barrier, the reply to that request could show the write (V2, V5). Behind many reads, or reads
// that Apply has left to finishDrain, Apply could have to answer all of them, see drainBefore.
func (q *queue) holdsWrites() bool {
	return q.nUnordered > 0 || q.nReads >= maxQueuedReads || q.nLists >= maxQueuedLists || q.draining.Load()
}

// isList reports whether a read is answered with a list, of up to longReplyBytes when it is queued.
// Bulk reads are never queued behind others, and data above link.ShareBytes is not copied.
func isList(op proto.OpCode) bool {
	return op == proto.OpGetChildren || op == proto.OpGetChildren2 || op == proto.OpGetACL
}

// headLong reports whether the head is a read of much work that could be answered now.
func (q *queue) headLong(s *state) bool {
	r, ok := q.head().(*queuedRead)
	return ok && (r.barrier == nil || r.barrier.passed) && s.longReply(r.op, r.body)
}

func (q *queue) push(r queued) {
	q.count(r, 1)
	if q.first > 64 && q.first*2 > len(q.items) {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, r)
}

// count updates the sums for a request that joins (by is 1) or leaves (-1).
func (q *queue) count(r queued, by int) {
	q.totalBytes += by * r.bytes()
	if read, ok := r.(*queuedRead); ok {
		q.nReads += by
		if isList(read.op) {
			q.nLists += by
		}
	}
	if r.unordered() {
		q.nUnordered += by
	}
}

func (q *queue) head() queued {
	if q.first == len(q.items) {
		return nil
	}
	return q.items[q.first]
}

func (q *queue) pop() {
	r := q.items[q.first]
	q.count(r, -1)
	q.items[q.first] = nil
	q.first++
	if q.first == len(q.items) {
		q.first = 0
		if cap(q.items) > 64 {
			q.items = nil // an idle connection holds no queue
		} else {
			q.items = q.items[:0]
		}
	}
}
