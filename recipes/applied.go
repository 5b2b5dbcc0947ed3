package recipes

import (
	"context"

	"github.com/gozkd/gozkd/proto"
)

// A write that the leader accepts gets a zxid greater than every zxid that any client has seen
// before the write was sent. So after a lost answer, a znode whose zxid the Client may have seen
// before proves that the write was not applied. A sync comes first: after that a write that was not
// applied never will be; see S1 in docs/internals/recipes.md.

// lookAfterSync returns the Stat of a znode, nil if there is none, as of now.
func (k *core) lookAfterSync(ctx context.Context, full string) (*proto.Stat, error) {
	if err := k.sync(ctx, full); err != nil {
		return nil, err
	}
	n, err := k.read(ctx, readExists, full, false)
	return n.stat, err
}

// checkUntouched returns an ambiguousError unless the znode exists, and has a zxid up to before:
// the Mzxid if it was not set since, the Czxid if it was not deleted.
func (k *core) checkUntouched(ctx context.Context, full string, before int64, zxid func(*proto.Stat) int64) error {
	stat, err := k.lookAfterSync(ctx, full)
	switch {
	case err != nil:
		return ambiguous(err)
	case stat == nil:
		return &ambiguousError{proto.ErrNoNode}
	case zxid(stat) > before:
		return errNotRepeatable
	}
	return nil
}

// checkNotCreated returns an ambiguousError unless the znode exists since before or earlier, or is
// missing and its parent has had the same children since before.
func (k *core) checkNotCreated(ctx context.Context, full, parent string, before int64) error {
	stat, err := k.lookAfterSync(ctx, full)
	switch {
	case err != nil:
		return ambiguous(err)
	case stat != nil && int64(stat.Czxid) > before:
		return &ambiguousError{proto.ErrNodeExists}
	case stat != nil: // the server will refuse
		return nil
	}
	n, err := k.read(ctx, readExists, parent, false)
	switch {
	case err != nil:
		return ambiguous(err)
	case n.stat == nil || int64(n.stat.Pzxid) > before:
		return errNotRepeatable
	}
	return nil
}
