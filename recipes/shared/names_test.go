package shared_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/shared"
)

func TestNames(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		a, b := w.Client(), w.Client()
		of := func(c *recipes.Client) *shared.Names { return shared.NewNames(c, "/names", "re-d", "green") }
		name, first, err := of(a).Claim(ctx)
		if err != nil || name != "re-d" {
			t.Fatal(name, err)
		}
		err = of(b).With(ctx, func(in context.Context, name string) error {
			if name != "green" || in.Err() != nil {
				t.Error(name, in.Err())
			}
			if _, _, err := of(b).Claim(ctx); !errors.Is(err, recipes.ErrNotAcquired) {
				t.Error(err)
			}
			lines, err := shared.NewNames(a, "/names").Explain(ctx)
			if err != nil || len(lines) != 2 || lines["re-d"].Holders[0].Session != a.Session().ID() || lines["green"].Holders[0].Session != b.Session().ID() {
				t.Errorf("%+v, %v", lines, err)
			}
			w.ExpireSession(a.Session().ID())
			name, again, err := of(b).Claim(ctx)
			if err != nil || name != "re-d" || again.Token() <= first.Token() {
				t.Error(name, err)
			}
			return again.Release(ctx)
		})
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
		if first.Context().Err() == nil {
			t.Error("it does not know that its session is over")
		}
		w.AssertChildren("/names")
		if name, _, err := shared.NewNumbers(b, "/numbers", 2).Claim(ctx); err != nil || name != "0" {
			t.Error(name, err)
		}
	})
}

// TestNames_ReleaseAfterLoss checks that the release of a name whose session was lost, by the
// client's clock and without a server, neither waits nor fails.
func TestNames_ReleaseAfterLoss(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		_, held, err := shared.NewNames(w.Client(), "/names", "red").Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		w.Stop()
		<-held.Context().Done()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := held.Release(ctx); err != nil || ctx.Err() != nil {
			t.Errorf("%v, %v", err, ctx.Err())
		}
	})
}

func TestNames_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		_, other, err := shared.NewNumbers(s.World.Client(), "/names", 3).Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.Arm()
		err = shared.NewNumbers(s.Client, "/names", 3).With(s.Ctx, func(_ context.Context, name string) error {
			if name == "0" {
				t.Error("another has it")
			}
			return nil
		})
		if err != nil && s.Ctx.Err() == nil {
			t.Error(err)
		}
		s.Settle()
		if other.Context().Err() != nil {
			t.Error("the other has lost its name")
		}
		if left := s.Tree("/names"); len(left) != 2 {
			t.Errorf("%q", left)
		}
	})
}

// TestNames_OneEach checks S4: each name has one holder at a time, and tokens rise.
func TestNames_OneEach(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		return members, func(t testing.TB, w *recipetest.World) {
			const names, clients, rounds = 3, 4, 6
			var wg sync.WaitGroup
			holds := map[string]*recipetest.HoldHistory{"0": recipetest.NewHoldHistory(1), "1": recipetest.NewHoldHistory(1), "2": recipetest.NewHoldHistory(1)}
			// A client whose session is ended by force cannot know that in time.
			forced := slices.ContainsFunc(troubles, func(x recipetest.Trouble) bool { return x.What == "expire" })
			for range clients {
				all := shared.NewNumbers(w.Client(), "/names", names)
				wg.Go(func() {
					for range rounds {
						name, held, err := all.Claim(t.Context())
						if err != nil {
							if !errors.Is(err, recipes.ErrNotAcquired) {
								t.Error(err)
							}
							time.Sleep(100 * time.Millisecond)
							continue
						}
						hold := holds[name].Begin(held.Context(), held.Token(), 1)
						time.Sleep(300 * time.Millisecond)
						hold.End()
						_ = held.Release(t.Context()) // continues in the background
					}
				})
			}
			w.Apply(troubles)
			wg.Wait()
			time.Sleep(20 * time.Second)
			for name, h := range holds {
				if err := h.Err(); err != nil && !forced {
					t.Errorf("%s: %v", name, err)
				}
			}
			for path := range w.Tree("/") {
				if strings.HasPrefix(path, "/names/") {
					t.Errorf("%s is left", path)
				}
			}
		}
	})
}

// TestIDs checks S3.
func TestIDs(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		block := rapid.Int64Range(1, 5).Draw(rt, "block")
		return members, func(t testing.TB, w *recipetest.World) {
			var (
				wg   sync.WaitGroup
				mu   sync.Mutex
				seen = make(map[int64]bool)
			)
			for range 3 {
				n := shared.NewLong(w.Client(), "/ids", shared.PromotedToLock("/ids-lock"))
				ids := shared.NewIDs(n, block)
				wg.Go(func() {
					for range 15 {
						id, err := ids.Next(t.Context())
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						if seen[id] {
							t.Errorf("%d twice", id)
						}
						seen[id] = true
						mu.Unlock()
						time.Sleep(100 * time.Millisecond)
					}
					if err := n.Close(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
			w.Apply(troubles)
			wg.Wait()
			if len(seen) != 45 && !t.Failed() {
				t.Errorf("%d", len(seen))
			}
		}
	})
}

// TestNames_WithTellsLoss checks that With fails if the name was lost before f returned.
func TestNames_WithTellsLoss(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		err := shared.NewNames(c, "/names", "red").With(t.Context(), func(ctx context.Context, _ string) error {
			w.ExpireSession(c.Session().ID())
			<-ctx.Done()
			return nil
		})
		if !errors.Is(err, recipes.ErrSessionLost) {
			t.Errorf("the session was lost, and With returned %v", err)
		}
	})
}
