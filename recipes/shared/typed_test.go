package shared_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/shared"
)

type limits struct{ Clients int }

// limitsModel allows up to 10 clients, and up to 100 below /large.
func limitsModel() shared.Model[limits] {
	m := shared.JSON[limits]()
	m.Check = func(path string, value limits) error {
		most := 10
		if strings.HasPrefix(path, "/large/") {
			most = 100
		}
		if value.Clients > most {
			return fmt.Errorf("%d clients, allowed are %d", value.Clients, most)
		}
		return nil
	}
	return m
}

// TestTyped checks that values are written as their Model says, and that what it does not allow is
// neither written nor read.
func TestTyped(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, ctx := w.Client(), t.Context()
		v := shared.NewTyped(c, "/a/limits", limitsModel())
		defer v.Close()
		if now, err := v.Get(ctx); err != nil || now.Exists() {
			t.Errorf("missing: %+v, %v", now, err)
		}
		first, done, err := v.CompareAndSet(ctx, shared.Versioned[limits]{}, limits{3})
		if err != nil || !done {
			t.Fatal(done, err)
		}
		w.AssertData("/a/limits", `{"Clients":3}`)
		add := func(n int) error {
			_, err := v.Update(ctx, func(l limits) (limits, error) { return limits{l.Clients + n}, nil })
			return err
		}
		if err := add(2); err != nil {
			t.Error(err)
		}
		_, _, cas := v.CompareAndSet(ctx, first, limits{11})
		other := shared.NewTyped(c, "/b", limitsModel())
		_, _, created := other.CompareAndSet(ctx, shared.Versioned[limits]{}, limits{11})
		for op, err := range map[string]error{"set": v.Set(ctx, limits{11}), "update": add(6), "compare": cas, "create": created} {
			if !errors.Is(err, recipes.ErrArgument) || !strings.Contains(err.Error(), "11 clients") {
				t.Errorf("%s: %v", op, err)
			}
		}
		w.AssertData("/a/limits", `{"Clients":5}`)
		w.AssertMissing("/b")
		if err := shared.NewTyped(c, "/large/limits", limitsModel()).Set(ctx, limits{100}); err != nil {
			t.Error(err)
		}

		for data, want := range map[string]error{"": nil, `{"Clients":11}`: recipes.ErrFormat, "{": recipes.ErrFormat, `{"Clients":1,"New":2}`: nil} {
			if _, err := c.Set(ctx, "/a/limits", []byte(data), -1); err != nil {
				t.Fatal(err)
			}
			if _, err := v.Get(ctx); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("get of %q: %v", data, err)
			}
			if err := add(1); !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("update of %q: %v", data, err)
			}
		}
		if err := v.Set(ctx, limits{1}); err != nil { // whatever is there
			t.Error(err)
		}
	})
}

// TestTyped_ChangesGoOn: data that cannot be decoded do not end Changes, nor make Next return at
// once again and again.
func TestTyped_ChangesGoOn(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		w.Load(map[string]string{"/limits/x": `{"Clients":1}`})
		c := w.Client()
		write := []string{"{", `{"Clients":99}`, `{"Clients":2}`}
		var got []string
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for now, err := range shared.NewTyped(c, "/limits/x", limitsModel()).Changes(ctx) {
			switch {
			case errors.Is(err, recipes.ErrFormat):
				got = append(got, fmt.Sprint("bad ", now.Version))
			case err != nil:
				got = append(got, "end")
			default:
				got = append(got, fmt.Sprint(now.Value.Clients))
			}
			if len(write) > 0 {
				if _, err := c.Set(ctx, "/limits/x", []byte(write[0]), -1); err != nil {
					t.Fatal(err)
				}
				write = write[1:]
			}
		}
		if want := []string{"1", "bad 1", "bad 2", "2", "end"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// TestModel_Read checks that a value from a cache can be replaced if it is the latest.
func TestModel_Read(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, ctx := w.Client(), t.Context()
		v := shared.NewTyped(c, "/limits/x", limitsModel())
		defer v.Close()
		if err := v.Set(ctx, limits{3}); err != nil {
			t.Fatal(err)
		}
		all := cache.NewChildren(c, "/limits")
		if err := all.Start(ctx); err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		if err := all.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		z := all.Get("/limits/x")
		cached, err := limitsModel().Read(z.Path, z.Data, &z.Stat)
		if err != nil || cached.Value.Clients != 3 {
			t.Fatalf("%+v, %v", cached, err)
		}
		for _, want := range []bool{true, false} {
			if _, done, err := v.CompareAndSet(ctx, cached, limits{4}); err != nil || done != want {
				t.Errorf("%v, %v, want %v", done, err, want)
			}
		}
		if _, err := limitsModel().Read("/x", []byte(`{"Clients":50}`), &z.Stat); !errors.Is(err, recipes.ErrFormat) {
			t.Error(err)
		}
		if _, err := limitsModel().Read("/large/x", []byte(`{"Clients":50}`), &z.Stat); err != nil {
			t.Error(err)
		}
	})
}
