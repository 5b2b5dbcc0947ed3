package lock

import (
	"cmp"
	"context"
	"slices"

	"github.com/gozkd/gozkd/internal/sequence"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// Explain returns the holders and the waiters of the mutex or read/write lock of path, whichever
// client library they use. Explain only reads. The znodes are not read in one moment, so the result
// may mix moments. A client that downgrades, and has not deleted its write lock yet, appears as the
// holder of both locks.
func Explain(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	all, err := contend.Contenders(ctx, c, path, sequence.Sequential)
	if err != nil || len(all) == 0 {
		return recipes.Contention{}, err
	}
	names := make([]string, len(all))
	for i, contender := range all {
		names[i] = znodepath.Base(contender.Path)
	}
	first, _, _ := sequence.Parse(names[0])
	var found recipes.Contention
	for i, contender := range all {
		rule := contend.Exclusive
		if isReader(names[i]) {
			rule = readRule
		}
		number, _, _ := sequence.Parse(names[i])
		if number == first || rule(names, i) == "" {
			found.Holders = append(found.Holders, contender)
		} else {
			found.Waiters = append(found.Waiters, contender)
		}
	}
	return found, nil
}

// Explain returns the held leases, a Contender for each, and the contenders that wait for leases,
// whichever client library they use. Explain only reads, and the result may mix moments.
//
// A waiter creates the znodes of its leases before they are granted. Leases that are newer than the
// first waiter and of the same session count as not granted; so leases that several goroutines of
// one session acquire at the same time may be missing for a moment.
func (s *Semaphore) Explain(ctx context.Context) (recipes.Contention, error) {
	leases, err := contend.Contenders(ctx, s.client, s.leases, func(names []string) []string { return names })
	if err != nil {
		return recipes.Contention{}, err
	}
	slices.SortFunc(leases, func(a, b recipes.Contender) int { return cmp.Compare(a.Zxid, b.Zxid) })
	// Read the waiters after the leases: a waiter that has left the line has its leases.
	waiters, err := contend.Contenders(ctx, s.client, s.mutex.path, sequence.Sequential)
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
