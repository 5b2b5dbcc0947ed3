package group

import (
	"context"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/guid"
)

// Party is a group whose members have unique znodes and identifiers that need not be unique. Safe
// for concurrent use.
type Party struct {
	client  *recipes.Client
	path    string
	shallow bool
}

// partyName is part of the name of a Party's znode: <guid>__party__.
const partyName = "__party__"

// NewParty returns the Party at path with the znodes of kazoo's Party: <guid>__party__, with the
// identifier as data.
func NewParty(c *recipes.Client, path string) *Party { return &Party{c, path, false} }

// NewShallowParty returns the Party at path with the znodes of kazoo's ShallowParty:
// <guid>-<identifier>. Members then takes one request. All children count, so a Group may share the
// path; of its members' ids, Members returns the part after the first dash.
func NewShallowParty(c *recipes.Client, path string) *Party { return &Party{c, path, true} }

// Join makes this process a member, as Group.Join does. Every call adds another member.
func (p *Party) Join(ctx context.Context, identifier string) (*Membership, error) {
	name := guid.NewHex() + partyName
	if p.shallow {
		name = guid.NewHex() + "-" + identifier
	}
	return join(ctx, p.client, p.path, name, identifier, []byte(identifier))
}

// With joins, runs f, and leaves; see Group.With.
func (p *Party) With(ctx context.Context, identifier string, f func(ctx context.Context) error) error {
	m, err := p.Join(ctx, identifier)
	if err != nil {
		return err
	}
	return m.with(ctx, f)
}

// Members returns the members' identifiers, in no particular order. Explain returns more.
func (p *Party) Members(ctx context.Context) ([]string, error) {
	names, err := contend.ChildNames(ctx, p.client, p.path)
	if err != nil {
		return nil, err
	}
	var ids []string
	if p.shallow {
		for _, name := range names {
			ids = append(ids, name[strings.IndexByte(name, '-')+1:])
		}
		return ids, nil
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.Contains(name, partyName) })
	members, err := read(ctx, p.client, p.path, names)
	for _, m := range members {
		ids = append(ids, string(m.Payload))
	}
	return ids, err
}
