package client

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/proto"
)

// AddWatch sets a watch that stays until it is removed, on the znode or, if mode is proto.AddWatchPersistentRecursive, on it
// and all below. There need not be such a znode. While there is no connection changes go unseen: who needs to know reads
// again after the event of a connection.
func (c *Client) AddWatch(ctx context.Context, path string, mode proto.AddWatchMode) error {
	full, err := c.full(proto.OpAddWatch, path)
	if err != nil {
		return err
	}
	kind := watchPersistent
	if mode == proto.AddWatchPersistentRecursive {
		kind = watchRecursive
	}
	req := proto.AddWatchRequest{Path: full, Mode: mode}
	// The body, an int that is always 0, says nothing.
	return c.do(ctx, request{op: proto.OpAddWatch, path: path, body: req.Append, watch: watchIf(true, full, kind)}, nil)
}

// RemoveWatches removes the Client's watches of a kind on exactly that path, and tells OnEvent of each kind that was there.
// ErrNoWatcher: the server knows of none. With local they are forgotten even if the connection is lost meanwhile.
func (c *Client) RemoveWatches(ctx context.Context, path string, kind proto.WatcherType, local bool) error {
	full, err := c.full(proto.OpRemoveWatches, path)
	if err != nil {
		return err
	}
	req := proto.WatchesRequest{Path: full, Type: kind}
	err = c.do(ctx, request{op: proto.OpRemoveWatches, path: path, body: req.Append, settled: func(code proto.ErrCode) {
		if code == proto.OK {
			c.forgetWatches(full, kind)
		}
	}}, nil)
	if local && errors.Is(err, proto.ErrConnectionLoss) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.forgetWatches(full, kind)
		return nil
	}
	return err
}

// CheckWatches returns nil if the server knows of a watch of the Client of that kind on exactly that path, else
// ErrNoWatcher.
func (c *Client) CheckWatches(ctx context.Context, path string, kind proto.WatcherType) error {
	full, err := c.full(proto.OpCheckWatches, path)
	if err != nil {
		return err
	}
	req := proto.WatchesRequest{Path: full, Type: kind}
	return c.do(ctx, request{op: proto.OpCheckWatches, path: path, body: req.Append}, nil)
}
