package peer

import (
	"context"
	"net"
	"slices"
	"sync"
)

// maxLobby bounds the connections whose callers have not proved who they are.
const maxLobby = 256

// visitor is an accepted connection.
type visitor struct {
	conn   net.Conn
	cancel context.CancelCauseFunc // ends all that is done for the connection, and closes it
}

// lobby holds the accepted connections whose callers have not proved who they are. A caller that
// comes when the lobby is full takes the place of the one that has waited longest: a member needs
// milliseconds, and strangers could otherwise keep members out for as long as they may be silent.
type lobby struct {
	mu       sync.Mutex
	visitors []*visitor // the one that has waited longest first
}

// enter adds a connection, and returns the one that must go, or nil.
func (l *lobby) enter(v *visitor) (out *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.visitors = append(l.visitors, v); len(l.visitors) <= maxLobby {
		return nil
	}
	out = l.visitors[0]
	l.visitors = slices.Delete(l.visitors, 0, 1)
	return out
}

// leave removes a connection, whose caller has proved who it is, or which has ended.
func (l *lobby) leave(v *visitor) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.visitors, v); i >= 0 {
		l.visitors = slices.Delete(l.visitors, i, i+1)
	}
}
