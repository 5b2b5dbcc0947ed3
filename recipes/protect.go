package recipes

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// protectedPrefix begins the name of a protected znode, as Curator forms it: "_c_", a GUID, "-",
// and the requested name.
const protectedPrefix = "_c_"

// findProtected returns the znode that an earlier attempt created, or "". A sync comes first: after
// a reconnect the present server may lag. Creates below one parent whose answers were lost together
// share the lookup.
func (n *createCall) findProtected(ctx context.Context) (string, error) {
	k, parent := n.client.core, proto.ParentPath(n.path)
	start := func(run func(context.Context)) error { k.background(run); return nil }
	found, _ := k.siblings.Ask(parent, start, func(ctx context.Context) (readResult, error) {
		if err := k.sync(ctx, parent); err != nil {
			return readResult{}, err
		}
		return k.read(ctx, readChildren, parent, false)
	})
	select {
	case <-found.Done:
	case <-ctx.Done():
		return "", newCtxError(ctx, false)
	}
	if found.Err != nil {
		return "", ignoreNoNode(found.Err)
	}
	for _, name := range found.Value.children {
		if strings.HasPrefix(name, n.prefix) {
			return n.checkFound(ctx, znodepath.Join(parent, name))
		}
	}
	return "", nil
}

// checkFound returns path if the znode there is the requested znode. An ephemeral of an earlier
// session is not, and is deleted.
func (n *createCall) checkFound(ctx context.Context, path string) (string, error) {
	if !n.opts.Ephemeral {
		return path, nil
	}
	k := n.client.core
	there, err := k.read(ctx, readExists, path, false)
	switch {
	case err != nil || there.stat == nil:
		return "", err
	case int64(there.stat.EphemeralOwner) == k.currentSession().ID():
		k.conn.foundOwn(path)
		return path, nil
	}
	return "", ignoreNoNode(k.delete(ctx, path, -1))
}

// deleteOrphan deletes, in the background, the znode that an attempt may have created.
func (n *createCall) deleteOrphan() {
	k := n.client.core
	k.retryInBackground("delete orphan", n.path, func(ctx context.Context) error {
		found, err := n.findProtected(ctx)
		if err != nil || found == "" {
			return err
		}
		return ignoreNoNode(k.delete(ctx, found, -1))
	})
}
