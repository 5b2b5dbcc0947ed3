package peer

import (
	"net"
	"slices"
	"sync"
)

// maxLobby bounds the connections whose callers have not proved who they are.
const maxLobby = 256

// lobby holds the accepted connections whose callers have not proved who they are. A caller that
// comes when the lobby is full takes the place of the one that has waited longest: a member needs
// milliseconds, and strangers could otherwise keep members out for as long as they may be silent.
type lobby struct {
	mu    sync.Mutex
	conns []net.Conn // the one that has waited longest first
}

// enter adds a connection, and returns the connection that must go, or nil.
func (l *lobby) enter(conn net.Conn) (out net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns = append(l.conns, conn); len(l.conns) <= maxLobby {
		return nil
	}
	out = l.conns[0]
	l.conns = slices.Delete(l.conns, 0, 1)
	return out
}

// leave removes a connection, whose caller has proved who it is, or which has ended.
func (l *lobby) leave(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.conns, conn); i >= 0 {
		l.conns = slices.Delete(l.conns, i, i+1)
	}
}
