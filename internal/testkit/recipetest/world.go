package recipetest

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// Timeout is the session timeout of a World's clients.
const Timeout = 10 * time.Second

// World is an ensemble and its clients.
type World struct {
	*zktest.Ensemble
	t testing.TB

	faults atomic.Int64 // troubles applied

	mu      sync.Mutex
	clients []*recipes.Client // in the order in which they were made
	plugs   map[*recipes.Client]*plug
}

// Run runs f in a bubble, with a World of this many members.
func Run(t *testing.T, members int, f func(t testing.TB, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, NewWorld(t, members)) })
}

// NewWorld returns a World that ends with the test. NewWorld must be called in a bubble.
func NewWorld(t testing.TB, members int) *World {
	return &World{Ensemble: zktest.StartEnsemble(t, members), t: t, plugs: make(map[*recipes.Client]*plug)}
}

// Client returns a Client made by recipes.Connect, which is closed with the test. The Client
// retries until ctx ends, unless opts contain another policy.
func (w *World) Client(opts ...recipes.Option) *recipes.Client {
	w.t.Helper()
	return w.Open(Connect, opts...)
}

// Open is Client for the given kind of client.
func (w *World) Open(kind Kind, opts ...recipes.Option) *recipes.Client {
	w.t.Helper()
	return w.open(kind, opts, nil)
}

func (w *World) open(kind Kind, opts []recipes.Option, h *Hooks) *recipes.Client {
	w.t.Helper()
	p := &plug{dial: w.Dialer()}
	c := open(w.t, kind, strings.Split(w.ConnectString(), ","), p.connect, Timeout, persistent(opts), h)
	w.add(c, p)
	return c
}

// Hooked is Client with requests that are counted and can be intercepted.
func (w *World) Hooked(opts ...recipes.Option) (*recipes.Client, *Hooks) {
	w.t.Helper()
	return w.OpenHooked(Connect, opts...)
}

// OpenHooked is Hooked for the given kind of client.
func (w *World) OpenHooked(kind Kind, opts ...recipes.Option) (*recipes.Client, *Hooks) {
	w.t.Helper()
	h := &Hooks{}
	return w.open(kind, opts, h), h
}

func persistent(opts []recipes.Option) []recipes.Option {
	return append([]recipes.Option{recipes.Retry(recipes.Forever(30 * time.Millisecond))}, opts...)
}

func (w *World) add(c *recipes.Client, p *plug) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = append(w.clients, c)
	w.plugs[c] = p
}

// Unplug breaks a client's connection and prevents new ones until Plug. To the servers it looks as
// if the client's process had died; the session expires after its timeout.
func (w *World) Unplug(c *recipes.Client) { w.plug(c).set(true) }

// Plug undoes Unplug.
func (w *World) Plug(c *recipes.Client) { w.plug(c).set(false) }

func (w *World) plug(c *recipes.Client) *plug {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.plugs[c]
	if p == nil {
		w.t.Fatal("recipetest: no client of this world")
	}
	return p
}

// plug makes a client's connections, and refuses while out.
type plug struct {
	dial  zk.Dialer
	mu    sync.Mutex
	out   bool
	conns []net.Conn
}

func (p *plug) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	conn, err := p.dial(network, address, timeout)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out {
		_ = conn.Close() // nothing was sent
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.ErrClosed}
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

func (p *plug) set(out bool) {
	p.mu.Lock()
	p.out = out
	conns := p.conns
	p.conns = nil
	p.mu.Unlock()
	if !out {
		return
	}
	for _, c := range conns {
		_ = c.Close() // may be closed already
	}
}
