package shell

import (
	"context"
	"strconv"

	"github.com/gozkd/gozkd/client"
)

func runDelete(ctx context.Context, c *call) error {
	path := c.args[0]
	version, err := c.version()
	if err != nil {
		return err
	}
	if len(c.args) > 1 {
		c.say(c.err, "'delete path [version]' has been deprecated. Please use 'delete [-v version] path' instead.")
		if !c.has("v") {
			if version, err = parseVersion(c.args[1]); err != nil {
				return err
			}
		}
	}
	if err := checkPath(path); err != nil {
		return err
	}
	return c.zk.Delete(ctx, path, version)
}

// deleteBatch is how many znodes deleteall deletes at once.
const deleteBatch = 1000

func runDeleteAll(ctx context.Context, c *call) error {
	size := deleteBatch
	if c.has("b") {
		n, err := strconv.ParseInt(c.value("b"), 10, 32)
		if err != nil {
			return usageError("-b argument must be an int value")
		}
		size = int(n)
	}
	path := c.args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	tree, err := breadthFirst(ctx, c.zk, path)
	if err != nil {
		return err
	}
	for size <= 0 && len(tree) > 0 {
		last := len(tree) - 1
		if err := c.zk.Delete(ctx, tree[last], client.AnyVersion); err != nil {
			return err
		}
		tree = tree[:last]
	}
	for len(tree) > 0 {
		var ops []client.Op
		for ; len(tree) > 0 && len(ops) < size; tree = tree[:len(tree)-1] {
			ops = append(ops, client.DeleteOp(tree[len(tree)-1], client.AnyVersion))
		}
		if _, err := c.zk.Multi(ctx, ops...); err != nil {
			c.say(c.err, "Failed to delete some node(s) in the subtree!")
			return errFailed
		}
	}
	return nil
}

// breadthFirst returns a znode and all below it, parents before children.
func breadthFirst(ctx context.Context, zk *client.Client, path string) ([]string, error) {
	tree := []string{path}
	for i := 0; i < len(tree); i++ {
		names, _, err := zk.Children(ctx, tree[i], false)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			tree = append(tree, join(tree[i], name))
		}
	}
	return tree, nil
}
