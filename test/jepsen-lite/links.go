//go:build linux

package jepsenlite

import (
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Links are the network between members: a proxy per ordered pair and port, which carries the bytes
// through a memnet.Network. Blocks and delays are set per direction of the bytes, whoever opened
// the connection. Safe for concurrent use.
type Links struct {
	open    context.Context // ends with Close
	end     context.CancelFunc
	tasks   sync.WaitGroup
	net     addresses
	network *memnet.Network // members are named by their ids
	// roundTrip and lossPercent are those of all links, besides faults.
	roundTrip   time.Duration
	lossPercent float64

	mu        sync.Mutex
	listeners map[route]net.Listener // where members look for others
}

// A route is where the member from looks for a port of the member to.
type route struct{ from, to, port int }

// newLinks chooses addresses for an ensemble. No member is reachable before Listen.
func newLinks(members int, roundTrip time.Duration, lossPercent float64) (addresses, *Links) {
	// Concurrent runs differ in their process ids and so mostly in their addresses; ports settle
	// the rest.
	a := addresses{net: byte(16 + os.Getpid()%200), members: members}
	var every []string
	for i := range members {
		for j := range members {
			every = append(every, a.ip(i+1, j+1))
		}
	}
	ports := must.Get(server.FreePorts(3, every...))
	a.peerPort, a.electionPort, a.clientPort = ports[0], ports[1], ports[2]
	l := &Links{net: a, network: memnet.New(roundTrip / 2), roundTrip: roundTrip, lossPercent: lossPercent, listeners: map[route]net.Listener{}}
	l.open, l.end = context.WithCancel(context.Background())
	for id := range members {
		for _, port := range []int{a.peerPort, a.electionPort} {
			inside := must.Get(l.network.Listen(insideAddr(id+1, port)))
			context.AfterFunc(l.open, func() { _ = inside.Close() }) // its first Close
			target := net.JoinHostPort(a.ip(id+1, id+1), strconv.Itoa(port))
			l.accept(inside, func() (net.Conn, error) { return net.Dial("tcp", target) })
		}
	}
	return a, l
}

// insideAddr returns the address of a member's port in the Network.
func insideAddr(member, port int) string {
	return net.JoinHostPort(strconv.Itoa(member), strconv.Itoa(port))
}

// Close ends the proxies and waits for their goroutines.
func (l *Links) Close() {
	l.end()
	l.refuse(func(route) bool { return true })
	for id := range l.net.members {
		l.network.Tear(strconv.Itoa(id+1), "")
	}
	l.tasks.Wait()
}

// Listen lets a member's peers reach it. Calling it again is no error.
func (l *Links) Listen(member int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for from := range l.net.members {
		for _, port := range []int{l.net.peerPort, l.net.electionPort} {
			r := route{from + 1, member, port}
			if r.from == member || l.listeners[r] != nil {
				continue
			}
			l.listeners[r] = must.Get(net.Listen("tcp", net.JoinHostPort(l.net.ip(r.from, member), strconv.Itoa(port))))
			// While the way is blocked, the dialler's connection stays silent, which is closer to
			// packet loss than a refusal.
			l.accept(l.listeners[r], func() (net.Conn, error) {
				return l.network.Dial(l.open, strconv.Itoa(r.from), insideAddr(member, port))
			})
		}
	}
}

// Refuse makes a member's peers refused, as by a machine without a listener. A proxy that accepted
// their connections and closed them would hide that the member is gone.
func (l *Links) Refuse(member int) {
	l.refuse(func(r route) bool { return r.to == member })
}

func (l *Links) refuse(which func(route) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r, listener := range l.listeners {
		if which(r) {
			delete(l.listeners, r)
			must.Do(listener.Close())
		}
	}
}

// Block stops all bytes from one member to another. Connections stay, as where packets are lost.
func (l *Links) Block(from, to int) { l.network.Cut(strconv.Itoa(from), strconv.Itoa(to), true) }

// Delay delays all bytes from one member to another by d.
func (l *Links) Delay(from, to int, d time.Duration) {
	l.network.Delay(strconv.Itoa(from), strconv.Itoa(to), d)
}

// Heal opens every direction without delay. Held bytes arrive now.
func (l *Links) Heal() {
	for i := range l.net.members {
		for j := range l.net.members {
			l.Delay(i+1, j+1, 0)
			l.network.Cut(strconv.Itoa(i+1), strconv.Itoa(j+1), false)
		}
	}
}

// Cut breaks the connections between two members, whichever side opened them.
func (l *Links) Cut(a, b int) { l.network.Tear(strconv.Itoa(a), strconv.Itoa(b)) }

// accept joins each connection that a listener accepts to one that dial makes.
func (l *Links) accept(listener net.Listener, dial func() (net.Conn, error)) {
	// Ends when Refuse or Close closes the listener; Close awaits it.
	l.tasks.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // closed
			}
			// Ends when either of its connections ends, at the latest in Close, which awaits it.
			l.tasks.Go(func() {
				far, err := dial()
				if err != nil {
					_ = near.Close() // the dialler sees its connection close, as after a refusal
					return
				}
				l.join(near, far)
			})
		}
	})
}

// join moves bytes both ways until one of the connections ends, and closes both.
func (l *Links) join(a, b net.Conn) {
	var pumps sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		// Ends when either connection ends; awaited below.
		pumps.Go(func() {
			_, _ = io.Copy(lossy{way[0], l}, way[1]) // how a connection ended does not matter
			_, _ = a.Close(), b.Close()              // the other pump may have closed them
		})
	}
	pumps.Wait()
}

// lossy is a connection into the Network whose packets may be lost.
type lossy struct {
	net.Conn
	links *Links
}

// Write waits until no packet of b is lost.
func (c lossy) Write(b []byte) (int, error) {
	if _, inside := c.RemoteAddr().(memnet.Addr); inside {
		time.Sleep(c.links.lateness(len(b)))
	}
	return c.Conn.Write(b)
}

// lateness returns how much later than usual bytes arrive that are sent now. TCP sends a lost
// packet again after a round trip, or a timeout, which doubles each time, and all that follows
// waits.
func (l *Links) lateness(bytes int) (d time.Duration) {
	const packetBytes = 1448
	arrives := math.Pow(1-l.lossPercent/100, float64(1+bytes/packetBytes))
	for timeout := l.roundTrip; rand.Float64() > arrives; timeout *= 2 {
		d += timeout
	}
	return d
}
