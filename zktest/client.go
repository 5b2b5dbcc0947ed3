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

	"github.com/gozkd/gozkd/internal/lastzxid"
)

// DefaultSessionTimeout is what the clients of Connect ask for.
const DefaultSessionTimeout = 10 * time.Second

// Connect returns a go-zookeeper client that has a session. It is closed with the test. It tries again at once when it loses its
// connection, where go-zookeeper's own pause is a second; for a client as your program makes it, use ConnectString, and Dialer in a
// bubble. Options are those of go-zookeeper, such as zk.WithEventCallback.
func (s *Service) Connect(t testing.TB, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	return s.ConnectTimeout(t, DefaultSessionTimeout, options...)
}

// ConnectTimeout is Connect with another session timeout.
func (s *Service) ConnectTimeout(t testing.TB, timeout time.Duration, options ...func(*zk.Conn)) *zk.Conn {
	t.Helper()
	return s.connect(t, timeout, s.addresses(), options)
}

func (s *Service) connect(t testing.TB, timeout time.Duration, addresses []string, options []func(*zk.Conn)) *zk.Conn {
	t.Helper()
	all := func(c *zk.Conn) { // go-zookeeper's type for an option has no name out here
		for _, set := range options {
			set(c)
		}
	}
	servers := &eager{servers: addresses}
	line := &line{dial: s.Dialer()}
	conn, events, err := zk.Connect(addresses, timeout,
		zk.WithDialer(line.connect), zk.WithHostProvider(servers), zk.WithLogger(s.logs), all)
	if err != nil {
		t.Fatalf("zktest: connect: %v", err)
	}
	t.Cleanup(func() {
		s.show(t) // now, since the session and its ephemerals end with the connection
		hangUp := func() {
			servers.none.Store(true)
			line.hangUp()
		}
		if !s.cluster.Answers(conn.SessionID()) {
			// A client waits a second for the answer to its farewell, and longer for a new connection.
			early := time.AfterFunc(farewell, hangUp)
			defer early.Stop()
		}
		conn.Close()
		hangUp() // it may not have come to an end, and in a bubble no time passes any more
	})
	late := time.NewTimer(waitTimeout)
	defer late.Stop()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return conn
			}
		case <-late.C:
			t.Fatalf("zktest: no session in %v", waitTimeout)
		}
	}
}

// farewell is how long a client may try to end its session when there is nobody to end it.
const farewell = 50 * time.Millisecond

// line is a client's present connection.
type line struct {
	dial zk.Dialer
	seen lastzxid.Seen // so that tests under the race detector report their own races only

	mu    sync.Mutex
	now   net.Conn // nil: none yet
	ended bool
}

func (l *line) connect(network, address string, timeout time.Duration) (net.Conn, error) {
	nc, err := l.dial(network, address, timeout)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.ended {
		_ = nc.Close() // nobody has used it
		return nil, net.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	l.now = lastzxid.NewConn(nc, &l.seen)
	return l.now, nil
}

// hangUp ends the connection, and lets there be no other.
func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.now != nil {
		_ = l.now.Close() // an error would say that it is closed already
	}
}

// ConnectString returns the addresses of all members, host:port,host:port, for any client.
func (s *Service) ConnectString() string { return s.cluster.ConnectString() }

func (s *Service) addresses() []string { return strings.Split(s.ConnectString(), ",") }

// Dialer connects to the addresses in ConnectString: for zk.WithDialer. In a bubble there is no other way; elsewhere it is TCP.
func (s *Service) Dialer() func(network, address string, timeout time.Duration) (net.Conn, error) {
	return func(_, address string, timeout time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		return s.cluster.Dial(ctx, address)
	}
}

// eager is a zk.HostProvider whose clients try again soon. Only after many tries in vain it lets them make the pause of a second
// that go-zookeeper makes each time: then they also give up what they were asked, and notice that they were closed.
type eager struct {
	mu      sync.Mutex
	servers []string
	next    int
	tries   int // since the last that succeeded, or since the last pause

	none atomic.Bool // it is of no use to try
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
