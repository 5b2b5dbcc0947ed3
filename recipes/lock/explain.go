package lock

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Explain returns who holds the mutex or the read/write lock of a path and who waits for it, whatever client they use. It only reads,
// and what it reads is not of one moment. Whose read lock came of a write lock that is still there holds both.
func Explain(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	all, err := contend.Contenders(ctx, c, path, nil)
	if err != nil {
		return recipes.Contention{}, err
	}
	names := make([]string, len(all))
	for i, who := range all {
		names[i] = znodepath.Base(who.Path)
	}
	if len(all) == 0 {
		return recipes.Contention{}, nil
	}
	first, _, _ := recipes.Sequence(names[0])
	var found recipes.Contention
	for i, who := range all {
		rule := contend.Exclusive
		if isReader(names[i]) {
			rule = shared
		}
		number, _, _ := recipes.Sequence(names[i])
		if number == first || rule(names, i) == "" {
			found.Holders = append(found.Holders, who)
		} else {
			found.Waiters = append(found.Waiters, who)
		}
	}
	return found, nil
}

// ExplainSemaphore returns who has leases of the semaphore of a path, a Contender for each lease, and who waits for some, whatever
// client they use. It only reads, and what it reads is not of one moment.
//
// Who waits for a lease has a znode for it already. It is told from a lease that is held by being one of the first waiter's session and newer
// than its waiting: so leases that one session gets at the same time for several who asked may be left out for a moment.
func ExplainSemaphore(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	return newSemaphore(c, path, nil).Explain(ctx)
}

// Explain is ExplainSemaphore.
func (s *Semaphore) Explain(ctx context.Context) (recipes.Contention, error) {
	names, _, err := s.client.Children(ctx, s.leases)
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return recipes.Contention{}, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = znodepath.Join(s.leases, name)
	}
	leases, err := contend.Read(ctx, s.client, paths)
	if err != nil {
		return recipes.Contention{}, err
	}
	slices.SortFunc(leases, func(a, b recipes.Contender) int { return cmp.Compare(a.Zxid, b.Zxid) })
	// Read after the leases: whose lease was there then and who has left the line since has got it.
	waiters, err := contend.Contenders(ctx, s.client, s.mutex.path, nil)
	if err != nil {
		return recipes.Contention{}, err
	}
	if len(waiters) > 0 {
		first := waiters[0]
		for n := len(leases); n > 0 && leases[n-1].Session == first.Session && leases[n-1].Zxid > first.Zxid; n-- {
			leases = leases[:n-1]
		}
	}
	return recipes.Contention{Holders: leases, Waiters: waiters}, nil
}
