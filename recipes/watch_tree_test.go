package recipes_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes/internal/author"
)

// TestWatchTree checks that calls with the same path share a watch of the server, which survives a
// reconnect and is removed when the last call ends.
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
			err := c.Namespace("n").WatchTree(ctx, path, func(e zk.Event) {
				mu.Lock()
				defer mu.Unlock()
				got[i] += " " + strings.TrimPrefix(e.Type.String(), "EventNode") + e.Path
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		expect := func(what string, watches int, want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			if _, _, n := w.Leader().Server().WatchCounts(); n != watches {
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
		expect("changed", 2, "", " DataChanged/d/e", " DataChanged/d/e")
		end[1]()
		expect("the last call has ended", 1, "", "", "")
		if err := c.Delete(t.Context(), "/n/d/e", -1); err != nil {
			t.Error(err)
		}
		expect("deleted", 1, "", "", " Deleted/d/e")
		w.ExpireSession(c.Session().ID())
		time.Sleep(recipetest.Timeout)
		w.Load(map[string]string{"/n/d/e": ""})
		expect("the session has ended", 0, "", "", "")
		end[2]()
	})
}

// TestWatchTree_Wrap checks that a wrapped connection refuses, so that callers can do without.
func TestWatchTree_Wrap(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		err := w.Open(recipetest.Wrap).WatchTree(t.Context(), "/", func(zk.Event) {})
		if !author.Refused(err) || !errors.Is(err, proto.ErrUnimplemented) {
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

// TestWatchTree_SessionsEnd checks that the ctx of watches does not keep anything of past sessions.
func TestWatchTree_SessionsEnd(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		ctx := &countingCtx{Context: t.Context(), done: make(chan struct{})}
		for range 3 {
			if err := c.WatchTree(ctx, "/d", func(zk.Event) {}); err != nil {
				t.Fatal(err)
			}
			w.ExpireSession(c.Session().ID())
			time.Sleep(recipetest.Timeout)
		}
		if n := ctx.n.Load(); n != 0 {
			t.Errorf("ctx has %d functions of past sessions", n)
		}
	})
}
