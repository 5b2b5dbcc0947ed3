package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
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
	// Watch returns the present number, and a channel that is closed or receives a value when the
	// number may have changed. The number may be stale if it comes from a server that lags.
	Watch(ctx context.Context) (n int, changed <-chan struct{}, err error)
}

type fixed int

func (n fixed) Watch(context.Context) (int, <-chan struct{}, error) { return int(n), nil, nil }

// Semaphore hands out leases, at most its maximum at a time. Requests are served in the order of
// arrival: a request for more leases than are free holds up later requests. All semaphores of the
// same path share the leases and must be given the same maximum. Safe for concurrent use.
type Semaphore struct {
	client  *recipes.Client
	mutex   *Mutex // held by the only contender that may create leases or wait for them
	leases  string // the parent of the leases' znodes
	maximum Maximum
	data    []byte

	kazoo          bool        // the znode at leases states the maximum, which is fixed
	maximumChecked atomic.Bool // the stated maximum was read and equals maximum
}

// NewSemaphore returns the semaphore of path: Curator's InterProcessSemaphoreV2, and with a maximum
// of 1 its InterProcessSemaphoreMutex. data is stored in each lease's znode, where Explain shows
// it. data may be nil, and must not be changed afterwards.
func NewSemaphore(c *recipes.Client, path string, maximum int, data []byte) *Semaphore {
	return NewSharedSemaphore(c, path, fixed(maximum), data)
}

// NewSharedSemaphore is NewSemaphore with a maximum that can change. Lowering the maximum does not
// end leases that are held.
func NewSharedSemaphore(c *recipes.Client, path string, maximum Maximum, data []byte) *Semaphore {
	if maximum == nil {
		maximum = fixed(0)
	}
	mutex := NewMutex(c, znodepath.Join(path, locksDir), data)
	return &Semaphore{client: c, mutex: mutex, leases: znodepath.Join(path, leasesDir), maximum: maximum, data: data}
}

// Acquire waits for a lease until ctx ends.
func (s *Semaphore) Acquire(ctx context.Context) (*Lock, error) {
	return one(s.AcquireN(ctx, 1))
}

// TryAcquire returns recipes.ErrNotAcquired if no lease is free, or if somebody else is acquiring
// leases or waits for some.
func (s *Semaphore) TryAcquire(ctx context.Context) (*Lock, error) {
	if err := s.check(ctx, 1); err != nil {
		return nil, err
	}
	turn, err := s.mutex.TryLock(ctx)
	if err != nil {
		return nil, err
	}
	return one(s.take(ctx, turn, 1, false))
}

// AcquireN waits for n leases until ctx ends, and returns all n or none. Each lease is released on
// its own. Later requests wait until this request is served. With a fixed maximum, AcquireN fails
// at once if n exceeds the maximum.
func (s *Semaphore) AcquireN(ctx context.Context, n int) ([]*Lock, error) {
	if err := s.check(ctx, n); err != nil {
		return nil, err
	}
	return calls.Again(ctx, func() ([]*Lock, error) {
		turn, err := s.mutex.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return s.take(ctx, turn, n, true)
	})
}

// With acquires a lease, runs f, and releases the lease, also when f panics. See Mutex.With.
func (s *Semaphore) With(ctx context.Context, f func(ctx context.Context) error) error {
	return with(ctx, s.Acquire, f)
}

// check returns an error if n leases can never be acquired.
func (s *Semaphore) check(ctx context.Context, n int) error {
	if n < 1 {
		return fmt.Errorf("lock: acquire %d leases: acquire at least one: %w", n, recipes.ErrArgument)
	}
	if most, is := s.maximum.(fixed); is && n > int(most) {
		return fmt.Errorf("lock: acquire %d leases: the maximum of the semaphore is %d: %w", n, most, recipes.ErrArgument)
	}
	return s.checkKazooMaximum(ctx)
}

// take creates n leases while turn is held, waits until they fit under the maximum if wait is set,
// and releases turn.
func (s *Semaphore) take(ctx context.Context, turn *Lock, n int, wait bool) ([]*Lock, error) {
	session := turn.Hold.Session()
	in, cancel := turn.Within(ctx)
	defer cancel()
	paths, err := s.create(in, n)
	var token int64
	if err == nil {
		token, err = s.awaitLeases(in, paths, wait)
	}
	if err != nil {
		err = calls.Undo(ctx, s.client, session, err, paths...)
		return nil, calls.WithCleanup(err, turn.Release(ctx))
	}
	if err := turn.handOver(ctx); err != nil {
		return nil, calls.Undo(ctx, s.client, session, err, paths...)
	}
	leases := make([]*Lock, len(paths))
	for i, path := range paths {
		leases[i] = newLock(s.client.NewHold(recipes.HoldSpec{Session: session, Path: path, Token: token}), nil)
	}
	return leases, nil
}

// create creates the znodes of n leases concurrently and returns the paths of those it created.
func (s *Semaphore) create(ctx context.Context, n int) ([]string, error) {
	paths := make([]string, n)
	err := calls.Each(n, func(i int) (err error) {
		o := recipes.CreateOptions{Ephemeral: true, Sequential: true, Protected: true, Parents: true}
		paths[i], err = s.client.Create(ctx, znodepath.Join(s.leases, leaseName), s.data, o)
		return err
	})
	return slices.DeleteFunc(paths, func(path string) bool { return path == "" }), err
}

// awaitLeases waits until the leases, including those at paths, are no more than the maximum, and
// returns a token for those at paths.
//
// Counting the caller's own leases is what keeps the maximum, however others count: the contender
// whose lease was created last sees all the others. The turn only keeps waiting contenders from
// blocking each other.
func (s *Semaphore) awaitLeases(ctx context.Context, paths []string, wait bool) (token int64, err error) {
	for {
		maximum, changed, err := s.maximum.Watch(ctx)
		if err != nil {
			return 0, err
		}
		var names []string
		var stat *proto.Stat
		var fires <-chan client.Event
		if wait {
			names, stat, fires, err = s.client.ChildrenW(ctx, s.leases)
		} else {
			names, stat, err = s.client.Children(ctx, s.leases)
		}
		// if the directory is missing, so are the leases
		if err != nil && !errors.Is(err, proto.ErrNoNode) {
			return 0, err
		}
		for _, path := range paths {
			if !slices.Contains(names, znodepath.Base(path)) {
				return 0, &recipes.Error{Op: "acquire", Path: path, Err: recipes.ErrNotHeld}
			}
		}
		switch {
		case len(names) <= maximum:
			return int64(stat.Pzxid), nil
		case !wait:
			return 0, recipes.ErrNotAcquired
		}
		select {
		case <-fires:
		case <-changed:
		case <-ctx.Done():
			return 0, fmt.Errorf("lock: wait for a lease of %s: %w", s.leases, calls.ContextError(ctx))
		}
	}
}

func one(leases []*Lock, err error) (*Lock, error) {
	if err != nil {
		return nil, err
	}
	return leases[0], nil
}

// NewKazooSemaphore returns the semaphore of path in the layout of kazoo's Semaphore, which shares
// the semaphore; Curator and semaphores of NewSemaphore do not. As in kazoo, the first user writes
// the maximum to path; acquiring with another maximum fails with recipes.ErrArgument.
func NewKazooSemaphore(c *recipes.Client, path string, maximum int, data []byte) *Semaphore {
	return &Semaphore{client: c, mutex: NewKazooMutex(c, path+"-"+kazooName, data), leases: path, maximum: fixed(maximum), data: data, kazoo: true}
}

// checkKazooMaximum writes the maximum to the path of a kazoo semaphore, or compares the maximum
// with the number that is there. As in kazoo, data that are not a number match any maximum.
func (s *Semaphore) checkKazooMaximum(ctx context.Context) error {
	if !s.kazoo || s.maximumChecked.Load() {
		return nil
	}
	own := int(s.maximum.(fixed))
	_, err := s.client.Idempotent().Create(ctx, s.leases, []byte(strconv.Itoa(own)), recipes.CreateOptions{Parents: true})
	if errors.Is(err, proto.ErrNodeExists) {
		var data []byte
		data, _, err = s.client.Get(ctx, s.leases)
		if n, e := strconv.Atoi(string(data)); err == nil && e == nil && n != own {
			err = fmt.Errorf("lock: the maximum of semaphore %s is %d, not %d: %w", s.leases, n, own, recipes.ErrArgument)
		}
	}
	if err == nil {
		s.maximumChecked.Store(true)
	}
	return err
}
