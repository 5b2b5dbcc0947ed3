package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
)

const (
	// maxOutput is how many bytes may wait for a client that does not read, or become ready at once
	// when a write is done. Then its connection is closed.
	maxOutput = 64 << 20
	// burstFrames bounds how many requests are handled under one lock.
	burstFrames = 128
	// maxFills is how often a connection with more in its socket is read before others go on.
	maxFills = 8
	// quietTime: a client that was silent for so long before its last request is probably idle, and
	// sends a ping now and then. It gets a goroutine only for that.
	quietTime = time.Second
	// maxNewcomers connections with a session wait with a goroutine for the first request.
	maxNewcomers = 64
	// maxQueuedReads is how many reads of one connection may wait when it sends a write: they must
	// be answered before that write is applied (V2), possibly by Apply, under its lock.
	// maxQueuedLists is how many of them may ask for lists.
	maxQueuedReads, maxQueuedLists = 256, 32
)

// serve opens a session and reads the connection. in holds the bytes that were read already.
func (c *conn) serve(in link.Input) {
	ok, err := newcomer{c, &in}.handshake()
	if !ok || err != nil {
		c.end(&in, err)
		return
	}
	// Few clients that come stay silent. So this goroutine waits for the answer and for the next
	// request at once, until the deadline of the handshake.
	quiet, readErr := true, error(nil)
	newcomers := &c.server.conns.newcomers
	if newcomers.Add(1) <= maxNewcomers && in.Len() == 0 && c.IsSocket() && !c.Secured() {
		readErr = in.Fill(&c.Link)
		quiet = readErr != nil
	}
	newcomers.Add(-1)
	_ = c.NetConn().SetReadDeadline(time.Time{}) // fails if the connection is closed
	c.Lock()
	c.Await(func() bool { return c.session == 0 }) // for the answer to attach
	ok = c.session != 0 && !c.ClosedLocked()
	c.Unlock()
	switch {
	case !ok:
		c.end(&in, nil)
	case readErr != nil && !errors.Is(readErr, os.ErrDeadlineExceeded):
		c.lost(&in, readErr)
	case in.Len() == 0 || c.took(&in, c.server.cfg.Now()):
		c.receive(in, quiet)
	}
}

// receive reads the connection until it ends, or until it is parked because its client is quiet.
func (c *conn) receive(in link.Input, quiet bool) {
	for fills := 0; ; fills++ {
		if quiet && in.Len() == 0 {
			// The handshake may have needed more than the first buffer, and charged it.
			if c.Drop(&in); c.Park() {
				return
			}
		}
		if fills == maxFills {
			fills = 0
			c.server.conns.turns.yield()
		}
		if readErr := in.Fill(&c.Link); readErr != nil {
			c.lost(&in, readErr)
			return
		}
		if in.Waited() { // others went on
			fills = 0
		}
		now := c.server.cfg.Now()
		quiet = now.Sub(c.LastBytes()) > quietTime
		if !c.took(&in, now) {
			return
		}
	}
}

// took handles the input, whose last bytes came now. It returns false if the connection has ended.
func (c *conn) took(in *link.Input, now time.Time) bool {
	c.NoteHeard(now)
	ok, err := c.handle(in, now)
	if ok = ok && err == nil; !ok {
		c.end(in, err)
	}
	return ok
}

// handle handles all whole frames of the input, whose last bytes came now, and sends the replies.
// handle waits if the client is too fast. After each burst that used its share, other connections
// go on first: without that, a client that always has the next request ready would keep its
// processor for as long as the scheduler lets it.
func (c *conn) handle(in *link.Input, now time.Time) (ok bool, err error) {
	defer c.SetHandling(false)
	turns, turn := c.server.conns.turns, false
	lone := c.lone()
	for ; ; now = c.server.cfg.Now() {
		c.SetHandling(true) // unless ReadAhead has unset it, it is
		if !c.awaitAudit(in) {
			return false, nil
		}
		p, err := c.burst(in, now, turn)
		if turn {
			turns.end()
		}
		c.server.conns.relieve()
		switch { // c.Flush may wait for the client
		case in.Len() == 0:
			c.Drop(in)
		case p != pauseInput, c.server.conns.links.Many():
			c.HoldInput(in)
		}
		if c.proposed {
			c.proposed = false
			c.FlushAsync()
			c.server.node.Drive(lone)
		}
		switch {
		case !c.InWindow():
			c.Flush()
		case p.inWindow:
			c.FlushAsync()
		default:
			c.LeaveWindow()
			c.Flush()
		}
		switch {
		case err != nil:
			if errors.Is(err, bounds.ErrLargeRequest) {
				c.server.meter.Count(meter.LargeRejected)
			}
			return false, err
		case p == pauseInput:
			return true, nil
		case !p.await(c, in):
			return false, nil
		}
		if turn = p.takesTurn; turn {
			turns.begin()
		}
	}
}

// burst handles requests while it holds the tree's lock for reading. Replies to reads are on the
// output before the lock is released (V3). turn reports whether the connection has a turn for an
// expensive request.
func (c *conn) burst(in *link.Input, now time.Time, turn bool) (p pause, err error) {
	if c.server.conns.links.Many() {
		defer c.server.conns.turns.burst()()
	}
	var replies int64
	done := c.locked(func(t *meter.BatchStats) {
		p, err = c.requests(in, now, turn, t)
		_, replies = t.Counts()
	})
	if replies > 0 {
		c.Lock()
		c.stats.Replied(max(0, done.Sub(now)), replies, now)
		c.Unlock()
	}
	return p, err
}

// requests is burst with the locks held.
func (c *conn) requests(in *link.Input, now time.Time, turn bool, t *meter.BatchStats) (pause, error) {
	s, begin := c.server, in.At()
	c.stats.Rhythm.Heard(now.Sub(c.stats.Since))
	charged := !s.state.budgets.Empty() || c.spending != spending{}
	defer func() {
		c.startBarrier()
		c.Recount(false)
		n, _ := t.Counts()
		c.stats.Received += n
		t.Bytes(in.At() - begin)
	}()
	for i := range burstFrames {
		if i%prefetchWindow == 0 {
			s.state.prefetchInput(in, s.cfg.MaxBuffer)
		}
		switch {
		case c.Ending():
			return pauseClosed, nil
		case s.conns.lastAnswers.Load():
			return pauseEnd, nil
		case !c.refusedUntil.IsZero() && !c.HasPlace(): // others would wait for the place
			return pauseRefused, nil
		case c.queue.full(&s.conns.links.Memory):
			return pauseQueue, nil
		case c.Out.Len() >= link.Burst:
			return pauseOutput, nil
		}
		at := in.At()
		frame, err := in.Frame(s.cfg.MaxBuffer)
		if err != nil {
			return pauseClosed, fmt.Errorf("%w (jute.maxbuffer)", err)
		}
		if frame == nil {
			p, moved := c.refuseGrowing(in)
			begin += moved
			return p, s.writes.CheckLarge(in.Announced())
		}
		if err := s.writes.CheckLarge(len(frame)); err != nil {
			return pauseClosed, err
		}
		r, err := decodeRequest(frame)
		if err != nil {
			return pauseClosed, err
		}
		r.now, r.stats, r.turn, r.leftOut, in.LeftOut = now, t, turn, in.LeftOut, 0
		begin -= r.leftOut
		var p pause
		if charged {
			p, err = c.chargedRequest(&r)
		} else {
			p, err = c.request(&r)
		}
		if err != nil {
			return pauseClosed, err
		}
		if p != pauseNone {
			if p.again {
				in.Back(at)
				in.LeftOut = r.leftOut
				begin += r.leftOut
			}
			return p, nil
		}
	}
	return pauseOutput, nil
}

type received struct {
	proto.RequestHeader
	body  []byte    // the rest of the frame, in the buffer of the input
	now   time.Time // when the request came
	stats *meter.BatchStats
	turn  bool // the connection has a turn for an expensive request
	// leftOut is how many bytes of data the body lacks, as the state was full: see refuseGrowing.
	leftOut int
}

func decodeRequest(frame []byte) (r received, err error) {
	d := jute.NewDecoder(frame)
	r.Decode(&d)
	if d.Err() != nil {
		return r, fmt.Errorf("request of %d bytes is shorter than its header", len(frame))
	}
	r.body = d.Rest()
	return r, nil
}

// decoder returns a decoder of the body, whose strings share the buffer of the input.
func (r *received) decoder() jute.Decoder {
	d := jute.NewDecoder(r.body)
	d.AliasStrings()
	return d
}

// request routes one request. If it returns a pause with again set, the request must be routed
// again after the pause.
func (c *conn) request(r *received) (p pause, err error) {
	if !c.Admitted(r.Op, c.server.live.Load().Auth.Required) {
		return c.refuseAnonymous(r), nil
	}
	if c.reconfiging != nil {
		if p, done := c.duringReconfig(r); done {
			return p, nil
		}
	}
	if c.local {
		if p, done := c.localRequest(r); done {
			if p != pauseUpgrade {
				c.noteRequest(r)
			}
			return p, nil
		}
	}
	switch r.Op.Info().Class {
	case proto.ClassWrite:
		if c.queue.holdsWrites() {
			return pauseSync, nil
		}
		if p := c.write(r); p != pauseNone {
			return p, nil
		}
		if r.Op == proto.OpCloseSession {
			p = pauseEnd
		}
	case proto.ClassRead:
		if !isList(r.Op) || !c.server.state.longReply(r.Op, r.body) {
			c.readInTurn(r)
		} else if p = c.bulkRead(r); p != pauseOutput {
			return p, nil
		}
	case proto.ClassBulkRead:
		if p = c.bulkRead(r); p != pauseOutput {
			return p, nil
		}
	case proto.ClassSASL:
		if p, err = c.answerSASL(r); err != nil || p == pauseSASL {
			return p, err
		}
	case proto.ClassSync:
		c.sync(r)
	case proto.ClassReconfig:
		if c.queue.len() > 0 {
			return pauseAlone, nil
		}
		if code := c.reconfig(r); code != proto.OK {
			c.refuseRequest(r, code)
		} else if p := c.write(r); p != pauseNone {
			return p, nil
		} else {
			c.reconfiging, _ = c.queue.head().(*clientWrite) // nil if the write was refused
		}
	case proto.ClassAuth:
		p = c.answerAuth(r)
	case proto.ClassInternal:
		// Only the server's own collector may send this op: with it, a client could delete any
		// childless znode, whatever the ACL.
		c.refuseRequest(r, proto.ErrBadArguments)
	default:
		c.logger().Debug("connection closes: unknown op", "op", r.Op.String())
		c.push(&queuedStatus{
			op: proto.OpError, xid: r.Xid, code: proto.ErrUnimplemented, zxid: proto.NoZxid, closes: true, received: r.now,
		}, r.stats)
		p = pauseEnd
	}
	c.noteRequest(r)
	return p, nil
}

func (c *conn) noteRequest(r *received) {
	if c.as == nil || !c.as.Unsampled {
		c.server.meter.Hot.Sample(&c.stats.Sampling, c.session, r.Op, r.body)
	}
	r.stats.Received()
	c.stats.Rhythm.Request(r.Op == proto.OpPing, r.now.Sub(c.stats.Since))
	if r.Op != proto.OpAuth {
		c.stats.LastOp = r.Op
	}
	if r.Xid >= 0 { // a ping does not change LastXid, as in ZooKeeper: go-zookeeper's FLWCons depends on that
		c.stats.LastXid = r.Xid
	}
}

// write proposes a write and queues it, or queues its refusal. With a pause it has done nothing.
func (c *conn) write(r *received) pause {
	s, body := c.server, r.body
	switch {
	case c.MustEnter():
		return pauseWindow
	case bounds.IsBig(r.Op, len(body)) && !r.turn: // Refusal takes some time
		return pauseTurn
	case !s.writes.Try(len(body)):
		return pauseWrites
	}
	place := c.KeepPlace() // Release gives it back
	if !c.waitsSince.IsZero() && c.refuseThrottled(r) {
		s.writes.Release(len(body), place)
		return pauseNone
	}
	w := freeWrites.Get().(*clientWrite)
	w.clientRequest = clientRequest{conn: c, xid: r.Xid, heard: c.LastBytes(), received: r.now}
	w.req, w.place = c.writeRequest(r), place
	code, why := s.state.tree.Refusal(&w.req, s.cfg.MaxBuffer)
	switch {
	case code != proto.OK:
		s.meter.Count(meter.ExpensiveRefused)
		c.logger().Warn("expensive request refused", "session", c.session.String(), "reason", printable.Shortened(why, maxLoggedReason))
	case r.leftOut > 0 || c.queue.len() == 0 && s.state.tree.RefusesGrowth(&w.req, 0):
		code = proto.ErrQuotaExceeded
		s.meter.Count(meter.GrowthRefused)
		if r.leftOut == 0 { // otherwise refuseGrowing has charged it
			c.payRefusal(len(body))
		}
	}
	if code != proto.OK {
		s.writes.Release(len(body), place)
		c.refuseRequest(r, code)
		w.recycle()
		return pauseNone
	}
	w.record = w.req.Append(slices.Grow(w.record, len(body)+64))
	w.req.Body = w.record[len(w.record)-len(body):] // the record ends with the body; the frame's buffer is not kept
	c.queue.push(w)
	s.node.Enqueue(w.record, w)
	c.proposed = true
	return pauseNone
}

// readInTurn answers a read at once, or queues it if a request before it is unfinished (V2).
// readInTurn returns false if the read is answered in part, and must be called again with it.
func (c *conn) readInTurn(r *received) bool {
	if c.server.cfg.LinearizableReads && r.Op != proto.OpPing && !c.readOnly {
		if c.barrier == nil {
			c.barrier = new(readBarrier)
		}
	} else if c.queue.len() == 0 {
		c.Out.Borrow()
		at := c.Out.Len()
		if !c.read(r.stats, r.Op, r.Xid, r.body, c.IDs) {
			return false
		}
		r.stats.Answered(r.Op, r.now, false, c.Out.Len()-at)
		if c.server.meter.Slow.Enabled() {
			c.noteIfSlow(r.stats, r.Op, r.Xid, r.body, c.LastBytes(), r.now)
		}
		c.stats.Sent++
		c.stats.LastZxid = max(c.stats.LastZxid, c.server.state.tree.LastZxid())
		return true
	}
	c.queue.push(&queuedRead{
		op: r.Op, xid: r.Xid, body: bytes.Clone(r.body), ids: c.IDs, barrier: c.barrier, heard: c.LastBytes(), received: r.now,
	})
	return true
}

// startBarrier starts the barrier that all reads of a burst share. c is locked.
func (c *conn) startBarrier() {
	b := c.barrier
	if c.barrier = nil; b != nil {
		c.whenCurrent(func() { b.passed = true })
	}
}

// sync answers when this server has applied everything that was committed when the request came.
func (c *conn) sync(r *received) {
	d := r.decoder()
	var path proto.PathRequest
	path.Decode(&d)
	if d.Err() != nil {
		c.status(r, proto.ErrMarshallingError, zxidLast, false)
		return
	}
	q := &queuedStatus{
		op: r.Op, xid: r.Xid, zxid: zxidLast, body: path.Append(nil), pending: true, heard: c.LastBytes(), received: r.now,
	}
	c.queue.push(q)
	c.server.meter.SyncsWaiting.Add(1)
	c.whenCurrent(func() {
		c.server.meter.SyncsWaiting.Add(-1)
		q.pending = false
	})
}

// whenCurrent calls mark, and answers the requests that this finishes, when this server has applied
// everything that is committed anywhere now. mark is called with the tree's lock held for reading,
// and with c locked.
func (c *conn) whenCurrent(mark func()) {
	c.server.node.Read(func() {
		c.locked(func(t *meter.BatchStats) {
			mark()
			c.drainInApply(t) // this is the goroutine of Apply
		})
		c.server.conns.relieve()
		c.FlushAsync()
	})
}

// refuseRequest answers a write that is not applied, and records it in the audit log.
func (c *conn) refuseRequest(r *received, code proto.ErrCode) {
	c.server.trail.Refused(c, r.RequestHeader, r.body, code, r.now)
	c.status(r, code, zxidLast, false)
}

func (c *conn) status(r *received, code proto.ErrCode, zxid proto.Zxid, closes bool) {
	c.push(&queuedStatus{op: r.Op, xid: r.Xid, code: code, zxid: zxid, closes: closes, received: r.now}, r.stats)
}

// push queues a reply that is known, and makes it if none is before it.
func (c *conn) push(q *queuedStatus, t *meter.BatchStats) {
	c.queue.push(q)
	if c.queue.len() == 1 {
		c.drain(t)
	}
}
