package agree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/guid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/cache"
	"github.com/gozkd/gozkd/recipes/internal/calls"
	"github.com/gozkd/gozkd/recipes/internal/checkedctx"
	"github.com/gozkd/gozkd/recipes/internal/exactlyonce"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// errMembersChanged is a cause of the end of the context that Partitioner.Run passes: the parts
// must be released, and the set is divided anew.
var errMembersChanged = errors.New("agree: members have changed")

// Partitioner divides the parts of a set among its members, so that at most one member works on a
// part at a time: kazoo's SetPartitioner. All members use the same set. Safe for concurrent use.
type Partitioner struct {
	client     *recipes.Client
	path       string
	parts      []string
	identifier string
	quiet      time.Duration
}

// NewPartitioner returns the partitioner at path.
//
//	parts       the set; each part must be the valid name of a znode
//	identifier  of the member; members are sorted by identifier, so a process that restarts should
//	            use the same identifier again
//	quiet       for how long members must not have come or gone before the set is divided; kazoo
//	            takes 30 s
func NewPartitioner(c *recipes.Client, path string, parts []string, identifier string, quiet time.Duration) *Partitioner {
	return &Partitioner{client: c, path: path, parts: slices.Clone(parts), identifier: identifier, quiet: quiet}
}

// partitionMember is a member of a Partitioner, from join to leave or the end of the session.
type partitionMember struct {
	*Partitioner
	session *recipes.Session
	name    string
	ctx     context.Context
	cancel  context.CancelCauseFunc
}

func (p *Partitioner) join(ctx context.Context) (*partitionMember, error) {
	for i, part := range p.parts {
		if !znodepath.ValidName(part) || slices.Contains(p.parts[:i], part) {
			return nil, fmt.Errorf("agree: join %s: part %q: %w", p.path, part, recipes.ErrArgument)
		}
	}
	if p.identifier == "" || strings.Contains(p.identifier, "/") {
		return nil, fmt.Errorf("agree: join %s as %q: %w", p.path, p.identifier, recipes.ErrArgument)
	}
	s, err := p.client.AwaitSession(ctx)
	if err != nil {
		return nil, err
	}
	in, cancel := s.Within(ctx)
	defer cancel()
	m := &partitionMember{Partitioner: p, session: s, name: guid.NewHex() + "-" + p.identifier}
	if _, err := p.client.Idempotent().Create(in, m.znode(), nil, recipes.CreateOptions{Ephemeral: true, Parents: true}); err != nil {
		if errors.Is(err, recipes.ErrOutcomeUnknown) {
			_ = exactlyonce.DeleteLater(ctx, p.client, m.znode()) // fails only if the Client is closed
		}
		return nil, err
	}
	m.ctx, m.cancel = checkedctx.WithCancel(s.Context())
	return m, nil
}

// Run is a member until ctx ends or f returns while its context is alive, and returns the error of
// f. After the loss of the session, Run joins again.
//
// Run calls f with the parts of this member and the lock of each, and releases the parts after f
// has returned, also if f panics. There may be none. The context of f ends with ctx, when a part is
// lost, before another member can own that part, and when the members have changed. f must then
// return soon, because other members wait.
func (p *Partitioner) Run(ctx context.Context, f func(ctx context.Context, parts map[string]*recipes.Hold) error) error {
	for {
		m, err := p.join(ctx)
		lost := recipes.IsLost(err)
		if err == nil {
			lost, err = m.run(ctx, f)
		}
		if ctx.Err() != nil || !lost {
			return err
		}
	}
}

// run is Run as long as the session lives. lost reports whether the membership was lost; the error
// of f may wrap the loss of something else.
func (m *partitionMember) run(ctx context.Context, f func(ctx context.Context, parts map[string]*recipes.Hold) error) (lost bool, err error) {
	defer func() {
		m.cancel(recipes.ErrNotHeld)
		err = calls.Undo(ctx, m.client, m.session, err, m.znode())
	}()
	for {
		share, err := m.acquire(ctx)
		if err != nil {
			return recipes.IsLost(err), err
		}
		if again, err := share.run(ctx, f); !again {
			return m.ctx.Err() != nil && recipes.IsLost(err), err
		}
	}
}

// acquire waits until the members have not changed for the quiet time, and until the previous
// owners of this member's parts have released them. The member must not have a share.
func (m *partitionMember) acquire(ctx context.Context) (*share, error) {
	in, cancel := m.session.Within(ctx)
	defer cancel()
	for {
		members, fires, err := m.awaitQuiet(in)
		if err != nil {
			return nil, err
		}
		s := m.newShare(divide(m.parts, members, m.name), members, fires)
		err = s.lock(in)
		if err == nil {
			return s, nil
		}
		released := s.release(ctx)
		if in.Err() != nil {
			err = &recipes.Error{Op: "acquire", Path: m.znode(), Err: context.Cause(in)}
		}
		if in.Err() != nil || !errors.Is(err, errMembersChanged) && !errors.Is(err, recipes.ErrNotHeld) {
			return nil, calls.WithCleanup(err, released)
		}
	}
}

// awaitQuiet waits until the members have not changed for the quiet time. The result is their names
// and a channel that says when they have changed.
func (m *partitionMember) awaitQuiet(ctx context.Context) ([]string, <-chan client.Event, error) {
	names, fires, err := cache.PatientChildren(ctx, m.client, znodepath.Join(m.path, partyName), m.quiet)
	switch {
	case ctx.Err() != nil:
		return nil, nil, &recipes.Error{Op: "acquire", Path: m.znode(), Err: context.Cause(ctx)}
	case err != nil && !errors.Is(err, proto.ErrNoNode):
		return nil, nil, err
	case !slices.Contains(names, m.name): // somebody has deleted the znode
		m.cancel(recipes.ErrNotHeld)
		return nil, nil, &recipes.Error{Op: "acquire", Path: m.znode(), Err: recipes.ErrNotHeld}
	}
	slices.Sort(names)
	return names, fires, nil
}

func (m *partitionMember) znode() string {
	return znodepath.Join(znodepath.Join(m.path, partyName), m.name)
}

// The layout of kazoo's SetPartitioner: a ShallowParty and a directory of locks.
const (
	partyName = "party"
	locksName = "locks"
	lockLabel = "__lock__"
)

// identifierOf returns the part of a member's name after the first "-", or the whole name if there
// is none, as kazoo does.
func identifierOf(member string) string { return member[strings.IndexByte(member, '-')+1:] }

// divide returns the parts of a member, none if members lacks the member. The division is kazoo's:
// both lists are sorted, members by identifier, and the i-th of n members gets the parts i, i+n,
// i+2n ... Members with the same identifier are sorted by name, so each gets parts of its own; in
// kazoo all of them want the parts of the first.
func divide(parts, members []string, member string) []string {
	parts = slices.Sorted(slices.Values(parts))
	members = slices.SortedFunc(slices.Values(members), func(a, b string) int {
		return cmp.Or(cmp.Compare(identifierOf(a), identifierOf(b)), cmp.Compare(a, b))
	})
	i := slices.Index(members, member)
	if i < 0 {
		return nil
	}
	var own []string
	for ; i < len(parts); i += len(members) {
		own = append(own, parts[i])
	}
	return own
}
