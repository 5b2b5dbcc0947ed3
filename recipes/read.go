package recipes

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
)

// readResult is the result of any kind of read.
type readResult struct {
	data     []byte
	children []string
	exists   bool
	stat     *zk.Stat
	watch    <-chan zk.Event
}

// read retries f until the server answers. An abandoned read has no effect, so the error's Unknown
// is never set.
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

// Get returns the data of a znode, which the caller owns, and its Stat.
func (c *Client) Get(ctx context.Context, path string) ([]byte, *zk.Stat, error) {
	n, err := c.read(ctx, "get", path, c.core.get)
	return n.data, n.stat, err
}

// GetW is Get with a watch. When the znode's data change, the znode is deleted, or the session
// ends, the channel gets one event and is then closed. ExistsW says what holds for the channels of
// all watches.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, *zk.Stat, <-chan zk.Event, error) {
	k := c.core
	n, err := c.readWatched(ctx, "get", path, []watchKind{watchData}, k.get, func(path string) (n readResult, err error) {
		n.data, n.stat, n.watch, err = k.conn.GetW(path)
		return n, err
	})
	return n.data, n.stat, n.watch, err
}

// Exists returns the Stat of a znode, or nil if there is none.
func (c *Client) Exists(ctx context.Context, path string) (*zk.Stat, error) {
	n, err := c.read(ctx, "exists", path, c.core.exists)
	return n.statIfThere(), err
}

// ExistsW is Exists with a watch that fires when the znode is created, changed or deleted, or the
// session ends.
//
// Watches of a znode may share a channel: one receiver gets the event, the others see the channel
// closed. Either means that something may have changed, possibly just before the call: read again.
// The event's Path is the server's, not the namespace's. The channel need not be read, and nothing
// has to be released: when ctx ends, at most one one-shot watch per znode and kind stays armed on
// the server, and the next caller that watches the same znode reuses that watch.
func (c *Client) ExistsW(ctx context.Context, path string) (*zk.Stat, <-chan zk.Event, error) {
	k := c.core
	n, err := c.readWatched(ctx, "exists", path, []watchKind{watchData, watchExist}, k.exists, func(path string) (n readResult, err error) {
		n.exists, n.stat, n.watch, err = k.conn.ExistsW(path)
		return n, err
	})
	return n.statIfThere(), n.watch, err
}

// Children returns the names of a znode's children, in no particular order, and its Stat.
func (c *Client) Children(ctx context.Context, path string) ([]string, *zk.Stat, error) {
	n, err := c.read(ctx, "children", path, c.core.children)
	return n.children, n.stat, err
}

// ChildrenW is Children with a watch that fires when a child is created or deleted, the znode
// itself is deleted, or the session ends. See ExistsW.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, *zk.Stat, <-chan zk.Event, error) {
	k := c.core
	n, err := c.readWatched(ctx, "children", path, []watchKind{watchChildren}, k.children, func(path string) (n readResult, err error) {
		n.children, n.stat, n.watch, err = k.conn.ChildrenW(path)
		return n, err
	})
	return n.children, n.stat, n.watch, err
}

// readWatched is read with a watch. If a watch of one of kinds is armed already, plain reads the
// znode and the watch is shared. Otherwise arm reads the znode and arms a watch: of the first kind,
// or of the last kind if there is no znode.
func (c *Client) readWatched(ctx context.Context, op, path string, kinds []watchKind, plain, arm func(path string) (readResult, error)) (readResult, error) {
	k := c.core
	return c.read(ctx, op, path, func(path string) (n readResult, err error) {
		if ch := k.watches.lookup(path, kinds...); ch != nil {
			n, err = plain(path)
			n.watch = ch
			return n, err
		}
		reconnect := k.nextReconnect()
		n, err = arm(path)
		k.noteStat(n.stat)
		kind := kinds[0]
		if !n.exists {
			kind = kinds[len(kinds)-1]
		}
		n.watch = k.registerWatch(path, kind, n.watch, reconnect)
		return n, err
	})
}

// Sync makes the server catch up with the leader: later reads through this Client are at least as
// new as every write that was completed before.
//
// Sync also waits for requests of this Client whose callers stopped waiting when a ctx ended. When
// Sync returns nil, each of these requests is done or never will be. Before that, such a request
// may still be sent, even in a later session: the end of the session for which the request was
// meant does not cancel the request.
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
	k.noteStat(stat)
	return readResult{data: data, stat: stat}, err
}

func (k *core) exists(path string) (readResult, error) {
	exists, stat, err := k.conn.Exists(path)
	k.noteStat(stat)
	return readResult{exists: exists, stat: stat}, err
}

func (k *core) children(path string) (readResult, error) {
	children, stat, err := k.conn.Children(path)
	k.noteStat(stat)
	return readResult{children: children, stat: stat}, err
}

func (k *core) sync(path string) (readResult, error) {
	_, err := k.conn.Sync(path)
	return readResult{}, err
}
