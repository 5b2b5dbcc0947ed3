package agree

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// TransactionExplanation describes a transaction, as read from its znodes.
type TransactionExplanation struct {
	Decision Decision
	Task     []byte
	// Votes has the sites that have not called Done. Undecided means that a site has not voted.
	Votes map[string]Decision
	// Line has the participants that are present. The first decides when waiting for the outcome.
	// Data is the name of the site, empty for a coordinator.
	Line recipes.Contention
}

// Explain describes the transaction, with all that was decided before the call. zk.ErrNoNode means
// that there is none.
func (t *Transaction) Explain(ctx context.Context) (e TransactionExplanation, err error) {
	c := t.client
	if err := c.Sync(ctx, t.path); err != nil {
		return e, err
	}
	if e.Decision, _, err = t.readDecision(ctx, false); err != nil {
		return e, err
	}
	if e.Task, _, err = c.Get(ctx, t.taskPath()); err != nil {
		return e, t.explainMissing(err)
	}
	sites, _, err := c.Children(ctx, t.sitesPath())
	if err != nil {
		return e, t.explainMissing(err)
	}
	votes, err := contend.ReadChildren(ctx, c, t.sitesPath(), sites)
	if err != nil {
		return e, err
	}
	e.Votes = make(map[string]Decision)
	for _, v := range votes {
		e.Votes[znodepath.Base(v.Path)] = Decision(v.Data)
	}
	e.Line, err = contend.Contention(ctx, c, t.linePath(), nil)
	return e, err
}

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
