package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Member is one who is in a group.
type Member struct {
	ID      string // the znode's name; of a Party's what the member calls itself
	Payload []byte
	Path    string
	Session int64     // 0: the znode is no ephemeral
	Since   time.Time // by the leader's clock; when its session was lost and it came back, since then
	Zxid    int64     // that created the znode
}

// Group is the processes that have joined at a path: path/<id> is an ephemeral with the payload. Safe for concurrent use.
type Group struct {
	client *recipes.Client
	path   string
}

// New returns the Group at path.
func New(c *recipes.Client, path string) *Group { return &Group{c, path} }

// Join makes this process a member, and returns when it is one. Whatever happens to the session, it is again as soon as it can be, until Leave.
// When it fails, or ctx ends, it is none.
//
// A member of that id that is there already is replaced: as a rule it is an earlier life of this process whose session has not ended yet. If
// it is another that lives, it waits until this one has left; see Membership.There.
func (g *Group) Join(ctx context.Context, id string, payload []byte) (*Membership, error) {
	if err := checkName(id); err != nil {
		return nil, err
	}
	return join(ctx, g.client, g.path, id, id, payload)
}

// With is Join, f, and Leave, also if f panics. f gets ctx: membership comes back by itself, so there is no loss that f should learn of.
func (g *Group) With(ctx context.Context, id string, payload []byte, f func(ctx context.Context) error) error {
	m, err := g.Join(ctx, id, payload)
	if err != nil {
		return err
	}
	return m.with(ctx, f)
}

// Members asks who is a member now. They come in the order in which they have joined.
func (g *Group) Members(ctx context.Context) ([]Member, error) { return Explain(ctx, g.client, g.path) }

// Explain returns the children of the znode at path, whoever made them, in the order in which they came. IDs are the znodes' names.
func Explain(ctx context.Context, c *recipes.Client, path string) ([]Member, error) {
	names, err := children(ctx, c, path)
	if err != nil {
		return nil, err
	}
	return read(ctx, c, path, names)
}

// Membership is that of this process. Safe for concurrent use.
type Membership struct {
	id string
	n  *persistentnode.Znode
}

// ID is the one under which it has joined.
func (m *Membership) ID() string { return m.id }

// SetPayload changes the payload, and waits until the others can see it; a Party's is the identifier. See Node.SetData.
func (m *Membership) SetPayload(ctx context.Context, payload []byte) error {
	return m.n.SetData(ctx, payload)
}

// There returns the path of the member's znode, if it is there by all that is known, or else why not; see Node.There. ErrTaken says that
// another has joined under the same id.
func (m *Membership) There() (path string, err error) { return m.n.Path() }

// Wait waits until it is a member; see Node.Wait.
func (m *Membership) Wait(ctx context.Context) (path string, err error) { return m.n.Wait(ctx) }

// Leave ends the membership, and waits until the others can see that. If ctx ends before, it goes on in the background. See Node.Close.
func (m *Membership) Leave(ctx context.Context) error { return m.n.Close(ctx) }

func (m *Membership) with(ctx context.Context, f func(ctx context.Context) error) (err error) {
	defer func() { err = errors.Join(err, m.Leave(ctx)) }()
	return f(ctx)
}

func join(ctx context.Context, c *recipes.Client, dir, name, id string, payload []byte) (*Membership, error) {
	n := persistentnode.New(c, znodepath.Join(dir, name), payload, persistentnode.Options{Mode: recipes.Ephemeral, TakeOver: true})
	n.Start()
	if _, err := n.Wait(ctx); err != nil {
		_ = n.Close(ctx) // why it could not join says more
		return nil, err
	}
	return &Membership{id, n}, nil
}

func checkName(id string) error {
	if id == "" || id == "." || id == ".." || strings.Contains(id, "/") {
		return fmt.Errorf("group: id %q: it is the name of a znode: %w", id, zk.ErrInvalidPath)
	}
	return nil
}

// children returns the names of a znode's children, none if it is not there.
func children(ctx context.Context, c *recipes.Client, path string) ([]string, error) {
	names, _, err := c.Children(ctx, path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// read returns those of names that are there, in the order in which they came.
func read(ctx context.Context, c *recipes.Client, path string, names []string) ([]Member, error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znodepath.Join(path, name)
	}
	all, err := contend.Read(ctx, c, paths)
	if err != nil {
		return nil, err
	}
	members := make([]Member, len(all))
	for i, m := range all {
		members[i] = Member{nameOf(m.Path), m.Data, m.Path, m.Session, m.Since, m.Zxid}
	}
	return byAge(members), nil
}

func byAge(members []Member) []Member {
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Zxid, b.Zxid) })
	return members
}

func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
