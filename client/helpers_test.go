package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// startServer returns a server in this process, without a port, that ends with the test.
func startServer(t testing.TB, cfg server.Config) *server.Server {
	t.Helper()
	cfg.InProcess = true
	if cfg.Words == nil {
		cfg.Words = []string{"*"}
	}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// wire is a dial function that keeps its connections, so that a test can break them.
type wire struct {
	dial func(ctx context.Context) (net.Conn, error)
	mu   sync.Mutex
	down bool // dials fail
	open []net.Conn
	made int
}

func (w *wire) Dial(ctx context.Context, _ string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return nil, errDown
	}
	conn, err := w.dial(ctx)
	if err == nil {
		w.open = append(w.open, conn)
		w.made++
	}
	return conn, err
}

// Break closes open connections; while down is set, dials fail.
func (w *wire) Break(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for _, conn := range w.open {
		_ = conn.Close()
	}
	w.open = nil
}

func (w *wire) Up() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
}

type downError struct{}

func (downError) Error() string { return "the wire is cut" }

var errDown = downError{}

// events holds the events of OnEvent.
type events chan client.Event

func (e events) next(t testing.TB) client.Event {
	t.Helper()
	select {
	case got := <-e:
		return got
	case <-watchdog.After(t, 2*time.Minute):
		t.Fatal("no event came")
		return client.Event{}
	}
}

// await returns the next event that is not a change of the session's state.
func (e events) await(t testing.TB) client.Event {
	t.Helper()
	for {
		if got := e.next(t); got.Type != client.EventSession {
			return got
		}
	}
}

func (e events) awaitState(t testing.TB, want client.State) {
	t.Helper()
	for {
		if got := e.next(t); got.Type == client.EventSession && got.State == want {
			return
		}
	}
}

// expect checks that these watch events, sorted, have arrived, and no others. A reply comes after
// all events of earlier changes, so a missing event need not be waited for.
func (e events) expect(t testing.TB, c *client.Client, want ...string) {
	t.Helper()
	_, err := c.Sync(t.Context(), "/")
	if err = errors.Join(err, c.AwaitEvents(t.Context())); err != nil {
		t.Fatal(err)
	}
	var got []string
	for len(e) > 0 {
		ev := <-e
		if ev.Type == client.EventSession {
			continue
		}
		text := fmt.Sprintf("%s %v", ev.Path, ev.Type)
		if ev.Zxid == proto.NoZxid { // it happened while the client was not connected
			text += " before"
		}
		if got = append(got, text); ev.State != client.Connected {
			t.Errorf("event %+v", ev)
		}
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("the events %q have arrived, want %q", got, want)
	}
}

// connect returns a client, closed at the end of the test, with its events and its wire.
func connect(t testing.TB, s *server.Server, change ...func(*client.Config)) (*client.Client, events, *wire) {
	t.Helper()
	w := &wire{dial: s.Dial}
	e := make(events, 1000)
	cfg := client.Config{Servers: []string{"in-process:2181"}, Dial: w.Dial, OnEvent: func(ev client.Event) { e <- ev }}
	for _, f := range change {
		f(&cfg)
	}
	c, err := client.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test may have ended the session
	return c, e, w
}
