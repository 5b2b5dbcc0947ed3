// Package accept takes connections from listeners. It has the loop that goes on after errors, a
// listener that joins several listeners, and a listener that tells TLS from other protocols by the
// first byte.
package accept

import (
	"context"
	"errors"
	"net"
	"time"
)

// errNoRoom is the error of a connection for which HasRoom has none.
var errNoRoom = errors.New("the last file descriptors of the process are not for connections")

// Loop calls take with each connection of l until l is closed or ctx ends, and returns the reason.
// After any other error Loop calls failed, and waits for retry before it goes on: most likely there
// are no file descriptors left for connections until others are closed.
func Loop(ctx context.Context, l net.Listener, failed func(err error, retry time.Duration), take func(net.Conn)) error {
	wait := time.Duration(0)
	for {
		conn, err := l.Accept()
		if err == nil && !HasRoom(conn) {
			_ = conn.Close() // nothing was sent on it
			conn, err = nil, errNoRoom
		}
		switch {
		case ctx.Err() != nil: // the error of a closed l need not be net.ErrClosed
			if err == nil {
				_ = conn.Close() // nothing was sent on it
			}
			return ctx.Err()
		case errors.Is(err, net.ErrClosed):
			return err
		case err == nil:
			wait = 0
			take(conn)
			continue
		}
		wait = min(max(2*wait, 5*time.Millisecond), time.Second)
		failed(err, wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

type result struct {
	conn net.Conn
	err  error
}

// results passes the goroutines' connections to Accept, until open ends.
type results struct {
	next   chan result
	open   context.Context
	cancel context.CancelFunc // ends open
}

func newResults() results {
	r := results{next: make(chan result)}
	r.open, r.cancel = context.WithCancel(context.Background())
	return r
}

// hand passes a result to Accept. It returns false, and closes conn, if nobody accepts any more.
func (r *results) hand(conn net.Conn, err error) bool {
	select {
	case r.next <- result{conn, err}:
		return true
	case <-r.open.Done():
		if conn != nil {
			_ = conn.Close() // nothing was sent on it
		}
		return false
	}
}

func (r *results) Accept() (net.Conn, error) {
	select {
	case a := <-r.next:
		return a.conn, a.err
	case <-r.open.Done():
		return nil, net.ErrClosed
	}
}
