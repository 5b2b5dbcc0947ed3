package recipes_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/discovery"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/recipes/shared"
	"github.com/gozkd/gozkd/zktest"
)

// runner is what all recipes have that run from Start to Close.
type runner interface {
	Start(ctx context.Context) error
	io.Closer
}

// started is a kind of runner.
type started struct {
	name string
	make func(c *recipes.Client) (runner, func(ctx context.Context) error) // the second result waits
}

var allStarted = []started{
	{"latch", func(c *recipes.Client) (runner, func(context.Context) error) {
		l := election.NewLatch(c, "/l", "a")
		return l, func(ctx context.Context) error {
			_, err := l.Await(ctx)
			return err
		}
	}},
	{"persistent znode", func(c *recipes.Client) (runner, func(context.Context) error) {
		z := group.NewPersistentZnode(c, "/z", nil, recipes.CreateOptions{})
		return z, func(ctx context.Context) error {
			_, err := z.Wait(ctx)
			return err
		}
	}},
	{"tree", waits(func(c *recipes.Client) waiter { return cache.NewTree(c, "/t", cache.TreeOptions{}) })},
	{"children", waits(func(c *recipes.Client) waiter { return cache.NewChildren(c, "/t") })},
	{"znode", waits(func(c *recipes.Client) waiter { return cache.NewZnode(c, "/t") })},
	{"view", waits(func(c *recipes.Client) waiter { return group.New(c, "/g").View() })},
	{"discovery cache", waits(func(c *recipes.Client) waiter { return discovery.New[struct{}](c, "/d").Cache("s") })},
	{"provider", waits(func(c *recipes.Client) waiter {
		return discovery.New[struct{}](c, "/d").Provider("s", discovery.RoundRobin[struct{}](), discovery.DownPolicy{})
	})},
}

type waiter interface {
	runner
	Wait(ctx context.Context) error
}

func waits(make func(c *recipes.Client) waiter) func(c *recipes.Client) (runner, func(ctx context.Context) error) {
	return func(c *recipes.Client) (runner, func(ctx context.Context) error) {
		w := make(c)
		return w, w.Wait
	}
}

// TestLifeCycle checks what holds for all recipes that have Start: making one costs nothing,
// waiting before Start and after Close are errors at once, and Start and Close may be called again.
func TestLifeCycle(t *testing.T) {
	for _, kind := range allStarted {
		t.Run(kind.name, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c, h := w.Hooked()
				ctx, took := t.Context(), time.Duration(0)
				var never, r runner
				var neverWait, wait func(ctx context.Context) error
				expect := func(what string, err, want error) {
					t.Helper()
					if !errors.Is(err, want) {
						t.Errorf("%s: %v, want %v", what, err, want)
					}
				}
				cost := h.Cost(func() {
					begun := time.Now()
					never, neverWait = kind.make(c)
					r, wait = kind.make(c)
					expect("wait before Start", wait(ctx), recipes.ErrNotStarted)
					expect("close before Start", never.Close(), nil)
					expect("close again", never.Close(), nil)
					expect("start after Close", never.Start(ctx), recipes.ErrClosed)
					expect("wait after Close", neverWait(ctx), recipes.ErrClosed)
					took = time.Since(begun)
				})
				if cost.Ops() != "" || took != 0 {
					t.Errorf("before Start: %s, %v", cost.Ops(), took)
				}
				expect("start", r.Start(ctx), nil)
				expect("start again", r.Start(ctx), nil)
				expect("wait", wait(ctx), nil)
				expect("close", r.Close(), nil)
				expect("close again", r.Close(), nil)
				expect("start after Close", r.Start(ctx), recipes.ErrClosed)
				expect("wait after Close", wait(ctx), recipes.ErrClosed)

				r, wait = kind.make(c)
				inner, cancel := context.WithCancel(ctx)
				expect("start", r.Start(inner), nil)
				expect("wait", wait(ctx), nil)
				cancel()
				time.Sleep(time.Second)
				expect("wait after the end of Start's ctx", wait(ctx), recipes.ErrClosed)
				expect("close", r.Close(), nil)
			})
		})
	}
}

// TestClose checks that everything else that must be closed is an io.Closer, and may be closed
// again.
func TestClose(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx, c := t.Context(), w.Client()
		for name, open := range map[string]func() (io.Closer, error){
			"queue": func() (io.Closer, error) {
				q := queue.New(c, "/q")
				return q, q.Put(ctx, []byte("x"))
			},
			"number": func() (io.Closer, error) {
				n := shared.NewLong(c, "/n")
				_, err := n.Add(ctx, 1)
				return n, err
			},
			"value":  func() (io.Closer, error) { v := shared.NewValue(c, "/v"); return v, v.Set(ctx, nil) },
			"member": func() (io.Closer, error) { return group.New(c, "/g").Join(ctx, "a", nil) },
			"registration": func() (io.Closer, error) {
				return discovery.New[struct{}](c, "/d").Register(ctx, discovery.Instance[struct{}]{Name: "s"})
			},
		} {
			x, err := open()
			if err == nil {
				err = errors.Join(x.Close(), x.Close())
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The znode is deleted also if the cause of the end of Start's ctx is the ErrClosed of another
// Client.
func TestPersistentZnode_CtxCause(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		other := w.Client()
		held, err := lock.NewMutex(other, "/lock", nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, h := w.Hooked()
		z := group.NewPersistentZnode(c, "/z", nil, recipes.CreateOptions{})
		busy := make(chan struct{})
		h.Arm(func(r recipetest.Request) error {
			if r.Op == zktest.Exists && r.Watch {
				close(busy)
				time.Sleep(time.Second)
			}
			return nil
		}, nil)
		if err := z.Start(held.Context()); err != nil {
			t.Fatal(err)
		}
		<-busy
		h.Arm(nil, nil)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := z.Close(); err != nil {
			t.Error(err)
		}
		stat, err := c.Exists(t.Context(), "/z")
		if stat != nil || err != nil {
			t.Errorf("the znode is left: %v %v", stat, err)
		}
	})
}

// From the end of Start's ctx, waiting is ErrClosed, also while the deletion lasts.
func TestPersistentZnode_Ending(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client(recipes.Retry(recipes.Forever(time.Second)))
		z := group.NewPersistentZnode(c, "/z", nil, recipes.CreateOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := z.Start(ctx)
		if err == nil {
			_, err = z.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		w.Unplug(c)
		cancel()
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if path, err := z.Wait(short); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("wait: %q %v", path, err)
		}
		if err := z.SetData(short, []byte("2")); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("set: %v", err)
		}
		if err := z.Start(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("start: %v", err)
		}
		w.Plug(c)
		time.Sleep(time.Minute)
		if err := z.Start(t.Context()); !errors.Is(err, recipes.ErrClosed) {
			t.Errorf("start: %v", err)
		}
		if err := z.Close(); err != nil {
			t.Error(err)
		}
	})
}
