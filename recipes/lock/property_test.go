package lock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// TestProperty is K1, K2, K5, K6 and K7 for several clients with faults: no more holds are alive
// than allowed, tokens rise, and nothing is left in the end.
func TestProperty(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		name := rapid.SampledFrom([]string{"mutex", "rwmutex", "semaphore", "multi"}).Draw(rt, "name")
		// three members take five times as long
		members := rapid.SampledFrom([]int{1, 1, 1, 3}).Draw(rt, "members")
		troubles := recipetest.Troubles(members).Draw(rt, "troubles")
		for i, x := range troubles {
			if x.What == "expire" {
				// A client without a connection cannot know that its session was ended by force.
				// Here the session expires, as it does in production.
				troubles[i].What, troubles[i].Lasts = "unplug", 2*recipetest.Timeout
			}
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		return members, func(t testing.TB, w *recipetest.World) { property(t, w, name, troubles, seed) }
	})
}

func property(t testing.TB, w *recipetest.World, name string, troubles []recipetest.Trouble, seed uint64) {
	const workers, maximum = 4, 3
	permits := map[string]int{"mutex": 1, "rwmutex": readers, "semaphore": maximum, "multi": 1}[name]
	holds := recipetest.NewHoldHistory(permits)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for i := range workers {
		c := w.Open(recipetest.Kinds()[i%2])
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			for ctx.Err() == nil {
				in, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(20000))*time.Millisecond)
				err := once(in, c, name, random, holds)
				if err != nil && in.Err() == nil && !errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld) &&
					!errors.Is(err, recipes.ErrOutcomeUnknown) && !errors.Is(err, recipes.ErrNotAcquired) {
					t.Errorf("worker %d: %v", i, err)
				}
				cancel()
			}
		})
	}
	w.Apply(troubles)
	time.Sleep(5 * time.Second)
	stop()
	wg.Wait()
	time.Sleep(2 * recipetest.Timeout) // until background work is done
	w.ClearFaults()
	if err := holds.Err(); err != nil {
		t.Error(err)
	}
	for path := range w.Tree("/") {
		if strings.HasPrefix(path, "/x/") && strings.Contains(path, "_c_") {
			t.Errorf("%s still exists", path)
		}
	}
}

// once acquires a recipe in one of several ways, holds it for a while and releases it.
func once(ctx context.Context, c *recipes.Client, name string, random *rand.Rand, holds *recipetest.HoldHistory) error {
	keep := func(h held) {
		select {
		case <-h.Context().Done():
		case <-time.After(time.Duration(random.IntN(1500)) * time.Millisecond):
		}
	}
	try := random.IntN(4) == 0
	get := func(l lock.Locker, takes int) (*lock.Lock, *recipetest.HoldRecord, error) {
		how := l.Lock
		if try {
			how = l.TryLock
		}
		h, err := how(ctx)
		if err != nil {
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			return nil, nil, err
		}
		return h, holds.Begin(h.Context(), h.Token(), takes), nil
	}
	// Those with Curator's names and those with kazoo's, which share the lock.
	mutexes := []lock.Locker{lock.NewMutex(c, "/x/a", nil), lock.NewKazooMutex(c, "/x/a", nil)}
	rws := []*lock.RWMutex{lock.NewRWMutex(c, "/x/rw", nil), lock.NewKazooRWMutex(c, "/x/rw", nil)}
	switch name {
	case "mutex":
		h, _, err := get(mutexes[random.IntN(2)], 1)
		if err != nil {
			return err
		}
		keep(h)
		return h.Release(ctx)
	case "rwmutex":
		rw := rws[random.IntN(2)]
		if random.IntN(2) == 0 {
			h, _, err := get(rw.RLocker(), 1)
			if err != nil {
				return err
			}
			keep(h)
			return h.Release(ctx)
		}
		h, writes, err := get(rw, readers)
		if err != nil {
			return err
		}
		keep(h)
		if random.IntN(2) == 0 {
			writes.End() // whether or not it continues as a reader
			r, err := rw.Downgrade(ctx, h)
			if err != nil {
				_ = h.Release(ctx) // continues in the background
				return err
			}
			holds.Begin(r.Context(), r.Token(), 1)
			keep(r)
			return r.Release(ctx)
		}
		return h.Release(ctx)
	case "semaphore":
		s := lock.NewSemaphore(c, "/x/sem", 3, nil)
		n := 1 + random.IntN(3)
		var leases []*lock.Lock
		var err error
		if try {
			leases = make([]*lock.Lock, 1)
			leases[0], err = s.TryAcquire(ctx)
		} else {
			leases, err = s.AcquireN(ctx, n)
		}
		if err != nil {
			time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
			return err
		}
		for _, l := range leases {
			holds.Begin(l.Context(), l.Token(), 1)
		}
		for _, l := range leases {
			keep(l)
			err = errors.Join(err, l.Release(ctx))
		}
		return err
	}
	multi := lock.NewMulti(mutexes[random.IntN(2)], rws[random.IntN(2)], lock.NewMutex(c, "/x/b", nil))
	how := multi.Lock
	if try {
		how = multi.TryLock
	}
	all, err := how(ctx)
	if err != nil {
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		return err
	}
	holds.Begin(all.Context(), all.Token(), 1)
	keep(all)
	return all.Release(ctx)
}
