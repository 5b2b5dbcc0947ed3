package faultproxy_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/faultproxy"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// behindGate is a real server behind a gate.
type behindGate struct {
	t     *testing.T
	gate  *faultproxy.Gate
	rules faultproxy.Rules

	attached log // what the server has said
}

// log holds the sessions that were attached, one after the other.
type log struct {
	mu       sync.Mutex
	sessions []int64
}

func (l *log) add(session int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions = append(l.sessions, session)
}

func (l *log) all() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.sessions)
}

func start(t *testing.T) *behindGate {
	t.Helper()
	t.Parallel() // clients wait a second before they reconnect
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	behindGate := &behindGate{t: t}
	behindGate.gate = faultproxy.NewGate(l, &behindGate.rules)
	cfg := server.Config{Listener: behindGate.gate}
	confighook.Of(&cfg).Attached = func(nc net.Conn, session int64) {
		faultproxy.Attach(nc, session)
		behindGate.attached.add(session)
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
	return behindGate
}

// zk returns a connected client without log output.
func (l *behindGate) zk() *zk.Conn {
	l.t.Helper()
	c, events, err := zk.Connect([]string{l.gate.Addr().String()}, 20*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(c.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			return c
		}
	}
	l.t.Fatal("not connected")
	return nil
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (l *behindGate) arm(f faultproxy.Fault) *faultproxy.Armed {
	l.t.Helper()
	a, err := l.rules.Add(f)
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

func (l *behindGate) create(c *zk.Conn, path string) error {
	_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	return err
}

func (l *behindGate) expect(what string, got, want error) {
	l.t.Helper()
	if !errors.Is(got, want) {
		l.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func (l *behindGate) expectExists(c *zk.Conn, path string, want bool) {
	l.t.Helper()
	ok, _, err := c.Exists(path)
	for errors.Is(err, zk.ErrNoServer) { // the client had not noticed the broken connection and sent nothing
		ok, _, err = c.Exists(path)
	}
	if ok != want || err != nil {
		l.t.Errorf("%s exists: %v, %v", path, ok, err)
	}
}

// createAtLast creates a znode, repeating the request after lost connections.
func (l *behindGate) createAtLast(c *zk.Conn, path string) error {
	for {
		lost := (*net.OpError)(nil)
		switch err := l.create(c, path); {
		case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrNoServer), errors.As(err, &lost):
		case errors.Is(err, zk.ErrNodeExists): // an earlier request whose reply was lost
			return nil
		default:
			return err
		}
	}
}

func TestServer_Fail(t *testing.T) {
	l := start(t)
	c := l.zk()
	a := l.arm(faultproxy.Fault{Kind: faultproxy.Fail, Op: "create", PathPrefix: "/a", Code: proto.ErrNodeExists})
	l.expect("create elsewhere", l.create(c, "/b"), nil)
	l.expect("create", l.create(c, "/a"), zk.ErrNodeExists)
	l.expectExists(c, "/a", false)
	l.expect("create again", l.create(c, "/a"), nil)
	<-a.Done()
	// Every kind of request can fail, with every body.
	codes := map[faultproxy.Op]func() error{
		"get":      func() error { _, _, err := c.Get("/a"); return err },
		"set":      func() error { _, err := c.Set("/a", make([]byte, 500_000), -1); return err },
		"exists":   func() error { _, _, err := c.Exists("/a"); return err },
		"children": func() error { _, _, err := c.Children("/"); return err },
		"delete":   func() error { return c.Delete("/a", -1) },
		"sync":     func() error { _, err := c.Sync("/"); return err },
		"getACL":   func() error { _, _, err := c.GetACL("/a"); return err },
		"setACL":   func() error { _, err := c.SetACL("/a", zk.WorldACL(zk.PermAll), -1); return err },
		"reconfig": func() error { _, err := c.IncrementalReconfig(nil, nil, -1); return err },
	}
	for op, call := range codes {
		for _, by := range []faultproxy.Op{op, faultproxy.OpAny} {
			a := l.arm(faultproxy.Fault{Kind: faultproxy.Fail, Op: by, Code: proto.ErrNoAuth})
			l.expect(string(op), call(), zk.ErrNoAuth)
			if a.Count() != 1 {
				t.Errorf("%v", a)
			}
		}
	}
	l.expectExists(c, "/a", true)
}

func TestServer_DropReply(t *testing.T) {
	l := start(t)
	c := l.zk()
	id := c.SessionID()
	a := l.arm(faultproxy.Fault{Kind: faultproxy.DropReply, Op: "create", PathPrefix: "/q/item-"})
	l.expect("create", l.create(c, "/q"), nil)
	_, err := c.Create("/q/item-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	l.expect("sequential create", err, zk.ErrConnectionClosed)
	if a.Count() != 1 {
		t.Errorf("%v", a)
	}
	l.expectExists(c, "/q/item-0000000000", true)
	if c.SessionID() != id || !slices.Contains(l.gate.Sessions(), id) {
		t.Errorf("session %x, attached are %x, at first %x", c.SessionID(), l.gate.Sessions(), id)
	}
}

// A session whose connect got no reply exists; the client gets another one.
func TestServer_DropReplyOfConnect(t *testing.T) {
	l := start(t)
	a := l.arm(faultproxy.Fault{Kind: faultproxy.DropReply, Op: faultproxy.OpConnect})
	c := l.zk()
	if a.Count() != 1 || c.SessionID() == 0 {
		t.Errorf("%v; session %x", a, c.SessionID())
	}
	if got := l.gate.Sessions(); !slices.Equal(got, []int64{c.SessionID()}) {
		t.Errorf("attached are %x", got)
	}
}

// A watch event that the server sends before the lost reply arrives.
func TestServer_DropReplyBehindEvent(t *testing.T) {
	l := start(t)
	c := l.zk()
	_, _, events, err := c.ExistsW("/a")
	if err != nil {
		t.Fatal(err)
	}
	l.arm(faultproxy.Fault{Kind: faultproxy.DropReply, Op: "create"})
	l.expect("create", l.create(c, "/a"), zk.ErrConnectionClosed)
	if e := <-events; e.Type != zk.EventNodeCreated {
		t.Errorf("event %v", e)
	}
}

func TestServer_Delay(t *testing.T) {
	l := start(t)
	c, other := l.zk(), l.zk()
	a := l.arm(faultproxy.Fault{Kind: faultproxy.Delay, Op: "create", Session: c.SessionID(), Delay: time.Hour})
	done := make(chan error)
	go func() { done <- l.create(c, "/a") }() // received below
	<-a.Done()
	l.expect("create of another session", l.create(other, "/b"), nil)
	l.expectExists(other, "/a", false)
	a.Remove()
	l.expect("create", <-done, nil)
	l.expectExists(other, "/a", true)

	a = l.arm(faultproxy.Fault{Kind: faultproxy.Delay, Op: "get", Delay: 50 * time.Millisecond})
	at := time.Now()
	_, _, err := c.Get("/a")
	l.expect("get", err, nil)
	if took := time.Since(at); took < 50*time.Millisecond || a.Count() != 1 {
		t.Errorf("%v; it took %v", a, took)
	}
}

func TestServer_Session(t *testing.T) {
	l := start(t)
	c, other := l.zk(), l.zk()
	l.arm(faultproxy.Fault{Kind: faultproxy.Fail, Op: faultproxy.OpAny, Session: other.SessionID(), Code: proto.ErrSessionExpired, Times: -1})
	l.expect("create", l.create(c, "/a"), nil)
	l.expect("create of the other", l.create(other, "/b"), zk.ErrSessionExpired)
	want := []int64{c.SessionID(), other.SessionID()}
	slices.Sort(want)
	if got := l.gate.Sessions(); !slices.Equal(got, want) {
		t.Errorf("attached are %x, want %x", got, want)
	}
	for other.Close(); len(l.gate.Sessions()) > 1; { // Close may not wait for the reply: a second at most
		time.Sleep(time.Millisecond)
	}
	if got := l.gate.Sessions(); !slices.Equal(got, want[:1]) && !slices.Equal(got, want[1:]) {
		t.Errorf("attached are %x after one was closed", got)
	}
}

// The server says that a session is attached before its client knows, and that it no longer is
// before the client has the reply to closeSession.
func TestServer_Attached(t *testing.T) {
	l := start(t)
	c, err := client.Connect(t.Context(), client.Config{Servers: []string{l.gate.Addr().String()}, ConnectTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	id := int64(c.Session().ID)
	if got := l.attached.all(); !slices.Equal(got, []int64{id}) {
		t.Errorf("attached one after the other: %x, want %x", got, id)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if got := l.attached.all(); !slices.Equal(got, []int64{id, 0}) {
		t.Errorf("attached one after the other: %x, want %x and none", got, id)
	}
}

// A session that the server refuses is not attached.
func TestServer_SessionRefused(t *testing.T) {
	l := start(t)
	nc, err := net.Dial("tcp", l.gate.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = nc.Close() }()
	hello := (&proto.ConnectRequest{TimeoutMs: 5000, SessionID: 0x77, Passwd: make([]byte, 16)}).Append(make([]byte, 4))
	binary.BigEndian.PutUint32(hello, uint32(len(hello)-4))
	if _, err := nc.Write(hello); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(nc)
	if err != nil || len(answer) < 20 || !slices.Equal(answer[8:20], make([]byte, 12)) {
		t.Fatalf("the answer is %x, %v; want one without a timeout and a session", answer, err)
	}
	if got := l.gate.Sessions(); len(got) != 0 {
		t.Errorf("attached are %x", got)
	}
}

func TestServer_Multi(t *testing.T) {
	l := start(t)
	c := l.zk()
	l.arm(faultproxy.Fault{Kind: faultproxy.Fail, Op: "multi", PathPrefix: "/b", Code: proto.ErrNodeExists})
	ops := func() []any {
		var ops []any
		for _, p := range []string{"/a", "/b", "/c"} {
			ops = append(ops, &zk.CreateRequest{Path: p, Acl: zk.WorldACL(zk.PermAll)})
		}
		return ops
	}
	res, err := c.Multi(ops()...)
	l.expect("multi", err, zk.ErrNodeExists)
	var got []error
	for _, r := range res {
		got = append(got, r.Error)
	}
	if len(got) != 3 || got[0] != nil || !errors.Is(got[1], zk.ErrNodeExists) || got[2] == nil {
		t.Errorf("results %v", got)
	}
	l.expectExists(c, "/a", false)

	l.arm(faultproxy.Fault{Kind: faultproxy.Fail, Op: "multi", Code: proto.ErrSessionMoved})
	_, err = c.Multi(ops()...)
	l.expect("multi", err, zk.ErrSessionMoved)

	l.arm(faultproxy.Fault{Kind: faultproxy.DropReply, Op: "multi", PathPrefix: "/c"})
	_, err = c.Multi(ops()...)
	l.expect("multi", err, zk.ErrConnectionClosed)
	l.expectExists(c, "/a", true)
}

func TestServer_CloseConns(t *testing.T) {
	l := start(t)
	c := l.zk()
	id := c.SessionID()
	if !l.gate.CloseConn(id) || l.gate.CloseConn(1) {
		t.Error("CloseConn")
	}
	l.expect("create", l.createAtLast(c, "/a"), nil)
	if c.SessionID() != id {
		t.Error("another session")
	}
}

// Clients try to reconnect during a cut. Afterwards each session is attached once and works.
func TestServer_Cut(t *testing.T) {
	l := start(t)
	c := l.zk()
	l.gate.Cut(true)
	done := make(chan error)
	go func() { done <- l.createAtLast(c, "/a") }() // received below
	if n := len(l.gate.Sessions()); n != 0 {
		t.Errorf("%d sessions are attached", n)
	}
	select {
	case err := <-done:
		t.Errorf("create during a cut: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	l.gate.Cut(false)
	l.expect("create", <-done, nil)
}
