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
)

// Links are the ways between members: one proxy per ordered pair and port. What may pass is set per direction of the
// bytes, whoever opened the connection. Safe for concurrent use.
type Links struct {
	done  chan struct{} // closed by Close
	tasks sync.WaitGroup
	net   addresses

	mu        sync.Mutex
	ways      map[way]*wayState
	conns     map[*tunnel]bool
	listeners map[door]net.Listener
}

// A door is where one member looks for another.
type door struct {
	way
	port int
}

// A way is a direction between two members.
type way struct{ from, to int }

type wayState struct {
	open  chan struct{} // closed: bytes may pass
	delay time.Duration
}

// newLinks finds addresses for an ensemble. Nobody is reached before Listen.
func newLinks(members int) (addresses, *Links, error) {
	// Runs side by side differ in their process ids, so mostly in their addresses; the ports settle the rest.
	a := addresses{net: byte(16 + os.Getpid()%200)}
	var every, own []string
	for i := 1; i <= members; i++ {
		own = append(own, a.ip(i, i))
		for j := 1; j <= members; j++ {
			every = append(every, a.ip(i, j))
		}
	}
	var err [3]error
	a.peerPort, err[0] = freePort(every)
	a.electionPort, err[1] = freePort(every)
	a.clientPort, err[2] = freePort(own)
	if err := errors.Join(err[:]...); err != nil {
		return a, nil, err
	}
	l := &Links{done: make(chan struct{}), net: a, ways: map[way]*wayState{}, conns: map[*tunnel]bool{}, listeners: map[door]net.Listener{}}
	for i := 1; i <= members; i++ {
		for j := 1; j <= members; j++ {
			if i != j {
				open := make(chan struct{})
				close(open)
				l.ways[way{i, j}] = &wayState{open: open}
			}
		}
	}
	return a, l, nil
}

// Close ends the proxies and awaits their goroutines.
func (l *Links) Close() error {
	close(l.done)
	err := l.refuse(func(door) bool { return true })
	l.cut(func(way) bool { return true })
	l.tasks.Wait()
	return err
}

// Listen lets the peers of a member reach it. To listen already is no error.
func (l *Links) Listen(member int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.ways {
		if w.to != member {
			continue
		}
		for _, port := range []int{l.net.peerPort, l.net.electionPort} {
			d := door{w, port}
			if l.listeners[d] != nil {
				continue
			}
			listener, err := net.Listen("tcp", net.JoinHostPort(l.net.ip(w.from, w.to), strconv.Itoa(port)))
			if err != nil {
				return fmt.Errorf("jepsenlite: %w", err)
			}
			l.listeners[d] = listener
			target := net.JoinHostPort(l.net.ip(w.to, w.to), strconv.Itoa(port))
			l.tasks.Add(1)
			// Ends when Refuse or Close closes the listener; Close awaits it.
			go func() {
				defer l.tasks.Done()
				l.accept(listener, w, target)
			}()
		}
	}
	return nil
}

// Refuse has the peers of a member refused, as by a machine on which nobody listens: a proxy that took their connections
// only to close them would hide that the member is gone.
func (l *Links) Refuse(member int) error {
	return l.refuse(func(d door) bool { return d.to == member })
}

func (l *Links) refuse(which func(door) bool) error {
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

// Block lets nothing pass from one member to another any more. Connections stay, as over a network that loses packets.
func (l *Links) Block(from, to int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.ways[way{from, to}]; isClosed(s.open) {
		s.open = make(chan struct{})
	}
}

// Delay holds everything from one member to another back for d.
func (l *Links) Delay(from, to int, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ways[way{from, to}].delay = d
}

// Heal opens every way, without delay. What waited on the way arrives now.
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

// Cut breaks the connections between two members, in whichever direction they were opened.
func (l *Links) Cut(a, b int) {
	l.cut(func(w way) bool { return w == way{a, b} || w == way{b, a} })
}

func (l *Links) cut(which func(way) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.conns {
		if which(t.way) {
			t.close()
		}
	}
}

func (l *Links) state(w way) (open <-chan struct{}, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.ways[w]
	return s.open, s.delay
}

func (l *Links) accept(listener net.Listener, w way, target string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return // closed
		}
		l.tasks.Add(1)
		// Ends when one of its connections does, at the latest in Close, which awaits it.
		go func() {
			defer l.tasks.Done()
			l.serve(conn, w, target)
		}()
	}
}

// serve carries bytes between a member that dialled and the one it wants. While the way is blocked the dialler has a
// connection on which nothing answers: nearer to a lost packet than a refusal would be.
func (l *Links) serve(near net.Conn, w way, target string) {
	t := &tunnel{way: w, near: near, done: make(chan struct{})}
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
	far, err := net.Dial("tcp", target) // on loopback: it answers at once, or not
	if err != nil {
		return // the dialler sees its connection close, as after a refusal
	}
	if !t.setFar(far) {
		return
	}
	var pumps sync.WaitGroup
	pumps.Add(2)
	// Both end when either connection does, because each closes the tunnel; awaited below.
	go func() {
		defer pumps.Done()
		l.pump(t, far, near, w)
	}()
	// As above.
	go func() {
		defer pumps.Done()
		l.pump(t, near, far, way{w.to, w.from})
	}()
	pumps.Wait()
}

// A parcel is bytes on their way, and when they may arrive at the earliest.
type parcel struct {
	data []byte
	due  time.Time
}

// pump moves bytes in one direction. Reader and writer are apart, so that a delay costs no throughput.
func (l *Links) pump(t *tunnel, to, from net.Conn, w way) {
	const (
		chunkBytes = 32 << 10
		waiting    = 64 // parcels; beyond them the sender's socket fills, as on a slow network
	)
	parcels := make(chan parcel, waiting)
	written := make(chan struct{})
	// Ends when parcels is closed below, or early if it can't write; awaited below.
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

// deliver writes a parcel when its time has come and the way is open. false: the tunnel is closed.
func (l *Links) deliver(t *tunnel, to net.Conn, w way, p parcel) bool {
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
	way
	near net.Conn
	done chan struct{} // closed by close

	mu     sync.Mutex
	far    net.Conn
	closed bool
}

// setFar reports false, and closes far, if the tunnel is closed already.
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
	_ = t.near.Close() // what is lost on a connection that breaks is the point of breaking it
	if t.far != nil {
		_ = t.far.Close()
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
