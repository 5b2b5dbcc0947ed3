package recipetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

func TestMain(m *testing.M) { Main(m) }

var sequential = recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true}

func TestRun_Unplug(t *testing.T) {
	Run(t, 1, func(t testing.TB, w *World) {
		c, other := w.Client(), w.Client()
		path, err := c.Create(t.Context(), "/dir/n-", nil, sequential)
		if err != nil {
			t.Fatal(err)
		}
		session := c.Session()
		w.Unplug(c)
		time.Sleep(Timeout / 4)
		if session.Context().Err() != nil || c.State() != recipes.Suspended {
			t.Errorf("after a moment the state is %v", c.State())
		}
		time.Sleep(2 * Timeout)
		if session.Context().Err() == nil {
			t.Error("the client does not know that the session is lost")
		}
		w.AssertMissing(path)
		w.Plug(c)
		if _, _, err := c.Get(t.Context(), "/dir"); err != nil || c.Session() == session {
			t.Errorf("%v, %v", err, c.State())
		}
		if _, _, err := other.Get(t.Context(), "/dir"); err != nil {
			t.Error(err)
		}
	})
}

func TestHooks_Cost(t *testing.T) {
	Run(t, 1, func(t testing.TB, w *World) {
		w.Load(map[string]string{"/dir": ""})
		c, h := w.Hooked()
		cost := h.Cost(func() {
			if _, err := c.Create(t.Context(), "/dir/n-", nil, sequential); err != nil {
				t.Error(err)
			}
			if _, _, _, err := c.ChildrenW(t.Context(), "/dir"); err != nil {
				t.Error(err)
			}
			time.AfterFunc(time.Millisecond, func() { c.Exists(t.Context(), "/") }) //nolint:errcheck // only that it is asked
		})
		if cost.RoundTrips != 2 || cost.Ops() != "create, children+watch, exists" {
			t.Errorf("%d round trips, %s", cost.RoundTrips, cost.Ops())
		}
		if r := cost.Requests[1]; r.N != 2 || r.Op != zktest.Children || r.Path != "/dir" || !r.Watch {
			t.Errorf("%+v", r)
		}
	})
}

// TestSteps checks a protected create at each of its requests, with each fault.
func TestSteps(t *testing.T) {
	ofThree := exhaustive.Or([]Fault{Kill}, []Fault{LoseReply, Kill})
	t.Setenv("GOZKD_EXHAUSTIVE", "1") // each request
	for members, faults := range map[int][]Fault{1: Faults(), 3: ofThree} {
		t.Run(fmt.Sprint(members), func(t *testing.T) {
			struck := make(map[Fault]int)
			Steps(t, members, faults, func(t testing.TB, s *Step) {
				s.Arm()
				path, err := s.Client.Create(s.Ctx, "/dir/n-", nil, sequential)
				if err == nil {
					err = s.Client.Idempotent().Delete(s.Ctx, path, -1)
				}
				if s.FaultHappened() {
					struck[s.Fault]++
				}
				ended := s.Ctx.Err() != nil
				if ended != errors.Is(err, context.Canceled) && s.Fault != EndAfter || ended && !s.FaultHappened() || err != nil && !ended && s.Fault != Expire {
					t.Errorf("ctx %v, but the error is %v", s.Ctx.Err(), err)
				}
				s.Settle()
				if s.Fault != EndBefore && s.Fault != EndAfter {
					s.AssertMissing("/dir/n-")
					if z := s.Tree("/dir"); len(z) > 1 {
						t.Errorf("still there: %v", z)
					}
				}
			})
			for _, f := range faults {
				if struck[f] < 3 {
					t.Errorf("fault %s happened at %d requests", f, struck[f])
				}
			}
		})
	}
}

// leaking is a recipe that leaves its znode behind when ctx ends between its two requests.
func leaking(t testing.TB, s *Step) {
	s.Load(map[string]string{"/dir": ""})
	s.Arm()
	path, err := s.Client.Idempotent().Create(s.Ctx, "/dir/n", nil, recipes.CreateOptions{})
	if err == nil {
		err = s.Client.Idempotent().Delete(s.Ctx, path, -1)
	}
	s.Settle()
	if z := s.Tree("/dir"); len(z) > 1 {
		t.Errorf("%v, still there: %v", err, z)
	}
}

// TestSteps_Finds plants a leak that one step reveals, and runs a scenario without one.
func TestSteps_Finds(t *testing.T) {
	for _, c := range []struct {
		fault    Fault
		k        int
		scenario func(t testing.TB, s *Step)
		want     string
	}{
		{EndBefore, 2, leaking, "still there: map[/dir: /dir/n:]"},
		{EndBefore, 1, leaking, ""},
		{EndAfter, 1, leaking, ""}, // the Client deletes a znode that nobody waits for
		{LoseReply, 1, leaking, ""},
		{Kill, 2, leaking, ""},
		{Cut, 1, func(testing.TB, *Step) {}, "has not called Arm"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := record(t, func(t testing.TB) { step(t, 1, c.fault, c.k, c.scenario) })
			if r.Failed() != (c.want != "") || !strings.Contains(r.first, c.want) {
				t.Errorf("%s %d: %q, want %q", c.fault, c.k, r.first, c.want)
			}
		})
	}
}

// draw makes rapid draw the same, sufficiently many worlds each time: a test of all kinds of
// troubles must not depend on luck. rapid does not write the planted bug to a file, which it would
// try in every later run.
func draw(t *testing.T) {
	t.Helper()
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": "40", "rapid.nofailfile": "true"} {
		f := flag.Lookup(name)
		was := f.Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Set(name, was) }) // the value was accepted before
	}
}

// TestCheck draws all kinds of troubles; a World survives them.
func TestCheck(t *testing.T) {
	draw(t)
	suffered := make(map[string]bool)
	Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *World)) {
		members := rapid.SampledFrom([]int{1, 3}).Draw(rt, "members")
		troubles := Troubles(members).Draw(rt, "troubles")
		for _, x := range troubles {
			suffered[x.What] = true
		}
		return members, func(t testing.TB, w *World) {
			a, b := w.Client(), w.Client()
			w.Apply(troubles)
			for _, c := range []*recipes.Client{a, b} {
				path, err := c.Create(t.Context(), "/dir/n-", nil, sequential)
				if err != nil {
					t.Fatal(err)
				}
				w.AssertOwner(path, c.Session().ID())
			}
		}
	})
	if len(suffered) < 9 {
		t.Errorf("only these troubles were drawn: %v", suffered)
	}
}

// TestCheck_Finds plants a bug that some troubles reveal: rapid finds it and shrinks the troubles
// to the relevant one.
func TestCheck_Finds(t *testing.T) {
	draw(t)
	var last []Trouble
	r := record(t, func(tb testing.TB) {
		check(t, tb, func(rt *rapid.T) (int, func(t testing.TB, w *World)) {
			troubles := Troubles(1).Draw(rt, "troubles")
			return 1, func(t testing.TB, _ *World) {
				for _, x := range troubles {
					if x.What == "expire" { // the recipe survives all others
						last = troubles
						t.Fatalf("the session is lost")
					}
				}
			}
		})
	})
	if !r.Failed() || !strings.Contains(r.text(), "the session is lost") {
		t.Fatalf("the bug was not found: %s", r.text())
	}
	if len(last) != 1 || last[0].What != "expire" || last[0].After != 0 {
		t.Errorf("the troubles were not shrunk: %v", last)
	}
	if !strings.Contains(r.text(), "-rapid.") || strings.Contains(r.text(), "flaky") {
		t.Errorf("the failure cannot be replayed: %s", r.text())
	}
}
