package peer

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/pipenet"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// world is the network of a test: real loopback, or pipes in a bubble of testing/synctest.
type world struct {
	pipes     bool
	mu        sync.Mutex
	listeners map[string]*pipenet.Listener
	ports     map[string]*tcpport.Port
}

// everywhere runs a test over loopback, and over pipes in a bubble.
func everywhere(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("loopback", func(t *testing.T) { test(t, &world{}) })
	inBubble(t, test)
}

// inBubble runs a test over pipes, for tests that take long or wait until all goroutines are
// blocked.
func inBubble(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("pipes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(t, &world{pipes: true, listeners: make(map[string]*pipenet.Listener)})
		})
	})
}

// listen returns a listener on a new address, or on a given unused address.
func (w *world) listen(t testing.TB, address string) (net.Listener, string) {
	t.Helper()
	if !w.pipes {
		return w.listenTCP(t, address)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if address == "" {
		address = fmt.Sprintf("pipe-%d", len(w.listeners))
	}
	l := pipenet.Listen()
	w.listeners[address] = l
	return l, address
}

// listenTCP is listen on loopback. The port is reserved until the test ends.
func (w *world) listenTCP(t testing.TB, address string) (l net.Listener, at string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	port, err := w.ports[address], error(nil)
	if port != nil {
		l, err = port.Listen()
	} else if port, l, err = tcpport.Listen("127.0.0.1:0"); err == nil {
		if w.ports == nil {
			w.ports = make(map[string]*tcpport.Port)
		}
		w.ports[port.Address()] = port
		t.Cleanup(port.Release)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l, port.Address()
}

func (w *world) dial(ctx context.Context, address string) (net.Conn, error) {
	if !w.pipes {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	w.mu.Lock()
	l := w.listeners[address]
	w.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	conn, err := l.Dial()
	if err != nil {
		return nil, refused
	}
	return conn, nil
}

// member is a network with a Handler that records its calls.
type member struct {
	*Network
	t       testing.TB
	id      uint64
	pipes   bool // in a bubble
	address string
	log     *logbuf.Buffer
	frames  chan string // received, as "from: text"

	mu     sync.Mutex
	states map[uint64]chan string // of each peer: "up", "down", "refused"

	hello      string
	accept     func(from uint64, hello []byte) error
	judges     func(from uint64, known bool) error // called before accept
	receive    func(from uint64, frame []byte)
	checkpoint func(from uint64, r io.Reader) error
}

// start makes a member. change may set its functions and Config before it runs.
func (w *world) start(t testing.TB, id uint64, change ...func(m *member, cfg *Config)) *member {
	t.Helper()
	m := &member{
		t: t, id: id, pipes: w.pipes, log: new(logbuf.Buffer), hello: fmt.Sprintf("i am %d", id),
		frames: make(chan string, 10_000), states: make(map[uint64]chan string),
	}
	m.receive = func(from uint64, frame []byte) { m.frames <- fmt.Sprintf("%d: %s", from, frame) }
	cfg := Config{Self: id, Handler: m, Dial: w.dial, Logger: hclog.New(&hclog.LoggerOptions{Output: m.log, Level: hclog.Info})}
	for _, f := range change {
		f(m, &cfg)
	}
	if cfg.Listener == nil {
		cfg.Listener, m.address = w.listen(t, m.address)
	}
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.Network = n
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Errorf("Close of %d: %v", id, err)
		}
	})
	return m
}

// know makes members peers of each other, and waits for their connections.
func know(members ...*member) {
	for _, m := range members {
		m.t.Helper()
		addresses := make(map[uint64]string)
		for _, o := range members {
			addresses[o.id] = o.address
		}
		m.SetPeers(addresses)
	}
	for _, m := range members {
		for _, o := range members {
			if o != m {
				m.await(o.id, "up")
			}
		}
	}
}

func (m *member) Hello() []byte { return []byte(m.hello) }

func (m *member) Accept(from uint64, hello []byte, known bool) error {
	if m.judges != nil {
		if err := m.judges(from, known); err != nil {
			return err
		}
	}
	if m.accept != nil {
		return m.accept(from, hello)
	}
	return nil
}

func (m *member) Receive(from uint64, frame []byte) { m.receive(from, frame) }
func (m *member) Drained()                          {}

func (m *member) ReceiveCheckpoint(from uint64, r io.ReadCloser) error {
	if m.checkpoint != nil {
		return m.checkpoint(from, r)
	}
	return fmt.Errorf("no checkpoint expected")
}

func (m *member) Up(peer uint64) { m.statesOf(peer) <- "up" }

func (m *member) Down(peer uint64, refused bool) {
	if refused {
		m.statesOf(peer) <- "refused"
	} else {
		m.statesOf(peer) <- "down"
	}
}

func (m *member) statesOf(peer uint64) chan string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.states[peer] == nil {
		m.states[peer] = make(chan string, 10_000)
	}
	return m.states[peer]
}

// patience is how long a test waits for an event that must happen.
const patience = 30 * time.Second

// late returns a channel that is closed after patience: of the bubble's time, or of the time
// without other load.
func (m *member) late() <-chan struct{} {
	m.t.Helper()
	if !m.pipes {
		return watchdog.After(m.t, patience)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	m.t.Cleanup(cancel)
	return ctx.Done()
}

// await waits for a state of a peer, and skips other states.
func (m *member) await(peer uint64, want string) {
	m.t.Helper()
	timeout := m.late()
	for {
		select {
		case got := <-m.statesOf(peer):
			if got == want {
				return
			}
		case <-timeout:
			m.t.Fatalf("member %d waits for %d to be %s: %+v\n%s", m.id, peer, want, m.Status(), m.log)
		}
	}
}

// expect waits for one frame.
func (m *member) expect(want string) {
	m.t.Helper()
	select {
	case got := <-m.frames:
		if got != want {
			m.t.Fatalf("member %d received %q, want %q", m.id, got, want)
		}
	case <-m.late():
		m.t.Fatalf("member %d waits for frame %q: %+v\n%s", m.id, want, m.Status(), m.log)
	}
}

// status returns the state of one peer.
func (m *member) status(peer uint64) Status {
	m.t.Helper()
	for _, s := range m.Status() {
		if s.ID == peer {
			return s
		}
	}
	m.t.Fatalf("member %d has no peer %d: %+v", m.id, peer, m.Status())
	return Status{}
}

// eventually polls until a condition holds, which the second argument names for the reader. The
// watchdog stops a test that waits in vain.
func eventually(t testing.TB, _ string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		<-tick.C
	}
}
