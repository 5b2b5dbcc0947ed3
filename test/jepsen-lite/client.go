package jepsenlite

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// A client is go-zookeeper's, with a tap on each of its connections.
type client struct {
	*zk.Conn
	name  string
	hosts *hosts

	mu       sync.Mutex
	conn     *tap // the last one
	vanished bool
}

// errVanished is what a client gets that must not find a server any more.
var errVanished = errors.New("jepsenlite: this client is gone")

// connect returns a client that looks for a server at addresses[home] first, and then at the next ones, whenever it has
// none. It returns at once: requests wait until there is a session. The caller closes it.
func connect(rec *Recorder, name string, addresses []string, home int, timeout time.Duration) (*client, error) {
	c := &client{name: name, hosts: &hosts{addresses: addresses, home: home % len(addresses), next: home % len(addresses)}}
	dial := func(network, address string, limit time.Duration) (net.Conn, error) {
		conn, err := net.DialTimeout(network, address, limit)
		if err != nil {
			return nil, err
		}
		t := newTap(conn, rec, name, c.hosts.member(address))
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.vanished {
			return nil, errors.Join(errVanished, t.Close())
		}
		c.conn = t
		return t, nil
	}
	conn, _, err := zk.Connect(addresses, timeout, zk.WithDialer(dial), zk.WithHostProvider(c.hosts), zk.WithLogger(quiet{}))
	c.Conn = conn
	return c, err
}

// vanish breaks the connection without a word and lets none be made again: the session must expire.
func (c *client) vanish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vanished = true
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

// goHome breaks a connection to another server than the client's own, which it tries first then.
func (c *client) goHome() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil && c.conn.member != c.hosts.home+1 {
		_ = c.conn.Close() // it may be broken already
	}
}

// await returns when the client has a session.
func (c *client) await(ctx context.Context) error {
	for c.State() != zk.StateHasSession {
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// hosts is a host provider that goes round, from the same address each time. Unlike go-zookeeper's it does not shuffle:
// where a client begins is the run's choice.
type hosts struct {
	addresses []string
	home      int // index of the first

	mu    sync.Mutex
	next  int
	tried int // since the last success
}

// Init does nothing: the addresses are known.
func (h *hosts) Init([]string) error { return nil }

// Len returns the number of servers.
func (h *hosts) Len() int { return len(h.addresses) }

// Next returns the next server; the client pauses for a second each time when all were tried.
func (h *hosts) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	address := h.addresses[h.next]
	h.next = (h.next + 1) % len(h.addresses)
	h.tried++
	if h.tried > len(h.addresses) {
		h.tried = 1
		return address, true
	}
	return address, false
}

// Connected notes that the last server has answered.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.next = 0, h.home
}

// member returns the id of the member with an address: they are in order.
func (h *hosts) member(address string) int {
	for i, a := range h.addresses {
		if a == address {
			return i + 1
		}
	}
	return 0
}

// quiet is a logger for go-zookeeper: that servers go away is no news here.
type quiet struct{}

// Printf drops the message.
func (quiet) Printf(string, ...any) {}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
