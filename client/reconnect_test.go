package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// TestReconnect_Pauses: the client pauses before it returns to a server that gives a session and
// then breaks every connection, but not before it returns to a server that worked.
func TestReconnect_Pauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		var works atomic.Bool
		f := &fake{}
		f.handshake = func(r proto.ConnectRequest) []byte {
			if made.Add(1) > 1000 {
				return nil
			}
			if works.Load() {
				return welcome(r)
			}
			return slices.Concat(welcome(r), reply(proto.XidSetWatches, 0, proto.ErrUnimplemented, nil))
		}
		f.answer = polite(func(h proto.RequestHeader, _ []byte) []byte {
			if h.Op == proto.OpSync {
				return nil
			}
			return reply(h.Xid, 1, proto.OK, make([]byte, proto.StatBytes))
		})
		c, _ := connectFake(t, f)
		time.Sleep(time.Minute)
		if n := made.Load(); n < 20 || n > 100 {
			t.Errorf("%d connections in a minute", n)
		}
		works.Store(true)
		if _, err := c.Set(t.Context(), "/a", nil, client.AnyVersion); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for range 5 {
			if _, err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) {
				t.Fatal(err)
			}
			if _, err := c.Set(t.Context(), "/a", nil, client.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("five returns took %v", took)
		}
	})
}

// TestCancelled: the error has the cause of ctx, also if ctx ended before the call.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connectFake(t, &fake{answer: polite(func(proto.RequestHeader, []byte) []byte { return []byte{} })})
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() { // ends with ctx; awaited below
			if _, err := c.Set(ctx, "/a", nil, client.AnyVersion); !errors.Is(err, why) || !errors.Is(err, proto.ErrOperationTimeout) {
				t.Errorf("while it waits: %v", err)
			}
		})
		cancel(why)
		all.Wait()
		if _, err := c.Set(ctx, "/a", nil, client.AnyVersion); !errors.Is(err, why) || !errors.Is(err, proto.ErrOperationTimeout) {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestManyGivenUp: most of many calls that wait for a connection are abandoned. The others are sent
// in order.
func TestManyGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := exhaustive.Or(5_000, 50_000)
		var up atomic.Bool
		var got []string
		f := &fake{handshake: func(r proto.ConnectRequest) []byte {
			if r.SessionID != 0 && !up.Load() {
				return nil
			}
			return welcome(r)
		}}
		f.answer = polite(func(h proto.RequestHeader, body []byte) []byte {
			if !up.Load() {
				return nil
			}
			var r proto.SetDataRequest
			d := jute.NewDecoder(body)
			r.Decode(&d)
			got = append(got, r.Path)
			return reply(h.Xid, 1, proto.OK, make([]byte, proto.StatBytes))
		})
		c, e := connectFake(t, f)
		if _, err := c.Sync(t.Context(), "/"); err == nil {
			t.Fatal("it worked")
		}
		e.awaitState(t, client.Connecting)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var want []string
		for i := range n {
			keeps := i%(n/10) == 77
			path, mine := fmt.Sprintf("/%d", i), ctx
			if keeps {
				mine = t.Context()
				want = append(want, path)
			}
			all.Go(func() {
				_, err := c.Set(mine, path, nil, client.AnyVersion)
				var failed *client.Error
				if keeps && err != nil || !keeps && (!errors.As(err, &failed) || failed.Unknown || !errors.Is(err, context.Canceled)) {
					t.Errorf("%s: %v", path, err)
				}
			})
			if keeps {
				synctest.Wait() // the order of the calls
			}
		}
		synctest.Wait()
		start := time.Now()
		cancel()
		synctest.Wait()
		if time.Since(start) != 0 {
			t.Error("who gave up had to wait")
		}
		up.Store(true)
		all.Wait()
		if !slices.Equal(got, want) {
			t.Errorf("sent were %q, want %q", got, want)
		}
	})
}

// TestConnect_NamesAnAddressOnce: the system's error contains the address too.
func TestConnect_NamesAnAddressOnce(t *testing.T) {
	gone, err := tcpport.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Release()
	address := gone.Address()
	_, err = client.Connect(t.Context(), client.Config{Servers: []string{address}})
	if err == nil || strings.Count(err.Error(), address) != 1 {
		t.Errorf("%v", err)
	}
}

// TestReconnect_OnRequest: the Client makes another connection for the same session.
func TestReconnect_OnRequest(t *testing.T) {
	s := startServer(t, server.Config{})
	c, _, w := connect(t, s)
	session := c.Session()
	c.Reconnect()
	if _, _, err := c.Get(t.Context(), "/", false); err != nil && !errors.Is(err, proto.ErrConnectionLoss) {
		t.Fatal(err)
	}
	if _, _, err := c.Get(t.Context(), "/", false); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.Session().ID != session.ID || w.made != 2 {
		t.Errorf("session %x after %x, %d connections", c.Session().ID, session.ID, w.made)
	}
}

// TestReconnect_WhoClosed: the error of a lost request says whether this side closed the
// connection.
func TestReconnect_WhoClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connectFake(t, &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			if h.Op == proto.OpSync {
				return nil
			}
			return []byte{}
		})})
		if _, err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) || errors.Is(err, net.ErrClosed) {
			t.Errorf("the server has closed: %v", err)
		}
		time.AfterFunc(time.Second, c.Reconnect)
		if _, _, err := c.Get(t.Context(), "/a", false); !errors.Is(err, proto.ErrConnectionLoss) || !errors.Is(err, net.ErrClosed) {
			t.Errorf("Reconnect: %v", err)
		}
	})
}

// slowLink passes 100 KB per second to the server, and answers at once.
type slowLink struct{ net.Conn }

func (l slowLink) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, 10_000) {
		time.Sleep(time.Duration(len(part)) * time.Second / 100_000)
		m, err := l.Conn.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// TestSlowLink: what takes a slow link longer than the session timeout arrives: many requests, a
// large one, and the watches that are set again. A server that is silent then is still noticed.
func TestSlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		answer := polite(func(h proto.RequestHeader, _ []byte) []byte {
			switch h.Op {
			case proto.OpSync:
				return nil
			case proto.OpExists:
				return reply(h.Xid, 1, proto.ErrNoNode, nil)
			}
			return reply(h.Xid, 1, proto.OK, make([]byte, proto.StatBytes))
		})
		f := &fake{answer: func(h proto.RequestHeader, body []byte) []byte {
			if silent.Load() {
				return []byte{}
			}
			return answer(h, body)
		}}
		c, e := connectFake(t, f, func(cfg *client.Config) {
			cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := f.Dial(ctx, address)
				return slowLink{conn}, err
			}
		})
		var all sync.WaitGroup
		set := func(size int) {
			if _, err := c.Set(t.Context(), "/a", make([]byte, size), client.AnyVersion); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
		for range 40 {
			all.Go(func() { set(100_000) }) // ends with its reply; awaited below
		}
		all.Wait()
		set(1_000_000)
		for i := range 10_000 {
			all.Go(func() { // the same
				if _, _, err := c.Exists(t.Context(), fmt.Sprintf("/%0190d", i), true); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if _, err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) {
			t.Fatal(err)
		}
		set(0)
		if made := len(e); made != 3 {
			t.Errorf("%d events, want 3: connected, connecting, connected", made)
		}
		silent.Store(true)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Set(ctx, "/a", make([]byte, 1_000_000), client.AnyVersion)
		if took := time.Since(start); !errors.Is(err, proto.ErrConnectionLoss) || took > 15*time.Second {
			t.Errorf("a silent server: %v after %v", err, took)
		}
	})
}
