package agree

import (
	"context"

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

// ExplainTransaction describes the transaction at path. ErrNoTransaction means that there is none.
func ExplainTransaction(ctx context.Context, c *recipes.Client, path string) (e TransactionExplanation, err error) {
	t := NewTransaction(c, path)
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

// ExplainRendezvous returns the host at path. Waiters came at the same moment and will be guests.
func ExplainRendezvous(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	return contend.Contention(ctx, c, path, nil)
}

// PartitionExplanation describes how a set is divided, as read from its znodes.
type PartitionExplanation struct {
	Members map[string][]recipes.Contender // by identifier; more than one if members share an identifier
	Parts   map[string]recipes.Contention  // the parts that a member has or waits for
}

// ExplainPartitioner describes the members of the partitioner at path and the parts that they have.
func ExplainPartitioner(ctx context.Context, c *recipes.Client, path string) (PartitionExplanation, error) {
	e := PartitionExplanation{make(map[string][]recipes.Contender), make(map[string]recipes.Contention)}
	party, locks := znodepath.Join(path, partyName), znodepath.Join(path, locksName)
	names, err := contend.ChildNames(ctx, c, party)
	if err != nil {
		return e, err
	}
	members, err := contend.ReadChildren(ctx, c, party, names)
	if err != nil {
		return e, err
	}
	for _, m := range members {
		id := identifierOf(znodepath.Base(m.Path))
		e.Members[id] = append(e.Members[id], m)
	}
	parts, err := contend.ChildNames(ctx, c, locks)
	if err != nil {
		return e, err
	}
	for _, part := range parts {
		l, err := contend.Contention(ctx, c, znodepath.Join(locks, part), nil)
		if err != nil {
			return e, err
		}
		if len(l.Holders) > 0 {
			e.Parts[part] = l
		}
	}
	return e, nil
}
