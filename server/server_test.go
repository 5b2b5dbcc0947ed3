package server_test

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// start runs a server that ends with the test.
func start(t testing.TB, cfg server.Config) *server.Server {
	t.Helper()
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

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// connect opens a go-zookeeper connection with a session of 40 s, closed with the test. The client
// sends a ping after 13 s.
func connect(t testing.TB, addr string) (*zk.Conn, <-chan zk.Event) {
	t.Helper()
	c, events, err := zk.Connect([]string{addr}, 40*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return c, events
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestClient_Basics(t *testing.T) {
	c, _ := connect(t, start(t, server.Config{}).ConnectString())
	open := zk.WorldACL(zk.PermAll)
	if got := must[string](t)(c.Create("/a", []byte("one"), 0, open)); got != "/a" {
		t.Errorf("created %q", got)
	}
	if _, err := c.Create("/a", nil, 0, open); !errors.Is(err, zk.ErrNodeExists) {
		t.Errorf("second create: %v", err)
	}
	if got := must[string](t)(c.Create("/a/s-", nil, zk.FlagEphemeral|zk.FlagSequence, open)); got != "/a/s-0000000000" {
		t.Errorf("created %q", got)
	}
	data, st, err := c.Get("/a")
	if err != nil || string(data) != "one" || st.Version != 0 || st.NumChildren != 1 || st.Cversion != 1 {
		t.Errorf("get: %q %+v %v", data, st, err)
	}
	st = must[*zk.Stat](t)(c.Set("/a", []byte("two"), 0))
	if st.Version != 1 || st.Mzxid <= st.Czxid {
		t.Errorf("set: %+v", st)
	}
	if _, err := c.Set("/a", nil, 7); !errors.Is(err, zk.ErrBadVersion) {
		t.Errorf("set with a bad version: %v", err)
	}
	children, _, err := c.Children("/")
	slices.Sort(children)
	if err != nil || !slices.Equal(children, []string{"a", "zookeeper"}) {
		t.Errorf("children %v, %v", children, err)
	}
	if err := c.Delete("/a", -1); !errors.Is(err, zk.ErrNotEmpty) {
		t.Errorf("delete: %v", err)
	}
	if got := must[string](t)(c.Sync("/nowhere")); got != "/nowhere" {
		t.Errorf("sync: %q", got)
	}
	res, err := c.Multi(&zk.CreateRequest{Path: "/m", Acl: open}, &zk.SetDataRequest{Path: "/m", Data: []byte("x"), Version: 0},
		&zk.DeleteRequest{Path: "/m", Version: 5})
	if !errors.Is(err, zk.ErrBadVersion) || len(res) != 3 {
		t.Errorf("multi: %v %v", res, err)
	}
	if ok, _, err := c.Exists("/m"); ok || err != nil {
		t.Errorf("the failed multi left a znode: %v %v", ok, err)
	}
}

func TestWatch_FiresBeforeOwnReply(t *testing.T) {
	addr := start(t, server.Config{}).ConnectString()
	c, _ := connect(t, addr)
	_, _, created, err := c.ExistsW("/w")
	if err != nil {
		t.Fatal(err)
	}
	must[string](t)(c.Create("/w", nil, 0, zk.WorldACL(zk.PermAll)))
	if e := <-created; e.Type != zk.EventNodeCreated || e.Path != "/w" {
		t.Errorf("event %+v", e)
	}
	_, _, changed, err := c.GetW("/w")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := connect(t, addr)
	must[*zk.Stat](t)(other.Set("/w", []byte("x"), -1))
	if e := <-changed; e.Type != zk.EventNodeDataChanged {
		t.Errorf("event %+v", e)
	}
}

// The client library reconnects by itself, and relies on the session, the ephemerals and
// setWatches.
func TestRestart_KeepsSessionsEphemeralsAndWatches(t *testing.T) {
	t.Parallel()
	port := reservePort(t) // between two servers, too
	port.Yield()
	addr := port.Address()
	cfg := server.Config{Dir: t.TempDir(), SnapCount: 3, Listen: addr}
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, _ := connect(t, addr)
	open := zk.WorldACL(zk.PermAll)
	for i := range 20 {
		must[string](t)(c.Create(fmt.Sprintf("/n%02d", i), []byte{byte(i)}, 0, open))
	}
	must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, open))
	_, _, deleted, err := c.GetW("/e")
	if err != nil {
		t.Fatal(err)
	}
	id := c.SessionID()
	for range 3 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = server.New(cfg); err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	other, _ := connect(t, addr)
	_, st, err := other.Get("/e")
	if err != nil || st.EphemeralOwner != id {
		t.Fatalf("the ephemeral after the restarts: %+v %v", st, err)
	}
	for i := range 20 {
		if data, _, err := other.Get(fmt.Sprintf("/n%02d", i)); err != nil || data[0] != byte(i) {
			t.Fatalf("znode %d: %v %v", i, data, err)
		}
	}
	for ; err == nil; err = other.Delete("/e", -1) {
		if ok, _, _ := other.Exists("/e"); !ok {
			break
		}
	}
	if e := <-deleted; e.Type != zk.EventNodeDeleted {
		t.Errorf("event %+v", e)
	}
	if c.SessionID() != id {
		t.Errorf("session 0x%x became 0x%x", id, c.SessionID())
	}
}

func TestStart_Misuse(t *testing.T) {
	s := start(t, server.Config{Dir: t.TempDir()})
	if err := s.Start(t.Context()); !errors.Is(err, server.ErrStarted) {
		t.Errorf("second Start: %v", err)
	}
	if _, err := server.New(server.Config{MaxBuffer: 5, Tick: -1}); err == nil {
		t.Error("a bad Config was accepted")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for want, cfg := range map[string]server.Config{
		"server: client port: ":        {Listen: taken},
		"server: secure client port: ": {InProcess: true, SecureListen: taken, TLS: testca.New(t, "ca").Issue(t, testca.Spec{}).Server()},
		"server: peer port: ": {
			InProcess: true, PeerListen: taken, MemberID: 1, Members: []string{"server.1=127.0.0.1:1:3", "server.2=127.0.0.1:2:4"},
		},
	} {
		other, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Start(t.Context()); err == nil {
			t.Error("a port in use was accepted")
		} else if !strings.HasPrefix(err.Error(), want+"listen tcp "+taken) || !strings.Contains(err.Error(), "; stop what listens there, or choose another port: ") {
			t.Errorf("%v, want %s, the address and the remedy", err, want)
		}
	}
}
