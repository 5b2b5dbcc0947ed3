package agree

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Share is the set of parts that a member has. Release must be called.
type Share struct {
	Parts  []string // sorted; there may be none; must not be modified
	member *PartitionMember
	ctx    context.Context
	cancel context.CancelCauseFunc

	stable         context.Context // ends when the members have changed
	membersChanged context.CancelCauseFunc
	done           chan struct{} // closed when follow has ended

	mu    sync.Mutex // guards held and stops
	held  map[string]*recipes.Hold
	stops []func() bool // undo the AfterFuncs of the locks' contexts
}

// newShare returns a share whose parts are not locked yet.
func (m *PartitionMember) newShare(parts, members []string, fires <-chan zk.Event) *Share {
	s := &Share{member: m, Parts: parts, done: make(chan struct{}), held: make(map[string]*recipes.Hold)}
	s.ctx, s.cancel = checkedctx.WithCancel(m.session.Context())
	s.stable, s.membersChanged = context.WithCancelCause(context.Background())
	// Ends with the share's context. Release waits.
	go s.follow(members, fires)
	return s
}

// Context returns a context that ends when any part is lost or may be, before another member can
// own that part.
func (s *Share) Context() context.Context { return s.ctx }

// Changed returns a channel that is closed when the members have changed. The share should then be
// released soon, and Acquire called again.
func (s *Share) Changed() <-chan struct{} { return s.stable.Done() }

// Held returns the lock of a part, which has its token and Guard; nil if the share does not have
// the part.
func (s *Share) Held(part string) *recipes.Hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[part]
}

// Release releases all parts. If errors.Is(err, recipes.ErrOutcomeUnknown), the release continues
// in the background.
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
	return contend.Each(len(s.Parts), func(i int) error {
		if h := held[s.Parts[i]]; h != nil {
			return h.Release(ctx)
		}
		return nil
	})
}

// run runs f with the share and then releases the share. again means that f returned because the
// share or the membership changed, not because of ctx or an error of its own.
func (s *Share) run(ctx context.Context, f func(ctx context.Context, parts []string) error) (again bool, err error) {
	in, cancel := s.within(ctx)
	defer func() {
		cancel()
		if released := contend.WithCleanup(nil, s.Release(ctx)); released != nil {
			again, err = false, errors.Join(err, released)
		}
	}()
	err = f(in, s.Parts)
	ended := in.Err() != nil && ctx.Err() == nil
	return ended && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(in))), err
}

// within derives a context from ctx that also ends with the share, and when the members have
// changed.
func (s *Share) within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	in, cancelInner := checkedctx.Within(ctx, s.stable)
	in, cancelOuter := checkedctx.Within(in, s.ctx)
	return in, func() {
		cancelOuter()
		cancelInner()
	}
}

// lock acquires the locks of all parts. The error is errMembersChanged if the members change
// meanwhile.
func (s *Share) lock(ctx context.Context) error {
	in, cancel := s.within(ctx)
	defer cancel()
	in, cancelOthers := context.WithCancelCause(in)
	defer cancelOthers(nil)
	var (
		once  sync.Once
		first error
	)
	_ = contend.Each(len(s.Parts), func(i int) error {
		err := s.lockPart(in, s.Parts[i])
		if err != nil {
			once.Do(func() { first = err })
			cancelOthers(err)
		}
		return err
	})
	if s.stable.Err() != nil {
		return errMembersChanged
	}
	return first
}

// lockPart acquires the lock of a part.
func (s *Share) lockPart(ctx context.Context, part string) error {
	m := s.member
	dir := znodepath.Join(znodepath.Join(m.path, locksName), part)
	p, err := contend.Join(ctx, m.client, dir, lockLabel, []byte(m.identifier))
	if err != nil {
		return err
	}
	if p.Session() != m.session {
		return contend.WithCleanup(&recipes.Error{Op: "acquire", Path: dir, Err: recipes.ErrSessionLost}, p.Leave(ctx))
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

// follow ends s.stable when the members are no longer these.
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
			s.membersChanged(errMembersChanged)
			return
		}
		fires = again
	}
}
