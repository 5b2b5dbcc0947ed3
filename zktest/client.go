package zktest

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/lastzxid"
	"github.com/gozkd/gozkd/recipes"
)

// DefaultSessionTimeout is the session timeout that the clients of Connect ask for.
const DefaultSessionTimeout = 10 * time.Second

// Connect returns a go-zookeeper client that has a session. The client is closed with the test.
// After losing its connection it reconnects at once, where go-zookeeper would pause for a second. A
// client with your program's settings should use ConnectString, and Dialer in a bubble. options are
// go-zookeeper's, such as zk.WithEventCallback.
func (s *Service) Connect(t testing.TB, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	return s.ConnectTimeout(t, DefaultSessionTimeout, options...)
}

// ConnectTimeout is Connect with another session timeout.
func (s *Service) ConnectTimeout(t testing.TB, timeout time.Duration, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	return s.connect(t, timeout, s.Servers(), s.Dialer(), options)
}

func (s *Service) connect(t testing.TB, timeout time.Duration, addresses []string, dial zk.Dialer, options []func(*zk.Conn)) *zk.Conn {
	t.Helper()
	all := func(c *zk.Conn) { // go-zookeeper does not export its type of options
		for _, set := range options {
			set(c)
		}
	}
	servers := &eager{servers: addresses}
	line := &line{dial: dial}
	conn, events, err := zk.Connect(addresses, timeout,
		zk.WithDialer(line.connect), zk.WithHostProvider(servers), zk.WithLogger(s.logs), all)
	if err != nil {
		t.Fatalf("zktest: connect: %v", err)
	}
	t.Cleanup(func() {
		s.show(t) // before the session and its ephemerals end with the connection
		hangUp := func() {
			servers.none.Store(true)
			line.hangUp()
		}
		if !s.cluster.Answers(conn.SessionID()) {
			// A client waits a second for the reply to its close, and longer for a connection.
			early := time.AfterFunc(farewell, hangUp)
			defer early.Stop()
		}
		conn.Close()
		hangUp() // early may not have fired, and in a bubble no more time passes
	})
	late := time.After(waitTimeout)
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-late:
			t.Fatalf("zktest: connect: no session within %v", waitTimeout)
		}
	}
}

// Client returns a Client of package client that has a session, for operations that go-zookeeper
// lacks. The Client is closed with the test. set may change the configuration.
func (s *Service) Client(t testing.TB, set ...func(*client.Config)) *client.Client {
	t.Helper()
	cfg := client.Config{Servers: s.Servers(), SessionTimeout: DefaultSessionTimeout, Dial: s.cluster.Dial}
	for _, f := range set {
		f(&cfg)
	}
	ctx, cancel := s.context()
	defer cancel()
	c, err := client.Connect(ctx, cfg)
	if err != nil {
		t.Fatalf("zktest: %v", err)
	}
	t.Cleanup(func() {
		s.show(t)
		_ = c.Close() // fails if the test has stopped the servers
	})
	return c
}

// Recipes returns a Client for recipes that has a session. The Client is closed with the test.
func (s *Service) Recipes(t testing.TB, opts ...recipes.Option) *recipes.Client {
	t.Helper()
	ctx, cancel := s.context()
	defer cancel()
	c, err := recipes.Connect(ctx, s.Servers(), append([]recipes.Option{recipes.Dialer(s.Dialer()), recipes.Logger(s.logs)}, opts...)...)
	if err != nil {
		t.Fatalf("zktest: %v", err)
	}
	t.Cleanup(func() {
		s.show(t)
		if err := c.Close(); err != nil {
			t.Errorf("zktest: %v", err)
		}
	})
	return c
}

// farewell is how long a client may try to close its session if no server answers.
const farewell = 50 * time.Millisecond

// line holds a client's present connection. hangUp breaks the line for good.
type line struct {
	dial zk.Dialer
	seen lastzxid.Seen // keeps a race inside go-zookeeper out of the race detector's reports

	mu    sync.Mutex
	now   net.Conn // nil: no connection so far
	ended bool
}

func (l *line) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	nc, err := l.dial(network, address, timeout)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.ended {
		_ = nc.Close() // not used yet
		return nil, net.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	l.now = lastzxid.NewConn(nc, &l.seen)
	return l.now, nil
}

func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.now != nil {
		_ = l.now.Close() // an error means that the connection is closed already
	}
}

// ConnectString returns the addresses of all members, host:port,host:port, for any client.
func (s *Service) ConnectString() string { return s.cluster.ConnectString() }

// Servers returns the addresses of all members, each host:port.
func (s *Service) Servers() []string { return strings.Split(s.ConnectString(), ",") }

// Dialer returns a dial function for zk.WithDialer that connects to the addresses in ConnectString.
// A client in a bubble needs this function; elsewhere it dials TCP.
func (s *Service) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return dialer(s.cluster.Dial)
}

// dialer returns dial as a zk.Dialer.
func dialer(dial client.Dial) func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(_, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return dial(ctx, address)
	}
}

// eager is a zk.HostProvider that lets a client reconnect at once. After many failures it allows
// go-zookeeper's pause of a second. In this pause the client also fails its pending requests and
// notices Close.
type eager struct {
	mu      sync.Mutex
	servers []string
	next    int
	tries   int // since the last success or pause

	none atomic.Bool // no address can succeed any more
}

const (
	eagerPause = 5 * time.Millisecond
	eagerTries = 100
)

func (e *eager) Init([]string) error { return nil }

func (e *eager) Len() int { return len(e.servers) }

func (e *eager) Next() (server string, retryStart bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tries++; e.tries > len(e.servers) {
		time.Sleep(eagerPause)
	}
	if e.tries > eagerTries || e.none.Load() {
		e.tries, retryStart = 0, true
	}
	server = e.servers[e.next%len(e.servers)]
	e.next++
	return server, retryStart
}

func (e *eager) Connected() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tries = 0
}
