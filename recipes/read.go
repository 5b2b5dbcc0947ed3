package recipes

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// node is what reads return.
type readResult struct {
	data     []byte
	children []string
	exists   bool
	stat     *zk.Stat
	watch    <-chan zk.Event
}

// read runs f until it is answered. What it has read does no harm if nobody waits for it.
func (c *Client) read(ctx context.Context, op, path string, f func(path string) (readResult, error)) (n readResult, err error) {
	full := c.absolute(path)
	err = c.retry(ctx, op, path, func(ctx context.Context, _ bool) (err error) {
		n, err = call(ctx, c.core, func() (readResult, error) { return f(full) }, nil)
		return err
	})
	var e *Error
	if errors.As(err, &e) {
		e.Unknown = false
		return readResult{}, e
	}
	return n, nil
}

// Get returns the data of a znode, which is the caller's own, and its Stat.
func (c *Client) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	n, err := c.read(ctx, "get", path, c.core.get)
	return n.data, n.stat, err
}

// GetW is Get with a watch: the channel gets one event when the znode's data change or it is deleted after that, or the session ends. Then
// it is closed. See ExistsW for what channels of watches have in common.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	n, err := c.read(ctx, "get", path, func(path string) (readResult, error) {
		if ch := c.core.watches.lookup(path, watchData); ch != nil {
			n, err := c.core.get(path)
			n.watch = ch
			return n, err
		}
		again := c.core.nextReconnect()
		data, stat, ch, err := c.core.conn.GetW(path)
		return readResult{data: data, stat: stat, watch: c.core.registerWatch(path, watchData, ch, again)}, err
	})
	return n.data, n.stat, n.watch, err
}

// Exists returns the Stat of a znode, or nil if there is none.
func (c *Client) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	n, err := c.read(ctx, "exists", path, c.core.exists)
	return n.statIfThere(), err
}

// ExistsW is Exists with a watch that fires when the znode is created, changed or deleted, or the session ends.
//
// The channel may be shared with others that watch the same znode: one of them gets the event, the others see that the channel
// is closed. Either means that something may have happened, now or a moment before the call: read again. An event's Path is the
// server's, not the namespace's. The channel needs not be read, and nothing has to be released: when ctx ends, at most one
// one-shot watch per znode and kind stays armed on the server, and the next who watches the same takes it over.
func (c *Client) ExistsW(ctx context.Context, path string) (*zk.Stat, <-chan zk.Event, error) {
	n, err := c.read(ctx, "exists", path, func(path string) (readResult, error) {
		if ch := c.core.watches.lookup(path, watchData, watchExist); ch != nil {
			n, err := c.core.exists(path)
			n.watch = ch
			return n, err
		}
		again := c.core.nextReconnect()
		exists, stat, ch, err := c.core.conn.ExistsW(path)
		kind := watchExist
		if exists {
			kind = watchData
		}
		return readResult{exists: exists, stat: stat, watch: c.core.registerWatch(path, kind, ch, again)}, err
	})
	return n.statIfThere(), n.watch, err
}

// Children returns the names of a znode's children, in no order, and its Stat.
func (c *Client) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	n, err := c.read(ctx, "children", path, c.core.children)
	return n.children, n.stat, err
}

// ChildrenW is Children with a watch that fires when a child is created or deleted, or the znode is deleted, or the session ends. See ExistsW.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	n, err := c.read(ctx, "children", path, func(path string) (readResult, error) {
		if ch := c.core.watches.lookup(path, watchChildren); ch != nil {
			n, err := c.core.children(path)
			n.watch = ch
			return n, err
		}
		again := c.core.nextReconnect()
		children, stat, ch, err := c.core.conn.ChildrenW(path)
		return readResult{children: children, stat: stat, watch: c.core.registerWatch(path, watchChildren, ch, again)}, err
	})
	return n.children, n.stat, n.watch, err
}

// Sync lets the server catch up with the leader: what is read afterwards through this Client is at least as new as what anybody had
// written before. What this Client was asked for before, and gave up waiting for when a ctx ended, has come to its end then: it is done, or never
// will be. Until then it may be sent yet, in whichever session there is: so the end of the session for which it was meant tells nothing.
func (c *Client) Sync(ctx context.Context, path string) error {
	if err := c.core.abandonedCalls.wait(ctx, c.core.closing); err != nil {
		return &Error{"sync", path, err, false}
	}
	_, err := c.read(ctx, "sync", path, c.core.sync)
	return err
}

func (n readResult) statIfThere() *zk.Stat {
	if !n.exists {
		return nil
	}
	return n.stat
}

func (k *core) get(path string) (readResult, error) {
	data, stat, err := k.conn.Get(path)
	return readResult{data: data, stat: stat}, err
}

func (k *core) exists(path string) (readResult, error) {
	exists, stat, err := k.conn.Exists(path)
	return readResult{exists: exists, stat: stat}, err
}

func (k *core) children(path string) (readResult, error) {
	children, stat, err := k.conn.Children(path)
	return readResult{children: children, stat: stat}, err
}

func (k *core) sync(path string) (readResult, error) {
	_, err := k.conn.Sync(path)
	return readResult{}, err
}
