package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// TestCost checks for how many answers a caller waits, and all requests, including those in the
// background. The comments say what Curator 5 and kazoo 2 wait for, as counted in their sources:
// recipes/queue/SimpleDistributedQueue.java, DistributedQueue.java, and kazoo/recipe/queue.py.
func TestCost(t *testing.T) {
	due := time.Unix(9e8, 0) // the bubble's time is in the year 2000
	type test struct {
		name  string
		warm  func(ctx context.Context, c *recipes.Client) // preparation that is not counted
		do    func(ctx context.Context, c *recipes.Client) error
		trips int
		ops   string
	}
	simple := func(c *recipes.Client) *queue.Queue { return queue.NewSimple(c, "/q") }
	locked := func(c *recipes.Client) *queue.Queue { return queue.New(c, "/q", queue.Locks("/l")) }
	kazoo := func(c *recipes.Client) *queue.Priority { return queue.NewKazooLocking(c, "/k") }
	fill := func(ctx context.Context, c *recipes.Client) {
		for range 4 {
			_ = simple(c).Put(ctx, []byte("x"))
		}
	}
	take := func(ctx context.Context, c *recipes.Client) { _, _ = simple(c).Take(ctx) }
	var item *queue.Item
	for _, test := range []test{
		// Curator: create, 1. kazoo: create, 1.
		{"put", fill, func(ctx context.Context, c *recipes.Client) error { return simple(c).Put(ctx, []byte("x")) }, 1, "multi"},
		{"put all", fill, func(ctx context.Context, c *recipes.Client) error {
			return simple(c).Put(ctx, make([][]byte, 100)...)
		}, 1, "multi"},
		// The first Put of a session also creates the producer's marker. Curator and kazoo check
		// the path: 2.
		{"first put", func(ctx context.Context, c *recipes.Client) {
			fill(ctx, c)
			_ = simple(c).Close()
		}, func(ctx context.Context, c *recipes.Client) error { return simple(c).Put(ctx, []byte("x")) }, 1, "multi"},
		// Curator: create, 1, and children in the background after each change.
		{"put bounded", func(ctx context.Context, c *recipes.Client) {
			_ = queue.NewSimple(c, "/q", queue.MaxItems(10)).Put(ctx, []byte("x"))
		}, func(ctx context.Context, c *recipes.Client) error {
			return queue.NewSimple(c, "/q", queue.MaxItems(10)).Put(ctx, []byte("x"))
		}, 2, "exists, multi"},
		// Curator's take and kazoo's get: children, get, delete, 3; Curator's each time, kazoo's
		// when it has no names left.
		{"first take", fill, func(ctx context.Context, c *recipes.Client) error {
			_, err := simple(c).Take(ctx)
			return err
		}, 3, "children, get, get, multi"},
		// With names left, kazoo: get, delete, 2.
		{"next take", func(ctx context.Context, c *recipes.Client) { fill(ctx, c); take(ctx, c) }, func(ctx context.Context, c *recipes.Client) error {
			_, err := simple(c).Take(ctx)
			return err
		}, 1, "get, multi"},
		{"no item", fill, func(ctx context.Context, c *recipes.Client) error {
			_, _, err := queue.NewSimple(c, "/none").TryTake(ctx)
			return err
		}, 1, "children"},
		// Curator's priority queue: get, delete, and children after a change; kazoo's as above,
		// without a check for an item that sorts first.
		{"next take by priority", func(ctx context.Context, c *recipes.Client) {
			q := queue.NewPriority(c, "/q")
			for range 4 {
				_ = q.Put(ctx, 1, []byte("x"))
			}
			_, _ = q.Take(ctx)
		}, func(ctx context.Context, c *recipes.Client) error {
			_, err := queue.NewPriority(c, "/q").Take(ctx)
			return err
		}, 2, "exists, get, multi"},
		{"next take with a delay", func(ctx context.Context, c *recipes.Client) {
			q := queue.NewDelay(c, "/q")
			for range 4 {
				_ = q.Put(ctx, due, []byte("x"))
			}
			_, _ = q.Take(ctx)
		}, func(ctx context.Context, c *recipes.Client) error {
			_, err := queue.NewDelay(c, "/q").Take(ctx)
			return err
		}, 2, "exists, get, multi"},
		// Curator: children, create, get, 3. kazoo: children, children, create, get, 4.
		{"first lock", func(ctx context.Context, c *recipes.Client) {
			for range 4 {
				_ = locked(c).Put(ctx, []byte("x"))
			}
		}, func(ctx context.Context, c *recipes.Client) (err error) {
			item, err = locked(c).TakeLocked(ctx)
			return err
		}, 3, "children, children, get, get, get+watch, multi"},
		// Curator: delete, delete, 2.
		{"done", func(ctx context.Context, c *recipes.Client) {
			_ = locked(c).Put(ctx, []byte("x"))
			item, _ = locked(c).TakeLocked(ctx)
			time.Sleep(time.Second) // after a moment the lock is watched
		}, func(ctx context.Context, c *recipes.Client) error { return item.Done(ctx) }, 1, "multi"},
		// kazoo: sync, get, transaction, 3, for both consume and release.
		{"kazoo done", func(ctx context.Context, c *recipes.Client) {
			_ = kazoo(c).Put(ctx, 100, []byte("x"))
			item, _ = kazoo(c).TakeLocked(ctx)
			time.Sleep(time.Second)
		}, func(ctx context.Context, c *recipes.Client) error { return item.Done(ctx) }, 1, "multi"},
		{"return", func(ctx context.Context, c *recipes.Client) {
			_ = locked(c).Put(ctx, []byte("x"))
			item, _ = locked(c).TakeLocked(ctx)
		}, func(ctx context.Context, c *recipes.Client) error { return item.Release(ctx) }, 1, "multi"},
		// The same without a lock, in a queue with locks.
		{"next take past locks", func(ctx context.Context, c *recipes.Client) {
			for range 4 {
				_ = locked(c).Put(ctx, []byte("x"))
			}
			_, _ = locked(c).Take(ctx)
		}, func(ctx context.Context, c *recipes.Client) error {
			_, err := locked(c).Take(ctx)
			return err
		}, 1, "get, multi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
				c, h := w.Hooked()
				test.warm(t.Context(), c)
				cost := h.Cost(func() {
					if err := test.do(t.Context(), c); err != nil {
						t.Error(err)
					}
				})
				ops := strings.Split(cost.Ops(), ", ")
				slices.Sort(ops) // some requests are concurrent
				if strings.HasSuffix(test.name, "done") && ops[0] == "get+watch" {
					ops = ops[1:] // the watch of the lock may fire before the answer explains it
				}
				if got := strings.Join(ops, ", "); cost.RoundTrips != test.trips || got != test.ops {
					t.Errorf("%d round trips: %s", cost.RoundTrips, got)
				}
			})
		})
	}
}

// TestCost_Together checks that concurrent callers of one queue share requests.
func TestCost_Together(t *testing.T) {
	recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
		c, h := w.Hooked()
		const n = 64
		together := func(f func(q *queue.Queue) error) recipetest.Cost {
			return h.Cost(func() {
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						if err := f(queue.NewSimple(c, "/q")); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			})
		}
		if err := queue.NewSimple(c, "/q").Put(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		put := together(func(q *queue.Queue) error { return q.Put(t.Context(), []byte("x")) })
		// The first item may be sent alone, or all may arrive before it is sent.
		if put.RoundTrips > 2 || put.Ops() != "multi, multi" && put.Ops() != "multi" {
			t.Errorf("%d round trips: %s", put.RoundTrips, put.Ops())
		}
		take := together(func(q *queue.Queue) error {
			_, err := q.Take(t.Context())
			return err
		})
		// The engine adapts the number of items per claim, and reads that many ahead.
		if multis := strings.Count(take.Ops(), "multi"); multis > 5 || len(take.Requests) > 2*n {
			t.Errorf("%d multis of %d: %s", multis, len(take.Requests), take.Ops())
		}
	})
}

// TestQ6_NoHerd is Q6: an item costs the same however many consumers wait. With Curator, each of n
// consumers is notified twice and lists the queue.
func TestQ6_NoHerd(t *testing.T) {
	for _, kind := range []string{"simple", "locked"} {
		for _, n := range []int{1, 2, 3, 20} {
			t.Run(fmt.Sprint(kind, " ", n), func(t *testing.T) {
				recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
					open := func(c *recipes.Client) *queue.Queue {
						if kind == "locked" {
							return queue.New(c, "/q", queue.Locks("/q-locks"))
						}
						return queue.NewSimple(c, "/q")
					}
					p := open(w.Client())
					ctx, stop := context.WithCancel(t.Context())
					var (
						wg    sync.WaitGroup
						hooks []*recipetest.Hooks
						taken int
						mu    sync.Mutex
					)
					for range n {
						c, h := w.Hooked()
						hooks = append(hooks, h)
						q := open(c)
						wg.Go(func() {
							for ctx.Err() == nil {
								if kind == "locked" {
									if i, err := q.TakeLocked(ctx); err == nil {
										if err := i.Done(t.Context()); err != nil {
											t.Error(err)
										}
									}
								} else if _, err := q.Take(ctx); err != nil {
									continue
								}
								mu.Lock()
								taken++
								mu.Unlock()
							}
						})
						time.Sleep(time.Second)
					}
					for _, h := range hooks {
						h.Arm(nil, nil)
					}
					const items = 20
					for range items {
						if err := p.Put(t.Context(), []byte("x")); err != nil {
							t.Fatal(err)
						}
						time.Sleep(time.Second)
					}
					woken, total := 0, 0
					for _, h := range hooks {
						requests := h.Requests()
						if len(requests) > 0 {
							woken++
						}
						total += len(requests)
					}
					mu.Lock()
					if taken < items {
						t.Errorf("%d of %d items were taken", taken, items)
					}
					mu.Unlock()
					// Curator's SimpleDistributedQueue makes 4 requests per item with one consumer,
					// and at least 2n+2 with n.
					most := 16 * items
					switch {
					case kind == "simple" && n == 1:
						// the event of a taken item may arrive after the next listing
						most = 4*items + items/4
					case kind == "locked":
						most = 26 * items
					}
					if total > most {
						t.Errorf("%d requests for %d items", total, items)
					}
					t.Logf("%d consumers: %.2f requests for each item", n, float64(total)/items)
					stop()
					wg.Wait()
				})
			})
		}
	}
}
