package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/guid"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/holding"
	"github.com/gozkd/gozkd/recipes/internal/persistentnode"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Member describes a member of a group, as read from its znode.
type Member struct {
	ID      string // the id of Join: the znode's name, or part of the znode of a party
	Payload []byte // in a party, the id
	Path    string
	Session int64     // 0 if the znode is not ephemeral
	Since   time.Time // creation time of the znode by the leader's clock; later than the joining if the session was lost since
	Zxid    int64     // of the znode's creation
}

// Group is the set of processes that have joined at a path. Each has an ephemeral with its payload.
// Safe for concurrent use.
type Group struct {
	client *recipes.Client
	path   string
	layout layout
}

type layout int

const (
	plain   layout = iota // the id
	party                 // <guid>__party__; the id is the data
	shallow               // <guid>-<id>
)

const partyName = "__party__"

// New returns the Group at path: Curator's GroupMember. A member's znode is path/<id>.
func New(c *recipes.Client, path string) *Group { return &Group{c, path, plain} }

// NewParty returns kazoo's Party at path. Its ids need not be unique: every Join adds a member,
// with a znode <guid>__party__ whose data are the id.
func NewParty(c *recipes.Client, path string) *Group { return &Group{c, path, party} }

// NewShallowParty returns kazoo's ShallowParty at path: a party with the znodes <guid>-<id>.
// Members then takes one request, and returns only ID and Path. All children count, so a Group of
// New may share the path; of its members' ids, Members returns the part after the first dash.
func NewShallowParty(c *recipes.Client, path string) *Group { return &Group{c, path, shallow} }

// Join makes this process a member and returns the member's znode when that exists. If the session
// is lost, the member joins again as soon as possible, until Close of the znode. If Join fails, the
// process is not a member. In a party the payload is the id; the argument must be nil.
//
// An existing member with the same id is replaced, except in a party: usually an earlier run of
// this process, whose session has not ended yet. Another live process waits until this member has
// left; see PersistentZnode.Path.
func (g *Group) Join(ctx context.Context, id string, payload []byte) (*PersistentZnode, error) {
	name := id
	switch {
	case g.layout != plain && payload != nil:
		return nil, fmt.Errorf("group: join %s as %q: a party's payload is the id; pass nil: %w", g.path, id, recipes.ErrArgument)
	case g.layout == party:
		name, payload = guid.NewHex()+partyName, []byte(id)
	case g.layout == shallow:
		name, payload = guid.NewHex()+"-"+id, []byte(id)
	}
	if !znodepath.ValidName(name) {
		return nil, fmt.Errorf("group: join %s as %q: not a valid name of a znode: %w", g.path, id, proto.ErrBadArguments)
	}
	z := persistentnode.New(g.client, znodepath.Join(g.path, name), payload, recipes.CreateOptions{Ephemeral: true}).TakeOver()
	if err := z.Create(ctx); err != nil {
		return nil, err
	}
	return &PersistentZnode{g.client, z}, nil
}

// With joins, runs f, and leaves, also if f panics. f gets ctx itself: membership is restored
// automatically, so its loss is no reason to stop f. With waits for the deletion of the znode even
// if ctx has ended; see PersistentZnode.Close.
func (g *Group) With(ctx context.Context, id string, payload []byte, f func(ctx context.Context) error) error {
	return holding.While(ctx, func() (*PersistentZnode, error) { return g.Join(ctx, id, payload) }, f)
}

// Members asks the server for the members, whoever created them. They are in the order of their
// znodes' creation, except those of a shallow party.
func (g *Group) Members(ctx context.Context) ([]Member, error) {
	var members []Member
	if g.layout == shallow {
		names, err := contend.ChildNames(ctx, g.client, g.path)
		for _, name := range names {
			members = append(members, g.member(recipes.Contender{Path: znodepath.Join(g.path, name)}))
		}
		return members, err
	}
	all, err := contend.Contenders(ctx, g.client, g.path, func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return !g.isMember(name) })
	})
	for _, c := range all {
		members = append(members, g.member(c))
	}
	return sortByAge(members), err
}

func (g *Group) isMember(name string) bool {
	return g.layout != party || strings.Contains(name, partyName)
}

func (g *Group) member(c recipes.Contender) Member {
	id := znodepath.Base(c.Path)
	switch g.layout {
	case party:
		id = string(c.Data)
	case shallow:
		id = id[strings.IndexByte(id, '-')+1:]
	case plain:
	}
	return Member{id, c.Data, c.Path, c.Session, c.Since, c.Zxid}
}

func sortByAge(members []Member) []Member {
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Zxid, b.Zxid) })
	return members
}
