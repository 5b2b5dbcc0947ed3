package jepsenlite

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/backoff"
)

// A client is go-zookeeper's client, with a tap on each of its connections.
type client struct {
	*zk.Conn
	name  string
	hosts *hosts

	mu       sync.Mutex
	conn     *tap // the last one
	vanished bool
}

// errVanished is returned to clients that must not find a server any more.
var errVanished = errors.New("jepsenlite: this client is gone")

// maxReply bounds the replies that go-zookeeper takes. It allocates and clears a buffer of that
// size for each connection, of 1.5 MiB without a bound: a quarter of what simulated runs allocated.
const maxReply = 512 << 10

// lostServers is the log of clients, in which lost servers are expected. A reply beyond maxReply,
// on which a client closes the connection, must not pass for one.
type lostServers struct{}

func (lostServers) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("exceeds max buffer size")) {
		panic(string(b))
	}
	return len(b), nil
}

// connect returns a client that tries addresses[home] first and then the following. It returns
// at once; requests wait for a session. The caller closes it.
func connect(rec *Recorder, name string, addresses []string, home int, timeout time.Duration) (*client, error) {
	c := &client{name: name, hosts: &hosts{addresses: addresses, home: home % len(addresses), next: home % len(addresses)}}
	dial := func(_, address string, limit time.Duration) (net.Conn, error) {
		t, err := rec.connect(name, address, c.hosts.member(address), limit)
		if err != nil {
			if len(addresses) == 1 {
				time.Sleep(5 * time.Millisecond) // in place of the client's own second, see Next
			}
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.vanished {
			return nil, errors.Join(errVanished, t.Close())
		}
		c.conn = t
		return t, nil
	}
	conn, _, err := zk.Connect(addresses, timeout, zk.WithDialer(dial), zk.WithHostProvider(c.hosts), zk.WithLogger(log.New(lostServers{}, "", 0)), zk.WithMaxBufferSize(maxReply))
	c.Conn = conn
	return c, err
}

// Close closes the session and ends the client.
func (c *client) Close() {
	c.hosts.slow()
	c.Conn.Close()
}

// vanish breaks the connection and prevents another: the session must expire.
func (c *client) vanish() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.vanished = true
	c.hosts.slow()
	if c.conn == nil {
		return nil
	}
	return c.conn.Close()
}

// goHome breaks a connection to another server than the client's own, which it then tries first.
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
		if !backoff.Sleep(ctx, 5*time.Millisecond) {
			return ctx.Err()
		}
	}
	return nil
}

// hosts is a round-robin host provider. Unlike go-zookeeper's it does not shuffle: the run chooses
// where a client begins.
type hosts struct {
	addresses []string
	home      int // index of the first

	mu    sync.Mutex
	next  int
	tried int  // since the last success
	pause bool // also with a single server
}

// Init does nothing: the addresses are known.
func (h *hosts) Init([]string) error { return nil }

// Len returns the number of servers.
func (h *hosts) Len() int { return len(h.addresses) }

// Next returns the next server; after each round without success the client pauses for a second,
// except for a single server, which is killed more often.
func (h *hosts) Next() (string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	address := h.addresses[h.next]
	h.next = (h.next + 1) % len(h.addresses)
	h.tried++
	if h.tried > len(h.addresses) {
		h.tried = 1
		return address, h.pause || len(h.addresses) > 1
	}
	return address, false
}

// slow lets a client of a single server pause too: only during the pause does go-zookeeper notice
// that the client was closed.
func (h *hosts) slow() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pause = true
}

// Connected resets the count of attempts.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried, h.next = 0, h.home
}

// member returns the id of the member at an address. Addresses are in order of ids.
func (h *hosts) member(address string) int {
	return 1 + slices.Index(h.addresses, address)
}
