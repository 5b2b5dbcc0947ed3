package shell

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// maxTTL is the largest TTL in milliseconds: a Stat has 40 bits for the TTL.
const maxTTL = 1<<40 - 1

func runCreate(ctx context.Context, c *call) error {
	o := client.CreateOptions{Ephemeral: c.has("e"), Sequential: c.has("s"), Container: c.has("c")}
	if o.Container && (o.Ephemeral || o.Sequential) {
		return usageError("-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.")
	}
	if c.has("t") {
		ttl, err := strconv.ParseInt(c.value("t"), 10, 64)
		switch {
		case err != nil:
			return usageError("-t argument must be a long value")
		case o.Ephemeral:
			return usageError("TTLs cannot be used with Ephemeral znodes")
		case o.Container:
			return usageError("TTLs cannot be used with Container znodes")
		case ttl <= 0 || ttl > maxTTL:
			return usageError(fmt.Sprintf("ttl must be positive and cannot be larger than: %d", int64(maxTTL)))
		}
		o.TTL = time.Duration(ttl) * time.Millisecond
	}
	path := c.args[0]
	var data []byte
	if len(c.args) > 1 {
		data = []byte(c.args[1])
	}
	if len(c.args) > 2 {
		o.ACL = c.parseACL(c.args[2])
	}
	whole := path
	if o.Sequential {
		whole += "1"
	}
	if err := checkPath(whole); err != nil {
		return err
	}
	if o.ACL != nil && len(o.ACL) == 0 {
		return c.invalidACL(emptyACL())
	}
	created, _, err := c.zk.Create(ctx, path, data, o)
	switch {
	case errors.Is(err, proto.ErrEphemeralOnLocalSession):
		c.say(c.err, "Unable to create ephemeral node on a local session")
		return err
	case errors.Is(err, proto.ErrInvalidACL):
		return c.invalidACL(err)
	case err != nil:
		return err
	}
	return c.show(result{value: map[string]string{"path": created}, err: "Created " + created + "\n"})
}

// invalidACL prints an error that the shell then prints in other words, as zkCli.sh does.
func (c *call) invalidACL(err error) error {
	if e, ok := errors.AsType[*client.Error](err); ok {
		c.say(c.err, keeperMessage(e))
	}
	return err
}

func runDelete(ctx context.Context, c *call) error {
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
	return c.zk.Delete(ctx, c.args[0], version)
}

// deleteBatch is the default number of znodes that deleteall deletes in a request, and deleteBytes
// the most bytes that their paths have. A server usually takes requests of at most 1 MiB.
const deleteBatch, deleteBytes = 1000, 512 << 10

func runDeleteAll(ctx context.Context, c *call) error {
	size := deleteBatch
	if c.has("b") {
		n, err := strconv.ParseInt(c.value("b"), 10, 32)
		if err != nil {
			return usageError("-b argument must be an int value")
		}
		size = int(n)
	}
	var tree []string // parents before children
	err := visit(ctx, c.zk, c.args[0], false, func(path string) error { tree = append(tree, path); return nil })
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
		for bytes := 0; len(tree) > 0 && len(ops) < size; tree = tree[:len(tree)-1] {
			path := tree[len(tree)-1]
			if bytes += len(path); bytes > deleteBytes && len(ops) > 0 {
				break
			}
			ops = append(ops, client.DeleteOp(path, client.AnyVersion))
		}
		if _, err := c.zk.Multi(ctx, ops...); err != nil {
			c.say(c.err, "Failed to delete some node(s) in the subtree!")
			return errFailed
		}
	}
	return nil
}
