package agree_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/agree"
)

// A participant that could not take a new place after the loss of its session can leave, or ask
// again.
func TestOutcome_NoPlaceAnew(t *testing.T) {
	for _, again := range []bool{false, true} {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			if _, err := agree.NewTransaction(w.Client(), "/tx").Begin(t.Context(), nil, "a", "b"); err != nil {
				t.Fatal(err)
			}
			c := w.Client()
			p, err := agree.NewTransaction(c, "/tx").Join(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Vote(t.Context(), agree.Commit); err != nil {
				t.Fatal(err)
			}
			w.Unplug(c)
			ctx, cancel := context.WithTimeout(t.Context(), 2*recipetest.Timeout)
			defer cancel()
			if _, err := p.Outcome(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			w.Plug(c)
			if again {
				other, err := agree.NewTransaction(w.Client(), "/tx").Coordinate(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if err := other.Vote(t.Context(), agree.Abort); err != nil {
					t.Error(err)
				}
				if d, err := p.Outcome(t.Context()); d != agree.Abort || err != nil {
					t.Error(d, err)
				}
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOutcome_Again checks A3 for a coordinator that calls Outcome now and then: a site that was
// present during a call and died since is not waited for.
func TestOutcome_Again(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, err := agree.NewTransaction(w.Client(), "/tx").Begin(t.Context(), nil, "a")
		if err != nil {
			t.Fatal(err)
		}
		p, err := agree.NewTransaction(w.Client(), "/tx").Join(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			d, err := c.Outcome(ctx)
			cancel()
			switch {
			case i == 0:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(d, err)
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			case err == nil && d == agree.Abort:
				return
			}
		}
		t.Error("a site that is gone is waited for")
	})
}

// If Begin fails although there may be a transaction, the error says so.
func TestBegin_Steps(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		s.Arm()
		_, err := agree.NewTransaction(s.Client, "/app/tx").Begin(s.Ctx, nil, "a")
		s.Settle()
		if _, there := s.Tree("/")["/app/tx/task"]; there && err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Errorf("%v at %d: %v, and it has begun", s.Fault, s.K, err)
		}
	})
}
