package subtree_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// wire breaks connections on request.
type wire struct {
	s     *server.Server
	sends func([]byte) // nil: not called; called before each write of a client
	mu    sync.Mutex
	open  []net.Conn
}

// hookedConn calls sends before each write.
type hookedConn struct {
	net.Conn
	sends func([]byte)
}

func (c *hookedConn) Write(b []byte) (int, error) {
	c.sends(b)
	return c.Conn.Write(b)
}

func (w *wire) dial(ctx context.Context, _ string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	conn, err := w.s.Dial(ctx)
	if err == nil {
		w.open = append(w.open, conn)
	}
	if err == nil && w.sends != nil {
		conn = &hookedConn{Conn: conn, sends: w.sends}
	}
	return conn, err
}

func (w *wire) breakAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.open {
		_ = conn.Close()
	}
	w.open = nil
}

// start returns a client of a new server in the process. Both end with the test.
func start(t testing.TB, change ...func(*server.Config)) (*client.Client, *wire) {
	t.Helper()
	cfg := server.Config{InProcess: true, SuperDigest: "super:lK75jTNcA+U9vtVEw5vB51mj/w4="} // super:secret
	for _, f := range change {
		f(&cfg)
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := &wire{s: s}
	return connect(t, w), w
}

func connect(t testing.TB, w *wire) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.Config{Servers: []string{"x:1"}, Dial: w.dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func create(t testing.TB, c *client.Client, o client.CreateOptions, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if _, _, err := c.Create(t.Context(), p, []byte("data of "+p), o); err != nil {
			t.Fatal(err)
		}
	}
}
