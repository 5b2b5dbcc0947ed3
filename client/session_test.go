package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
)

func TestReconnect_SessionAndEphemeralsLive(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, w := connect(t, s)
	if _, _, err := c.Create(t.Context(), "/e", nil, client.CreateOptions{Ephemeral: true}); err != nil {
		t.Fatal(err)
	}
	before := c.Session()
	w.Break(false)
	e.awaitState(t, client.Connecting)
	e.awaitState(t, client.Connected)
	after := c.Session()
	if before.ID != after.ID || after.Server != "in-process:2181" {
		t.Errorf("session %+v, was %+v", after, before)
	}
	if stat, there, err := c.Exists(t.Context(), "/e", false); err != nil || !there || int64(stat.EphemeralOwner) != before.ID {
		t.Errorf("the ephemeral: %+v, %v, %v", stat, there, err)
	}
}

func TestReconnect_WatchesAreSetAgain(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, w := connect(t, s)
	other, _, _ := connect(t, s)
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"/data", "/gone", "/kids", "/quiet", "/p", "/r", "/r/x"} {
		_, _, err := other.Create(ctx, p, nil, client.CreateOptions{})
		check(err)
	}
	watch := func() {
		t.Helper()
		for _, p := range []string{"/data", "/gone", "/quiet"} {
			_, _, err := c.Get(ctx, p, true)
			check(err)
		}
		_, _, err := c.Exists(ctx, "/new", true)
		check(err)
		_, _, err = c.Children(ctx, "/kids", true)
		check(err)
		check(c.AddWatch(ctx, "/p", proto.AddWatchPersistent))
		check(c.AddWatch(ctx, "/r", proto.AddWatchPersistentRecursive))
	}
	watch()
	w.Break(true)
	e.awaitState(t, client.Connecting)
	_, err := other.Set(ctx, "/data", nil, -1)
	check(err)
	check(other.Delete(ctx, "/gone", -1))
	for _, p := range []string{"/new", "/kids/a", "/p/missed"} {
		_, _, err = other.Create(ctx, p, nil, client.CreateOptions{})
		check(err)
	}
	w.Up()
	quiet := []string{"/p NodeDataChanged", "/quiet NodeDataChanged", "/r/x NodeDataChanged"}
	e.expect(t, c, "/data NodeDataChanged before", "/gone NodeDeleted before", "/kids NodeChildrenChanged before", "/new NodeCreated before",
		"/p NodeChildrenChanged")
	for range 2 { // those that are not one-shot stay
		for _, p := range []string{"/quiet", "/r/x", "/p"} {
			_, err = other.Set(ctx, p, nil, -1)
			check(err)
		}
		e.expect(t, c, quiet...)
		quiet = []string{"/p NodeDataChanged", "/r/x NodeDataChanged"}
	}
}

// A watch of each kind is set again by itself, whatever else the client watches.
func TestReconnect_EachKindOfWatch(t *testing.T) {
	s := startServer(t, server.Config{})
	other, _, _ := connect(t, s)
	ctx := t.Context()
	for kind, set := range map[string]func(c *client.Client, path string) error{
		"data":       func(c *client.Client, path string) error { _, _, err := c.Get(ctx, path, true); return err },
		"exists":     func(c *client.Client, path string) error { _, _, err := c.Exists(ctx, path, true); return err },
		"persistent": func(c *client.Client, path string) error { return c.AddWatch(ctx, path, proto.AddWatchPersistent) },
		"recursive": func(c *client.Client, path string) error {
			return c.AddWatch(ctx, path, proto.AddWatchPersistentRecursive)
		},
	} {
		path := "/" + kind
		if _, _, err := other.Create(ctx, path, nil, client.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		c, e, w := connect(t, s)
		if err := set(c, path); err != nil {
			t.Fatal(err)
		}
		w.Break(false)
		e.awaitState(t, client.Connecting)
		e.awaitState(t, client.Connected)
		// Requests follow the watches on the new connection (C5).
		if _, _, err := c.Exists(ctx, path, false); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Set(ctx, path, nil, -1); err != nil {
			t.Fatal(err)
		}
		e.expect(t, c, path+" NodeDataChanged")
	}
}

func TestReconnect_ManyWatches(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, w := connect(t, s)
	long := strings.Repeat("x", 5000)
	for i := range 100 { // half a megabyte of paths
		if _, _, err := c.Exists(t.Context(), fmt.Sprintf("/%s%d", long, i), true); err != nil {
			t.Fatal(err)
		}
	}
	w.Break(false)
	e.awaitState(t, client.Connected)
	e.awaitState(t, client.Connected)
	for i := range 100 {
		path := fmt.Sprintf("/%s%d", long, i)
		if err := c.CheckWatches(t.Context(), path, proto.WatcherData); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRemoveWatches(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, w := connect(t, s, func(cfg *client.Config) { cfg.Chroot = "/zookeeper" })
	ctx := t.Context()
	_, _, err := c.Get(ctx, "/", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err = c.Children(ctx, "/", true); err != nil {
		t.Fatal(err)
	}
	if err := c.AddWatch(ctx, "/", proto.AddWatchPersistent); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveWatches(ctx, "/", proto.WatcherData, false); err != nil {
		t.Fatal(err)
	}
	if got := e.await(t); got != (client.Event{Type: client.EventDataWatchRemoved, State: client.Connected, Path: "/", Zxid: proto.NoZxid}) {
		t.Errorf("%+v", got)
	}
	if err := c.RemoveWatches(ctx, "/", proto.WatcherData, false); !errors.Is(err, proto.ErrNoWatcher) {
		t.Errorf("removed twice: %v", err)
	}
	w.Break(true)
	e.awaitState(t, client.Connecting)
	short, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.RemoveWatches(short, "/", proto.WatcherAny, true); err == nil {
		t.Error("removed after the end of ctx")
	}
	w.Up()
	if err := c.RemoveWatches(ctx, "/", proto.WatcherAny, true); err != nil {
		t.Fatal(err)
	}
	if a, b := e.await(t), e.await(t); a.Type != client.EventChildWatchRemoved || b.Type != client.EventPersistentWatchRemoved {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestRequestsWhileDown: a request without a connection waits for one. If ctx ends the wait, it was
// not sent.
func TestRequestsWhileDown(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, w := connect(t, s)
	w.Break(true)
	e.awaitState(t, client.Connecting)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err := c.Create(short, "/never", nil, client.CreateOptions{})
	var failed *client.Error
	if !errors.As(err, &failed) || failed.Unknown || !errors.Is(err, context.DeadlineExceeded) || failed.Code != proto.ErrOperationTimeout {
		t.Errorf("%v", err)
	}
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			if _, _, err := c.Create(t.Context(), fmt.Sprintf("/later%d", i), nil, client.CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	w.Up()
	all.Wait()
	if _, there, err := c.Exists(t.Context(), "/never", false); there || err != nil {
		t.Errorf("what was given up is there: %v, %v", there, err)
	}
}

func TestExpiry(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, w := connect(t, s)
	w.Break(true)
	e.awaitState(t, client.Connecting)
	if err := s.ExpireSession(t.Context(), c.Session().ID); err != nil {
		t.Fatal(err)
	}
	waiting := make(chan error, 1)
	go func() { // ends with the session; awaited below
		_, _, err := c.Get(context.Background(), "/", false)
		waiting <- err
	}()
	w.Up()
	e.awaitState(t, client.Expired)
	<-c.Done()
	for _, err := range []error{<-waiting, c.Err(), c.AddAuth(t.Context(), "digest", []byte("a:b")), c.Delete(t.Context(), "/x", -1)} {
		var told *client.ExpiredError
		if !errors.Is(err, proto.ErrSessionExpired) || !errors.As(err, &told) || told.Cause != facts.Administrator || !strings.Contains(err.Error(), told.Story) {
			t.Errorf("%v", err)
		}
	}
	if err := c.Close(); err != nil || c.State() != client.Expired {
		t.Errorf("close: %v, %v", err, c.State())
	}
}

func TestClose_EndsTheSession(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, _ := connect(t, s)
	other, _, _ := connect(t, s)
	if _, _, err := c.Create(t.Context(), "/e", nil, client.CreateOptions{Ephemeral: true}); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, there, err := other.Exists(t.Context(), "/e", false); there || err != nil {
		t.Errorf("the ephemeral is there: %v, %v", there, err)
	}
	e.awaitState(t, client.Closed)
	if len(e) > 0 {
		t.Errorf("after the last event came %+v", <-e)
	}
	if err := c.Delete(t.Context(), "/x", -1); !errors.Is(err, client.ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

// TestClose_NobodyThere runs in virtual time, so that the timeout costs nothing.
func TestClose_NobodyThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, server.Config{})
		c, _, w := connect(t, s)
		w.Break(true)
		start := time.Now()
		if err := c.Close(); err == nil || !strings.Contains(err.Error(), "ends by itself after 30s") {
			t.Errorf("%v", err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// likeSocket accepts deadlines after the other end has closed, which a pipe refuses.
type likeSocket struct{ net.Conn }

func (c likeSocket) SetReadDeadline(t time.Time) error {
	if err := c.Conn.SetReadDeadline(t); !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

func TestConnect_NamesEachServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials := func(ctx context.Context, address string) (net.Conn, error) {
			switch address {
			case "refuses:1":
				return nil, errDown
			case "hangs:1":
				<-ctx.Done()
				return nil, ctx.Err()
			}
			near, far := net.Pipe()
			if address == "closes:1" {
				go func() { // ends when the client has written its request
					_, _ = far.Read(make([]byte, 1000))
					_ = far.Close()
				}()
			} else { // does not answer
				go func() { _, _ = far.Read(make([]byte, 1000)) }() // ends as above
			}
			return likeSocket{near}, nil
		}
		start := time.Now()
		_, err := client.Connect(t.Context(), client.Config{
			Servers: []string{"refuses:1", "hangs:1", "closes:1", "silent:1"}, Dial: dials, ConnectTimeout: time.Second,
		})
		for _, want := range []string{
			"refuses:1: the wire is cut", "hangs:1: no answer within 1s", "closes:1: closed the connection without",
			"silent:1: no answer within 1s",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("no %q in %v", want, err)
			}
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestAuth_Refused(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, _ := connect(t, s)
	if err := c.AddAuth(t.Context(), "nosuch", nil); !errors.Is(err, proto.ErrAuthFailed) {
		t.Errorf("%v", err)
	}
	e.awaitState(t, client.AuthFailed)
	if err := c.Close(); err != nil {
		t.Errorf("%v", err)
	}
	_, err := client.Connect(t.Context(), client.Config{
		Servers: []string{"x"}, Dial: (&wire{dial: s.Dial}).Dial, Auths: []client.Auth{{Scheme: "nosuch"}},
	})
	if !errors.Is(err, proto.ErrAuthFailed) {
		t.Errorf("%v", err)
	}
}

func TestAuth_OnEachConnection(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, w := connect(t, s, func(cfg *client.Config) { cfg.Auths = []client.Auth{{Scheme: "digest", Credential: []byte("ann:1")}} })
	if err := c.AddAuth(t.Context(), "digest", []byte("bob:2")); err != nil {
		t.Fatal(err)
	}
	e.awaitState(t, client.Connected)
	w.Break(false)
	e.awaitState(t, client.Connected)
	who, err := c.WhoAmI(t.Context())
	if err != nil || len(who) != 3 {
		t.Errorf("%v, %v", who, err)
	}
	// Without a connection it waits for one.
	w.Break(true)
	e.awaitState(t, client.Connecting)
	added := make(chan error, 1)
	go func() { added <- c.AddAuth(context.Background(), "digest", []byte("cid:3")) }() // ends when it is connected; awaited below
	w.Up()
	if err := <-added; err != nil {
		t.Error(err)
	}
	if who, err = c.WhoAmI(t.Context()); err != nil || len(who) != 4 {
		t.Errorf("%v, %v", who, err)
	}
}

// TestPings: an idle session lives for many timeouts on one connection.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, server.Config{})
		c, e, w := connect(t, s, func(cfg *client.Config) { cfg.SessionTimeout = 6 * time.Second })
		e.awaitState(t, client.Connected)
		time.Sleep(time.Hour)
		if c.State() != client.Connected || w.made != 1 || len(e) != 0 {
			t.Errorf("%v after %d connections, %d events", c.State(), w.made, len(e))
		}
	})
}

// TestManyCallers: calls of many goroutines while connections break, each time after some calls
// have succeeded. A create whose outcome is unknown may have been applied or not. Every other
// create is as its error says.
func TestManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServer(t, server.Config{})
		c, _, w := connect(t, s)
		const callers, each, pause = 20, 50, 33
		var succeeded, unknownCreates atomic.Int64
		success := func() {
			if n := succeeded.Add(1); n%pause == 0 { // calls of the others are outstanding
				w.Break(false)
			}
		}
		create := func(path string) {
			_, _, err := c.Create(t.Context(), path, nil, client.CreateOptions{})
			var failed *client.Error
			unknown := errors.As(err, &failed) && failed.Unknown
			switch {
			case err == nil:
				success()
			case !unknown || failed.Code != proto.ErrConnectionLoss:
				t.Errorf("%s: %v", path, err)
			default:
				unknownCreates.Add(1)
			}
			for {
				_, there, readErr := c.Exists(t.Context(), path, false)
				if errors.Is(readErr, proto.ErrConnectionLoss) {
					continue
				}
				if readErr != nil || err == nil && !there {
					t.Errorf("%s: created (%v), but there: %v, %v", path, err, there, readErr)
				}
				success()
				return
			}
		}
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				for j := range each {
					create(fmt.Sprintf("/n%d-%d", i, j))
				}
			})
		}
		all.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if unknown := unknownCreates.Load(); w.made < 10 || unknown == 0 || unknown == callers*each {
			t.Errorf("%d connections and %d creates of unknown outcome: this test shows nothing", w.made, unknown)
		}
	})
}

func TestParseServers(t *testing.T) {
	for _, c := range []struct{ connect, want, chroot string }{
		{"a", "a:2181", ""},
		{"a:1,b:2/x/y", "a:1 b:2", "/x/y"},
		{"[::1]:2182/", "[::1]:2182", ""},
		{"[::1],::1,::1:2181, c", "[::1]:2181 [::1]:2181 [::1]:2181 c:2181", ""},
		{"fe80::1%eth0,[fe80::1%eth0]:1,::ffff:10.0.0.1", "[fe80::1%eth0]:2181 [fe80::1%eth0]:1 [::ffff:10.0.0.1]:2181", ""},
	} {
		servers, chroot, err := client.ParseServers(c.connect)
		if err != nil || strings.Join(servers, " ") != c.want || chroot != c.chroot {
			t.Errorf("%s: %q, %q, %v", c.connect, servers, chroot, err)
		}
	}
	for _, bad := range []string{"", "a,", ":1", "a:b", "a:0", "a:99999", "[::1", "a/x/", "a//x", "a;b", "a b", "a:1 b:1", ":2181"} {
		if servers, _, err := client.ParseServers(bad); err == nil {
			t.Errorf("%q: %q", bad, servers)
		}
	}
}

func TestConnect_BadConfig(t *testing.T) {
	_, err := client.Connect(t.Context(), client.Config{Chroot: "app", SessionTimeout: -1})
	for _, want := range []string{"no servers", "chroot", "SessionTimeout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
