package recipes_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/barrier"
	"github.com/gozkd/gozkd/recipes/discovery"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/group"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/recipes/queue"
	"github.com/gozkd/gozkd/zktest"
)

// waiters are what many goroutines of one Client do at once, in one place. Each returns a function
// for number i of n.
var waiters = map[string]func(c *recipes.Client, n int) func(ctx context.Context, i int) error{
	"mutex": func(c *recipes.Client, _ int) func(context.Context, int) error {
		m := lock.NewMutex(c, "/lock", nil)
		return func(ctx context.Context, _ int) error { return m.With(ctx, nothing) }
	},
	"readers and writers": func(c *recipes.Client, _ int) func(context.Context, int) error {
		m := lock.NewRWMutex(c, "/rw", nil)
		return func(ctx context.Context, i int) error {
			if i%4 == 0 {
				return m.With(ctx, nothing)
			}
			return m.RLocker().With(ctx, nothing)
		}
	},
	"semaphore": func(c *recipes.Client, _ int) func(context.Context, int) error {
		s := lock.NewSemaphore(c, "/semaphore", 10, nil)
		return func(ctx context.Context, _ int) error { return s.With(ctx, nothing) }
	},
	"latch": func(c *recipes.Client, _ int) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			l := election.NewLatch(c, "/election", strconv.Itoa(i))
			if err := l.Start(ctx); err != nil {
				return err
			}
			_, err := l.Await(ctx)
			return errors.Join(err, l.Close())
		}
	},
	"selector": func(c *recipes.Client, _ int) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			lead := func(context.Context, *recipes.Hold) error { return nil }
			return election.NewSelector(c, "/election", strconv.Itoa(i)).Lead(ctx, lead)
		}
	},
	"barrier": func(c *recipes.Client, n int) func(context.Context, int) error {
		return func(ctx context.Context, i int) error {
			return barrier.NewDouble(c, "/barrier", n, strconv.Itoa(i)).With(ctx, nothing)
		}
	},
	"group": func(c *recipes.Client, _ int) func(context.Context, int) error {
		g := group.New(c, "/group")
		return func(ctx context.Context, i int) error { return g.With(ctx, strconv.Itoa(i), nil, nothing) }
	},
	"discovery": func(c *recipes.Client, _ int) func(context.Context, int) error {
		d := discovery.New[string](c, "/services")
		return func(ctx context.Context, i int) error {
			return d.With(ctx, discovery.Instance[string]{Name: "a", ID: strconv.Itoa(i)}, nothing)
		}
	},
	"queue": func(c *recipes.Client, _ int) func(context.Context, int) error {
		q := queue.New(c, "/queue")
		return func(ctx context.Context, i int) error {
			err := q.Put(ctx, []byte(strconv.Itoa(i)))
			_, taken := q.Take(ctx)
			return errors.Join(err, taken)
		}
	},
}

func nothing(context.Context) error { return nil }

// crowd is many goroutines of one Client that wait for the same, while connections break.
type crowd struct {
	what    string
	n       int
	timeout time.Duration
	delay   time.Duration   // of answers
	pauses  []time.Duration // before the server closes the connection, again and again
}

// TestWaiters_AreServed: goroutines of one Client that wait for the same are served,
// and the session is not given up, however often the server closes the connection.
func TestWaiters_AreServed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := crowd{
			what:    rapid.SampledFrom(slices.Sorted(maps.Keys(waiters))).Draw(rt, "what"),
			n:       rapid.SampledFrom([]int{1, 10, 100, 300}).Draw(rt, "n"),
			timeout: time.Duration(rapid.IntRange(4, 20).Draw(rt, "timeout")) * time.Second,
			delay:   time.Duration(rapid.IntRange(0, 50).Draw(rt, "milliseconds")) * time.Millisecond,
		}
		for _, ms := range rapid.SliceOfN(rapid.IntRange(0, 3000), 0, 10).Draw(rt, "pauses") {
			c.pauses = append(c.pauses, time.Duration(ms)*time.Millisecond)
		}
		synctest.Test(t, c.run)
		if t.Failed() {
			rt.Fatalf("%+v", c)
		}
	})
}

// TestWaiters_Thousands is TestWaiters_AreServed with more of them; in make test 400, of a mutex.
func TestWaiters_Thousands(t *testing.T) {
	for _, what := range exhaustive.Or([]string{"mutex"}, []string{"mutex", "semaphore", "latch"}) {
		c := crowd{what: what, n: exhaustive.Or(400, 1000), timeout: 6 * time.Second, delay: 5 * time.Millisecond}
		c.pauses = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second}
		synctest.Test(t, c.run)
	}
}

func (c crowd) run(t *testing.T) {
	s := zktest.Start(t)
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		conn, err := s.Dialer()(network, address, timeout)
		return distant{conn, c.delay}, err
	}
	forever := recipes.Retry(recipes.Forever(50 * time.Millisecond))
	client := recipetest.OpenWith(t, recipetest.Connect, s.Service, c.timeout, dial, forever)
	session := client.Session()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	f := waiters[c.what](client, c.n)
	var wg sync.WaitGroup
	for i := range c.n {
		wg.Go(func() {
			if err := f(ctx, i); err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
				t.Errorf("%+v: %v", c, err)
			}
		})
	}
	for _, pause := range c.pauses {
		time.Sleep(pause)
		s.CloseConnections()
	}
	wg.Wait()
	if client.Session() != session || session.Context().Err() != nil {
		t.Errorf("%+v: the session was given up", c)
	}
}
