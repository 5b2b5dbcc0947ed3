package client

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/proto"
)

// AddWatch sets a persistent watch on a znode, which need not exist. With
// proto.AddWatchPersistentRecursive the watch covers the znode and all znodes below it. Changes
// during a disconnection cause no events: after the event of the new connection the caller must
// read again.
func (c *Client) AddWatch(ctx context.Context, path string, mode proto.AddWatchMode) error {
	kind := watchPersistent
	if mode == proto.AddWatchPersistentRecursive {
		kind = watchRecursive
	}
	// The body of the reply is an int that is always 0.
	return c.doPath(ctx, proto.OpAddWatch, path, func(full string) request {
		return request{body: (&proto.AddWatchRequest{Path: full, Mode: mode}).Append, watch: watchIf(true, full, kind)}
	}, nil)
}

// RemoveWatches removes the Client's watches of a kind on exactly that path and delivers an event
// for each kind removed. ErrNoWatcher means that the server has no such watch. With local, the
// Client forgets the watches even if the connection is lost.
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

// CheckWatches returns nil if the server has a watch of the Client of that kind on exactly that
// path, otherwise ErrNoWatcher.
func (c *Client) CheckWatches(ctx context.Context, path string, kind proto.WatcherType) error {
	return c.doPath(ctx, proto.OpCheckWatches, path, func(full string) request {
		return request{body: (&proto.WatchesRequest{Path: full, Type: kind}).Append}
	}, nil)
}
