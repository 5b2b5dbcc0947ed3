//go:build linux

package jepsenlite

import (
	"context"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Links are the network between members: a proxy per ordered pair and port. Blocks and delays are
// set per direction of the bytes, whoever opened the connection. Safe for concurrent use.
type Links struct {
	open  context.Context // ends with Close
	end   context.CancelFunc
	tasks sync.WaitGroup
	net   addresses
	// roundTrip and lossPercent are those of all links, besides faults.
	roundTrip   time.Duration
	lossPercent float64

	mu        sync.Mutex
	ways      map[direction]*directionState
	tunnels   map[*direction]context.CancelFunc // what breaks each connection between two members
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
func newLinks(members int) (addresses, *Links) {
	// Concurrent runs differ in their process ids and so mostly in their addresses; ports settle
	// the rest.
	a := addresses{net: byte(16 + os.Getpid()%200)}
	l := &Links{ways: map[direction]*directionState{}, tunnels: map[*direction]context.CancelFunc{}, listeners: map[route]net.Listener{}}
	l.open, l.end = context.WithCancel(context.Background())
	var every []string
	for i := 1; i <= members; i++ {
		for j := 1; j <= members; j++ {
			every = append(every, a.ip(i, j))
			if i != j {
				open := make(chan struct{})
				close(open)
				l.ways[direction{i, j}] = &directionState{open: open}
			}
		}
	}
	ports := must.Get(server.FreePorts(3, every...))
	a.peerPort, a.electionPort, a.clientPort = ports[0], ports[1], ports[2]
	l.net = a
	return a, l
}

// Close ends the proxies and waits for their goroutines.
func (l *Links) Close() {
	l.end()
	l.refuse(func(route) bool { return true })
	l.tasks.Wait()
}

// Listen lets a member's peers reach it. Calling it again is no error.
func (l *Links) Listen(member int) {
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
			listener := must.Get(net.Listen("tcp", net.JoinHostPort(l.net.ip(w.from, w.to), strconv.Itoa(port))))
			l.listeners[d] = listener
			target := net.JoinHostPort(l.net.ip(w.to, w.to), strconv.Itoa(port))
			// Ends when Refuse or Close closes the listener; Close awaits it.
			l.tasks.Go(func() { l.accept(listener, w, target) })
		}
	}
}

// Refuse makes a member's peers refused, as by a machine without a listener. A proxy that accepted
// their connections and closed them would hide that the member is gone.
func (l *Links) Refuse(member int) {
	l.refuse(func(d route) bool { return d.to == member })
}

func (l *Links) refuse(which func(route) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d, listener := range l.listeners {
		if which(d) {
			delete(l.listeners, d)
			must.Do(listener.Close())
		}
	}
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
	l.mu.Lock()
	defer l.mu.Unlock()
	for w, end := range l.tunnels {
		if *w == (direction{a, b}) || *w == (direction{b, a}) {
			end()
		}
	}
}

// passable waits until bytes may pass, and returns false if their connection has ended.
func (l *Links) passable(tunnel context.Context, w direction) bool {
	l.mu.Lock()
	open := l.ways[w].open
	l.mu.Unlock()
	select {
	case <-open:
	case <-tunnel.Done():
	}
	return tunnel.Err() == nil
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
	tunnel, end := context.WithCancel(l.open)
	l.mu.Lock()
	l.tunnels[&w] = end
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.tunnels, &w)
		end()
	}()
	closing(tunnel, near)
	if !l.passable(tunnel, w) {
		return
	}
	far, err := net.Dial("tcp", target) // on loopback: succeeds or fails at once
	if err != nil {
		return // the dialler sees its connection close, as after a refusal
	}
	closing(tunnel, far)
	var pumps sync.WaitGroup
	// Both end when either connection ends, because each ends the tunnel; awaited below.
	pumps.Go(func() { l.pump(tunnel, end, far, near, w) })
	pumps.Go(func() { l.pump(tunnel, end, near, far, direction{w.to, w.from}) })
	pumps.Wait()
}

// closing closes c when the tunnel ends.
func closing(tunnel context.Context, c net.Conn) {
	context.AfterFunc(tunnel, func() { _ = c.Close() }) // losing bytes is the purpose
}

// A parcel holds bytes in transit and their earliest arrival.
type parcel struct {
	data []byte
	due  time.Time
}

// latency returns how long bytes that are sent now take. TCP sends a lost packet again after a
// round trip, or a timeout, which doubles each time, and all that follows waits.
func (l *Links) latency(w direction, bytes int) time.Duration {
	const packetBytes = 1448
	l.mu.Lock()
	d := l.ways[w].delay + l.roundTrip/2
	l.mu.Unlock()
	arrives := math.Pow(1-l.lossPercent/100, float64(1+bytes/packetBytes))
	for timeout := l.roundTrip; rand.Float64() > arrives; timeout *= 2 {
		d += timeout
	}
	return d
}

// pump moves bytes in one direction. Reader and writer are separate, so that a delay costs no
// throughput.
func (l *Links) pump(tunnel context.Context, end context.CancelFunc, to, from net.Conn, w direction) {
	const (
		chunkBytes = 32 << 10
		waiting    = 64 // parcels; beyond them the sender's socket fills, as on a slow network
	)
	parcels := make(chan parcel, waiting)
	var writer sync.WaitGroup
	// Ends when parcels is closed below, or early if it cannot write; awaited below.
	writer.Go(func() {
		defer end()
		for p := range parcels {
			if wait := time.Until(p.due); wait > 0 && pause(tunnel, wait) != nil || !l.passable(tunnel, w) {
				return
			}
			if _, err := to.Write(p.data); err != nil {
				return
			}
		}
	})
	for {
		buf := make([]byte, chunkBytes)
		n, err := from.Read(buf)
		if n > 0 {
			select {
			case parcels <- parcel{buf[:n], time.Now().Add(l.latency(w, n))}:
			case <-tunnel.Done():
				err = net.ErrClosed
			}
		}
		if err != nil {
			break
		}
	}
	close(parcels)
	writer.Wait()
}
