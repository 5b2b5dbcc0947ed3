package gozk

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/test/compat/cases"
)

// line makes a client's connections, which it can cut, and collects the client's events. Safe for
// concurrent use.
type line struct {
	secure *tls.Config // nil: without TLS

	mu     sync.Mutex // guards the fields below
	conns  []net.Conn
	held   bool // connects fail
	events []zk.Event
}

var errHeld = errors.New("gozk: the line lets nobody through")

// dial is the client's dialer.
func (l *line) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return nil, errHeld
	}
	dialer := &net.Dialer{Timeout: timeout}
	var c net.Conn
	var err error
	if l.secure != nil {
		c, err = tls.DialWithDialer(dialer, network, address, l.secure)
	} else {
		c, err = dialer.Dial(network, address)
	}
	if err == nil {
		l.conns = append(l.conns, c)
	}
	return c, err
}

// cut ends all connections.
func (l *line) cut() { l.hold(false) }

// hold ends all connections. If held, connects fail until the next cut.
func (l *line) hold(held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = held
	for _, c := range l.conns {
		_ = c.Close() // closing twice is harmless
	}
	l.conns = nil
}

// reconnect cuts the connection and waits until the client has its session again.
func (l *line) reconnect(ctx context.Context, c *zk.Conn) {
	session, had := c.SessionID(), l.count(zk.StateHasSession)
	l.cut()
	cases.Eventually(ctx, "connected again", func() bool { return l.count(zk.StateHasSession) > had })
	cases.Expect("session", c.SessionID(), session)
}

// add collects an event.
func (l *line) add(e zk.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
}

// count returns how often the session was in the state.
func (l *line) count(state zk.State) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		if e.Type == zk.EventSession && e.State == state {
			n++
		}
	}
	return n
}
