package discovery_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes/discovery"
)

// ids asks a provider for n instances.
func ids(t testing.TB, p *discovery.Provider[string], n int) (ids []string) {
	t.Helper()
	for range n {
		in, err := p.Instance()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, in.ID)
	}
	return ids
}

func TestD6(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		regs := make(map[string]*discovery.Registration[string])
		for _, id := range []string{"a", "b", "c", "left out"} {
			regs[id] = register(t, c, instance{Name: "web", ID: id})
		}
		register(t, c, instance{Name: "web", ID: "d", Disabled: true})
		d := newDiscovery(w.Client())
		provider := func(pick discovery.Strategy[string], policy discovery.DownPolicy) *discovery.Provider[string] {
			p := d.Provider("web", pick, policy, func(in instance) bool { return in.ID != "left out" })
			check(t, p.Start(t.Context()))
			if err := p.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
			return p
		}
		turns := provider(discovery.RoundRobin[string](), discovery.DownPolicy{})
		random := provider(discovery.Random[string](), discovery.DownPolicy{})
		sticky := provider(discovery.Sticky(discovery.Random[string]()), discovery.DownPolicy{Errors: 1, Window: time.Minute})

		if got := ids(t, turns, 7); !slices.Equal(got, []string{"a", "b", "c", "a", "b", "c", "a"}) {
			t.Errorf("%q", got)
		}
		got := slices.Compact(slices.Sorted(slices.Values(ids(t, random, 200))))
		if !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("%q", got)
		}
		first := ids(t, sticky, 1)[0]
		if got := slices.Compact(ids(t, sticky, 50)); !slices.Equal(got, []string{first}) {
			t.Errorf("%q", got)
		}

		// Two errors by default, for 30 s after the first.
		a, err := d.Instance(t.Context(), "web", "a")
		if err != nil {
			t.Fatal(err)
		}
		up := func(want int) {
			t.Helper()
			if n := len(turns.Instances()); n != want {
				t.Errorf("%d are up, want %d", n, want)
			}
		}
		turns.NoteError(a)
		up(3)
		time.Sleep(20 * time.Second)
		turns.NoteError(a)
		up(2)
		time.Sleep(10*time.Second - time.Nanosecond)
		up(2)
		time.Sleep(time.Nanosecond)
		up(3)
		turns.NoteError(a) // the first of another window
		up(3)
		turns.NoteError(a)
		up(2)
		if err := regs["a"].Update(t.Context(), instance{Registered: time.Now().Add(time.Second)}); err != nil { // it was started anew
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		up(3)

		in, err := sticky.Instance()
		if err != nil {
			t.Fatal(err)
		}
		sticky.NoteError(in)
		if second := ids(t, sticky, 1)[0]; second == in.ID {
			t.Errorf("%s is down", second)
		}
		for _, r := range regs {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if _, err := turns.Instance(); !errors.Is(err, discovery.ErrNoInstance) {
			t.Error(err)
		}
	})
}

func TestWith(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ours := errors.New("ours")
		err := newDiscovery(w.Client()).With(t.Context(), instance{Name: "web", ID: "a"}, func(context.Context) error {
			w.AssertExists("/services/web/a")
			return ours
		})
		if !errors.Is(err, ours) {
			t.Error(err)
		}
		w.AssertChildren("/services/web")
	})
}

// TestCost compares with the requests of Curator 5.8, taken from its sources.
func TestCost(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		w.Load(map[string]string{"/services/web": ""})
		register(t, w.Client(), instance{Name: "web", ID: "taken"})
		d := newDiscovery(c)
		var r *discovery.Registration[string]
		for _, x := range []struct {
			name string
			do   func() error
			cost int
			ops  string
		}{
			// ServiceDiscoveryImpl.internalRegisterService: create; with watchInstances also a
			// cache of the znode.
			{"register", func() (err error) { r, err = d.Register(t.Context(), instance{Name: "web", ID: "a"}); return err }, 1, "create, exists+watch"},
			// The same: create, delete, create, with a moment in between without the instance.
			{"take over", func() error { _, err := d.Register(t.Context(), instance{Name: "web", ID: "taken"}); return err }, 3,
				"create, exists+watch, multi, exists+watch"},
			// updateService: set.
			{"update", func() error { return r.Update(t.Context(), instance{Payload: "x"}) }, 1, "set, exists+watch"},
			// queryForInstances: children, then the gets one after the other.
			{"instances", func() error { _, err := d.Instances(t.Context(), "web"); return err }, 2, "children, get, get"},
			{"instance", func() error { _, err := d.Instance(t.Context(), "web", "a"); return err }, 1, "get"},
			{"names", func() error { _, err := d.Names(t.Context()); return err }, 1, "children"},
			// unregisterService: delete.
			{"unregister", func() error { return r.Close() }, 1, "multi"},
		} {
			cost := h.Cost(func() {
				if err := x.do(); err != nil {
					t.Fatal(err)
				}
			})
			if cost.RoundTrips != x.cost || cost.Ops() != x.ops {
				t.Errorf("%s: %d round trips, %s; want %d, %s", x.name, cost.RoundTrips, cost.Ops(), x.cost, x.ops)
			}
		}
	})
}
