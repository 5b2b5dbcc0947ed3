package recipes

import (
	"context"
	"errors"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes/internal/znodepath"
)

// parentTries bounds how often the znodes above are made in one try: containers may go again before they have a child.
const parentTries = 5

// Ensure makes the znodes down to path that are missing: containers where the server has them, else persistent ones. A container without
// children goes again by itself some time later.
func (c *Client) Ensure(ctx context.Context, path string) error {
	return c.retry(ctx, "ensure", path, func(ctx context.Context, _ bool) error { return c.core.makeParents(ctx, c.absolute(path)) })
}

// makesParents reports whether missing znodes above are to be made: all, or those of the namespace.
func (n *createCall) makesParents() bool { return n.ensures() != "" }

// ensures returns the znode down to which those that are missing are made.
func (n *createCall) ensures() string {
	if n.opts.Parents {
		return znodepath.Parent(n.path)
	}
	if root := n.client.root; strings.HasPrefix(n.path, root+"/") {
		return root
	}
	return ""
}

// makeParents makes the znodes down to last that are missing.
func (k *core) makeParents(ctx context.Context, last string) error {
	if last == "/" {
		return nil
	}
	err := k.makeParent(ctx, last)
	if !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if err := k.makeParents(ctx, znodepath.Parent(last)); err != nil {
		return err
	}
	err = k.makeParent(ctx, last)
	if errors.Is(err, zk.ErrNoNode) {
		return nil // a container above is gone again; who needs it finds out
	}
	return err
}

// makeParent makes one: a container if the server has them. If ctx ends, it stays: an empty container goes by itself.
func (k *core) makeParent(ctx context.Context, path string) error {
	_, err := call(ctx, k, func() (string, error) {
		if !k.noContainers.Load() {
			created, err := k.conn.CreateContainer(path, nonNil(nil), zk.FlagContainer, k.cfg.acl)
			if err == nil || !isCode(err, -6) { // unimplemented
				return created, err
			}
			k.noContainers.Store(true)
		}
		return k.conn.Create(path, nonNil(nil), zk.FlagPersistent, k.cfg.acl)
	}, nil)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}
