package persistentnode

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// touchName is the child that keeps a znode with a TTL alive, as Curator calls it. To touch the znode itself would fire the watches of all
// who look at its data.
const touchName = "touch"

// touch touches the child twice per TTL, the first time at once. It returns a channel that gets something when the next time has come; nil
// if there is no TTL.
//
// The znode has the TTL too, so that it is gone one TTL after its last change if this process dies before the child is made. A container
// without a child that ever was would stay for ever.
func (k *maintainer) touch(ctx context.Context) (<-chan time.Time, error) {
	if !k.opts.ttl() {
		return nil, nil
	}
	due := k.opts.TTL / 2
	if passed := time.Since(k.touchedAt); !k.touchExists || passed >= due {
		if err := k.touchChild(ctx); err != nil {
			return nil, err
		}
		k.touchedAt, k.touchExists = time.Now(), true
	} else {
		due -= passed
	}
	return time.After(due), nil
}

func (k *maintainer) touchChild(ctx context.Context) error {
	path := k.path + "/" + touchName
	if k.touchExists {
		_, err := k.client.Set(ctx, path, nil, -1)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	_, err := k.client.Create(ctx, path, nil, recipes.CreateOptions{Mode: recipes.TTL, TTL: k.opts.TTL, ACL: k.opts.ACL})
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		_, err = k.client.Set(ctx, path, nil, -1)
	case errors.Is(err, zk.ErrNoNode): // the one above is gone, and its watch says so
		return nil
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
