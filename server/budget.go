package server

import (
	"cmp"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/server/internal/bounds"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

const (
	// uncounted is how much more than what is charged a connection may hold while its requests are
	// handled or a batch is applied: small requests do not touch the budget's shared counters. Once
	// the server waits for the client, everything is charged.
	uncounted = 16 << 10
	// tightQueue and tightQueueBytes are how much a connection may have queued while the queues of
	// all connections hold more than half of the budget.
	tightQueue      = 64
	tightQueueBytes = 16 << 10
	// queuedOverhead is about the size of a queued request without its body.
	queuedOverhead = 256
)

// account is what a connection has charged to the budget. It is written with conn.mu held.
type account struct {
	// unread counts what only the client can free: output that it has not read, except data that
	// the output shares, and the part of a frame that it has not finished. Read without conn.mu.
	unread atomic.Int64
	// since is when the server began to wait for the client, in nanoseconds since
	// Server.startedMono, or 0. It begins anew when the client has taken all output that was being
	// written. Read without conn.mu.
	since atomic.Int64
	// queued counts what the server frees when it answers: requests, and input after them.
	queued int64

	// shared are the references to shared data that are charged: first those of the output that is
	// being written, then those on conn.out. writingShared is the number of the former.
	shared        []*bounds.Blob
	writingShared int

	writing int  // bytes of memory that are being written to the socket, and are no longer in conn.out
	waited  bool // the socket did not take them at once
	input   int  // bytes of the input buffer while the reader waits; only the reader writes it
	partial bool // input ends with a part of a frame whose rest the client must send; as input
}

// charged reports whether anything is charged. conn.mu is held.
func (m *account) charged() bool { return m.unread.Load() != 0 || m.queued != 0 || len(m.shared) > 0 }

// recount charges what c holds now. Unless exact is set, nothing happens if c holds little more
// than was charged. c.mu is held. The caller must call Server.relieve after releasing c.mu.
func (c *conn) recount(exact bool) {
	m, b := &c.memory, &c.server.conns.budget
	var unread, queued int64
	grown := false
	if c.closed {
		c.releaseShared(len(m.shared))
	} else {
		grown = len(c.out.shared) > 0 && c.holdShared()
		unread = int64(m.writing)
		switch {
		case exact || c.flushing && c.out.len() >= uncounted:
			unread += int64(c.out.held())
		case c.out.len() >= uncounted: // written soon, and a few bytes are often in a large buffer of the pool
			unread += int64(len(c.out.buf) - c.out.sent)
		}
		queued = int64(c.queue.totalBytes + queuedOverhead*c.queue.len())
		if c.queue.partial != nil {
			queued += int64(c.queue.partial.out.held() + c.queue.partial.out.nBytes)
		}
		if m.partial {
			unread += int64(m.input)
		} else {
			queued += int64(m.input)
		}
	}
	waiting := unread != 0 || len(m.shared) > 0
	if waiting && m.since.Load() == 0 {
		m.since.Store(max(1, int64(time.Since(c.server.startedMono))))
	}
	was := m.unread.Load()
	if !exact && !grown && unread < was+uncounted && queued < m.queued+uncounted {
		return
	}
	if !waiting {
		m.since.Store(0)
	}
	if unread != was {
		m.unread.Store(unread)
		b.Unread.Add(unread - was)
	}
	if queued != m.queued {
		b.Queued.Add(queued - m.queued)
		m.queued = queued
	}
}

// awaitClient charges what c holds before a goroutine writes the rest of o, which may wait for the
// client. c.mu is not held.
func (c *conn) awaitClient(o *output) {
	c.mu.Lock()
	c.memory.waited = c.raw != nil // without a socket nobody knows, and most writes do not wait
	if c.memory.waited || o.len() >= uncounted {
		c.memory.writing = o.held()
	}
	c.recount(c.memory.waited)
	c.mu.Unlock()
	c.server.relieve()
}

// holdInput charges n bytes of input before the connection's reader waits. partial: it waits for
// the rest of a frame. Only the reader calls holdInput.
func (c *conn) holdInput(n int, partial bool) {
	if m := &c.memory; m.input != n || m.partial != partial {
		c.mu.Lock()
		m.input, m.partial = n, partial
		c.recount(true)
		c.mu.Unlock()
		c.server.relieve()
	}
}

// crowded reports whether the connection must not be read until requests in its queue are answered.
// c.mu is held.
func (c *conn) crowded() bool {
	q := &c.queue
	return q.crowded() || (q.len() >= tightQueue || q.totalBytes >= tightQueueBytes) && c.server.conns.budget.QueuesTight()
}

// relieve disconnects the slowest readers if the budget is exceeded, and those with most watches if
// the memory of watches is. The caller holds no conn.mu.
func (s *Server) relieve() {
	if s.conns.budget.UnreadExceeded() {
		s.evict()
	}
	if s.watches.Bytes() > s.live.Load().WatchMemory {
		s.evictWatchers()
	}
}

// evictWatchers closes connections until an eighth of the memory of watches is free: first those
// from the address whose watches take most, so that a client with many connections is not spared at
// the expense of a client with many watches on a single connection.
func (s *Server) evictWatchers() {
	limit := s.live.Load().WatchMemory
	s.conns.evicting.Lock()
	defer s.conns.evicting.Unlock()
	if s.watches.Bytes() <= limit { // another goroutine was here
		return
	}
	type watcher struct {
		watch.Held
		c *conn // nil: it is ending
	}
	var all []watcher
	sum := map[string]int64{} // by address
	for _, w := range s.watches.Held() {
		c := s.conns.get(w.Conn)
		if c != nil {
			sum[c.addr] += w.Bytes
		}
		all = append(all, watcher{w, c})
	}
	rank := func(w watcher) int64 {
		if w.c == nil {
			return math.MaxInt64
		}
		return sum[w.c.addr]
	}
	slices.SortStableFunc(all, func(x, y watcher) int { return cmp.Or(cmp.Compare(rank(y), rank(x)), cmp.Compare(y.Bytes, x.Bytes)) })
	for _, w := range all {
		if s.watches.Bytes() <= limit-limit/8 {
			return
		}
		if w.c != nil {
			w.c.close()
			s.meter.Count(meter.TooManyWatches)
			w.c.logger().Warn("connection closed: the watches of all clients exceed their memory, and its address has most of them",
				"bytes", w.Bytes, "of_address_bytes", sum[w.c.addr], "limit_bytes", limit)
		}
		s.watches.RemoveConn(w.Conn) // at once: its reader may take a while to end
	}
}

// evict closes connections until an eighth of the budget is free, so that the search for the
// slowest is worth its cost. The connection with the largest product of bytes and time goes first:
// a client that reads holds even a large reply only for moments.
func (s *Server) evict() {
	b := &s.conns.budget
	s.conns.evicting.Lock()
	defer s.conns.evicting.Unlock()
	if !b.UnreadExceeded() { // another goroutine was here
		return
	}
	type candidate struct {
		c     *conn
		bytes int64
		rank  float64
		waits time.Duration
	}
	now := max(1, int64(time.Since(s.startedMono)))
	var slow []candidate
	for _, c := range s.conns.all() {
		c.mu.Lock()
		bytes, since := c.memory.unread.Load()+b.Portion(c.memory.shared), cmp.Or(c.memory.since.Load(), now)
		c.mu.Unlock()
		if bytes > 0 {
			waits := time.Duration(max(0, now-since))
			slow = append(slow, candidate{c, bytes, float64(bytes) * float64(waits+time.Millisecond), waits})
		}
	}
	slices.SortFunc(slow, func(x, y candidate) int { return cmp.Compare(y.rank, x.rank) })
	limit := b.Limit.Load()
	for i := range slow {
		if b.Unread.Load() <= limit-limit/8 {
			return
		}
		v := &slow[i]
		if !v.c.closeSlow() {
			continue
		}
		s.meter.Count(meter.Evicted)
		v.c.logger().Warn("connection closed: the unread output and unfinished requests of all clients exceed their memory, and this client is the slowest",
			"unread_bytes", v.bytes, "waiting_ms", v.waits.Milliseconds(), "limit_bytes", limit)
	}
}

// closeSlow closes the connection unless its socket takes all output now, which it has not been
// offered yet if Apply made it a moment ago.
func (c *conn) closeSlow() (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed || c.raw != nil && c.flushing && !c.memory.waited: // it is being offered
		return false
	case c.raw != nil && !c.flushing:
		c.writeOut(true)
	}
	if c.closed || c.memory.unread.Load() == 0 && len(c.memory.shared) == 0 {
		return false
	}
	c.closeLocked()
	return true
}

// holdShared charges the shared data on c.out that is not charged yet, and reports whether there
// was any. c.mu is held.
func (c *conn) holdShared() bool {
	m := &c.memory
	held := len(m.shared) - m.writingShared // of those on c.out
	if held >= len(c.out.shared) {
		return false
	}
	for _, s := range c.out.shared[held:] {
		m.shared = append(m.shared, c.server.conns.budget.Hold(s.data))
	}
	return true
}

// releaseShared gives up the n oldest references, or all if there are fewer. c.mu is held.
func (c *conn) releaseShared(n int) {
	m := &c.memory
	if n = min(n, len(m.shared)); n == 0 {
		return
	}
	c.server.conns.budget.Release(m.shared[:n])
	clear(m.shared[:n])
	if m.shared = m.shared[n:]; len(m.shared) == 0 {
		m.shared = nil
	}
}
