package agree

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Explain returns the members by identifier, several if they share it, and the parts that a member
// has or waits for, as read from their znodes.
func (p *Partitioner) Explain(ctx context.Context) (members map[string][]recipes.Contender, parts map[string]recipes.Contention, err error) {
	all, err := contend.ReadAll(ctx, p.client, znodepath.Join(p.path, partyName), nil)
	if err != nil {
		return nil, nil, err
	}
	members, parts = make(map[string][]recipes.Contender), make(map[string]recipes.Contention)
	for _, m := range all {
		id := identifierOf(znodepath.Base(m.Path))
		members[id] = append(members[id], m)
	}
	dirs, err := contend.ReadAll(ctx, p.client, znodepath.Join(p.path, locksName), nil)
	for _, dir := range dirs {
		l, e := contend.Contention(ctx, p.client, dir.Path, nil)
		err = errors.Join(err, e)
		if len(l.Holders) > 0 {
			parts[znodepath.Base(dir.Path)] = l
		}
	}
	return members, parts, err
}
