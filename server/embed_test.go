package server_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// dialIn opens a go-zookeeper connection that does not leave the process.
func dialIn(t testing.TB, s *server.Server, timeout time.Duration) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{s.ConnectString()}, timeout, zk.WithLogger(quiet{}), zk.WithDialer(s.Dialer()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return c
}

func TestInProcess_NeedsNoPort(t *testing.T) {
	s := start(t, server.Config{InProcess: true})
	if s.Addr() != nil {
		t.Errorf("address %v", s.Addr())
	}
	c := dialIn(t, s, 10*time.Second)
	must[string](t)(c.Create("/a", []byte("x"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
}

func TestDialer_BesideThePort(t *testing.T) {
	s := start(t, server.Config{})
	c := dialIn(t, s, 10*time.Second)
	must[string](t)(c.Create("/a", make([]byte, 500_000), 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "127.0.0.1"}}))
	other, _ := connect(t, s.ConnectString())
	if data, _, err := other.Get("/a"); err != nil || len(data) != 500_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if data, _, err := c.Get("/a"); err != nil || len(data) != 500_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestMemory_OutlivesServers(t *testing.T) {
	mem := new(server.Memory)
	var id int64
	for round := range 5 {
		s, err := server.New(server.Config{Memory: mem})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			c := dialIn(t, s, time.Hour)
			id = c.SessionID()
			must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
			second, err := server.New(server.Config{Memory: mem})
			if err != nil {
				t.Fatal(err)
			}
			if err := second.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "in use") {
				t.Errorf("a second server with the same Memory: %v", err)
			}
		}
		c := dialIn(t, s, 10*time.Second)
		must[string](t)(c.Create("/n-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)))
		children, _, err := c.Children("/")
		if err != nil || len(children) != 3+round {
			t.Fatalf("round %d: %v %v", round, children, err)
		}
		if _, st, err := c.Get("/e"); err != nil || st.EphemeralOwner != id {
			t.Fatalf("round %d: %+v %v", round, st, err)
		}
		stop := s.Close
		if round%2 == 1 {
			stop = s.Abort
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLife_BeforeAndAfter(t *testing.T) {
	s, err := server.New(server.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr() != nil || s.ConnectString() != "" || s.Status().Serving {
		t.Errorf("before Start: %v %q %+v", s.Addr(), s.ConnectString(), s.Status())
	}
	if _, err := s.Dial(t.Context()); !errors.Is(err, server.ErrNotStarted) {
		t.Errorf("Dial before Start: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Ready before Start: %v", err)
	}
	ready := make(chan error)
	go func() { ready <- s.Ready(context.Background()) }() // ends when the server is ready
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ready; err != nil {
		t.Error("Ready:", err)
	}
	if st := s.Status(); !st.Serving || st.Mode != "standalone" || st.Leader != 1 || st.Member != 1 || st.Zxid == 0 {
		t.Errorf("%+v", st)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); !errors.Is(err, server.ErrClosed) {
		t.Errorf("Ready after Close: %v", err)
	}
	if _, err := s.Dial(t.Context()); !errors.Is(err, server.ErrClosed) {
		t.Errorf("Dial after Close: %v", err)
	}
	if err := s.ExpireSession(t.Context(), 1); !errors.Is(err, server.ErrClosed) {
		t.Errorf("ExpireSession after Close: %v", err)
	}
	if err := s.Start(t.Context()); !errors.Is(err, server.ErrClosed) {
		t.Errorf("Start after Close: %v", err)
	}
	if err := errors.Join(s.Close(), s.Abort()); err != nil {
		t.Error("again:", err)
	}
}

// New reports all errors at once.
func TestNew_SaysAllThatIsWrong(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = server.New(server.Config{
		Listen: "localhost:77777", SecureListen: "a:1|b:2", PeerListen: "1", SuperDigest: "secret",
		Tick: -1, MaxBuffer: 5, Dir: "x", Memory: new(server.Memory), InProcess: true, Listener: l,
		Members: []string{"server.1=nonsense", "server.2=a:1:2", "server.2=b:1:2"},
	})
	if err == nil {
		t.Fatal("the bad Config was accepted")
	}
	for _, word := range []string{"Tick is", "MaxBuffer is 5", "Memory", "InProcess", "nonsense", "named twice", "not among Members",
		"Listen is \"localhost:77777\"", "SecureListen is \"a:1|b:2\"", "PeerListen is \"1\"", "SuperDigest"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %q: %v", word, err)
		}
	}
}

// A value that no server can have is reported by the name of its field alone, and not by those of
// the defaults that follow from it.
func TestNew_OneWrongField(t *testing.T) {
	typ, wrong := reflect.TypeFor[server.Config](), 0
	for i := range typ.NumField() {
		for _, value := range []int64{-1, 1, math.MaxInt32, math.MaxInt64} {
			var c server.Config
			field := reflect.ValueOf(&c).Elem().Field(i)
			if !field.CanSet() || !field.CanInt() || field.OverflowInt(value) {
				continue
			}
			field.SetInt(value)
			_, err := server.New(c)
			if err == nil {
				continue
			}
			wrong++
			if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), typ.Field(i).Name+" ") {
				t.Errorf("%s is %d: %v", typ.Field(i).Name, value, err)
			}
		}
	}
	if wrong < 20 {
		t.Errorf("%d wrong fields", wrong)
	}
}

func TestExpireSession(t *testing.T) {
	t.Parallel()
	s := start(t, server.Config{})
	c := dialIn(t, s, time.Hour)
	must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
	old := c.SessionID()
	if got := s.Facts().Sessions(); len(got) != 1 || got[0].ID != old || !got[0].Connected || got[0].Ephemerals != 1 || got[0].Timeout != 40*time.Second {
		t.Errorf("%+v", got)
	}
	if err := s.ExpireSession(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	if s.Walk("/e", func(server.Znode) bool { return true }) {
		t.Error("the ephemeral is still there")
	}
	if err := s.ExpireSession(t.Context(), old); !errors.Is(err, server.ErrNoSession) {
		t.Errorf("again: %v", err)
	}
	for { // the client learns of it when it reconnects, and creates a new session
		if _, _, err := c.Exists("/e"); err == nil {
			break
		}
	}
	if c.SessionID() == old {
		t.Error("the session is the old one")
	}
}

// jumping is a clock that only tests move, however long they take.
type jumping struct{ by atomic.Int64 }

var jumpingSince = time.Now()

func (j *jumping) now() time.Time { return jumpingSince.Add(time.Duration(j.by.Load())) }

// ExpireDue expires a session when its timeout is over, not only at the next tick.
func TestExpireDue_ToTheInstant(t *testing.T) {
	var clock jumping
	s := start(t, server.Config{Now: clock.now, Tick: time.Minute, MinSessionTimeout: 10 * time.Second})
	nc, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	(&raw{t: t, nc: nc}).connect(10_000, 0, nil)
	_ = nc.Close()
	for _, c := range []struct {
		d    time.Duration
		left int
	}{{9 * time.Second, 1}, {time.Second, 0}} {
		s.MoveClock(func() []int64 { clock.by.Add(int64(c.d)); return []int64{} })
		if err := s.ExpireDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := s.Facts().Sessions(); len(got) != c.left {
			t.Errorf("%v later: %+v", c.d, got)
		}
	}
}

// Close closes the listeners of a Config, even if the server never used them.
func TestClose_NeverStarted(t *testing.T) {
	listen := func() net.Listener { return must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0")) }
	clients, peers := listen(), listen()
	s := must[*server.Server](t)(server.New(server.Config{Listener: clients, PeerListener: peers}))
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, l := range []net.Listener{clients, peers} {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v is still open", l.Addr())
		}
	}
}

func TestMoveClock(t *testing.T) {
	var clock jumping
	s := start(t, server.Config{Now: clock.now, MaxSessionTimeout: time.Hour})
	advance := func(d time.Duration) {
		t.Helper()
		s.MoveClock(func() []int64 { clock.by.Add(int64(d)); return nil })
		if err := s.ExpireDue(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	here := dialIn(t, s, 10*time.Second)
	nc, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := &raw{t: t, nc: nc}
	gone.connect(10_000, 0, nil)
	gone.call(1, proto.OpCreate, create{path: "/gone", op: proto.OpCreate, mode: proto.ModeEphemeral})
	_ = gone.nc.Close()
	must[string](t)(here.Create("/here", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
	for s.Facts().Sessions()[1].Connected { // until the server has noticed that the connection is closed
		time.Sleep(time.Millisecond)
	}
	advance(9 * time.Second)
	if n := len(s.Facts().Sessions()); n != 2 {
		t.Fatalf("%d sessions after 9 s of 10", n)
	}
	advance(5 * time.Second)
	if got := s.Facts().Sessions(); len(got) != 1 || got[0].ID != here.SessionID() {
		t.Fatalf("after 14 s: %+v", got)
	}
	if s.Walk("/gone", func(server.Znode) bool { return true }) {
		t.Error("its ephemeral is still there")
	}
	must[string](t)(here.CreateTTL("/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Minute))
	must[string](t)(here.CreateContainer("/c", nil, zk.FlagContainer, zk.WorldACL(zk.PermAll)))
	must[string](t)(here.CreateTTL("/c/ttl", nil, zk.FlagTTL, zk.WorldACL(zk.PermAll), time.Minute))
	advance(time.Hour)
	children, _, err := here.Children("/")
	if err != nil || len(children) != 2 {
		t.Errorf("after an hour: %v, %v", children, err)
	}
	_, st, err := here.Get(must[string](t)(here.Create("/now", nil, 0, zk.WorldACL(zk.PermAll))))
	if err != nil || time.UnixMilli(st.Ctime).Sub(jumpingSince) < time.Hour {
		t.Errorf("created at %v", time.UnixMilli(st.Ctime))
	}
}

// Close waits neither for concurrent calls of Close, nor for clients that wait for a leader.
func TestClose_WaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New(0)
		peers := must[net.Listener](t)(network.Listen("m1:1"))
		s := must[*server.Server](t)(server.New(server.Config{
			InProcess: true, Members: []string{"server.1=m1:1:2", "server.2=m2:1:2", "server.3=m3:1:2"}, PeerListener: peers,
			PeerDial: func(ctx context.Context, address string) (net.Conn, error) { return network.Dial(ctx, "m1", address) },
		}))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { // ends when ctx does
			if err := s.Start(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Start: %v", err)
			}
		})
		synctest.Wait()
		nc := must[net.Conn](t)(s.Dial(ctx))
		defer func() { _ = nc.Close() }()
		(&raw{t: t, nc: nc}).send((&proto.ConnectRequest{TimeoutMs: 10_000}).Append(nil))
		synctest.Wait()
		begin := time.Now()
		cancel()
		for range 3 {
			wg.Go(func() { // ends with the server
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begin); took > 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// TestSlog: a slog.Logger gets the lines in place of the Logger.
func TestSlog(t *testing.T) {
	var lines, none strings.Builder
	s := start(t, server.Config{InProcess: true, Slog: slog.New(slog.NewTextHandler(&lines, nil)), Logger: hclog.New(&hclog.LoggerOptions{Output: &none})})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(lines.String(), `level=INFO msg="serving clients"`) || none.Len() > 0 {
		t.Errorf("slog got\n%sthe Logger got\n%s", lines.String(), none.String())
	}
}
