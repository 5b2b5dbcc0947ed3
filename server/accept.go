package server

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/watch"
)

// accept takes connections until the listener closes.
func (s *Server) accept(ctx context.Context) {
	wait := time.Duration(0)
	for {
		nc, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of file descriptors, most likely: give others time to close some
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			s.cfg.Logger.Warn("accept", "error", err, "retry_ms", wait.Milliseconds())
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return // a listener of another kind may have its own error for being closed
			}
			continue
		}
		wait = 0
		s.admit(nc)
	}
}

// admit starts to serve a connection, or closes it if there are too many.
func (s *Server) admit(nc net.Conn) {
	addr := nc.RemoteAddr().String()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	now := s.cfg.Now()
	c := &conn{
		server: s, nc: nc, raw: newRawConn(nc), addr: addr, since: now, lastTime: now, lastXid: -1,
		ids: []proto.ID{{Scheme: "ip", ID: addr}},
	}
	c.room.L = &c.mu
	c.noteHeard(now)
	s.connMu.Lock()
	defer s.connMu.Unlock()
	limits := s.live.Load()
	switch {
	case s.closing:
	case limits.MaxConns > 0 && len(s.conns) >= limits.MaxConns:
		c.logger().Warn("connection refused: too many connections", "maxCnxns", limits.MaxConns)
	case limits.MaxClientConns > 0 && s.perAddr[addr] >= limits.MaxClientConns:
		c.logger().Warn("connection refused: too many connections from this address", "maxClientCnxns", limits.MaxClientConns)
	default:
		s.nextConn++
		c.id = s.nextConn
		s.conns[c.id] = c
		s.perAddr[addr]++
		s.life.wg.Go(c.serve) // stopped by closing the connection, awaited by shutdown
		return
	}
	s.stats.connsRejected.Add(1)
	_ = nc.Close() // nothing was said on it, so nothing can be lost
}

// forget closes the connection and removes what the server knows of it.
func (s *Server) forget(c *conn) {
	s.connMu.Lock()
	c.dead = true
	delete(s.conns, c.id)
	if s.perAddr[c.addr]--; s.perAddr[c.addr] == 0 {
		delete(s.perAddr, c.addr)
	}
	s.connMu.Unlock()
	c.mu.Lock()
	c.closeLocked()
	id := c.session
	c.mu.Unlock()
	// What came since sessions were last touched counts too.
	s.trackMu.Lock()
	s.tracker.Touch(id, c.heard())
	s.trackMu.Unlock()
	// After closed was set under c.mu nothing adds a watch for c any more.
	s.watches.RemoveConn(c.id)
	s.connMu.Lock()
	if id != 0 && s.bySession[id] == c {
		delete(s.bySession, id)
		s.left[id] = c.heard()
	}
	s.connMu.Unlock()
}

// connections returns the open connections.
func (s *Server) connections() map[watch.ConnID]*conn {
	s.connMu.Lock()
	defer s.connMu.Unlock()
	conns := make(map[watch.ConnID]*conn, len(s.conns))
	for id, c := range s.conns {
		conns[id] = c
	}
	return conns
}
