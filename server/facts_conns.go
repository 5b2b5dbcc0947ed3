package server

import (
	"cmp"
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/watch"
)

// Connection is what a server knows of a client's connection, at one moment.
type Connection struct {
	Remote         string // the client's address
	Since          time.Time
	Session        int64         // 0: none yet
	Timeout        time.Duration // of the session
	Queued         int           // requests that wait
	Writing        bool          // replies wait for the client to read
	Received, Sent int64         // packets
	LastOp         string        // of the last reply, as the cons word abbreviates it; NA: none, or one without a name
	LastXid        int32         // the client's number of that request; negative: it has none
	LastZxid       int64         // that reply's; -1: none
	LastReply      time.Time     // zero: none
	LastLatency    time.Duration
	MinMs, MaxMs   int64 // latencies of all replies
	AvgMs          float64

	id      watch.ConnID
	expires time.Time // when it is closed if nothing more comes
}

// Connections returns the connections of clients, the oldest first. The caller owns the result.
func (s *Server) Connections() []Connection {
	conns := s.connections()
	all := make([]Connection, 0, len(conns))
	for _, c := range conns {
		all = append(all, c.facts())
	}
	slices.SortFunc(all, func(a, b Connection) int { return cmp.Compare(a.id, b.id) })
	return all
}

// InterestOps returns what the server waits for on the connection, as java.nio counts it: 1 to read, 4 to write.
func (c *Connection) InterestOps() int {
	if c.Writing {
		return 1 | 4
	}
	return 1
}

func (c *conn) facts() Connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := Connection{
		id: c.id, Remote: c.nc.RemoteAddr().String(), Queued: c.queue.len(),
		Writing:  len(c.out) > 0, // more waits behind what is being written
		Received: c.receivedPackets, Sent: c.sentPackets, Since: c.since,
		Session: int64(c.session), Timeout: time.Duration(c.timeoutMs) * time.Millisecond,
		LastOp: cmp.Or(c.lastOp.Info().Abbrev, "NA"), LastXid: c.lastXid, LastZxid: int64(c.lastZxid), LastReply: c.lastTime, LastLatency: c.lastTook,
	}
	f.MinMs, f.AvgMs, f.MaxMs = c.latency.read()
	timeout := f.Timeout
	if c.session == 0 {
		timeout = c.server.live.Load().HandshakeTimeout
	}
	f.expires = c.heard().Add(timeout)
	return f
}

// ResetConnectionStats forgets what the connections have counted, like the crst word.
func (s *Server) ResetConnectionStats() {
	for _, c := range s.connections() {
		c.mu.Lock()
		c.receivedPackets, c.sentPackets = 0, 0
		c.lastOp, c.lastXid, c.lastZxid = proto.OpNotification, -1, proto.NoZxid
		c.lastTime, c.lastTook = time.Time{}, 0
		c.latency = latency{}
		c.mu.Unlock()
	}
}

// ResetStats forgets what the server has counted and measured, like the srst word.
func (s *Server) ResetStats() {
	s.stats.reset()
	if s.accepting.Load() {
		counts := s.node.Status().Counts
		s.countsAtReset.Store(&counts)
	}
}
