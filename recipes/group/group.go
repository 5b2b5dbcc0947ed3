package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Member describes a member of a group, as read from its znode.
type Member struct {
	ID      string // the znode's name
	Payload []byte
	Path    string
	Session int64     // 0 if the znode is not ephemeral
	Since   time.Time // creation time of the znode by the leader's clock; later than the joining if the session was lost since
	Zxid    int64     // of the znode's creation
}

// Group is the set of processes that have joined at a path. Each has an ephemeral path/<id> with
// its payload. Safe for concurrent use.
type Group struct {
	client *recipes.Client
	path   string
}

// New returns the Group at path.
func New(c *recipes.Client, path string) *Group { return &Group{c, path} }

// Join makes this process a member and returns when the membership is established. If the session
// is lost, the member joins again as soon as possible, until Leave. If Join fails, the process is
// not a member.
//
// An existing member with the same id is replaced: usually an earlier run of this process, whose
// session has not ended yet. Another live process waits until this member has left; see
// Membership.Path.
func (g *Group) Join(ctx context.Context, id string, payload []byte) (*Membership, error) {
	return join(ctx, g.client, g.path, id, id, payload)
}

// With joins, runs f, and leaves, also if f panics. f gets ctx itself: membership is restored
// automatically, so its loss is no reason to stop f.
func (g *Group) With(ctx context.Context, id string, payload []byte, f func(ctx context.Context) error) error {
	m, err := g.Join(ctx, id, payload)
	if err != nil {
		return err
	}
	return m.with(ctx, f)
}

// Members asks the server for the members. They are in the order of their znodes' creation.
func (g *Group) Members(ctx context.Context) ([]Member, error) { return Explain(ctx, g.client, g.path) }

// Explain returns the children of the znode at path, whoever created them, in the order of
// creation. Their IDs are the znodes' names.
func Explain(ctx context.Context, c *recipes.Client, path string) ([]Member, error) {
	names, err := contend.ChildNames(ctx, c, path)
	if err != nil {
		return nil, err
	}
	return read(ctx, c, path, names)
}

// Membership is this process's membership of a group. Safe for concurrent use.
type Membership struct {
	id    string
	znode *persistentnode.Znode
}

// ID returns the id under which the process joined.
func (m *Membership) ID() string { return m.id }

// SetPayload changes the payload and waits until the znode has the new payload. In a Party the
// payload is the identifier. See PersistentZnode.SetData.
func (m *Membership) SetPayload(ctx context.Context, payload []byte) error {
	return m.znode.SetData(ctx, payload)
}

// Path returns the path of the member's znode if that is known to exist, and otherwise the reason:
// ErrTaken says that another process has joined under the same id. See PersistentZnode.Path.
func (m *Membership) Path() (path string, err error) { return m.znode.Path() }

// Wait waits until the process is a member; see PersistentZnode.Wait.
func (m *Membership) Wait(ctx context.Context) (path string, err error) { return m.znode.Wait(ctx) }

// Leave ends the membership and waits until the znode is gone. If ctx ends first, the deletion
// continues in the background; see PersistentZnode.Close.
func (m *Membership) Leave(ctx context.Context) error { return m.znode.Close(ctx) }

func (m *Membership) with(ctx context.Context, f func(ctx context.Context) error) (err error) {
	defer func() { err = errors.Join(err, m.Leave(ctx)) }()
	return f(ctx)
}

func join(ctx context.Context, c *recipes.Client, dir, name, id string, payload []byte) (*Membership, error) {
	if !znodepath.ValidName(name) {
		return nil, fmt.Errorf("group: join %s as %q: not a valid name of a znode: %w", dir, id, zk.ErrInvalidPath)
	}
	z := persistentnode.New(c, znodepath.Join(dir, name), payload, persistentnode.Options{Mode: recipes.Ephemeral, TakeOver: true})
	z.Start()
	if _, err := z.Wait(ctx); err != nil {
		_ = z.Close(ctx) // err says more
		return nil, err
	}
	return &Membership{id, z}, nil
}

// read returns the members whose znodes have the given names, in the order of creation, except
// those that are gone.
func read(ctx context.Context, c *recipes.Client, path string, names []string) ([]Member, error) {
	all, err := contend.ReadChildren(ctx, c, path, names)
	if err != nil {
		return nil, err
	}
	members := make([]Member, len(all))
	for i, m := range all {
		members[i] = Member{znodepath.Base(m.Path), m.Data, m.Path, m.Session, m.Since, m.Zxid}
	}
	return sortByAge(members), nil
}

func sortByAge(members []Member) []Member {
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Zxid, b.Zxid) })
	return members
}
