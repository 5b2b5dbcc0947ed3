package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// The names of Curator's InterProcessSemaphoreV2.
const (
	locksDir  = "locks"
	leasesDir = "leases"
	leaseName = "lease-"
)

// Maximum is a number of leases that can change, such as a shared count.
type Maximum interface {
	// Watch returns the present number, and a channel that is closed or gets something when it may be another. The number is as new as
	// the one who implements it makes it.
	Watch(ctx context.Context) (n int, changed <-chan struct{}, err error)
}

// Lease is one lease of a semaphore. Safe for concurrent use.
type Lease struct{ *recipes.Hold }

// Release gives the lease back. For errors see Lock.Unlock.
func (l *Lease) Release(ctx context.Context) error { return release(ctx, l.Hold) }

// Semaphore gives out leases, no more at a time than its maximum. Who comes first is served first, also who wants more than there is for
// the moment. All that use the same path share it, and must mean the same maximum. Safe for concurrent use.
type Semaphore struct {
	client  *recipes.Client
	mutex   *Mutex // whose holder is the only one that takes leases, or waits for them
	leases  string // where the leases are
	maximum Maximum
	fixed   int // the maximum, if maximum is nil
	data    []byte

	kazoo          bool        // the znode of leases says the maximum
	maximumChecked atomic.Bool // and it was seen that it is the same
}

// NewSemaphore returns the semaphore of a path with that maximum: Curator's InterProcessSemaphoreV2, and with a maximum of 1 its
// InterProcessSemaphoreMutex. data is what each lease's znode says, to be seen with ExplainSemaphore; it may be nil and is not to be
// changed.
func NewSemaphore(c *recipes.Client, path string, maximum int, data []byte) *Semaphore {
	s := newSemaphore(c, path, data)
	s.fixed = maximum
	return s
}

// NewSharedSemaphore is NewSemaphore with a maximum that can change. When it becomes less, leases that were given stay.
func NewSharedSemaphore(c *recipes.Client, path string, maximum Maximum, data []byte) *Semaphore {
	s := newSemaphore(c, path, data)
	s.maximum = maximum
	return s
}

func newSemaphore(c *recipes.Client, path string, data []byte) *Semaphore {
	return &Semaphore{client: c, mutex: NewMutex(c, znodepath.Join(path, locksDir), data), leases: znodepath.Join(path, leasesDir), data: data}
}

// Acquire waits for a lease until ctx ends.
func (s *Semaphore) Acquire(ctx context.Context) (*Lease, error) {
	return one(s.AcquireN(ctx, 1))
}

// TryAcquire returns ErrNotAcquired if there is no lease, or if somebody else is just taking one or waits for one.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Lease, error) {
	return one(s.TryAcquireN(ctx, 1))
}

// AcquireN waits for n leases until ctx ends, and returns all or none; each can be given back on its own. Meanwhile who comes later waits.
// It fails if there can't be as many.
func (s *Semaphore) AcquireN(ctx context.Context, n int) ([]*Lease, error) {
	if err := s.check(ctx, n); err != nil {
		return nil, err
	}
	for {
		turn, err := s.mutex.Lock(ctx)
		if err != nil {
			return nil, err
		}
		leases, err := s.take(ctx, turn, n, true)
		if err == nil {
			return leases, nil
		}
		if ctx.Err() != nil || !isLost(err) {
			return nil, err
		}
	}
}

// TryAcquireN returns ErrNotAcquired if there are not n leases, or if somebody else is just taking some or waits for some.
func (s *Semaphore) TryAcquireN(ctx context.Context, n int) ([]*Lease, error) {
	if err := s.check(ctx, n); err != nil {
		return nil, err
	}
	turn, err := s.mutex.TryLock(ctx)
	if err != nil {
		return nil, err
	}
	return s.take(ctx, turn, n, false)
}

// With runs f while it holds a lease, and gives it back, also when f panics. See Mutex.With.
func (s *Semaphore) With(ctx context.Context, f func(ctx context.Context) error) error {
	l, err := s.Acquire(ctx)
	if err != nil {
		return err
	}
	return with(ctx, l, l.Release, f)
}

// check looks whether n leases can be had at all.
func (s *Semaphore) check(ctx context.Context, n int) error {
	if n < 1 || s.maximum == nil && n > s.fixed {
		return fmt.Errorf("lock: %d leases of a semaphore of %d", n, s.fixed)
	}
	return s.checkKazooMaximum(ctx)
}

// take takes n leases, or waits until there are as many, while turn is held; then it lets go of turn.
func (s *Semaphore) take(ctx context.Context, turn *Lock, n int, wait bool) ([]*Lease, error) {
	session := turn.held.Session()
	in, cancel := turn.Within(ctx)
	defer cancel()
	paths, err := s.create(in, n)
	var token int64
	if err == nil {
		token, err = s.awaitLeases(in, paths, wait)
	}
	if err != nil {
		err = s.deleteLeases(ctx, session, paths, err)
		if e := turn.Unlock(ctx); e != nil && !onlyUnknown(e) && !isLost(e) {
			err = join(err, e)
		}
		return nil, err
	}
	// That turn is let go of in the background, or was deleted by somebody, does not matter to the leases.
	if err := turn.Unlock(ctx); err != nil && !onlyUnknown(err) && !errors.Is(err, recipes.ErrNotHeld) {
		return nil, s.deleteLeases(ctx, session, paths, err)
	}
	leases := make([]*Lease, len(paths))
	for i, path := range paths {
		leases[i] = &Lease{s.client.Hold(session, path, token)}
	}
	return leases, nil
}

// create creates the znodes of n leases, all at once, and returns the paths of those that it created.
func (s *Semaphore) create(ctx context.Context, n int) ([]string, error) {
	var (
		o     = recipes.CreateOptions{Mode: recipes.EphemeralSequential, Protected: true, Parents: true}
		paths = make([]string, n)
		errs  = make([]error, n)
		wg    sync.WaitGroup
	)
	for i := range n {
		// Ends with its answer, or ctx; awaited below.
		wg.Go(func() { paths[i], errs[i] = s.client.Create(ctx, znodepath.Join(s.leases, leaseName), s.data, o) })
	}
	wg.Wait()
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" }), firstOf(errs)
}

// await waits until there are no more leases than the maximum, those at paths included, and returns a token for these.
//
// That the own leases are among those that are counted is what keeps the maximum, whoever else counts: whose lease was created last sees all
// others. The turn only makes sure that those who wait don't wait for each other.
func (s *Semaphore) awaitLeases(ctx context.Context, paths []string, wait bool) (token int64, err error) {
	for {
		maximum, changed, err := s.currentMaximum(ctx)
		if err != nil {
			return 0, err
		}
		var names []string
		var stat *zk.Stat
		var fires <-chan zk.Event
		if wait {
			names, stat, fires, err = s.client.ChildrenW(ctx, s.leases)
		} else {
			names, stat, err = s.client.Children(ctx, s.leases)
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) { // without the directory there are no leases either
			return 0, err
		}
		for _, path := range paths {
			if !slices.Contains(names, znodepath.Base(path)) {
				return 0, &recipes.Error{Op: "acquire", Path: path, Err: recipes.ErrNotHeld}
			}
		}
		switch {
		case len(names) <= maximum:
			return stat.Pzxid, nil
		case !wait:
			return 0, ErrNotAcquired
		}
		select {
		case <-fires:
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("lock: wait for a lease of %s: %w", s.leases, contend.ContextError(ctx))
		}
	}
}

// current returns the present maximum.
func (s *Semaphore) currentMaximum(ctx context.Context) (n int, changed <-chan struct{}, err error) {
	if s.maximum == nil {
		return s.fixed, nil, nil
	}
	return s.maximum.Watch(ctx)
}

// giveUp deletes the znodes of leases that nobody got, because of err.
func (s *Semaphore) deleteLeases(ctx context.Context, session *recipes.Session, paths []string, err error) error {
	if session.Context().Err() != nil {
		return err // they go with it
	}
	errs := make([]error, len(paths))
	var wg sync.WaitGroup
	for i, path := range paths {
		// Ends with its answer, or ctx; awaited below.
		wg.Go(func() { errs[i] = s.client.DeleteGuaranteed(ctx, path) })
	}
	wg.Wait()
	if e := firstOf(errs); e != nil && !onlyUnknown(e) {
		return join(err, e)
	}
	return err
}

func one(leases []*Lease, err error) (*Lease, error) {
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

func firstOf(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
