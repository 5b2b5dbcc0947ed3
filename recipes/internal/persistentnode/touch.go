package persistentnode

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// touchName is Curator's name for the child that keeps a znode with a TTL alive. Setting the znode
// itself would fire the data watches of its readers.
const touchName = "touch"

// touch sets the child twice per TTL, first at once. The channel delivers when the next time has
// come; nil without a TTL.
//
// The znode itself has the TTL too: if this process dies before the child exists, the server
// deletes the znode one TTL after its last change. A container that never had a child would stay
// forever.
func (k *maintainer) touch(ctx context.Context) (<-chan time.Time, error) {
	if k.opts.TTL == 0 {
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
		_, err := k.client.Idempotent().Set(ctx, path, nil, -1)
		if !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	_, err := k.client.Idempotent().Create(ctx, path, nil, recipes.CreateOptions{TTL: k.opts.TTL, ACL: k.opts.ACL})
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		_, err = k.client.Idempotent().Set(ctx, path, nil, -1)
	case errors.Is(err, zk.ErrNoNode): // the znode is gone, and its watch fires
		return nil
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
