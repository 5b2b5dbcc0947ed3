package server

import (
	"io"
	"time"

	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
)

// pause is the reason why a burst of requests ended, and the work before the next burst. nil is
// pauseNone: the burst goes on.
type pause *pauseKind

type pauseKind struct {
	again     bool // the request that comes next was not handled: it is routed again after the pause
	takesTurn bool // the next burst has a turn for an expensive request
	// inWindow: a long write stays in the window. Other pauses may depend on what the client does,
	// for which all other long writes would wait.
	inWindow bool
	// await waits until the next burst may begin, without locks. It returns false if there is none.
	// The input that is left is charged (HoldInput).
	await func(c *conn, in *link.Input) bool
}

var pauseNone pause

// pauseInput: no whole frame is left, so the connection is read.
var pauseInput pause = &pauseKind{}

// pauseOutput: enough was done under one lock.
var pauseOutput pause = &pauseKind{await: func(c *conn, _ *link.Input) bool {
	c.server.conns.turns.yield()
	return true
}}

// pauseQueue: the connection's queue is full.
var pauseQueue pause = &pauseKind{await: func(c *conn, _ *link.Input) bool {
	return c.awaitQueue(func() bool { return c.queue.full(&c.server.conns.links.Memory) })
}}

// pauseAlone: the next request waits until the queue is empty.
var pauseAlone pause = &pauseKind{again: true, await: func(c *conn, _ *link.Input) bool {
	return c.awaitQueue(func() bool { return c.queue.len() > 0 })
}}

// pauseSync: the next request, a write, waits for the requests before it; see queue.holdsWrites.
var pauseSync pause = &pauseKind{again: true, await: func(c *conn, _ *link.Input) bool { return c.awaitQueue(c.queue.holdsWrites) }}

// pauseTurn: the next request is expensive and needs a turn; or it is answered in part, and the
// rest needs another turn.
var pauseTurn pause = &pauseKind{again: true, takesTurn: true, inWindow: true, await: func(*conn, *link.Input) bool { return true }}

// pauseWrites: too many writes are under way in the server.
var pauseWrites pause = &pauseKind{again: true, inWindow: true, await: func(c *conn, _ *link.Input) bool { return c.awaitWrites() }}

// pauseWindow: the next request is a long write, and those under way delay all others.
var pauseWindow pause = &pauseKind{again: true, await: func(c *conn, in *link.Input) bool {
	r, _ := decodeRequest(in.Bytes()[4 : 4+in.Announced()]) // it was decoded before
	entered := c.EnterWindow(bounds.IsBig(r.Op, len(r.body)))
	if !entered {
		c.noteBroken(io.EOF)
	}
	return entered
}}

// pauseBudget: the next request is over a budget. Pings that come meanwhile are the next requests.
var pauseBudget pause = &pauseKind{again: true, await: func(c *conn, in *link.Input) bool {
	in.ReadAhead(&c.Link, c.spending.until, pingFrame)
	return true
}}

// pauseRefused: the full state has refused a request of the client.
var pauseRefused pause = &pauseKind{await: func(c *conn, _ *link.Input) bool {
	c.Lock()
	until := c.refusedUntil
	c.refusedUntil = time.Time{}
	c.Unlock()
	c.Pause(until)
	return true
}}

// payRefusal makes the client wait for a request of that many bytes, which the full state refuses,
// before its connection is read again. c is locked.
func (c *conn) payRefusal(bytes int) {
	now, timeout := time.Now(), time.Duration(c.timeoutMs)*time.Millisecond
	c.refusedUntil = now.Add(c.server.refusals.Charge(c.Host(), bytes, timeout, now))
}

// pauseSASL: the next request is a token for the SASL mechanism.
var pauseSASL pause = &pauseKind{again: true, await: func(c *conn, in *link.Input) bool {
	c.stepSASL(in)
	return true
}}

// pauseUpgrade: the next request creates an ephemeral znode, and the session is local.
var pauseUpgrade pause = &pauseKind{again: true, await: func(c *conn, _ *link.Input) bool { return c.upgrade() }}

// pauseEnd: the next reply is the last.
var pauseEnd pause = &pauseKind{await: func(c *conn, in *link.Input) bool {
	c.Drop(in)
	c.AwaitClosed() // nothing can be done for the session any more, so the connection is not read
	return false
}}

// pauseClosed: the connection is closed or closing.
var pauseClosed pause = &pauseKind{await: func(*conn, *link.Input) bool { return false }}

// awaitQueue waits until inTheWay returns false or the connection ends, and returns true. inTheWay
// is called with Link.mu held: at once, and after each call of Wake.
func (c *conn) awaitQueue(inTheWay func() bool) bool {
	c.Lock()
	defer c.Unlock()
	c.Await(inTheWay)
	return true
}

// awaitWrites waits until another write may be accepted. It returns false if the write that waits
// is stale, and must be dropped with its connection.
func (c *conn) awaitWrites() bool {
	s := c.server
	if c.waitsSince.IsZero() {
		c.waitsSince = time.Now()
	}
	s.meter.Count(meter.ThrottleWaits) // before the wait, so that an operator sees why nothing moves
	cfg := &s.live.Load().RequestThrottle
	for free := cfg.Limit == 0 && s.writes.Wait(0); !free; {
		free = s.writes.Wait(cfg.StallTime)
		c.Lock()
		closed, timeout := c.ClosedLocked(), time.Duration(c.timeoutMs)*time.Millisecond
		c.Unlock()
		if closed || cfg.StaleLatency && !cfg.KeepStale && time.Since(c.waitsSince) > timeout {
			s.meter.Count(meter.StaleDropped)
			if !closed {
				c.closeFor("its write waited for too long (requestStaleLatencyCheck)")
				c.logger().Warn("connection closed: its write waited longer for others than the session's timeout "+
					"(requestStaleLatencyCheck)", "session", c.session.String())
			}
			return false
		}
	}
	return true
}
