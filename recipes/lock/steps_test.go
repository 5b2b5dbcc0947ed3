package lock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// held has the methods of everything that can be held.
type held interface {
	Context() context.Context
	Token() int64
	Commit(ctx context.Context, ops ...client.Op) ([]client.Result, error)
}

// kind is a recipe, for the tests that cover all of them.
type kind struct {
	name  string
	total int // permits
	takes int // permits of one holder
	get   func(ctx context.Context, c *recipes.Client) (held, func(context.Context) error, error)
	dirs  []string // directories that must be empty in the end
}

func kinds() []kind {
	locker := func(name string, takes, total int, l func(c *recipes.Client) lock.Locker, dirs ...string) kind {
		return kind{name, total, takes, func(ctx context.Context, c *recipes.Client) (held, func(context.Context) error, error) {
			h, err := l(c).Lock(ctx)
			if err != nil {
				return nil, nil, err
			}
			return h, h.Release, nil
		}, dirs}
	}
	semaphore := func(name string, maximum, n int, s func(c *recipes.Client) *lock.Semaphore, dirs ...string) kind {
		return kind{name, maximum, n, func(ctx context.Context, c *recipes.Client) (held, func(context.Context) error, error) {
			leases, err := s(c).AcquireN(ctx, n)
			if err != nil {
				return nil, nil, err
			}
			return leases[0], func(ctx context.Context) error {
				var errs []error
				for _, l := range leases {
					errs = append(errs, l.Release(ctx))
				}
				return errors.Join(errs...)
			}, nil
		}, dirs}
	}
	return []kind{
		locker("mutex", 1, 1, func(c *recipes.Client) lock.Locker { return lock.NewMutex(c, "/a/lock", nil) }, "/a/lock"),
		locker("writer", readers, readers, func(c *recipes.Client) lock.Locker { return lock.NewRWMutex(c, "/a/rw", nil) }, "/a/rw"),
		locker("reader", 1, readers, func(c *recipes.Client) lock.Locker { return lock.NewRWMutex(c, "/a/rw", nil).RLocker() }, "/a/rw"),
		{"downgrade", readers, readers, func(ctx context.Context, c *recipes.Client) (held, func(context.Context) error, error) {
			m := lock.NewRWMutex(c, "/a/rw", nil)
			w, err := m.Lock(ctx)
			if err != nil {
				return nil, nil, err
			}
			l, err := m.Downgrade(ctx, w)
			if err != nil {
				if e := w.Release(ctx); e != nil && !errors.Is(e, recipes.ErrOutcomeUnknown) && !errors.Is(e, recipes.ErrSessionLost) {
					err = e
				}
				return nil, nil, err
			}
			return l, l.Release, nil
		}, []string{"/a/rw"}},
		semaphore("semaphore", 2, 1, func(c *recipes.Client) *lock.Semaphore { return lock.NewSemaphore(c, "/a/sem", 2, nil) }, "/a/sem/locks", "/a/sem/leases"),
		semaphore("leases", 3, 2, func(c *recipes.Client) *lock.Semaphore { return lock.NewSemaphore(c, "/a/sem", 3, nil) }, "/a/sem/locks", "/a/sem/leases"),
		semaphore("kazoo semaphore", 1, 1, func(c *recipes.Client) *lock.Semaphore { return lock.NewKazooSemaphore(c, "/a/sem", 1, nil) }, "/a/sem", "/a/sem-__lock__"),
		{"multi", 1, 1, func(ctx context.Context, c *recipes.Client) (held, func(context.Context) error, error) {
			l, err := lock.NewMulti(lock.NewMutex(c, "/a/lock", nil), lock.NewRWMutex(c, "/a/rw", nil)).Lock(ctx)
			if err != nil {
				return nil, nil, err
			}
			return l, l.Release, nil
		}, []string{"/a/lock", "/a/rw"}},
	}
}

// TestSteps is K1, K2, K5, K6 and K7 with each kind of fault at each request of each recipe.
// Another client holds the lock first, and wants it again afterwards.
func TestSteps(t *testing.T) {
	for _, k := range kinds() {
		if k.name == "writer" || k.name == "semaphore" {
			continue // "downgrade" and "leases" make the same requests and more
		}
		t.Run(k.name, func(t *testing.T) {
			recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) { step(t, s, k) })
		})
	}
}

func step(t testing.TB, s *recipetest.Step, k kind) {
	s.Load(map[string]string{"/counter": ""})
	other := s.World.Client()
	holds := recipetest.NewHoldHistory(k.total)
	hold := func(ctx context.Context, c *recipes.Client, how string) error {
		h, letGo, err := k.get(ctx, c)
		if err != nil {
			return err
		}
		if k.name != "reader" || how != "before" {
			holds.Begin(h.Context(), h.Token(), k.takes)
		}
		select {
		case <-h.Context().Done():
		case <-time.After(time.Second):
		}
		if how == "tested" {
			_, err = h.Commit(ctx, client.SetOp("/counter", []byte("1"), -1))
		}
		return errors.Join(err, letGo(ctx))
	}
	// With a write lock before it, a reader has to wait too.
	before := func() error { return hold(t.Context(), other, "before") }
	if k.name == "reader" {
		before = func() error {
			return lock.NewRWMutex(other, "/a/rw", nil).With(t.Context(), func(ctx context.Context) error {
				time.Sleep(time.Second)
				return nil
			})
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 2 {
			if err := before(); err != nil {
				t.Errorf("the other client: %v", err)
			}
		}
	})
	time.Sleep(500 * time.Millisecond)
	s.Arm()
	err := hold(s.Ctx, s.Client, "tested")
	wg.Wait()
	s.Settle()
	mayFail := s.Ctx.Err() != nil || errors.Is(err, recipes.ErrNotHeld) || errors.Is(err, recipes.ErrSessionLost) || errors.Is(err, recipes.ErrOutcomeUnknown)
	if err != nil && !(s.FaultHappened() && mayFail) {
		t.Error(err)
	}
	// After a forced end of its session, a holder may learn of the end a moment after another
	// client holds the lock.
	if err := holds.Err(); err != nil && s.Fault != recipetest.Expire {
		t.Error(err)
	}
	for _, dir := range k.dirs {
		s.AssertChildren(dir)
	}
}
