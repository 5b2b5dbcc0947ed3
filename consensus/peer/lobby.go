package peer

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxLobby is the largest bound on the connections of unproven callers.
const maxLobby = 256

// visitor is an accepted connection.
type visitor struct {
	conn   net.Conn
	cancel context.CancelCauseFunc // ends all that is done for the connection, and closes it
	host   string                  // see hostOf

	// Owned by serve.
	until  time.Time   // the caller waits for an answer until then
	enc    *encryption // how the connection was accepted
	stream net.Conn    // conn, or what TLS makes of it
}

// hostOf returns what visitors are counted by: the IPv4 address, the /64 network of an IPv6
// address, of which one machine may have all addresses, or the name of a host in memory.
func hostOf(remote net.Addr) string {
	s := remote.String()
	if at, err := netip.ParseAddrPort(s); err == nil {
		ip, bits := at.Addr().Unmap(), 32
		if ip.Is6() {
			bits = 64
		}
		return netip.PrefixFrom(ip.WithZone(""), bits).Masked().String()
	}
	if host, _, err := net.SplitHostPort(s); err == nil {
		return host
	}
	return s
}

// lobby holds the accepted connections of unproven callers. If the lobby is full, a new caller
// takes the place of the caller that has waited longest, among those of the host with most callers.
// A member needs milliseconds to prove its identity; strangers could otherwise keep members out for
// as long as they may be silent.
type lobby struct {
	mu       sync.Mutex
	visitors []*visitor     // longest wait first
	hosts    map[string]int // visitors by host
}

// enter adds a connection, and returns the connection to close because the lobby is full, or nil.
func (l *lobby) enter(v *visitor, room int) (out *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts == nil {
		l.hosts = make(map[string]int)
	}
	l.hosts[v.host]++
	if l.visitors = append(l.visitors, v); len(l.visitors) <= room {
		return nil
	}
	out = l.visitors[0]
	for _, o := range l.visitors {
		if l.hosts[o.host] > l.hosts[out.host] {
			out = o
		}
	}
	l.remove(out)
	return out
}

// leave removes a connection that has ended, or whose caller has proved its identity.
func (l *lobby) leave(v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remove(v)
}

// remove removes a visitor that is there. The caller must hold mu.
func (l *lobby) remove(v *visitor) {
	i := slices.Index(l.visitors, v)
	if i < 0 {
		return
	}
	l.visitors = slices.Delete(l.visitors, i, i+1)
	if l.hosts[v.host]--; l.hosts[v.host] == 0 {
		delete(l.hosts, v.host)
	}
}
