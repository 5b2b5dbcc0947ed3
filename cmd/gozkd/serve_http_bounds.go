package main

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/accept"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/httplocal"
)

const (
	// httpConns bounds the connections of an HTTP port; the last localConns are for this machine.
	httpConns, localConns = 256, 64
	// httpConnsPerHost bounds those of a host elsewhere, or of an IPv6 network of 64 bits, unless
	// it is a trusted proxy: package web bounds the requests and streams of each of its users.
	httpConnsPerHost = 32
)

// boundedListener bounds the connections of an HTTP port, so that nobody can use up the memory or
// the file descriptors of the server. A connection that exceeds a bound takes the place of the one
// that was inactive for longest, so that a health probe is answered beside connections that nobody
// uses. If requests are being answered on all of them, the new one is closed at once.
type boundedListener struct {
	net.Listener
	max     int // connections
	proxies []netip.Prefix

	active atomic.Int64 // counts connections and answers

	mu    sync.Mutex // guards the fields below
	conns map[*boundedConn]bool
	hosts map[string]int // connections from hosts elsewhere
}

// newBoundedListener bounds l to httpConns connections, and more for streams that stay open.
func newBoundedListener(l net.Listener, more int) *boundedListener {
	return &boundedListener{Listener: l, max: httpConns + more, conns: make(map[*boundedConn]bool), hosts: make(map[string]int)}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &boundedConn{Conn: nc, listener: l}
		from := httplocal.Address(nc.RemoteAddr().String()) // otherwise the address is invalid, and no proxy
		c.host, c.elsewhere = fair.Host(nc.RemoteAddr()), !from.IsLoopback()
		c.proxy = slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(from) })
		c.noteActive()
		if accept.HasRoom(nc) && l.take(c) {
			return c, nil
		}
		_ = nc.Close() // nothing was sent on it
	}
}

// take makes room for c if necessary, and reports whether there is room.
func (l *boundedListener) take(c *boundedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.full(c) {
		idle := l.idlest(c)
		if idle == nil {
			return false
		}
		l.remove(idle)
		_ = idle.Conn.Close() // does not wait: it is a socket
	}
	l.conns[c] = true
	if c.elsewhere {
		l.hosts[c.host]++
	}
	return true
}

// full reports whether c exceeds a bound. l.mu is held.
func (l *boundedListener) full(c *boundedConn) bool {
	n := len(l.conns)
	return n >= l.max || c.elsewhere && (n >= l.max-localConns || l.hostFull(c))
}

// hostFull reports whether the host of c has as many connections as it may have. l.mu is held.
func (l *boundedListener) hostFull(c *boundedConn) bool {
	return !c.proxy && l.hosts[c.host] >= httpConnsPerHost
}

// idlest returns the connection whose place c may take, or nil: one on which no request is being
// answered, of the same host if that has too many, otherwise of the host elsewhere that has most,
// or of this machine if c is. Of those it is the one that was inactive for longest. l.mu is held.
func (l *boundedListener) idlest(c *boundedConn) (found *boundedConn) {
	sameHost := c.elsewhere && l.hostFull(c)
	for v := range l.conns {
		switch {
		case v.elsewhere != c.elsewhere, sameHost && v.host != c.host, v.answering.Load() > 0:
			continue
		case found != nil && l.hosts[v.host] != l.hosts[found.host]:
			if l.hosts[v.host] < l.hosts[found.host] {
				continue
			}
		case found != nil && v.active.Load() > found.active.Load():
			continue
		}
		found = v
	}
	return found
}

// remove makes c count no longer. l.mu is held.
func (l *boundedListener) remove(c *boundedConn) {
	if !l.conns[c] {
		return
	}
	delete(l.conns, c)
	if !c.elsewhere {
		return
	}
	if l.hosts[c.host]--; l.hosts[c.host] == 0 {
		delete(l.hosts, c.host)
	}
}

// bound makes a server note on which of the connections requests are being answered.
func (l *boundedListener) bound(s *http.Server) {
	type connKey struct{}
	h, others := s.Handler, s.ConnContext
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		if others != nil {
			ctx = others(ctx, nc)
		}
		for t, ok := nc.(interface{ NetConn() net.Conn }); ok; t, ok = nc.(interface{ NetConn() net.Conn }) { // TLS, or a unified port
			nc = t.NetConn()
		}
		return context.WithValue(ctx, connKey{}, nc)
	}
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*boundedConn); ok {
			c.answering.Add(1)
			defer func() { c.noteActive(); c.answering.Add(-1) }()
		}
		h.ServeHTTP(w, r)
	})
}

// boundedConn counts as long as it is open.
type boundedConn struct {
	net.Conn
	listener  *boundedListener
	host      string
	elsewhere bool
	proxy     bool
	active    atomic.Int64 // listener.active when it was accepted, or the last answer was complete
	answering atomic.Int32 // requests that are being answered
}

func (c *boundedConn) noteActive() { c.active.Store(c.listener.active.Add(1)) }

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.listener.remove(c)
	return err
}
