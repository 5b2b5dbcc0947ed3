package agree

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// atOnce is how many locks of a share are taken at a time.
const atOnce = 16

// Share is the parts that a member has. Release must be called.
type Share struct {
	member *Member
	parts  []string
	ctx    context.Context
	cancel context.CancelCauseFunc
	valid  context.Context // ends when the members have changed
	change context.CancelCauseFunc
	done   chan struct{} // closed when nothing of it runs

	mu    sync.Mutex // guards held and stops
	held  map[string]*recipes.Hold
	stops []func() bool
}

// newShare returns a share whose parts are still to be locked.
func (m *Member) newShare(parts, members []string, fires <-chan zk.Event) *Share {
	s := &Share{member: m, parts: parts, done: make(chan struct{}), held: make(map[string]*recipes.Hold)}
	s.ctx, s.cancel = m.session.WithCancel()
	s.valid, s.change = context.WithCancelCause(context.Background())
	// Ends with the share's context; Release waits for it.
	go s.follow(members, fires)
	return s
}

// Parts are those that the member has, in order. There may be none. They are not to be changed.
func (s *Share) Parts() []string { return s.parts }

// Context ends when any of the parts may not be the member's any more: before another can have it.
func (s *Share) Context() context.Context { return s.ctx }

// Changed is closed when the members have changed: then the share is to be released soon, and Acquire called again.
func (s *Share) Changed() <-chan struct{} { return s.valid.Done() }

// Held is the lock of a part, with its token and Guard; nil if the part is not in the share.
func (s *Share) Held(part string) *recipes.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[part]
}

// Release lets go of all parts, in the background if need be, of which errors.Is(err, recipes.ErrOutcomeUnknown) tells.
func (s *Share) Release(ctx context.Context) error {
	s.cancel(recipes.ErrNotHeld)
	s.member.share.CompareAndSwap(s, nil)
	<-s.done
	s.mu.Lock()
	held, stops := s.held, s.stops
	s.held, s.stops = make(map[string]*recipes.Hold), nil
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	var errs []error
	var mu sync.Mutex
	each(held, func(_ string, h *recipes.Hold) {
		if err := h.Release(ctx); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

// run runs f with the share, and releases it. over means that f has returned since its context had ended, but not with ctx.
func (s *Share) run(ctx context.Context, f func(ctx context.Context, parts []string) error) (over bool, err error) {
	in, cancel := s.within(ctx)
	defer func() {
		cancel(nil)
		if released := known(s.Release(ctx)); released != nil {
			over, err = false, errors.Join(err, released)
		}
	}()
	err = f(in, s.parts)
	ended := in.Err() != nil && ctx.Err() == nil
	return ended && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(in))), err
}

// within is ctx that ends with the share too, and when the members change.
func (s *Share) within(ctx context.Context) (*scope, context.CancelCauseFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	in := &scope{inner, cancel, s}
	lost := context.AfterFunc(s.ctx, in.look)
	changed := context.AfterFunc(s.valid, func() { cancel(ErrMembersChanged) })
	return in, func(cause error) {
		lost()
		changed()
		cancel(cause)
	}
}

// lock takes the locks of all parts, and fails with ErrMembersChanged when there is no use in waiting any more.
func (s *Share) lock(ctx context.Context) error {
	in, cancel := s.within(ctx)
	defer cancel(nil)
	var (
		mu     sync.Mutex
		first  error
		wanted = make(map[string]struct{})
	)
	for _, part := range s.parts {
		wanted[part] = struct{}{}
	}
	each(wanted, func(part string, _ struct{}) {
		if err := s.lockPart(in, part); err != nil {
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
				cancel(err)
			}
		}
	})
	if s.valid.Err() != nil {
		return ErrMembersChanged
	}
	return first
}

// lockPart takes the lock of one part.
func (s *Share) lockPart(ctx context.Context, part string) error {
	m := s.member
	dir := znodepath.Join(znodepath.Join(m.path, locksName), part)
	p, err := contend.Join(ctx, m.client, dir, lockLabel, []byte(m.identifier))
	if err != nil {
		return err
	}
	if p.Session() != m.session {
		return errors.Join(&recipes.Error{Op: "acquire", Path: dir, Err: recipes.ErrSessionLost}, known(p.Leave(ctx)))
	}
	held, err := p.Await(ctx, contend.Exclusive)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[part] = held
	s.stops = append(s.stops, context.AfterFunc(held.Context(), func() { s.cancel(context.Cause(held.Context())) }))
	return nil
}

// follow tells when the members are others than these.
func (s *Share) follow(members []string, fires <-chan zk.Event) {
	defer close(s.done)
	for {
		select {
		case <-fires:
		case <-s.ctx.Done():
			return
		}
		names, _, again, err := s.member.client.ChildrenW(s.ctx, znodepath.Join(s.member.path, partyName))
		slices.Sort(names)
		if err != nil || !slices.Equal(names, members) {
			s.change(ErrMembersChanged)
			return
		}
		fires = again
	}
}

// scope is a context that looks whether a share is lost before it answers.
type scope struct {
	context.Context
	cancel context.CancelCauseFunc
	share  *Share
}

func (c *scope) look() {
	if c.share.ctx.Err() != nil {
		c.cancel(context.Cause(c.share.ctx))
	}
}

func (c *scope) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *scope) Err() error {
	c.look()
	return c.Context.Err()
}

func (c *scope) Value(key any) any {
	c.look() // context.Cause asks for a value
	return c.Context.Value(key)
}

// each calls f for all, some at a time, and returns when all are done.
func each[V any](all map[string]V, f func(key string, value V)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for key, value := range all {
		slots <- struct{}{}
		// Ends with f; awaited below.
		wg.Go(func() {
			defer func() { <-slots }()
			f(key, value)
		})
	}
	wg.Wait()
}
