package peer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pauses notices that the process stood still: it was stopped, or got no processor.
type pauses struct {
	mu          sync.Mutex // guards these
	last, ended time.Time  // of the last call of recent, and of the last pause
}

// recent reports whether the process stood still a moment ago, for longer than callers wait. It is
// called each heartbeatInterval.
func (p *pauses) recent(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) > helloTimeout {
		p.ended = now
	}
	p.last = now
	return now.Sub(p.ended) < silenceTimeout
}

// late returns the reason to refuse an accepted connection: err, or net.ErrClosed if this process
// stood still and the caller gave up meanwhile. A member that has given up can no longer confirm
// that the connection is its own, and must not be counted as an impostor.
func (n *Network) late(conn net.Conn, err error) error {
	if !n.pauses.recent(time.Now()) {
		return err
	}
	if conn.SetReadDeadline(time.Now().Add(heartbeatInterval)) == nil { // otherwise it is closed
		if _, end := io.CopyN(io.Discard, conn, maxHandshake); end == nil || errors.Is(end, os.ErrDeadlineExceeded) {
			return err // the caller is still there
		}
	}
	return fmt.Errorf("the caller had given up: this process stood still: %w", net.ErrClosed)
}
