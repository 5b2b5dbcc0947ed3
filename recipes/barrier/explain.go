package barrier

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Status is the state of a Barrier. Callers of Wait have no znode, so they are not listed.
type Status struct {
	Set   bool
	Since time.Time // by the leader's clock; zero if not set
}

// Explain returns the state of the Barrier at path.
func Explain(ctx context.Context, c *recipes.Client, path string) (Status, error) {
	stat, err := c.Exists(ctx, path)
	if err != nil || stat == nil {
		return Status{}, err
	}
	return Status{true, time.UnixMilli(stat.Ctime)}, nil
}

// ExplainDouble returns the members of the Double at path, in the order of arrival: as holders if
// they are in, as waiters if they wait for the barrier to open. A member that has left and waits
// for the others has no znode and is not listed.
func ExplainDouble(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	d := &Double{client: c, path: path}
	ready, err := c.Exists(ctx, d.readyPath())
	if err != nil {
		return recipes.Contention{}, err
	}
	l, err := d.list(ctx)
	if err != nil {
		return recipes.Contention{}, err
	}
	members, err := contend.ReadChildren(ctx, c, path, l.names)
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
