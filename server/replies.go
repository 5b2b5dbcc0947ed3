package server

import (
	"bytes"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// complete answers a write of this connection, or keeps its reply until those before it are
// answered. Apply calls it under the tree's write lock.
func (c *conn) complete(b *meter.BatchStats, w *clientWrite, res *datatree.Result, now time.Time) {
	c.Lock()
	defer c.Unlock()
	if res.Err == proto.ErrSessionMoved {
		// The session lives on another connection now. ZooKeeper, too, closes the old connection
		// without a reply.
		c.CloseLocked()
		return
	}
	if c.ClosedLocked() {
		c.server.meter.Count(meter.StaleReplies)
	}
	w.closes = w.req.Op == proto.OpCloseSession
	if res.Full {
		c.payRefusal(w.bytes())
	}
	c.stats.Replied(max(0, now.Sub(w.received)), 1, now) // Config.Now may be set back
	b.QueueLength(c.queue.len())
	c.Out.Borrow()
	// Writes are applied in order, no write is queued after a sync, and drain answers everything
	// else before the next write. So w is the head, unless the connection is closing and its queue
	// is no longer drained.
	if c.queue.head() == queued(w) {
		at := c.Out.Len()
		c.Out.Buf = appendResult(c.Out.Buf, w, res)
		c.answered(b, reply{op: w.req.Op, received: w.received, zxid: res.Zxid, at: at, closes: w.closes})
		c.queue.pop()
		w.free = w.req.Op != proto.OpReconfig // c.reconfiging refers to a reconfig
	} else {
		w.reply, w.zxid, w.done = appendResult(nil, w, res), res.Zxid, true
	}
	c.drainInApply(b)
}

// drainInApply answers requests from the head of the queue for the goroutine of Apply, and leaves
// the rest to another goroutine if that is much work.
func (c *conn) drainInApply(b *meter.BatchStats) {
	if c.queue.draining.Load() || !c.drain(b) {
		return
	}
	c.queue.draining.Store(true)
	// Ends when the queue is drained or the connection closes; Server.Close closes that and waits.
	c.server.life.Goroutines.Go(c.finishDrain)
}

// finishDrain answers the requests that Apply left in the queue. Unlike Apply it waits for a client
// that does not read.
func (c *conn) finishDrain() {
	turns := c.server.conns.turns
	for more := true; more; {
		turns.begin()
		c.locked(func(t *meter.BatchStats) {
			if !c.Ending() && c.queue.headLong(&c.server.state) && c.answerHead(t) {
				c.queue.pop() // neither Apply nor drain answers it
			}
			more = c.drain(t)
			c.queue.draining.Store(more)
		})
		turns.end()
		c.server.conns.relieve()
		c.Flush()
		turns.yield()
	}
}

// drain answers requests from the head of the queue up to the first unfinished request, and up to
// the first read with a long reply. It stops early, and returns true, if there is more than a small
// amount of work. The caller holds the tree's lock, for reading or writing, has locked c, and
// settles b.
func (c *conn) drain(b *meter.BatchStats) (more bool) {
	for n := 0; !c.Ending() && c.queue.len() > 0; n++ {
		if n >= burstFrames || c.Out.Len() >= link.Burst || c.queue.headLong(&c.server.state) {
			more = true
			break
		}
		if !c.answerHead(b) {
			break
		}
		c.queue.pop()
	}
	if !c.Ending() { // otherwise the end wakes the waiters
		c.Wake()
	}
	c.boundOutput()
	return more
}

// drainBefore answers everything that finishDrain has not yet answered and that must not show w,
// which is about to be applied (V2). That is not much, see queue.holdsWrites.
func (c *conn) drainBefore(b *meter.BatchStats, w *clientWrite) {
	c.Lock()
	defer c.Unlock()
	limit := len(c.Out.Buf) + max(maxMultiReads*int(c.server.cfg.MaxBuffer), maxQueuedReads*link.ShareBytes+maxQueuedLists*longReplyBytes)
	for !c.Ending() && c.queue.len() > 0 && c.queue.head() != queued(w) {
		if c.Out.Len() > maxOutput || len(c.Out.Buf) > limit {
			c.logger().Warn("connection closed: too many replies at once", "session", c.session.String(), "output_bytes", c.Out.Len())
			c.closeLocked("too many replies at once")
			return
		}
		if !c.answerHead(b) {
			return
		}
		c.queue.pop()
	}
}

// answerHead puts the reply to the oldest request on the output. answerHead returns false if the
// request is not finished, or is answered in part.
func (c *conn) answerHead(b *meter.BatchStats) bool {
	at, last := c.Out.Len(), c.server.state.tree.LastZxid()
	switch r := c.queue.head().(type) {
	case *queuedRead:
		if r.barrier != nil && !r.barrier.passed {
			return false
		}
		if !c.read(b, r.op, r.xid, r.body, r.ids) {
			return false
		}
		c.answered(b, reply{op: r.op, received: r.received, zxid: last, at: at, waited: true})
		c.noteIfSlow(b, r.op, r.xid, r.body, r.heard, r.received)
	case *queuedStatus:
		if r.pending {
			return false
		}
		zxid := r.zxid
		if zxid == zxidLast {
			zxid = last
		}
		out, start := beginReply(c.Out.Buf, r.xid, zxid, r.code)
		c.Out.Buf = endFrame(append(out, r.body...), start)
		c.answered(b, reply{op: r.op, received: r.received, zxid: zxid, at: at, closes: r.closes})
		c.noteIfSlow(b, r.op, r.xid, r.body, r.heard, r.received)
	case *clientWrite:
		if !r.done {
			return false
		}
		c.Out.Buf = append(c.Out.Buf, r.reply...)
		c.answered(b, reply{op: r.req.Op, received: r.received, zxid: r.zxid, at: at, closes: r.closes})
	}
	return true
}

type reply struct {
	op       proto.OpCode
	received time.Time // of its request
	zxid     proto.Zxid
	at       int  // where it begins in the output
	waited   bool // it answers a read that was queued
	closes   bool // the connection closes after it
}

func (c *conn) answered(b *meter.BatchStats, r reply) {
	c.stats.Sent++
	b.Answered(r.op, r.received, r.waited, c.Out.Len()-r.at)
	if invariants.Enabled && r.zxid > 0 && r.zxid < c.stats.LastZxid {
		panic(fmt.Sprintf("server: V5: a reply with zxid %v after one with %v", r.zxid, c.stats.LastZxid))
	}
	c.stats.LastZxid = max(r.zxid, c.stats.LastZxid)
	if r.closes {
		c.noteAttached(0)
		c.Finish()
	}
}

// noteIfSlow notes a request that was answered just now, if it was a read or a sync, whose last
// bytes came at heard. It is logged, when the locks are released, if it was slow. c is locked.
func (c *conn) noteIfSlow(b *meter.BatchStats, op proto.OpCode, xid int32, body []byte, heard, received time.Time) {
	if c.server.meter.Slow.Enabled() && !heard.IsZero() {
		b.MaybeSlow(meter.Request{
			Op: op, Body: bytes.Clone(body), Session: c.session, Xid: xid, Client: c.NetConn().RemoteAddr(), Heard: heard, Received: received,
		}, c.server.state.tree.LastZxid())
	}
}
