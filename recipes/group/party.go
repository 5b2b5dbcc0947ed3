package group

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"

	"github.com/gozkd/gozkd/recipes"
)

// Party is a group whose members have names that nobody else has, and call themselves what they like, also the same. Safe for concurrent use.
type Party struct {
	client  *recipes.Client
	path    string
	shallow bool
}

// partyName is in the names of a Party's znodes: <guid>__party__.
const partyName = "__party__"

// NewParty returns the Party at path, with the znodes of kazoo's Party: <guid>__party__, whose data are the identifier.
func NewParty(c *recipes.Client, path string) *Party { return &Party{c, path, false} }

// NewShallowParty returns the Party at path, with the znodes of kazoo's ShallowParty: <guid>-<identifier>. To ask for the members takes one
// request. All children count, so a Group may be at the same path: its members are then called by their ids, without what stands before a dash.
func NewShallowParty(c *recipes.Client, path string) *Party { return &Party{c, path, true} }

// Join makes this process a member, as Group.Join does, each time another one.
func (p *Party) Join(ctx context.Context, identifier string) (*Membership, error) {
	name := guid() + partyName
	if p.shallow {
		name = guid() + "-" + identifier
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	return join(ctx, p.client, p.path, name, identifier, []byte(identifier))
}

// With is Join, f, and Leave; see Group.With.
func (p *Party) With(ctx context.Context, identifier string, f func(ctx context.Context) error) error {
	m, err := p.Join(ctx, identifier)
	if err != nil {
		return err
	}
	return m.with(ctx, f)
}

// Members returns what the members call themselves, in no order. Explain says more.
func (p *Party) Members(ctx context.Context) ([]string, error) {
	names, err := children(ctx, p.client, p.path)
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
	var those []string
	for _, name := range names {
		if strings.Contains(name, partyName) {
			those = append(those, name)
		}
	}
	members, err := read(ctx, p.client, p.path, those)
	for _, m := range members {
		ids = append(ids, string(m.Payload))
	}
	return ids, err
}

// guid returns one as kazoo writes it.
func guid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return hex.EncodeToString(b[:])
}
