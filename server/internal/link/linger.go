package link

import (
	"io"
	"net"
	"sync"
	"time"
)

const (
	// lingerTime and lingerBytes bound how many of its client's late bytes are read from a
	// connection that the server ends, maxLingering how many such connections there are at a time:
	// they hold descriptors beside those of clients.
	lingerTime   = 2 * time.Second
	lingerBytes  = 1 << 20
	maxLingering = 64
)

// lingering holds the sockets that end after an answer. If a socket is closed while bytes of its
// client are unread, or before more of them come, TCP resets the connection, and the client loses
// the rest of the answer.
type lingering struct {
	mu    sync.Mutex // guards all
	conns map[net.Conn]struct{}
	ended bool // the server stops
}

// close ends the stream to the client, reads the client's late bytes, within bounds, and closes nc.
// If too many connections end so, or nc can end only as a whole, close closes it at once.
func (l *lingering) close(nc net.Conn) {
	half, ok := nc.(interface{ CloseWrite() error })
	l.mu.Lock()
	ok = ok && !l.ended && len(l.conns) < maxLingering
	if ok {
		l.conns[nc] = struct{}{}
	}
	l.mu.Unlock()
	if ok && half.CloseWrite() == nil && nc.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, nc, lingerBytes)
	}
	_ = nc.Close() // the only error would be that it is closed already
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, nc)
}

// end closes all sockets, and those to come at once.
func (l *lingering) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for nc := range l.conns {
		_ = nc.Close()
	}
}
