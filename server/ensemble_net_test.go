package server_test

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// fabric is a network within the process whose links can be cut, delayed and torn. It works in synctest bubbles: whoever waits
// for it is idle. Connections behave like TCP: what is sent arrives in order or the connection breaks, a cut link holds
// bytes back and loses none, and a sender waits when too much is under way.
type fabric struct {
	mu        sync.Mutex
	listeners map[string]*fabricListener // by address
	conns     map[*halfConn]struct{}
	links     map[link]linkState
}

// link is one direction between two hosts.
type link struct{ from, to string }

type linkState struct {
	cut   bool
	delay time.Duration
}

// latency is what every link takes at least: without any, clients that always have something to do would keep the time of a
// bubble from passing.
const latency = 200 * time.Microsecond

// inFlight is how much a connection takes that was not read.
const inFlight = 256 << 10

func newFabric() *fabric {
	return &fabric{
		listeners: make(map[string]*fabricListener), conns: make(map[*halfConn]struct{}), links: make(map[link]linkState),
	}
}

// cut stops what goes from one host to another, or lets it go on.
func (f *fabric) cut(from, to string, cut bool) {
	f.change(link{from, to}, func(s *linkState) { s.cut = cut })
}

// delay makes everything from one host to another take that much longer.
func (f *fabric) delay(from, to string, d time.Duration) {
	f.change(link{from, to}, func(s *linkState) { s.delay = d })
}

func (f *fabric) change(l link, change func(*linkState)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.links[l]
	change(&s)
	f.links[l] = s
	for c := range f.conns {
		if c.in.link == l || c.out.link == l {
			c.in.set(f.links[c.in.link])
			c.out.set(f.links[c.out.link])
		}
	}
}

// tear breaks all connections between two hosts, of one host with all others if b is empty.
func (f *fabric) tear(a, b string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		if from, to := c.out.link.from, c.out.link.to; from == a && (b == "" || to == b) || to == a && (b == "" || from == b) {
			c.in.tear()
			c.out.tear()
		}
	}
}

// kill breaks all connections of a host and closes its ports.
func (f *fabric) kill(host string) {
	f.mu.Lock()
	var ports []*fabricListener
	for address, l := range f.listeners {
		if strings.HasPrefix(address, host+":") {
			ports = append(ports, l)
		}
	}
	f.mu.Unlock()
	for _, l := range ports {
		_ = l.Close() // never fails
	}
	f.tear(host, "")
}

// listen opens a port of a host. The address is host:port.
func (f *fabric) listen(address string) net.Listener {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &fabricListener{f: f, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	f.listeners[address] = l
	return l
}

// dial connects a host to an address. Without a listener it is refused at once; over a cut link it waits until ctx ends.
func (f *fabric) dial(ctx context.Context, from, address string) (net.Conn, error) {
	to, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	for f.state(from, to).cut || f.state(to, from).cut {
		retry := time.NewTimer(10 * time.Millisecond)
		select {
		case <-ctx.Done():
			retry.Stop()
			return nil, ctx.Err()
		case <-retry.C:
		}
	}
	refused := &net.OpError{Op: "dial", Net: "fabric", Err: syscall.ECONNREFUSED}
	f.mu.Lock()
	l := f.listeners[address]
	f.mu.Unlock()
	if l == nil {
		return nil, refused
	}
	there, back := newStream(link{from, to}, f.state(from, to)), newStream(link{to, from}, f.state(to, from))
	mine, theirs := &halfConn{f: f, in: back, out: there}, &halfConn{f: f, in: there, out: back}
	select {
	case l.conns <- theirs:
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[mine], f.conns[theirs] = struct{}{}, struct{}{}
	for _, s := range []*stream{there, back} {
		s.set(f.links[s.link])
	}
	return mine, nil
}

func (f *fabric) state(from, to string) linkState {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.links[link{from, to}]
}

type fabricListener struct {
	f       *fabric
	address string
	conns   chan net.Conn // unbuffered: whoever dialled is accepted
	once    sync.Once
	closed  chan struct{}
}

func (l *fabricListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *fabricListener) Close() error {
	l.once.Do(func() {
		l.f.mu.Lock()
		if l.f.listeners[l.address] == l {
			delete(l.f.listeners, l.address)
		}
		l.f.mu.Unlock()
		close(l.closed)
	})
	return nil
}

func (l *fabricListener) Addr() net.Addr { return fabricAddr(l.address) }

type fabricAddr string

func (fabricAddr) Network() string  { return "fabric" }
func (a fabricAddr) String() string { return string(a) }

// halfConn is one end of a connection.
type halfConn struct {
	f       *fabric
	in, out *stream
}

func (c *halfConn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *halfConn) Write(b []byte) (int, error) { return c.out.write(b) }

func (c *halfConn) Close() error {
	c.in.abandon()
	c.out.end()
	c.f.mu.Lock()
	delete(c.f.conns, c)
	c.f.mu.Unlock()
	return nil
}

func (c *halfConn) LocalAddr() net.Addr  { return fabricAddr(c.out.link.from + ":0") }
func (c *halfConn) RemoteAddr() net.Addr { return fabricAddr(c.out.link.to + ":0") }

func (c *halfConn) SetDeadline(t time.Time) error {
	c.in.readBy.set(c.in, t)
	c.out.writeBy.set(c.out, t)
	return nil
}

func (c *halfConn) SetReadDeadline(t time.Time) error {
	c.in.readBy.set(c.in, t)
	return nil
}

func (c *halfConn) SetWriteDeadline(t time.Time) error {
	c.out.writeBy.set(c.out, t)
	return nil
}

// stream is one direction of a connection.
type stream struct {
	link link

	mu              sync.Mutex
	news            sync.Cond
	state           linkState
	parcels         []parcel
	size            int
	ended           bool // by the writer, behind what it wrote
	abandoned       bool // by the reader
	torn            bool
	readBy, writeBy deadline
}

type parcel struct {
	at    time.Time // when it arrives
	bytes []byte
}

func newStream(l link, s linkState) *stream {
	st := &stream{link: l, state: s}
	st.news.L = &st.mu
	return st
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.abandoned:
			return 0, net.ErrClosed
		case s.torn:
			return 0, syscall.ECONNRESET
		case s.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case s.state.cut:
		case len(s.parcels) > 0:
			p := &s.parcels[0]
			if wait := time.Until(p.at); wait > 0 {
				timer := time.AfterFunc(wait, s.wake)
				s.news.Wait()
				timer.Stop()
				continue
			}
			n := copy(b, p.bytes)
			if p.bytes = p.bytes[n:]; len(p.bytes) == 0 {
				s.parcels = s.parcels[1:]
			}
			s.size -= n
			s.news.Broadcast()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.news.Wait()
	}
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.ended:
			return 0, net.ErrClosed
		case s.torn:
			return 0, syscall.ECONNRESET
		case s.abandoned && !s.state.cut:
			return 0, syscall.EPIPE
		case s.writeBy.passed():
			return 0, os.ErrDeadlineExceeded
		case s.size < inFlight: // one write may go beyond it, as a whole
			at := time.Now().Add(latency + s.state.delay)
			if n := len(s.parcels); n > 0 && s.parcels[n-1].at.After(at) {
				at = s.parcels[n-1].at
			}
			s.parcels = append(s.parcels, parcel{at, append([]byte(nil), b...)})
			s.size += len(b)
			s.news.Broadcast()
			return len(b), nil
		}
		s.news.Wait()
	}
}

func (s *stream) set(state linkState) { s.update(func() { s.state = state }) }
func (s *stream) tear()               { s.update(func() { s.torn = true }) }
func (s *stream) end()                { s.update(func() { s.ended = true }) }
func (s *stream) abandon()            { s.update(func() { s.abandoned = true }) }
func (s *stream) wake()               { s.update(func() {}) }

func (s *stream) update(f func()) {
	s.mu.Lock()
	f()
	s.news.Broadcast()
	s.mu.Unlock()
}

// deadline is guarded by the mutex of its stream.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (d *deadline) set(s *stream, at time.Time) {
	s.update(func() {
		if d.timer != nil {
			d.timer.Stop()
		}
		if d.at = at; !at.IsZero() {
			d.timer = time.AfterFunc(time.Until(at), s.wake)
		}
	})
}
