package shared_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/shared"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// The bytes are those of Curator and kazoo, taken from their sources.
func TestNumber_Layout(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, ctx := w.Client(), t.Context()
		for _, x := range []struct {
			path string
			add  func(path string) error
			want string
		}{
			{"/l/long", add(shared.NewLong(c, "/l/long"), 258), "\x00\x00\x00\x00\x00\x00\x01\x02"},
			{"/l/minus", add(shared.NewLong(c, "/l/minus"), -1), "\xff\xff\xff\xff\xff\xff\xff\xff"},
			{"/l/int", add(shared.NewInt(c, "/l/int"), 258), "\x00\x00\x01\x02"},
			{"/l/kazoo", add(shared.NewKazooInt(c, "/l/kazoo"), -12), "-12"},
			{"/l/float", add(shared.NewKazooFloat(c, "/l/float"), 3), "3.0"},
			{"/l/large", add(shared.NewKazooFloat(c, "/l/large"), 1.5e16), "1.5e+16"},
			{"/l/small", add(shared.NewKazooFloat(c, "/l/small"), -0.00001), "-1e-05"},
			{"/l/tenth", add(shared.NewKazooFloat(c, "/l/tenth"), 0.1), "0.1"},
			{"/l/inf", add(shared.NewKazooFloat(c, "/l/inf"), math.Inf(-1)), "-inf"},
		} {
			if err := x.add(x.path); err != nil {
				t.Errorf("%s: %v", x.path, err)
			}
			w.AssertData(x.path, x.want)
		}
		w.Load(map[string]string{"/empty": "", "/odd": "abc"})
		if v, err := shared.NewLong(c, "/empty").Get(ctx); err != nil || v.Value != 0 || !v.Exists() {
			t.Errorf("%+v, %v", v, err)
		}
		if v, err := shared.NewLong(c, "/none").Get(ctx); err != nil || v.Value != 0 || v.Exists() {
			t.Errorf("%+v, %v", v, err)
		}
		for _, err := range []error{
			second(shared.NewLong(c, "/odd").Get(ctx)), second(shared.NewInt(c, "/odd").Get(ctx)),
			second(shared.NewKazooInt(c, "/odd").Add(ctx, 1)), second(shared.NewKazooFloat(c, "/odd").Add(ctx, 1)),
		} {
			if !errors.Is(err, recipes.ErrFormat) {
				t.Error(err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// add returns a function that adds delta and closes the number.
func add[T int32 | int64 | float64](n *shared.Number[T], delta T) func(path string) error {
	return func(string) error {
		ctx := context.Background()
		change, err := n.Add(ctx, delta)
		if err == nil && (change.After.Value != delta || change.Optimistic != 1) {
			err = fmt.Errorf("%+v", change)
		}
		return errors.Join(err, n.Close())
	}
}

func TestNumber(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, ctx := w.Client(), t.Context()
		n := shared.NewInt(c, "/a/n")
		if _, made, err := n.CompareAndSet(ctx, shared.Versioned[int32]{}, math.MaxInt32-1); err != nil || !made {
			t.Fatal(made, err)
		}
		if _, made, err := n.CompareAndSet(ctx, shared.Versioned[int32]{}, 7); err != nil || made {
			t.Error(made, err)
		}
		change, err := n.Add(ctx, 1)
		if err != nil || change.Before.Value != math.MaxInt32-1 || change.After.Value != math.MaxInt32 || change.After.Version != 1 {
			t.Errorf("%+v, %v", change, err)
		}
		if _, err := n.Add(ctx, 1); !errors.Is(err, shared.ErrOverflow) {
			t.Error(err)
		}
		old, err := n.Get(ctx)
		if err != nil || old.Zxid != change.After.Zxid || old.Version != 1 {
			t.Errorf("%+v, %v", old, err)
		}
		now, done, err := n.CompareAndSet(ctx, old, -5)
		if err != nil || !done || now.Value != -5 || now.Version != 2 {
			t.Errorf("%+v, %v, %v", now, done, err)
		}
		if _, done, err := n.CompareAndSet(ctx, old, 5); err != nil || done {
			t.Error(done, err)
		}
		if err := n.Set(ctx, 9); err != nil {
			t.Error(err)
		}
		w.AssertData("/a/n", "\x00\x00\x00\x09")
		if now, err := n.Get(ctx); err != nil || now.Since.IsZero() {
			t.Errorf("%+v, %v", now, err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		w.AssertChildren("/a/n")
	})
}

// A change that loses too often fails, or continues under the lock.
func TestNumber_Contended(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		ctx := t.Context()
		busy := w.Client()
		for _, promoted := range []bool{false, true} {
			opts := []shared.Option{shared.Optimistic(recipes.Times(1, time.Millisecond))}
			if promoted {
				opts = append(opts, shared.PromotedToLock("/lock"))
			}
			c, hooks := w.Hooked()
			n := shared.NewLong(c, "/n", opts...)
			// Another process is faster, before the first four changes.
			faster := 0
			hooks.Arm(func(r recipetest.Request) error {
				if r.Op == "multi" && faster < 4 {
					faster++
					if _, err := busy.Set(ctx, "/n", []byte{0, 0, 0, 0, 0, 0, 0, byte(faster)}, -1); err != nil {
						t.Error(err)
					}
				}
				return nil
			}, nil)
			w.Load(map[string]string{"/n": ""})
			change, err := n.Add(ctx, 1)
			switch {
			case !promoted && (!errors.Is(err, shared.ErrContended) || change.Optimistic != 2):
				t.Errorf("%+v, %v", change, err)
			case promoted && (err != nil || change.Optimistic != 2 || change.Promoted != 3 || change.After.Value != 5):
				t.Errorf("%+v, %v", change, err)
			}
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
		w.AssertChildren("/lock")
	})
}

// TestNumber_Faults checks S1 with each fault at each request, while another process counts too.
func TestNumber_Faults(t *testing.T) {
	recipetest.Steps(t, 1, recipetest.Faults(), func(t testing.TB, s *recipetest.Step) {
		other := shared.NewLong(s.World.Client(), "/d/n")
		n := shared.NewLong(s.Client, "/d/n", shared.PromotedToLock("/d/lock"), shared.Optimistic(recipes.Times(0, 0)))
		s.Arm()
		var done, unknown int64
		for range 2 {
			_, err := n.Add(s.Ctx, 1)
			switch {
			case err == nil:
				done++
			case errors.Is(err, recipes.ErrOutcomeUnknown):
				unknown++
			case s.Ctx.Err() == nil:
				t.Error(err)
			}
			if _, err := other.Add(t.Context(), 1); err != nil {
				t.Error(err)
			}
			done++
		}
		if unknown > 0 && s.Ctx.Err() == nil && s.Fault != recipetest.Expire {
			t.Error("unknown")
		}
		if err := errors.Join(n.Close(), other.Close()); err != nil {
			t.Error(err)
		}
		s.Settle()
		v, err := other.Get(t.Context())
		if err != nil || v.Value < done || v.Value > done+unknown {
			t.Errorf("%d done, %d unknown: %d, %v", done, unknown, v.Value, err)
		}
		s.AssertChildren("/d/n")
		for path := range s.Tree("/d") {
			if path != "/d" && path != "/d/n" && path != "/d/lock" {
				t.Errorf("%s is left", path)
			}
		}
	})
}

// TestNumber_Counts checks S1 and S2 under random failures: the value is the sum of the changes
// that were done, each change found the result of the previous one, and a caller that waits for
// changes sees the latest.
func TestNumber_Counts(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		members := rapid.SampledFrom([]int{1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		patience := time.Duration(rapid.IntRange(50, 30000).Draw(rt, "patience")) * time.Millisecond
		return members, func(t testing.TB, w *recipetest.World) {
			const counters, rounds = 3, 10
			var (
				wg            sync.WaitGroup
				mu            sync.Mutex
				done, unknown int64
				found         = make(map[int64]bool)
				last          int64
			)
			watching, stop := context.WithCancel(t.Context())
			reader := shared.NewLong(w.Client(recipes.Retry(recipes.Forever(50*time.Millisecond))), "/n")
			var watcher sync.WaitGroup
			watcher.Go(func() {
				for v, err := range reader.Changes(watching) {
					if err != nil {
						if watching.Err() == nil {
							t.Error(err)
						}
						return
					}
					if v.Value < last {
						t.Errorf("%d after %d", v.Value, last)
					}
					last = v.Value
				}
			})
			for range counters {
				n := shared.NewLong(w.Client(), "/n", shared.PromotedToLock("/lock"), shared.Optimistic(recipes.Times(3, 20*time.Millisecond)))
				wg.Go(func() {
					for range rounds {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						change, err := n.Add(ctx, 1)
						mu.Lock()
						switch {
						case err == nil:
							done++
							if found[change.Before.Value] || change.After.Value != change.Before.Value+1 {
								t.Errorf("twice: %+v", change)
							}
							found[change.Before.Value] = true
						case errors.Is(err, recipes.ErrOutcomeUnknown):
							unknown++
						case ctx.Err() == nil:
							t.Error(err)
						}
						mu.Unlock()
						cancel()
						time.Sleep(150 * time.Millisecond)
					}
					if err := n.Close(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
			w.Apply(troubles)
			wg.Wait()
			time.Sleep(20 * time.Second)
			v, err := reader.Get(t.Context())
			if err != nil || v.Value < done || v.Value > done+unknown {
				t.Errorf("%d done, %d unknown: %d, %v", done, unknown, v.Value, err)
			}
			if last != v.Value {
				t.Errorf("the listener saw %d last, it is %d", last, v.Value)
			}
			stop()
			watcher.Wait()
			w.AssertChildren("/n")
		}
	})
}

// TestNumber_SharesMarker checks that a number leaves one znode per Client, however often it is
// made.
func TestNumber_SharesMarker(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c := w.Client()
		for range 10 {
			if _, err := shared.NewLong(c, "/n").Add(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.Znode("/n").Stat.NumChildren; n != 1 {
			t.Errorf("%d children, want the marker alone", n)
		}
		n := shared.NewLong(c, "/n")
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		w.AssertChildren("/n")
		if change, err := n.Add(t.Context(), 1); err != nil || change.After.Value != 11 {
			t.Errorf("%+v, %v", change, err)
		}
	})
}
