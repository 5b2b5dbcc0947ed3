package queue_test

import (
	"fmt"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

func TestQueue(t *testing.T) {
	for name, make := range map[string]func(c *recipes.Client, path string, opts ...queue.Option) *queue.Queue{"simple": queue.NewSimple, "curator": queue.New} {
		t.Run(name, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				p, q := make(w.Client(), "/a/q"), make(w.Client(), "/a/q")
				if _, ok, err := q.TryTake(t.Context()); ok || err != nil {
					t.Error(ok, err)
				}
				for i := range 5 {
					if err := p.Put(t.Context(), fmt.Append(nil, i)); err != nil {
						t.Fatal(err)
					}
				}
				for i := range 5 {
					m, err := q.Take(t.Context())
					if err != nil || string(m.Data) != fmt.Sprint(i) {
						t.Errorf("%+v, %v", m, err)
					}
				}
				w.AssertChildren("/a/q")
			})
		})
	}
}
