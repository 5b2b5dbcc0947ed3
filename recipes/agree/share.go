package agree

import (
	"context"
	"errors"
	"slices"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// share is the set of parts that a member has. release must be called.
type share struct {
	parts  []string // sorted
	member *partitionMember
	ctx    context.Context // ends when a part is lost or may be
	cancel context.CancelCauseFunc

	stable         context.Context // ends when the members have changed
	membersChanged context.CancelCauseFunc
	done           chan struct{} // closed when follow has ended

	held []*recipes.Hold // of the parts; nil: not locked
}

// newShare returns a share whose parts are not locked yet.
func (m *partitionMember) newShare(parts, members []string, fires <-chan client.Event) *share {
	s := &share{member: m, parts: parts, done: make(chan struct{}), held: make([]*recipes.Hold, len(parts))}
	s.ctx, s.cancel = checkedctx.WithCancel(m.session.Context())
	s.stable, s.membersChanged = context.WithCancelCause(context.Background())
	// Ends with the share's context. release waits.
	go s.follow(members, fires)
	return s
}

// release releases all parts. If errors.Is(err, recipes.ErrOutcomeUnknown), the release continues
// in the background.
func (s *share) release(ctx context.Context) error {
	s.cancel(recipes.ErrNotHeld)
	<-s.done
	return calls.Each(len(s.held), func(i int) error {
		if h := s.held[i]; h != nil {
			return h.Release(ctx)
		}
		return nil
	})
}

// run runs f with the share and then releases the share. again means that f returned because the
// share or the membership changed, not because of ctx or an error of its own.
func (s *share) run(ctx context.Context, f func(ctx context.Context, parts map[string]*recipes.Hold) error) (again bool, err error) {
	in, cancel := s.within(ctx)
	defer func() {
		cancel()
		if released := calls.WithCleanup(nil, s.release(ctx)); released != nil {
			again, err = false, errors.Join(err, released)
		}
	}()
	parts := make(map[string]*recipes.Hold)
	for i, part := range s.parts {
		parts[part] = s.held[i]
	}
	err = f(in, parts)
	ended := in.Err() != nil && ctx.Err() == nil
	return ended && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(in))), err
}

// within derives a context from ctx that also ends with the share, and when the members change.
func (s *share) within(ctx context.Context) (in context.Context, cancel context.CancelFunc) {
	in, cancelInner := checkedctx.Within(ctx, s.stable)
	in, cancelOuter := checkedctx.Within(in, s.ctx)
	return in, func() {
		cancelOuter()
		cancelInner()
	}
}

// lock acquires the locks of all parts. The error is errMembersChanged if members change.
func (s *share) lock(ctx context.Context) error {
	in, cancel := s.within(ctx)
	defer cancel()
	in, cancelOthers := context.WithCancelCause(in)
	defer cancelOthers(nil)
	err := calls.Each(len(s.parts), func(i int) (err error) {
		if s.held[i], err = s.lockPart(in, s.parts[i]); err != nil {
			cancelOthers(err)
		}
		return err
	})
	switch {
	case s.stable.Err() != nil:
		return errMembersChanged
	case err != nil:
		return context.Cause(in) // the first error
	}
	return nil
}

func (s *share) lockPart(ctx context.Context, part string) (*recipes.Hold, error) {
	m := s.member
	dir := znodepath.Join(znodepath.Join(m.path, locksName), part)
	p, err := contend.Join(ctx, m.client, dir, lockLabel, []byte(m.identifier))
	if err != nil {
		return nil, err
	}
	if p.Session() != m.session {
		return nil, calls.WithCleanup(&recipes.Error{Op: "acquire", Path: dir, Err: recipes.ErrSessionLost}, p.Leave(ctx))
	}
	held, err := p.Await(ctx, contend.Exclusive)
	if err == nil {
		context.AfterFunc(held.Context(), func() { s.cancel(context.Cause(held.Context())) })
	}
	return held, err
}

// follow ends s.stable when the members are no longer these.
func (s *share) follow(members []string, fires <-chan client.Event) {
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
