package recipes

import (
	"context"
	"errors"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// parentTries bounds how often an attempt creates missing parents: the server may delete an empty
// container before the container gets a child.
const parentTries = 5

// Ensure creates the missing znodes down to path: as containers if the server supports them,
// otherwise as persistent znodes. The server deletes a container some time after its last child.
func (c *Client) Ensure(ctx context.Context, path string) error {
	return c.retry(ctx, "ensure", path, func(ctx context.Context, _ bool) error { return c.core.makeParents(ctx, c.absolute(path)) })
}

// lastParent returns the deepest parent that Create may have to make: the znode's parent with
// CreateOptions.Parents, otherwise the namespace's root; "" if none.
func (n *createCall) lastParent() string {
	if n.opts.Parents {
		return proto.ParentPath(n.path)
	}
	if root := n.client.root; strings.HasPrefix(n.path, root+"/") {
		return root
	}
	return ""
}

func (k *core) makeParents(ctx context.Context, last string) error {
	if last == "/" {
		return nil
	}
	err := k.makeParent(ctx, last)
	if !errors.Is(err, proto.ErrNoNode) {
		return err
	}
	if err := k.makeParents(ctx, proto.ParentPath(last)); err != nil {
		return err
	}
	err = k.makeParent(ctx, last)
	if errors.Is(err, proto.ErrNoNode) {
		return nil // the server has deleted a container above; the caller notices
	}
	return err
}

// makeParent creates a znode, as a container if the server supports them. The znode stays if ctx
// ends: the server deletes an empty container.
func (k *core) makeParent(ctx context.Context, path string) error {
	container := !k.noContainers.Load()
	_, err := k.create(ctx, path, nonNil(nil), CreateOptions{Container: container, ACL: k.cfg.acl}, nil)
	if container && errors.Is(err, proto.ErrUnimplemented) {
		k.noContainers.Store(true)
		_, err = k.create(ctx, path, nonNil(nil), CreateOptions{ACL: k.cfg.acl}, nil)
	}
	if errors.Is(err, proto.ErrNodeExists) {
		return nil
	}
	return err
}
