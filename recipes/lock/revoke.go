package lock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// revokeMessage is what Curator's Revoker writes to the znode of whom it asks.
var revokeMessage = []byte("__REVOKE__")

// Revoke asks the contender with the znode at path, such as Explain names, to let the lock go: its Lock.Revoked is closed, or a
// Curator lock's RevocationListener is called. It does not wait for that, and nobody is forced. What the contender's znode said is
// overwritten. It is not an error if the znode is gone.
func Revoke(ctx context.Context, c *recipes.Client, path string) error {
	_, err := c.Set(ctx, path, revokeMessage, -1)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
