package server

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/rawio"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// conn is a client's connection. A single goroutine reads the connection; the goroutine of Apply
// also makes replies.
type conn struct {
	id     watch.ConnID
	server *Server
	addr   string // without the port

	transport
	reading

	touched touched         // owned by the goroutine of Apply
	removed bool            // from connTable; guarded by connTable.mu
	bound   proto.SessionID // the session under which bySession lists, or listed, it; guarded by connTable.mu

	mu   sync.Mutex // guards all below
	room sync.Cond  // signalled when queue or output shrink, the handshake ends, or the connection closes

	identity
	attachment

	queue       queue
	reconfiging *clientWrite // a reconfig that waits for its reply; nil: none
	barrier     *readBarrier // of the reads of this burst; nil: none waits

	out        output
	flushing   bool // a goroutine writes to the socket
	closeAfter bool // close when out is sent
	closed     bool
	socketOpen bool // closed because out was sent; forget is still to close the socket

	memory account
	stats  meter.ConnStats
}

// transport is what carries a connection's bytes.
type transport struct {
	nc   net.Conn
	raw  *rawConn // nil if nc is not a socket
	port portKind
	tls  *tlsLayer // nil: none, or the handshake is not complete; set with conn.mu held, before serve
}

// identity holds the client's identities.
type identity struct {
	ids   []proto.ID // replaced, never changed in place; ShownIDs are for others to see
	known datatree.Decisions
	sasl  *saslExchange // owned by serve; nil: it has not begun
}

// attachment is the session of a connection.
type attachment struct {
	session   proto.SessionID // 0: none yet
	epoch     proto.Zxid      // of a global session, see datatree.SessionInfo
	timeoutMs int32
	local     bool // only this server knows the session
	readOnly  bool // the session was opened, or resumed, while this server was read-only; then it is local
}

// reading holds when the connection was read last, and why it is not read now.
type reading struct {
	heardAt    atomic.Int64 // when the client was last heard from, in nanoseconds since Server.startedWall
	aliveAt    atomic.Int64 // when the client last took replies, or bytes of it came unread; in the same unit
	handling   atomic.Bool  // requests that were read are handled; until they are, the connection is not read
	flushes    atomic.Int32 // calls of flush, each of which may wait for the client to take its replies
	queued     rawio.Queued // what was in the socket's queues when the last flush was found waiting; owned by runSessions
	waitsSince time.Time    // owned by serve: when the next write began to wait for others; zero: it does not
}

// touched is why a connection has output to be sent at the end of a call of Apply.
type touched uint8

const (
	touchedNot touched = iota
	touchedByEvent
	touchedByReply // and maybe by an event before
)

// logger is made when there is something to log: an idle connection holds none.
func (c *conn) logger() hclog.Logger {
	return c.server.cfg.Logger.With("peer", c.nc.RemoteAddr().String())
}

// encrypted reports whether the client's connection has TLS: here, below Config.Listener, or in the
// program that called DialAs. c.mu is held, or the handshake is over.
func (c *conn) encrypted() bool {
	if caller, ok := c.nc.(*callerConn); ok {
		return caller.TLS
	}
	_, below := c.nc.(interface{ ConnectionState() tls.ConnectionState })
	return below || c.tls != nil
}

// caller returns the client with its identities of some time. c.mu is held, now and while the
// result is used.
func (c *conn) caller(ids []proto.ID) datatree.Caller {
	return datatree.Caller{IDs: ids, SkipACL: c.server.cfg.SkipACL, Known: &c.known}
}

// noteHeard records that bytes came. Times are kept as durations since the start of the server,
// because a Unix time would follow the steps of the wall clock: all sessions would expire when that
// clock is set back.
func (c *conn) noteHeard(now time.Time) { c.heardAt.Store(int64(now.Sub(c.server.startedWall))) }

// lastHeard returns when the last bytes came, with the monotonic reading of the clock.
func (c *conn) lastHeard() time.Time {
	return c.server.startedWall.Add(time.Duration(c.heardAt.Load()))
}

// heard is when the client was last alive, for the expiry of sessions: a client that is not read
// counts as heard now, unless the server waits for the client itself to take its replies.
func (c *conn) heard() time.Time {
	if c.handling.Load() && c.flushes.Load() == 0 {
		return c.server.cfg.Now()
	}
	return c.server.startedWall.Add(time.Duration(max(c.heardAt.Load(), c.aliveAt.Load())))
}

// noteProgress notes whether a client is alive while its connection is not read because the server
// waits for the client to take replies. The client is alive if it has taken or sent bytes since the
// previous call, as the socket's queues show. Only runSessions calls noteProgress.
func noteProgress(c *conn, now time.Time) {
	last := c.queued
	c.queued = rawio.Queued{}
	if c.raw == nil || !c.handling.Load() || c.flushes.Load() == 0 {
		return
	}
	var open bool
	if c.queued, open = c.raw.queued(); open && (c.queued.Unread > last.Unread || c.queued.Unsent < last.Unsent) {
		c.aliveAt.Store(int64(now.Sub(c.server.startedWall)))
	}
}

// close closes the connection; its session lives on. close does not wait.
func (c *conn) close() {
	c.mu.Lock()
	c.closeLocked()
	c.mu.Unlock()
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func (c *conn) closeLocked() { c.endOutput()(false) }

// endOutput marks the connection as closed and drops its output. The returned function closes the
// socket, if linger is set as lingering.close does, and does not block. c.mu is held, for both.
func (c *conn) endOutput() (closeSocket func(linger bool)) {
	if c.closed && !c.socketOpen {
		return func(bool) {}
	}
	whole := c.socketOpen || c.out.sealed == nil && !c.flushing // no record is sent in part
	c.closed, c.socketOpen = true, false
	c.out = output{}
	c.recount(true)
	c.room.Broadcast()
	return func(linger bool) { c.closeSocket(whole, linger) }
}

// closeSocket closes the socket. With TLS, whole says that no record was sent in part. c.mu is
// held.
func (c *conn) closeSocket(whole, linger bool) {
	if c.raw != nil && c.tls != nil && whole {
		c.tls.goodbye(c.raw)
	}
	if c.raw != nil && !linger { // closing a socket does not block
		_ = c.nc.Close() // the only error would be that it is closed already
		return
	}
	// The rest may block, and locks are held here. Ends by itself; Close of the server awaits it.
	c.server.life.goroutines.Go(func() {
		if c.raw == nil && c.tls != nil {
			_ = c.nc.SetWriteDeadline(time.Now().Add(goodbyePatience))
			_ = c.tls.conn.Close()
		}
		if linger {
			c.server.conns.lingering.close(c.nc)
			return
		}
		_ = c.nc.Close() // as above
	})
}

// finish makes the connection close when its output is sent, or after the time of a handshake:
// there is no longer a session that could expire if the client does not read. c.mu is held.
func (c *conn) finish() {
	c.closeAfter = true
	if c.raw != nil && !c.flushing { // a goroutine that is writing looks at closeAfter afterwards
		c.raw.last = true
	}
	// Fails if the connection is closed already. The deadline is on the runtime's clock, as in the
	// handshake.
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.server.live.Load().HandshakeTimeout))
}

// boundOutput charges the output, and closes the connection if too much waits for its client. c.mu
// is held, and the caller calls Server.relieve afterwards.
func (c *conn) boundOutput() {
	c.recount(false)
	if c.out.len() > maxOutput && c.flushing {
		c.logger().Warn("connection closed: the client does not read", "session", c.session.String(), "output_bytes", c.out.len())
		c.closeLocked()
	}
}
