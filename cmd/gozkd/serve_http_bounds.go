package main

import (
	"net"
	"net/netip"
	"sync"
)

const (
	// httpConns bounds the connections of an HTTP port. The last localConns of them are for callers
	// on this machine.
	httpConns, localConns = 256, 64
	// httpConnsPerHost bounds those of a host elsewhere, or of an IPv6 network of 64 bits.
	httpConnsPerHost = 32
)

// boundedListener closes at once the connections that exceed the bounds, so that nobody can use up
// the memory or the file descriptors of the server.
type boundedListener struct {
	net.Listener

	mu    sync.Mutex // guards the fields below
	total int
	hosts map[netip.Prefix]int // connections from hosts elsewhere
}

func newBoundedListener(l net.Listener) *boundedListener {
	return &boundedListener{Listener: l, hosts: make(map[netip.Prefix]int)}
}

// Accept implements net.Listener.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host, elsewhere := hostOf(c.RemoteAddr())
		if l.take(host, elsewhere) {
			return &boundedConn{Conn: c, release: sync.OnceFunc(func() { l.release(host, elsewhere) })}, nil
		}
		_ = c.Close() // nothing was sent on it
	}
}

func (l *boundedListener) take(host netip.Prefix, elsewhere bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total >= httpConns || elsewhere && (l.total >= httpConns-localConns || l.hosts[host] >= httpConnsPerHost) {
		return false
	}
	l.total++
	if elsewhere {
		l.hosts[host]++
	}
	return true
}

func (l *boundedListener) release(host netip.Prefix, elsewhere bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if !elsewhere {
		return
	}
	if l.hosts[host]--; l.hosts[host] == 0 {
		delete(l.hosts, host)
	}
}

// hostOf returns whom a connection counts for, and whether that is another machine.
func hostOf(address net.Addr) (host netip.Prefix, elsewhere bool) {
	from, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{}, true
	}
	ip, bits := from.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	host, _ = ip.Prefix(bits) // the error is for a wrong number of bits
	return host, !ip.IsLoopback()
}

// boundedConn counts as long as it is open.
type boundedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *boundedConn) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}
