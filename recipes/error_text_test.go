package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
	"github.com/gozkd/gozkd/recipes/barrier"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/discovery"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/recipes/shared"
	"github.com/gozkd/gozkd/zktest"
)

// repeated returns a part of an error's text that is there twice, other than the name of a package.
func repeated(text string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.NewReplacer("; ", ": ", "\n", ": ").Replace(text), ": ") {
		last := len(parts) > 0 && parts[len(parts)-1] == part
		if last || slices.Contains(parts, part) && !slices.Contains([]string{"recipes", "client", "zk", "lock"}, part) {
			return part
		}
		parts = append(parts, part)
	}
	return ""
}

// single returns the errors of joins one by one.
func single(err error) (all []error) {
	if err == nil {
		return nil
	}
	several, is := err.(interface{ Unwrap() []error }) //nolint:errorlint // the top
	if !is || !strings.Contains(err.Error(), "\n") {
		return []error{err}
	}
	for _, e := range several.Unwrap() {
		all = append(all, single(e)...)
	}
	return all
}

// everything calls whatever can fail, in all recipes, and returns the errors by name.
func everything(ctx context.Context, c *recipes.Client) map[string]error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make(map[string]error)
	try := func(name string, f func() error) {
		wg.Go(func() {
			err := f()
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	do := func(name string, f func(ctx context.Context) error) { try(name, func() error { return f(ctx) }) }
	create := func(o recipes.CreateOptions) func(context.Context) error {
		return func(ctx context.Context) error { _, err := c.Create(ctx, "/client/a", nil, o); return err }
	}
	do("create", create(recipes.CreateOptions{}))
	do("create protected", create(recipes.CreateOptions{Protected: true, Parents: true}))
	do("create ephemeral", create(recipes.CreateOptions{Ephemeral: true}))
	do("idempotent", func(ctx context.Context) error { _, err := c.Idempotent().Set(ctx, "/a", nil, -1); return err })
	do("set", func(ctx context.Context) error { _, err := c.Set(ctx, "/a", nil, -1); return err })
	do("get", func(ctx context.Context) error { _, _, err := c.Get(ctx, "/a"); return err })
	do("children", func(ctx context.Context) error { _, _, _, err := c.ChildrenW(ctx, "/a"); return err })
	do("exists", func(ctx context.Context) error { _, err := c.Exists(ctx, "/a"); return err })
	do("delete", func(ctx context.Context) error { return c.Delete(ctx, "/a", -1) })
	do("delete guaranteed", func(ctx context.Context) error { return c.DeleteGuaranteed(ctx, "/a") })
	do("multi", func(ctx context.Context) error { _, err := c.Multi(ctx, client.DeleteOp("/a", 0)); return err })
	do("sync", func(ctx context.Context) error { return c.Sync(ctx, "/") })
	do("ensure", func(ctx context.Context) error { return c.Ensure(ctx, "/b/c") })
	do("watch", func(ctx context.Context) error { return c.WatchPersistent(ctx, "/a", true, func(client.Event) {}) })
	do("session", func(ctx context.Context) error { _, err := c.AwaitSession(ctx); return err })
	do("repeat", func(ctx context.Context) error {
		return c.Repeat(ctx, func(ctx context.Context) error { return c.Delete(ctx, "/a", -1) })
	})

	m, rw, s := lock.NewMutex(c, "/taken/mutex", nil), lock.NewRWMutex(c, "/taken/rw", nil), lock.NewSemaphore(c, "/semaphore", 1, nil)
	do("mutex", func(ctx context.Context) error { return m.With(ctx, nothing) })
	do("try mutex", func(ctx context.Context) error { _, err := m.TryLock(ctx); return err })
	do("rwmutex", func(ctx context.Context) error { return rw.RLocker().With(ctx, nothing) })
	do("several", func(ctx context.Context) error { return lock.NewMulti(m, rw).With(ctx, nothing) })
	do("semaphore", func(ctx context.Context) error { return s.With(ctx, nothing) })
	do("try semaphore", func(ctx context.Context) error { _, err := s.TryAcquire(ctx); return err })
	do("kazoo semaphore", func(ctx context.Context) error { return lock.NewKazooSemaphore(c, "/kazoo", 1, nil).With(ctx, nothing) })
	do("explain", func(ctx context.Context) error { _, err := lock.Explain(ctx, c, "/taken/mutex"); return err })
	do("revoke", func(ctx context.Context) error { return lock.Revoke(ctx, c, "/taken/mutex") })

	do("latch", func(ctx context.Context) error {
		l := election.NewLatch(c, "/taken/mutex", "a")
		_ = l.Start(ctx)
		_, err := l.Await(ctx)
		return errors.Join(err, l.Close(), l.Close(), l.Start(ctx))
	})
	do("selector", func(ctx context.Context) error {
		return election.NewSelector(c, "/taken/mutex", "a").Run(ctx, func(ctx context.Context, _ *recipes.Hold) error { return ctx.Err() })
	})
	do("barrier", barrier.New(c, "/taken/barrier").Wait)
	do("set barrier", barrier.New(c, "/barrier").Set)
	do("double barrier", func(ctx context.Context) error { return barrier.NewDouble(c, "/double", 2, "a").With(ctx, nothing) })
	do("partitioner", func(ctx context.Context) error {
		p := agree.NewPartitioner(c, "/partitioner", []string{"x", "y"}, "a", time.Second)
		return p.Run(ctx, func(ctx context.Context, _ map[string]*recipes.Hold) error { <-ctx.Done(); return ctx.Err() })
	})
	for name, tree := range map[string]*cache.Tree{
		"tree":            cache.NewTree(c, "/taken", cache.TreeOptions{}),
		"cached children": cache.NewChildren(c, "/taken"),
		"cached znode":    cache.NewZnode(c, "/missing"),
	} {
		do(name, func(ctx context.Context) error {
			start := tree.Start(ctx)
			time.Sleep(30 * time.Second)
			return errors.Join(start, tree.Wait(ctx), tree.Close(), tree.Close(), tree.Start(ctx), tree.Wait(ctx))
		})
	}
	do("watch data", func(ctx context.Context) error {
		return cache.WatchData(ctx, c, "/a", func(*cache.Znode) bool { return true })
	})
	do("patient", func(ctx context.Context) error {
		_, _, err := cache.PatientChildren(ctx, c, "/taken", time.Hour)
		return err
	})
	g := group.New(c, "/group")
	do("group", func(ctx context.Context) error {
		return g.With(ctx, "a", nil, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	})
	do("members", func(ctx context.Context) error { _, err := g.Members(ctx); return err })
	do("persistent znode", func(ctx context.Context) error {
		p := group.NewPersistentZnode(c, "/taken/mutex/kept/a", nil, recipes.CreateOptions{Ephemeral: true})
		err := p.Start(ctx)
		_, wait := p.Wait(ctx)
		set := p.SetData(ctx, []byte("x"))
		time.Sleep(30 * time.Second)
		_, path := p.Path()
		return errors.Join(err, wait, set, path, p.Close(), p.Close(), p.Start(ctx), p.SetData(ctx, nil))
	})
	d := discovery.New[string](c, "/services")
	do("discovery", func(ctx context.Context) error {
		r, err := d.Register(ctx, discovery.Instance[string]{Name: "a"})
		if err != nil {
			return err
		}
		time.Sleep(30 * time.Second)
		_, path := r.Path()
		return errors.Join(path, r.Update(ctx, discovery.Instance[string]{Name: "a"}), r.Close(), r.Update(ctx, r.Instance()))
	})
	do("instances", func(ctx context.Context) error { _, err := d.Instances(ctx, "a"); return err })
	do("provider", func(ctx context.Context) error {
		p := d.Provider("a", nil, discovery.DownPolicy{})
		_, err := p.Instance()
		start := p.Start(ctx)
		time.Sleep(30 * time.Second)
		_, again := p.Instance()
		return errors.Join(err, start, again, p.Close(), p.Start(ctx))
	})
	for name, q := range map[string]*queue.Queue{
		"queue":         queue.New(c, "/queue"),
		"bounded queue": queue.New(c, "/queue", queue.Locks("/locks"), queue.MaxItems(1)),
	} {
		do(name, func(ctx context.Context) error {
			put := q.Put(ctx, []byte("x"), []byte("y"))
			item, taken := q.TakeLocked(ctx)
			var done error
			if taken == nil {
				time.Sleep(30 * time.Second)
				done = errors.Join(item.Done(ctx), item.Release(ctx))
			}
			_, take := q.Take(ctx)
			return errors.Join(put, taken, done, take, q.Close(), q.Close(), q.Put(ctx, []byte("x")))
		})
	}
	v := shared.NewValue(c, "/value")
	do("value", func(ctx context.Context) error { return v.Set(ctx, nil) })
	do("next value", func(ctx context.Context) error { _, err := v.Next(ctx, shared.Versioned[[]byte]{}); return err })
	do("number", func(ctx context.Context) error {
		n := shared.NewLong(c, "/number")
		_, err := n.Add(ctx, 1)
		return errors.Join(err, n.Close(), n.Close())
	})
	do("lease", func(ctx context.Context) error {
		return shared.NewLease(c, "/lease", "a", time.Hour).With(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	})
	wg.Wait()
	return errs
}

// TestErrors_SayEachReasonOnce calls everything while and after its Client is closed, the
// connection or the session is lost, or ctx ends. No error has a reason twice.
func TestErrors_SayEachReasonOnce(t *testing.T) {
	var faults []string
	type trouble struct {
		name string
		at   time.Duration
		do   func(w *recipetest.World, c *recipes.Client, cancel context.CancelCauseFunc)
	}
	troubles := []trouble{
		{"closed before", 0, func(_ *recipetest.World, c *recipes.Client, _ context.CancelCauseFunc) { _ = c.Close() }},
		{"closed", 10 * time.Second, func(_ *recipetest.World, c *recipes.Client, _ context.CancelCauseFunc) { _ = c.Close() }},
		{"canceled", 10 * time.Second, func(_ *recipetest.World, _ *recipes.Client, cancel context.CancelCauseFunc) { cancel(nil) }},
		{"canceled as closed", 10 * time.Second, func(_ *recipetest.World, _ *recipes.Client, cancel context.CancelCauseFunc) {
			cancel(recipes.ErrClosed)
		}},
		{"unplugged", 10 * time.Second, func(w *recipetest.World, c *recipes.Client, cancel context.CancelCauseFunc) {
			w.Unplug(c)
			time.Sleep(5 * time.Minute)
			cancel(nil)
		}},
		{"expired", 10 * time.Second, func(w *recipetest.World, c *recipes.Client, cancel context.CancelCauseFunc) {
			w.ExpireSession(c.Session().ID())
			time.Sleep(time.Minute)
			cancel(errors.New("enough"))
		}},
		{"refused", 0, func(w *recipetest.World, _ *recipes.Client, cancel context.CancelCauseFunc) {
			for _, code := range []proto.ErrCode{proto.ErrConnectionLoss, proto.ErrOperationTimeout, proto.ErrSystemError} {
				w.FailNext(zktest.Any, code, zktest.Times(60))
			}
			time.AfterFunc(time.Minute, func() { cancel(nil) })
		}},
		{"answers lost", 0, func(w *recipetest.World, _ *recipes.Client, cancel context.CancelCauseFunc) {
			w.DropReply(zktest.Any, zktest.Times(1_000_000))
			time.AfterFunc(5*time.Minute, func() {
				w.ClearFaults()
				cancel(nil)
			})
		}},
	}
	kinds := recipetest.Kinds()
	for k, kind := range kinds {
		for i, x := range troubles {
			if !exhaustive.Enabled() && i%len(kinds) != k {
				continue // in make test each trouble meets one kind of client
			}
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				w.Load(map[string]string{"/taken/mutex/lock-0000000000": "", "/taken/rw/lock-0000000000": "", "/taken/barrier": ""})
				c := w.Open(kind, recipes.Retry(recipes.Times(1, time.Second)))
				ctx, cancel := context.WithCancelCause(t.Context())
				if x.at == 0 {
					x.do(w, c, cancel)
				} else {
					time.AfterFunc(x.at, func() { x.do(w, c, cancel) })
				}
				time.AfterFunc(20*time.Minute, func() { cancel(context.DeadlineExceeded) })
				errs := everything(ctx, c)
				for name, err := range errs {
					for _, e := range single(err) {
						if part := repeated(e.Error()); part != "" {
							faults = append(faults, fmt.Sprintf("%s: %s: %q twice in: %v", x.name, name, part, e))
						}
					}
				}
				cancel(nil)
				w.Plug(c)
				time.Sleep(time.Minute)
				_ = c.Close()
			})
		}
	}
	for _, fault := range faults {
		t.Error(fault)
	}
}
