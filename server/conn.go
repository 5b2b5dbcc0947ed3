package server

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/invariants"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/watch"
)

const (
	// maxQueued is how many requests of one connection may wait behind a write before its socket is not read any more,
	// maxQueuedBytes how many bytes they may hold.
	maxQueued      = 4096
	maxQueuedBytes = 4 << 20
	// maxOutput is how much may wait for a client that does not read, or become ready at once when a write is done; then
	// its connection is closed.
	maxOutput = 64 << 20
	// burstOutput: a burst of reads is interrupted to send its replies when they are as long as this.
	burstOutput = 256 << 10
	// burstFrames bounds how many requests are handled under one lock.
	burstFrames = 128
)

// conn is a client's connection. One goroutine reads it; replies are also made by the goroutine of Apply.
type conn struct {
	id     watch.ConnID
	server *Server
	nc     net.Conn
	raw    *rawConn // nil if nc is no socket
	addr   string   // without the port

	heardAt atomic.Int64 // nanoseconds from Server.started to the last bytes that came
	blocked atomic.Bool  // it is not read, because writes wait: whether its client is there can't be heard

	touched touched // owned by the goroutine of Apply
	dead    bool    // guarded by Server.connMu: it is gone, or going

	mu   sync.Mutex // guards all below
	room sync.Cond  // signalled when queue or output shrink, the handshake ends, or the connection closes

	ids       []proto.ID // who the client is; replaced, never changed in place
	session   proto.SessionID
	epoch     proto.Zxid
	timeoutMs int32

	queue       queue
	changing    *pending // a reconfig that waits for its answer
	hold        *hold    // of the reads of this burst; nil: none is held
	queuedBytes int
	unsettled   int // syncs and held reads on the queue

	out        []byte
	flushing   bool // somebody is writing to the socket
	closeAfter bool // close when out is sent
	closed     bool
	since      time.Time // accepted
	sentPackets,
	receivedPackets int64
	lastOp   proto.OpCode
	lastXid  int32
	lastZxid proto.Zxid
	lastTime time.Time
	lastTook time.Duration
	latency  latency
	hot      hotSkip
}

// touched is why a connection has output to be sent when a call of Apply is over.
type touched uint8

const (
	touchedNot touched = iota
	touchedByEvent
	touchedByReply // and maybe by an event before
)

// pending is a request that was not answered yet, or a write of the server itself (conn nil).
type pending struct {
	conn        *conn
	xid         int32
	kind        kind
	done        bool                   // kindWrite and kindSync: reply is complete
	req         datatree.Request       // kindWrite
	op          proto.OpCode           // of all other kinds
	body        []byte                 // kindRead: a copy; kindSync: the path, encoded
	ids         []proto.ID             // kindRead: who asked
	hold        *hold                  // kindRead: what it waits for; nil: nothing
	code        proto.ErrCode          // kindStatus
	zxid        proto.Zxid             // kindStatus: 0 for auth, -1 for unknown ops
	reply       []byte                 // a done write's reply that waits for those before it
	close       bool                   // close the connection behind the reply
	spent       bool                   // a write that was answered and is not in the queue any more
	hasReadOnly bool                   // handshake: the client sent the read-only byte
	applied     func(*datatree.Result) // of a write of the server itself: who waits for it; nil: nobody
	heard       time.Time              // when its last bytes came
	received    time.Time              // when it was looked at
}

// tell tells who waits for a write of the server itself.
func (p *pending) tell(res datatree.Result) { p.applied(&res) }

type kind uint8

const (
	kindRead   kind = iota // answered from the tree when its turn comes
	kindWrite              // answered by Apply
	kindSync               // answered by consensus
	kindStatus             // a reply without a body whose code is known already
)

// logger is made when there is something to say: an idle connection holds none.
func (c *conn) logger() hclog.Logger {
	return c.server.cfg.Logger.With("peer", c.nc.RemoteAddr().String())
}

func (c *conn) caller() datatree.Caller {
	return datatree.Caller{IDs: c.ids, SkipACL: c.server.cfg.SkipACL}
}

// noteHeard notes that bytes came. Instants are kept as durations since the start of the server, because a Unix time would
// follow the steps of the wall clock: all sessions would expire when it is set back.
func (c *conn) noteHeard(now time.Time) { c.heardAt.Store(int64(now.Sub(c.server.started))) }

// heard returns when bytes last came, with the monotonic reading of the clock. A client that can't be heard counts as heard.
func (c *conn) heard() time.Time {
	if c.blocked.Load() {
		return c.server.cfg.Now()
	}
	return c.server.started.Add(time.Duration(c.heardAt.Load()))
}

// enqueue puts p at the end of the queue.
func (c *conn) enqueue(p *pending) {
	c.queuedBytes += p.bytes()
	if p.settles() {
		c.unsettled++
	}
	c.queue.push(p)
}

// dequeue takes the head off the queue.
func (c *conn) dequeue() {
	p := c.queue.head()
	c.queuedBytes -= p.bytes()
	if p.settles() {
		c.unsettled--
	}
	c.queue.pop()
}

// settles reports whether consensus, not the order of the writes, says when the request is answered.
func (p *pending) settles() bool { return p.kind == kindSync || p.hold != nil }

// bytes returns how much of what the client sent is held until the answer.
func (p *pending) bytes() int { return len(p.body) + len(p.req.Body) }

// complete takes the result of a write of this connection. Called by Apply under the tree's write lock.
func (c *conn) complete(t *tally, w *pending, res *datatree.Result, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.touch(c, touchedByReply)
	switch {
	case w.req.Op == proto.OpCreateSession || w.req.Op == proto.OpReattachSession:
		t.ran(w.req.Op, w.received, false)
		c.established(w, res)
		return
	case res.Err == proto.ErrSessionMoved:
		// The session lives on another connection now. ZooKeeper too closes this one without a reply.
		c.closeLocked()
		return
	case w.req.Op == proto.OpCloseSession:
		w.close = true
	}
	took := max(0, now.Sub(w.received)) // Config.Now may be set back
	c.lastTook, c.lastTime = took, now
	c.latency.note(took, 1)
	t.inQueue.add(int64(c.queue.len()))
	c.borrowOutput()
	if c.queue.head() == w { // the rule: only a sync in front of it makes it wait
		at := len(c.out)
		c.out = appendResult(c.out, w, res)
		c.answered(t, w, res.Zxid, at)
		c.dequeue()
		w.spent = w.req.Op != proto.OpReconfig // which c.changing remembers
	} else {
		w.reply, w.zxid, w.done = appendResult(nil, w, res), res.Zxid, true
	}
	c.drain(t)
}

// drain answers what is at the head of the queue until something unfinished is there. The caller holds the tree's lock,
// for reading or writing, and c.mu, and settles the tally.
func (c *conn) drain(t *tally) {
	for !c.closed && !c.closeAfter {
		p := c.queue.head()
		if p == nil {
			break
		}
		if len(c.out) > maxOutput { // short requests can ask for long replies, and none of these can wait (V2)
			c.logger().Warn("connection closed: too many replies at once", "session", c.session.String(), "output_bytes", len(c.out))
			c.closeLocked()
			return
		}
		at := len(c.out)
		switch {
		case p.kind == kindRead && p.hold != nil && !p.hold.over:
			c.boundOutput()
			return
		case p.kind == kindRead:
			c.out = c.server.read(c, t, c.out, p.op, p.xid, p.body, p.ids)
			c.answered(t, p, c.server.state.LastZxid(), at)
		case p.kind == kindStatus:
			zxid := p.zxid
			if zxid == zxidLast {
				zxid = c.server.state.LastZxid()
			}
			c.out = appendStatus(c.out, p.xid, zxid, p.code)
			c.answered(t, p, zxid, at)
		case p.done && p.kind == kindSync:
			zxid := c.server.state.LastZxid()
			b, start := beginReply(c.out, p.xid, zxid, proto.OK)
			c.out = endFrame(append(b, p.body...), start)
			c.answered(t, p, zxid, at)
		case p.done:
			c.out = append(c.out, p.reply...)
			c.answered(t, p, p.zxid, at)
		default:
			c.boundOutput()
			return
		}
		c.dequeue()
	}
	if !c.closeAfter { // else the end wakes who waits
		c.room.Broadcast()
	}
	c.boundOutput()
}

// answered notes that p's reply is on the output, from at on.
func (c *conn) answered(t *tally, p *pending, zxid proto.Zxid, at int) {
	c.sentPackets++
	op := p.op
	if p.kind == kindWrite {
		op = p.req.Op
	}
	t.answered(op, p.received, p.kind == kindRead, len(c.out)-at)
	c.server.slow.queued(p)
	if invariants.Enabled && zxid > 0 && zxid < c.lastZxid {
		panic(fmt.Sprintf("server: V5: a reply with zxid %v after one with %v", zxid, c.lastZxid))
	}
	c.lastZxid = max(zxid, c.lastZxid)
	if p.close {
		c.finish()
	}
}

// finish makes the connection close when its output is sent, or after the time of a handshake: it has no session any more
// that could expire if the client does not read. c.mu is held.
func (c *conn) finish() {
	c.closeAfter = true
	if c.raw != nil && !c.flushing { // who writes now looks at it
		c.raw.last = true
	}
	// It fails on a connection that is closed already. The runtime's clock counts here, as in the handshake.
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.server.live.Load().HandshakeTimeout))
}

// boundOutput closes the connection if its client lets too much pile up.
func (c *conn) boundOutput() {
	if len(c.out) > maxOutput && c.flushing {
		c.logger().Warn("connection closed: the client does not read", "session", c.session.String(), "output_bytes", len(c.out))
		c.closeLocked()
	}
}

// close closes the connection; its session lives on. It does not wait.
func (c *conn) close() {
	c.mu.Lock()
	c.closeLocked()
	c.mu.Unlock()
}

func (c *conn) closeLocked() {
	if c.closed {
		return
	}
	c.closed = true
	c.out = nil
	c.room.Broadcast()
	// An error would say that it is closed already.
	if c.raw != nil { // closing a socket does not block
		_ = c.nc.Close()
		return
	}
	// What a Config.Listener brings may say goodbye first, as TLS does for up to 5 s, and locks are held here.
	// Ends by itself; Close of the server waits for it.
	c.server.life.wg.Go(func() { _ = c.nc.Close() })
}

// queue is a FIFO of pending requests.
type queue struct {
	items []*pending
	first int
}

func (q *queue) len() int { return len(q.items) - q.first }

func (q *queue) push(p *pending) {
	if q.first > 64 && q.first*2 > len(q.items) {
		n := copy(q.items, q.items[q.first:])
		clear(q.items[n:])
		q.items, q.first = q.items[:n], 0
	}
	q.items = append(q.items, p)
}

func (q *queue) head() *pending {
	if q.first == len(q.items) {
		return nil
	}
	return q.items[q.first]
}

func (q *queue) pop() {
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
