//go:build linux

package jepsenlite

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gozkd/gozkd/test/compat/server"
)

// Links are the network between members: a proxy per ordered pair and port. Blocks and delays are
// set per direction of the bytes, whoever opened the connection. Safe for concurrent use.
type Links struct {
	done  chan struct{} // closed by Close
	tasks sync.WaitGroup
	net   addresses

	mu        sync.Mutex
	ways      map[direction]*directionState
	conns     map[*tunnel]bool
	listeners map[route]net.Listener
}

// A route is the address where a member looks for another.
type route struct {
	direction
	port int
}

// A direction is a direction between two members.
type direction struct{ from, to int }

type directionState struct {
	open  chan struct{} // closed: bytes may pass
	delay time.Duration
}

// newLinks chooses addresses for an ensemble. No member is reachable before Listen.
func newLinks(members int) (addresses, *Links, error) {
	// Concurrent runs differ in their process ids and so mostly in their addresses; ports settle
	// the rest.
	a := addresses{net: byte(16 + os.Getpid()%200)}
	var every []string
	for i := 1; i <= members; i++ {
		for j := 1; j <= members; j++ {
			every = append(every, a.ip(i, j))
		}
	}
	ports, err := server.FreePorts(3, every...)
	if err != nil {
		return a, nil, err
	}
	a.peerPort, a.electionPort, a.clientPort = ports[0], ports[1], ports[2]
	l := &Links{done: make(chan struct{}), net: a, ways: map[direction]*directionState{}, conns: map[*tunnel]bool{}, listeners: map[route]net.Listener{}}
	for i := 1; i <= members; i++ {
		for j := 1; j <= members; j++ {
			if i != j {
				open := make(chan struct{})
				close(open)
				l.ways[direction{i, j}] = &directionState{open: open}
			}
		}
	}
	return a, l, nil
}

// Close ends the proxies and waits for their goroutines.
func (l *Links) Close() error {
	close(l.done)
	err := l.refuse(func(route) bool { return true })
	l.cut(func(direction) bool { return true })
	l.tasks.Wait()
	return err
}

// Listen lets a member's peers reach it. Calling it again is no error.
func (l *Links) Listen(member int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.ways {
		if w.to != member {
			continue
		}
		for _, port := range []int{l.net.peerPort, l.net.electionPort} {
			d := route{w, port}
			if l.listeners[d] != nil {
				continue
			}
			listener, err := net.Listen("tcp", net.JoinHostPort(l.net.ip(w.from, w.to), strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("jepsenlite: %w", err)
			}
			l.listeners[d] = listener
			target := net.JoinHostPort(l.net.ip(w.to, w.to), strconv.Itoa(port))
			// Ends when Refuse or Close closes the listener; Close awaits it.
			l.tasks.Go(func() { l.accept(listener, w, target) })
		}
	}
	return nil
}

// Refuse makes a member's peers refused, as by a machine without a listener. A proxy that accepted
// their connections and closed them would hide that the member is gone.
func (l *Links) Refuse(member int) error {
	return l.refuse(func(d route) bool { return d.to == member })
}

func (l *Links) refuse(which func(route) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for d, listener := range l.listeners {
		if which(d) {
			errs = append(errs, listener.Close())
			delete(l.listeners, d)
		}
	}
	return errors.Join(errs...)
}

// Block stops all bytes from one member to another. Connections stay, as in a network that loses
// packets.
func (l *Links) Block(from, to int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.ways[direction{from, to}]; isClosed(s.open) {
		s.open = make(chan struct{})
	}
}

// Delay delays all bytes from one member to another by d.
func (l *Links) Delay(from, to int, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ways[direction{from, to}].delay = d
}

// Heal opens every direction without delay. Held bytes arrive now.
func (l *Links) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.ways {
		s.delay = 0
		if !isClosed(s.open) {
			close(s.open)
		}
	}
}

// Cut breaks the connections between two members, whichever side opened them.
func (l *Links) Cut(a, b int) {
	l.cut(func(w direction) bool { return w == direction{a, b} || w == direction{b, a} })
}

func (l *Links) cut(which func(direction) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.conns {
		if which(t.direction) {
			t.close()
		}
	}
}

func (l *Links) state(w direction) (open <-chan struct{}, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.ways[w]
	return s.open, s.delay
}

func (l *Links) accept(listener net.Listener, w direction, target string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		// Ends when either of its connections ends, at the latest in Close, which awaits it.
		l.tasks.Go(func() { l.serve(conn, w, target) })
	}
}

// serve carries bytes between a member that dialled and its target. While the way is blocked, the
// dialler's connection stays silent, which is closer to packet loss than a refusal.
func (l *Links) serve(near net.Conn, w direction, target string) {
	t := &tunnel{direction: w, near: near, done: make(chan struct{})}
	l.mu.Lock()
	l.conns[t] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.conns, t)
		l.mu.Unlock()
		t.close()
	}()
	open, _ := l.state(w)
	select {
	case <-open:
	case <-t.done:
		return
	case <-l.done:
		return
	}
	far, err := net.Dial("tcp", target) // on loopback: succeeds or fails at once
	if err != nil {
		return // the dialler sees its connection close, as after a refusal
	}
	if !t.setFar(far) {
		return
	}
	var pumps sync.WaitGroup
	// Both end when either connection ends, because each closes the tunnel; awaited below.
	pumps.Go(func() { l.pump(t, far, near, w) })
	pumps.Go(func() { l.pump(t, near, far, direction{w.to, w.from}) })
	pumps.Wait()
}

// A parcel holds bytes in transit and their earliest arrival.
type parcel struct {
	data []byte
	due  time.Time
}

// pump moves bytes in one direction. Reader and writer are separate, so that a delay costs no
// throughput.
func (l *Links) pump(t *tunnel, to, from net.Conn, w direction) {
	const (
		chunkBytes = 32 << 10
		waiting    = 64 // parcels; beyond them the sender's socket fills, as on a slow network
	)
	parcels := make(chan parcel, waiting)
	written := make(chan struct{})
	// Ends when parcels is closed below, or early if it cannot write; awaited below.
	go func() {
		defer close(written)
		defer t.close()
		for p := range parcels {
			if !l.deliver(t, to, w, p) {
				return
			}
		}
	}()
	for {
		buf := make([]byte, chunkBytes)
		n, err := from.Read(buf)
		if n > 0 {
			_, delay := l.state(w)
			select {
			case parcels <- parcel{buf[:n], time.Now().Add(delay)}:
			case <-written:
				err = net.ErrClosed
			}
		}
		if err != nil {
			break
		}
	}
	close(parcels)
	<-written
}

// deliver writes a parcel when it is due and the way is open. It returns false if the tunnel is
// closed.
func (l *Links) deliver(t *tunnel, to net.Conn, w direction, p parcel) bool {
	if wait := time.Until(p.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.done:
			return false
		}
	}
	open, _ := l.state(w)
	select {
	case <-open:
	case <-t.done:
		return false
	}
	_, err := to.Write(p.data)
	return err == nil
}

// A tunnel is a connection between two members: two sockets of this process.
type tunnel struct {
	direction
	near net.Conn
	done chan struct{} // closed by close

	mu     sync.Mutex
	far    net.Conn
	closed bool
}

// setFar closes far and returns false if the tunnel is closed already.
func (t *tunnel) setFar(far net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = far.Close() // nothing was written to it
		return false
	}
	t.far = far
	return true
}

func (t *tunnel) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	close(t.done)
	_ = t.near.Close() // losing bytes is the purpose
	if t.far != nil {
		_ = t.far.Close()
	}
}
