package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

func newServer(t testing.TB, cfg server.Config) *server.Server {
	t.Helper()
	cfg.SuperDigest = "super:D/InIHSb7yEEbrWz8b9l71RjZJU=" // of super:test
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func start(t testing.TB, cfg server.Config) *server.Server {
	t.Helper()
	s := newServer(t, cfg)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// withThree runs f, in a bubble, with two voters, one of them server 0, and an observer, by their
// mode, when the leader has the others in step.
func withThree(t *testing.T, f func(t *testing.T, byMode map[string]*server.Server)) {
	synctest.Test(t, func(t *testing.T) { f(t, startThree(t)) })
}

func startThree(t *testing.T) map[string]*server.Server {
	t.Helper()
	network, lines := memnet.New(200*time.Microsecond), make([]string, 3)
	for i, role := range []string{"participant", "participant", "observer"} {
		lines[i] = fmt.Sprintf("server.%d=127.0.0.1:%d:3888:%s;127.0.0.1:%d", i, 2888+i, role, 2181+i)
	}
	servers := make([]*server.Server, 3)
	var starting sync.WaitGroup
	for i := range servers {
		l, err := network.Listen(fmt.Sprintf("127.0.0.1:%d", 2888+i))
		if err != nil {
			t.Fatal(err)
		}
		s := newServer(t, server.Config{
			InProcess: true, MemberID: uint8(memberid.Of(i)), Members: lines, PeerListener: l, MaxSessionTimeout: time.Minute,
			PeerDial: func(ctx context.Context, address string) (net.Conn, error) {
				return network.Dial(ctx, "127.0.0.1", address)
			},
		})
		servers[i] = s
		// Ends by itself; awaited below.
		starting.Go(func() {
			if err := s.Start(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	starting.Wait()
	inStep := func(s *server.Server) (n int) {
		for _, v := range s.Facts().Monitor() {
			if v.Name == "gozkd_peer_in_step" && v.Is == int64(1) {
				n++
			}
		}
		return n
	}
	for range 600 {
		byMode, ready := make(map[string]*server.Server), false
		for _, s := range servers {
			byMode[s.Status().Mode] = s
			ready = ready || inStep(s) == 2
		}
		if ready && len(byMode) == 3 {
			return byMode
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("no leader has two others in step within a minute")
	return nil
}

// connect returns a client that has a session, long enough not to ping during a test.
func connect(t testing.TB, s *server.Server) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{s.ConnectString()}, 40*time.Second, zk.WithLogInfo(false), zk.WithDialer(s.Dialer()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			return c
		}
	}
	t.Fatal("the client has no session")
	return nil
}

// use gives a server two clients with an ephemeral each, and three watches.
func use(t *testing.T, s *server.Server) (a, b *zk.Conn) {
	t.Helper()
	a, b = connect(t, s), connect(t, s)
	for _, c := range []*zk.Conn{a, b} {
		if _, err := c.Create(fmt.Sprintf("/e%d", c.SessionID()), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := c.GetW("/"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err := a.ExistsW("/none"); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// get sends a GET request from the loopback address to a handler.
func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	return do(t, h, http.MethodGet, path, nil, "")
}

// ask runs a command as ZooKeeper does, for everybody, and returns its answer, in which numbers are
// json.Number.
func ask(t *testing.T, s *server.Server, command string) (status int, answer map[string]any) {
	t.Helper()
	w := get(t, admin.New(s, admin.Options{Open: true}), "/commands/"+command)
	if typ := w.Header().Get("Content-Type"); typ != "application/json" {
		t.Errorf("%s: Content-Type %q", command, typ)
	}
	d := json.NewDecoder(w.Body)
	d.UseNumber()
	if err := d.Decode(&answer); err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return w.Code, answer
}
