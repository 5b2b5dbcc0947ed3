package client

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// AnyVersion as a version lets a write succeed whatever the version is.
const AnyVersion int32 = -1

// Delete removes a znode that has no children, if its data has that version.
func (c *Client) Delete(ctx context.Context, path string, version int32) error {
	full, err := c.full(proto.OpDelete, path)
	if err != nil {
		return err
	}
	req := proto.PathVersionRequest{Path: full, Version: version}
	return c.do(ctx, request{op: proto.OpDelete, path: path, body: req.Append}, nil)
}

// Exists returns the Stat of a znode, and whether it is there: a missing one is no error. A watch waits for its creation,
// or for its next change or deletion.
func (c *Client) Exists(ctx context.Context, path string, watch bool) (proto.Stat, bool, error) {
	full, err := c.full(proto.OpExists, path)
	if err != nil {
		return proto.Stat{}, false, err
	}
	req := proto.PathWatchRequest{Path: full, Watch: watch}
	var stat proto.Stat
	err = c.do(ctx, request{op: proto.OpExists, path: path, body: req.Append, watch: watchIf(watch, full, watchExists)}, stat.Decode)
	var e *Error
	switch {
	case err == nil:
		return stat, true, nil
	case errors.As(err, &e) && e.Code == proto.ErrNoNode:
		return proto.Stat{}, false, nil
	default:
		return proto.Stat{}, false, err
	}
}

// Get returns a znode's data, which the caller owns, and its Stat. nil data differs from empty data: it was created so. A
// watch waits for the next change or the deletion.
func (c *Client) Get(ctx context.Context, path string, watch bool) ([]byte, proto.Stat, error) {
	full, err := c.full(proto.OpGetData, path)
	if err != nil {
		return nil, proto.Stat{}, err
	}
	return c.get(ctx, path, full, watch)
}

// get is Get of a path of the server.
func (c *Client) get(ctx context.Context, path, full string, watch bool) ([]byte, proto.Stat, error) {
	req := proto.PathWatchRequest{Path: full, Watch: watch}
	var resp proto.DataResponse
	err := c.do(ctx, request{op: proto.OpGetData, path: path, body: req.Append, watch: watchIf(watch, full, watchData)}, resp.Decode)
	if err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.Data, resp.Stat, nil
}

// Set replaces a znode's data if it has that version, and returns the new Stat.
func (c *Client) Set(ctx context.Context, path string, data []byte, version int32) (proto.Stat, error) {
	full, err := c.full(proto.OpSetData, path)
	if err != nil {
		return proto.Stat{}, err
	}
	req := proto.SetDataRequest{Path: full, Data: data, Version: version}
	var stat proto.Stat
	err = c.do(ctx, request{op: proto.OpSetData, path: path, body: req.Append}, stat.Decode)
	return stat, err
}

// Children returns the names of a znode's children as the server sent them, unsorted, and the znode's Stat. A watch waits
// for the next child that comes or goes, or for the deletion.
func (c *Client) Children(ctx context.Context, path string, watch bool) ([]string, proto.Stat, error) {
	full, err := c.full(proto.OpGetChildren2, path)
	if err != nil {
		return nil, proto.Stat{}, err
	}
	req := proto.PathWatchRequest{Path: full, Watch: watch}
	var resp proto.ChildrenResponse
	err = c.do(ctx, request{op: proto.OpGetChildren2, path: path, body: req.Append, watch: watchIf(watch, full, watchChildren)},
		func(d *jute.Decoder) { resp.Decode(d, proto.OpGetChildren2) })
	if err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.Children, resp.Stat, nil
}

// ChildrenCount returns how many znodes are below path, at all depths.
func (c *Client) ChildrenCount(ctx context.Context, path string) (int, error) {
	full, err := c.full(proto.OpGetAllChildrenNumber, path)
	if err != nil {
		return 0, err
	}
	req := proto.PathRequest{Path: &full}
	var resp proto.IntResponse
	err = c.do(ctx, request{op: proto.OpGetAllChildrenNumber, path: path, body: req.Append}, resp.Decode)
	return int(resp.Value), err
}

// Sync returns when the server has caught up with what was committed when it was asked; reads that follow see that. The
// result is the path.
func (c *Client) Sync(ctx context.Context, path string) (string, error) {
	full, err := c.full(proto.OpSync, path)
	if err != nil {
		return "", err
	}
	req := proto.PathRequest{Path: &full}
	var resp proto.PathRequest
	if err := c.do(ctx, request{op: proto.OpSync, path: path, body: req.Append}, resp.Decode); err != nil {
		return "", err
	}
	if resp.Path == nil {
		return "", nil
	}
	return c.strip(*resp.Path), nil
}
