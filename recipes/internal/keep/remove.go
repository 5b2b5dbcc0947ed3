package keep

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// remove deletes the znode, and tries until the server has answered or the Client is closed.
//
// While it is known to be there, the delete is the only request; after an answer that was lost, or a create whose answer nobody waited for, it
// looks first: others may have the name already. The look follows a sync, as another server may not know yet what was applied before.
// The delete is a multi since that is not tried again unseen.
func (k *keeper) remove() error {
	if k.opts.ttl() || !k.may || k.path == "" { // without a name it was protected, and the Client deletes what it may have made
		return nil
	}
	ctx := context.Background()
	k.mu.Lock()
	sure := k.seen && k.isThere()
	k.mu.Unlock()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		mine, err := true, error(nil)
		if !sure {
			mine, err = k.look(ctx)
		}
		if err == nil && mine {
			_, err = k.client.Multi(ctx, &zk.DeleteRequest{Path: k.path, Version: -1})
		}
		var e *recipes.Error
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			return nil
		case errors.Is(err, recipes.ErrClosed), errors.As(err, &e) && e.Refused():
			return k.fail(err)
		}
		sure = false
		sleep(ctx, pause)
	}
}

// look reports whether the znode is there and ours.
func (k *keeper) look(ctx context.Context) (bool, error) {
	if err := k.client.Sync(ctx, k.path); err != nil {
		return false, err
	}
	stat, err := k.client.Exists(ctx, k.path)
	return stat != nil && k.ours(stat, k.client.Session()), err // what an earlier session had ended with it
}
