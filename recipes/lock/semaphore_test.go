package lock_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

func TestSemaphore_Layout(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		l := must[*lock.Lock](t)(lock.NewSemaphore(c, "/sem", 2, []byte("anna")).Acquire(t.Context()))
		if want := "/sem/leases/_c_????????-????-4???-????-????????????-lease-0000000000"; !matches(want, l.Path()) {
			t.Errorf("%s, want %s", l.Path(), want)
		}
		w.AssertData(l.Path(), "anna")
		w.AssertOwner(l.Path(), c.Session().ID())
		w.AssertChildren("/sem", "leases", "locks")
		w.AssertChildren("/sem/locks")
		check(t, l.Release(t.Context()))
		w.AssertChildren("/sem/leases")
		if err := l.Release(t.Context()); !errors.Is(err, recipes.ErrNotHeld) {
			t.Error(err)
		}
	})
}

// TestSemaphore_K2_InOrder checks that leases never exceed the maximum, are granted in order, and
// are granted as soon as possible.
func TestSemaphore_K2_InOrder(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			begun = time.Now()
			got   []string
			holds = recipetest.NewHoldHistory(3)
		)
		clients := []*recipes.Client{w.Client(), w.Client()}
		// Each arrives a second after the previous one, wants this many leases, and holds them for
		// ten seconds.
		for i, n := range []int{1, 1, 2, 1, 3, 1} {
			s := lock.NewSemaphore(clients[i%2], "/sem", 3, nil)
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				leases, err := s.AcquireN(t.Context(), n)
				if err != nil || len(leases) != n {
					t.Error(leases, err)
					return
				}
				for _, l := range leases {
					holds.Begin(l.Context(), l.Token(), 1)
				}
				mu.Lock()
				got = append(got, fmt.Sprintf("%d at %v", i, time.Since(begun).Round(time.Second)))
				mu.Unlock()
				time.Sleep(10 * time.Second)
				for _, l := range leases {
					check(t, l.Release(t.Context()))
				}
			})
		}
		wg.Wait()
		if s := fmt.Sprint(got); s != "[0 at 0s 1 at 1s 2 at 10s 3 at 11s 4 at 21s 5 at 31s]" || holds.Err() != nil {
			t.Errorf("%s, %v", s, holds.Err())
		}
		w.AssertChildren("/sem/leases")
		w.AssertChildren("/sem/locks")
	})
}

func TestSemaphore_Try(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		s := lock.NewSemaphore(c, "/sem", 2, nil)
		refused := func(err error) {
			t.Helper()
			if !errors.Is(err, recipes.ErrNotAcquired) {
				t.Error(err)
			}
		}
		one := lock.NewSemaphore(c, "/one", 1, nil)
		if l := must[*lock.Lock](t)(one.TryAcquire(t.Context())); l != nil {
			check(t, l.Release(t.Context()))
		}
		if _, err := s.AcquireN(t.Context(), 3); err == nil {
			t.Error("AcquireN accepted more leases than the maximum")
		}
		if _, err := s.AcquireN(t.Context(), 0); err == nil {
			t.Error("AcquireN accepted 0 leases")
		}
		l := must[*lock.Lock](t)(s.TryAcquire(t.Context()))
		check(t, s.With(t.Context(), func(ctx context.Context) error {
			_, err := s.TryAcquire(ctx)
			refused(err)
			return nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.AcquireN(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(time.Second)
		w.AssertChildren("/sem/locks")
		w.AssertChildren("/sem/leases", l.Path()[len("/sem/leases/"):])
	})
}

// TestSemaphore_Deleted checks that a waiter starts again when somebody deletes the znode of its
// turn or of its lease.
func TestSemaphore_Deleted(t *testing.T) {
	for _, dir := range []string{"/sem/locks", "/sem/leases"} {
		t.Run(dir, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c, other := w.Client(), w.Client()
				first := must[*lock.Lock](t)(lock.NewSemaphore(c, "/sem", 1, nil).Acquire(t.Context()))
				var wg sync.WaitGroup
				wg.Go(func() {
					l, err := lock.NewSemaphore(other, "/sem", 1, nil).Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					check(t, l.Release(t.Context()))
				})
				time.Sleep(time.Second)
				for path := range w.Tree(dir) {
					if path != dir && path != first.Path() {
						check(t, c.Delete(t.Context(), path, -1))
					}
				}
				time.Sleep(time.Second)
				line := must[recipes.Contention](t)(lock.NewSemaphore(c, "/sem", 0, nil).Explain(t.Context()))
				if len(line.Holders) != 1 || len(line.Waiters) != 1 || line.Waiters[0].Session != other.Session().ID() {
					t.Errorf("explain: %+v", line)
				}
				check(t, first.Release(t.Context()))
				wg.Wait()
				w.AssertChildren("/sem/locks")
				w.AssertChildren("/sem/leases")
			})
		})
	}
}

// TestSemaphore_DirectoryDeleted checks that a waiter creates missing directories again, even if
// nothing is left of the semaphore.
func TestSemaphore_DirectoryDeleted(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, other := w.Client(), w.Client()
		first := must[*lock.Lock](t)(lock.NewSemaphore(c, "/sem", 1, nil).Acquire(t.Context()))
		var wg sync.WaitGroup
		wg.Go(func() {
			l, err := lock.NewSemaphore(other, "/sem", 1, nil).Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			if l.Token() <= first.Token() {
				t.Errorf("token %d is not greater than %d", l.Token(), first.Token())
			}
			check(t, l.Release(t.Context()))
		})
		time.Sleep(time.Second)
		paths := slices.Sorted(maps.Keys(w.Tree("/sem")))
		ops := make([]client.Op, len(paths))
		for i, path := range paths { // children first
			ops[len(paths)-1-i] = client.DeleteOp(path, -1)
		}
		if _, err := c.Multi(t.Context(), ops...); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// number is a shared maximum.
type number struct {
	mu      sync.Mutex
	n       int
	changed chan struct{}
}

func (n *number) set(to int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.n = to
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

func (n *number) Watch(context.Context) (int, <-chan struct{}, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.n < 0 {
		return 0, nil, errors.New("no number")
	}
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.n, n.changed, nil
}

func TestSemaphore_Shared(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		n := &number{n: 1}
		s := lock.NewSharedSemaphore(w.Client(), "/sem", n, nil)
		got := make(chan *lock.Lock, 3)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				l, err := s.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				got <- l
			})
		}
		for maximum := 1; maximum <= 3; maximum++ {
			n.set(maximum)
			time.Sleep(time.Second)
			if len(got) != maximum {
				t.Errorf("%d leases of %d", len(got), maximum)
			}
		}
		wg.Wait()
		leases := []*lock.Lock{<-got, <-got, <-got}
		n.set(1)
		check(t, leases[0].Release(t.Context()))
		if _, err := s.TryAcquire(t.Context()); !errors.Is(err, recipes.ErrNotAcquired) || leases[1].Context().Err() != nil {
			t.Error(err, leases[1].Context().Err())
		}
		n.set(-1)
		if _, err := s.Acquire(t.Context()); err == nil || err.Error() != "no number" {
			t.Error(err)
		}
		if _, err := lock.NewSharedSemaphore(w.Client(), "/none", nil, nil).Acquire(t.Context()); !errors.Is(err, recipes.ErrArgument) {
			t.Error(err)
		}
		w.AssertChildren("/sem/locks")
		if len(w.Tree("/sem/leases")) != 3 {
			t.Error(w.Tree("/sem/leases"))
		}
	})
}

func TestKazooSemaphore(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		s := lock.NewKazooSemaphore(c, "/app/sem", 2, []byte("anna"))
		leases, err := s.AcquireN(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		w.AssertData("/app/sem", "2")
		w.AssertChildren("/app/sem-__lock__")
		if len(w.Tree("/app/sem")) != 3 {
			t.Error(w.Tree("/app/sem"))
		}
		w.AssertData(leases[0].Path(), "anna")
		h.Arm(nil, nil)
		if _, err := s.TryAcquire(t.Context()); !errors.Is(err, recipes.ErrNotAcquired) {
			t.Error(err)
		}
		for _, r := range h.Requests() {
			if r.Path == "/app/sem" && r.Op != "children" {
				t.Errorf("%v reads the maximum again", r)
			}
		}
		other := lock.NewKazooSemaphore(c, "/app/sem", 3, nil)
		for range 2 {
			if _, err := other.TryAcquire(t.Context()); !errors.Is(err, recipes.ErrArgument) {
				t.Error(err)
			}
		}
		line := must[recipes.Contention](t)(s.Explain(t.Context()))
		if len(line.Holders) != 2 || len(line.Waiters) != 0 || string(line.Holders[1].Data) != "anna" {
			t.Errorf("explain: %+v", line)
		}
		for _, l := range leases {
			check(t, l.Release(t.Context()))
		}
		// Data that are not a number match any maximum.
		if _, err := c.Set(t.Context(), "/app/sem", []byte("ours"), -1); err != nil {
			t.Error(err)
		}
		l := must[*lock.Lock](t)(lock.NewKazooSemaphore(c, "/app/sem", 3, nil).TryAcquire(t.Context()))
		check(t, l.Release(t.Context()))
	})
}
