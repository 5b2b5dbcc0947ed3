package agree

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// TransactionExplanation is how a transaction is, as seen from outside.
type TransactionExplanation struct {
	Decision Decision
	Task     []byte
	// Votes are those of the sites that have not called Done; Undecided: it has not voted.
	Votes map[string]Decision
	// Line is who takes part: the first, if it waits for the outcome, decides. Data is the site, nothing for a coordinator.
	Line recipes.Contention
}

// ExplainTransaction says how the transaction at path is. ErrNone: there is none.
func ExplainTransaction(ctx context.Context, c *recipes.Client, path string) (e TransactionExplanation, err error) {
	t := NewTransaction(c, path)
	if e.Decision, _, err = t.read(ctx, false); err != nil {
		return e, err
	}
	if e.Task, _, err = c.Get(ctx, t.task()); err != nil {
		return e, t.none(err)
	}
	sites, _, err := c.Children(ctx, t.sites())
	if err != nil {
		return e, t.none(err)
	}
	slices.Sort(sites)
	paths := make([]string, len(sites))
	for i, site := range sites {
		paths[i] = t.vote(site)
	}
	votes, err := contend.Read(ctx, c, paths)
	if err != nil {
		return e, err
	}
	e.Votes = make(map[string]Decision)
	for _, v := range votes {
		e.Votes[v.Path[strings.LastIndexByte(v.Path, '/')+1:]] = Decision(v.Data)
	}
	e.Line, err = explainLine(ctx, c, t.here())
	return e, err
}

// ExplainRendezvous says who is the host at path; waiters are those who came at the same moment and will be guests.
func ExplainRendezvous(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	return explainLine(ctx, c, path)
}

// PartitionExplanation is how a set is divided, as seen from outside.
type PartitionExplanation struct {
	Members map[string][]recipes.Contender // by their identifiers, each with one place as a rule
	Parts   map[string]recipes.Contention  // those parts that somebody has or waits for
}

// ExplainPartitioner says who takes part at path, and who has what.
func ExplainPartitioner(ctx context.Context, c *recipes.Client, path string) (PartitionExplanation, error) {
	e := PartitionExplanation{make(map[string][]recipes.Contender), make(map[string]recipes.Contention)}
	party := znodepath.Join(path, partyName)
	names, _, err := c.Children(ctx, party)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return e, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znodepath.Join(party, name)
	}
	members, err := contend.Read(ctx, c, paths)
	if err != nil {
		return e, err
	}
	for _, m := range members {
		id := identifierOf(m.Path[strings.LastIndexByte(m.Path, '/')+1:])
		e.Members[id] = append(e.Members[id], m)
	}
	locks := znodepath.Join(path, locksName)
	parts, _, err := c.Children(ctx, locks)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return e, err
	}
	for _, part := range parts {
		l, err := explainLine(ctx, c, znodepath.Join(locks, part))
		if err != nil {
			return e, err
		}
		if len(l.Holders) > 0 {
			e.Parts[part] = l
		}
	}
	return e, nil
}

// explainLine is the line of a mutex.
func explainLine(ctx context.Context, c *recipes.Client, dir string) (recipes.Contention, error) {
	all, err := contend.Contenders(ctx, c, dir, nil)
	if err != nil || len(all) == 0 {
		return recipes.Contention{}, err
	}
	return recipes.Contention{Holders: all[:1], Waiters: all[1:]}, nil
}
