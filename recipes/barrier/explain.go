package barrier

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/internal/contend"
)

// Status is a Barrier as seen from outside. Those who wait at it leave no trace on the server.
type Status struct {
	Set   bool
	Since time.Time // by the leader's clock; zero if it is not set
}

// Explain returns how the Barrier at path is.
func Explain(ctx context.Context, c *recipes.Client, path string) (Status, error) {
	stat, err := c.Exists(ctx, path)
	if err != nil || stat == nil {
		return Status{}, err
	}
	return Status{true, time.UnixMilli(stat.Ctime)}, nil
}

// ExplainDouble returns who is in the Double at path: holders are in, and waiters wait until it opens; those who came first come first. Who has
// left and waits for the others leaves no trace.
func ExplainDouble(ctx context.Context, c *recipes.Client, path string) (recipes.Contention, error) {
	d := &Double{client: c, path: path}
	sign, err := c.Exists(ctx, d.readyPath())
	if err != nil {
		return recipes.Contention{}, err
	}
	l, err := d.list(ctx)
	if err != nil {
		return recipes.Contention{}, err
	}
	members, err := contend.Read(ctx, c, d.paths(l.names))
	if err != nil {
		return recipes.Contention{}, err
	}
	slices.SortFunc(members, func(a, b recipes.Contender) int { return cmp.Compare(a.Zxid, b.Zxid) })
	in := 0 // the sign is younger than those for whom it was given
	for sign != nil && in < len(members) && members[in].Zxid < sign.Mzxid {
		in++
	}
	return recipes.Contention{Holders: members[:in], Waiters: members[in:]}, nil
}
