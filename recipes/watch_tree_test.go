package recipes_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// TestWatchTree checks that calls with the same path share a watch of the server, which survives a
// reconnect and the loss of the session, and is removed when the last call ends.
func TestWatchTree(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		var (
			mu  sync.Mutex
			got [3]string // by call
		)
		var end [3]context.CancelFunc
		for i, path := range []string{"/d", "/d", "/d/e"} {
			var ctx context.Context
			ctx, end[i] = context.WithCancel(t.Context())
			err := c.Namespace("n").WatchPersistent(ctx, path, true, func(e client.Event) {
				mu.Lock()
				defer mu.Unlock()
				got[i] += " " + strings.TrimPrefix(e.Type.String(), "Node") + e.Path
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		expect := func(what string, watches int, want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			if _, _, n := w.Leader().Server().Facts().WatchCounts(); n != watches {
				t.Errorf("%s: %d watches, want %d", what, n, watches)
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("%s: call %d got%s, want%s", what, i, got[i], want[i])
				}
				got[i] = ""
			}
		}
		w.Load(map[string]string{"/n": "", "/n/d": "", "/n/dd": "", "/n/d/e": ""})
		expect("created", 2, " Created/d Created/d/e", " Created/d Created/d/e", " Created/d/e")
		w.CloseConnections()
		time.Sleep(recipetest.Timeout)
		end[0]()
		w.Load(map[string]string{"/n/d/e": "1"})
		const mark = 1 // after a reconnect the client also watches the mark of missed events, see proto.ReplayMark
		expect("changed", 2+mark, "", " DataChanged/d/e", " DataChanged/d/e")
		end[1]()
		expect("the last call has ended", 1+mark, "", "", "")
		if err := c.Delete(t.Context(), "/n/d/e", -1); err != nil {
			t.Error(err)
		}
		expect("deleted", 1+mark, "", "", " Deleted/d/e")
		w.ExpireSession(c.Session().ID())
		time.Sleep(recipetest.Timeout)
		w.Load(map[string]string{"/n/d/e": ""})
		expect("another session", 1, "", "", " Created/d/e")
		end[2]()
		expect("no call is left", 0, "", "", "")
	})
}

// TestWatchTree_Wrap checks that a wrapped connection refuses, so that callers can do without.
func TestWatchTree_Wrap(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		err := w.Open(recipetest.Wrap).WatchPersistent(t.Context(), "/", true, func(client.Event) {})
		if !recipes.Refused(err) || !errors.Is(err, proto.ErrUnimplemented) {
			t.Errorf("%v", err)
		}
	})
}

// countingCtx counts the functions that wait for its end.
type countingCtx struct {
	context.Context
	done chan struct{}
	n    atomic.Int64
}

func (c *countingCtx) Done() <-chan struct{} { return c.done }

func (c *countingCtx) AfterFunc(func()) (stop func() bool) {
	c.n.Add(1)
	return sync.OnceValue(func() bool {
		c.n.Add(-1)
		return true
	})
}

// TestWatchTree_SessionsEnd checks that sessions that end leave nothing behind with the ctx of a
// watch.
func TestWatchTree_SessionsEnd(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		ctx := &countingCtx{Context: t.Context(), done: make(chan struct{})}
		if err := c.WatchPersistent(ctx, "/d", true, func(client.Event) {}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.ExpireSession(c.Session().ID())
			time.Sleep(recipetest.Timeout)
		}
		if _, _, watches := w.Leader().Server().Facts().WatchCounts(); watches != 1 || ctx.n.Load() != 1 {
			t.Errorf("%d watches, and ctx has %d functions; want one of each", watches, ctx.n.Load())
		}
	})
}

// TestWatchPersistent_BeforeReconnected loses the session again and again, while another client
// changes the znode as soon as the state is Reconnected: no such change may be missed.
func TestWatchPersistent_BeforeReconnected(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		if _, err := other.Create(t.Context(), "/d", nil, recipes.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		var changes atomic.Int64
		if err := c.WatchPersistent(t.Context(), "/d", false, func(client.Event) { changes.Add(1) }); err != nil {
			t.Fatal(err)
		}
		states := c.States(t.Context())
		for i := range 5 {
			w.ExpireSession(c.Session().ID())
			for s := range states {
				if s == recipes.Reconnected {
					break
				}
			}
			if _, err := other.Set(t.Context(), "/d", nil, -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if got := changes.Load(); got != int64(i+1) {
				t.Errorf("%d changes were told after %d", got, i+1)
			}
		}
	})
}

// TestWatchPersistent_OneZnode checks that a watch that is not recursive tells of the znode and of
// its list of children, and of nothing below.
func TestWatchPersistent_OneZnode(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		ctx, cancel := context.WithCancel(t.Context())
		events := make(chan client.Event, 20)
		if err := c.WatchPersistent(ctx, "/d", false, func(e client.Event) { events <- e }); err != nil {
			t.Fatal(err)
		}
		w.Load(map[string]string{"/d": "", "/dd": ""})
		w.Load(map[string]string{"/d/e": ""})
		w.Load(map[string]string{"/d/e": "1"})
		w.Load(map[string]string{"/d/e/f": ""})
		w.Load(map[string]string{"/d": "1"})
		time.Sleep(time.Second)
		cancel()
		time.Sleep(time.Second)
		var got []string
		for range len(events) {
			e := <-events
			got = append(got, e.Type.String()+e.Path)
		}
		if want := "NodeCreated/d NodeChildrenChanged/d NodeDataChanged/d"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %s", got, want)
		}
		if _, _, watches := w.Leader().Server().Facts().WatchCounts(); watches != 0 {
			t.Errorf("%d watches are left", watches)
		}
	})
}
