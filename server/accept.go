package server

import (
	"context"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/server/identity"
	"github.com/gozkd/gozkd/server/internal/capacity"
	"github.com/gozkd/gozkd/server/internal/meter"
)

func (s *Server) accept(ctx context.Context, l net.Listener, kind portKind) {
	_ = accept.Loop(ctx, l, func(err error, retry time.Duration) { // it ends as the port or the server does
		s.cfg.Logger.Warn("a connection could not be accepted; if file descriptors are short, "+
			"raise the limit of this process (ulimit -n), or lower maxCnxns",
			"error", err, "retry_ms", retry.Milliseconds())
	}, func(nc net.Conn) {
		k := kind
		if k == portPlain && s.live.Load().PortUnification {
			k = portUnified
		}
		s.admit(nc, k, nil)
	})
}

// admit starts to serve a connection, or closes it if there are too many. caller: DialAs made it.
func (s *Server) admit(nc net.Conn, kind portKind, caller *Caller) {
	addr := nc.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	c := newConn(s, nc, kind, addr)
	if c.as = caller; caller != nil {
		c.Client = identity.NewClient(addr, caller.IDs...)
	}
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	limits, maxConns := s.live.Load(), s.ports.maxConns()
	switch {
	case s.conns.closing:
	case maxConns > 0 && len(s.conns.byID) >= maxConns:
		c.logger().Warn("connection refused: too many connections; maxCnxns or, if it is 0, the process's limit of file descriptors (ulimit -n) bounds them", "max", maxConns)
	case caller == nil && limits.MaxClientConns > 0 && s.conns.perAddr[addr] >= limits.MaxClientConns:
		c.logger().Warn("connection refused: too many connections from this address", "maxClientCnxns", limits.MaxClientConns)
	case caller == nil && !s.growth.admits(capacity.NewConnection, capacity.ConnectionCost): // run logs it once
	default:
		s.conns.lastID++
		c.id = s.conns.lastID
		s.conns.byID[c.id] = c
		c.cost = capacity.ConnectionCost
		s.conns.counted(c.cost)
		if caller == nil {
			s.conns.perAddr[addr]++
		}
		// Stopped by closing the connection, awaited by shutdown, which waits only after
		// conns.closing was set.
		s.life.Goroutines.Go(c.open)
		return
	}
	s.meter.Count(meter.ConnectionsRejected)
	_ = nc.Close() // nothing was sent on it, so nothing can be lost
}

// forget closes c and removes everything that the server keeps about c. linger: the client may have
// sent, or be sending, more than was read.
func (s *Server) forget(c *conn, linger bool) {
	// Only a connection in the table gets events, and no reply may follow an event that was
	// dropped, so the output ends first. The socket is closed last: a client that connects again at
	// once finds room.
	c.Lock()
	closeSocket := c.EndOutput()
	id := c.session
	c.noteEnd("", "")
	c.Unlock()
	s.conns.remove(c)
	c.Lock()
	linger = closeSocket(linger)
	c.Unlock()
	now := s.cfg.Now()
	s.sessions.expiry.Touch(id, c.LastAlive(now)) // count bytes that came after the loop last touched the session
	// No watch is added for c any more, because c is closed.
	s.state.watches.RemoveConn(c.id)
	had := s.conns.release(c, now)
	if s.conns.locals.Release(id, c, now) || had {
		s.endings.Left(id, c.story(now), now)
	}
	if linger {
		c.Linger()
	}
}
