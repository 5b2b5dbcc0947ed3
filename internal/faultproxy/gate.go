package faultproxy

import (
	"cmp"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// maxArrived is how many connections are accepted during a cut; more wait in the listener's queue.
const maxArrived = 1024

// A Gate is a listener for clients that applies rules to its connections. Safe for concurrent use.
//
// Its connections are plain net.Conns with the addresses of the connections that they wrap. One
// Read and one Write may run on each at a time, concurrently with Close and the deadlines.
type Gate struct {
	inner net.Listener
	rules *Rules
	stall atomic.Pointer[stall] // nil: not cut; changed under mu

	start sync.Once
	done  chan struct{} // closed when the accepting goroutine has ended

	mu      sync.Mutex // guards the fields below
	changed sync.Cond  // signalled when one of these fields or stall changes
	arrived []arrival
	wasCut  bool  // arrivals may have waited for the end of a cut, also in the queue of inner
	err     error // set when the listener is closed
	conns   map[*conn]struct{}
}

// stall is a cut; over is closed at its end.
type stall struct{ over chan struct{} }

// arrival is a result of the wrapped listener's Accept.
type arrival struct {
	nc  net.Conn
	err error
}

// NewGate returns a listener that accepts the connections of inner. Closing the gate closes inner.
func NewGate(inner net.Listener, rules *Rules) *Gate {
	g := &Gate{inner: inner, rules: rules, done: make(chan struct{}), conns: make(map[*conn]struct{})}
	g.changed.L = &g.mu
	return g
}

// Addr returns the wrapped listener's address.
func (g *Gate) Addr() net.Addr { return g.inner.Addr() }

// Accept returns the next connection. During a cut it waits. Errors: net.ErrClosed after Close, and
// those of the wrapped listener.
func (g *Gate) Accept() (net.Conn, error) {
	g.start.Do(func() {
		// Close stops it and waits for it.
		go g.accept()
	})
	for {
		c, wasCut, err := g.next()
		switch {
		case err != nil:
			return nil, err
		case wasCut && c.left():
			_ = c.Close() // its client has closed it
		default:
			return c, nil
		}
	}
}

// next waits for an arrival and adds its connection to g.conns.
func (g *Gate) next() (c *conn, wasCut bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.arrived) == 0 && g.err == nil || len(g.arrived) > 0 && g.stall.Load() != nil {
		g.changed.Wait()
	}
	if len(g.arrived) == 0 {
		return nil, false, g.err
	}
	a := g.arrived[0]
	g.arrived = slices.Delete(g.arrived, 0, 1)
	g.changed.Broadcast()
	if a.err != nil {
		return nil, false, a.err
	}
	c = newConn(g, a.nc)
	g.conns[c] = struct{}{}
	return c, g.wasCut, nil
}

// accept takes connections from the wrapped listener: one at a time, and during a cut all of them.
// If they stayed in the listener's queue during a cut, the server would afterwards resume the
// sessions of clients that had given up meanwhile, and so move these sessions away from the
// clients' present connections.
func (g *Gate) accept() {
	defer close(g.done)
	for {
		nc, err := g.inner.Accept()
		if !g.arrive(nc, err) {
			return
		}
	}
}

// arrive hands over a result of Accept and waits until accept should accept again. It returns false
// if the gate is closed.
func (g *Gate) arrive(nc net.Conn, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.changed.Broadcast()
	if g.err != nil {
		if err == nil {
			_ = nc.Close() // not handed to the server yet
		}
		return false
	}
	if errors.Is(err, net.ErrClosed) {
		g.err = err
		return false
	}
	g.arrived = append(g.arrived, arrival{nc, err})
	g.changed.Broadcast()
	for g.err == nil && len(g.arrived) > 0 && (g.stall.Load() == nil || err != nil || len(g.arrived) >= maxArrived) {
		g.changed.Wait()
	}
	return true
}

// Close closes the wrapped listener and the connections that were not accepted yet, and waits for
// the gate's goroutine. Accepted connections stay open.
func (g *Gate) Close() error {
	g.mu.Lock()
	g.err = cmp.Or(g.err, net.ErrClosed)
	arrived := g.arrived
	g.arrived = nil
	g.changed.Broadcast()
	g.mu.Unlock()
	err := g.inner.Close()
	for _, a := range arrived {
		if a.nc != nil {
			err = errors.Join(err, a.nc.Close())
		}
	}
	g.start.Do(func() { close(g.done) }) // Accept was never called
	<-g.done
	return err
}

// CloseConns breaks all connections, TCP connections with a reset, including those held by a cut.
// The gate keeps listening.
func (g *Gate) CloseConns() {
	g.mu.Lock()
	conns := slices.Collect(maps.Keys(g.conns))
	var waiting []net.Conn
	g.arrived = slices.DeleteFunc(g.arrived, func(a arrival) bool {
		if a.nc != nil {
			waiting = append(waiting, a.nc)
		}
		return a.nc != nil
	})
	g.changed.Broadcast()
	g.mu.Unlock()
	for _, c := range conns {
		_ = c.shut(true) // an error means that it is closed already
	}
	for _, nc := range waiting {
		_ = reset(nc) // as above
	}
}

// CloseConn breaks the connections of the session, and reports whether there were any.
func (g *Gate) CloseConn(session int64) bool {
	conns := g.attached()[session]
	for _, c := range conns {
		_ = c.shut(true) // as above
	}
	return len(conns) > 0
}

// Cut begins or ends a cut between the server and its clients. During a cut no byte passes in
// either direction and no connection is accepted. Nothing is lost: bytes and connections arrive
// after the cut, except connections that their clients have closed by then. Bytes of a Read or
// Write that was in progress, and those in the buffers of the operating system, may still pass. A
// connection that the server closes is closed for its client too.
func (g *Gate) Cut(cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stall.Load()
	switch {
	case cut && s == nil:
		g.stall.Store(&stall{over: make(chan struct{})})
		g.wasCut = true
	case !cut && s != nil:
		g.stall.Store(nil)
		close(s.over)
	}
	g.changed.Broadcast()
}

// Attach notes which session is attached to a connection of a gate; 0: none. The server tells it,
// because the gate does not see the frames inside TLS.
func Attach(nc net.Conn, session int64) {
	if c, ok := nc.(*conn); ok { // others are in-process connections
		c.session.Store(session)
	}
}

// Sessions returns the sessions attached over open connections, in order; during a cut none.
func (g *Gate) Sessions() []int64 {
	if g.stall.Load() != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(g.attached()))
}

func (g *Gate) attached() map[int64][]*conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	conns := make(map[int64][]*conn)
	for c := range g.conns {
		if id := c.session.Load(); id != 0 {
			conns[id] = append(conns[id], c)
		}
	}
	return conns
}

func (g *Gate) forget(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
}

// reset closes a connection with a TCP reset if it can.
func reset(nc net.Conn) error {
	if l, ok := nc.(interface{ SetLinger(seconds int) error }); ok {
		_ = l.SetLinger(0) // fails if the connection is closed already
	}
	return nc.Close()
}
