package agree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// ErrMembersChanged is the cause of the end of a context of Partitioner.Run: the parts have to be let go of, and are divided anew.
var ErrMembersChanged = errors.New("agree: members have changed")

// Partitioner divides the parts of a set among those who take part, so that each part is worked on by one at a time: kazoo's SetPartitioner. All
// must mean the same set. Safe for concurrent use.
type Partitioner struct {
	client     *recipes.Client
	path       string
	parts      []string
	identifier string
	quiet      time.Duration
}

// NewPartitioner returns the partitioner at path.
//
//	parts       of the set; each names a znode, so none has a slash
//	identifier  of the member, by which members are sorted: so that of a process that comes back is best what it was
//	quiet       for how long members must not have come or gone before the set is divided; kazoo takes 30 s
func NewPartitioner(c *recipes.Client, path string, parts []string, identifier string, quiet time.Duration) *Partitioner {
	return &Partitioner{client: c, path: path, parts: slices.Clone(parts), identifier: identifier, quiet: quiet}
}

// State is how a member stands to its share.
type State string

// The states, those of kazoo.
const (
	Allocating State = "ALLOCATING" // it has none yet, or none any more
	Acquired   State = "ACQUIRED"   // it has one
	Release    State = "RELEASE"    // it has one which it must let go of, since members have changed, or it was lost
	Failure    State = "FAILURE"    // it is no member any more
)

// Member is one who takes part. Acquire and Leave are for one goroutine at a time.
type Member struct {
	*Partitioner
	session *recipes.Session
	name    string
	ctx     context.Context
	leave   context.CancelCauseFunc
	share   atomic.Pointer[Share]
}

// Join takes part from now on, until Leave or the end of the session.
func (p *Partitioner) Join(ctx context.Context) (*Member, error) {
	for i, part := range p.parts {
		if part == "" || part == "." || part == ".." || strings.Contains(part, "/") || slices.Contains(p.parts[:i], part) {
			return nil, fmt.Errorf("agree: join %s: part %q: %w", p.path, part, ErrBadNames)
		}
	}
	if p.identifier == "" || strings.Contains(p.identifier, "/") {
		return nil, fmt.Errorf("agree: join %s as %q: %w", p.path, p.identifier, ErrBadNames)
	}
	s, err := p.client.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	in, cancel := s.Within(ctx)
	defer cancel()
	m := &Member{Partitioner: p, session: s, name: newMember(p.identifier)}
	if _, err := p.client.Create(in, m.znode(), nil, recipes.CreateOptions{Mode: recipes.Ephemeral, Parents: true}); err != nil {
		if errors.Is(err, recipes.ErrOutcomeUnknown) {
			// Close waits for it. After Close there is no session either.
			_ = p.client.Background(ctx, m.withdraw)
		}
		return nil, err
	}
	m.ctx, m.leave = s.WithCancel()
	return m, nil
}

// Run takes part until ctx ends, or f returns while its context is alive, and returns what f does. f is called with each share; its context
// ends with ctx, when the share is lost, or when the members have changed, and then f must return soon, since others wait. Each share is let go
// of when f has returned, also if it panics.
func (p *Partitioner) Run(ctx context.Context, f func(ctx context.Context, parts []string) error) error {
	for {
		m, err := p.Join(ctx)
		if err == nil {
			err = m.run(ctx, f)
		}
		if ctx.Err() != nil || !errors.Is(err, recipes.ErrSessionLost) && !errors.Is(err, recipes.ErrNotHeld) {
			return err
		}
	}
}

// run is Run for as long as the session lives.
func (m *Member) run(ctx context.Context, f func(ctx context.Context, parts []string) error) (err error) {
	defer func() { err = errors.Join(err, known(m.Leave(ctx))) }()
	for {
		share, err := m.Acquire(ctx)
		if err != nil {
			return err
		}
		over, err := share.run(ctx, f)
		if !over {
			return err
		}
	}
}

// Context ends when it is no member any more, or may be none.
func (m *Member) Context() context.Context { return m.ctx }

// State returns how the member stands to its share.
func (m *Member) State() State {
	s := m.share.Load()
	switch {
	case m.ctx.Err() != nil:
		return Failure
	case s == nil:
		return Allocating
	case s.ctx.Err() != nil, s.valid.Err() != nil:
		return Release
	}
	return Acquired
}

// Leave lets go of the share, and takes part no longer.
func (m *Member) Leave(ctx context.Context) error {
	var released error
	if s := m.share.Load(); s != nil {
		released = s.Release(ctx)
	}
	m.leave(recipes.ErrNotHeld)
	if m.session.Context().Err() != nil {
		return released // it goes with its session, before the Client has another
	}
	return errors.Join(released, m.client.DeleteGuaranteed(ctx, m.znode()))
}

// Acquire waits until the members have not changed for the quiet time, and those who have had parts before that are now the member's have let go
// of them. The member must not have a share.
func (m *Member) Acquire(ctx context.Context) (*Share, error) {
	if m.share.Load() != nil {
		return nil, fmt.Errorf("agree: acquire at %s: there is a share that was not released", m.path)
	}
	in, cancel := m.session.Within(ctx)
	defer cancel()
	for {
		members, fires, err := m.settle(in)
		if err != nil {
			return nil, err
		}
		s := m.newShare(divide(m.parts, members, m.name), members, fires)
		err = s.lock(in)
		if err == nil {
			m.share.Store(s)
			return s, nil
		}
		released := known(s.Release(ctx))
		if in.Err() != nil {
			err = &recipes.Error{Op: "acquire", Path: m.znode(), Err: context.Cause(in)}
		}
		if in.Err() != nil || !errors.Is(err, ErrMembersChanged) && !errors.Is(err, recipes.ErrNotHeld) {
			return nil, errors.Join(err, released)
		}
	}
}

// withdraw deletes what may come of a create that nobody waits for: even in a later session, if it was not sent before. The name is used once.
func (m *Member) withdraw(ctx context.Context) {
	for ctx.Err() == nil {
		err := m.client.Sync(ctx, m.znode()) // waits for the create
		if err == nil {
			err = m.client.Delete(ctx, m.znode(), -1)
		}
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
	}
}

// settle waits until the members have not changed for the quiet time, and returns their names and what says when they change.
func (m *Member) settle(ctx context.Context) ([]string, <-chan zk.Event, error) {
	for {
		names, _, fires, err := m.client.ChildrenW(ctx, znodepath.Join(m.path, partyName))
		switch {
		case err != nil && !errors.Is(err, zk.ErrNoNode):
			return nil, nil, err
		case !slices.Contains(names, m.name): // somebody has deleted it
			m.leave(recipes.ErrNotHeld)
			return nil, nil, &recipes.Error{Op: "acquire", Path: m.znode(), Err: recipes.ErrNotHeld}
		}
		slices.Sort(names)
		quiet := time.NewTimer(m.quiet)
		select {
		case <-quiet.C:
			return names, fires, nil
		case <-fires:
			quiet.Stop()
		case <-ctx.Done():
			quiet.Stop()
			return nil, nil, &recipes.Error{Op: "acquire", Path: m.znode(), Err: context.Cause(ctx)}
		}
	}
}

func (m *Member) znode() string { return znodepath.Join(znodepath.Join(m.path, partyName), m.name) }

// known is err, but for what goes on in the background.
func known(err error) error {
	if errors.Is(err, recipes.ErrOutcomeUnknown) {
		return nil
	}
	return err
}
