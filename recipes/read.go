package recipes

import (
	"context"
	"errors"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

type readResult struct {
	data     []byte
	children []string
	stat     *proto.Stat // nil if readExists found none
	watch    <-chan client.Event
}

// EventNotWatching is the type of the event of a watch that has ended: with its session, or because
// a server refused to set it again.
const EventNotWatching proto.EventType = -2

// EventMissed is the type of an event that tells a persistent watch that it may have missed
// changes: read again.
const EventMissed proto.EventType = -3

type readKind int

const (
	readData readKind = iota
	readExists
	readChildren
)

func (r readKind) String() string { return [...]string{"get", "exists", "children"}[r] }

// read retries a read until the server answers. An abandoned read has no effect, so the error's
// Unknown is never set.
func (c *Client) read(ctx context.Context, kind readKind, path string, watch bool) (n readResult, err error) {
	full := c.absolute(path)
	return n, c.request(ctx, kind.String(), path, func(ctx context.Context) (err error) {
		n, err = c.core.read(ctx, kind, full, watch)
		return err
	})
}

// request retries a request that changes nothing.
func (c *Client) request(ctx context.Context, op, path string, f func(ctx context.Context) error) error {
	err := c.retry(ctx, op, path, func(ctx context.Context, _ bool) error { return f(ctx) })
	if e, ok := errors.AsType[*Error](err); ok {
		e.Unknown = false
	}
	return err
}

// Get returns the data of a znode, which the caller owns, and its Stat.
func (c *Client) Get(ctx context.Context, path string) ([]byte, *proto.Stat, error) {
	n, err := c.read(ctx, readData, path, false)
	return n.data, n.stat, err
}

// GetW is Get with a watch. When the znode's data change, the znode is deleted, or the session
// ends, the channel gets one event and is then closed. ExistsW says what holds for the channels of
// all watches.
func (c *Client) GetW(ctx context.Context, path string) ([]byte, *proto.Stat, <-chan client.Event, error) {
	n, err := c.read(ctx, readData, path, true)
	return n.data, n.stat, n.watch, err
}

// Exists returns the Stat of a znode, or nil if there is none.
func (c *Client) Exists(ctx context.Context, path string) (*proto.Stat, error) {
	n, err := c.read(ctx, readExists, path, false)
	return n.stat, err
}

// ExistsW is Exists with a watch that fires when the znode is created, changed or deleted, or the
// session ends.
//
// Watches of a znode may share a channel: one receiver gets the event, the others see the channel
// closed. Either means that something may have changed, possibly just before the call: read again.
// The event's Path is the server's, not the namespace's. The channel need not be read, and nothing
// has to be released: when ctx ends, at most one one-shot watch per znode and kind stays armed on
// the server, and the next caller that watches the same znode reuses that watch.
func (c *Client) ExistsW(ctx context.Context, path string) (*proto.Stat, <-chan client.Event, error) {
	n, err := c.read(ctx, readExists, path, true)
	return n.stat, n.watch, err
}

// Children returns the names of a znode's children, in no particular order, and its Stat.
func (c *Client) Children(ctx context.Context, path string) ([]string, *proto.Stat, error) {
	n, err := c.read(ctx, readChildren, path, false)
	return n.children, n.stat, err
}

// ChildrenW is Children with a watch that fires when a child is created or deleted, the znode
// itself is deleted, or the session ends. See ExistsW.
func (c *Client) ChildrenW(ctx context.Context, path string) ([]string, *proto.Stat, <-chan client.Event, error) {
	n, err := c.read(ctx, readChildren, path, true)
	return n.children, n.stat, n.watch, err
}

// WatchPersistent calls f for each creation, change and deletion of the znode at path, in order,
// until ctx ends or the Client is closed: Curator's PersistentWatcher. If recursive, so for the
// znodes below it; if not, also when its children come or go. The znode may be missing. Paths of
// events are relative to the namespace. f must not block, nor call methods of the Client.
//
// WatchPersistent returns when the server has set the watch, which ZooKeeper has since 3.6; before
// 3.9 a server keeps one of the two kinds per path. The watch is set again before the state is
// Reconnected. In the same session, f gets before that the events of all changes meanwhile, or
// EventMissed, as always with ZooKeeper: read again then. In another session changes cause no
// events meanwhile: read again. If a server refuses the watch, f gets a last event,
// EventNotWatching. On a wrapped connection, and on older servers, WatchPersistent fails.
func (c *Client) WatchPersistent(ctx context.Context, path string, recursive bool, f func(client.Event)) error {
	k, full := c.core, c.absolute(path)
	relative := func(e client.Event) {
		e.Path = c.relative(e.Path)
		f(e)
	}
	return c.request(ctx, "watch", path, func(ctx context.Context) error {
		return k.do(ctx, request{}, func(ctx context.Context) error { return k.conn.watchTree(ctx, full, recursive, relative) })
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
	full := c.absolute(path)
	return c.request(ctx, "sync", path, func(ctx context.Context) error { return c.core.sync(ctx, full) })
}

func (k *core) read(ctx context.Context, kind readKind, full string, watch bool) (readResult, error) {
	r := request{op: kind.String(), path: full, watch: watch}
	return call(ctx, k, r, func(ctx context.Context) (readResult, error) {
		return k.conn.read(ctx, kind, full, watch)
	}, nil)
}

func (k *core) sync(ctx context.Context, full string) error {
	return k.do(ctx, request{op: "sync", path: full}, func(ctx context.Context) error { return k.conn.sync(ctx, full) })
}
