package shell

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

func runAddWatch(ctx context.Context, c *call) error {
	if len(c.args) != 1 {
		return errUsage
	}
	mode := proto.AddWatchPersistentRecursive
	if c.has("m") {
		switch strings.ToUpper(c.value("m")) {
		case "PERSISTENT":
			mode = proto.AddWatchPersistent
		case "PERSISTENT_RECURSIVE":
		default:
			return errUsage
		}
	}
	if err := checkPath(c.args[0]); err != nil {
		return err
	}
	return c.zk.AddWatch(ctx, c.args[0], mode)
}

func runRemoveWatches(ctx context.Context, c *call) error {
	kind := proto.WatcherAny
	switch {
	case c.has("c"):
		kind = proto.WatcherChildren
	case c.has("d"):
		kind = proto.WatcherData
	case c.has("p"):
		kind = proto.WatcherPersistent
	case c.has("r"):
		kind = proto.WatcherPersistentRecursive
	}
	if err := checkPath(c.args[0]); err != nil {
		return err
	}
	return c.zk.RemoveWatches(ctx, c.args[0], kind, c.has("l"))
}
