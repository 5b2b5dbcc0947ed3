package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/queue"
)

// kind is a kind of queue. Put gets an argument that is part of the item's name: "priority/...",
// "delay in ms/...".
type kind struct {
	name string
	open func(c *recipes.Client) (put func(ctx context.Context, arg int, data []byte) error, q consumerOf)
	args int // arguments are less than this; 0 if there are none
	// before says which of two items comes first, whenever they were put.
	before func(a, b string) bool
}

type consumerOf interface {
	Take(ctx context.Context) (queue.Message, error)
	TryTake(ctx context.Context) (queue.Message, bool, error)
	TakeLocked(ctx context.Context) (*queue.Item, error)
}

func argOf(name string) int {
	arg, _, _ := strings.Cut(name, "/")
	n, _ := strconv.Atoi(arg)
	return n
}

func kinds() []kind {
	fifo := func(q *queue.Queue) (func(ctx context.Context, arg int, data []byte) error, consumerOf) {
		return func(ctx context.Context, _ int, data []byte) error { return q.Put(ctx, data) }, q
	}
	byPriority := func(q *queue.Priority) (func(ctx context.Context, arg int, data []byte) error, consumerOf) {
		return func(ctx context.Context, arg int, data []byte) error { return q.Put(ctx, int32(arg), data) }, q
	}
	less := func(a, b string) bool { return argOf(a) < argOf(b) }
	locks := queue.Locks("/q-locks")
	return []kind{
		{name: "simple", open: func(c *recipes.Client) (func(context.Context, int, []byte) error, consumerOf) {
			return fifo(queue.NewSimple(c, "/q"))
		}},
		{name: "curator with locks", open: func(c *recipes.Client) (func(context.Context, int, []byte) error, consumerOf) {
			return fifo(queue.New(c, "/q", locks))
		}},
		{name: "bounded", open: func(c *recipes.Client) (func(context.Context, int, []byte) error, consumerOf) {
			return fifo(queue.New(c, "/q", queue.MaxItems(3)))
		}},
		{name: "priority", args: 3, before: less, open: func(c *recipes.Client) (func(context.Context, int, []byte) error, consumerOf) {
			return byPriority(queue.NewPriority(c, "/q"))
		}},
		{name: "kazoo locking", args: 3, before: less, open: func(c *recipes.Client) (func(context.Context, int, []byte) error, consumerOf) {
			return byPriority(queue.NewKazooLocking(c, "/q"))
		}},
		{name: "delay", args: 5000, open: func(c *recipes.Client) (func(context.Context, int, []byte) error, consumerOf) {
			q := queue.NewDelay(c, "/q")
			return func(ctx context.Context, arg int, data []byte) error {
				return q.Put(ctx, time.UnixMilli(int64(arg)), data)
			}, q
		}},
	}
}

// TestQ124_Take is Q1, Q2, Q4 and Q5 with faults: every item that was put is taken once, in order,
// and not before its time.
func TestQ124_Take(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		k := rapid.SampledFrom(kinds()).Draw(rt, "kind")
		// three members take five times as long
		members := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "members")
		consumers := rapid.IntRange(1, 3).Draw(rt, "consumers")
		each := rapid.IntRange(1, 2).Draw(rt, "goroutines of each")
		hurry := rapid.Bool().Draw(rt, "hurry") // ctx often ends early
		seed := rapid.Uint64().Draw(rt, "seed")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		return members, func(t testing.TB, w *recipetest.World) { takeAll(t, w, k, consumers, each, hurry, seed, troubles) }
	})
}

func takeAll(t testing.TB, w *recipetest.World, k kind, consumers, each int, hurry bool, seed uint64, troubles []recipetest.Trouble) {
	const producers, rounds = 2, 8
	items := recipetest.NewItemHistory()
	var producing, consuming sync.WaitGroup
	random := func(n int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(n))) }
	arguments := func(r *rand.Rand) int {
		switch {
		case k.args == 0:
			return 0
		case k.name == "delay":
			return int(time.Now().UnixMilli()) + r.IntN(k.args)
		}
		return r.IntN(k.args)
	}
	var mu sync.Mutex
	given := false // a take was abandoned
	for n := range producers {
		put, _ := k.open(w.Client())
		r := random(n)
		producing.Go(func() {
			for i := range rounds {
				arg := arguments(r)
				name := fmt.Sprintf("%d/%d-%d", arg, n, i)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				if hurry && r.IntN(3) == 0 {
					ctx, cancel = context.WithTimeout(t.Context(), time.Duration(r.IntN(300))*time.Millisecond)
				}
				done := items.Put(name)
				err := put(ctx, arg, []byte(name))
				cancel()
				done(err)
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, recipes.ErrOutcomeUnknown) {
					t.Errorf("put: %v", err)
				}
				time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			}
		})
	}
	all, stop := context.WithCancel(t.Context())
	for n := range consumers {
		_, q := k.open(w.Client())
		for m := range each {
			r := random(100 + 10*n + m)
			consuming.Go(func() {
				for all.Err() == nil {
					ctx, cancel := context.WithTimeout(all, time.Hour)
					if hurry && r.IntN(3) == 0 {
						ctx, cancel = context.WithTimeout(all, time.Duration(r.IntN(300))*time.Millisecond)
					}
					done := items.Take()
					var (
						message queue.Message
						err     error
						ok      bool
					)
					if r.IntN(4) == 0 {
						message, ok, err = q.TryTake(ctx)
						if !ok && err == nil {
							err = context.Canceled
						}
					} else {
						message, err = q.Take(ctx)
					}
					done(string(message.Data), err)
					if k.name == "delay" && err == nil && time.Now().UnixMilli() < int64(argOf(string(message.Data))) {
						t.Errorf("item %s was taken early, at %d", message.Data, time.Now().UnixMilli())
					}
					if err != nil {
						if ctx.Err() != nil {
							mu.Lock()
							given = true
							mu.Unlock()
						} else if !errors.Is(err, context.Canceled) && !errors.Is(err, recipes.ErrOutcomeUnknown) {
							t.Errorf("take: %v", err)
						}
					}
					cancel()
					time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
				}
			})
		}
	}
	w.Apply(troubles)
	producing.Wait()
	time.Sleep(2 * time.Second)
	mu.Lock()
	before := given
	mu.Unlock()
	stop()
	consuming.Wait()
	time.Sleep(recipetest.Timeout + 5*time.Second) // until background work is done
	_, q := k.open(w.Client())
	for {
		done := items.Take()
		m, ok, err := q.TryTake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		done(string(m.Data), nil)
	}
	if err := items.ExactlyOnce(); err != nil {
		t.Error(err)
	}
	// An item of an abandoned take is put back, and later items may have passed it. A lagging
	// server may not show all items that were put.
	if err := items.InOrder(k.before); err != nil && !before && k.name != "delay" && (k.before == nil || len(w.Members()) == 1) {
		t.Error(err)
	}
	for path := range w.Tree("/") {
		if strings.Contains(path, "queue-") || strings.Contains(path, "qn-") || strings.Contains(path, "entry-") {
			t.Errorf("%s is left", path)
		}
	}
}

// TestQ3_Exclusive is Q3: an item belongs to nobody else while it is held, and is done once.
func TestQ3_Exclusive(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		k := rapid.SampledFrom([]string{"curator with locks", "kazoo locking"}).Draw(rt, "kind")
		// three members take five times as long
		members := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "members")
		seed := rapid.Uint64().Draw(rt, "seed")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		for i, x := range troubles {
			// a client cannot foresee a forced end of its session, so the session expires here
			if x.What == "expire" {
				troubles[i].What, troubles[i].Lasts = "unplug", recipetest.Timeout+2*time.Second
			}
		}
		return members, func(t testing.TB, w *recipetest.World) {
			for _, x := range kinds() {
				if x.name == k {
					lockAll(t, w, x, seed, troubles)
				}
			}
		}
	})
}

func lockAll(t testing.TB, w *recipetest.World, k kind, seed uint64, troubles []recipetest.Trouble) {
	const consumers, n = 3, 8
	items := recipetest.NewItemHistory()
	holds := make(map[string]*recipetest.HoldHistory)
	put, _ := k.open(w.Client())
	for i := range n {
		name := fmt.Sprint("1/", i)
		holds[name] = recipetest.NewHoldHistory(1)
		done := items.Put(name)
		err := put(t.Context(), 1, []byte(name))
		done(err)
		if err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	all, stop := context.WithCancel(t.Context())
	for c := range consumers {
		_, q := k.open(w.Client())
		r := rand.New(rand.NewPCG(seed, uint64(c)))
		wg.Go(func() {
			for all.Err() == nil {
				ctx, cancel := context.WithTimeout(all, time.Duration(1+r.IntN(5000))*time.Millisecond)
				i, err := q.TakeLocked(ctx)
				cancel()
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
						t.Errorf("take: %v", err)
					}
					continue
				}
				h := holds[string(i.Data)].Begin(i.Context(), i.Token(), 1)
				time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
				if r.IntN(3) == 0 {
					h.End()
					if err := i.Release(t.Context()); err != nil {
						t.Errorf("return: %v", err)
					}
					continue
				}
				done := items.Take()
				h.End()
				err = i.Done(t.Context())
				done(string(i.Data), err)
				if err != nil && !errors.Is(err, recipes.ErrNotHeld) && !errors.Is(err, recipes.ErrOutcomeUnknown) {
					t.Errorf("done: %v", err)
				}
			}
		})
	}
	w.Apply(troubles)
	time.Sleep(3 * time.Second)
	stop()
	wg.Wait()
	time.Sleep(recipetest.Timeout + 5*time.Second)
	_, q := k.open(w.Client())
	for {
		m, ok, err := q.TryTake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		items.Take()(string(m.Data), nil)
	}
	for name, h := range holds {
		if err := h.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := items.ExactlyOnce(); err != nil {
		t.Error(err)
	}
}
