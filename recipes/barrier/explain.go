package barrier

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Explain returns since when the barrier is set, by the leader's clock; the zero time if it is not
// set. Callers of Wait have no znode, so they are not listed.
func (b *Barrier) Explain(ctx context.Context) (since time.Time, err error) {
	stat, err := b.client.Exists(ctx, b.path)
	if err != nil || stat == nil {
		return since, err
	}
	return time.UnixMilli(stat.Ctime), nil
}

// Explain returns the members of the barrier, in the order of arrival: as holders if
// they are in, as waiters if they wait for the barrier to open. A member that has left and waits
// for the others has no znode and is not listed.
func (d *Double) Explain(ctx context.Context) (recipes.Contention, error) {
	ready, err := d.client.Exists(ctx, d.readyPath())
	if err != nil {
		return recipes.Contention{}, err
	}
	l, err := d.list(ctx)
	if err != nil {
		return recipes.Contention{}, err
	}
	members, err := contend.ReadChildren(ctx, d.client, d.path, l.names)
	if err != nil {
		return recipes.Contention{}, err
	}
	slices.SortFunc(members, func(a, b recipes.Contender) int { return cmp.Compare(a.Zxid, b.Zxid) })
	in := 0 // the ready znode is newer than the members that are in
	for ready != nil && in < len(members) && members[in].Zxid < ready.Mzxid {
		in++
	}
	return recipes.Contention{Holders: members[:in], Waiters: members[in:]}, nil
}
