package shared_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/shared"
	"github.com/gozkd/gozkd/zktest"
)

func TestLease(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		a, b := w.Client(), w.Client()
		first, err := shared.NewLease(a, "/db/clean", "anna \"ä\" 😀", time.Minute).Obtain(ctx)
		if err != nil {
			t.Fatal(err)
		}
		// As Python writes it.
		end := endOf(first).Format("2006-01-02T15:04:05")
		w.AssertData("/db/clean/lease_holder", `{"version": 1, "holder": "anna \"\u00e4\" \ud83d\ude00", "end": "`+end+`"}`)
		of := func(c *recipes.Client, d time.Duration) *shared.Lease {
			return shared.NewLease(c, "/db/clean", "bert", d)
		}
		if _, err := of(b, time.Minute).Obtain(ctx); !errors.Is(err, recipes.ErrNotAcquired) || !strings.Contains(err.Error(), "anna") {
			t.Error(err)
		}
		// The end of its session makes no difference.
		w.ExpireSession(a.Session().ID())
		second, err := shared.NewLease(a, "/db/clean", "anna \"ä\" 😀", 2*time.Minute).Obtain(ctx)
		if err != nil || second.Token() <= first.Token() || !endOf(second).After(endOf(first)) {
			t.Fatal(second, err)
		}
		if _, err := second.Commit(ctx, client.CreateOp("/done", nil, client.CreateOptions{})); err != nil {
			t.Error(err)
		}
		if _, err := first.Commit(ctx, client.CreateOp("/never", nil, client.CreateOptions{})); !errors.Is(err, recipes.ErrNotHeld) || first.Context().Err() == nil {
			t.Error(err)
		}
		time.Sleep(time.Until(endOf(second)))
		if second.Context().Err() == nil || !errors.Is(context.Cause(second.Context()), recipes.ErrNotHeld) {
			t.Error("the lease is over")
		}
		third, err := of(b, time.Minute).Obtain(ctx)
		if err != nil || third.Token() <= second.Token() {
			t.Fatal(third, err)
		}
		if err := second.Release(ctx); err != nil {
			t.Error(err)
		}
		w.AssertExists("/db/clean/lease_holder")
		if err := third.Release(ctx); err != nil {
			t.Error(err)
		}
		if fourth, err := shared.NewLease(a, "/db/clean", "cleo", time.Minute).Obtain(ctx); err != nil || fourth.Token() <= third.Token() {
			t.Error(err)
		}
		w.AssertChildren("/db/clean", "lease_holder")
		for _, data := range []string{"", "{}", `{"version": 2}`, `{"version": 1, "holder": "x", "end": "soon"}`} {
			w.Load(map[string]string{"/db/clean/lease_holder": data})
			if _, err := of(b, time.Minute).Obtain(ctx); !errors.Is(err, recipes.ErrFormat) {
				t.Errorf("%q: %v", data, err)
			}
		}
		// An old lease of kazoo.
		w.Load(map[string]string{"/db/clean/lease_holder": `{"end": "1999-12-31T23:59:59", "holder": "kazoo", "version": 1}`})
		err = of(b, time.Minute).With(ctx, func(ctx context.Context) error {
			time.Sleep(time.Minute + time.Second)
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestMultiLease(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		for i := range 4 {
			tenancy, err := shared.NewMultiLease(c, "/m", 3, fmt.Sprint("h", i), time.Minute).Obtain(t.Context())
			switch {
			case i == 3 && !errors.Is(err, recipes.ErrNotAcquired):
				t.Error(err)
			case i < 3 && err != nil:
				t.Error(err)
			case i < 3:
				w.AssertExists(fmt.Sprintf("/m/%d/lease_holder", i))
				defer func() { _ = tenancy.Release(t.Context()) }()
			}
		}
	})
}

func TestLease_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		s.Arm()
		tenancy, err := shared.NewLease(s.Client, "/l", "anna", time.Minute).Obtain(s.Ctx)
		if err != nil && s.Ctx.Err() == nil {
			t.Error(err)
		}
		if err == nil {
			if _, err := shared.NewLease(s.World.Client(), "/l", "bert", time.Minute).Obtain(t.Context()); !errors.Is(err, recipes.ErrNotAcquired) {
				t.Error(err)
			}
			if err := tenancy.Release(s.Ctx); err != nil && s.Ctx.Err() == nil {
				t.Error(err)
			}
		}
		s.Settle()
		for path := range s.Tree("/") {
			if strings.Contains(path, "__lock__") {
				t.Errorf("%s is left", path)
			}
		}
	})
}

// A write of the last holder may arrive late, when the lease is over and another holder is about to
// take it.
func TestLease_Late(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		last := w.Client()
		if _, err := shared.NewLease(last, "/l", "anna", time.Second).Obtain(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c, h := w.Hooked()
		late := false
		h.Arm(func(r recipetest.Request) error {
			if r.Op == zktest.Multi && !late {
				late = true
				data, _, err := last.Get(t.Context(), "/l/lease_holder")
				if err == nil {
					_, err = last.Set(t.Context(), "/l/lease_holder", data, -1)
				}
				if err != nil {
					t.Error(err)
				}
			}
			return nil
		}, nil)
		tenancy, err := shared.NewLease(c, "/l", "bert", time.Minute).Obtain(t.Context())
		if err != nil || tenancy.Context().Err() != nil || !late {
			t.Fatalf("%v, %v", err, late)
		}
	})
}

// TestLease_One checks S5: no two holders have the lease at a time, and tokens rise, whatever
// happens to their sessions.
func TestLease_One(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		duration := time.Duration(rapid.IntRange(1, 10).Draw(rt, "seconds")) * time.Second
		return members, func(t testing.TB, w *recipetest.World) {
			var wg sync.WaitGroup
			holds := recipetest.NewHoldHistory(1)
			for i := range 3 {
				l := shared.NewLease(w.Client(), "/l", fmt.Sprint("h", i), duration)
				wg.Go(func() {
					for range 8 {
						tenancy, err := l.Obtain(t.Context())
						switch {
						case err == nil:
							hold := holds.Begin(tenancy.Context(), tenancy.Token(), 1)
							time.Sleep(500 * time.Millisecond)
							hold.End()
							if err := tenancy.Release(t.Context()); err != nil {
								t.Error(err)
							}
						case !errors.Is(err, recipes.ErrNotAcquired):
							t.Error(err)
						}
						time.Sleep(400 * time.Millisecond)
					}
				})
			}
			w.Apply(troubles)
			wg.Wait()
			if err := holds.Err(); err != nil {
				t.Error(err)
			}
			if holds.Len() == 0 {
				t.Error("nobody had it")
			}
		}
	})
}

// TestLease_Short checks that a lease lasts no less than was asked for: the layout has whole
// seconds.
func TestLease_Short(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		time.Sleep(671 * time.Millisecond)
		held, err := shared.NewLease(c, "/lease", "anna", 900*time.Millisecond).Obtain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if left := time.Until(endOf(held)); left < 900*time.Millisecond || left > 2*time.Second {
			t.Errorf("a lease of 900 ms lasts %v", left)
		}
	})
}

// TestLease_Longest checks that the longest duration is not over at once.
func TestLease_Longest(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		held, err := shared.NewLease(w.Client(), "/lease", "anna", math.MaxInt64).Obtain(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		_, err = shared.NewLease(w.Client(), "/lease", "ben", time.Second).Obtain(t.Context())
		if held.Context().Err() != nil || !errors.Is(err, recipes.ErrNotAcquired) {
			t.Errorf("the lease until %v: %v; another: %v", endOf(held), context.Cause(held.Context()), err)
		}
	})
}

func endOf(h *recipes.Hold) time.Time {
	end, _ := h.Context().Deadline()
	return end
}
