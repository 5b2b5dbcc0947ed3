package server

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/identity"
	"github.com/gozkd/gozkd/server/internal/link"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// conn is a client's connection. A single goroutine reads the connection, or none while the client
// is quiet (link.Link.Park); the goroutine of Apply also makes replies.
type conn struct {
	id     watch.ConnID
	server *Server
	addr   string  // without the port
	as     *Caller // of DialAs; nil: the client came by itself

	link.Link
	port portKind

	waitsSince time.Time // owned by serve: when the next write began to wait for others; zero: it does not

	spending spending // owned by serve
	proposed bool     // owned by serve: the burst enqueued writes
	bursts   uint64   // owned by serve: connTable.bursts when the client came or last sent something

	touched touched         // owned by the goroutine of Apply
	removed bool            // from connTable; guarded by connTable.mu
	cost    int64           // bytes of memory at rest; guarded by connTable.mu
	bound   proto.SessionID // the session under which bySession lists, or listed, it; guarded by connTable.mu

	// Link.Lock guards all below.

	identity.Client
	known   datatree.Decisions // about Client
	skipACL bool               // no ACL is checked
	replays replays
	attachment

	queue        queue
	refusedUntil time.Time    // the full state refused a request, and pauseRefused is to come; zero: neither
	reconfiging  *clientWrite // a reconfig that waits for its reply; nil: none
	barrier      *readBarrier // of the reads of this burst; nil: none waits

	stats  meter.ConnStats
	ending *connEnd // nil: the connection has not ended
}

// caller returns the client with its identities of some time. The connection stays locked while the
// result is used.
func (c *conn) caller(ids []proto.ID) datatree.Caller {
	return datatree.Caller{IDs: ids, SkipACL: c.skipACL, Known: &c.known}
}

type attachment struct {
	session   proto.SessionID // 0: none yet
	epoch     proto.Zxid      // of a global session, see datatree.SessionInfo
	timeoutMs int32
	local     bool // only this server knows the session
	// cannotUpgrade: the full state has no room for the local session, so the next request, which
	// needs a global one, is refused.
	cannotUpgrade bool
	readOnly      bool // the session was opened, or resumed, while this server was read-only; then it is local
}

// touched is why a connection has output to be sent at the end of a call of Apply.
type touched uint8

const (
	touchedNot touched = iota
	touchedByEvent
	touchedByReply // and maybe by an event before
)

func newConn(s *Server, nc net.Conn, kind portKind, addr string) *conn {
	now := s.cfg.Now()
	c := &conn{
		server: s, addr: addr, port: kind, skipACL: s.cfg.SkipACL,
		stats:  meter.ConnStats{Since: now, LastReply: now, LastXid: -1},
		Client: identity.NewClient(addr), bursts: s.conns.bursts.Load(),
	}
	c.Link.Init(&s.conns.links, c, nc)
	c.NoteHeard(now)
	return c
}

// locked calls f with the tree's lock held for reading, and with c locked, and then records what f
// has collected. It returns the time after f, and reads it without the locks: Config.Now may wait
// in tests.
func (c *conn) locked(f func(t *meter.BatchStats)) time.Time {
	s, t := c.server, c.server.meter.Batch()
	s.state.RLock()
	c.Lock()
	f(t)
	c.Unlock()
	s.state.RUnlock()
	now := s.cfg.Now()
	s.meter.Done(t, now)
	return now
}

func (c *conn) Backlog() int64 { return c.queue.held() }

func (c *conn) Resume() { c.receive(link.Input{}, false) }

// logger is made when there is something to log: an idle connection holds none.
func (c *conn) logger() hclog.Logger {
	return c.server.cfg.Logger.With("peer", c.NetConn().RemoteAddr().String())
}

// encrypted reports whether the client's connection has TLS: here, below Config.Listener, or in the
// program that called DialAs. c is locked, or the handshake is over.
func (c *conn) encrypted() bool {
	_, below := c.NetConn().(interface{ ConnectionState() tls.ConnectionState })
	return below || c.Secured() || c.as != nil && c.as.TLS
}

// AuditEvent implements trail.Client. c is locked, or Apply calls.
func (c *conn) AuditEvent(ids []proto.ID) audit.Event {
	origin := ""
	if c.as != nil {
		origin = c.as.Origin
	}
	if ids == nil {
		ids = c.IDs
	}
	return audit.Event{
		Session: c.session, IDs: proto.ShownIDs(ids), Client: c.NetConn().RemoteAddr().String(), Origin: origin,
		TLS: c.encrypted(),
	}
}

// awaitAudit waits until the audit log has room, if it asks for that. It returns false if the
// connection closes or the server stops. A client that waits counts as heard.
func (c *conn) awaitAudit(in *link.Input) bool {
	if !c.server.trail.Full() {
		return true
	}
	c.SetHandling(true)
	c.HoldInput(in)
	return c.server.trail.Await(c.IsClosed, c.server.life.Stopping())
}

// boundOutput charges the output, and closes the connection if too much waits for its client. c
// is locked, and the caller relieves the budget afterwards.
func (c *conn) boundOutput() {
	c.Recount(false)
	if c.Overdue(maxOutput) {
		c.logger().Warn("connection closed: the client does not read",
			"session", c.session.String(), "output_bytes", c.Out.Len())
		c.closeLocked("the client did not read")
	}
}

// lone begins a burst, and reports whether this goroutine may wait for the disk: no other client
// has sent a request since this one came or sent its last, and further requests of this one have
// room in its socket.
func (c *conn) lone() bool {
	last := c.bursts
	c.bursts = c.server.conns.bursts.Add(1)
	return c.bursts == last+1 && c.IsSocket()
}

// lost ends a connection that cannot be read.
func (c *conn) lost(in *link.Input, err error) {
	c.Drop(in)
	c.noteBroken(err)
	if !errors.Is(err, net.ErrClosed) {
		c.server.meter.Count(meter.ConnectionsBroken)
		if !errors.Is(err, io.EOF) {
			c.logger().Debug("connection lost", "error", err)
		}
	}
	c.server.forget(c, false)
}

// end ends a connection that handles no further request. err is the reason if one was malformed.
func (c *conn) end(in *link.Input, err error) {
	if err != nil {
		c.Lock()
		c.noteEnd(facts.ServerSide, "bad request: "+err.Error())
		c.Unlock()
		c.logger().Warn("connection closed: bad request", "reason", err)
	} else {
		c.AwaitFlushed()
	}
	c.Drop(in)
	c.server.forget(c, true)
}
