package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// said returns the data of all contenders.
func said(line recipes.Contention) string {
	var s strings.Builder
	for i, all := range [][]recipes.Contender{line.Holders, line.Waiters} {
		s.WriteString([]string{"held by", "; waiting"}[i])
		for _, who := range all {
			fmt.Fprintf(&s, " %s", who.Data)
		}
	}
	return s.String()
}

func TestExplain(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		explain := func(path, want string) recipes.Contention {
			t.Helper()
			line, err := lock.Explain(t.Context(), c, path)
			if s := said(line); err != nil || s != want {
				t.Errorf("%s, want %s; %v", s, want, err)
			}
			return line
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		come := func(l lock.Locker) {
			wg.Go(func() {
				if l, err := l.Lock(ctx); err == nil {
					<-ctx.Done()
					_ = l.Release(ctx) // continues in the background
				}
			})
			time.Sleep(time.Second)
		}
		explain("/nothing", "held by; waiting")
		begun := time.Now()
		for _, who := range []string{"anna", "berta", "clara"} {
			come(lock.NewMutex(c, "/mutex", []byte(who)))
		}
		line := explain("/mutex", "held by anna; waiting berta clara")
		for i, who := range append(line.Holders, line.Waiters...) {
			// Rounded, as the servers' clock differs from the bubble's by milliseconds.
			if since := who.Since.Sub(begun).Round(100 * time.Millisecond); since != time.Duration(i)*time.Second || who.Session != c.Session().ID() {
				t.Errorf("%+v waits since %v", who, since)
			}
		}
		for _, who := range strings.Fields("r1 r2 w1 r3 w2") {
			rw := lock.NewRWMutex(c, "/rw", []byte(who))
			if who[0] == 'w' {
				come(rw)
			} else {
				come(rw.RLocker())
			}
		}
		explain("/rw", "held by r1 r2; waiting w1 r3 w2")
		cancel()
		wg.Wait()
	})
}

func TestExplainSemaphore(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		clients := []*recipes.Client{w.Client(), w.Client()}
		explain := func(want string) {
			t.Helper()
			line, err := lock.NewSemaphore(clients[0], "/sem", 0, nil).Explain(t.Context())
			if s := said(line); err != nil || s != want {
				t.Errorf("%s, want %s; %v", s, want, err)
			}
		}
		explain("held by; waiting")
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i, n := range []int{1, 2, 2, 1} {
			s := lock.NewSemaphore(clients[i%2], "/sem", 4, fmt.Append(nil, i))
			wg.Go(func() {
				if leases, err := s.AcquireN(ctx, n); err == nil {
					<-ctx.Done()
					for _, l := range leases {
						_ = l.Release(ctx) // continues in the background
					}
				}
			})
			time.Sleep(time.Second)
		}
		explain("held by 0 1 1; waiting 2 3")
		cancel()
		wg.Wait()
		time.Sleep(time.Second)
		explain("held by; waiting")
	})
}

// TestExplainSemaphore_Leases: of the newest leases those of the first waiter are not granted,
// whatever the order of the znodes on the server is.
func TestExplainSemaphore_Leases(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		other := w.Client()
		ctx, cancel := context.WithCancel(t.Context())
		n := &number{n: 4}
		acquire := func(c *recipes.Client, who string, count int) []*lock.Lock {
			leases, err := lock.NewSharedSemaphore(c, "/sem", n, []byte(who)).AcquireN(ctx, count)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			return leases
		}
		explain := func(want string) {
			t.Helper()
			line, err := lock.NewSemaphore(c, "/sem", 0, nil).Explain(t.Context())
			if s := said(line); err != nil || s != want {
				t.Errorf("%s, want %s; %v", s, want, err)
			}
		}
		first := acquire(other, "a", 1)
		second := acquire(other, "b", 1)
		mine := acquire(c, "c", 1) // older than the place in line of the same session
		var wg sync.WaitGroup
		wg.Go(func() { acquire(c, "w", 4) })
		time.Sleep(time.Second)
		explain("held by a b c; waiting w")
		check(t, first[0].Release(ctx)) // the newest lease is now the first child
		explain("held by b c; waiting w")
		strange := must[string](t)(other.Create(ctx, "/sem/leases/lease-", []byte("x"), recipes.CreateOptions{Ephemeral: true, Sequential: true}))
		explain("held by b c w w w w x; waiting w")
		check(t, other.Delete(ctx, strange, -1))
		n.set(0)
		check(t, second[0].Release(ctx))
		check(t, mine[0].Release(ctx))
		time.Sleep(time.Second)
		explain("held by; waiting w")
		// Both reads must succeed.
		refused := errors.New("refused")
		for _, path := range []string{"/sem/leases", "/sem/locks"} {
			h.Arm(func(r recipetest.Request) error {
				if r.Op == "children" && r.Path == path {
					return refused
				}
				return nil
			}, nil)
			if line, err := lock.NewSemaphore(c, "/sem", 0, nil).Explain(t.Context()); !errors.Is(err, refused) {
				t.Errorf("%s cannot be read: %+v, %v", path, line, err)
			}
		}
		h.Arm(nil, nil)
		cancel()
		wg.Wait()
	})
}
