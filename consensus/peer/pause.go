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

// minPause is how long the process must have stood still for callers to have given up meanwhile.
const minPause = helloTimeout

// pauses notices that the process stood still: it was stopped, or got no processor.
type pauses struct {
	mu          sync.Mutex // guards these
	last, ended time.Time  // of the last tick, and of the last pause
}

// tick is called each heartbeatInterval while the process runs.
func (p *pauses) tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.last.IsZero() && now.Sub(p.last) > minPause {
		p.ended = now
	}
	p.last = now
}

// recent reports whether the process stood still a moment ago, so that connections may have waited
// in the queue of the socket.
func (p *pauses) recent(now time.Time) bool {
	p.tick(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Sub(p.ended) < silenceTimeout
}

// late returns the error of an accepted connection instead of err if its caller made it while this
// process stood still, and has given up: a member that does so says nothing wrong, and what it said
// can no longer be confirmed.
func (n *Network) late(conn net.Conn, err error) error {
	if !n.pauses.recent(time.Now()) || !hungUp(conn) {
		return err
	}
	return fmt.Errorf("the caller had given up: this process stood still: %w", net.ErrClosed)
}

// hungUp reports whether the other side has closed a connection on which nothing more is awaited.
func hungUp(conn net.Conn) bool {
	err := conn.SetReadDeadline(time.Now().Add(heartbeatInterval))
	if err == nil {
		_, err = io.CopyN(io.Discard, conn, maxHandshake)
	}
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}
