package recipetest

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/lastzxid"
	"github.com/gozkd/gozkd/internal/requesthook"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/gozk"
	"github.com/gozkd/gozkd/zktest"
)

// Kind is a way to make a Client.
type Kind string

// The kinds.
const (
	Connect Kind = "connect"
	Wrap    Kind = "wrap"
)

// Kinds returns both kinds.
func Kinds() []Kind { return []Kind{Connect, Wrap} }

// Open returns a Client of a service, which is closed with the test. opts override the defaults.
func Open(t testing.TB, kind Kind, s *zktest.Service, timeout time.Duration, opts ...recipes.Option) *recipes.Client {
	t.Helper()
	return OpenWith(t, kind, s, timeout, s.Dialer(), opts...)
}

// OpenWith is Open with another dialer than that of the service.
func OpenWith(
	t testing.TB, kind Kind, s *zktest.Service, timeout time.Duration, dial zk.Dialer, opts ...recipes.Option,
) *recipes.Client {
	t.Helper()
	return open(t, kind, strings.Split(s.ConnectString(), ","), dial, timeout, opts, nil)
}

// open reports the requests of the Client to h, unless h is nil.
func open(t testing.TB, kind Kind, servers []string, dial zk.Dialer, timeout time.Duration, opts []recipes.Option, h *Hooks) *recipes.Client {
	t.Helper()
	var (
		c   *recipes.Client
		err error
	)
	opts = append([]recipes.Option{recipes.SessionTimeout(timeout), recipes.Dialer(dial), recipes.Logger(NewLogger(t))}, opts...)
	ctx := t.Context()
	if h != nil {
		ctx = requesthook.With(ctx, h.ask)
	}
	switch kind {
	case Connect:
		c, err = recipes.Connect(ctx, servers, opts...)
	case Wrap:
		conn, events := connect(t, servers, dial, timeout)
		c, err = recipes.Wrap(ctx, gozk.Conn(conn), events, timeout, opts...)
	default:
		t.Fatalf("recipetest: no kind of client is called %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, c)
	return c
}

// OpenUnaware wraps a connection whose events the Client does not receive. next ends the session
// and returns when the connection has a new session that the Client does not know yet.
func OpenUnaware(t testing.TB, s *zktest.Service) (c *recipes.Client, next func()) {
	t.Helper()
	conn, _ := connect(t, strings.Split(s.ConnectString(), ","), s.Dialer(), Timeout)
	c, err := recipes.Wrap(t.Context(), gozk.Conn(conn), make(chan zk.Event), Timeout, recipes.Logger(NewLogger(t)))
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, c)
	return c, func() {
		t.Helper()
		session := c.Session()
		s.ExpireSession(session.ID())
		for conn.State() != zk.StateHasSession || conn.SessionID() == session.ID() {
			time.Sleep(time.Millisecond)
		}
		if c.Session() != session || session.Context().Err() != nil {
			t.Fatal("the test has come too late")
		}
	}
}

// connect returns a connection to wrap, which is closed with the test.
func connect(t testing.TB, servers []string, dial zk.Dialer, timeout time.Duration) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	conn, events, err := zk.Connect(servers, timeout, zk.WithDialer(withoutRace(dial)), zk.WithLogger(NewLogger(t)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn, events
}

func closeAfter(t testing.TB, c *recipes.Client) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// withoutRace avoids a data race in go-zookeeper's reconnect.
func withoutRace(dial zk.Dialer) zk.Dialer {
	seen := &lastzxid.Seen{}
	return func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		return lastzxid.NewConn(conn, seen), nil
	}
}

// logger writes to the test's log until the test ends; go-zookeeper's goroutines may end later.
type logger struct {
	mu    sync.Mutex
	t     testing.TB
	ended bool
}

// NewLogger returns a logger for the test's log, which may be used after the test has ended.
func NewLogger(t testing.TB) zk.Logger {
	l := &logger{t: t}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = true
	})
	return l
}

func (l *logger) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.t.Logf("client: "+format, args...)
	}
}

// ClientPair is two Clients of the servers that Servers returns, of which A can be cut off, and a
// znode of their own. The Clients are closed with the test. The test must delete the znode.
type ClientPair struct {
	A, B *recipes.Client
	Cut  *Cutter
	Root string
}

// ConnectPair connects a ClientPair. The name of Root begins with prefix. ctx ends after a minute
// without other load.
func ConnectPair(t testing.TB, prefix string) (ctx context.Context, p ClientPair) {
	t.Helper()
	servers := Servers(t)
	ctx = watchdog.Context(t, time.Minute)
	p.Cut = &Cutter{}
	connect := func(opts ...recipes.Option) *recipes.Client {
		c, err := recipes.Connect(ctx, servers, append(opts, recipes.Retry(recipes.Forever(10*time.Millisecond)))...)
		if err != nil {
			t.Fatal(err)
		}
		closeAfter(t, c)
		return c
	}
	p.A, p.B = connect(recipes.Dialer(p.Cut.Dial)), connect()
	root, err := p.A.Create(ctx, "/"+prefix, nil, recipes.CreateOptions{Sequential: true})
	if err != nil {
		t.Fatal(err)
	}
	p.Root = root
	return ctx, p
}
